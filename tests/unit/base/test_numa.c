/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numa.h"

#include "suite.h"
#include <linux/mempolicy.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct policy {
    int mode;
    unsigned long nodes[GY_NUMA_NODES / (8 * sizeof(unsigned long))];
} policy;

static bool get(policy *p)
{
    memset(p, 0, sizeof *p);
    return syscall(SYS_get_mempolicy, &p->mode, p->nodes, (unsigned long)GY_NUMA_NODES, NULL, 0UL) == 0;
}

static bool knows_nodes(void)
{
    policy p;
    bool can = get(&p) && syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL) == 0;
    if (!can)
        printf("skipped: this system does not let a program choose nodes\n");
    return can;
}

/* Whatever held before holds again: nothing, or a choice of the program's. */
START_TEST(a_node_is_preferred_for_a_while)
{
    for (int chosen = 0; chosen < 2 && knows_nodes(); chosen++) {
        policy before, during, after;
        gy_numa state;
        unsigned long first[GY_NUMA_NODES / (8 * sizeof(unsigned long))] = { 1 };
        ck_assert(!chosen || syscall(SYS_set_mempolicy, MPOL_BIND, first, (unsigned long)GY_NUMA_NODES) == 0);
        ck_assert(get(&before));
        gy_numa_prefer(&state, 0);
        ck_assert(get(&during));
        gy_numa_restore(&state);
        ck_assert(get(&after));
        ck_assert_int_eq(during.mode, MPOL_PREFERRED);
        ck_assert(during.nodes[0] == 1);
        ck_assert_int_eq(before.mode, chosen ? MPOL_BIND : MPOL_DEFAULT);
        ck_assert(after.mode == before.mode && memcmp(after.nodes, before.nodes, sizeof before.nodes) == 0);
    }
}
END_TEST

/* No node, one that no system has, and one that this system has not: at most the node of the thread itself. */
START_TEST(what_is_no_node_changes_nothing)
{
    static const int nodes[] = { -1, GY_NUMA_NODES, GY_NUMA_NODES - 1 };
    for (size_t i = 0; i < 3 && knows_nodes(); i++) {
        policy p;
        gy_numa state;
        gy_numa_prefer(&state, nodes[i]);
        ck_assert(get(&p));
        ck_assert(p.mode == MPOL_DEFAULT || p.mode == MPOL_LOCAL);
        gy_numa_restore(&state);
        ck_assert(get(&p));
        ck_assert_int_eq(p.mode, MPOL_DEFAULT);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("numa");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, a_node_is_preferred_for_a_while);
    tcase_add_test(tests, what_is_no_node_changes_nothing);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
