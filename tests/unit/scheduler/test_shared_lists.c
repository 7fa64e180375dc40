/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks with the same predecessors share one list, and what follows from it: ranks, who is ready, when data arrive.
 * Random graphs in layers, where many tasks read all that a layer wrote; each answer against loops over the
 * dependencies of every task by itself.
 */
#include "suite.h"

#include "base/map.h"
#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"
#include "scheduler/place/arrivals.h"
#include "scheduler/place/place.h"
#include "scheduler/plan/share.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 5, WIDEST = 24, SEEDS = 40 };

static uint64_t seed;
static gantry_graph *g;
static gantry_machine *m;
static gy_plan p;

static uint32_t below(uint32_t limit)
{
    return (uint32_t)(gy_hash64(++seed) % limit);
}

/* A task of layer `k` writes row `i` of x[k] and reads much of the layer before. */
static void add_task(gantry_buffer *x, const uint32_t *width, uint32_t k, uint32_t i)
{
    char id[24];
    snprintf(id, sizeof id, "t%u_%u", k, i);
    gantry_node n = work(g, id, 1 + below(9));
    gantry_node_write(g, n, gantry_rows(x[k], i, i + 1));
    if (!k)
        return;
    uint32_t from = below(4) ? 0 : below(width[k - 1]), last = below(4) ? width[k - 1] : from + 1;
    gantry_node_read(g, n, gantry_rows(x[k - 1], from, last));
    if (k > 1 && !below(5))
        gantry_node_read(g, n, gantry_rows(x[k - 2], 0, 1 + below(width[k - 2])));
}

static void make_graph(void)
{
    gantry_buffer x[LAYERS];
    uint32_t width[LAYERS];
    char name[8];
    g = gantry_graph_new("layers");
    for (uint32_t k = 0; k < LAYERS; k++) {
        width[k] = 6 + below(WIDEST - 6);
        snprintf(name, sizeof name, "x%u", k);
        x[k] = gantry_graph_buffer(g, name, GANTRY_U8, 2, (int64_t[]){ width[k], 1 + below(1 << 16) });
        for (uint32_t i = 0; i < width[k]; i++)
            add_task(x, width, k, i);
    }
}

static void begin(int number)
{
    gantry_error err;
    const gy_policy *policy;
    seed = (uint64_t)number << 32;
    m = number % 3 == 0 ? virtual_machine(4) : parse_machine(number % 3 == 1 ? machine_relay : machine_twins);
    make_graph();
    p = (gy_plan){ 0 };
    if (gantry_graph_check(g, &err))
        ck_abort_msg("%s", err.text);
    ck_assert(!gy_policy_find(&policy, "heft", &err) && !gy_plan_init(&p, g, m, policy, NULL, &err));
    ck_assert(!gy_plan_capacity(&p, NULL, &err) && !gy_plan_prepare(&p, &err));
}

static void end(void)
{
    gy_plan_free(&p);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

/* ---- the lists ---- */

static bool have_equal_lists(const gy_flow *f, uint32_t a, uint32_t b)
{
    const gy_dep *x = gy_deps_begin(f, a), *y = gy_deps_begin(f, b);
    while (x < gy_deps_end(f, a) && y < gy_deps_end(f, b)) {
        if (x->from != y->from || x->kinds != y->kinds || x->bytes != y->bytes)
            return false;
        x++;
        y++;
    }
    return x == gy_deps_end(f, a) && y == gy_deps_end(f, b);
}

START_TEST(long_lists_are_kept_once)
{
    begin(_i);
    const gy_flow *f = p.flow;
    uint32_t shared = 0;
    for (uint32_t a = 0; a < f->tasks; a++)
        for (uint32_t b = 0; b < a; b++) {
            bool same = f->list[a] == f->list[b];
            ck_assert(!same || have_equal_lists(f, a, b));
            ck_assert(same || gy_deps_end(f, a) - gy_deps_begin(f, a) < 8 || !have_equal_lists(f, a, b));
            shared += same;
        }
    ck_assert_uint_gt(shared, 0);
    end();
}
END_TEST

/* ---- ranks ---- */

static void compare_ranks(gy_ranks *r, const gy_rank *up, const gy_rank *level, const gy_rank *down)
{
    const gy_flow *f = p.flow;
    for (uint32_t t = 0; t < f->tasks; t++) {
        gy_rank most_up = 0, most_level = 0, most_down = 0, edge;
        for (uint32_t next = t + 1; next < f->tasks; next++)
            for (const gy_dep *d = gy_deps_begin(f, next); d < gy_deps_end(f, next); d++) {
                if (d->from != t)
                    continue;
                ck_assert(gy_ranks_transfer(r, d, &edge));
                most_up = up[next] + edge > most_up ? up[next] + edge : most_up;
                most_level = level[next] > most_level ? level[next] : most_level;
            }
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++) {
            ck_assert(gy_ranks_transfer(r, d, &edge));
            edge += down[d->from] + gy_ranks_time(r, d->from);
            most_down = edge > most_down ? edge : most_down;
        }
        ck_assert(up[t] == most_up + gy_ranks_time(r, t) && level[t] == most_level + gy_ranks_time(r, t));
        ck_assert(down[t] == most_down);
    }
}

START_TEST(ranks)
{
    begin(_i);
    size_t bytes = p.flow->tasks * sizeof(gy_rank);
    gy_rank *up = malloc(bytes), *level = malloc(bytes), *down = malloc(bytes);
    gy_ranks r;
    ck_assert(up && level && down && gy_ranks_init(&r, &p, GY_BY_MEAN));
    ck_assert(gy_ranks_up(&r, true, up) && gy_ranks_up(&r, false, level) && gy_ranks_down(&r, down));
    compare_ranks(&r, up, level, down);
    gy_ranks_free(&r);
    free(up);
    free(level);
    free(down);
    end();
}
END_TEST

/* ---- who is ready ---- */

static bool is_ready(const uint8_t *placed, uint32_t task)
{
    for (const gy_dep *d = gy_deps_begin(p.flow, task); d < gy_deps_end(p.flow, task); d++)
        if (!placed[d->from])
            return false;
    return !placed[task];
}

static uint32_t any_ready(const uint8_t *placed)
{
    uint32_t first = below(p.flow->tasks), task = first;
    while (!is_ready(placed, task))
        task = (task + 1) % p.flow->tasks;
    return task;
}

START_TEST(ready_tasks)
{
    begin(_i);
    uint32_t tasks = p.flow->tasks;
    uint8_t *placed = calloc(tasks, 1), *before = calloc(tasks, 1);
    gy_ready r;
    ck_assert(placed && before && gy_ready_init(&r, &p));
    for (uint32_t n = 0; n < tasks; n++) {
        for (uint32_t t = 0; t < tasks; t++) {
            before[t] = is_ready(placed, t);
            ck_assert(placed[t] || gy_ready_is(&r, t) == before[t]);
        }
        uint32_t task = any_ready(placed);
        placed[task] = 1;
        gy_ready_placed(&r, task);
        size_t found = 0;
        for (uint32_t t = 0; t < tasks; t++)
            if (is_ready(placed, t) && !before[t])
                ck_assert(found < r.count && r.now[found++] == t);
        ck_assert_uint_eq(found, r.count);
    }
    gy_ready_free(&r);
    free(placed);
    free(before);
    end();
}
END_TEST

/* ---- when data arrive ---- */

static gy_ticks arrival(uint32_t task, uint32_t memory)
{
    gy_ticks last = 0;
    for (const gy_dep *d = gy_deps_begin(p.flow, task); d < gy_deps_end(p.flow, task); d++) {
        uint32_t device = p.placed.device[d->from];
        if (device == GY_NONE)
            continue;
        gy_ticks t = p.placed.finish[d->from];
        if (d->kinds & GY_DEP_DATA)
            t += gy_transfer_time(&p, m->device[device].memory, memory, d->bytes);
        last = t > last ? t : last;
    }
    return last;
}

static void compare_arrivals(void)
{
    for (int i = 0; i < 12; i++) {
        uint32_t task = below(p.flow->tasks), memory = below(m->memories);
        ck_assert_int_eq(gy_arrivals_ready(&p, task, memory), arrival(task, memory));
    }
}

/* One that is asked for with memory after memory, as policies do. */
static void compare_all_memories(uint32_t task)
{
    for (uint32_t i = 0; i < 2 * m->memories; i++)
        ck_assert_int_eq(gy_arrivals_ready(&p, task, i % m->memories), arrival(task, i % m->memories));
}

/* Each task is tried somewhere first, and taken back. */
static gantry_status place_all(gy_plan *plan, gantry_error *err)
{
    for (uint32_t t = 0; t < plan->flow->tasks; t++) {
        gy_try at = gy_place_try(plan, t, below(plan->workers));
        GY_TRY(gy_place_at(plan, t, &at, err));
        compare_arrivals();
        compare_all_memories(below(plan->flow->tasks));
        gy_place_undo(plan, t);
        compare_arrivals();
        compare_all_memories(below(plan->flow->tasks));
        at = gy_place_try(plan, t, below(plan->workers));
        GY_TRY(gy_place_at(plan, t, &at, err));
        compare_arrivals();
    }
    return GANTRY_OK;
}

START_TEST(arrivals)
{
    gantry_error err;
    begin(_i);
    if (gy_plan_place(&p, place_all, &err))
        ck_abort_msg("%s", err.text);
    end();
}
END_TEST

/* ---- what plans share ---- */

static void begin_other(gy_plan *other, const gy_policy *policy, gy_placings *placings)
{
    gantry_error err;
    ck_assert(!gy_plan_init(other, g, m, policy, NULL, &err));
    other->like = &p;
    other->placings = placings;
    ck_assert(!gy_plan_capacity(other, NULL, &err) && !gy_plan_to_place(other, &err));
}

static void compare_placements(const gy_plan *a, const gy_plan *b)
{
    size_t tasks = a->flow->tasks;
    ck_assert(!memcmp(a->placed.device, b->placed.device, tasks * sizeof *a->placed.device));
    ck_assert(!memcmp(a->placed.order, b->placed.order, tasks * sizeof *a->placed.order));
    ck_assert(!memcmp(a->placed.start, b->placed.start, tasks * sizeof *a->placed.start));
    ck_assert(!memcmp(a->placed.finish, b->placed.finish, tasks * sizeof *a->placed.finish));
}

static gantry_status place_nothing(gy_plan *plan, gantry_error *err)
{
    (void)plan;
    return gy_fail(err, GANTRY_E_INVALID, NULL, "a policy was asked though its placement is known");
}

/* Each policy places on the costs and inputs of another plan as it does on its own, and once is enough. */
START_TEST(shared_plans)
{
    static const gy_policy silent = { .name = "silent", .place = place_nothing };
    begin(_i);
    ck_assert(gy_plan_may_be_like(&p));
    for (size_t i = 0; gy_policy_at(i); i++) {
        gantry_error err;
        gy_placings placings = { 0 };
        gy_plan alone, like, again;
        ck_assert(!gy_plan_init(&alone, g, m, gy_policy_at(i), NULL, &err) && !gy_plan_capacity(&alone, NULL, &err) &&
                  !gy_plan_to_place(&alone, &err));
        begin_other(&like, gy_policy_at(i), &placings);
        begin_other(&again, &silent, &placings);
        compare_placements(&alone, &like);
        compare_placements(&alone, &again);
        gy_plan_free(&again);
        gy_plan_free(&like);
        gy_plan_free(&alone);
        gy_placings_free(&placings);
    }
    end();
}
END_TEST

/* ---- dependencies of ops ---- */

static int rising(const void *a, const void *b)
{
    const gy_edge *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->reason - y->reason;
}

static int falling(const void *a, const void *b)
{
    const gy_edge *x = a, *y = b;
    return x->to == y->to && x->from != y->from ? -rising(a, b) : rising(a, b);
}

START_TEST(sorted_edges)
{
    enum { MOST = 3000 };
    static gy_edge edge[MOST], wanted[MOST];
    seed = (uint64_t)_i << 32;
    uint32_t count = below(_i % 2 ? MOST : 70), range = _i % 4 ? 40 : UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        wanted[i] = edge[i] = (gy_edge){ below(range), below(range), (uint8_t)below(3) };
    qsort(wanted, count, sizeof *wanted, _i % 3 ? rising : falling);
    ck_assert(gy_edges_sort(edge, count, _i % 3 == 0));
    for (uint32_t i = 0; i < count; i++)
        ck_assert(edge[i].from == wanted[i].from && edge[i].to == wanted[i].to && edge[i].reason == wanted[i].reason);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("shared lists");
    tcase_add_loop_test(c, long_lists_are_kept_once, 0, SEEDS);
    tcase_add_loop_test(c, ranks, 0, SEEDS);
    tcase_add_loop_test(c, ready_tasks, 0, SEEDS);
    tcase_add_loop_test(c, arrivals, 0, SEEDS);
    tcase_add_loop_test(c, shared_plans, 0, SEEDS);
    tcase_add_loop_test(c, sorted_edges, 0, SEEDS);
    Suite *suite = suite_create("scheduler_shared_lists");
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
