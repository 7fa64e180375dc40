/* SPDX-License-Identifier: Apache-2.0 */
/* gantry what-if: a schedule with nodes on other devices, or with other rates, held against the one that it was. */
#include "view/view.h"

#include <stdio.h>
#include <stdlib.h>

int load_asked(gantry_graph **graph, gantry_schedule **schedule, const options *o)
{
    known_computer k = { 0 };
    int code = load_graph(graph, o, o->positional.at[0]);
    if (!code)
        code = o->schedule ? read_schedule_of(schedule, o->schedule, *graph) : make_schedule(schedule, o, *graph, &k);
    known_free(&k);
    return code;
}

int ask_what_if(gantry_schedule **answer, const gantry_schedule *from, const gantry_graph *graph, const changes *c)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    gantry_move *moves = NULL;
    int code = change_machine(&machine, gantry_schedule_machine(from), c);
    if (!code)
        code = read_moves(&moves, from, graph, c);
    if (!code && gantry_schedule_what_if(answer, from, machine, moves, c->moves->count, &err))
        code = fail(&err);
    free(moves);
    gantry_machine_free(machine);
    return code;
}

static int check_asked(const options *o)
{
    if (o->moves.count || o->routes.count || o->resources.count)
        return EXIT_FINE;
    complain("gantry what-if: nothing is to be changed; give --move, --route or --resource\n");
    return EXIT_USAGE;
}

static int makespan_of(double *us, const gantry_schedule *s)
{
    gantry_error err;
    gantry_schedule_summary summary = GANTRY_SCHEDULE_SUMMARY_INIT;
    if (gantry_schedule_summarize(s, &summary, &err))
        return fail(&err);
    *us = summary.makespan_us;
    return EXIT_FINE;
}

/* Without the change: what planning the same placement anew makes of it. */
static int unchanged_us(double *us, const gantry_schedule *from, const gantry_graph *graph)
{
    const string_list none = { NULL, 0 };
    gantry_schedule *same = NULL;
    int code = ask_what_if(&same, from, graph, &(changes){ &none, &none, &none });
    if (!code)
        code = makespan_of(us, same);
    gantry_schedule_free(same);
    return code;
}

static int report_json(const gantry_schedule *from, const gantry_schedule *answer, double unchanged)
{
    char *text = NULL;
    size_t length = 0;
    int code = make_diff(&text, &length, from, answer, GANTRY_REPORT);
    if (code)
        return code;
    json_t *report = json_loadb(text, length, 0, NULL);
    gantry_free(text);
    if (!report || json_object_set_new(report, "unchanged_us", json_real(unchanged))) {
        json_decref(report);
        return fail_nomem();
    }
    return print_json(report);
}

static int report(const gantry_schedule *from, const gantry_schedule *answer, const gantry_graph *graph,
                  const options *o)
{
    double before = 0, unchanged = 0;
    char text[UNIT_TEXT];
    int code = makespan_of(&before, from);
    if (!code)
        code = unchanged_us(&unchanged, from, graph);
    if (code || o->json)
        return code ? code : report_json(from, answer, unchanged);
    code = write_diff(from, answer, GANTRY_TEXT, "-");
    if (!code && unchanged != before)
        printf("\nplanned anew without the change, the first one takes %s\n", time_text(text, unchanged));
    return code;
}

static int run(const options *o)
{
    gantry_graph *graph = NULL;
    gantry_schedule *schedule = NULL, *answer = NULL;
    const gantry_schedule *from = NULL;
    gantry_error err;
    int code = check_asked(o);
    if (!code)
        code = check_files(o);
    if (!code)
        code = load_asked(&graph, &schedule, o);
    if (!code)
        code = (from = drawn_phase(schedule, o)) ? EXIT_FINE : EXIT_USAGE;
    if (!code)
        code = ask_what_if(&answer, from, graph, &(changes){ &o->moves, &o->routes, &o->resources });
    if (!code && o->html)
        code = write_diff(from, answer, GANTRY_HTML, o->html);
    if (!code && o->out && gantry_schedule_save(answer, o->out, &err))
        code = fail(&err);
    if (!code && !uses_stdout(o) && (o->json || !o->quiet))
        code = report(from, answer, graph, o);
    gantry_schedule_free(answer);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    return code;
}

const command command_what_if = {
    "what-if",
    "GRAPH",
    "predicts a schedule with nodes on other devices, or links of other rates",
    1,
    1,
    "move route resource schedule phase html output-schedule param input machine devices backend policy effort seed "
    "optimal "
    "max-memory balance spill unroll limits allow-code no-fuse quiet verbose json",
    "  gantry what-if cholesky --machine dgx1-v100 --move 'syrk[4,0]=gpu0'\n"
    "  gantry what-if jacobi --machine hgx-h200-8 --route 'gpu*:gpu*=GBps=50' --html slower.html\n",
    run
};
