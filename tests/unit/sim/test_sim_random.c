/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random schedules on random machines, held against a slow simulator in double precision that finds the rates in
 * another way, and against facts that need no simulator: nothing begins before what it waits for has ended, no resource
 * carries more than its rate allows in any span of time. And a million ops.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/sim.h"
#include "support/hand.h"
#include "support/run_suite.h"

#define MAX_OPS   80
#define MAX_FLOWS 80

/* splitmix64: the same cases everywhere. */
static uint64_t state;
static uint32_t draw(uint32_t below)
{
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ (z >> 31)) % below);
}

/* ---- the slow simulator: everything is looked at in every step; times in microseconds ---- */

typedef struct slow_op {
    double start, end, ready;
    double latency_end, left, cap, rate; /* bytes, bytes per microsecond; computing: microseconds, part of the device */
    bool started, ended, flows, computes;
    const gy_route *route; /* NULL: not a copy */
    uint32_t engine;       /* device, or GY_NONE */
} slow_op;

typedef struct slow {
    const gantry_schedule *s;
    slow_op op[MAX_OPS];
    uint32_t idle[8];
    double now;
} slow;

static void describe(slow *w, uint32_t i)
{
    const gantry_schedule *s = w->s;
    const gy_op *op = &s->ops.at[i];
    w->op[i] = (slow_op){ .start = -1, .end = -1, .ready = -1, .engine = GY_NONE };
    const gy_device *d = &s->machine->device[s->lanes.at[s->op_lane.at[op->lane]].device];
    if (op->kind == GY_OP_LAUNCH && d->gpu && d->lanes > 1) {
        w->op[i].computes = true;
        w->op[i].cap = (1000 - op->spare) / 1000.0;
        w->op[i].left = gy_ticks_to_us(op->duration) * w->op[i].cap;
    }
    if (op->kind != GY_OP_COPY)
        return;
    const gy_use *u = &s->use.at[op->use];
    int64_t bytes = (int64_t)gy_use_bytes(s, u);
    w->op[i].route =
        gy_machine_route(s->machine, s->instances.at[u[0].instance].memory, s->instances.at[u[1].instance].memory);
    w->op[i].left = (double)bytes;
    w->op[i].cap = (double)gy_route_rate(w->op[i].route, bytes) / 1e6;
    const gy_lane *lane = &s->lanes.at[s->op_lane.at[op->lane]];
    if (lane->kind == GY_LANE_COPY)
        w->op[i].engine = lane->device;
}

static bool shares_lane(const gantry_schedule *s, const gy_op *a, const gy_op *b)
{
    for (uint32_t i = 0; i < a->lanes; i++)
        for (uint32_t k = 0; k < b->lanes; k++)
            if (s->op_lane.at[a->lane + i] == s->op_lane.at[b->lane + k])
                return true;
    return false;
}

static bool may_begin(const slow *w, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (!w->op[k].ended && shares_lane(w->s, &w->s->ops.at[k], &w->s->ops.at[i]))
            return false;
    for (size_t r = 0; r < w->s->sync.count; r++)
        if (w->s->sync.at[r].to == i && !w->op[w->s->sync.at[r].from].ended)
            return false;
    return true;
}

static bool begin(slow *w, uint32_t i)
{
    slow_op *o = &w->op[i];
    if (o->engine != GY_NONE && w->idle[o->engine] == 0)
        return false;
    if (o->engine != GY_NONE)
        w->idle[o->engine]--;
    o->started = true;
    o->start = w->now;
    if (o->route)
        o->latency_end = w->now + gy_ticks_to_us(gy_route_latency(o->route));
    else
        o->end = w->now + gy_ticks_to_us(w->s->ops.at[i].duration);
    return true;
}

/* The one that was ready first; of equals the first in position. */
static uint32_t next_ready(const slow *w)
{
    uint32_t best = GY_NONE;
    for (uint32_t i = 0; i < w->s->ops.count; i++) {
        const slow_op *o = &w->op[i];
        bool blocked = o->started || o->computes || o->ready < 0 || (o->engine != GY_NONE && w->idle[o->engine] == 0);
        if (!blocked && (best == GY_NONE || o->ready < w->op[best].ready))
            best = i;
    }
    return best;
}

static void begin_all(slow *w)
{
    for (uint32_t i = 0; i < w->s->ops.count; i++)
        if (!w->op[i].started && w->op[i].ready < 0 && may_begin(w, i))
            w->op[i].ready = w->now;
    for (uint32_t i; (i = next_ready(w)) != GY_NONE;)
        begin(w, i);
}

/*
 * Max-min rates as the fixed point of "advertised" rates: each resource offers the rate at which the flows that are not
 * held lower elsewhere would just fill it; a flow takes the least of its offers and its cap. (Charny's consistent
 * marking, for ABR services; it shares nothing with progressive filling.)
 */
static double offer_of(const slow *w, uint32_t resource, double *const *limit)
{
    /* The level s with sum over flows of min(limit, s) = rate: try each number of flows that are held lower. */
    double rate = (double)w->s->machine->resource[resource].rate / 1e6, held[MAX_FLOWS];
    int n = 0;
    for (uint32_t i = 0; i < w->s->ops.count; i++)
        for (uint32_t k = 0; w->op[i].flows && k < w->op[i].route->resources; k++)
            if (w->op[i].route->resource[k] == resource)
                held[n++] = limit[i][k];
    for (int a = 1; a < n; a++)
        for (int b = a; b > 0 && held[b] < held[b - 1]; b--) {
            double swap = held[b];
            held[b] = held[b - 1];
            held[b - 1] = swap;
        }
    double used = 0;
    for (int a = 0; a < n; a++) {
        double level = (rate - used) / (n - a);
        if (level <= held[a])
            return level;
        used += held[a];
    }
    return INFINITY;
}

static void find_rates(slow *w)
{
    static double limit_at[MAX_OPS][4], offer[64];
    double *limit[MAX_OPS];
    uint32_t n = (uint32_t)w->s->ops.count;
    for (uint32_t i = 0; i < n; i++) {
        limit[i] = limit_at[i];
        for (uint32_t k = 0; w->op[i].flows && k < w->op[i].route->resources; k++)
            limit[i][k] = w->op[i].cap;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t r = 0; r < w->s->machine->resources; r++)
            offer[r] = offer_of(w, r, limit);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0; w->op[i].flows && k < w->op[i].route->resources; k++) {
                double least = w->op[i].cap;
                for (uint32_t q = 0; q < w->op[i].route->resources; q++)
                    if (q != k && offer[w->op[i].route->resource[q]] < least)
                        least = offer[w->op[i].route->resource[q]];
                changed = changed || fabs(least - limit[i][k]) > 1e-9 * least;
                limit[i][k] = least;
            }
    }
    for (uint32_t i = 0; i < n; i++) {
        w->op[i].rate = w->op[i].cap;
        for (uint32_t k = 0; w->op[i].flows && k < w->op[i].route->resources; k++)
            if (offer[w->op[i].route->resource[k]] < w->op[i].rate)
                w->op[i].rate = offer[w->op[i].route->resource[k]];
    }
}

static const gy_lane *lane_of(const slow *w, uint32_t i)
{
    return &w->s->lanes.at[w->s->op_lane.at[w->s->ops.at[i].lane]];
}

/* Those that compute go on, as they began; of those that wait the urgent ones are first, then who was ready first. */
static bool goes_before(const slow *w, uint32_t a, uint32_t b)
{
    const slow_op *x = &w->op[a], *y = &w->op[b];
    if (x->started != y->started)
        return x->started;
    if (x->started && fabs(x->start - y->start) > 0)
        return x->start < y->start;
    if (lane_of(w, a)->urgent != lane_of(w, b)->urgent)
        return lane_of(w, a)->urgent;
    return fabs(x->ready - y->ready) > 0 ? x->ready < y->ready : a < b;
}

/* The ops that wait or compute, each has what it can use of what those before it left of the device. */
static void share_devices(slow *w)
{
    uint32_t n = (uint32_t)w->s->ops.count, order[64], count = 0;
    double rest[8];
    for (uint32_t d = 0; d < w->s->machine->devices; d++)
        rest[d] = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (!w->op[i].computes || w->op[i].ended || w->op[i].ready < 0)
            continue;
        ck_assert_uint_lt(count, 64);
        uint32_t at = count++;
        for (; at > 0 && goes_before(w, i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        slow_op *o = &w->op[order[i]];
        double *left = &rest[lane_of(w, order[i])->device];
        o->rate = o->cap < *left ? o->cap : *left;
        o->rate = o->rate > 1e-9 ? o->rate : 0;
        *left -= o->rate;
        o->start = o->started || o->rate <= 0 ? o->start : w->now;
        o->started = o->started || o->rate > 0;
    }
}

static double next_event(const slow *w)
{
    double next = INFINITY;
    for (uint32_t i = 0; i < w->s->ops.count; i++) {
        const slow_op *o = &w->op[i];
        if (!o->started || o->ended)
            continue;
        double at = o->computes ? w->now + o->left / o->rate
                    : !o->route ? o->end
                    : o->flows  ? w->now + o->left / o->rate
                                : o->latency_end;
        if (at < next)
            next = at;
    }
    return next;
}

#define EPSILON 1e-7 /* us: events closer than this happen together */

static void advance(slow *w, double to)
{
    for (uint32_t i = 0; i < w->s->ops.count; i++) {
        slow_op *o = &w->op[i];
        if (!o->started || o->ended)
            continue;
        if (o->flows || o->computes)
            o->left -= o->rate * (to - w->now);
        if (o->route && !o->flows && o->latency_end <= to + EPSILON)
            o->flows = true;
        if (o->computes ? o->left <= o->rate * EPSILON
            : o->route  ? o->flows && o->left <= o->rate * EPSILON && o->latency_end < to + EPSILON
                        : o->end <= to + EPSILON) {
            o->ended = true;
            o->flows = false;
            o->end = to;
            if (o->engine != GY_NONE)
                w->idle[o->engine]++;
        }
    }
    w->now = to;
}

static void simulate_slowly(slow *w)
{
    for (uint32_t d = 0; d < w->s->machine->devices; d++)
        w->idle[d] = w->s->machine->device[d].copy_engines;
    for (uint32_t i = 0; i < w->s->ops.count; i++)
        describe(w, i);
    w->now = 0;
    for (;;) {
        begin_all(w);
        find_rates(w);
        share_devices(w);
        double next = next_event(w);
        if (isinf(next))
            return;
        advance(w, next);
    }
}

/* ---- random cases ---- */

/* Four memories with ports of random rates and devices, half of the time GPUs that compute in two lanes; routes with
 * random caps over a port out, a port in and at times a bus. */
static gantry_schedule *random_machine(void)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\": 1, \"memories\": [");
    for (int i = 0; i < 4; i++)
        gy_text_printf(&t, "%s{\"id\": \"m%d\", \"capacity\": \"1TiB\"}", i ? ", " : "", i);
    gy_text_add(&t, "], \"devices\": [");
    const char *type = draw(2) ? "gpu\", \"lanes\": 2" : "cpu\"";
    for (int i = 0; i < 4; i++)
        gy_text_printf(&t, "%s{\"id\": \"d%d\", \"type\": \"%s, \"memory\": \"m%d\", \"copy_engines\": %u}",
                       i ? ", " : "", i, type, i, 1 + draw(3));
    gy_text_add(&t, "], \"resources\": {\"bus\": ");
    gy_text_printf(&t, "%u", 5 + draw(30));
    for (int i = 0; i < 4; i++)
        gy_text_printf(&t, ", \"m%d.out\": %u, \"m%d.in\": %u", i, 3 + draw(20), i, 3 + draw(20));
    gy_text_add(&t, "}, \"routes\": [");
    for (int i = 0; i < 12; i++) {
        int from = i / 3, to = (from + 1 + i % 3) % 4;
        gy_text_printf(&t,
                       "%s{\"from\": \"m%d\", \"to\": \"m%d\", \"latency_us\": %u.%u, \"bandwidth_gbs\": %u, \"via\": "
                       "[\"m%d.out\", \"m%d.in\"%s]}",
                       i ? ", " : "", from, to, draw(4), draw(10), 2 + draw(25), from, to, draw(2) ? ", \"bus\"" : "");
    }
    gy_text_add(&t, "]}");
    char *json = gy_text_take(&t, NULL);
    ck_assert_ptr_nonnull(json);
    gantry_schedule *s = hand_new(json);
    gy_free(json);
    return s;
}

static void random_launch(gantry_schedule *s, uint32_t lane)
{
    uint32_t op = hand_launch(s, "work", lane, draw(100000) / 3333.0);
    s->ops.at[op].spare = (uint16_t)(draw(3) ? draw(1000) : 0);
}

static gantry_schedule *random_schedule(void)
{
    gantry_schedule *s = random_machine();
    uint32_t compute[16], copy[8];
    for (uint32_t i = 0; i < 16; i++) {
        compute[i] = hand_lane(s, i % 4, GY_LANE_COMPUTE);
        s->lanes.at[compute[i]].urgent = i < 4 && draw(2);
    }
    for (uint32_t i = 0; i < 8; i++)
        copy[i] = hand_lane(s, i / 2, GY_LANE_COPY);
    uint32_t ops = 10 + draw(MAX_OPS - 10), copies = draw(10);
    for (uint32_t i = 0; i < ops; i++) {
        uint32_t from = draw(4), what = draw(10);
        if (what < copies)
            hand_move(s, copy[draw(8)], from, (from + 1 + draw(3)) % 4, 1 + draw(300000));
        else if (what == 9)
            hand_collective(s, GANTRY_ALL_REDUCE, 1 + draw(4), compute, 1 + draw(100000) / 7777.0);
        else
            random_launch(s, compute[from + 4 * draw(4)]);
        for (uint32_t k = i > 0 ? draw(3) : 0; k > 0; k--)
            hand_wait(s, i - 1 - draw(i < 20 ? i : 20), i);
    }
    return s;
}

static void agrees_with_slow(const gantry_schedule *s, int seed)
{
    static slow w;
    w.s = s;
    simulate_slowly(&w);
    for (uint32_t i = 0; i < s->ops.count; i++) {
        ck_assert_msg(w.op[i].ended, "seed %d: the slow simulator did not end op %u", seed, i);
        double start = gy_ticks_to_us(s->ops.at[i].start), end = gy_ticks_to_us(s->ops.at[i].end);
        ck_assert_msg(fabs(start - w.op[i].start) < 1e-4 && fabs(end - w.op[i].end) < 1e-4,
                      "seed %d: op %u is from %.7f to %.7f us, slowly from %.7f to %.7f", seed, i, start, end,
                      w.op[i].start, w.op[i].end);
    }
}

static void keeps_order(const gantry_schedule *s)
{
    gy_ticks last = 0;
    for (size_t r = 0; r < s->sync.count; r++)
        ck_assert_int_ge(s->ops.at[s->sync.at[r].to].start, s->ops.at[s->sync.at[r].from].end);
    for (uint32_t b = 0; b < s->ops.count; b++) {
        for (uint32_t a = 0; a < b; a++)
            if (shares_lane(s, &s->ops.at[a], &s->ops.at[b]))
                ck_assert_int_ge(s->ops.at[b].start, s->ops.at[a].end);
        if (s->ops.at[b].end > last)
            last = s->ops.at[b].end;
    }
    ck_assert_int_eq(s->makespan, last);
}

static bool uses_resource(const gantry_schedule *s, const gy_op *op, uint32_t resource, const gy_route **route)
{
    if (op->kind != GY_OP_COPY)
        return false;
    const gy_use *u = &s->use.at[op->use];
    *route = gy_machine_route(s->machine, s->instances.at[u[0].instance].memory, s->instances.at[u[1].instance].memory);
    for (uint32_t k = 0; k < (*route)->resources; k++)
        if ((*route)->resource[k] == resource)
            return true;
    return false;
}

/* Of the copies whose flow lies inside [from, to] no more bytes than rate x time: for every begin and end of a flow. A
 * copy may be short of its exact time by a tick at each end, at most its cap of 1e12 bytes per s x 1e-12 s = 1 byte. */
static void keeps_rates(const gantry_schedule *s)
{
    for (uint32_t r = 0; r < s->machine->resources; r++) {
        gy_ticks first[MAX_FLOWS], last[MAX_FLOWS];
        double bytes[MAX_FLOWS];
        int n = 0;
        for (uint32_t i = 0; i < s->ops.count; i++) {
            const gy_route *route;
            if (!uses_resource(s, &s->ops.at[i], r, &route))
                continue;
            first[n] = s->ops.at[i].start + gy_route_latency(route);
            last[n] = s->ops.at[i].end;
            bytes[n++] = (double)gy_use_bytes(s, &s->use.at[s->ops.at[i].use]);
        }
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++) {
                if (last[b] <= first[a])
                    continue;
                double moved = 0;
                for (int k = 0; k < n; k++)
                    moved += first[k] >= first[a] && last[k] <= last[b] ? bytes[k] : 0;
                double room = gy_ticks_to_us(last[b] - first[a]) * (double)s->machine->resource[r].rate / 1e6;
                ck_assert_msg(moved <= room + n, "resource %u carries %.1f bytes where %.1f fit", r, moved, room);
            }
    }
}

START_TEST(random_schedules)
{
    gy_ticks total = 0;
    for (int seed = 0; seed < 150; seed++) {
        state = (uint64_t)seed * 1000003;
        gantry_schedule *s = random_schedule();
        gantry_error err = { 0 };
        gantry_status status = gy_sim_run(s, &err);
        ck_assert_msg(status == GANTRY_OK, "%s", err.text);
        keeps_order(s);
        keeps_rates(s);
        agrees_with_slow(s, seed);
        total += s->makespan;
        gantry_schedule_free(s);
    }
    ck_assert_int_gt(total, 0);
}
END_TEST

/* A contribution to "the same on every compiler": the end of one busy schedule to the picosecond does not change when
 * what does not matter changes: the order of the rows of the sync table. */
START_TEST(order_of_rows_is_no_matter)
{
    for (int seed = 0; seed < 50; seed++) {
        state = (uint64_t)seed * 77003;
        gantry_schedule *s = random_schedule();
        ck_assert_int_eq(gy_sim_run(s, NULL), GANTRY_OK);
        gy_ticks end[MAX_OPS];
        for (uint32_t i = 0; i < s->ops.count; i++)
            end[i] = s->ops.at[i].end;
        for (size_t r = s->sync.count; r > 1; r--) {
            size_t k = draw((uint32_t)r);
            gy_sync swap = s->sync.at[k];
            s->sync.at[k] = s->sync.at[r - 1];
            s->sync.at[r - 1] = swap;
        }
        ck_assert_int_eq(gy_sim_run(s, NULL), GANTRY_OK);
        for (uint32_t i = 0; i < s->ops.count; i++)
            ck_assert_int_eq(end[i], s->ops.at[i].end);
        gantry_schedule_free(s);
    }
}
END_TEST

/* A pipeline over four devices: launch, copy to the next device, launch ... The limit is generous (a shared machine, a
 * sanitizer); the time is printed. */
START_TEST(a_million_ops)
{
    state = 1;
    gantry_schedule *s = random_machine();
    uint32_t compute[4], copy[4], v = hand_value(s, "x", 1000, 100), at[4];
    for (uint32_t i = 0; i < 4; i++) {
        compute[i] = hand_lane(s, i, GY_LANE_COMPUTE);
        copy[i] = hand_lane(s, i, GY_LANE_COPY);
        at[i] = hand_instance(s, v, i, 0, 1000);
    }
    for (uint32_t i = 0; i < 500000; i++) {
        uint32_t work = hand_launch(s, "work", compute[i % 4], 5 + i % 7);
        if (i > 3)
            hand_wait(s, work - 7, work);
        hand_wait(s, work, hand_copy(s, copy[i % 4], at[i % 4], at[(i + 1) % 4]));
    }
    clock_t before = clock();
    ck_assert_int_eq(gy_sim_run(s, NULL), GANTRY_OK);
    double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    printf("%zu ops, %zu rows: %.2f s\n", s->ops.count, s->sync.count, seconds);
    ck_assert_double_lt(seconds, 60);
    gantry_schedule_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim at random");
    TCase *t = tcase_create("random");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, random_schedules);
    tcase_add_test(t, order_of_rows_is_no_matter);
    tcase_add_test(t, a_million_ops);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
