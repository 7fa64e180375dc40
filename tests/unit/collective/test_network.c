/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over a network: times worked out here from latency and rate, and what no algorithm can beat. */
#include "suite.h"
#include "support/run_suite.h"

#include "machine/machine.h"

/* So many of the machine, joined by the network of its file. */
static gantry_machine *join(const char *name, const char *devices, size_t ranks)
{
    gantry_machine *whole = load(name, false), *node = NULL, *m = NULL;
    const gantry_machine *nodes[128];
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_machine_select(&node, whole, devices, &err), "%s", err.text);
    for (size_t i = 0; i < ranks; i++)
        nodes[i] = node;
    ck_assert_msg(!gantry_machine_join(&m, nodes, ranks, NULL, &err), "%s", err.text);
    gantry_machine_free(node);
    gantry_machine_free(whole);
    return m;
}

/* An all_reduce of all workers of the machine, between whose memories are those of hosts. */
static gy_group everyone(const gantry_machine *m, int64_t bytes)
{
    static gy_group_span span[2048];
    uint32_t n = gy_machine_workers(m);
    gy_group g;
    ck_assert_uint_le(n, 1024);
    for (uint32_t i = 0; i < 2 * n; i++)
        span[i] = (gy_group_span){ m->device[i % n].memory, i, 0, bytes };
    ck_assert(gy_group_of_rows(&g, GANTRY_ALL_REDUCE, GANTRY_SUM, span, n, n));
    return g;
}

/* A ring of R nodes with a GPU each: 2 (R - 1) steps, each a launch (4 us), a message's latency (4 us) and an R-th of
 * the bytes at 47 GB/s. Ports tell of the end of a message, so no flag is waited for, and no kernel is slow. */
START_TEST(ring_by_hand)
{
    for (size_t ranks = 2; ranks <= 32; ranks *= 2) {
        gantry_machine *m = join("dgx-h100", "1", ranks);
        for (int64_t bytes = 4096; bytes <= INT64_C(1) << 32; bytes *= 16) {
            gy_group g = everyone(m, bytes);
            gy_way way = look(m, &g, GY_ALGORITHM_RING);
            double n = (double)ranks, hand = 2 * (n - 1) * (8 + (double)bytes / n / 47e3);
            ck_assert_msg(!way.refused, "%s", way.refused);
            ck_assert_double_eq_tol(us(way.time), hand, hand * 1e-4);
            gy_group_free(&g);
        }
        gantry_machine_free(m);
    }
}
END_TEST

/* Through the host memories of both: the copies to the hosts and from them take their time, too. */
START_TEST(ring_through_hosts)
{
    gantry_machine *m = join("a100-pcie-4-100gbe", "1", 4);
    gy_group g = everyone(m, INT64_C(1) << 30);
    double part = (double)(1 << 28) / 1e3, hand = 6 * (4 + 7 + part / 24 + 10 + part / 12.2 + 7 + part / 24);
    ck_assert_double_eq_tol(us(look(m, &g, GY_ALGORITHM_RING).time), hand, hand * 1e-4);
    gy_group_free(&g);
    gantry_machine_free(m);
}
END_TEST

/* Nodes are found to be islands, and all rails are used. Of a gigabyte and more it takes what the slower of two takes
 * alone, and less than 3/10 more: over each of 8 ports 2 (R - 1) / R of an eighth of the bytes, at 47 GB/s; over
 * NVLink, where each GPU adds up an eighth and gets the others, 7/4 of the bytes at 4/5 of 397.2 GB/s. Never less than
 * the former. */
START_TEST(rails_are_used)
{
    static const size_t ranks[] = { 2, 4, 16, 128 };
    gantry_machine *m = join("dgx-h100", "8", ranks[_i]);
    double n = (double)ranks[_i], before = 0;
    for (int64_t bytes = INT64_C(1) << 16; bytes <= INT64_C(1) << 33; bytes *= 8) {
        gy_group g = everyone(m, bytes);
        gy_way best = choose(m, &g);
        double least = 2 * (n - 1) / n * (double)bytes / 8 / 47e3, took = us(best.time);
        double within = 1.75 * (double)bytes / 0.8 / 397.2e3, slower = within > least ? within : least;
        ck_assert_msg(took >= least && took > before, "%lld bytes: %g us, %g at least", (long long)bytes, took, least);
        before = took;
        if (bytes >= INT64_C(1) << 30) {
            ck_assert_int_eq(best.algorithm, GY_ALGORITHM_ISLANDS);
            ck_assert_msg(took < 1.3 * slower, "%lld bytes: %g us, not %g", (long long)bytes, took, slower);
        }
        gy_group_free(&g);
    }
    gantry_machine_free(m);
}
END_TEST

/* More nodes take no less time, by any algorithm. */
START_TEST(more_nodes_take_no_less)
{
    for (int a = 1; a < GY_ALGORITHM_COUNT; a++) {
        double before = 0;
        for (size_t ranks = 1; ranks <= 16; ranks *= 2) {
            gantry_machine *m = join("dgx-h200", "4", ranks);
            gy_group g = everyone(m, 100 << 20);
            gy_way way = look(m, &g, (gy_algorithm)a);
            ck_assert(way.refused || us(way.time) >= before);
            before = way.refused ? before : us(way.time);
            gy_group_free(&g);
            gantry_machine_free(m);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("network");
    TCase *tc = tcase_create("collectives");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, ring_by_hand);
    tcase_add_test(tc, ring_through_hosts);
    tcase_add_loop_test(tc, rails_are_used, 0, 4);
    tcase_add_test(tc, more_nodes_take_no_less);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
