/* SPDX-License-Identifier: Apache-2.0 */
#include "run/at_work.h"
#include "run/phases.h"
#include "run/samples.h"

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/versioned.h"
#include <unistd.h>

static const char *replay_of(const gantry_run *run)
{
    const gy_backend *backend = run->backend;
    if (backend->replay_of)
        return backend->replay_of(run->state);
    return gy_backend_replay(backend, run->schedule);
}

static gantry_status check_schedule(const gantry_schedule *s, gantry_error *err)
{
    if (!s->graph) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "the schedule of graph \"%s\" comes from a file and has no graph to run; attach it with "
                       "gantry_schedule_attach",
                       s->graph_name ? s->graph_name : "");
    }
    if (!s->graph->sealed || !s->graph->flow) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "the graph of the schedule has not been checked; call gantry_graph_check first");
    }
    return GANTRY_OK;
}

static bool make_arrays(gantry_run *run)
{
    size_t buffers = run->graph->buffers.count, turns = run->schedule->in_flight;
    run->function = gy_calloc(run->graph->nodes.count, sizeof *run->function);
    run->scalar = gy_calloc(run->graph->scalar.count, sizeof *run->scalar);
    run->input = gy_calloc(buffers * turns, sizeof *run->input);
    run->output = gy_calloc(buffers * turns, sizeof *run->output);
    run->turn = gy_calloc(buffers * turns, sizeof *run->turn);
    run->bound = gy_calloc(buffers, sizeof *run->bound);
    run->turn_version = gy_calloc(turns, sizeof *run->turn_version);
    run->binding = gy_calloc(buffers, sizeof *run->binding);
    if (!run->function || !run->scalar || !run->input || !run->bound || !run->output || !run->turn ||
        !run->turn_version || !run->binding)
        return false;
    for (size_t i = 0; i < run->graph->scalar.count; i++)
        run->scalar[i] = run->graph->scalar.at[i].number;
    return true;
}

/* In nanoseconds; what is asked for is at least one of them. */
static int64_t timeout_of(double us)
{
    return us <= 0 ? 0 : us < 1e15 ? (int64_t)(us * 1e3) + 1 : INT64_MAX / 2;
}

static gy_job job_of(const gantry_run *run, const gantry_run_options *options)
{
    return (gy_job){ .schedule = run->schedule,
                     .graph = run->graph,
                     .function = run->function,
                     .scalar = run->scalar,
                     .turns = run->backend->overlaps && !options->network ? run->schedule->in_flight : 1,
                     .team = gy_teams_of(run->teams),
                     .cut = gy_team_cut,
                     .network = options->network,
                     .input = run->input,
                     .version = &run->version,
                     .bound = run->bound,
                     .output = run->output,
                     .record = options->record_trace != 0,
                     .apart = options->apart != 0,
                     .seed = options->seed,
                     .deadline_ns = options->deadline_us > 0 ? (int64_t)(options->deadline_us * 1e3) : 0,
                     .timeout_ns = timeout_of(options->timeout_us),
                     .canceled = &run->canceled,
                     .begin_work = gy_at_work_begin,
                     .end_work = gy_at_work_end,
                     .said = run->code.said };
}

static void free_arrays(gantry_run *run)
{
    for (size_t b = 0; run->binding && b < run->graph->buffers.count; b++) {
        gy_free(run->binding[b].own);
        gy_free(run->binding[b].packed);
    }
    for (size_t i = 0; run->turn && i < run->graph->buffers.count * run->schedule->in_flight; i++) {
        gy_free(run->turn[i].packed);
        gy_free(run->turn[i].fetched);
        gy_free(run->turn[i].unpacked);
    }
    for (size_t i = 0; i < run->retired.count; i++)
        gy_free(run->retired.at[i]);
    gy_vec_free(&run->retired);
    gy_free(run->turn);
    gy_free(run->bound);
    gy_free(run->turn_version);
    gy_free(run->function);
    gy_free(run->scalar);
    gy_free(run->input);
    gy_free(run->output);
    gy_free(run->binding);
}

/* Everything but the back end's state. */
static void free_front(gantry_run *run)
{
    gy_run_feeds_free(run);
    free_arrays(run);
    gy_teams_free(run->teams);
    gy_trial_free(&run->trial);
    gy_user_code_free(&run->code);
    gy_formulas_free(&run->formulas);
    gy_module_close(&run->module);
    gantry_schedule_free(run->schedule);
    gy_samples_free(run->samples);
    gy_keeper_free(&run->keeper);
    gy_run_ranks_free(run);
    gy_free(run);
}

#define SILENCE_NS INT64_C(10000000000)

/* All processes have the same schedule, and each rank of it has a process. */
static gantry_status agree(const gantry_run *run, const gantry_run_options *options, gantry_error *err)
{
    gantry_network *n = options->network;
    uint32_t ranks = gy_machine_ranks(run->schedule->machine);
    char *text = NULL;
    size_t length = 0;
    if (!n)
        return GANTRY_OK;
    if (!run->backend->ranks)
        return gy_fail(
            err, GANTRY_E_UNSUPPORTED, NULL,
            "back end \"%s\" does not run over several processes; use \"host\", without checking mode, or one "
            "process",
            run->backend->name);
    if (ranks > n->ranks)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "machine \"%s\" has %u ranks, and there are %u processes; start %u",
                       run->schedule->machine->name, ranks, n->ranks, ranks);
    GY_TRY(gantry_schedule_json(run->schedule, &text, &length, err));
    uint64_t hash = gy_hash_bytes(text, length, 0);
    gantry_free(text);
    GY_TRY(gy_network_agree(n, hash, err));
    return gy_network_watch(n, options->timeout_us > 0 ? timeout_of(options->timeout_us) : SILENCE_NS, err);
}

static gantry_status take_keeper(gantry_run *run, const gantry_run_options *options, gantry_error *err)
{
    if (!run->backend->executes)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "back end \"%s\" gives times only, so there is nothing to keep; leave `checkpoints` out",
                       run->backend->name);
    run->keeper.every = options->checkpoint_every;
    run->keeper.folder = gy_strdup(options->checkpoints);
    return run->keeper.folder ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status open_backend(gantry_run *run, const gantry_run_options *options, gantry_error *err)
{
    gantry_status status =
        gy_backend_find(&run->backend, &run->module, options->backend, options->check != 0, run->schedule, err);
    const gy_backend *inner = run->backend;
    run->code.said = (gy_said){ options->compiler_output, options->user };
    status = status ? status : agree(run, options, err);
    if (status == GANTRY_OK && run->schedule->phases.count) {
        run->phased = gy_phases_backend(inner);
        run->backend = &run->phased;
    }
    if (status == GANTRY_OK && options->checkpoints)
        status = take_keeper(run, options, err);
    if (status == GANTRY_OK && run->backend->executes) {
        status = gy_run_find_functions(run, options->allow_code != 0, err);
        status = status ? status : gy_run_mark_used(run, err);
    }
    if (status == GANTRY_OK && run->backend->executes && !options->check)
        status = gy_teams_make(&run->teams, run->schedule, options->network, options->threads, err);
    if (status)
        return status;
    run->job = job_of(run, options);
    run->job.look = options->progress ? gy_run_look : NULL;
    run->job.look_of = run;
    run->job.keeper = options->checkpoints ? run : NULL;
    run->progress = options->progress;
    run->user = options->user;
    run->job.inner = inner;
    run->changed = run->unplaced = true;
    run->version = 1;
    GY_TRY(gy_run_ranks_make(run, options, err));
    GY_TRY(run->backend->open(&run->state, &run->job, err));
    gy_trial_make(&run->trial, run->backend, run->state, &run->job);
    return GANTRY_OK;
}

static gantry_status check_checkpoints(const gantry_run_options *o, gantry_error *err)
{
    if (o->checkpoints && !o->checkpoint_every)
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "checkpoint_every of the run options is 0; give after how many starts, or iterations of loops in "
            "phases, a checkpoint is to be written");
    if (o->checkpoints && o->check)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "checking mode writes no checkpoints; run without `check`, or without `checkpoints`");
    return GANTRY_OK;
}

static gantry_status take_options(gantry_run_options *options, const gantry_run_options *given, gantry_error *err)
{
    GY_TRY(gy_struct_read(options, sizeof *options, given, "gantry_run_options", err));
    if (!(options->timeout_us >= 0))
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "timeout_us of the run options is %g; give the time that nothing may move, or 0 for the usual",
                       options->timeout_us);
    if (options->threads < 0 || options->threads > GY_MOST_THREADS)
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "threads of the run options is %d; give how many threads each CPU device computes with, 1 to %d, "
            "or 0 for as many as the machine and its cores say",
            (int)options->threads, GY_MOST_THREADS);
    if (options->deadline_us >= 0)
        return check_checkpoints(options, err);
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   "deadline_us of the run options is %g; give the time a start may take, or 0 for none",
                   options->deadline_us);
}

gantry_status gantry_run_new(gantry_run **run, gantry_schedule *schedule, const gantry_run_options *given,
                             gantry_error *err)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    GY_NEED(run, err);
    GY_NEED(schedule, err);
    GY_TRY(check_schedule(schedule, err));
    GY_TRY(take_options(&options, given, err));
    gantry_run *made = gy_calloc(1, sizeof *made);
    if (!made)
        return gy_fail_nomem(err);
    made->process = getpid();
    made->schedule = gy_schedule_ref(schedule);
    made->graph = schedule->graph;
    gantry_status status = make_arrays(made) ? open_backend(made, &options, err) : gy_fail_nomem(err);
    if (status) {
        free_front(made);
        return status;
    }
    *run = made;
    return GANTRY_OK;
}

void gantry_run_free(gantry_run *run)
{
    /* A thread or process that may not use the run may not free it either: another one may be using it. */
    if (gy_run_enter(run, __func__, NULL))
        return;
    run->progress = NULL; /* who frees a run wants to hear of it no more */
    gy_run_drain(run, NULL);
    gy_run_feeds_stop(run);
    bool idle = run->backend->idle(run->state);
    if (idle)
        gy_run_feeds_free(run); /* places may be memory of the back end */
    if (!run->backend->close(run->state))
        return; /* a kernel hangs in our memory: losing that memory is all that can be done */
    run->feeds.count = idle || !run->backend->unpin ? run->feeds.count : 0; /* their memory went with the back end's */
    free_front(run);
}

static gantry_status get_info(const gantry_run *run, gantry_run_info *info, gantry_error *err)
{
    GY_TRY(gy_struct_check(info, sizeof *info, "gantry_run_info", err));
    gantry_run_info full = { .backend = run->backend->name,
                             .replay = replay_of(run),
                             .predicted_us = gy_ticks_to_us(run->schedule->makespan),
                             .last_us = run->last_us,
                             .starts = run->started,
                             .iterations = run->schedule->phases.count ? gy_phases_iterations(run->state) : 0,
                             .formulas_compiled = run->formulas.compiled,
                             .formulas_why = run->formulas.why,
                             .completed = run->completed,
                             .fed_wait_us = (double)run->fed_wait_ns / 1e3 };
    full.landing_bytes = gy_run_feeds_landings(run, &full.landing_why);
    if (run->schedule->phases.count)
        gy_phases_trial(run->state, &full);
    else
        gy_trial_tell(&run->trial, &full);
    gy_struct_write(info, &full, sizeof full);
    return GANTRY_OK;
}

gantry_status gantry_run_get_info(const gantry_run *run, gantry_run_info *info, gantry_error *err)
{
    GY_USE_RUN(run, get_info(run, info, err), err);
}
