/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run: what it did, for people and as JSON. */
#include "runs/run.h"
#include <inttypes.h>
#include <string.h>

typedef struct report {
    const session *s;
    gantry_run_info info;
    json_t *comparison; /* NULL without --compare */
    json_t *times;      /* NULL without --profile */
} report;

/* The device of every node, or NULL where it has none. */
static const char *device_of(const session *s, uint32_t node)
{
    gantry_device_info d = GANTRY_DEVICE_INFO_INIT;
    int device = gantry_schedule_device_of(s->schedule, (gantry_node){ .id = node });
    if (device < 0 || gantry_machine_device(gantry_schedule_machine(s->schedule), (size_t)device, &d, NULL))
        return NULL;
    return d.id;
}

/* Of loops that are not unrolled, as many as predicted_us is for; whether one may end before. */
static int64_t most_iterations(const gantry_schedule *s, bool *ends)
{
    gantry_phase_info phase = GANTRY_PHASE_INFO_INIT;
    int64_t most = 0;
    *ends = false;
    for (size_t i = 0; gantry_schedule_phase(s, i, &phase); i++) {
        most += phase.first_iteration < 0 ? 0 : phase.iterations * phase.starts;
        *ends = *ends || phase.every > 0;
    }
    return most;
}

/* ---- JSON ---- */

static json_t *device_ids(const gantry_machine *machine)
{
    json_t *ids = json_array();
    gantry_device_info d = GANTRY_DEVICE_INFO_INIT;
    for (size_t i = 0; i < gantry_machine_device_count(machine); i++)
        if (!gantry_machine_device(machine, i, &d, NULL))
            json_array_append_new(ids, json_string(d.id));
    return ids;
}

static json_t *placement_json(const session *s)
{
    json_t *placement = json_object();
    for (uint32_t i = 0; i < gantry_graph_node_count(s->graph); i++) {
        const char *device = device_of(s, i);
        if (device)
            json_object_set_new(placement, gantry_graph_node_id(s->graph, (gantry_node){ .id = i }),
                                json_string(device));
    }
    return placement;
}

static json_t *trial_json(const gantry_run_info *info)
{
    json_t *json = json_pack("{s:s}", "text", info->trial);
    if (info->trial_host_us > 0)
        json_object_set_new(json, "host_us", json_real(info->trial_host_us));
    if (info->trial_device_us > 0)
        json_object_set_new(json, "device_us", json_real(info->trial_device_us));
    return json;
}

static int report_json(const report *r)
{
    const session *s = r->s;
    const gantry_machine *machine = gantry_schedule_machine(s->schedule);
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:f, s:f, s:s, s:o, s:o, s:b}", "graph", gantry_graph_name(s->graph),
        "machine", gantry_machine_name(machine), "policy", gantry_schedule_policy(s->schedule), "backend",
        r->info.backend, "devices", device_ids(machine), "iterations", (json_int_t)s->starts, "counted",
        (json_int_t)s->counted, "predicted_us", r->info.predicted_us, "measured_us", s->measured_us, "replay",
        r->info.replay, "outputs", outputs_json(s), "placement", placement_json(s), "checked", (int)s->checked);
    if (s->apart_us > 0 && s->throughput_us <= 0)
        json_object_set_new(json, "apart_us", json_real(s->apart_us));
    if (s->throughput_us > 0)
        json_object_set_new(json, "throughput_us", json_real(s->throughput_us));
    if (s->together > 0)
        json_object_set_new(json, "series",
                            json_pack("{s:I, s:f}", "starts", (json_int_t)s->together, "us", s->together_us));
    add_fed_json(json, s, &r->info);
    add_trials_json(json, s);
    add_evaluations_json(json, s);
    if (r->info.trial)
        json_object_set_new(json, "trial", trial_json(&r->info));
    if (s->rebalanced)
        json_object_set(json, "rebalanced", s->rebalanced);
    if (s->o->calibrate)
        json_object_set_new(json, "calibrated", json_string(s->o->calibrate));
    if (gantry_schedule_phase_count(s->schedule)) {
        bool ends;
        json_object_set_new(json, "loop_iterations", json_integer((json_int_t)r->info.iterations));
        json_object_set_new(json, "predicted_loop_iterations", json_integer(most_iterations(s->schedule, &ends)));
    }
    if (r->info.formulas_compiled)
        json_object_set_new(json, "formulas_compiled", json_integer((json_int_t)r->info.formulas_compiled));
    if (r->info.formulas_why)
        json_object_set_new(json, "formulas_why", json_string(r->info.formulas_why));
    if (r->comparison)
        json_object_set(json, "compare", r->comparison);
    if (r->times)
        json_object_set(json, "profile", r->times);
    if (s->explanation)
        json_object_set_new(json, "explain", json_string(s->explanation));
    return s->o->watched.count ? print_json_line(json) : print_json(json);
}

/* ---- text ---- */

enum { NODES_SHOWN = 12, IDLE_SHOWN = 8 }; /* of a device; of devices that ran no node */

static size_t nodes_on(const session *s, size_t device)
{
    size_t count = 0;
    for (uint32_t i = 0; i < gantry_graph_node_count(s->graph); i++)
        count += gantry_schedule_device_of(s->schedule, (gantry_node){ .id = i }) == (int)device;
    return count;
}

/* "dev0 ran 26 nodes: blur[0] blur[4] ..." */
static void print_device(FILE *to, const session *s, size_t device, size_t count, const char *id)
{
    const size_t nodes = gantry_graph_node_count(s->graph);
    size_t shown = 0;
    fprintf(to, "  %s ran %zu node%s%s", id, count, count == 1 ? "" : "s", count ? ":" : "");
    for (uint32_t i = 0; i < nodes && shown < NODES_SHOWN; i++)
        if (gantry_schedule_device_of(s->schedule, (gantry_node){ .id = i }) == (int)device) {
            fprintf(to, " %s", gantry_graph_node_id(s->graph, (gantry_node){ .id = i }));
            shown++;
        }
    fprintf(to, "%s\n", count > shown ? " ..." : "");
}

/* Of many devices that ran nothing, only how many there are. */
static void print_devices(FILE *to, const session *s)
{
    const gantry_machine *machine = gantry_schedule_machine(s->schedule);
    gantry_device_info d = GANTRY_DEVICE_INFO_INIT;
    size_t idle = 0;
    for (size_t i = 0; i < gantry_machine_device_count(machine); i++) {
        size_t count = nodes_on(s, i);
        idle += count == 0;
        if ((count || idle <= IDLE_SHOWN) && !gantry_machine_device(machine, i, &d, NULL))
            print_device(to, s, i, count, d.id);
    }
    if (idle > IDLE_SHOWN)
        fprintf(to, "  %zu more devices ran 0 nodes\n", idle - IDLE_SHOWN);
}

/* Where the times of starts are from: "sim" runs nothing. */
static const char *measured_or_simulated(const report *r)
{
    return strcmp(r->info.backend, "sim") == 0 ? "simulated" : "measured";
}

static void print_throughput(FILE *to, const report *r)
{
    char predicted[UNIT_TEXT], measured[UNIT_TEXT];
    const session *s = r->s;
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    if (!gantry_schedule_summarize(s->schedule, &sum, NULL))
        fprintf(to, "  %llu starts in flight: predicted %s from one to the next, %s %s\n",
                (unsigned long long)sum.in_flight, time_text(predicted, sum.period_us), measured_or_simulated(r),
                time_text(measured, s->throughput_us));
}

/* Loops that are not unrolled: how far they went, of how far they could. */
static void print_loops(FILE *to, const report *r)
{
    const gantry_schedule *s = r->s->schedule;
    bool ends;
    int64_t most = most_iterations(s, &ends);
    if (gantry_schedule_phase_count(s))
        fprintf(to, "  %" PRIu64 " of %" PRId64 " iterations of loops that are not unrolled%s%s\n", r->info.iterations,
                most, ends && (int64_t)r->info.iterations < most ? ": `until` ended one before" : "",
                ends ? "; predicted for all of them" : "");
}

static void print_times(FILE *to, const report *r)
{
    char predicted[UNIT_TEXT], measured[UNIT_TEXT];
    const session *s = r->s;
    fprintf(to, "  predicted %s, %s %s%s", time_text(predicted, r->info.predicted_us), measured_or_simulated(r),
            time_text(measured, s->measured_us), s->throughput_us > 0 ? " behind the starts before it" : "");
    if (s->counted > 1)
        fprintf(to, ", the median of %zu starts after a warm-up", s->counted);
    fprintf(to, "\n");
}

/* To standard error where a file goes to standard output. */
static int report_text(const report *r)
{
    const session *s = r->s;
    const gantry_machine *machine = gantry_schedule_machine(s->schedule);
    FILE *to = uses_stdout(s->o) ? stderr : stdout;
    fprintf(to, "%s on %s, %s back end, policy %s, %zu start%s\n", gantry_graph_name(s->graph),
            gantry_machine_name(machine), r->info.backend, gantry_schedule_policy(s->schedule), s->starts,
            s->starts == 1 ? "" : "s");
    if (s->checked)
        fprintf(to, "  checked: the schedule is right, every kernel kept to its accesses, outputs equal those of one "
                    "device\n");
    print_devices(to, s);
    print_times(to, r);
    print_loops(to, r);
    print_fed(to, s, &r->info);
    print_trials(to, s);
    if (s->throughput_us > 0)
        print_throughput(to, r);
    if (s->together > 0)
        fprintf(to, "  %zu more starts, one behind the other%s: %.1f us %s\n", s->together,
                strncmp(r->info.replay, "device", strlen("device")) ? "" : " without the host between them",
                s->together_us, strncmp(r->info.replay, "device", strlen("device")) ? "the last" : "each");
    if (r->info.trial_host_us > 0)
        fprintf(to, "  replay: %s; trial: %s\n", r->info.replay, r->info.trial);
    if (r->info.formulas_compiled)
        fprintf(to, "  formulas compiled: %lld\n", (long long)r->info.formulas_compiled);
    if (r->info.formulas_why)
        fprintf(to, "  formulas are carried out step by step, since compiling failed: %s\n", r->info.formulas_why);
    print_rebalanced(to, s);
    print_calibrated(to, s);
    if (r->comparison) {
        fprintf(to, "  replay: %s\n", r->info.replay);
        print_comparison(to, r->comparison);
    }
    if (r->times)
        print_profile(to, r->times);
    print_outputs(to, s);
    if (s->explanation)
        fprintf(to, "\n%s", s->explanation);
    return print_shown(to, s);
}

int report_run(const session *s)
{
    gantry_error err;
    report r = { s, GANTRY_RUN_INFO_INIT, NULL, NULL };
    if (gantry_run_get_info(s->run, &r.info, &err))
        return fail(&err);
    int code = s->o->compare ? compare_times(s, &r.comparison) : EXIT_FINE;
    if (!code && s->o->profile)
        code = profile_json(s, &r.times);
    if (!code)
        code = s->o->json ? report_json(&r) : report_text(&r);
    json_decref(r.comparison);
    json_decref(r.times);
    return code;
}
