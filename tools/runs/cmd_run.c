/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run: load, schedule, run, save, report. */
#include "runs/run.h"

#include "ranks/launch.h"
#include "train/strategies.h"
#include <stdlib.h>
#include <string.h>

bool is_output(const session *s, uint32_t i, gantry_buffer_info *info)
{
    *info = (gantry_buffer_info)GANTRY_BUFFER_INFO_INIT;
    return !gantry_graph_buffer_info(s->graph, (gantry_buffer){ .id = i }, info, NULL) && info->output;
}

bool is_written(const session *s, uint32_t i, gantry_buffer_info *info)
{
    return is_output(s, i, info) || info->cls == GANTRY_STATE;
}

/* Before anything runs, so that a misspelt name does not cost a run. */
static int check_words(const session *s)
{
    int code = check_explain(s->o, s->graph);
    if (!code)
        code = check_checkpoint(s->o);
    if (!code)
        code = check_calibrate(s->o);
    if (s->o->check && s->o->backend && strcmp(s->o->backend, "sim") == 0) {
        complain("gantry run: --check needs results, and back end \"sim\" gives times only; use host\n");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < s->o->outputs.count && !code; i++) {
        gantry_buffer buffer;
        gantry_buffer_info info;
        const char *path;
        code = find_binding(s, "output", s->o->outputs.at[i], &buffer, &path);
        if (!code && !is_written(s, buffer.id, &info)) {
            complain("--output: buffer \"%s\" is no output; add \"output\": true to it in the graph\n", info.name);
            code = EXIT_USAGE;
        }
        if (!code)
            code = check_outputs_differ(s, i);
        if (!code)
            code = check_output_format(&info, path);
        if (!code && strcmp(path, "-") != 0)
            code = check_writable("output", path);
    }
    code = code ? code : check_files(s->o);
    code = code ? code : check_phase(s->o);
    code = code ? code : check_feed(s->o);
    code = code ? code : check_watched(s);
    code = code ? code : check_evaluated(s->o);
    return code ? code : check_shown(s);
}

/* ---- running ---- */

static int prepare_schedule(session *s)
{
    if (!s->o->schedule && take_kept(&s->schedule, s->o, s->graph))
        return EXIT_FINE;
    if (!s->o->schedule) {
        int code = make_schedule(&s->schedule, s->o, s->graph, &s->known);
        if (!code && gantry_network_rank(s->ranks.network) == 0)
            keep_schedule(s->schedule, s->o, s->graph);
        return code;
    }
    return read_schedule_of(&s->schedule, s->o->schedule, s->graph);
}

static bool is_guided(const session *s)
{
    return s->o->balance && strcmp(s->o->balance, "guided") == 0 && s->o->iterations > 1;
}

bool records_times(const session *s)
{
    return s->o->calibrate || s->o->trace || s->o->html || s->o->compare || s->o->profile || is_guided(s);
}

int open_run(session *s, gantry_run **run, gantry_schedule *schedule, const char *backend, bool checking)
{
    gantry_error err;
    gantry_run_options ro = run_options(s);
    ro.backend = backend;
    ro.check = checking;
    ro.network = s->ranks.network;
    ro.inputs_key = ro.network && !s->by_first ? inputs_key(s) : 0;
    ro.outputs_apart = !s->by_first && !s->o->train && !s->o->watched.count; /* else starts are looked at */
    progress_stage("preparing the run");
    gantry_status status = gantry_run_new(run, schedule, &ro, &err);
    progress_clear();
    return status ? fail(&err) : bind_inputs(s, *run);
}

int start_once(gantry_run *run, double *us)
{
    gantry_error err;
    uint64_t ticket;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    if (gantry_run_start(run, &ticket, &err) || gantry_run_wait(run, ticket, &err) ||
        gantry_run_get_info(run, &info, &err))
        return fail(&err);
    *us = info.last_us;
    return EXIT_FINE;
}

/* Tells of a start that was waited for, the first being 1. */
static int look_at_start(session *s, size_t number)
{
    int code = s->o->train ? look_at_loss(s, number) : EXIT_FINE;
    return code ? code : watch(s, number);
}

int start_alone(session *s, size_t i, double *us)
{
    if (interrupt_code())
        return interrupt_code();
    int code = start_once(s->run, us);
    if (!code)
        progress_say("start %zu of %zu: %.1f us", s->resumed + i + 1, s->starts, *us);
    if (!code)
        code = sample_start(s);
    if (!code && i == 0 && s->o->check) {
        progress_clear();
        code = compare_outputs(s, s->run);
        s->checked = !code;
    }
    code = code ? code : look_at_start(s, s->resumed + i + 1);
    return code ? code : evaluate(s, s->resumed + i + 1);
}

/* Starts that follow each other, the first a warm-up when there are more. From end to end lies all that a start costs
 * the program: arrays that it waits for and copies, lines that are printed. */
static int run_alone(session *s, size_t count)
{
    double *us = malloc(2 * count * sizeof *us), ended = 0;
    if (!us)
        return fail_nomem();
    double *apart = us + count;
    int code = EXIT_FINE;
    size_t warm_up = count > 1;
    for (size_t i = 0; !code && i < count; i++) {
        code = start_alone(s, i, &us[i]);
        apart[i] = now_us() - ended;
        ended = now_us();
    }
    s->counted = count - warm_up;
    if (!code) {
        s->measured_us = median(us + warm_up, s->counted);
        s->apart_us = warm_up ? median(apart + warm_up, s->counted) : 0;
    }
    free(us);
    return code;
}

/* Those in flight end, or are cancelled: the outputs of the last that is complete are there then. */
static int stop_overlapping(const session *s, uint64_t ticket, const gantry_error *err)
{
    (void)!gantry_run_wait(s->run, ticket, NULL);
    return interrupt_code() ? interrupt_code() : fail(err);
}

static int end_start(session *s, uint64_t ticket)
{
    gantry_error err;
    return gantry_run_wait(s->run, ticket, &err) ? fail(&err) : look_at_start(s, s->resumed + (size_t)ticket);
}

/* Starts as close behind each other as the schedule allows. The pipeline fills while the first ones end; from then on
 * the mean distance between ends is measured. */
static int run_overlapping(session *s, uint64_t count, const gantry_schedule_summary *sum)
{
    gantry_error err;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    uint64_t in_flight = sum->in_flight, ticket = 0, first = 0, fill = in_flight < count / 2 ? in_flight : count / 2;
    double begin = now_us(), filled = begin;
    for (uint64_t i = 0; i < count; i++) {
        if (interrupt_code() || gantry_run_start(s->run, &ticket, &err))
            return stop_overlapping(s, ticket, &err);
        first = i == 0 ? ticket : first;
        if (i + 1 >= in_flight) {
            uint64_t oldest = ticket - in_flight + 1;
            int code = end_start(s, oldest);
            if (code)
                return code;
            filled = oldest + 1 == first + fill ? now_us() : filled;
        }
    }
    for (uint64_t left = ticket + 1 - (count < in_flight ? count : in_flight - 1); left <= ticket; left++) {
        int code = end_start(s, left);
        if (code)
            return code;
    }
    if (gantry_run_get_info(s->run, &info, &err))
        return fail(&err);
    s->throughput_us = (now_us() - filled) / (double)(filled > begin ? count - fill : count);
    if (strcmp(info.backend, "sim") == 0)
        s->throughput_us = sum->period_us;
    return EXIT_FINE;
}

/* The same with evaluations between starts, before which those in flight end. */
static int run_series(session *s, size_t count, const gantry_schedule_summary *sum)
{
    double us = 0;
    int code = EXIT_FINE;
    for (size_t left = count, some; left && !code; left -= some) {
        some = until_evaluation(s, s->starts - left, left);
        code = run_overlapping(s, some, sum);
        code = code ? code : evaluate(s, s->starts - left + some);
        us += s->throughput_us * (double)some;
    }
    s->throughput_us = us / (double)count;
    return code;
}

/* True if devices carry starts out by themselves, as far as is known before the first, or may come to it in so many
 * more. */
static bool leaves_the_host(const session *s, size_t more)
{
    enum { TRIED = 200 }; /* fewer are not, as docs/design/run.md says */
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    return !gantry_schedule_phase_count(s->schedule) && !gantry_run_get_info(s->run, &info, NULL) &&
           (strncmp(info.replay, "device", strlen("device")) == 0 || (info.trial && more > TRIED));
}

/* Lines are printed, or losses told, between starts. */
static bool looks_between(const session *s)
{
    return s->o->train || s->o->watched.count || s->evaluation;
}

/* Starts that overlap, which are the devices' from the first to the last. */
static int run_overlapping_together(session *s, size_t count)
{
    gantry_error err;
    double begin = now_us();
    if (gantry_run_repeat(s->run, count, &err))
        return fail(&err);
    s->throughput_us = (now_us() - begin) / (double)count;
    return EXIT_FINE;
}

static int run_together(session *s, size_t count)
{
    gantry_error err;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    if (gantry_run_repeat(s->run, count, &err) || gantry_run_get_info(s->run, &info, &err))
        return fail(&err);
    s->together = count;
    s->together_us = info.last_us;
    return EXIT_FINE;
}

/* True if figures of single ops are looked at. The first start loads kernels and libraries, which has nothing to do
 * with them; and what back end "sim" tells does not vary. */
static bool looks_at_ops(const session *s)
{
    bool measures = !s->o->backend || strcmp(s->o->backend, "sim") != 0;
    return measures && (s->o->compare || s->o->calibrate);
}

/* Starts that follow each other. Of many, those behind the first are given to the devices as one, where that is of use.
 */
static int run_in_turn(session *s)
{
    enum { TIMED = 21 };
    size_t count = s->starts - s->resumed;
    bool many = count > 2 * TIMED && !looks_between(s) && leaves_the_host(s, count - TIMED);
    int code = run_alone(s, many ? TIMED : count);
    return code || !many ? code : run_together(s, count - TIMED);
}

/* Options that say what GPUs, or automatic splits, are to do, where there are none. */
static int tell_idle(const session *s)
{
    gantry_error err;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    if (gantry_network_rank(s->ranks.network))
        return EXIT_FINE;
    if (gantry_run_get_info(s->run, &info, &err))
        return fail(&err);
    if (s->o->replay && strcmp(s->o->replay, "auto") != 0 && !s->o->quiet && strcmp(info.backend, "host") == 0)
        fprintf(
            stderr,
            "note: --replay %s changes nothing in what runs: it says how GPUs are given their work, and this is the "
            "host back end\n",
            s->o->replay);
    return tell_idle_balance(s->schedule, s->o);
}

/* Where starts may overlap, a warm-up and those whose time is told go ahead alone. */
static int run_iterations(session *s)
{
    enum { WARM_UP = 1, LEAST = WARM_UP + 3 }; /* of a run that is looked at op by op */
    gantry_error err;
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    size_t alone = looks_at_ops(s) ? LEAST : WARM_UP + 1, count = (size_t)s->o->iterations;
    s->starts = looks_at_ops(s) && count < LEAST ? LEAST : count;
    int unfit = check_fed(s);
    if (unfit)
        return unfit;
    tell_unkept(s);
    unfit = tell_idle(s);
    if (unfit)
        return unfit;
    if (is_guided(s))
        return run_guided(s, s->starts);
    if (gantry_schedule_summarize(s->schedule, &sum, &err))
        return fail(&err);
    count = s->starts - s->resumed;
    bool overlap =
        sum.in_flight > 1 && count > alone + 1 && !s->ranks.network; /* one start at a time goes over ranks */
    int code = overlap ? run_alone(s, alone) : run_in_turn(s);
    bool together = overlap && !code && !looks_between(s) && !looks_at_ops(s) && leaves_the_host(s, count - alone);
    if (together)
        code = run_overlapping_together(s, count - alone);
    else if (overlap && !code)
        code = run_series(s, count - alone, &sum);
    return code ? code : keep_last(s);
}

static int save_outputs(const session *s, gantry_files *files)
{
    int code = EXIT_FINE;
    for (size_t i = 0; i < s->o->outputs.count && !code; i++) {
        gantry_buffer buffer;
        const char *path;
        code = find_binding(s, "output", s->o->outputs.at[i], &buffer, &path);
        if (!code)
            code = save_output(s, buffer, files, path);
    }
    return code ? code : save_shown(s, files);
}

static int write_trace(const session *s, gantry_files *files)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (gantry_run_trace(s->run, &text, &length, &err))
        return fail(&err);
    int code = add_text(files, s->o->trace, text, length);
    gantry_free(text);
    return code;
}

/* Files that the run leaves appear together. */
static int write_results(session *s)
{
    gantry_files *files = NULL;
    int code = begin_files(&files);
    if (!code)
        code = save_outputs(s, files);
    if (!code && s->o->trace)
        code = write_trace(s, files);
    if (!code && s->o->html)
        code = write_page(s, files);
    if (!code && s->o->calibrate)
        code = write_calibrated(s, files);
    return end_files(files, code);
}

/* A buffer that nothing is bound to is refused before planning takes its time, as far as that is known by then: a
 * checkpoint has states, ranks have inputs of their own, and a simulation wants none. */
static int check_bound(const session *s)
{
    gantry_error err;
    bool simulates = s->o->backend && strcmp(s->o->backend, "sim") == 0;
    if (simulates || !s->o->iterations || s->o->resume || s->o->trials || s->ranks.network)
        return EXIT_FINE;
    return gantry_graph_check_inputs(s->graph, s->o->inputs.at, s->o->inputs.count, &err) ? fail(&err) : EXIT_FINE;
}

static int prepare(session *s)
{
    options without_trace = *s->o; /* --trace is of the run here, not of the prediction */
    if (s->o->iterations)
        without_trace.trace = NULL;
    if (s->o->iterations && s->o->html && strcmp(s->o->html, "-") == 0)
        without_trace.html = NULL; /* to a file it goes now, so that it cannot fail when all has been computed, and
                                      again after the run */
    int code = s->o->trials ? load_trials(s) : load_graph(&s->graph, s->o, s->o->positional.at[0]);
    if (!code)
        code = check_words(s);
    if (!code)
        code = check_bound(s);
    if (!code && s->o->train)
        code = write_trained(s);
    if (!code)
        code = prepare_schedule(s);
    if (!code)
        code = write_files(s->schedule, &without_trace);
    if (!code)
        code = explain(s->schedule, s->graph, s->o, &s->explanation);
    return code;
}

/* Does any of them name a state, of which each rank has what its devices hold? */
static bool have_state(const session *s, const string_list *outputs)
{
    for (size_t i = 0; i < outputs->count; i++) {
        gantry_buffer buffer;
        gantry_buffer_info info;
        const char *path;
        if (!find_binding(s, "output", outputs->at[i], &buffer, &path) && !is_output(s, buffer.id, &info))
            return true;
    }
    return false;
}

/* Ranks above 0 give their part of the states that rank 0 writes, in its order. */
static int give_states(const session *s)
{
    gantry_error err;
    int code = EXIT_FINE;
    for (size_t i = 0; i < s->ranks.outputs.count && !code; i++) {
        gantry_buffer buffer;
        gantry_buffer_info info;
        const char *path;
        code = find_binding(s, "output", s->ranks.outputs.at[i], &buffer, &path);
        if (code || is_output(s, buffer.id, &info))
            continue;
        void *room = malloc(info.bytes + 1);
        if (!room)
            return fail_nomem();
        code = gantry_run_state(s->run, buffer, room, info.bytes, &err) ? fail(&err) : EXIT_FINE;
        free(room);
    }
    return code;
}

/* States of several ranks are written while all are there; anything else when all have carried out their part. */
static int meet_and_write(session *s)
{
    bool is_first = !s->ranks.network || gantry_network_rank(s->ranks.network) == 0;
    bool reads = s->ranks.network && have_state(s, is_first ? &s->o->outputs : &s->ranks.outputs);
    int code = reads ? is_first ? write_results(s) : give_states(s) : EXIT_FINE;
    if (!code)
        code = meet_ranks(&s->ranks);
    return code || reads ? code : write_results(s);
}

static int collect_outputs(const session *s)
{
    gantry_error err;
    return gantry_run_collect(s->run, &err) ? fail(&err) : EXIT_FINE;
}

/* Runs and writes; what a first signal interrupts is the run, and what it leaves is whole. */
static int run_and_write(session *s)
{
    interrupt_note(true);
    progress_stage("running");
    int code = run_iterations(s);
    code = code ? code : collect_outputs(s);
    progress_clear();
    bool interrupted = code && code == interrupt_code();
    if (interrupted && !s->ranks.network) /* else leave_ranks ends all */
        code = end_interrupted(s);
    else if (!code)
        code = meet_and_write(s);
    interrupt_note(false);
    return code;
}

static int carry_out(session *s)
{
    if (!s->o->iterations) /* of gantry train --steps 0 */
        return tell_schedule(s->schedule, s->o, s->explanation);
    int code = check_pipes(s);
    if (!code && s->o->check)
        code = check_run(s);
    if (!code)
        code = open_run(s, &s->run, s->schedule, s->o->backend, false);
    if (!code)
        code = resume_run(s);
    if (!code)
        code = open_evaluation(s);
    if (!code)
        code = run_and_write(s);
    if (!code && (s->o->json || !s->o->quiet))
        code = report_run(s);
    if (!code && !interrupt_code() && !s->ranks.network)
        learn(s);
    return code;
}

static int run(const options *o)
{
    options mine = *o;
    session s = { .o = &mine };
    settled chosen;
    int code = check_launch(o);
    if (!code && o->ranks_wanted)
        return launch(o);
    if (!code)
        code = settle_strategy(&mine, &chosen);
    if (!code)
        code = guard_begin(mine.timeout);
    if (!code)
        code = join_ranks(&s.ranks, &mine);
    if (!code)
        code = find_machine(&s.ranks, &mine, NULL);
    if (!code)
        code = prepare(&s);
    if (!code)
        code = carry_out(&s);
    known_free(&s.known);
    gantry_free(s.explanation);
    json_decref(s.rebalanced);
    free(s.fed);
    free_trials(s.trials);
    free_evaluation(s.evaluation);
    gantry_run_free(s.reference);
    gantry_run_free(s.run);
    gantry_schedule_free(s.single);
    gantry_schedule_free(s.schedule);
    gantry_graph_free(s.graph);
    return leave_ranks(&s.ranks, code);
}

const command command_run = {
    "run",
    "GRAPH",
    "runs a graph on the devices of this machine, or on virtual devices of its CPU",
    1,
    1,
    "param limits input feed output show watch every machine devices spread backend schedule policy effort seed "
    "optimal objective "
    "in-flight "
    "unroll "
    "phase max-memory "
    "spill balance "
    "replay strategy "
    "iterations checkpoint resume processes on-loss mpirun check compare profile calibrate output-schedule dot svg "
    "html trace explain "
    "allow-code no-fuse threads timeout "
    "quiet "
    "verbose json",
    "  gantry run saxpy --devices 2\n"
    "  gantry run image_blur --devices 4 --input 'frames=photos/*.jpg' --output blurred=out.npy\n"
    "  gantry run saxpy --devices 2 --output total=- --show y\n"
    "  gantry run saxpy --devices 2 --input 'x=batches/*.npy' --iterations 1000 --watch total\n"
    "  gantry run gpt --devices 2 --strategy tp=2\n"
    "  gantry run cholesky --devices 4 --check\n"
    "  gantry run jacobi --devices 4 --iterations 20 --compare --trace trace.json\n"
    "  gantry run image_blur --devices 2 --iterations 10 --calibrate here.json\n"
    "  gantry run jacobi_until --devices 4 --checkpoint 1000:kept\n"
    "  gantry run jacobi_until --devices 2 --resume kept\n"
    "  gantry run jacobi_until --devices 4 --processes 4 --on-loss replan --checkpoint 1000:kept\n"
    "  gantry run pipeline3 --devices 3 --param batches=1 --objective period --iterations 100\n",
    run
};
