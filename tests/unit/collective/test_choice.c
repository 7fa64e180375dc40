/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that the scheduler puts in: never later than copies, and as long as their algorithm takes. */
#include "suite.h"
#include "unit/scheduler/suite.h"

#include "scheduler/options.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/plan/plan.h"
#include "scheduler/policies/policy.h"
#include "scheduler/search/search.h"
#include "scheduler/search/trials.h"
#include <stdio.h>
#include <string.h>

static const char *const machines[] = { "hgx-h200-8", "dgx1-v100", "a100-pcie-4", "sirocco", "host-4", "host-8" };
#define MACHINES (int)(sizeof machines / sizeof *machines)

static gantry_node node_on(gantry_graph *g, const char *name, uint32_t device)
{
    char on[16];
    snprintf(on, sizeof on, "%u", device);
    gantry_node n = work(g, name, 10);
    gantry_node_on(g, n, on);
    return n;
}

typedef enum pattern { CAST, SPREAD, COLLECT, COLLECT_ALL, SWAP, PATTERNS } pattern;

/* One exchange among the first `p` devices, all of which are ready at one time. */
static gantry_graph *exchange_graph(pattern what, uint32_t p, int64_t rows)
{
    gantry_graph *g = gantry_graph_new("exchange");
    gantry_buffer x = buffer(g, "x", rows * p * p);
    gantry_buffer_split(g, x, (int)p);
    bool whole = what == CAST || what == SPREAD;
    for (uint32_t i = 0; i < (whole ? 1 : p); i++)
        gantry_node_write(g, node_on(g, "w", whole ? 1 : i), whole ? gantry_all(x) : gantry_part(x, (int)i));
    for (uint32_t i = 0; i < (what == COLLECT ? 1 : p); i++) {
        gantry_node n = node_on(g, "r", i);
        if (what == SPREAD)
            gantry_node_read(g, n, gantry_part(x, (int)i));
        else if (what != SWAP)
            gantry_node_read(g, n, gantry_all(x));
        for (int64_t k = 0; k < p && what == SWAP; k++)
            gantry_node_read(g, n, gantry_rows(x, (k * p + i) * rows, (k * p + i + 1) * rows));
    }
    gantry_error err;
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    return g;
}

/* The same exchange written as a collective node. */
static gantry_graph *node_graph(pattern what, uint32_t p, int64_t rows)
{
    static const gantry_collective kinds[] = { [CAST] = GANTRY_BROADCAST,
                                               [SPREAD] = GANTRY_SCATTER,
                                               [COLLECT] = GANTRY_GATHER,
                                               [COLLECT_ALL] = GANTRY_ALL_GATHER,
                                               [SWAP] = GANTRY_ALL_TO_ALL };
    gantry_graph *g = gantry_graph_new("node");
    bool whole = what == CAST || what == SPREAD, parts = what == SPREAD || what == SWAP;
    uint32_t ins = whole ? 1 : p, outs = what == COLLECT ? 1 : p;
    gantry_buffer x = buffer(g, "x", rows * p * p), y = buffer(g, "y", rows * p * p * (parts ? 1 : outs));
    gantry_region in[8], out[8];
    gantry_buffer_split(g, x, (int)ins);
    gantry_buffer_split(g, y, (int)outs);
    for (uint32_t i = 0; i < ins; i++) {
        in[i] = gantry_part(x, (int)i);
        gantry_node_write(g, node_on(g, "w", whole ? 1 : i), in[i]);
    }
    for (uint32_t i = 0; i < outs; i++)
        out[i] = gantry_part(y, (int)i);
    (void)gantry_graph_collective(g, "c", kinds[what], (gantry_access)0, ins, in, outs, out, whole ? 1 : 0);
    for (uint32_t i = 0; i < outs; i++)
        gantry_node_read(g, node_on(g, "r", i), out[i]);
    return g;
}

/* On eight GPUs with measured times, for which the host has to give each copy out; a reader that needs none may be
 * given out before the collective. */
START_TEST(never_slower_than_nodes)
{
    gantry_machine *m = load("h200-8", true);
    for (int64_t rows = 1 << 10; rows <= 1 << 20; rows *= 32) {
        gantry_graph *found = exchange_graph((pattern)_i, 8, rows), *written = node_graph((pattern)_i, 8, rows);
        gantry_schedule *a = schedule(found, m, NULL), *b = schedule(written, m, NULL);
        ck_assert_msg(a->makespan <= b->makespan + m->issue, "pattern %d, %lld rows: %g us, as a node %g", _i,
                      (long long)rows, us(a->makespan), us(b->makespan));
        gantry_schedule_free(a);
        gantry_schedule_free(b);
        gantry_graph_free(found);
        gantry_graph_free(written);
    }
    gantry_machine_free(m);
}
END_TEST

static gy_ticks makespan(gantry_graph *g, const gantry_machine *m, bool collect, uint32_t *collectives)
{
    gy_plan p;
    gantry_error err;
    gy_options o;
    ck_assert_int_eq(gy_options_read(&o, NULL, &err), GANTRY_OK);
    gy_attempt attempt = GY_ATTEMPT_INIT;
    attempt.keep_copies = !collect;
    ck_assert_int_eq(gy_plan_init(&p, g, m, &gy_policy_heft, &attempt, &err), GANTRY_OK);
    if (gy_trials_plan(&p, &o, &attempt, &err))
        ck_abort_msg("%s", err.text);
    *collectives = count_kind(p.schedule, GY_OP_COLLECTIVE);
    gy_ticks time = p.schedule->makespan;
    gy_plan_free(&p);
    return time;
}

static uint32_t ranks_of(const gantry_machine *m)
{
    uint32_t n = gy_machine_workers(m);
    while (n && m->device[n - 1].memory == 0)
        n--;
    return n;
}

START_TEST(never_slower_than_copies)
{
    gantry_machine *m = load(machines[_i], true);
    uint32_t some = 0, most = ranks_of(m);
    for (uint32_t p = 3; p <= most; p++)
        for (int what = 0; what < PATTERNS; what++)
            for (int64_t rows = 1; rows <= 1 << 18; rows *= 8) {
                uint32_t with, without;
                gantry_graph *g = exchange_graph((pattern)what, p, rows);
                gy_ticks copies = makespan(g, m, false, &without), best = makespan(g, m, true, &with);
                ck_assert_uint_eq(without, 0);
                ck_assert_msg(best <= copies, "%s, pattern %d, %u ranks, %lld rows: %g us, copies %g", machines[_i],
                              what, p, (long long)rows, us(best), us(copies));
                some += with;
                gantry_graph_free(g);
            }
    ck_assert_uint_gt(some, 0);
    gantry_machine_free(m);
}
END_TEST

/* Every op says how long its algorithm takes for its rows on its machine, and that can be told from the schedule. */
START_TEST(durations_can_be_told_again)
{
    gantry_machine *m = load(machines[_i], true);
    uint32_t p = ranks_of(m), seen = 0;
    for (int what = 0; what < PATTERNS; what++) {
        gantry_graph *g = exchange_graph((pattern)what, p, 4096);
        gantry_schedule *s = schedule(g, m, "heft");
        for (size_t i = 0; i < s->ops.count; i++) {
            const gy_op *op = &s->ops.at[i];
            gy_group all;
            gy_collective_limit limit;
            if (op->kind != GY_OP_COLLECTIVE)
                continue;
            ck_assert(gy_group_of_op(&all, s, op));
            ck_assert_int_eq(look(m, &all, op->algorithm).time, op->duration);
            ck_assert(gy_collective_bound(&limit, m, &all) && op->duration >= limit.time);
            gy_group_free(&all);
            seen++;
        }
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
    ck_assert_uint_gt(seen, 0);
    gantry_machine_free(m);
}
END_TEST

/* Blocks of an all_to_all within a GPU are copies, each a launch behind the one before; a CPU copies them at once, and
 * so does a GPU what is one block. As a node, and as rows that are read and written. */
START_TEST(blocks_within_one_memory_are_launched_one_by_one)
{
    enum { RANKS = 4, PART = 4 << 20 };
    gantry_machine *m = load(_i ? "h200-8" : "host-4", false);
    uint32_t memory = m->device[0].memory;
    gy_ticks bytes = gy_route_time(m, gy_machine_route(m, memory, memory), (int64_t)RANKS * PART);
    gy_ticks launches = _i ? (RANKS * RANKS - 1) * m->device[0].launch : 0;
    gy_group_end end[2 * RANKS];
    gy_group_span span[RANKS * (RANKS + 1)], one[] = { { memory, 0, 0, RANKS * PART }, { memory, 1, 0, RANKS * PART } };
    gy_group node, rows, whole;
    for (uint32_t i = 0; i < 2 * RANKS; i++)
        end[i] = (gy_group_end){ memory, PART, i / RANKS, 0, PART };
    for (uint32_t i = 0; i < RANKS * (RANKS + 1); i++) {
        int64_t size = i < RANKS ? PART : PART / RANKS, at = (i < RANKS ? i : i - RANKS) * size;
        span[i] = (gy_group_span){ memory, i, at, at + size };
    }
    ck_assert(gy_group_of_node(&node, GANTRY_ALL_TO_ALL, 0, end, RANKS, RANKS));
    ck_assert(gy_group_of_rows(&rows, GANTRY_ALL_TO_ALL, 0, span, RANKS, RANKS * RANKS));
    ck_assert(gy_group_of_rows(&whole, GANTRY_ALL_TO_ALL, 0, one, 1, 1));
    ck_assert_int_eq(choose(m, &node).time, bytes + launches);
    ck_assert_int_eq(choose(m, &rows).time, bytes + launches);
    ck_assert_int_eq(choose(m, &whole).time, bytes);
    ck_assert(_i == 0 || launches > 0);
    gy_group_free(&node);
    gy_group_free(&rows);
    gy_group_free(&whole);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("collective choice");
    TCase *c = tcase_create("choice");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, never_slower_than_copies, 0, MACHINES);
    tcase_add_loop_test(c, never_slower_than_nodes, 0, PATTERNS);
    tcase_add_loop_test(c, durations_can_be_told_again, 0, MACHINES);
    tcase_add_loop_test(c, blocks_within_one_memory_are_launched_one_by_one, 0, 2);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
