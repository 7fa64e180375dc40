/* SPDX-License-Identifier: Apache-2.0 */
/* Options, what is refused, and explanations. */
#include "suite.h"

#include <stdlib.h>
#include <string.h>

START_TEST(options_are_checked)
{
    static const struct {
        gantry_schedule_options o;
        gantry_status status;
        const char *text;
    } cases[] = {
        { { .policy = "heff", .effort = -1 }, GANTRY_E_INVALID, "no policy \"heff\" (did you mean \"heft\"?)" },
        { { .policy = "x", .effort = -1 },
          GANTRY_E_INVALID,
          "no policy \"x\"; there are heft, heft-min, heft-max, heft-median, heft-price, heft-price-min, heft-links, "
          "mem-heft, peft, cpop, "
          "lookahead, dls, etf, min-min, max-min, sufferage, m-etf, m-sct, owner, round-robin, single, single-rank, "
          "split, partition and families" },
        { { .effort = 10 }, GANTRY_E_INVALID, "effort is 10; it must be 0 to 9" },
        { { .effort = -1, .objective = "makespam" },
          GANTRY_E_INVALID,
          "no objective \"makespam\" (did you mean \"makespan\"?)" },
        { { .effort = -1, .in_flight = 2 },
          GANTRY_E_INVALID,
          "in_flight is 2, but the objective is \"makespan\"; only with \"period\" do starts overlap" },
        { { .effort = -1, .objective = "period", .optimal = 1 },
          GANTRY_E_INVALID,
          "optimal is asked for, but the objective is \"period\"; only of \"makespan\" an optimum is proved: leave one "
          "of "
          "the two out" },
        { { .effort = -1, .objective = "max_load", .optimal = 1 },
          GANTRY_E_INVALID,
          "optimal is asked for, but the objective is \"max_load\"; only of \"makespan\" an optimum is proved: leave "
          "one of "
          "the two out" },
        { { .effort = -1, .objective = "period", .in_flight = 65 },
          GANTRY_E_INVALID,
          "in_flight is 65; it must be 1 to 64, or 0: chosen" },
        { { .effort = -1, .replay = "stram" },
          GANTRY_E_INVALID,
          "no replay mode \"stram\" (did you mean \"stream\"?)" },
        { { .effort = -1, .replay = "engine" },
          GANTRY_E_INVALID,
          "no replay mode \"engine\"; there are stream, graph, auto and device" },
    };
    gantry_machine *m = virtual_machine(1);
    gantry_graph *g = gantry_graph_new("options");
    gantry_schedule_options o = cases[_i].o;
    work(g, "n", 1);
    o.struct_size = sizeof o;
    ck_assert_str_eq(refusal(g, m, &o, cases[_i].status), cases[_i].text);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(options_are_recorded)
{
    gantry_machine *m = virtual_machine(2);
    gantry_graph *g = gantry_graph_new("options");
    gantry_buffer x = buffer(g, "x", 4);
    gantry_node a = work(g, "a", 1), b = work(g, "b", 1);
    gantry_node_write(g, a, gantry_all(x));
    gantry_node_read(g, b, gantry_all(x));
    gantry_node_on(g, a, "0");
    gantry_node_on(g, b, "1");
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.policy = "single";
    o.effort = 4;
    o.seed = 99;
    o.replay = "graph";
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_OK);
    ck_assert_str_eq(s->policy, "single");
    ck_assert_int_eq(s->effort, 4);
    ck_assert_uint_eq(s->seed, 99);
    ck_assert_int_eq(s->replay, GY_REPLAY_GRAPH);
    ck_assert_uint_eq(s->sync.count, 2); /* make, copy, read: edges instead of events */
    ck_assert_uint_eq(s->sync.at[0].carrier, GY_CARRIER_EDGE);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* A program that was built against an older header passes a shorter struct. */
START_TEST(shorter_options_get_defaults)
{
    gantry_machine *m = virtual_machine(1);
    gantry_graph *g = gantry_graph_new("options");
    gantry_schedule_options o = { .struct_size = offsetof(gantry_schedule_options, effort),
                                  .policy = "single",
                                  .effort = 77 };
    gantry_schedule *s = NULL;
    gantry_error err;
    work(g, "n", 1);
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_OK);
    ck_assert_str_eq(s->policy, "single");
    ck_assert_int_eq(s->effort, 0);
    gantry_schedule_free(s);
    o.struct_size = 0;
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_E_INVALID);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(policies_are_listed)
{
    ck_assert_str_eq(gantry_policy_name(0), "heft");
    size_t count = 0;
    while (gantry_policy_name(count)) {
        ck_assert_ptr_nonnull(gantry_policy_summary(count));
        count++;
    }
    ck_assert_uint_eq(count, 25);
    ck_assert_ptr_null(gantry_policy_summary(count));
}
END_TEST

START_TEST(until_in_an_empty_loop_is_refused)
{
    gantry_machine *m = virtual_machine(1);
    gantry_graph *g = gantry_graph_new("until");
    gantry_buffer flag = buffer(g, "flag", 1);
    gantry_graph_repeat(g, 5);
    gantry_graph_until(g, flag, 1);
    gantry_graph_repeat_end(g);
    gantry_buffer_init_value(g, flag, 1);
    ck_assert_str_eq(
        refusal(g, m, NULL, GANTRY_E_UNSUPPORTED),
        "a repeat of 5 without nodes ends by \"until\" on buffer \"flag\", which nothing in it can change; "
        "drop \"until\"");
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(a_broken_graph_is_reported)
{
    gantry_machine *m = virtual_machine(1);
    gantry_graph *g = gantry_graph_new("broken");
    gantry_node_read(g, work(g, "n", 1), gantry_all(buffer(g, "x", 1)));
    ck_assert_ptr_nonnull(strstr(refusal(g, m, NULL, GANTRY_E_GRAPH), "nothing has written"));
    ck_assert_str_eq(refusal(g, NULL, NULL, GANTRY_E_INVALID),
                     "gantry_schedule_new was called with NULL for `machine`; pass what its header asks for");
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(an_empty_graph_has_an_empty_schedule)
{
    gantry_machine *m = virtual_machine(2);
    gantry_graph *g = gantry_graph_new("empty");
    gantry_schedule *s = schedule(g, m, NULL);
    ck_assert_uint_eq(s->ops.count, 0);
    ck_assert_int_eq(s->makespan, 0);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(explain_shows_every_candidate)
{
    gantry_machine *m = parse_machine(machine_shared_link);
    gantry_graph *g = gantry_graph_new("why");
    gantry_buffer x = buffer(g, "x", 300000);
    gantry_buffer_init_value(g, x, 1);
    gantry_node n = work(g, "first", 10), k = work(g, "second", 10);
    gantry_node_write(g, n, gantry_all(x));
    gantry_node_read(g, k, gantry_all(x));
    gantry_node_on(g, n, "gpu1");
    gantry_schedule *s = schedule(g, m, NULL);
    char *text = NULL;
    size_t length;
    gantry_error err;
    ck_assert_int_eq(gantry_schedule_explain(s, k, &text, &length, &err), GANTRY_OK);
    ck_assert_uint_eq(strlen(text), length);
    ck_assert_msg(strstr(text, "  first  on gpu1  ends 12.000 us  1.1 MiB  x\n"), "%s", text);
    /* to gpu0 through the host: twice 5 us and 100 us; then 2 us of launch and 10 */
    ck_assert_msg(
        strstr(text, "     gpu0:  data ready 222.000 us  start 222.000 us  compute 12.000 us  finish 234.000 us\n"),
        "%s", text);
    ck_assert_msg(
        strstr(text,
               "  => gpu1:   data ready 12.000 us   start 12.000 us  compute 12.000 us   finish 24.000 us  chosen\n"),
        "%s", text);
    gantry_free(text);
    ck_assert_int_eq(gantry_schedule_explain(s, (gantry_node){ .id = 17 }, &text, &length, &err), GANTRY_E_INVALID);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *c = tcase_create("options");
    tcase_add_loop_test(c, options_are_checked, 0, 10);
    tcase_add_test(c, options_are_recorded);
    tcase_add_test(c, shorter_options_get_defaults);
    tcase_add_test(c, policies_are_listed);
    tcase_add_test(c, until_in_an_empty_loop_is_refused);
    tcase_add_test(c, a_broken_graph_is_reported);
    tcase_add_test(c, an_empty_graph_has_an_empty_schedule);
    tcase_add_test(c, explain_shows_every_candidate);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
