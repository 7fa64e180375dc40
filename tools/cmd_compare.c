/* SPDX-License-Identifier: Apache-2.0 */
/* gantry compare: one graph under every policy, and what each would give. */
#include "command.h"
#include <stdio.h>

static json_t *row_json(const char *policy, const gantry_schedule_summary *s, uint64_t peak)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:I, s:I}", "policy", policy, "makespan_us", s->makespan_us, "bound_us",
                     s->bound_us, "gap", s->gap, "bytes_moved", (json_int_t)s->bytes_moved, "peak_bytes",
                     (json_int_t)peak);
}

static uint64_t highest_peak(const gantry_schedule *schedule)
{
    uint64_t peak = 0;
    for (size_t i = 0; i < gantry_machine_memory_count(gantry_schedule_machine(schedule)); i++)
        if (gantry_schedule_peak_bytes(schedule, i) > peak)
            peak = gantry_schedule_peak_bytes(schedule, i);
    return peak;
}

static int compare_one(const options *o, gantry_graph *graph, const gantry_machine *machine, json_t *rows)
{
    gantry_error err;
    char time[UNIT_TEXT], moved[UNIT_TEXT], peak[UNIT_TEXT];
    gantry_schedule *schedule = NULL;
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    int code = schedule_on(&schedule, o, graph, machine);
    if (!code && gantry_schedule_summarize(schedule, &sum, &err))
        code = fail(&err);
    if (!code && o->json)
        json_array_append_new(rows, row_json(o->policy, &sum, highest_peak(schedule)));
    else if (!code)
        printf("%-14s %14s %8.1f%% %14s %14s\n", o->policy, time_text(time, sum.makespan_us), 100 * sum.gap,
               bytes_text(moved, (double)sum.bytes_moved), bytes_text(peak, (double)highest_peak(schedule)));
    gantry_schedule_free(schedule);
    return code;
}

/* A policy that does not fit the memories is told on standard error; the others go on. */
static int compare_all(const options *o, gantry_graph *graph, const gantry_machine *machine, json_t *rows)
{
    options with = *o;
    int code = EXIT_FINE;
    size_t fits = 0;
    for (size_t i = 0; gantry_policy_name(i); i++) {
        with.policy = gantry_policy_name(i);
        int one = compare_one(&with, graph, machine, rows);
        fits += one == EXIT_FINE;
        if (one == EXIT_CAPACITY)
            fprintf(stderr, "policy %s does not fit, as said above\n", with.policy);
        else if (one)
            return one;
        code = one ? one : code;
    }
    return fits ? EXIT_FINE : code;
}

static int run(const options *o)
{
    gantry_graph *graph = NULL;
    gantry_machine *machine = NULL;
    known_computer k = { 0 };
    json_t *rows = json_array();
    int code = load_graph(&graph, o, o->positional.at[0]);
    if (!code)
        code = load_machine(&machine, o, graph, &k);
    if (!code && !o->json)
        printf("%s on %s\n%-14s %14s %9s %14s %14s\n", gantry_graph_name(graph), gantry_machine_name(machine), "policy",
               "makespan", "gap", "moved", "highest peak");
    if (!code)
        code = compare_all(o, graph, machine, rows);
    if (!code && o->json)
        code = print_json(json_pack("{s:s, s:s, s:O}", "graph", gantry_graph_name(graph), "machine",
                                    gantry_machine_name(machine), "policies", rows));
    json_decref(rows);
    known_free(&k);
    gantry_machine_free(machine);
    gantry_graph_free(graph);
    return code;
}

const command command_compare = { "compare",
                                  "GRAPH",
                                  "schedules a graph with every policy and compares the predictions",
                                  1,
                                  1,
                                  "param limits input machine devices effort seed objective in-flight unroll "
                                  "max-memory spill balance allow-code no-fuse json",
                                  "  gantry compare cholesky --machine dgx1-v100\n",
                                  run };
