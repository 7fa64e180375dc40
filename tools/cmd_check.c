/* SPDX-License-Identifier: Apache-2.0 */
/* gantry check: an independent proof that a schedule is right for its graph. */
#include "command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_machines(const gantry_machine *given, const gantry_machine *own, const char *path)
{
    gantry_error err;
    char *a = NULL, *b = NULL;
    size_t a_length, b_length;
    int code = EXIT_FINE;
    if (gantry_machine_json(given, &a, &a_length, &err) || gantry_machine_json(own, &b, &b_length, &err)) {
        code = fail(&err);
    } else if (a_length != b_length || memcmp(a, b, a_length) != 0) {
        complain("%s was made for another machine: \"%s\", not \"%s\" as given; leave --machine and --devices out, or "
                 "schedule again\n",
                 path, gantry_machine_name(own), gantry_machine_name(given));
        code = EXIT_BAD_INPUT;
    }
    gantry_free(a);
    gantry_free(b);
    return code;
}

/* A schedule holds its machine; one that is given with --machine or --devices must be the same. */
static int check_machine(const gantry_schedule *schedule, const gantry_graph *graph, const options *o)
{
    gantry_machine *given = NULL;
    known_computer k = { 0 };
    if (!o->machine && !o->devices)
        return EXIT_FINE;
    int code = load_machine(&given, o, graph, &k);
    if (!code)
        code = compare_machines(given, gantry_schedule_machine(schedule), o->positional.at[1]);
    known_free(&k);
    gantry_machine_free(given);
    return code;
}

static int report_wrong(const options *o, gantry_error *err)
{
    name_file(err, o->positional.at[1]);
    int code = fail(err);
    if (o->json && err->status == GANTRY_E_SCHEDULE) {
        int printed =
            print_json(json_pack("{s:b, s:s, s:o}", "valid", 0, "problem", err->text, "error", take_complaint(code)));
        code = printed ? printed : code;
    }
    return code;
}

static int add_rank(json_t *list, const gantry_schedule *schedule, size_t rank)
{
    gantry_error err;
    gantry_rank_info r = GANTRY_RANK_INFO_INIT;
    if (gantry_schedule_rank(schedule, rank, &r, &err))
        return fail(&err);
    json_array_append_new(list, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "ops", (json_int_t)r.ops, "sends",
                                          (json_int_t)r.sends, "receives", (json_int_t)r.receives, "sent_bytes",
                                          (json_int_t)r.sent_bytes, "received_bytes", (json_int_t)r.received_bytes,
                                          "memory_bytes", (json_int_t)r.memory_bytes));
    if (list)
        return EXIT_FINE;
    char sent[UNIT_TEXT], received[UNIT_TEXT], memory[UNIT_TEXT];
    printf("  rank %zu: %llu ops, sends %llu messages of %s, receives %llu of %s, memory %s\n", rank,
           (unsigned long long)r.ops, (unsigned long long)r.sends, bytes_text(sent, (double)r.sent_bytes),
           (unsigned long long)r.receives, bytes_text(received, (double)r.received_bytes),
           bytes_text(memory, (double)r.memory_bytes));
    return EXIT_FINE;
}

/* The part of each rank; with --json as a list, in *list. */
static int report_ranks(const options *o, const gantry_schedule *schedule, json_t **list)
{
    size_t ranks = gantry_machine_rank_count(gantry_schedule_machine(schedule));
    int code = EXIT_FINE;
    if (o->json)
        *list = json_array();
    else
        printf("parts of %zu rank%s fit together: messages match, no order of events is a deadlock\n", ranks,
               ranks == 1 ? "" : "s");
    for (size_t rank = 0; rank < ranks && !code; rank++)
        code = add_rank(list ? *list : NULL, schedule, rank);
    return code;
}

static int report_right(const options *o, const gantry_schedule *schedule)
{
    gantry_error err;
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    if (gantry_schedule_summarize(schedule, &sum, &err))
        return fail(&err);
    if (o->json) {
        json_t *list = NULL;
        int code = o->ranks ? report_ranks(o, schedule, &list) : EXIT_FINE;
        json_t *all = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:o*}", "valid", 1, "nodes", (json_int_t)sum.nodes,
                                "ops", (json_int_t)sum.ops, "copies", (json_int_t)sum.copies, "collectives",
                                (json_int_t)sum.collectives, "events", (json_int_t)sum.events, "ranks", list);
        if (!code)
            return print_json(all);
        json_decref(all);
        return code;
    }
    printf("%s: right for %s: %llu nodes as %llu ops, %llu copies, %llu collectives, %llu events\n",
           o->positional.at[1], o->positional.at[0], (unsigned long long)sum.nodes, (unsigned long long)sum.ops,
           (unsigned long long)sum.copies, (unsigned long long)sum.collectives, (unsigned long long)sum.events);
    return o->ranks ? report_ranks(o, schedule, NULL) : EXIT_FINE;
}

static int run(const options *o)
{
    gantry_error err;
    gantry_graph *graph = NULL;
    gantry_schedule *schedule = NULL;
    options with = *o;
    with.schedule = o->positional.at[1];
    int code = load_graph(&graph, &with, o->positional.at[0]);
    if (!code)
        code = check_inits(graph, o);
    if (!code)
        code = read_schedule(&schedule, o->positional.at[1]);
    if (!code)
        code = check_machine(schedule, graph, o);
    if (!code) {
        progress_stage("checking the schedule");
        bool wrong = gantry_schedule_check(schedule, graph, &err) ||
                     (o->ranks &&
                      (gantry_schedule_attach(schedule, graph, &err) || gantry_schedule_check_ranks(schedule, &err)));
        progress_clear();
        code = wrong ? report_wrong(o, &err) : report_right(o, schedule);
    }
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    return code;
}

const command command_check = {
    "check",
    "GRAPH SCHEDULE",
    "proves a schedule right for its graph, by code that shares nothing with "
    "the scheduler",
    2,
    2,
    "param limits input machine devices spread allow-code no-fuse ranks json",
    "  gantry schedule jacobi --devices 4 -o s.json && gantry check jacobi s.json\n"
    "  gantry schedule jacobi --devices 4 -o - | gantry check jacobi -\n"
    "  gantry check jacobi s.json --ranks     also that the parts of all ranks fit together\n",
    run
};
