/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of Graphviz. What needs its program `dot` says "skipped" where that is missing; its JSON needs nothing. */
#include "suite.h"

#include "import/import.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static bool have_graphviz(void)
{
    if (system("command -v dot >/dev/null 2>&1") == 0)
        return true;
    printf("skipped: no graphviz\n");
    return false;
}

/* a (4) and b (3) before c (2), 5 for each transfer: as in test_stg.c 10 on two processors, 9 on one. */
START_TEST(json_of_graphviz)
{
    ck_assert_double_eq(time_of("dot", sample_dot, 2, "heft"), 10);
    ck_assert_double_eq(time_of("dot", sample_dot, 1, "heft"), 9);
    gantry_graph *g = import_text("dot", sample_dot, NULL);
    ck_assert_str_eq(gantry_graph_name(g), "g");
    ck_assert_uint_eq(gantry_graph_node_count(g), 3);
    check_has(g, "\"a->c\": { \"dtype\": \"u8\", \"shape\": [5]");
    check_has_not(g, "\"machine\"");
    gantry_graph_free(g);
}
END_TEST

START_TEST(dot_itself)
{
    if (!have_graphviz())
        return;
    static const char text[] =
        "/* weights */ digraph g { node [weight=3]; a [weight=4, label=\"the first\"]; b; subgraph "
        "cluster_x { c [weight=2] } {a b} -> c:port [weight=5] }";
    ck_assert_double_eq(time_of("dot", text, 2, "heft"), 10);
    ck_assert_double_eq(time_of("dot", text, 2, "single"), 9);
}
END_TEST

/* Nothing says what nodes take: all alike, 1. The edges are plain order. */
/* A program `dot` that never ends is ended. */
START_TEST(graphviz_has_its_time)
{
    char folder[] = "/tmp/gantry_dot_XXXXXX", path[64], *json;
    size_t length;
    gantry_error err;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/dot", folder);
    FILE *file = fopen(path, "w");
    ck_assert(file && fputs("#!/bin/sh\nexec /bin/sleep 600\n", file) >= 0 && fclose(file) == 0);
    ck_assert_int_eq(chmod(path, 0700), 0);
    const char *path_before = getenv("PATH");
    ck_assert_ptr_nonnull(path_before);
    char *before = strdup(path_before);
    time_t begin = time(NULL);
    ck_assert_int_eq(setenv("PATH", folder, 1), 0);
    ck_assert_int_eq(gy_import_graphviz("digraph {}", 10, 1, &json, &length, &err), GANTRY_E_TIMEOUT);
    ck_assert(time(NULL) - begin < 60);
    setenv("PATH", before, 1);
    free(before);
    ck_assert_msg(strstr(err.text, "graphviz took longer than 1 s") == err.text, "%s", err.text);
    remove(path);
    remove(folder);
}
END_TEST

START_TEST(without_attributes)
{
    if (!have_graphviz())
        return;
    static const char text[] = "digraph { a -> b -> d; a -> c -> d }";
    ck_assert_double_eq(time_of("dot", text, 1, "heft"), 4);
    ck_assert_double_eq(time_of("dot", text, 2, "heft"), 3);
}
END_TEST

/* DAGGEN, SimGrid: operations at 1 GFLOP/s and bytes at 1 GB/s, so 2e6 take 2 ms and 3000000 bytes 3 ms; b waits for
 * nobody. On one processor 2 + 4 + 1; on two HEFT puts b (4 ms) apart: a [0, 2], c needs 3 ms of transfer from either:
 * with b it starts at 5, ends at 6. */
START_TEST(operations_and_bytes)
{
    if (!have_graphviz())
        return;
    static const char text[] = "digraph daggen { a [size=\"2e6\", alpha=\"0.1\"] b [size=\"4e6\"] c [size=1000000]\n"
                               "a -> c [size=\"3000000\"]; b -> c [size=\"3000000\"] }";
    ck_assert_double_eq(time_of("dot", text, 1, "heft"), 7000);
    ck_assert_double_eq(time_of("dot", text, 2, "heft"), 6000);
    gantry_import_options o = GANTRY_IMPORT_OPTIONS_INIT;
    o.devices = 2;
    o.bandwidth_gbs = 3;
    gantry_graph *g = import_text("dot", text, &o); /* 1 ms: c starts at 4 */
    ck_assert_double_eq(makespan(g, "heft"), 5000);
    gantry_graph_free(g);
}
END_TEST

START_TEST(chosen_attributes)
{
    if (!have_graphviz())
        return;
    static const char text[] = "digraph { a [weight=100 us=1.5]; b [weight=100 us=2.5]; a -> b [len=4 weight=9] }";
    gantry_import_options o = GANTRY_IMPORT_OPTIONS_INIT;
    o.devices = 1;
    o.node_time = "us";
    o.edge_cost = "len";
    gantry_graph *g = import_text("dot", text, &o);
    ck_assert_double_eq(makespan(g, "heft"), 4);
    check_has(g, "\"a->b\": { \"dtype\": \"u8\", \"shape\": [4]");
    gantry_graph_free(g);
    o.node_time = "ns";
    ck_assert_str_eq(refusal("dot", text, &o), ": node \"a\" has no attribute \"ns\"; give it one");
    o.node_time = NULL;
    o.edge_cost = "size";
    ck_assert_str_eq(refusal("dot", text, &o), ": no edge has the attribute \"size\"; choose one that some have");
}
END_TEST

/* Names of nodes can be anything; several edges of one pair are several buffers. */
START_TEST(odd_names)
{
    if (!have_graphviz())
        return;
    static const char text[] =
        "digraph \"two words\" { \"a[i,k] ~{x}\" -> \"\\\"q\\\\\" [weight=2]; \"a[i,k] ~{x}\" -> \"\\\"q\\\\\" "
        "[weight=3]; \"\xc3\xa9\" -> \"a b\" [weight=1]; \"a[i,k] ~{x}\" -> \"a[i]\"; \"a;b\" -> \"a[i]\" }";
    ck_assert_double_eq(time_of("dot", text, 1, "heft"), 6);
    gantry_graph *g = import_text("dot", text, NULL);
    ck_assert_str_eq(gantry_graph_name(g), "two words");
    ck_assert_uint_ne(gantry_graph_find_node(g, "a[i,k] ~{x}").id, GANTRY_NONE);
    check_has(g, "->_q_");
    check_has(g, "#1\": { \"dtype\": \"u8\", \"shape\": [3]");
    gantry_graph_free(g);
}
END_TEST

START_TEST(no_graphviz)
{
    setenv("PATH", "/nonexistent", 1);
    ck_assert_str_eq(
        refusal("dot", "digraph { a -> b }", NULL),
        ": format dot is read by graphviz, whose program \"dot\" cannot be started (No such file or directory); "
        "install graphviz, or import what `dot -Tdot_json` makes of the file elsewhere");
    ck_assert_double_eq(time_of("dot", sample_dot, 2, "heft"), 10);
}
END_TEST

START_TEST(complaints_about_dot)
{
    if (!have_graphviz())
        return;
    static const refused samples[] = {
        { "", ": there is no graph in the file; give a digraph" },
        { "digraph {\n a -> \n}", ":3: graphviz cannot read it: syntax error in line 3 near '}'" },
        { "graph { a -- b }", ": the graph has no directions, so nothing says what comes first; write digraph and ->" },
        { "digraph { a } digraph { b }", ": there is more than one graph in the file; import one at a time" },
        { "digraph { }", ": there is no task in the file; give at least one" },
        { "digraph { a [weight=1]; b }",
          ": node \"b\" has no attribute \"weight\", which other nodes have; give it one" },
        { "digraph { a [weight=fast] }",
          ": node \"a\" has weight=\"fast\"; give a number from 0 to 1e+18, or choose another attribute" },
        { "digraph { a -> b [weight=-1] }",
          ": edge \"a\" -> \"b\" has weight=\"-1\"; give a number from 0 to 1e+18, or choose another attribute" },
        { "digraph { a -> b -> a }",
          ": tasks depend on each other in a circle of 2: a -> b -> a; take one of these dependencies away" },
        { "digraph { a -> b -> c -> d -> e -> f -> g -> h -> a }",
          ": tasks depend on each other in a circle of 8: a -> b -> c -> d -> e -> f -> ...; take one of these "
          "dependencies "
          "away" },
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        ck_assert_str_eq(refusal("dot", samples[i].text, NULL), samples[i].message);
}
END_TEST

START_TEST(complaints_about_json)
{
    static const refused samples[] = {
        { "{", ":1:1: not well-formed JSON: string or '}' expected near end of file" },
        { "{\"directed\": 1}", ":1:14: /directed: \"directed\" must be true or false, not an integer" },
        { "{\"objects\": {}}", ":1:13: /objects: \"objects\" must be an array, not an object" },
        { "{\"objects\": [3]}", ":1:14: /objects/0: a node must be an object, not an integer" },
        { "{\"objects\": [{\"name\": \"a\"}]}", ":1:14: /objects/0: missing key \"_gvid\": give an integer" },
        { "{\"objects\": [{\"_gvid\": 0}]}", ":1:14: /objects/0: missing key \"name\": give a string" },
        { "{\"objects\": [{\"_gvid\": 0, \"name\": \"a\"}],\n\"edges\": [{\"tail\": 0, \"head\": 5}]}",
          ":2:11: /edges/0: \"head\" is 5, which is the \"_gvid\" of no node" },
    };
    CHECK_REFUSALS("dot", samples);
}
END_TEST

int main(void)
{
    const TTest *cases[] = {
        json_of_graphviz,  dot_itself, graphviz_has_its_time, without_attributes,   operations_and_bytes,
        chosen_attributes, odd_names,  no_graphviz,           complaints_about_dot, complaints_about_json
    };
    return RUN_CASES("import_dot", cases);
}
