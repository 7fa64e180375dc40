/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of 10,000 nodes, the narrow and the widest: every policy places them in good time. Times are printed. */
#include "../scheduler/suite.h"

#include "base/map.h"
#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/policies/policy.h"
#include <stdio.h>
#include <time.h>

enum { NODES = 10000, WIDTH = 100 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Layers of 100 nodes, each reading two rows of the layer before; or nodes that know nothing of each other. */
static gantry_graph *make_graph(bool layered)
{
    gantry_graph *g = gantry_graph_new(layered ? "layered" : "independent");
    int64_t shape[2] = { NODES + WIDTH, 4096 };
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_U8, 2, shape);
    uint64_t state = 1;
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_buffer_init_value(g, x, 0);
    for (int i = 0; i < NODES; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        gantry_node n = work(g, id, 5 + (double)(gy_hash64(++state) % 100));
        for (int k = 0; k < 2 && layered; k++) {
            int64_t row = i / WIDTH * WIDTH + (int64_t)(gy_hash64(++state) % WIDTH);
            gantry_node_read(g, n, gantry_rows(x, row, row + 1));
        }
        gantry_node_write(g, n, gantry_rows(x, WIDTH + i, WIDTH + i + 1));
    }
    return g;
}

START_TEST(ten_thousand_nodes_are_placed)
{
    gantry_machine *m = virtual_machine(8);
    gantry_graph *g = make_graph(_i == 0);
    gantry_error err;
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    for (size_t i = 0; gantry_policy_name(i); i++) {
        const gy_policy *policy;
        gy_plan p;
        ck_assert_int_eq(gy_policy_find(&policy, gantry_policy_name(i), &err), GANTRY_OK);
        ck_assert_int_eq(gy_plan_init(&p, g, m, policy, NULL, &err), GANTRY_OK);
        ck_assert_int_eq(gy_plan_capacity(&p, NULL, &err), GANTRY_OK);
        double start = now_ms();
        ck_assert_int_eq(gy_plan_to_place(&p, &err), GANTRY_OK);
        printf("%-12s %-12s %9.1f ms\n", gantry_graph_name(g), policy->name, now_ms() - start);
        for (uint32_t t = 0; t < p.flow->tasks; t++)
            ck_assert(p.placed.device[t] < p.devices);
        gy_plan_free(&p);
    }
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("large");
    TCase *c = tcase_create("large");
    tcase_set_timeout(c, 20); /* times CK_TIMEOUT_MULTIPLIER */
    tcase_add_loop_test(c, ten_thousand_nodes_are_placed, 0, 2);
    suite_add_tcase(s, c);
    return run_suite(s);
}
