/* SPDX-License-Identifier: Apache-2.0 */
/* Graphviz takes both DOT pictures without a word, whatever the names. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/run_suite.h"
#include "unit/export/example.h"

/* Runs a command; its output (both streams) goes to `output`. */
static int run(const char *command, char *output, size_t size)
{
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    size_t length = fread(output, 1, size - 1, pipe);
    output[length] = '\0';
    return pclose(pipe);
}

static void takes(const char *text, const char *what)
{
    char path[400], picture[420], command[1000], output[2000];
    example_save(path, sizeof path, "picture.dot", text);
    snprintf(picture, sizeof picture, "%s.svg", path);
    snprintf(command, sizeof command, "timeout 60 dot -Tsvg '%s' -o '%s' 2>&1", path, picture);
    int status = run(command, output, sizeof output);
    ck_assert_msg(status == 0 && output[0] == '\0', "%s: dot says \"%s\" (status %d)", what, output, status);
    unlink(path);
    unlink(picture);
}

static void schedule_is_taken(int batches, const char *prefix)
{
    gantry_schedule *s = example_new(batches, prefix);
    char *text = example_export(s, GANTRY_DOT, NULL);
    takes(text, prefix);
    gantry_free(text);
    gantry_schedule_free(s);
}

START_TEST(schedules)
{
    schedule_is_taken(3, "");
}
END_TEST

/* Renderers lose a blank at the beginning or the end of a text, and words of two faces are texts of their own. */
START_TEST(words_of_the_title_stay_apart)
{
    char path[400], command[1000], output[200000];
    gantry_schedule *s = example_new(1, "");
    char *text = example_export(s, GANTRY_DOT, NULL);
    example_save(path, sizeof path, "title.dot", text);
    snprintf(command, sizeof command, "timeout 60 dot -Tsvg '%s' 2>&1", path);
    ck_assert_int_eq(run(command, output, sizeof output), 0);
    ck_assert_ptr_nonnull(strstr(output, " on "));
    ck_assert_ptr_null(strstr(output, "\"> "));
    ck_assert_ptr_null(strstr(output, ">on "));
    ck_assert_ptr_null(strstr(output, "\xC2\xA0on "));
    unlink(path);
    gantry_free(text);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(schedules_with_hostile_names)
{
    for (int i = 0; i < example_hostile_count; i++)
        schedule_is_taken(1, example_hostile[i]);
}
END_TEST

START_TEST(large_schedules_are_cut)
{
    gantry_schedule *s = example_new(154, ""); /* 8 * 154 + 5 */
    char *text = example_export(s, GANTRY_DOT, NULL);
    ck_assert_ptr_nonnull(strstr(text, "first 400 of 1,237 ops shown"));
    ck_assert_ptr_nonnull(strstr(text, "op399 ["));
    ck_assert_ptr_null(strstr(text, "op400"));
    takes(text, "large");
    gantry_free(text);
    gantry_schedule_free(s);
}
END_TEST

/* The picture has devices, lanes, routes with bytes, dashed waits, the bold path, the legend. */
START_TEST(a_schedule_says)
{
    gantry_schedule *s = example_new(1, "");
    char *text = example_export(s, GANTRY_DOT, NULL);
    static const char *const parts[] = { "subgraph cluster_device0",
                                         "subgraph cluster_device1",
                                         "subgraph cluster_lane0",
                                         "label=\"copy 1\"",
                                         "label=\"compute\"",
                                         "host → gpu0\\n5.7 MiB, ",
                                         "all_reduce gradient",
                                         "style=dashed",
                                         "style=\"dashed,bold\"",
                                         "penwidth=2.6",
                                         "critical path",
                                         "wait across devices",
                                         "makespan",
                                         "gap 100 %" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no '%s'", parts[i]);
    gantry_free(text);
    gantry_schedule_free(s);
}
END_TEST

/* ---- graphs ---- */

static gantry_status nothing(const gantry_launch *launch)
{
    (void)launch;
    return GANTRY_OK;
}

/* x -> split in parts -> y -> summed into total, and a loop that carries. */
static gantry_graph *graph_of(const char *prefix, int parts)
{
    char name[400];
    int64_t shape[] = { 4 * (int64_t)parts }, one[] = { 1 };
    gantry_graph *g = gantry_graph_new(prefix);
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, shape),
                  y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, shape);
    gantry_buffer total = gantry_graph_buffer(g, "total", GANTRY_F32, 1, one);
    gantry_buffer next = gantry_graph_buffer(g, "next", GANTRY_F32, 1, one);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_init_value(g, total, 0);
    gantry_buffer_output(g, y);
    gantry_buffer_output(g, total);
    gantry_buffer_split(g, x, parts);
    gantry_buffer_split(g, y, parts);
    for (int i = 0; i < parts; i++) {
        snprintf(name, sizeof name, "%swork[%d]", prefix, i);
        gantry_node n = gantry_graph_launch(g, name, nothing, NULL);
        gantry_node_read(g, n, gantry_part(x, i));
        gantry_node_write(g, n, gantry_part(y, i));
        snprintf(name, sizeof name, "sum[%d]", i);
        n = gantry_graph_work(g, name);
        gantry_node_time(g, n, NULL, 3);
        gantry_node_read(g, n, gantry_part(y, i));
        gantry_node_reduce(g, n, gantry_all(total), GANTRY_SUM);
    }
    gantry_graph_repeat(g, 5);
    gantry_graph_carry(g, total, next);
    gantry_node step = gantry_graph_host(g, "step", nothing, NULL);
    gantry_node_read(g, step, gantry_all(total));
    gantry_node_write(g, step, gantry_all(next));
    gantry_graph_repeat_end(g);
    return g;
}

/* Graphs refuse names with control characters, which files of schedules once had. */
static bool is_an_id(const char *name)
{
    gantry_graph *g = gantry_graph_new("ids");
    (void)gantry_graph_work(g, name);
    bool taken = gantry_graph_check(g, NULL) == GANTRY_OK;
    gantry_graph_free(g);
    return taken;
}

static char *graph_text(gantry_graph *g)
{
    gantry_error err = { 0 };
    char *text = NULL;
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_graph_export(g, GANTRY_DOT, &text, NULL, &err) == GANTRY_OK, "%s", err.text);
    gantry_graph_free(g);
    return text;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

START_TEST(graphs)
{
    char *text = graph_text(graph_of("", 4));
    static const char *const parts[] = {
        "label=\"work[0]",       "label=\"x\\nf32 [16]\\n64 B\"", "repeats 5 times", "y[3]",
        "to the next iteration", "9 nodes · 4 buffers",           "shape=note"
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no '%s'", parts[i]);
    ck_assert_uint_eq(count(text, " -> n8 ["), 4 + 1); /* the sums into step, and step into itself */
    ck_assert_uint_eq(count(text, "i0 -> n"), 4);      /* x into the four parts */
    ck_assert_uint_eq(count(text, "-> o1 ["), 4);      /* y */
    ck_assert_uint_eq(count(text, "-> o2 ["), 1);      /* total is what the last step made */
    takes(text, "graph");
    gantry_free(text);
}
END_TEST

START_TEST(graphs_with_hostile_names)
{
    for (int i = 0; i < example_hostile_count; i++) {
        if (!is_an_id(example_hostile[i]))
            continue;
        char *text = graph_text(graph_of(example_hostile[i], 2));
        takes(text, example_hostile[i]);
        gantry_free(text);
    }
}
END_TEST

START_TEST(large_graphs_are_folded)
{
    char *text = graph_text(graph_of("", 1000));
    ck_assert_ptr_nonnull(strstr(text, "work[*] × 1,000"));
    ck_assert_ptr_nonnull(strstr(text, "sum[*] × 1,000"));
    ck_assert_ptr_nonnull(strstr(text, "3 boxes"));
    ck_assert_uint_eq(count(text, "x\\nf32 [4000]"), 1);
    takes(text, "large graph");
    gantry_free(text);
}
END_TEST

/* Families of one node each do not fold: the first ones are drawn. */
START_TEST(families_are_cut_too)
{
    gantry_drawing_options how = GANTRY_DRAWING_OPTIONS_INIT;
    gantry_graph *g = gantry_graph_new("families");
    char name[32], *text = NULL;
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "n%c%c", 'a' + i / 26, 'a' + i % 26);
        (void)gantry_graph_work(g, name);
    }
    how.max_nodes = 7;
    ck_assert_int_eq(gantry_graph_check(g, NULL), GANTRY_OK);
    ck_assert_int_eq(gantry_graph_draw(g, &how, &text, NULL, NULL), GANTRY_OK);
    ck_assert_ptr_nonnull(strstr(text, "first 7 of 30 nodes in 7 boxes"));
    ck_assert_uint_eq(count(text, "label=\"n"), 7);
    takes(text, "families");
    gantry_free(text);
    gantry_graph_free(g);
}
END_TEST

/* The mistake that drawing with `how` is, and a part of what it says. */
static void refuses(const gantry_graph *g, gantry_drawing_options how, const char *part)
{
    gantry_error err = { 0 };
    char *text = NULL;
    ck_assert_int_eq(gantry_graph_draw(g, &how, &text, NULL, &err), GANTRY_E_INVALID);
    ck_assert_msg(strstr(err.text, part) != NULL, "%s", err.text);
    ck_assert_ptr_null(text);
}

START_TEST(drawings_refuse)
{
    const gantry_drawing_options plain = GANTRY_DRAWING_OPTIONS_INIT;
    gantry_drawing_options how = plain;
    gantry_graph *g = graph_of("", 2);
    refuses(g, plain, "the graph is not checked yet");
    ck_assert_int_eq(gantry_graph_check(g, NULL), GANTRY_OK);
    how.max_nodes = -1;
    refuses(g, how, "max_nodes of a drawing is -1; give how many");
    how = plain;
    how.distance = 101;
    refuses(g, how, "distance of a drawing is 101; it must be from 0 to 100");
    how = plain;
    how.clusters = 3;
    refuses(g, how, "clusters of a drawing is 3; it must be from 0 to 2");
    how.clusters = GANTRY_CLUSTERS_DEVICES;
    refuses(g, how, "needs a schedule of graph");
    how = plain;
    how.near = "wrk[0]";
    refuses(g, how, "has no node \"wrk[0]\" (did you mean \"work[0]\"?)");
    how.near = "qqqqqqqqqqqq";
    refuses(g, how, "give the id of one");
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    if (system("dot -V >/dev/null 2>&1") != 0) {
        printf("skipped: dot of Graphviz is not installed\n");
        return 77;
    }
    Suite *suite = suite_create("export to Graphviz");
    TCase *t = tcase_create("dot");
    tcase_set_timeout(t, 60);
    TTest const *const tests[] = { schedules,
                                   words_of_the_title_stay_apart,
                                   schedules_with_hostile_names,
                                   large_schedules_are_cut,
                                   a_schedule_says,
                                   graphs,
                                   graphs_with_hostile_names,
                                   large_graphs_are_folded,
                                   families_are_cut_too,
                                   drawings_refuse };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
