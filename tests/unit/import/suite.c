/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"
#include "support/run_suite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Files are called "t" in messages: tests write them into a folder of their own. */
static void write_text(const char *text)
{
    char folder[] = "/tmp/gantry-import-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    FILE *to = fopen("t", "wb");
    ck_assert_ptr_nonnull(to);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), to), strlen(text));
    ck_assert_int_eq(fclose(to), 0);
}

static void remove_text(void)
{
    char folder[64];
    remove("t");
    ck_assert_ptr_nonnull(getcwd(folder, sizeof folder));
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(folder);
}

static void say(const gantry_error *err, const char *what)
{
    char line[1024];
    gantry_error_format(err, line, sizeof line);
    ck_abort_msg("%s: %s", what, line);
}

gantry_graph *import_text(const char *format, const char *text, const gantry_import_options *options)
{
    gantry_graph *graph = NULL;
    gantry_error err;
    write_text(text);
    if (gantry_graph_import(&graph, NULL, format, "t", options, &err))
        say(&err, text);
    remove_text();
    return graph;
}

static gantry_machine *own_machine(const gantry_graph *graph)
{
    const char *json = NULL, *path = NULL;
    gantry_machine *machine = NULL;
    gantry_error err;
    gantry_graph_machine_hint(graph, &json, &path);
    ck_assert_ptr_nonnull(json);
    if (gantry_machine_parse(&machine, json, strlen(json), "own", &err))
        say(&err, json);
    return machine;
}

double makespan(gantry_graph *graph, const char *policy)
{
    gantry_machine *machine = own_machine(graph);
    gantry_schedule *schedule = NULL;
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    gantry_error err;
    options.policy = policy;
    if (gantry_schedule_new(&schedule, graph, machine, &options, &err) ||
        gantry_schedule_summarize(schedule, &sum, &err))
        say(&err, policy);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    return sum.makespan_us;
}

static gantry_graph *written_and_read(const gantry_graph *graph)
{
    char *first = NULL, *second = NULL;
    size_t length = 0;
    gantry_graph *again = NULL;
    gantry_error err;
    ck_assert_int_eq(gantry_graph_json(graph, &first, &length, NULL), GANTRY_OK);
    if (gantry_graph_parse(&again, first, length, "normal form", NULL, NULL, &err))
        say(&err, first);
    ck_assert_int_eq(gantry_graph_json(again, &second, &length, NULL), GANTRY_OK);
    ck_assert_str_eq(first, second);
    gantry_free(first);
    gantry_free(second);
    return again;
}

double time_of(const char *format, const char *text, int devices, const char *policy)
{
    gantry_import_options options = GANTRY_IMPORT_OPTIONS_INIT;
    options.devices = devices;
    gantry_graph *graph = import_text(format, text, &options), *again = written_and_read(graph);
    double time = makespan(graph, policy);
    ck_assert_double_eq(makespan(again, policy), time);
    gantry_graph_free(graph);
    gantry_graph_free(again);
    return time;
}

static bool has(const gantry_graph *graph, const char *piece, char **text)
{
    size_t length;
    ck_assert_int_eq(gantry_graph_json(graph, text, &length, NULL), GANTRY_OK);
    return strstr(*text, piece) != NULL;
}

void check_has(const gantry_graph *graph, const char *piece)
{
    char *text = NULL;
    ck_assert_msg(has(graph, piece, &text), "nothing has %s in\n%s", piece, text);
    gantry_free(text);
}

void check_has_not(const gantry_graph *graph, const char *piece)
{
    char *text = NULL;
    ck_assert_msg(!has(graph, piece, &text), "there is %s in\n%s", piece, text);
    gantry_free(text);
}

const char *refusal(const char *format, const char *text, const gantry_import_options *options)
{
    static char line[1024];
    gantry_graph *graph = NULL;
    gantry_machine *machine = NULL;
    gantry_error err;
    write_text(text);
    if (!gantry_graph_import(&graph, &machine, format, "t", options, &err))
        ck_abort_msg("this was taken: %s", text);
    remove_text();
    ck_assert_ptr_null(graph);
    ck_assert_ptr_null(machine);
    gantry_error_format(&err, line, sizeof line);
    return strcmp(err.file, "t") == 0 ? line + 1 : line;
}

void check_refusals(const char *format, const refused *samples, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(refusal(format, samples[i].text, NULL), samples[i].message);
}

int run_cases(const char *name, const TTest *const *cases, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *all = tcase_create(name);
    tcase_set_timeout(all, 200);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(all, cases[i]);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}

/* ---- samples ---- */

const char sample_stg[] =
    "3\n0 0 0\n1 4 1\n 0 0\n2 3 1\n 0 0\n3 2 2\n 1 5\n 2 5\n4 0 1\n 3 0\n# costs of communication\n";

const char sample_dnn[] =
    "{\"maxSizePerFPGA\": 1000.0, \"maxFPGAs\": 1, \"maxCPUs\": 1, \"nodes\": [\n"
    "{\"name\": \"a\", \"id\": 1, \"supportedOnFpga\": 1, \"cpuLatency\": 20, \"fpgaLatency\": 2, \"size\": 300.5},\n"
    "{\"name\": \"b\", \"id\": 2, \"supportedOnFpga\": true, \"cpuLatency\": 30, \"fpgaLatency\": 3, \"colorClass\": "
    "7},\n"
    "{\"id\": 3, \"supportedOnFpga\": 0, \"cpuLatency\": 4, \"fpgaLatency\": 0},\n"
    "{\"name\": \"d\", \"id\": 4, \"supportedOnFpga\": 1, \"cpuLatency\": 10, \"fpgaLatency\": 1, \"colorClass\": "
    "7}],\n"
    "\"edges\": [{\"sourceId\": 1, \"destId\": 2, \"cost\": 0.5}, {\"sourceId\": 1, \"destId\": 3, \"cost\": 0.5},\n"
    "{\"sourceId\": 2, \"destId\": 4, \"cost\": 1}, {\"sourceId\": 3, \"destId\": 4, \"cost\": 2.0}]}\n";

const char sample_dot[] =
    "{\"name\": \"g\", \"directed\": true, \"_subgraph_cnt\": 1, \"objects\": [\n"
    "{\"name\": \"cluster\", \"_gvid\": 0, \"nodes\": [1]},\n"
    "{\"_gvid\": 1, \"name\": \"a\", \"weight\": \"4\"}, {\"_gvid\": 2, \"name\": \"b\", \"weight\": \"3\"},\n"
    "{\"_gvid\": 3, \"name\": \"c\", \"weight\": \"2\"}],\n"
    "\"edges\": [{\"_gvid\": 0, \"tail\": 1, \"head\": 3, \"weight\": \"5\"},\n"
    "{\"_gvid\": 1, \"tail\": 2, \"head\": 3, \"weight\": \"5\"}]}\n";

const char sample_wfcommons[] =
    "{\"name\": \"w\", \"schemaVersion\": \"1.5\", \"workflow\": {\"specification\": {\"tasks\": [\n"
    "{\"name\": \"x\", \"id\": \"A\", \"parents\": [], \"children\": [\"B\", \"C\"], \"inputFiles\": [\"in\"], "
    "\"outputFiles\": [\"f\"]},\n"
    "{\"name\": \"x\", \"id\": \"B\", \"parents\": [\"A\"], \"children\": [\"D\"], \"inputFiles\": [\"f\"], "
    "\"outputFiles\": [\"g\"]},\n"
    "{\"name\": \"x\", \"id\": \"C\", \"parents\": [\"A\"], \"children\": [\"D\"], \"inputFiles\": [\"f\"], "
    "\"outputFiles\": [\"h\"]},\n"
    "{\"name\": \"y\", \"id\": \"D\", \"parents\": [\"B\", \"C\"], \"children\": [], \"inputFiles\": [\"g\", "
    "\"h\"]}],\n"
    "\"files\": [{\"id\": \"in\", \"sizeInBytes\": 1000000000}, {\"id\": \"f\", \"sizeInBytes\": 1000000000},\n"
    "{\"id\": \"g\", \"sizeInBytes\": 500000000}, {\"id\": \"h\", \"sizeInBytes\": 0}]},\n"
    "\"execution\": {\"tasks\": [{\"id\": \"A\", \"runtimeInSeconds\": 1}, {\"id\": \"B\", \"runtimeInSeconds\": "
    "2.0},\n"
    "{\"id\": \"C\", \"runtimeInSeconds\": 3}, {\"id\": \"D\", \"runtimeInSeconds\": 1, \"memoryInBytes\": 4096}]}}}\n";

const char sample_wfcommons_old[] = "{\"name\": \"w\", \"schemaVersion\": \"1.3\", \"workflow\": {\"tasks\": [\n"
                                    "{\"name\": \"A\", \"parents\": [], \"runtime\": 1, \"files\": [{\"link\": "
                                    "\"input\", \"name\": \"in\", \"size\": 1000000000},\n"
                                    "{\"link\": \"output\", \"name\": \"f\", \"size\": 1000000000}]},\n"
                                    "{\"name\": \"B\", \"parents\": [\"A\"], \"runtime\": 2.0, \"files\": [{\"link\": "
                                    "\"input\", \"name\": \"f\", \"size\": 1000000000},\n"
                                    "{\"link\": \"output\", \"name\": \"g\", \"size\": 500000000}]},\n"
                                    "{\"name\": \"C\", \"parents\": [\"A\"], \"runtime\": 3, \"files\": [{\"link\": "
                                    "\"input\", \"name\": \"f\", \"size\": 1},\n"
                                    "{\"link\": \"output\", \"name\": \"h\", \"size\": 0}]},\n"
                                    "{\"name\": \"D\", \"parents\": [\"B\", \"C\"], \"runtime\": 1, \"memory\": 4, "
                                    "\"files\": [{\"link\": \"input\", \"name\": \"g\",\n"
                                    "\"size\": 500000000}, {\"link\": \"input\", \"name\": \"h\", \"size\": 0}]}]}}\n";
