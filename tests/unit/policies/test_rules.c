/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the user, which hold under every policy: on, with, apart, priority, host calls; and promises of single
 * policies. */
#include "../scheduler/suite.h"
#include "scheduler/policies/policy.h"

#include <stdio.h>
#include <string.h>

static gantry_graph *g;
static gantry_machine *m;

static void begin(gantry_machine *machine)
{
    m = machine;
    g = gantry_graph_new("rules");
}

static void end(void)
{
    gantry_graph_free(g);
    gantry_machine_free(m);
}

/* Ten nodes in three layers, each reading a row of most nodes before it. */
static void make_nodes(gantry_node *n)
{
    gantry_buffer x = buffer(g, "x", 1000);
    for (int i = 0; i < 10; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        n[i] = work(g, id, 3 + 7 * i % 11);
        for (int k = i / 4 * 4 - 4; k >= 0 && k < i / 4 * 4; k++)
            if ((i + k) % 3)
                gantry_node_read(g, n[i], gantry_rows(x, 100 * k, 100 * k + 100));
        gantry_node_write(g, n[i], gantry_rows(x, 100 * i, 100 * i + 100));
    }
}

START_TEST(on_with_and_apart_hold)
{
    const char *policy = gantry_policy_name((size_t)_i);
    gantry_node n[10];
    begin(virtual_machine(4));
    make_nodes(n);
    gantry_node_on(g, n[1], "dev3");
    gantry_node_on(g, n[6], "devices-2");
    gantry_node_with(g, n[5], n[2]);
    gantry_node_with(g, n[9], n[2]);
    gantry_node_apart(g, n[3], n[1]);
    gantry_node_apart(g, n[7], n[3]);
    gantry_node_apart(g, n[8], n[3]);
    gantry_node_apart(g, n[8], n[7]);
    gantry_node_apart(g, n[4], n[9]);
    gantry_schedule *s = schedule(g, m, policy);
    ck_assert_str_eq(device_of(s, "n1"), "dev3");
    ck_assert_str_eq(device_of(s, "n6"), "dev2");
    ck_assert_str_eq(device_of(s, "n5"), device_of(s, "n2"));
    ck_assert_str_eq(device_of(s, "n9"), device_of(s, "n2"));
    ck_assert_str_ne(device_of(s, "n3"), "dev3");
    ck_assert_str_ne(device_of(s, "n7"), device_of(s, "n3"));
    ck_assert_str_ne(device_of(s, "n8"), device_of(s, "n3"));
    ck_assert_str_ne(device_of(s, "n8"), device_of(s, "n7"));
    ck_assert_str_ne(device_of(s, "n4"), device_of(s, "n2"));
    gantry_schedule_free(s);
    end();
}
END_TEST

START_TEST(too_many_apart_are_refused)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_node n[10];
    o.policy = gantry_policy_name((size_t)_i);
    begin(virtual_machine(2));
    make_nodes(n);
    gantry_node_apart(g, n[1], n[0]);
    gantry_node_apart(g, n[2], n[0]);
    gantry_node_apart(g, n[2], n[1]);
    const char *text = refusal(g, m, &o, GANTRY_E_UNSUPPORTED);
    ck_assert_msg(strstr(text, "no device of machine \"host-2\" is left for node \"n"), "%s: %s", o.policy, text);
    end();
}
END_TEST

/* The collective has a rank where each of its pieces was made; the host call goes to the CPU; the loop is unrolled. */
START_TEST(collectives_host_calls_and_loops_are_placed)
{
    begin(parse_machine(machine_shared_link));
    gantry_buffer x = buffer(g, "x", 4);
    gantry_graph_repeat(g, 3);
    for (int i = 0; i < 2; i++) {
        gantry_node n = work(g, i ? "b" : "a", 5);
        gantry_node_on(g, n, i ? "gpu1" : "gpu0");
        gantry_node_write(g, n, gantry_rows(x, 2 * i, 2 * i + 2));
    }
    gantry_region both[2] = { gantry_rows(x, 0, 2), gantry_rows(x, 2, 4) };
    gantry_graph_collective(g, "sum", GANTRY_ALL_REDUCE, GANTRY_SUM, 2, both, 2, both, 0);
    gantry_node last = work(g, "last", 5);
    gantry_node_read(g, last, gantry_all(x));
    gantry_node_on(g, last, "cpu");
    gantry_graph_repeat_end(g);
    gantry_schedule *s = schedule(g, m, gantry_policy_name((size_t)_i));
    ck_assert_uint_eq(op_of(s, "sum")->lanes, 2);
    ck_assert_str_eq(device_of(s, "last"), "cpu");
    gantry_schedule_free(s);
    end();
}
END_TEST

/* Explaining places again: every policy must come to what it came to, with a slot that is the one in the schedule. */
START_TEST(explaining_agrees_with_the_schedule)
{
    gantry_node n[10];
    gantry_error err;
    begin(virtual_machine(3));
    make_nodes(n);
    gantry_schedule *s = schedule(g, m, gantry_policy_name((size_t)_i));
    for (int i = 0; i < 10; i++) {
        char *text = NULL, id[16], chosen[64];
        size_t length;
        snprintf(id, sizeof id, "n%d", i);
        snprintf(chosen, sizeof chosen, "=> %s:", device_of(s, id));
        if (gantry_schedule_explain(s, n[i], &text, &length, &err))
            ck_abort_msg("%s", err.text);
        ck_assert_msg(strstr(text, chosen) && strstr(text, "  chosen\n"), "%s", text);
        ck_assert_ptr_eq(strstr(strstr(text, "=> ") + 1, "=> "), NULL); /* one choice */
        gantry_free(text);
    }
    gantry_schedule_free(s);
    end();
}
END_TEST

/* One device, three nodes that are ready together: the one with priority first, whatever the policy would like. */
START_TEST(priority_goes_first)
{
    const char *policy = gantry_policy_name((size_t)_i);
    begin(virtual_machine(1));
    work(g, "long", 20);
    work(g, "short", 1);
    gantry_node_priority(g, work(g, "urgent", 5), 1);
    gantry_schedule *s = schedule(g, m, policy);
    ck_assert(gy_policy_at((size_t)_i)->ignores_priority || op_of(s, "urgent")->start == 0);
    gantry_schedule_free(s);
    end();
}
END_TEST

/* a fills device 0 until 1, b device 1 until 10. c would start soonest on device 0, but a left 1000 bytes of room there
 * and c needs 2000; device 1 has them. */
START_TEST(m_etf_and_m_sct_go_where_there_is_room)
{
    static const char *const policies[] = { "etf", "m-etf", "m-sct" };
    begin(small_machine(2, 4096));
    gantry_buffer x = buffer(g, "x", 774), y = buffer(g, "y", 10), z = buffer(g, "z", 500);
    gantry_node a = work(g, "a", 1), b = work(g, "b", 10), c = work(g, "c", 5);
    gantry_node_write(g, a, gantry_all(x));
    gantry_node_write(g, b, gantry_all(y));
    gantry_node_write(g, c, gantry_all(z));
    gantry_node_priority(g, a, 2);
    gantry_node_priority(g, b, 1);
    gantry_schedule *s = schedule(g, m, policies[_i]);
    ck_assert_str_eq(device_of(s, "a"), "d0");
    ck_assert_str_eq(device_of(s, "b"), "d1");
    ck_assert_str_eq(device_of(s, "c"), _i ? "d1" : "d0");
    gantry_schedule_free(s);
    end();
}
END_TEST

/* Six nodes of 3200 bytes, two devices of 4096: no room for four of them by that account, and all are placed. */
START_TEST(without_room_anywhere_they_go_on)
{
    begin(small_machine(2, 4096));
    for (int i = 0; i < 6; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        gantry_node_write(g, work(g, id, 5), gantry_all(buffer(g, id, 800)));
    }
    gantry_schedule *s = schedule(g, m, _i ? "m-sct" : "m-etf");
    ck_assert_int_eq(s->makespan, gy_ticks_from_us(15));
    gantry_schedule_free(s);
    end();
}
END_TEST

/* 3000 bytes were made on device 1, 400 on device 0: the reader goes to device 1, though device 0 is free sooner. */
START_TEST(owner_follows_the_bytes)
{
    begin(small_machine(2, 1 << 20));
    gantry_buffer x = buffer(g, "x", 100), y = buffer(g, "y", 750);
    gantry_node a = work(g, "a", 1), b = work(g, "b", 50), c = work(g, "c", 5);
    gantry_node_on(g, a, "d0");
    gantry_node_on(g, b, "d1");
    gantry_node_write(g, a, gantry_all(x));
    gantry_node_write(g, b, gantry_all(y));
    gantry_node_read(g, c, gantry_all(x));
    gantry_node_read(g, c, gantry_all(y));
    gantry_node_time(g, c, "d1", 40);
    gantry_schedule *s = schedule(g, m, "owner");
    ck_assert_str_eq(device_of(s, "c"), "d1");
    gantry_schedule_free(s);
    s = schedule(g, m, "heft"); /* 3000 bytes take 1.1 us to device 0, and c 35 us less */
    ck_assert_str_eq(device_of(s, "c"), "d0");
    gantry_schedule_free(s);
    end();
}
END_TEST

/* d0 runs f until 4 and a until 10; d1 runs e until 40. b, the favourite child of a, and c, which reads what f wrote,
 * can start on d0 at 10; on d1 not before 40. c has the larger level (20 against 5), so ETF takes it first. m-SCT keeps
 * d0 for b: c may start there once its data could be on d1 too, at 12.5 (40 000 bytes, 0.5 + 8 us after 4), which is
 * later than b. (f's favourite child is c: d0 would be kept for that at 4, but a goes first by its priority.) */
START_TEST(m_sct_keeps_a_device_for_the_favourite)
{
    static const char *const policies[] = { "etf", "m-sct" };
    begin(small_machine(2, 1 << 20));
    gantry_buffer x = buffer(g, "x", 25000), y = buffer(g, "y", 10000);
    gantry_node a = work(g, "a", 6), f = work(g, "f", 4), b = work(g, "b", 5), c = work(g, "c", 20),
                e = work(g, "e", 40);
    gantry_node_on(g, a, "d0");
    gantry_node_on(g, f, "d0");
    gantry_node_on(g, e, "d1");
    gantry_node_priority(g, f, 2);
    gantry_node_priority(g, a, 1);
    gantry_node_priority(g, e, 1);
    gantry_node_write(g, a, gantry_all(x));
    gantry_node_read(g, b, gantry_all(x));
    gantry_node_write(g, f, gantry_all(y));
    gantry_node_read(g, c, gantry_all(y));
    gantry_schedule *s = schedule(g, m, policies[_i]);
    ck_assert_str_eq(device_of(s, "b"), "d0");
    ck_assert_int_eq(op_of(s, _i ? "b" : "c")->start, gy_ticks_from_us(10));
    ck_assert_int_eq(op_of(s, _i ? "c" : "b")->start, gy_ticks_from_us(_i ? 15 : 30));
    gantry_schedule_free(s);
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("rules");
    TCase *c = tcase_create("rules");
    int policies = 0;
    while (gantry_policy_name((size_t)policies))
        policies++;
    tcase_add_loop_test(c, on_with_and_apart_hold, 0, policies);
    tcase_add_loop_test(c, too_many_apart_are_refused, 0, policies);
    tcase_add_loop_test(c, collectives_host_calls_and_loops_are_placed, 0, policies);
    tcase_add_loop_test(c, priority_goes_first, 0, policies);
    tcase_add_loop_test(c, explaining_agrees_with_the_schedule, 0, policies);
    tcase_add_loop_test(c, m_etf_and_m_sct_go_where_there_is_room, 0, 3);
    tcase_add_loop_test(c, without_room_anywhere_they_go_on, 0, 2);
    tcase_add_test(c, owner_follows_the_bytes);
    tcase_add_loop_test(c, m_sct_keeps_a_device_for_the_favourite, 0, 2);
    suite_add_tcase(s, c);
    return run_suite(s);
}
