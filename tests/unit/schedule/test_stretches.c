/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ops workers carry out and which are launched: the least sum of costs, against all ways of small schedules and
 * against a walk along long chains; and which way replay "auto" goes by what was measured.
 */
#include "schedule/stretches/stretches.h"
#include "scheduler/by_device.h"

#include "support/faults.h"
#include "support/run_suite.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 65536 };

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* ---- the cut ---- */

static int64_t sum_of(uint32_t nodes, const int64_t *costs, const gy_cut_edges *edges, const uint8_t *side)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < nodes; i++)
        sum += side[i] && costs[i] > 0 ? costs[i] : !side[i] && costs[i] < 0 ? -costs[i] : 0;
    for (size_t i = 0; i < edges->count; i++) {
        const gy_cut_edge *e = &edges->at[i];
        sum += side[e->a] != side[e->b] && (side[e->a] || !e->one_way) ? e->cost : 0;
    }
    return sum;
}

/* No way is cheaper, and of those that cost as much none has a node on side 0 that the cut has on side 1. */
static void check_all_ways(uint32_t nodes, const int64_t *costs, const gy_cut_edges *edges, const uint8_t *side)
{
    int64_t least = sum_of(nodes, costs, edges, side);
    for (uint32_t way = 0; way < 1u << nodes; way++) {
        uint8_t other[16];
        for (uint32_t i = 0; i < nodes; i++)
            other[i] = way >> i & 1;
        int64_t sum = sum_of(nodes, costs, edges, other);
        ck_assert_int_ge(sum, least);
        for (uint32_t i = 0; i < nodes && sum == least; i++)
            ck_assert_msg(other[i] || !side[i], "node %u could be on side 0", i);
    }
}

START_TEST(small_cuts)
{
    uint64_t state = (uint64_t)_i;
    for (int round = 0; round < 40; round++) {
        uint32_t nodes = 1 + draw(&state, 10), count = draw(&state, 20);
        int64_t costs[16];
        uint8_t side[16];
        gy_cut_edges edges = { 0 };
        for (uint32_t i = 0; i < nodes; i++)
            costs[i] = draw(&state, 6) ? (int64_t)draw(&state, 15) - 7 : -((int64_t)1 << 40);
        for (uint32_t i = 0; i < count; i++) {
            gy_cut_edge e = { draw(&state, nodes), draw(&state, nodes), draw(&state, 6), draw(&state, 3) == 0 };
            ck_assert(gy_vec_push(&edges, e));
        }
        ck_assert(gy_cut_least(nodes, costs, &edges, side));
        check_all_ways(nodes, costs, &edges, side);
        gy_vec_free(&edges);
    }
}
END_TEST

/* Along a chain the least sum is found by a walk that knows, of each node, the least on either side. */
START_TEST(long_chain)
{
    enum { NODES = 300000 };
    uint64_t state = 7;
    int64_t *costs = calloc(NODES, sizeof *costs), best[2] = { 0, 0 };
    uint8_t *side = calloc(NODES, 1);
    gy_cut_edges edges = { 0 };
    for (uint32_t i = 0; i < NODES; i++) {
        costs[i] = draw(&state, 9) ? (int64_t)draw(&state, 40) - 8 : -1000000;
        int64_t change = i ? (int64_t)draw(&state, 60) : 0, last[2] = { best[0], best[1] };
        gy_cut_edge e = { i - 1, i, change, false };
        ck_assert(!i || gy_vec_push(&edges, e));
        for (int k = 0; k < 2; k++) {
            int64_t own = k ? costs[i] : -costs[i], other = last[!k] + change;
            best[k] = (last[k] < other ? last[k] : other) + (own > 0 ? own : 0);
        }
    }
    ck_assert(gy_cut_least(NODES, costs, &edges, side));
    ck_assert_int_eq(sum_of(NODES, costs, &edges, side), best[0] < best[1] ? best[0] : best[1]);
    gy_vec_free(&edges);
    free(costs);
    free(side);
}
END_TEST

/* ---- schedules ---- */

static gantry_graph *parse_graph(const char *text)
{
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, &err), "%s", err.text);
    return g;
}

typedef struct figures {
    const char *workers; /* as in a file; NULL: nothing was measured */
    double submit_us;
} figures;

static gantry_machine *machine_of(int gpus, figures f)
{
    char text[4096];
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    int at = snprintf(text, sizeof text, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"}");
    for (int i = 0; i < gpus; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, ",{\"id\":\"m%d\",\"capacity\":\"8GiB\"}", i);
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"devices\":[");
    for (int i = 0; i < gpus; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "{\"id\":\"gpu%d\",\"type\":\"gpu\",\"memory\":\"m%d\",\"lanes\":2,\"multiprocessors\":40,"
                       "\"launch_us\":1.5,\"bandwidth_gbs\":1000,\"gflops\":{\"f32\":20000}%s%s},",
                       i, i, f.workers ? ",\"workers\":" : "", f.workers ? f.workers : "");
    at += snprintf(text + at, sizeof text - (size_t)at,
                   "{\"id\":\"cpu\",\"type\":\"cpu\",\"memory\":\"host\",\"use\":\"host\"}],\"routes\":["
                   "{\"from\":\"host\",\"to\":\"m*\",\"both\":true,\"latency_us\":5,\"bandwidth_gbs\":20}%s],"
                   "\"model\":{\"submit_us\":%g,\"start_us\":6}}",
                   gpus > 1 ? ",{\"from\":\"m*\",\"to\":\"m*\",\"latency_us\":4,\"bandwidth_gbs\":100}" : "",
                   f.submit_us);
    ck_assert_msg(!gantry_machine_parse(&m, text, strlen(text), "text", &err), "%s: %s", text, err.text);
    return m;
}

static gantry_schedule *schedule_of(gantry_graph *g, const gantry_machine *m, const char *replay, const char *objective)
{
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.replay = replay;
    o.objective = objective;
    o.effort = 0;
    ck_assert_msg(!gantry_schedule_new(&s, g, m, &o, &err), "%s", err.text);
    return s;
}

/* A few kernels of several sizes, some of which workers have no code for. */
static gantry_graph *mixed_graph(uint64_t seed, int nodes, bool nccl)
{
    char text[TEXT];
    int at = snprintf(text, sizeof text, "{\"gantry\":1,\"buffers\":{");
    for (int i = 0; i < 3; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s\"b%d\":{\"dtype\":\"f32\",\"shape\":[2,%u],\"split\":2,\"class\":\"state\"}", i ? "," : "",
                       i, 64u << draw(&seed, 18));
    at += snprintf(text + at, sizeof text - (size_t)at, "},\"nodes\":[");
    for (int i = 0; i < nodes; i++) {
        unsigned b = draw(&seed, 3), p = draw(&seed, 2);
        bool own = i > 0 && draw(&seed, 3) > 0; /* else it is all for workers, and planned so */
        if (nccl && i % 4 == 3)
            at += snprintf(text + at, sizeof text - (size_t)at,
                           ",{\"id\":\"c%d\",\"collective\":\"all_reduce\",\"op\":\"max\",\"on\":[0,1],\"in\":["
                           "\"b%u[0]\",\"b%u[1]\"],\"out\":[\"b%u[0]\",\"b%u[1]\"]}",
                           i, b, b, b, b);
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{\"id\":\"n%d\",\"kernel\":\"%s\",\"args\":{%s\"x\":\"b%u[%u]\",\"y\":\"b%u[%u]\"}}",
                       i ? "," : "", i, own ? "axpby" : "softmax", own ? "\"a\":0.5,\"b\":0.5," : "", b, p, b, !p);
    }
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    return parse_graph(text);
}

typedef struct measured {
    double pair[3][2], change, beside, submit;
} measured;

static double by_workers(const measured *m, double us)
{
    const double(*p)[2] = m->pair;
    if (us <= p[0][0])
        return p[0][1];
    int k = us > p[1][0] ? 1 : 0;
    return p[k][1] + (us - p[k][0]) * (p[k + 1][1] - p[k][1]) / (p[k + 1][0] - p[k][0]);
}

static bool has_lane(const gantry_schedule *s, uint32_t op, uint32_t lane)
{
    bool any = false;
    for (uint32_t k = 0; k < s->ops.at[op].lanes; k++)
        any = any || s->op_lane.at[s->ops.at[op].lane + k] == lane;
    return any;
}

/* Of kernels of workers behind ops of NCCL: 5 us for each device that has an op up to the next such op. */
static double cost_of_segments(const gantry_schedule *s, const uint8_t *has)
{
    double sum = 0;
    for (uint32_t d = 0; d < s->machine->devices; d++) {
        bool cut = false, paid = false;
        for (uint32_t i = 0; i < s->ops.count; i++) {
            if (s->ops.at[i].kind == GY_OP_COLLECTIVE && s->ops.at[i].algorithm == GY_ALGORITHM_NCCL) {
                cut = true;
                paid = false;
            }
            for (uint32_t k = 0; k < s->ops.at[i].lanes; k++) {
                bool pays = cut && !paid && has[i] && gy_op_device(s, &s->ops.at[i], k) == d;
                sum += pays ? 5 : 0;
                paid = paid || pays;
            }
        }
    }
    return sum;
}

/* From the definition alone, in microseconds. */
static double cost_of(const gantry_schedule *s, const measured *m, const uint8_t *has)
{
    double sum = cost_of_segments(s, has);
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        double us = (double)op->duration / 1e6, launched = gy_op_is_copy(op) ? us : us * m->beside;
        sum += has[i] ? by_workers(m, us) : launched > m->submit ? launched : m->submit;
        for (uint32_t l = 0; l < op->lanes; l++) {
            uint32_t k = i;
            while (k-- > 0 && !has_lane(s, k, s->op_lane.at[op->lane + l]))
                ;
            sum += k < i && has[k] != has[i] ? m->change : 0;
        }
    }
    for (size_t i = 0; i < s->sync.count; i++)
        if (s->sync.at[i].carrier != GY_CARRIER_LANE && s->sync.at[i].distance == 0)
            sum += has[s->sync.at[i].from] != has[s->sync.at[i].to] ? m->change : 0;
    return sum;
}

START_TEST(least_of_all)
{
    uint64_t state = (uint64_t)_i * 31;
    char workers[300];
    measured m = { { { 1.5, 0.3 + draw(&state, 10) / 10.0 }, { 6, 4 }, { 50, 60 + draw(&state, 60) } },
                   draw(&state, 60) / 10.0,
                   1 + draw(&state, 10) / 10.0,
                   draw(&state, 30) / 10.0 };
    snprintf(workers, sizeof workers,
             "{\"times_us\":[[%g,%g],[%g,%g],[%g,%g]],\"switch_us\":%g,\"start_us\":9,\"beside\":%g}", m.pair[0][0],
             m.pair[0][1], m.pair[1][0], m.pair[1][1], m.pair[2][0], m.pair[2][1], m.change, m.beside);
    bool nccl = _i % 4 == 3;
    gantry_graph *g = mixed_graph((uint64_t)_i, 10, nccl);
    gantry_machine *machine = machine_of(1 + _i % 2, (figures){ workers, m.submit });
    gantry_schedule *s = schedule_of(g, machine, "device", NULL);
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_COLLECTIVE)
            s->ops.at[i].algorithm = GY_ALGORITHM_NCCL;
    uint32_t ops = (uint32_t)s->ops.count, free_ops = 0, at[32];
    uint8_t can[64] = { 0 }, has[64] = { 0 }, other[64] = { 0 };
    ck_assert_uint_lt(ops, 64);
    for (uint32_t i = 0; i < ops; i++)
        if ((can[i] = gy_stretch_may(s, i)) && free_ops < 14)
            at[free_ops++] = i;
        else
            can[i] = 0;
    ck_assert(gy_stretches_known(s));
    ck_assert(!gy_stretches_choose(s, can, NULL, has, NULL));
    double least = cost_of(s, &m, has);
    for (uint32_t way = 0; way < 1u << free_ops; way++) {
        for (uint32_t k = 0; k < free_ops; k++)
            other[at[k]] = way >> k & 1;
        ck_assert_msg(cost_of(s, &m, other) > least - 1e-4, "way %u costs %g, the chosen one %g", way,
                      cost_of(s, &m, other), least);
    }
    for (uint32_t i = 0; i < ops; i++)
        ck_assert(can[i] || !has[i]);
    gantry_schedule_free(s);
    gantry_machine_free(machine);
    gantry_graph_free(g);
}
END_TEST

/* 10^6 sums count two operations each: 200 us at 10 GFLOP/s, behind the 0.4 of any op. Launched they take 17.5, and
 * by the pairs that were measured less than 30. A kernel of the library has its pairs alone, and so have all where
 * nothing was measured. */
START_TEST(formulas)
{
    static const char *const workers[] = {
        "{\"times_us\":[[1.5,0.4],[3,1.2],[50,90]],\"switch_us\":3,\"start_us\":9}",
        "{\"times_us\":[[1.5,0.4],[3,1.2],[50,90]],\"switch_us\":3,\"start_us\":9,\"formulas\":{\"f64\":10}}"
    };
    gantry_graph *g =
        parse_graph("{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f64\",\"shape\":[1000000],\"init\":1},"
                    "\"y\":{\"dtype\":\"f64\",\"shape\":[1000000]},\"z\":{\"dtype\":\"f64\",\"shape\":"
                    "[1000000]}},\"nodes\":[{\"id\":\"sum\",\"map\":{\"y\":\"x + x\"},\"args\":{\"x\":\"x\","
                    "\"y\":\"y\"}},{\"id\":\"copy\",\"kernel\":\"copy\",\"args\":{\"x\":\"x\",\"y\":\"z\"}}]}");
    for (int i = 0; i < 2; i++) {
        gantry_machine *m = machine_of(1, (figures){ workers[i], 1 });
        gantry_schedule *s = schedule_of(g, m, "graph", NULL);
        uint32_t found = 0;
        for (uint32_t op = 0; op < s->ops.count; op++) {
            const gy_op *o = &s->ops.at[op];
            if (o->kind != GY_OP_LAUNCH)
                continue;
            gy_ticks by_pairs = gy_worker_time(&m->device[0], o->duration), got = gy_stretch_costs_of(s, op).workers;
            bool is_sum = strcmp(g->nodes.at[o->node].id, "sum") == 0;
            ck_assert_int_eq(o->duration, gy_ticks_from_us(17.5));
            ck_assert_int_eq(got, is_sum && i ? gy_ticks_from_us(200.4) : by_pairs);
            found++;
        }
        ck_assert_uint_eq(found, 2);
        gantry_schedule_free(s);
        gantry_machine_free(m);
    }
    gantry_graph_free(g);
}
END_TEST

/* Two kernels of 17.5 us, one of which a flag may leave out: launched it takes 9 more, 26.5. By workers both take what
 * the pairs say of 17.5: 1.2, and 14.5 times 88.8 / 47. */
START_TEST(flags)
{
    gantry_graph *g = parse_graph(
        "{\"gantry\":1,\"buffers\":{\"f\":{\"dtype\":\"u8\",\"shape\":[1],\"init\":1},\"x\":{\"dtype\":\"f64\","
        "\"shape\":[1000000],\"init\":1},\"y\":{\"dtype\":\"f64\",\"shape\":[1000000],\"init\":0},\"z\":{\"dtype\":"
        "\"f64\",\"shape\":[1000000]}},\"nodes\":[{\"id\":\"may\",\"kernel\":\"copy\",\"args\":{\"x\":\"x\",\"y\":"
        "\"y\"},\"when\":{\"buffer\":\"f\"}},{\"id\":\"does\",\"kernel\":\"copy\",\"args\":{\"x\":\"x\",\"y\":\"z\"}}]"
        "}");
    static const char workers[] = "{\"times_us\":[[1.5,0.4],[3,1.2],[50,90]],\"switch_us\":3,\"start_us\":9}";
    gantry_machine *m = machine_of(1, (figures){ workers, 1 });
    gantry_schedule *s = schedule_of(g, m, "graph", NULL);
    uint32_t found = 0;
    for (uint32_t op = 0; op < s->ops.count; op++) {
        const gy_op *o = &s->ops.at[op];
        if (o->kind != GY_OP_LAUNCH)
            continue;
        bool asks = strcmp(g->nodes.at[o->node].id, "may") == 0;
        ck_assert_int_eq(o->duration, gy_ticks_from_us(asks ? 26.5 : 17.5));
        ck_assert_double_eq_tol(gy_ticks_to_us(gy_stretch_costs_of(s, op).workers), 1.2 + 14.5 * 88.8 / 47, 1e-4);
        found++;
    }
    ck_assert_uint_eq(found, 2);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- which way replay "auto" goes ---- */

/* Lists of rows, each step of which takes in the row before; `odd`: a kernel that workers have not stands between. */
static gantry_graph *steps_graph(int lists, int steps, int length, bool odd)
{
    char text[1200];
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[%d,%d],\"split\":%d,\"class\":\"state\"},"
             "\"y\":{\"dtype\":\"f32\",\"shape\":[%d,%d],\"split\":%d,\"class\":\"state\"}},\"nodes\":[{\"repeat\":%d,"
             "\"nodes\":["
             "{\"id\":\"a[i]\",\"for\":{\"i\":%d},\"kernel\":\"axpby\",\"args\":{\"a\":0.5,\"b\":0.5,\"x\":\"x[i]\","
             "\"y\":\"y[i]\"}},"
             "{\"id\":\"b[i]\",\"for\":{\"i\":%d},\"kernel\":\"axpby\",\"args\":{\"a\":0.5,\"b\":0.5,\"x\":\"y[i]\","
             "\"y\":\"x[i]\"}}%s]}]}",
             lists, length, lists, lists, length, lists, steps, lists, lists,
             odd ? ",{\"id\":\"s\",\"kernel\":\"softmax\",\"args\":{\"x\":\"x[0]\",\"y\":\"y[0]\"}}" : "");
    return parse_graph(text);
}

static const char quick[] = "{\"times_us\":[[1.5,0.4],[3,1.2],[50,90]],\"switch_us\":3,\"start_us\":9,\"beside\":1.2}";
static const char slow[] = "{\"times_us\":[[1.5,20],[3,40],[50,200]],\"switch_us\":30,\"start_us\":50,\"beside\":2}";

static const struct way {
    int lists, steps, length;
    bool odd;
    const char *workers, *objective;
    bool compared, by_device;
} ways[] = {
    { 16, 20, 64, false, quick, NULL, true, true },
    { 16, 20, 64, false, slow, NULL, true, false },
    { 16, 20, 64, false, NULL, NULL, false, false },    /* never where nothing was measured */
    { 2, 3, 1 << 24, false, quick, NULL, true, false }, /* large ops */
    { 16, 20, 64, false, quick, "period", false, false },
    { 16, 20, 64, true, quick, NULL, true, true }, /* mixed: few switches */
    { 1, 20, 64, true, quick, NULL, true, false }, /* two ops between switches */
    { 4, 1, 64, true, slow, NULL, true, false },
};

/* The most that a start by the devices may take if they are to have it. */
static gy_ticks least_by_device(const gantry_schedule *s)
{
    return (s->by_host - gy_ticks_from_us(GY_STRETCH_PAYS_US)) / (100 + GY_STRETCH_PAYS) * 100;
}

START_TEST(automatic)
{
    const struct way *w = &ways[_i];
    gantry_graph *g = steps_graph(w->lists, w->steps, w->length, w->odd);
    gantry_machine *m = machine_of(1, (figures){ w->workers, 1 });
    gantry_schedule *s = schedule_of(g, m, "auto", w->objective);
    char *text = NULL;
    ck_assert_int_eq(s->by_host > 0, w->compared);
    ck_assert_msg((s->replay == GY_REPLAY_DEVICE) == w->by_device, "%g us by launches, %g by the device",
                  gy_ticks_to_us(s->by_host), gy_ticks_to_us(s->by_device));
    ck_assert(!w->compared || (s->by_device <= least_by_device(s)) == w->by_device);
    ck_assert(!w->compared || s->makespan == (w->by_device && !w->odd ? s->by_device : s->by_host));
    ck_assert(!gantry_schedule_explain(s, gantry_graph_find_node(g, "a[0]"), &text, NULL, NULL));
    ck_assert_int_eq(strstr(text, "a start is predicted to take") != NULL, w->compared);
    ck_assert_int_eq(strstr(text, "carried out by the devices: by the devices\n") != NULL, w->by_device);
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* A loop that is not unrolled: the times are those of the whole. */
START_TEST(in_phases)
{
    gantry_graph *g = steps_graph(4, 100000, 64, _i);
    gantry_machine *m = machine_of(1, (figures){ quick, 1 });
    gantry_schedule *s = schedule_of(g, m, "auto", NULL);
    char *text = NULL;
    ck_assert_uint_gt(s->phases.count, 0);
    ck_assert_int_gt(s->by_host, gy_ticks_from_us(100000)); /* a launch a step is more */
    ck_assert_int_eq(s->replay == GY_REPLAY_DEVICE, s->by_device <= least_by_device(s));
    int64_t series = 0; /* starts behind the first of their phase */
    for (size_t i = 0; i < s->phases.count; i++) {
        ck_assert_int_eq(s->phases.at[i].schedule->replay, s->replay);
        series += s->phases.at[i].phase.starts - 1;
    }
    if (!_i) { /* workers carry out all: the 9 us of a start come once in a phase */
        ck_assert_int_eq(s->replay, GY_REPLAY_DEVICE);
        ck_assert_int_eq(s->makespan - s->by_device, series * gy_ticks_from_us(9));
    }
    ck_assert(!gantry_schedule_explain(s, gantry_graph_find_node(g, "a[0]"), &text, NULL, NULL));
    ck_assert_msg(strstr(text, "a start is predicted to take") != NULL, "%s", text);
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Each op of a schedule that goes by the device says what its stretch takes both ways. */
START_TEST(explained)
{
    gantry_graph *g = steps_graph(1, 3, 64, true);
    gantry_machine *m = machine_of(1, (figures){ quick, 1 });
    gantry_schedule *s = schedule_of(g, m, "device", NULL);
    char *text = NULL;
    ck_assert(!gantry_schedule_explain(s, gantry_graph_find_node(g, "s"), &text, NULL, NULL));
    ck_assert_msg(strstr(text, "it is launched, since workers have no code for it") != NULL, "%s", text);
    gantry_free(text);
    ck_assert(!gantry_schedule_explain(s, gantry_graph_find_node(g, "a[0]"), &text, NULL, NULL));
    ck_assert_msg(strstr(text, "by workers of a resident kernel it takes 0.4") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "it is launched; the 9 ops of its stretch take") != NULL, "%s", text);
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    g = steps_graph(8, 3, 64, true);
    s = schedule_of(g, m, "device", NULL);
    ck_assert(!gantry_schedule_explain(s, gantry_graph_find_node(g, "a[5]"), &text, NULL, NULL));
    ck_assert_msg(strstr(text, "  workers carry it out; the ") != NULL, "%s", text);
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Out of memory at each allocation in turn: said so, and nothing is left behind. */
START_TEST(no_memory)
{
    gantry_graph *g = steps_graph(8, 3, 64, true);
    gantry_machine *m = machine_of(1, (figures){ quick, 1 });
    gantry_schedule *s = schedule_of(g, m, "stream", NULL);
    gantry_status status[3] = { GANTRY_E_NOMEM, GANTRY_E_NOMEM, GANTRY_E_NOMEM };
    uint8_t can[512] = { 1, 1, 1 }, has[512];
    bool is_faster = false;
    int n = 0;
    ck_assert_uint_lt(s->ops.count, sizeof can);
    s->replay = GY_REPLAY_DEVICE; /* as far as explanations go */
    for (; (status[0] || status[1] || status[2]) && n < 100000; n++) {
        char *text = NULL;
        faults_after(n);
        status[0] = gy_stretches_choose(s, can, NULL, has, NULL);
        faults_after(n);
        status[1] = gantry_schedule_explain(s, gantry_graph_find_node(g, "a[0]"), &text, NULL, NULL);
        faults_after(n);
        status[2] = gy_by_device_try(&s, g, m, NULL, &is_faster, NULL); /* options are for plans of their own */
        faults_off();
        gantry_free(text);
        for (int i = 0; i < 3; i++)
            ck_assert_msg(!status[i] || status[i] == GANTRY_E_NOMEM, "allocation %d: %d", n, status[i]);
    }
    ck_assert(!status[0] && !status[1] && !status[2] && n > 10);
    ck_assert(is_faster && s->by_device < s->by_host);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stretches");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, small_cuts, 0, 50);
    tcase_add_test(tests, long_chain);
    tcase_add_loop_test(tests, least_of_all, 0, 60);
    tcase_add_loop_test(tests, automatic, 0, (int)(sizeof ways / sizeof *ways));
    tcase_add_test(tests, formulas);
    tcase_add_test(tests, flags);
    tcase_add_test(tests, explained);
    tcase_add_loop_test(tests, in_phases, 0, 2);
    TCase *memory = tcase_create("memory");
    tcase_add_test(memory, no_memory);
    suite_add_tcase(suite, memory);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
