/* SPDX-License-Identifier: Apache-2.0 */
/* gantry schedule: load, schedule, report, draw. */
#include "command.h"
#include "train/strategies.h"
#include <string.h>

/* The report, with the explanation as one more key. */
static int report_json(const gantry_schedule *schedule, const char *explanation)
{
    json_t *report;
    if (!explanation)
        return print_schedule(schedule, GANTRY_REPORT);
    int code = load_report(&report, schedule);
    if (code)
        return code;
    json_object_set_new(report, "explain", json_string(explanation));
    return print_json(report);
}

int tell_schedule(const gantry_schedule *schedule, const options *o, const char *explanation)
{
    if (o->json)
        return report_json(schedule, explanation);
    if (explanation)
        return write_text("-", explanation, strlen(explanation));
    return uses_stdout(o) || o->quiet ? EXIT_FINE : print_schedule(schedule, GANTRY_TEXT);
}

static int schedule_graph(const options *o)
{
    gantry_graph *graph = NULL;
    gantry_schedule *schedule = NULL;
    char *explanation = NULL;
    known_computer k = { 0 };
    int code = load_graph(&graph, o, o->positional.at[0]);
    if (!code)
        code = check_explain(o, graph);
    if (!code)
        code = check_inits(graph, o);
    if (!code)
        code = check_files(o);
    if (!code)
        code = check_phase(o);
    if (!code)
        code = make_schedule(&schedule, o, graph, &k);
    if (!code)
        code = tell_idle_balance(schedule, o);
    if (!code)
        code = write_files(schedule, o);
    if (!code)
        code = explain(schedule, graph, o, &explanation);
    if (!code)
        code = tell_schedule(schedule, o, explanation);
    known_free(&k);
    gantry_free(explanation);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    return code;
}

static int run(const options *o)
{
    options mine = *o;
    settled chosen;
    int code = settle_strategy(&mine, &chosen);
    return code ? code : schedule_graph(&mine);
}

const command command_schedule = {
    "schedule",
    "GRAPH",
    "places, orders and packs a graph on a machine; predicts and draws it; needs no GPU",
    1,
    1,
    "param limits input machine devices spread policy effort seed optimal objective in-flight unroll phase max-memory "
    "spill "
    "balance replay strategy explain "
    "output-schedule dot "
    "svg html trace allow-code no-fuse quiet verbose json",
    "  gantry schedule cholesky --machine hgx-h200-8 --svg timeline.svg\n"
    "  gantry schedule cholesky --devices 4 -o s.json && gantry check cholesky s.json\n"
    "  gantry schedule pipeline3 --devices 3 --param batches=1 --objective period\n"
    "  gantry schedule cholesky --policy heft --explain 'trsm[2,0]'\n"
    "  gantry schedule gpt --machine h200-8 --strategy tp=4\n",
    run
};
