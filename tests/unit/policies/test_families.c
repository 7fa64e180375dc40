/* SPDX-License-Identifier: Apache-2.0 */
/* Families: who goes on with whom, what joins them, what they share; and the policy that keeps them together. */
#include "../scheduler/suite.h"

#include "base/map.h"
#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/policies/partition/families.h"
#include "scheduler/policies/policy.h"
#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20, MOST = 600 };

static gantry_graph *g;
static gantry_machine *m;
static gy_plan p;
static uint32_t family[MOST];

static gantry_buffer rows_of(const char *name, int64_t rows, int64_t bytes)
{
    return gantry_graph_buffer(g, name, GANTRY_U8, 2, (int64_t[]){ rows, bytes });
}

static gantry_node node(const char *name, int i, int k, double us)
{
    char id[40];
    snprintf(id, sizeof id, "%s%d_%d", name, i, k);
    return work(g, id, us);
}

static void reads(gantry_node n, gantry_buffer b, int64_t row)
{
    gantry_node_read(g, n, gantry_rows(b, row, row + 1));
}

static void writes(gantry_node n, gantry_buffer b, int64_t row)
{
    gantry_node_write(g, n, gantry_rows(b, row, row + 1));
}

static void changes(gantry_node n, gantry_buffer b, int64_t row)
{
    gantry_node_readwrite(g, n, gantry_rows(b, row, row + 1));
}

static void find(int devices)
{
    gantry_error err;
    m = small_machine(devices, 1024 * MIB);
    if (gantry_graph_check(g, &err))
        ck_abort_msg("%s", err.text);
    p = (gy_plan){ 0 };
    ck_assert(!gy_plan_init(&p, g, m, gy_policy_at(0), NULL, &err) && !gy_plan_capacity(&p, NULL, &err));
    ck_assert(!gy_plan_prepare(&p, &err) && p.flow->tasks <= MOST && gy_families_find(&p, family));
    for (uint32_t t = 0; t < p.flow->tasks; t++)
        ck_assert_uint_eq(family[family[t]], family[t]);
}

static void close_all(void)
{
    gy_plan_free(&p);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

/* Parts that read their neighbours as they read themselves, in rows that nobody writes twice: the one in the middle is
 * the part itself, and at the ends, where there is none, what is left. */
START_TEST(parts_of_a_stencil)
{
    enum { PARTS = 7, STEPS = 9 };
    g = gantry_graph_new("stencil");
    gantry_buffer x = rows_of("x", PARTS * (STEPS + 1), 4096);
    for (int t = 0; t <= STEPS; t++)
        for (int i = 0; i < PARTS; i++) {
            gantry_node n = node("s", t, i, 10);
            writes(n, x, t * PARTS + i);
            for (int k = i - 1; k <= i + 1 && t; k++)
                if (k >= 0 && k < PARTS)
                    reads(n, x, (t - 1) * PARTS + k);
        }
    find(3);
    for (uint32_t t = 0; t < PARTS * (STEPS + 1); t++)
        ck_assert_uint_eq(family[t], t % PARTS);
    close_all();
}
END_TEST

/* The same in two buffers by turns, with edges apart that are small, from an input: what makes the first edges is
 * slight and joins the part whose input it reads. */
START_TEST(parts_with_edges)
{
    enum { PARTS = 6, STEPS = 8 };
    g = gantry_graph_new("edges");
    gantry_buffer u[2] = { rows_of("u", PARTS, 65536), rows_of("v", PARTS, 65536) };
    gantry_buffer e[2] = { rows_of("e", PARTS, 64), rows_of("f", PARTS, 64) };
    gantry_buffer_init_value(g, u[0], 1);
    for (int i = 0; i < PARTS; i++) {
        gantry_node n = node("begin", 0, i, 1);
        reads(n, u[0], i);
        writes(n, e[0], i);
    }
    for (int t = 0; t < STEPS; t++)
        for (int i = 0; i < PARTS; i++) {
            gantry_node n = node("s", t, i, 10);
            reads(n, u[t % 2], i);
            for (int k = i - 1; k <= i + 1; k += 2)
                if (k >= 0 && k < PARTS)
                    reads(n, e[t % 2], k);
            writes(n, u[1 - t % 2], i);
            writes(n, e[1 - t % 2], i);
        }
    find(2);
    for (uint32_t t = 0; t < PARTS * (STEPS + 1); t++)
        ck_assert_uint_eq(family[t], family[t % PARTS]);
    for (uint32_t i = 0; i < PARTS; i++)
        for (uint32_t k = 0; k < i; k++)
            ck_assert_uint_ne(family[i], family[k]);
    close_all();
}
END_TEST

/* Tiles of a product: a summand more for C, whatever else is read; and readers of the same input are tied one to the
 * next, so that a block of C needs each part of A and B once. */
START_TEST(tiles_of_a_product)
{
    enum { SIDE = 3 };
    g = gantry_graph_new("product");
    gantry_buffer a = rows_of("a", SIDE * SIDE, 4096), b = rows_of("b", SIDE * SIDE, 4096);
    gantry_buffer c = rows_of("c", SIDE * SIDE, 4096);
    gantry_buffer_init_value(g, a, 1);
    gantry_buffer_init_value(g, b, 1);
    gantry_buffer_init_value(g, c, 0);
    for (int k = 0; k < SIDE; k++)
        for (int i = 0; i < SIDE * SIDE; i++) {
            gantry_node n = node("g", k, i, 10);
            reads(n, a, i / SIDE * SIDE + k);
            reads(n, b, k * SIDE + i % SIDE);
            changes(n, c, i);
        }
    find(2);
    for (uint32_t t = 0; t < SIDE * SIDE * SIDE; t++)
        ck_assert_uint_eq(family[t], t % (SIDE * SIDE));
    gy_levels l = { 0 };
    ck_assert(gy_families_share(&l, &p));
    ck_assert_uint_eq(l.shared.count, 2 * SIDE * SIDE * (SIDE - 1)); /* 2 SIDE^2 parts, SIDE readers each */
    for (size_t i = 0; i < l.shared.count; i++) {
        ck_assert_uint_lt(l.shared.at[i].from, l.shared.at[i].to);
        ck_assert(!i || l.shared.at[i - 1].to <= l.shared.at[i].to);
        ck_assert_int_eq(l.shared.at[i].bytes, 4096);
        ck_assert_int_gt(l.shared.at[i].cost, 0);
    }
    gy_levels_free(&l);
    close_all();
}
END_TEST

/* Stages of a pipeline: the weights are more than what goes from stage to stage. */
START_TEST(stages_with_weights)
{
    enum { STAGES = 4, BATCHES = 5 };
    g = gantry_graph_new("pipeline");
    gantry_buffer w = rows_of("w", STAGES, 65536), h = rows_of("h", BATCHES * (STAGES + 1), 4096);
    gantry_buffer_init_value(g, w, 1);
    gantry_buffer_init_value(g, h, 1);
    for (int b = 0; b < BATCHES; b++)
        for (int s = 0; s < STAGES; s++) {
            gantry_node n = node("p", b, s, 10);
            reads(n, w, s);
            reads(n, h, b * (STAGES + 1) + s);
            writes(n, h, b * (STAGES + 1) + s + 1);
        }
    find(2);
    for (uint32_t t = 0; t < STAGES * BATCHES; t++)
        ck_assert_uint_eq(family[t], t % STAGES);
    close_all();
}
END_TEST

/* A chain goes no further than its devices: what only one can run begins a family. One task cannot go on twice, and
 * work of its own weight stays out of a family. */
START_TEST(where_families_end)
{
    g = gantry_graph_new("ends");
    gantry_buffer x = rows_of("x", 5, 4096);
    gantry_node n[5];
    for (int i = 0; i < 5; i++) {
        n[i] = node("n", 0, i, i == 2 ? 50 : i == 1 ? 20 : 10);
        writes(n[i], x, i);
    }
    reads(n[1], x, 0);
    reads(n[2], x, 0); /* the longer of two */
    reads(n[3], x, 2);
    reads(n[4], x, 3);
    gantry_node_on(g, n[4], "d1");
    find(2);
    ck_assert(family[0] == 0 && family[1] != 0 && family[2] == 0 && family[3] == 0);
    ck_assert_uint_eq(family[4], 4);
    close_all();
}
END_TEST

/* The policy: parts of a row that tell their neighbours something are cut into as many pieces as there are devices, and
 * each part stays. */
START_TEST(the_policy_cuts_once)
{
    enum { PARTS = 20, STEPS = 12, DEVICES = 4 };
    gantry_error err;
    g = gantry_graph_new("row");
    gantry_buffer u[2] = { rows_of("u", PARTS, 65536), rows_of("v", PARTS, 65536) };
    gantry_buffer e[2] = { rows_of("e", PARTS, 4096), rows_of("f", PARTS, 4096) };
    for (int t = 0; t < STEPS; t++)
        for (int i = 0; i < PARTS; i++) {
            gantry_node n = node("s", t, i, 20);
            for (int k = i - 1; k <= i + 1 && t; k++)
                if (k >= 0 && k < PARTS)
                    reads(n, k == i ? u[t % 2] : e[t % 2], k);
            writes(n, u[1 - t % 2], i);
            writes(n, e[1 - t % 2], i);
        }
    m = small_machine(DEVICES, 1024 * MIB);
    ck_assert(!gantry_graph_check(g, &err));
    gantry_schedule *s = schedule(g, m, "families");
    int cuts = 0, has[DEVICES] = { 0 };
    for (int i = 0; i < PARTS; i++) {
        char first[40], id[40], next[40];
        snprintf(first, sizeof first, "s0_%d", i);
        snprintf(next, sizeof next, "s0_%d", i + 1);
        for (int t = 1; t < STEPS; t++) {
            snprintf(id, sizeof id, "s%d_%d", t, i);
            ck_assert_str_eq(device_of(s, id), device_of(s, first));
        }
        has[device_of(s, first)[strlen(device_of(s, first)) - 1] - '0']++;
        cuts += i + 1 < PARTS && strcmp(device_of(s, first), device_of(s, next)) != 0;
    }
    for (int d = 0; d < DEVICES; d++)
        ck_assert_int_eq(has[d], PARTS / DEVICES);
    ck_assert_int_eq(cuts, DEVICES - 1);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("families");
    TCase *c = tcase_create("families");
    tcase_set_timeout(c, 20); /* times CK_TIMEOUT_MULTIPLIER */
    tcase_add_test(c, parts_of_a_stencil);
    tcase_add_test(c, parts_with_edges);
    tcase_add_test(c, tiles_of_a_product);
    tcase_add_test(c, stages_with_weights);
    tcase_add_test(c, where_families_end);
    tcase_add_test(c, the_policy_cuts_once);
    suite_add_tcase(s, c);
    return run_suite(s);
}
