/* SPDX-License-Identifier: Apache-2.0 */
/* WfCommons: both layouts, files with one, several and no writers, every complaint. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

/*
 * A (1 s) reads 1 GB that is in the host's memory and writes f, 1 GB; B (2 s) and C (3 s) read f; D (1 s) reads g, 0.5
 * GB of B, and the empty h of C. At 1 GB/s on two processors: A [1, 2] on P1. C has the higher rank and stays: [2, 5].
 * f is on P2 at 3, so B is [3, 5] there, against [5, 7] on P1. D: on P1 g is there at 5.5, on P2 everything at 5: [5,
 * 6]. On one: 1 + 1 + 2 + 3 + 1.
 */
START_TEST(both_layouts)
{
    ck_assert_double_eq(time_of("wfcommons", sample_wfcommons, 2, "heft"), 6e6);
    ck_assert_double_eq(time_of("wfcommons", sample_wfcommons, 1, "heft"), 8e6);
    ck_assert_double_eq(time_of("wfcommons", sample_wfcommons_old, 2, "heft"), 6e6);
    ck_assert_double_eq(time_of("wfcommons", sample_wfcommons_old, 1, "heft"), 8e6);
    gantry_graph *g = import_text("wfcommons", sample_wfcommons, NULL);
    ck_assert_str_eq(gantry_graph_name(g), "w");
    check_has(g, "\"in\": { \"dtype\": \"u8\", \"shape\": [1000000000], \"class\": \"input\", \"init\": 0 }");
    check_has(g, "\"reads\": [\"g\"], \"after\": [\"C\"]");
    check_has(g, "\"scratch\": 4096");
    check_has_not(g, "\"machine\"");
    gantry_graph_free(g);
    g = import_text("wfcommons", sample_wfcommons_old, NULL);
    check_has(g, "\"scratch\": 4000");
    gantry_graph_free(g);
}
END_TEST

/* A second counts as 1 ms: times and transfers alike. Twice the bandwidth: the input takes 0.5, f 0.5: A [0.5, 1.5],
 * C [1.5, 4.5], B on P2 [2, 4], D on P1 at 4.5 or P2 at 4.5: 5.5. */
START_TEST(unit_and_bandwidth)
{
    gantry_import_options o = GANTRY_IMPORT_OPTIONS_INIT;
    o.devices = 2;
    o.time_unit_us = 1000;
    gantry_graph *g = import_text("wfcommons", sample_wfcommons, &o);
    ck_assert_double_eq(makespan(g, "heft"), 6000);
    gantry_graph_free(g);
    o.bandwidth_gbs = 2;
    g = import_text("wfcommons", sample_wfcommons, &o);
    ck_assert_double_eq(makespan(g, "heft"), 5500);
    gantry_graph_free(g);
    o.time_unit_us = 1;
    ck_assert_str_eq(
        refusal("wfcommons", sample_wfcommons, &o),
        ":1:1: 2 GB/s where a second counts as 1 us is 2e+15 bytes a second; 1 to 1e+15 are allowed: choose "
        "another unit of time or bandwidth");
}
END_TEST

/* Files and tasks may have any names: the graph has a normal form that can be read again. */
static void expect_readable(const char *name)
{
    char text[2000], *json = NULL;
    size_t length;
    gantry_error err = { 0 };
    gantry_graph *again = NULL;
    snprintf(text, sizeof text,
             "{\"schemaVersion\": \"1.5\", \"workflow\": {\"specification\": {\"tasks\": ["
             "{\"name\": \"x\", \"id\": \"%s\", \"parents\": [], \"children\": [\"B\"], \"outputFiles\": [\"%s\"]}, "
             "{\"name\": \"x\", \"id\": \"B\", \"parents\": [\"%s\"], \"children\": [], \"inputFiles\": [\"%s\"]}], "
             "\"files\": [{\"id\": \"%s\", \"sizeInBytes\": 1000}]}, \"execution\": {\"tasks\": ["
             "{\"id\": \"%s\", \"runtimeInSeconds\": 1}, {\"id\": \"B\", \"runtimeInSeconds\": 2}]}}}",
             name, name, name, name, name, name);
    gantry_graph *g = import_text("wfcommons", text, NULL);
    ck_assert_int_eq(gantry_graph_json(g, &json, &length, &err), GANTRY_OK);
    gantry_status status = gantry_graph_parse(&again, json, length, "normal form", NULL, NULL, &err);
    ck_assert_msg(status == GANTRY_OK, "name %s: %s: %s", name, err.where, err.text);
    gantry_graph_free(again);
    gantry_graph_free(g);
    gantry_free(json);
}

START_TEST(any_names)
{
    for (int c = 1; c < 256; c++) {
        char name[20];
        snprintf(name, sizeof name, "a\\u%04xz", c);
        expect_readable(name);
    }
    expect_readable("f(x)*\\u2028\\u202e\\u001b[2J");
}
END_TEST

#define TASK(id, more) "{\"name\": \"n\", \"id\": \"" id "\", \"parents\": [], \"children\": []" more "}"
#define RAN(id)        "{\"id\": \"" id "\", \"runtimeInSeconds\": 1}"
#define WORKFLOW(tasks, files, ran)                                                                                    \
    "{\"schemaVersion\": \"1.5\", \"workflow\": {\"specification\": {\"tasks\": [" tasks "],\n\"files\": [" files      \
    "]},\n\"execution\": {\"tasks\": [" ran "]}}}"

/* Two tasks write "x", each in its folder: a reader means its parent's. Q, whose parents do not write it, means the
 * first. What a task alone reads and writes was there before. */
START_TEST(files_of_one_name)
{
    static const char text[] = WORKFLOW(
        TASK("A", ", \"outputFiles\": [\"x\"]") "," TASK(
            "B",
            ", \"outputFiles\": [\"x\", \"x\"]") ",{\"name\": \"n\", "
                                                 "\"id\": \"P\", \"parents\": [\"B\"], \"inputFiles\": "
                                                 "[\"x\"]}," TASK("Q", ", \"inputFiles\": [\"x\", \"x\"]") "," TASK(
                                                     "R", ", \"inputFiles\": [\"y\"], \"outputFiles\": [\"y\"]"),
        "{\"id\": \"x\", \"sizeInBytes\": 10}, {\"id\": \"y\", \"sizeInBytes\": 20}",
        RAN("A") "," RAN("B") "," RAN("P") "," RAN("Q") "," RAN("R"));
    gantry_graph *g = import_text("wfcommons", text, NULL);
    check_has(g, "\"id\": \"A\", \"work\": {}, \"writes\": [\"x\"]");
    check_has(g, "\"id\": \"B\", \"work\": {}, \"writes\": [\"x#1\"]");
    check_has(g, "\"id\": \"P\", \"work\": {}, \"reads\": [\"x#1\"], \"cost\"");
    check_has(g, "\"id\": \"Q\", \"work\": {}, \"reads\": [\"x\"], \"cost\"");
    check_has(g, "\"id\": \"R\", \"work\": {}, \"reads\": [\"y#1\"], \"writes\": [\"y\"]");
    check_has(g, "\"y#1\": { \"dtype\": \"u8\", \"shape\": [20], \"class\": \"input\"");
    ck_assert_double_eq(time_of("wfcommons", text, 1, "heft"), 5e6);
    gantry_graph_free(g);
}
END_TEST

START_TEST(without_files)
{
    static const char text[] =
        "{\"schemaVersion\": \"1.2\", \"workflow\": {\"jobs\": [{\"name\": \"a\", \"runtime\": 1, "
        "\"children\": [\"b\"]}, {\"name\": \"b\", \"runtime\": 2}, {\"name\": \"c\", \"runtime\": 2.5}]}}";
    ck_assert_double_eq(time_of("wfcommons", text, 1, "heft"), 5.5e6);
    ck_assert_double_eq(time_of("wfcommons", text, 2, "heft"), 3e6);
}
END_TEST

START_TEST(complaints)
{
    static const refused samples[] = {
        { "[1]", ":1:1: the file must be an object, not an array" },
        { "{\"workflow\": {}}", ":1:1: missing key \"schemaVersion\": give a string" },
        { "{\"schemaVersion\": 1.5}", ":1:19: /schemaVersion: \"schemaVersion\" must be a string, not a real number" },
        { "{\"schemaVersion\": \"2.0\"}", ":1:19: /schemaVersion: \"schemaVersion\" is \"2.0\"; 1.0 to 1.6 can be "
                                          "read: convert the file with the tools of "
                                          "WfCommons" },
        { "{\"schemaVersion\": \"1.5\"}", ":1:1: missing key \"workflow\": give the tasks in it" },
        { "{\"schemaVersion\": \"1.5\", \"workflow\": []}",
          ":1:38: /workflow: \"workflow\" must be an object, not an array" },
        { "{\"schemaVersion\": \"1.4\", \"workflow\": {}}", ":1:38: /workflow: missing key \"tasks\": give an array" },
        { "{\"schemaVersion\": \"1.4\", \"workflow\": {\"tasks\": []}}",
          ":1:1: there is no task in the file; give at least one" },
        { "{\"schemaVersion\": \"1.4\", \"workflow\": {\"tasks\": [{}]}}",
          ":1:49: /workflow/tasks/0: missing key \"name\": give a string" },
        { "{\"schemaVersion\": \"1.4\", \"workflow\": {\"tasks\": [{\"name\": \"a\"}]}}",
          ":1:49: /workflow/tasks/0: missing key \"runtimeInSeconds\": give a number" },
        { "{\"schemaVersion\": \"1.4\", \"workflow\": {\"tasks\": [{\"name\": \"a\", \"runtimeInSeconds\": -1}]}}",
          ":1:83: /workflow/tasks/0/runtimeInSeconds: \"runtimeInSeconds\" must be between 0 and 1000000000000, not "
          "-1" },
        { "{\"schemaVersion\": \"1.4\", \"workflow\": {\"tasks\": [{\"name\": \"a\", \"runtimeInSeconds\": 1, "
          "\"files\": "
          "[{\"name\": \"f\", \"link\": \"inout\"}]}]}}",
          ":1:118: /workflow/tasks/0/files/0/link: \"link\" is \"inout\"; it is \"input\" or \"output\"" },
        { "{\"schemaVersion\": \"1.4\", \"workflow\": {\"tasks\": [{\"name\": \"a\", \"runtimeInSeconds\": 1, "
          "\"files\": "
          "[{\"name\": \"f\", \"link\": \"input\"}]}]}}",
          ":1:96: /workflow/tasks/0/files/0: missing key \"sizeInBytes\": give a number" },
        { WORKFLOW("1", "", ""), ":1:67: /workflow/specification/tasks/0: a task must be an object, not an integer" },
        { WORKFLOW(TASK("A", "") "," TASK("A", ""), "", ""),
          ":1:123: /workflow/specification/tasks/1: there already is a task with the id \"A\"; it must be unique" },
        { WORKFLOW("{\"id\": \"first\", \"parents\": [\"frist\"]}", "", RAN("first")),
          ":1:95: /workflow/specification/tasks/0/parents/0: no task \"frist\" (did you mean \"first\"?)" },
        { WORKFLOW("{\"id\": \"a\", \"children\": [true]}", "", RAN("a")),
          ":1:92: /workflow/specification/tasks/0/children/0: a child is named by a string, not a boolean" },
        { WORKFLOW(TASK("A", ", \"inputFiles\": [\"f\"]"), "", RAN("A")),
          ":1:138: /workflow/specification/tasks/0/inputFiles/0: no file \"f\" in the list of files; add it with its "
          "size" },
        { WORKFLOW(TASK("A", ", \"inputFiles\": [7]"), "", RAN("A")),
          ":1:138: /workflow/specification/tasks/0/inputFiles/0: the id of a file must be a string, not an integer" },
        { WORKFLOW(TASK("A", ""), "{\"id\": \"f\"}", RAN("A")),
          ":2:11: /workflow/specification/files/0: missing key \"sizeInBytes\": give a number" },
        { WORKFLOW(TASK("A", ""), "{\"id\": \"f\", \"sizeInBytes\": 1}, {\"id\": \"f\", \"sizeInBytes\": 1}", RAN("A")),
          ":2:42: /workflow/specification/files/1: there already is a file \"f\"; ids are unique" },
        { WORKFLOW(TASK("A", ""), "", ""), ":1:67: /workflow/specification/tasks/0: task \"A\" is not in "
                                           "\"execution\", which says how long tasks take; add it "
                                           "there" },
        { WORKFLOW(TASK("A", ""), "", "{}"),
          ":3:25: /workflow/execution/tasks/0/id: a task is named by a string, not nothing" },
        { "{\"schemaVersion\": \"1.5\", \"workflow\": {\"specification\": {\"tasks\": []}}}",
          ":1:38: /workflow: missing key \"execution\": without it nothing says how long tasks take" },
        { WORKFLOW(TASK("A", ", \"inputFiles\": [\"g\"], \"outputFiles\": [\"f\"]") "," TASK(
                       "B", ", \"inputFiles\": [\"f\"], \"outputFiles\": [\"g\"]"),
                   "{\"id\": \"f\", \"sizeInBytes\": 1}, {\"id\": \"g\", \"sizeInBytes\": 0}", RAN("A") "," RAN("B")),
          ":1:67: /workflow/specification/tasks/0: tasks depend on each other in a circle of 2: A -> B -> A; take one "
          "of "
          "these "
          "dependencies away" },
    };
    CHECK_REFUSALS("wfcommons", samples);
}
END_TEST

int main(void)
{
    const TTest *cases[] = {
        both_layouts, unit_and_bandwidth, files_of_one_name, without_files, any_names, complaints
    };
    return RUN_CASES("import_wfcommons", cases);
}
