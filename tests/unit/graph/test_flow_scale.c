/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes that look harmless and are quadratic if done naively, each with ten thousands of accesses: they must be done
 * in moments (the test has a time limit), and have exactly the dependencies that are counted here by hand.
 */
#include "graph/flow/flow.h"
#include "kernels.h"
#include <string.h>

enum { N = 50000 };

static gantry_graph *g;
static gantry_buffer x, y;

static void set_up(void)
{
    g = gantry_graph_new("scale");
    x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, SHAPE(N));
    y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, SHAPE(N));
    gantry_buffer_split(g, x, N);
    gantry_buffer_init_value(g, x, 0);
}

static void tear_down(void)
{
    gantry_graph_free(g);
}

static size_t count_deps(void)
{
    gantry_error err;
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    return g->flow->deps;
}

/* N writers of a row each, one reader of all, one writer of all: N + (N + 1 - N) + ... each is one edge. */
START_TEST(gather_and_scatter)
{
    for (int i = 0; i < N; i++)
        gantry_node_write(g, gantry_graph_work(g, "w"), gantry_part(x, i));
    gantry_node_read(g, gantry_graph_work(g, "all"), gantry_all(x));
    gantry_node_write(g, gantry_graph_work(g, "again"), gantry_all(x));
    for (int i = 0; i < N; i++)
        gantry_node_read(g, gantry_graph_work(g, "r"), gantry_part(x, i));
    gantry_node_write(g, gantry_graph_work(g, "last"), gantry_all(x));
    /* all after N writers, again after all, N readers after again, last after N readers */
    ck_assert_uint_eq(count_deps(), N + 1 + N + N);
}
END_TEST

/* Contributions to one row are free among themselves. */
START_TEST(contributions)
{
    gantry_graph_fill(g, "zero", gantry_part(x, 7), 0);
    for (int i = 0; i < N; i++)
        gantry_node_reduce(g, gantry_graph_work(g, "c"), gantry_part(x, 7), GANTRY_SUM);
    gantry_node_read(g, gantry_graph_work(g, "r"), gantry_all(x));
    /* each contribution after zero; r after zero and all of them */
    ck_assert_uint_eq(count_deps(), N + N + 1);
}
END_TEST

/* Readers of all, then readers of parts, then a writer of all: the lists of readers are shared by the parts. */
START_TEST(shared_readers)
{
    gantry_node_write(g, gantry_graph_work(g, "first"), gantry_all(x));
    for (int i = 0; i < N; i++)
        gantry_node_read(g, gantry_graph_work(g, "all"), gantry_all(x));
    for (int i = 0; i < N; i++)
        gantry_node_read(g, gantry_graph_work(g, "one"), gantry_part(x, i));
    gantry_node_write(g, gantry_graph_work(g, "last"), gantry_all(x));
    ck_assert_uint_eq(count_deps(), 4 * N);
}
END_TEST

/* Readers of all parts, which are written again by turns: what the tasks of one kind wait for is kept once. */
START_TEST(many_readers_of_many_writers)
{
    enum { MANY = 1000, TURNS = 3 };
    gantry_buffer z = gantry_graph_buffer(g, "z", GANTRY_F32, 1, SHAPE(MANY));
    gantry_buffer_split(g, z, MANY);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < MANY; i++)
            gantry_node_write(g, gantry_graph_work(g, "w"), gantry_part(z, i));
        for (int i = 0; i < MANY; i++)
            gantry_node_read(g, gantry_graph_work(g, "r"), gantry_all(z));
    }
    /* readers after all writers of their turn, writers after all readers of the one before */
    ck_assert_uint_eq(count_deps(), (2 * TURNS - 1) * MANY * MANY);
    ck_assert_uint_lt(g->flow->dep_first[g->flow->lists], 2 * TURNS * MANY);
}
END_TEST

/* Reads of rows that nothing writes depend on nothing, however the buffer is cut. */
START_TEST(constants)
{
    for (int i = 0; i < N; i++) {
        gantry_node_read(g, gantry_graph_work(g, "one"), gantry_part(x, i));
        gantry_node_read(g, gantry_graph_work(g, "all"), gantry_all(x));
    }
    ck_assert_uint_eq(count_deps(), 0);
}
END_TEST

/* One node with N accesses, and two nodes that get theirs by turns. */
START_TEST(many_accesses)
{
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b");
    for (int i = 0; i < N; i++) {
        gantry_node_write(g, a, gantry_part(x, i));
        gantry_node_read(g, b, gantry_part(x, N - 1 - i));
    }
    gantry_node last = gantry_graph_work(g, "last");
    for (int i = 0; i < N; i++)
        gantry_node_after(g, last, i % 2 ? a : b);
    ck_assert_uint_eq(count_deps(), 3);
    const gy_dep *of_b = gy_deps_begin(g->flow, 1), *of_last = gy_deps_begin(g->flow, 2);
    ck_assert_int_eq(of_b->bytes, 4 * N);
    ck_assert_uint_eq(of_b->kinds, GY_DEP_DATA);
    ck_assert_uint_eq(of_last->kinds, GY_DEP_ORDER);
}
END_TEST

/* N nodes of one name, each after the next one: listed backwards. */
START_TEST(backwards)
{
    gantry_node previous = gantry_graph_work(g, "n");
    for (int i = 1; i < N; i++) {
        gantry_node next = gantry_graph_work(g, "n");
        gantry_node_after(g, previous, next);
        previous = next;
    }
    ck_assert_uint_eq(count_deps(), N - 1);
    for (uint32_t i = 0; i < N; i++)
        ck_assert_uint_eq(g->flow->task[i].node, N - 1 - i);
}
END_TEST

/* A carried pair in a loop of N iterations: every iteration is after the last one and nothing else. */
START_TEST(long_loop)
{
    gantry_buffer p = gantry_graph_buffer(g, "p", GANTRY_F32, 1, SHAPE(100));
    gantry_buffer q = gantry_graph_buffer(g, "q", GANTRY_F32, 1, SHAPE(100));
    gantry_buffer_init_value(g, p, 0);
    gantry_graph_repeat(g, N);
    gantry_graph_carry(g, p, q);
    gantry_node step = gantry_graph_work(g, "step");
    gantry_node_read(g, step, gantry_all(p));
    gantry_node_write(g, step, gantry_all(q));
    gantry_graph_repeat_end(g);
    ck_assert_uint_eq(count_deps(), N - 1);
    /* x, y, p, q and a fresh q for every iteration but the first */
    ck_assert_uint_eq(g->flow->values, 4 + N - 1);
    ck_assert_uint_eq(g->flow->exit[p.id], g->flow->values - 1);
    ck_assert_uint_eq(g->flow->exit[q.id], g->flow->values - 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph_flow_scale");
    TCase *c = tcase_create("scale");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, gather_and_scatter);
    tcase_add_test(c, contributions);
    tcase_add_test(c, shared_readers);
    tcase_add_test(c, many_readers_of_many_writers);
    tcase_add_test(c, constants);
    tcase_add_test(c, many_accesses);
    tcase_add_test(c, backwards);
    tcase_add_test(c, long_loop);
    suite_add_tcase(s, c);
    return run_suite(s);
}
