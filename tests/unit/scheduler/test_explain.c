/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The text of --explain, word for word. Figures are worked out by hand: those of the first two tests from the tables
 * and the schedule that Topcuoglu, Hariri and Wu print (IEEE TPDS 13(3), 2002, figures 2 and 3).
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static const char three_processors[] =
    "{\"gantry_machine\":1,\"name\":\"three\",\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},"
    "{\"id\":\"M1\",\"capacity\":\"1GiB\"},{\"id\":\"M2\",\"capacity\":\"1GiB\"},{\"id\":\"M3\",\"capacity\":\"1GiB\"}]"
    ","
    "\"devices\":[{\"id\":\"P1\",\"memory\":\"M1\"},{\"id\":\"P2\",\"memory\":\"M2\"},{\"id\":\"P3\",\"memory\":\"M3\"}"
    "],"
    "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"bandwidth_gbs\":0.001}],"
    "\"model\":{\"contention\":\"off\",\"launch_us\":0}}";

static const int cost[10][3] = { { 14, 16, 9 }, { 13, 19, 18 }, { 11, 13, 19 }, { 13, 8, 17 },  { 12, 13, 10 },
                                 { 13, 16, 9 }, { 7, 15, 11 },  { 5, 11, 14 },  { 18, 12, 20 }, { 21, 7, 16 } };
static const int edges[15][3] = { { 1, 2, 18 }, { 1, 3, 12 }, { 1, 4, 9 },   { 1, 5, 11 },  { 1, 6, 14 },
                                  { 2, 8, 19 }, { 2, 9, 16 }, { 3, 7, 23 },  { 4, 8, 27 },  { 4, 9, 23 },
                                  { 5, 9, 13 }, { 6, 8, 15 }, { 7, 10, 17 }, { 8, 10, 11 }, { 9, 10, 13 } };

static gantry_graph *g;
static gantry_machine *m;

static void make_graph(gantry_node *n)
{
    static const char *const processors[] = { "P1", "P2", "P3" };
    gantry_buffer b[15];
    char name[16];
    m = parse_machine(three_processors);
    g = gantry_graph_new("example");
    for (int i = 0; i < 15; i++) {
        snprintf(name, sizeof name, "e%d_%d", edges[i][0], edges[i][1]);
        b[i] = gantry_graph_buffer(g, name, GANTRY_U8, 1, &(int64_t){ edges[i][2] });
    }
    for (int t = 0; t < 10; t++) {
        snprintf(name, sizeof name, "T%d", t + 1);
        n[t] = gantry_graph_work(g, name);
        for (int p = 0; p < 3; p++)
            gantry_node_time(g, n[t], processors[p], cost[t][p]);
        for (int i = 0; i < 15; i++)
            if (edges[i][1] == t + 1)
                gantry_node_read(g, n[t], gantry_all(b[i]));
        for (int i = 0; i < 15; i++)
            if (edges[i][0] == t + 1)
                gantry_node_write(g, n[t], gantry_all(b[i]));
    }
}

static char *explain(const gantry_schedule *s, gantry_node node)
{
    char *text = NULL;
    size_t length;
    gantry_error err;
    if (gantry_schedule_explain(s, node, &text, &length, &err))
        ck_abort_msg("%s", err.text);
    ck_assert_uint_eq(strlen(text), length);
    return text;
}

static void end(gantry_schedule *s, char *text)
{
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

/* T2 ends at 40 on P1, T4 at 26 on P2, T5 at 38 on P3; T6 keeps P2 until 42; T10 begins at 73. A byte takes 1 us. T8,
 * whose rank is lower, has no place yet when T9 gets one. */
#define T9_BEFORE_WAITS                                                                                                \
    "\n"                                                                                                               \
    "inputs\n"                                                                                                         \
    "  T2  on P1  ends 40.000 us  16 B  e2_9\n"                                                                        \
    "  T4  on P2  ends 26.000 us  23 B  e4_9\n"                                                                        \
    "  T5  on P3  ends 38.000 us  13 B  e5_9\n"                                                                        \
    "\n"                                                                                                               \
    "transfers, each alone on its route\n"                                                                             \
    "  P1  T2  in M1      0.000 us  there at 40.000 us\n"                                                              \
    "      T4  M2 -> M1  23.000 us  there at 49.000 us\n"                                                              \
    "      T5  M3 -> M1  13.000 us  there at 51.000 us  last\n"                                                        \
    "  P2  T2  M1 -> M2  16.000 us  there at 56.000 us  last\n"                                                        \
    "      T4  in M2      0.000 us  there at 26.000 us\n"                                                              \
    "      T5  M3 -> M2  13.000 us  there at 51.000 us\n"                                                              \
    "  P3  T2  M1 -> M3  16.000 us  there at 56.000 us  last\n"                                                        \
    "      T4  M2 -> M3  23.000 us  there at 49.000 us\n"                                                              \
    "      T5  in M3      0.000 us  there at 38.000 us\n"                                                              \
    "\n"                                                                                                               \
    "compute\n"                                                                                                        \
    "  P1  18.000 us  given with the node\n"                                                                           \
    "  P2  12.000 us  given with the node\n"                                                                           \
    "  P3  20.000 us  given with the node\n"                                                                           \
    "\n"                                                                                                               \
    "candidates, when heft came to it\n"                                                                               \
    "     P1:  data ready 51.000 us  start 51.000 us  compute 18.000 us  finish 69.000 us\n"                           \
    "  => P2:  data ready 56.000 us  start 56.000 us  compute 12.000 us  finish 68.000 us  chosen\n"                   \
    "     P3:  data ready 56.000 us  start 56.000 us  compute 20.000 us  finish 76.000 us\n"                           \
    "\n"                                                                                                               \
    "why P2\n"                                                                                                         \
    "  P1 would finish 1.000 us later: it computes 6.000 us longer, though its data arrive 5.000 us earlier\n"         \
    "  P3 would finish 8.000 us later: it computes 8.000 us longer\n"
#define T9_WAITS                                                                                                       \
    "\n"                                                                                                               \
    "waits, in the simulated schedule, for\n"                                                                          \
    "  copy e2_9 M1 -> M2  on P1  ended  56.000 us  data       determined the start\n"                                 \
    "  copy e5_9 M3 -> M2  on P3  ended  51.000 us  data\n"                                                            \
    "  T6                  on P2  ended  42.000 us  same lane\n"                                                       \
    "\n"                                                                                                               \
    "waiting for it\n"                                                                                                 \
    "  T10  on P2  starts  73.000 us  same lane\n"

START_TEST(a_published_node_is_explained_word_for_word)
{
    gantry_node n[10];
    make_graph(n);
    gantry_schedule *s = schedule(g, m, "heft");
    char *text = explain(s, n[8]);
    ck_assert_str_eq(text, "node \"T9\" on P2, from 56.000 us to 68.000 us; placed by heft\n" T9_BEFORE_WAITS T9_WAITS);
    end(s, text);
}
END_TEST

/* From a file: what waits for what is known, the rest needs the graph, and then it is the same text. */
START_TEST(a_schedule_from_a_file_says_what_is_missing)
{
    gantry_node n[10];
    gantry_error err;
    gantry_schedule *again;
    make_graph(n);
    gantry_schedule *s = schedule(g, m, "heft");
    char *json = schedule_text(s);
    ck_assert_int_eq(gantry_schedule_parse(&again, json, strlen(json), NULL, &err), GANTRY_OK);
    char *text = explain(again, n[8]);
    ck_assert_str_eq(text, "node \"T9\" on P2, from 56.000 us to 68.000 us; placed by heft\n\n"
                           "the schedule was read from a file without its graph: attach the graph to see inputs, "
                           "costs and candidates\n" T9_WAITS);
    gantry_free(text);
    ck_assert_int_eq(gantry_schedule_attach(again, g, &err), GANTRY_OK);
    text = explain(again, n[8]);
    ck_assert_str_eq(text, "node \"T9\" on P2, from 56.000 us to 68.000 us; placed by heft\n" T9_BEFORE_WAITS T9_WAITS);
    gantry_free(json);
    gantry_schedule_free(again);
    end(s, text);
}
END_TEST

/* The first node of all: no inputs, nothing to wait for; what P1 and P2 take more is the whole difference. */
START_TEST(a_first_node_waits_for_nothing)
{
    gantry_node n[10];
    make_graph(n);
    gantry_schedule *s = schedule(g, m, "heft");
    char *text = explain(s, n[0]);
    ck_assert_msg(strstr(text, "\nno inputs\n\ncompute\n"), "%s", text);
    ck_assert_msg(strstr(text, "why P3\n"
                               "  P1 would finish 5.000 us later: it computes 5.000 us longer\n"
                               "  P2 would finish 7.000 us later: it computes 7.000 us longer\n"
                               "\n"
                               "waits for nothing\n"
                               "\n"
                               "waiting for it\n"),
                  "%s", text);
    ck_assert_msg(strstr(text, "  T3                  on P3  starts  9.000 us  same lane  at once\n"), "%s", text);
    end(s, text);
}
END_TEST

/* Round robin gives T2 to P2, where it ends 9 later than on P1: T1 is on P1, takes 14, and 18 bytes go to P2. */
START_TEST(a_choice_that_is_not_the_first_to_finish_says_so)
{
    gantry_node n[10];
    make_graph(n);
    gantry_schedule *s = schedule(g, m, "round-robin");
    ck_assert_str_eq(device_of(s, "T1"), "P1");
    ck_assert_str_eq(device_of(s, "T2"), "P2");
    char *text = explain(s, n[1]);
    /* P1: 14 + 13 = 27; P2: 32 + 19 = 51; P3: 32 + 18 = 50 */
    ck_assert_msg(strstr(text, "why P2\n"
                               "  P1 would finish 24.000 us earlier: its data arrive 18.000 us earlier and it computes "
                               "6.000 us less\n"
                               "  P3 would finish 1.000 us earlier: it computes 1.000 us less\n"
                               "  round-robin goes by more than this node's finish\n"),
                  "%s", text);
    end(s, text);
}
END_TEST

/* gpu0 has figures: 4e6 flops at 1000 GFLOP/s are 4 us, 6000 bytes at 2 GB/s are 3 us, and 2 us of launch. gpu1 has a
 * bandwidth alone: 1.5 us. gpu2 has nothing to go by but its launch. */
START_TEST(the_roofline_shows_its_figures)
{
    gantry_error err;
    m = parse_machine("{\"gantry_machine\":1,\"name\":\"roof\",\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}],"
                      "\"devices\":[{\"id\":\"gpu0\",\"memory\":\"host\",\"gflops\":{\"f32\":1000},"
                      "\"bandwidth_gbs\":2,\"launch_us\":2},"
                      "{\"id\":\"gpu1\",\"memory\":\"host\",\"bandwidth_gbs\":4,\"launch_us\":0},"
                      "{\"id\":\"gpu2\",\"memory\":\"host\",\"launch_us\":3}]}");
    g = gantry_graph_new("roof");
    gantry_node k = gantry_graph_work(g, "k");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &(int64_t){ 1500 });
    gantry_node_write(g, k, gantry_all(x));
    gantry_node_cost(g, k, 4e6, 6000);
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    gantry_schedule *s = schedule(g, m, "heft");
    char *text = explain(s, k);
    ck_assert_msg(strstr(text, "\ncompute\n"
                               "  gpu0  6.000 us  roofline: 2.000 us launch, then the longer of 4e+06 flops / 1000 "
                               "GFLOP/s = 4.000 us and 6000 bytes / 2 GB/s = 3.000 us\n"
                               "  gpu1  1.500 us  roofline: 0.000 us launch, then 6000 bytes / 4 GB/s = 1.500 us; "
                               "4e+06 flops count as nothing: the machine gives no GFLOP/s\n"
                               "  gpu2  3.000 us  roofline: 3.000 us launch; 4e+06 flops count as nothing: the machine "
                               "gives no GFLOP/s; 6000 bytes count as nothing: the machine gives no bandwidth\n"),
                  "%s", text);
    end(s, text);
}
END_TEST

/* A node whose rows came over two hops, and one that may not run everywhere. */
START_TEST(routes_name_their_hops)
{
    m = parse_machine(machine_shared_link);
    g = gantry_graph_new("why");
    gantry_buffer x = buffer(g, "x", 300000);
    gantry_node n = work(g, "first", 10), k = work(g, "second", 10);
    gantry_node_write(g, n, gantry_all(x));
    gantry_node_read(g, k, gantry_all(x));
    gantry_node_on(g, n, "gpu1");
    gantry_schedule *s = schedule(g, m, "heft");
    char *text = explain(s, k);
    /* through the host: twice 5 us and 1.2 MB at 12 GB/s, 100 us; then 2 us of launch and 10 */
    ck_assert_msg(strstr(text, "  gpu0  first  gpu1 -> host -> gpu0  210.000 us  there at 222.000 us\n"), "%s", text);
    ck_assert_msg(strstr(text, "  => gpu1:   data ready 12.000 us   start 12.000 us  compute 12.000 us   finish 24.000 "
                               "us  chosen\n"),
                  "%s", text);
    ck_assert_msg(strstr(text, "  gpu0 would finish 210.000 us later: its data arrive 210.000 us later (first over "
                               "gpu1 -> host -> gpu0)\n"),
                  "%s", text);
    ck_assert_msg(strstr(text, "  gpu0  12.000 us  given with the node, and 2.000 us launch\n"), "%s", text);
    end(s, text);
}
END_TEST

/* Search has no rule for one node: the placement of the schedule is followed, so the choice is the schedule's. */
START_TEST(a_searched_schedule_is_explained_too)
{
    gantry_node n[10];
    make_graph(n);
    gantry_schedule *s = schedule(g, m, NULL);
    for (int t = 0; t < 10; t++) {
        char id[16], chosen[24];
        snprintf(id, sizeof id, "T%d", t + 1);
        snprintf(chosen, sizeof chosen, "=> %s:", device_of(s, id));
        char *text = explain(s, n[t]);
        ck_assert_msg(strstr(text, chosen) && strstr(text, "  chosen\n"), "%s", text);
        gantry_free(text);
    }
    end(s, NULL);
}
END_TEST

/* Room for two of three buffers, of 1000 bytes that take 1000 us over the link. T2 goes first,
 * since more follows on it; a is made by 20 us and goes out then, and comes back once T3 has used b: 1030 us. */
START_TEST(rows_that_had_to_leave_are_explained)
{
    static const char moved[] = "rows that had to leave\n"
                                "  a left M at 1020.000 us: sent to host in 1000.000 us; room for c, needed by T3\n"
                                "    back at 2030.000 us by fetch a host -> M in 1000.000 us\n";
    gantry_error err;
    gantry_schedule *s = NULL;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    m = parse_machine("{\"gantry_machine\":1,\"name\":\"small\",\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},"
                      "{\"id\":\"M\",\"capacity\":2048}],\"devices\":[{\"id\":\"P\",\"memory\":\"M\"}],"
                      "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"bandwidth_gbs\":0.001}],"
                      "\"model\":{\"contention\":\"off\",\"launch_us\":0}}");
    g = gantry_graph_new("small");
    gantry_buffer a = gantry_graph_buffer(g, "a", GANTRY_U8, 1, &(int64_t){ 1000 }),
                  b = gantry_graph_buffer(g, "b", GANTRY_U8, 1, &(int64_t){ 1000 }),
                  c = gantry_graph_buffer(g, "c", GANTRY_U8, 1, &(int64_t){ 1000 });
    gantry_node n[] = { work(g, "T1", 10), work(g, "T2", 10), work(g, "T3", 10), work(g, "T4", 10) };
    gantry_node_write(g, n[0], gantry_all(a));
    gantry_node_write(g, n[1], gantry_all(b));
    gantry_node_read(g, n[2], gantry_all(b));
    gantry_node_write(g, n[2], gantry_all(c));
    gantry_node_read(g, n[3], gantry_all(a));
    gantry_node_read(g, n[3], gantry_all(c));
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    o.policy = "heft";
    o.spill = "copy";
    ck_assert_msg(!gantry_schedule_new(&s, g, m, &o, &err), "%s", err.text);
    char *text = explain(s, n[3]);
    ck_assert_msg(strstr(text, moved) && !strstr(strstr(text, moved) + strlen(moved), " left M"), "%s", text);
    gantry_free(text);
    text = explain(s, n[2]); /* whose room it was */
    ck_assert_msg(strstr(text, moved), "%s", text);
    gantry_free(text);
    text = explain(s, n[1]);
    ck_assert_msg(!strstr(text, "had to leave"), "%s", text);
    end(s, text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain");
    TCase *c = tcase_create("explain");
    tcase_add_test(c, a_published_node_is_explained_word_for_word);
    tcase_add_test(c, a_schedule_from_a_file_says_what_is_missing);
    tcase_add_test(c, a_first_node_waits_for_nothing);
    tcase_add_test(c, a_choice_that_is_not_the_first_to_finish_says_so);
    tcase_add_test(c, the_roofline_shows_its_figures);
    tcase_add_test(c, routes_name_their_hops);
    tcase_add_test(c, a_searched_schedule_is_explained_too);
    tcase_add_test(c, rows_that_had_to_leave_are_explained);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
