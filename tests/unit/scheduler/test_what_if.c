/* SPDX-License-Identifier: Apache-2.0 */
/* Times of a changed placement worked out by hand, what is refused, and that nothing else moves. */
#include "random_graph.h"
#include "suite.h"

#include "support/faults.h"
#include <stdio.h>
#include <string.h>

/* A byte takes 1 us from memory to memory, and nothing is in anybody's way. */
#define THREE(route)                                                                                                   \
    "{\"gantry_machine\":1,\"name\":\"three\",\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},"                  \
    "{\"id\":\"M1\",\"capacity\":\"1GiB\"},{\"id\":\"M2\",\"capacity\":\"1GiB\"},{\"id\":\"M3\",\"capacity\":"         \
    "\"1GiB\"}],\"devices\":[{\"id\":\"P1\",\"memory\":\"M1\"},{\"id\":\"P2\",\"memory\":\"M2\"},"                     \
    "{\"id\":\"P3\",\"memory\":\"M3\"}],\"routes\":[{\"from\":\"*\",\"to\":\"*\"," route "}],"                         \
    "\"model\":{\"contention\":\"off\",\"launch_us\":0}}"
static const char as_it_is[] = THREE("\"bandwidth_gbs\":0.001"), twice_as_fast[] = THREE("\"bandwidth_gbs\":0.002"),
                  later[] = THREE("\"latency_us\":3,\"bandwidth_gbs\":0.001");

/* T1 takes 10 us and gives 4 bytes to T2, which takes 20 us. T3 stays by itself on P1, T4 is a node for P3. */
typedef struct chain {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    gantry_node t1, t2, with, away, pinned;
} chain;

static chain make_chain(void)
{
    chain c = { .g = gantry_graph_new("chain"), .m = parse_machine(as_it_is) };
    gantry_buffer a = gantry_graph_buffer(c.g, "a", GANTRY_U8, 1, &(int64_t){ 4 });
    c.t1 = work(c.g, "T1", 10);
    c.t2 = work(c.g, "T2", 20);
    c.with = work(c.g, "with", 1);
    c.away = work(c.g, "away", 1);
    c.pinned = work(c.g, "pinned", 1);
    gantry_node_write(c.g, c.t1, gantry_all(a));
    gantry_node_read(c.g, c.t2, gantry_all(a));
    gantry_node_read(c.g, c.with, gantry_all(a));
    gantry_node_with(c.g, c.with, c.t2);
    gantry_node_apart(c.g, c.away, c.t2);
    gantry_node_on(c.g, c.away, "P3");
    gantry_node_on(c.g, c.pinned, "P3");
    c.s = schedule(c.g, c.m, "heft");
    return c;
}

static void free_chain(chain *c)
{
    gantry_schedule_free(c->s);
    gantry_graph_free(c->g);
    gantry_machine_free(c->m);
}

static gantry_schedule *ask(const chain *c, const char *machine, const gantry_move *move, size_t moves)
{
    gantry_error err;
    gantry_schedule *s = NULL;
    gantry_machine *m = machine ? parse_machine(machine) : NULL;
    if (gantry_schedule_what_if(&s, c->s, m, move, moves, &err))
        ck_abort_msg("%s", err.text);
    gantry_machine_free(m);
    return s;
}

static double end_of(gantry_schedule *s, const char *id)
{
    double us = gy_ticks_to_us(op_of(s, id)->end);
    gantry_schedule_free(s);
    return us;
}

START_TEST(moved_nodes_end_when_their_bytes_have_come)
{
    chain c = make_chain();
    ck_assert_str_eq(device_of(c.s, "T1"), "P1");
    ck_assert_str_eq(device_of(c.s, "T2"), "P1");
    gantry_move to_p2 = { c.t2, 1 };
    ck_assert_double_eq_tol(end_of(ask(&c, NULL, NULL, 0), "T2"), 10 + 20, 1e-9);
    ck_assert_double_eq_tol(end_of(ask(&c, NULL, &to_p2, 1), "T2"), 10 + 4 + 20, 1e-9);
    ck_assert_double_eq_tol(end_of(ask(&c, twice_as_fast, &to_p2, 1), "T2"), 10 + 2 + 20, 1e-9);
    ck_assert_double_eq_tol(end_of(ask(&c, later, &to_p2, 1), "T2"), 10 + 3 + 4 + 20, 1e-9);
    free_chain(&c);
}
END_TEST

START_TEST(nodes_that_are_with_each_other_move_together)
{
    chain c = make_chain();
    gantry_move move[] = { { c.with, 0 }, { c.with, 1 } };
    gantry_schedule *s = ask(&c, NULL, move, 2);
    ck_assert_str_eq(device_of(s, "with"), "P2");
    ck_assert_str_eq(device_of(s, "T2"), "P2");
    ck_assert_str_eq(device_of(s, "T1"), "P1");
    gantry_schedule_free(s);
    free_chain(&c);
}
END_TEST

static void refused(const gantry_schedule *from, const gantry_machine *m, gantry_move move, gantry_status status,
                    const char *text)
{
    gantry_error err = { 0 };
    gantry_schedule *s = NULL;
    ck_assert_int_eq(gantry_schedule_what_if(&s, from, m, &move, 1, &err), status);
    ck_assert_msg(strstr(err.text, text), "%s", err.text);
    ck_assert_ptr_null(s);
}

START_TEST(what_cannot_be_is_refused_by_name)
{
    chain c = make_chain();
    gantry_machine *two = virtual_machine(2);
    gantry_graph *other = gantry_graph_new("other");
    gantry_node foreign = work(other, "foreign", 1);
    refused(c.s, NULL, (gantry_move){ c.pinned, 0 }, GANTRY_E_INVALID, "node \"pinned\" cannot be on P1: its \"on\"");
    refused(c.s, NULL, (gantry_move){ c.t2, 2 }, GANTRY_E_INVALID, "node \"T2\" cannot be on P3: a node that it is");
    refused(c.s, NULL, (gantry_move){ c.t2, 3 }, GANTRY_E_INVALID, "cannot go to device 3; the machine has 3");
    refused(c.s, NULL, (gantry_move){ { 99, 0 }, 0 }, GANTRY_E_INVALID, "no node 99; the graph has 5");
    refused(c.s, NULL, (gantry_move){ foreign, 0 }, GANTRY_E_INVALID, "node");
    refused(c.s, two, (gantry_move){ c.t2, 0 }, GANTRY_E_INVALID, "has 2 devices");
    gantry_graph_free(other);
    gantry_machine_free(two);
    free_chain(&c);
}
END_TEST

START_TEST(a_file_without_its_graph_and_other_objectives_have_no_answer)
{
    chain c = make_chain();
    gantry_error err;
    gantry_schedule *s = NULL;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    char *text = schedule_text(c.s);
    ck_assert(!gantry_schedule_parse(&s, text, strlen(text), NULL, &err));
    refused(s, NULL, (gantry_move){ c.t2, 1 }, GANTRY_E_UNSUPPORTED, "attach the graph");
    ck_assert(!gantry_schedule_attach(s, c.g, &err));
    gantry_move to_p2 = { c.t2, 1 };
    chain attached = c;
    attached.s = s;
    ck_assert_double_eq_tol(end_of(ask(&attached, NULL, &to_p2, 1), "T2"), 34, 1e-9);
    gantry_schedule_free(s);
    gantry_free(text);
    o.objective = "period";
    ck_assert_msg(!gantry_schedule_new(&s, c.g, c.m, &o, &err), "%s", err.text);
    refused(s, NULL, (gantry_move){ c.t2, 1 }, GANTRY_E_UNSUPPORTED, "another objective");
    gantry_schedule_free(s);
    free_chain(&c);
}
END_TEST

/* Collectives follow what they read, and nodes those that they are with. */
static bool may_follow(const gantry_graph *g, uint32_t n, int device, gantry_move move)
{
    return g->nodes.at[n].kind == GY_NODE_COLLECTIVE || device == (int)move.device;
}

/* Of any graph: the node is where it was asked for, every other one where it was, and the checker has agreed. */
START_TEST(nothing_else_moves)
{
    gantry_machine *m = virtual_machine(3);
    gantry_graph *g = random_graph((uint64_t)_i, 6 + _i);
    gantry_error err;
    if (gantry_graph_check(g, &err) == GANTRY_OK) {
        gantry_schedule *from = schedule(g, m, "heft"), *s = NULL;
        size_t nodes = gantry_graph_node_count(g);
        gantry_move move = { { (uint32_t)_i % (uint32_t)nodes, 0 }, (uint32_t)_i % 3 };
        gantry_status status = gantry_schedule_what_if(&s, from, NULL, &move, 1, &err);
        ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_INVALID, "%s", err.text);
        for (uint32_t n = 0; s && n < nodes; n++) {
            int device = gantry_schedule_device_of(s, (gantry_node){ n, 0 });
            if (n == move.node.id)
                ck_assert_int_eq(device, (int)move.device);
            else
                ck_assert(device == gantry_schedule_device_of(from, (gantry_node){ n, 0 }) ||
                          may_follow(g, n, device, move));
        }
        ck_assert(!s || !gantry_schedule_check(s, g, &err));
        gantry_schedule_free(s);
        gantry_schedule_free(from);
    }
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    chain c = make_chain();
    gantry_move to_p2 = { c.t2, 1 };
    int n = -1;
    for (bool failed = true; failed;) {
        gantry_error err;
        gantry_schedule *s = NULL;
        faults_after(++n);
        gantry_status status = gantry_schedule_what_if(&s, c.s, NULL, &to_p2, 1, &err);
        failed = faults_off();
        ck_assert_msg(status == (failed ? GANTRY_E_NOMEM : GANTRY_OK), "allocation %d: %s", n, err.text);
        ck_assert(failed == (s == NULL));
        gantry_schedule_free(s);
    }
    ck_assert_int_gt(n, 50);
    free_chain(&c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("what_if");
    TCase *c = tcase_create("what_if");
    tcase_add_test(c, moved_nodes_end_when_their_bytes_have_come);
    tcase_add_test(c, nodes_that_are_with_each_other_move_together);
    tcase_add_test(c, what_cannot_be_is_refused_by_name);
    tcase_add_test(c, a_file_without_its_graph_and_other_objectives_have_no_answer);
    tcase_add_loop_test(c, nothing_else_moves, 0, 40);
    tcase_add_test(c, every_allocation_may_fail);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
