/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Machines made from measured figures, held against those figures: copies alone and many at once, carried out by the
 * simulator, take as long as was measured. Figures are invented like those of an HGX board with eight H200 and of a PCI
 * machine on which only some pairs reach each other; then drawn by lot.
 */
#include "base/memory.h"
#include "machine/calibrate.h"
#include "machine/gpus.h"
#include "sim/sim.h"
#include "suite.h"
#include "support/hand.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 8 /* GPUs */
#define EACH (INT64_C(256) << 20)

/* The true rates and latencies of a machine, in GB/s and us. Memory g + 1 is that of GPU g. */
typedef struct truth {
    uint32_t gpus;
    bool peer[MOST][MOST];
    double alone[MOST][MOST], latency;
    double out[MOST], in[MOST], both[MOST], pairs;
    double to_host[MOST], from_host[MOST], host_latency;
    double host_out, host_in, host_both;
} truth;

static gy_figure figure(double us)
{
    return (gy_figure){ us, us / 200, 20 };
}

/* Latency hides behind nothing: it is what the smallest copies take. */
static double copy_us(double latency, double gbs, double bytes)
{
    return latency + bytes / (gbs * 1e3);
}

static void measure_copy(gy_measured *w, uint32_t from, uint32_t to, double latency, double gbs)
{
    gy_measured_copy c = { .from = from, .to = to };
    for (double bytes = 256; bytes < 2e9; bytes *= 4) {
        gy_measured_point p = { bytes, figure(copy_us(latency, gbs, bytes - 256)), 0 };
        ck_assert(gy_vec_push(&c.points, p));
    }
    ck_assert(gy_vec_push(&w->copies, c));
}

/* ---- several copies at once ---- */

typedef struct flows {
    uint32_t from[2 * MOST], to[2 * MOST], count;
} flows;

static void flow(flows *f, uint32_t from, uint32_t to)
{
    f->from[f->count] = from;
    f->to[f->count++] = to;
}

static flows flows_of(const truth *t, gy_traffic_pattern what, uint32_t g)
{
    flows f = { .count = 0 };
    for (uint32_t k = 0; k < t->gpus; k++) {
        uint32_t next = (k + 1) % t->gpus;
        if (what == GY_TRAFFIC_OUT && k != g && t->peer[g][k])
            flow(&f, g + 1, k + 1);
        if (what == GY_TRAFFIC_IN && k != g && t->peer[k][g])
            flow(&f, k + 1, g + 1);
        if (what == GY_TRAFFIC_BOTH && k == (g + 1) % t->gpus && t->peer[g][k] && t->peer[k][g]) {
            flow(&f, g + 1, k + 1);
            flow(&f, k + 1, g + 1);
        }
        if (what == GY_TRAFFIC_PAIRS && t->peer[k][next])
            flow(&f, k + 1, next + 1);
        if (what == GY_TRAFFIC_HOST_OUT || what == GY_TRAFFIC_HOST_BOTH)
            flow(&f, 0, k + 1);
        if (what == GY_TRAFFIC_HOST_IN || what == GY_TRAFFIC_HOST_BOTH)
            flow(&f, k + 1, 0);
    }
    return f;
}

static void measure_traffic(gy_measured *w, const truth *t, gy_traffic_pattern what, uint32_t g, double gbs)
{
    bool host = what >= GY_TRAFFIC_HOST_OUT, whole = host || what == GY_TRAFFIC_PAIRS;
    flows f = flows_of(t, what, g);
    double bytes = (double)EACH * f.count, us = copy_us(host ? t->host_latency : t->latency, gbs, bytes);
    gy_measured_traffic traffic = { what, whole ? GY_MACHINE_NONE : g + 1, bytes, figure(us) };
    if (f.count && gbs > 0)
        ck_assert(gy_vec_push(&w->traffic, traffic));
}

static void measure(gy_measured *w, const truth *t)
{
    for (uint32_t g = 0; g < t->gpus; g++) {
        measure_copy(w, 0, g + 1, t->host_latency, t->from_host[g]);
        measure_copy(w, g + 1, 0, t->host_latency, t->to_host[g]);
        for (uint32_t k = 0; k < t->gpus; k++)
            if (k != g) /* where there is no peer access, what the driver's two copies take: of no use */
                measure_copy(w, g + 1, k + 1, t->peer[g][k] ? t->latency : 50, t->peer[g][k] ? t->alone[g][k] : 7);
        measure_traffic(w, t, GY_TRAFFIC_OUT, g, t->out[g]);
        measure_traffic(w, t, GY_TRAFFIC_IN, g, t->in[g]);
        measure_traffic(w, t, GY_TRAFFIC_BOTH, g, t->both[g]);
    }
    measure_traffic(w, t, GY_TRAFFIC_PAIRS, 0, t->pairs);
    measure_traffic(w, t, GY_TRAFFIC_HOST_OUT, 0, t->host_out);
    measure_traffic(w, t, GY_TRAFFIC_HOST_IN, 0, t->host_in);
    measure_traffic(w, t, GY_TRAFFIC_HOST_BOTH, 0, t->host_both);
}

/* The machine as it is detected, before anybody measures. */
static gantry_machine *detected(const truth *t)
{
    gy_gpu list[MOST] = { 0 };
    uint8_t peer[MOST * MOST] = { 0 };
    gy_gpus gpus = { .at = list, .peer = peer, .count = t->gpus };
    gantry_machine *m = NULL;
    for (uint32_t g = 0; g < t->gpus; g++) {
        list[g] = (gy_gpu){ .name = "NVIDIA H200", .ordinal = (int)g, .numa = -1, .major = 9, .bytes = 150109880320 };
        list[g].copy_engines = 3;
        for (uint32_t k = 0; k < t->gpus; k++)
            peer[g * t->gpus + k] = t->peer[g][k];
    }
    setenv("HWLOC_SYNTHETIC", "node:2(memory=64000000000) core:8 pu:2", 1);
    ck_assert_int_eq(gy_machine_detect(&m, &gpus, NULL), GANTRY_OK);
    unsetenv("HWLOC_SYNTHETIC");
    m->start = m->submit = m->issue = 0; /* so that what is simulated is the time of copies */
    return m;
}

static gantry_machine *calibrated(const gantry_machine *m, const gy_measured *w)
{
    gantry_machine *made = NULL;
    ck_assert_int_eq(gy_machine_calibrated(&made, m, w, NULL), GANTRY_OK);
    return made;
}

static char *json_of(const gantry_machine *m)
{
    char *text = NULL;
    ck_assert_int_eq(gantry_machine_json(m, &text, NULL, NULL), GANTRY_OK);
    return text;
}

#define ANY                                                                                                            \
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":9}],\"devices\":[{\"id\":\"d\",\"memory\":"     \
    "\"host\"}]}"

/* All at once, each in a lane of its own that no copy engine stands behind. */
static double simulate(const gantry_machine *m, const flows *f, int64_t each)
{
    gantry_schedule *s = hand_new(ANY);
    gantry_machine_free(s->machine);
    s->machine = gy_machine_ref(m);
    while (s->slab.count < m->memories)
        ck_assert(gy_vec_push(&s->slab, UINT64_C(0)));
    for (uint32_t i = 0; i < f->count; i++)
        hand_move(s, hand_lane(s, 0, GY_LANE_COMPUTE), f->from[i], f->to[i], each);
    ck_assert_int_eq(gy_sim_run(s, NULL), GANTRY_OK);
    double us = gy_ticks_to_us(s->makespan);
    gantry_schedule_free(s);
    return us;
}

static void near(double got, double want, const char *what, uint32_t i)
{
    ck_assert_msg(fabs(got / want - 1) < 0.03, "%s %u: %.3f us, not %.3f", what, i, got, want);
}

static void check_traffic(const gantry_machine *m, const truth *t, const gy_measured *w)
{
    static const char *const names[] = { "out", "in", "both", "pairs", "host out", "host in", "host both" };
    for (size_t i = 0; i < w->traffic.count; i++) {
        const gy_measured_traffic *r = &w->traffic.at[i];
        uint32_t g = r->memory == GY_MACHINE_NONE ? 0 : r->memory - 1;
        flows f = flows_of(t, r->what, g);
        near(simulate(m, &f, EACH), r->time.us, names[r->what], g);
    }
}

static void check_alone(const gantry_machine *m, const truth *t, const gy_measured *w)
{
    for (size_t i = 0; i < w->copies.count; i++) {
        const gy_measured_copy *c = &w->copies.at[i];
        if (c->from && c->to && !t->peer[c->from - 1][c->to - 1]) {
            ck_assert_ptr_nonnull(gy_machine_route(m, c->from, c->to)->hop[1]);
            continue;
        }
        for (size_t k = 0; k < c->points.count; k += 3) {
            flows f = { { c->from }, { c->to }, 1 };
            double want = c->points.at[k].time.us;
            near(gantry_machine_copy_us(m, c->from, c->to, (uint64_t)c->points.at[k].work), want, "route", c->to);
            near(simulate(m, &f, (int64_t)c->points.at[k].work), want, "alone", c->to);
        }
    }
}

static bool has_resource(const gantry_machine *m, const char *id)
{
    for (uint32_t i = 0; i < m->resources; i++)
        if (!strcmp(m->resource[i].id, id))
            return true;
    return false;
}

static gantry_machine *check_truth(const truth *t)
{
    gy_measured w = { 0 };
    gantry_machine *m = detected(t), *again = NULL;
    measure(&w, t);
    gantry_machine *made = calibrated(m, &w);
    check_alone(made, t, &w);
    check_traffic(made, t, &w);
    char *text = json_of(made);
    ck_assert_int_eq(gantry_machine_parse(&again, text, strlen(text), "again", NULL), GANTRY_OK);
    char *text2 = json_of(again);
    ck_assert_str_eq(text, text2);
    gantry_free(text);
    gantry_free(text2);
    gantry_machine_free(m);
    gantry_machine_free(again);
    gy_measured_free(&w);
    return made;
}

/* ---- two computers ---- */

START_TEST(hgx)
{
    truth t = { .gpus = 8, .latency = 1.72, .host_latency = 9, .pairs = 8 * 390.4 };
    t.host_out = 163.5;
    t.host_in = 158;
    t.host_both = 204;
    for (uint32_t g = 0; g < 8; g++) {
        t.out[g] = 396.3;
        t.in[g] = 397.2;
        t.both[g] = 783.2;
        t.from_host[g] = 55.3 + 0.1 * (g % 3);
        t.to_host[g] = 55.2;
        for (uint32_t k = 0; k < 8; k++) {
            t.peer[g][k] = k != g;
            t.alone[g][k] = 395.8 + 0.1 * ((g + 3 * k) % 8);
        }
    }
    gantry_machine *m = check_truth(&t);
    ck_assert(has_resource(m, "gpu3.out") && has_resource(m, "gpu3.from_host") && has_resource(m, "host.both"));
    ck_assert(!has_resource(m, "gpu3.link_out")); /* NVLink is not the way to the host */
    for (uint32_t i = 0; i < m->notes; i++)
        ck_assert(strncmp(m->note[i], "assumed", 7) != 0);
    ck_assert_uint_eq(m->calibration.quality[GY_FAMILY_COPIES].samples, 20);
    ck_assert_double_eq_tol(m->calibration.quality[GY_FAMILY_COPIES].worst, 0.005, 1e-9);
    gantry_machine_free(m);
}
END_TEST

START_TEST(pci)
{
    truth t = { .gpus = 4, .latency = 7, .host_latency = 11, .pairs = 31 };
    t.host_out = 61;
    t.host_in = 57;
    t.host_both = 74;
    for (uint32_t g = 0; g < 4; g++) {
        t.peer[g][g ^ 1] = true;
        t.alone[g][g ^ 1] = 20 + 0.5 * g;
        t.out[g] = t.alone[g][g ^ 1];
        t.in[g] = t.alone[g ^ 1][g];
        t.both[g] = g % 2 ? 0 : 29; /* the next of the others is not to be reached */
        t.from_host[g] = 24.5;
        t.to_host[g] = 26;
    }
    gantry_machine *m = check_truth(&t);
    ck_assert(has_resource(m, "gpu0.link_out") && has_resource(m, "gpu2.both") && has_resource(m, "peers"));
    /* A copy to the host and one to the neighbour share the wires. */
    flows f = { { 1, 1 }, { 0, 2 }, 2 };
    ck_assert_double_gt(simulate(m, &f, EACH), 2.0 * EACH / 26e3);
    gantry_machine_free(m);
}
END_TEST

/* ---- any computer ---- */

static uint64_t lot;

static double draw(double low, double high)
{
    lot = lot * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (high - low) * (double)(lot >> 33) / (double)(UINT64_C(1) << 31);
}

/* The fastest of the copies alone, and all of them together. */
static void add_up(const truth *t, const flows *f, double *fastest, double *sum)
{
    *fastest = *sum = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        double alone = t->alone[f->from[i] - 1][f->to[i] - 1];
        *fastest = fmax(*fastest, alone);
        *sum += alone;
    }
}

/* So many times what one does, but no more than the sum. */
static double together(const truth *t, gy_traffic_pattern what, uint32_t g, double times)
{
    flows f = flows_of(t, what, g);
    double fastest, sum;
    add_up(t, &f, &fastest, &sum);
    return fmax(fastest, fmin(times * fastest, 0.98 * sum));
}

/* Several at once get no less than one alone, and no more than the sum; a port in both directions no less than in one.
 * Whoever measures otherwise has something else between than ports. */
static void draw_peers(truth *t)
{
    double most = 0, least = 1e9, fastest, sum, scale = draw(10, 400);
    double out = draw(1, 7), in = draw(1, 7), both = draw(1, 2);
    for (uint32_t g = 0; g < t->gpus; g++)
        for (uint32_t k = 0; k < t->gpus; k++) {
            t->peer[g][k] = k != g && draw(0, 1) < 0.8;
            t->alone[g][k] = scale * draw(0.98, 1.02);
        }
    for (uint32_t g = 0; g < t->gpus; g++) {
        t->out[g] = together(t, GY_TRAFFIC_OUT, g, out);
        t->in[g] = together(t, GY_TRAFFIC_IN, g, in);
        most = fmax(most, fmax(t->out[g], t->in[g]));
    }
    for (uint32_t g = 0; g < t->gpus; g++) {
        flows pair = flows_of(t, GY_TRAFFIC_BOTH, g);
        add_up(t, &pair, &fastest, &sum);
        t->both[g] = pair.count ? fmin(fmax(both * scale, 1.001 * most), sum) : 0;
        least = pair.count ? fmin(least, t->both[g] / sum) : least;
    }
    flows ring = flows_of(t, GY_TRAFFIC_PAIRS, 0);
    add_up(t, &ring, &fastest, &sum);
    most = fmax(most, fmin(both, 2) * scale * 1.03);
    t->pairs = most < 0.98 * sum * fmin(least, 1) ? draw(most, 0.98 * sum * fmin(least, 1)) : 0;
}

START_TEST(by_lot)
{
    truth t = { .gpus = 2 + (uint32_t)_i % 7, .latency = 1 + _i % 9, .host_latency = 5 + _i % 5 };
    lot = (uint64_t)_i;
    draw(0, 1);
    draw_peers(&t);
    double link = draw(10, 60), all = link * t.gpus;
    for (uint32_t g = 0; g < t.gpus; g++)
        t.from_host[g] = t.to_host[g] = link * draw(0.98, 1);
    t.host_out = draw(link, 0.97 * all);
    t.host_in = fmin(fmax(link, t.host_out * draw(0.8, 1.2)), 0.97 * all);
    t.host_both = draw(fmax(t.host_out, t.host_in), 2 * fmin(t.host_out, t.host_in)); /* ends together */
    gantry_machine_free(check_truth(&t));
}
END_TEST

/* ---- noise and parts ---- */

/* However noisy: no time falls, none is longer than measured, and each was measured at that size or a larger one. */
START_TEST(noise)
{
    truth t = { .gpus = 2, .peer = { { false, true }, { true, false } } };
    gantry_machine *m = detected(&t);
    gy_measured w = { 0 };
    gy_measured_copy c = { .from = 1, .to = 2 };
    lot = (uint64_t)_i;
    for (double bytes = 256; bytes < 2e9; bytes *= 3)
        ck_assert(gy_vec_push(&c.points, ((gy_measured_point){ bytes, figure((2 + bytes / 4e5) * draw(1, 4)), 0 })));
    ck_assert(gy_vec_push(&w.copies, c));
    gantry_machine *made = calibrated(m, &w);
    const gy_route *r = gy_machine_route(made, 1, 2);
    for (uint32_t i = 0; i < r->points; i++) {
        gy_ticks least = GY_TICKS_MAX;
        for (size_t k = 0; k < c.points.count; k++)
            if (c.points.at[k].work >= (double)r->point[i].bytes && gy_ticks_from_us(c.points.at[k].time.us) < least)
                least = gy_ticks_from_us(c.points.at[k].time.us);
        ck_assert_int_eq(r->point[i].time, least);
        ck_assert(i == 0 || r->point[i].bytes > r->point[i - 1].bytes);
    }
    ck_assert_int_gt(r->point[r->points - 1].time, r->point[r->points - 2].time);
    ck_assert_ptr_null(strstr(made->note[0], "measured"));
    gy_measured_free(&w);
    gantry_machine_free(m);
    gantry_machine_free(made);
}
END_TEST

#define TWO                                                                                                            \
    "{'gantry_machine':1,'source':'by hand','notes':['assumed: all','mine'],'memories':[{'id':'host','capacity':9},"   \
    "{'id':'a','capacity':9}],'devices':[{'id':'a','kind':'k','memory':'a','launch_us':3}],'resources':{'bus':12},"    \
    "'routes':[{'from':'*','to':'*','latency_us':5,'bandwidth_gbs':10,'via':['bus']}],'kernels':["                     \
    "{'kernel':'gemm','dtype':'f32','kind':'k','by':'flops','points':[[100,10],[1000,20],[10000,100]]}]}"

static gy_measured_points points_of(size_t count, const double *work, const double *us)
{
    gy_measured_points p = { 0 };
    for (size_t i = 0; i < count; i++)
        ck_assert(gy_vec_push(&p, ((gy_measured_point){ work[i], figure(us[i]), 0 })));
    return p;
}

/* Copies of one size, three times as slow as the file says: so are all others. A copy that is faster than the bus was
 * thought to be raises it. */
START_TEST(parts_of_a_route)
{
    gantry_machine *m = machine_of(TWO);
    gy_measured w = { 0 };
    double size = 1e6, us = 3 * (5 + 1e6 / 1e4), fast = (5 + 1e6 / 1e4) / 4;
    gy_measured_copy up = { .from = 0, .to = 1, .partial = true }, down = { .from = 1, .to = 0, .partial = true };
    up.points = points_of(1, &size, &us);
    down.points = points_of(1, &size, &fast);
    ck_assert(gy_vec_push(&w.copies, up) && gy_vec_push(&w.copies, down));
    gantry_machine *made = calibrated(m, &w);
    for (uint64_t bytes = 0; bytes < UINT64_C(40000000000); bytes = bytes * 7 + 100000) {
        double was = gantry_machine_copy_us(m, 0, 1, bytes);
        ck_assert_double_eq_tol(gantry_machine_copy_us(made, 0, 1, bytes) / was, 3, 1e-5);
        ck_assert_double_eq_tol(gantry_machine_copy_us(made, 1, 0, bytes) / was, 0.25, 1e-5);
    }
    ck_assert_int_ge(made->resource[0].rate, INT64_C(47999000000)); /* 12, of which one copy has 10: four times that */
    ck_assert_int_le(made->resource[0].rate, INT64_C(48001000000));
    flows f = { { 1 }, { 0 }, 1 };
    near(simulate(made, &f, 1000000), fast, "alone", 0);
    ck_assert_uint_eq(made->notes, 3);
    ck_assert_str_eq(made->note[0], "assumed: all"); /* some sizes are not all there is to know */
    ck_assert_str_eq(made->source, "measured: copies; else: by hand");
    gy_measured_free(&w);
    gantry_machine_free(m);
    gantry_machine_free(made);
}
END_TEST

/* Figures of copies by kernels take the place of what the file said; runs say nothing of them. */
START_TEST(copies_by_kernels)
{
    gantry_machine *m = machine_of(TWO), *next;
    gy_measured w = { 0 };
    double size[] = { 4096, 16384, 1e8 }, us[] = { 2, 3, 1e4 };
    gy_measured_copy up = { .from = 0, .to = 1, .kernel_bytes = 16384 };
    up.points = points_of(3, size, us);
    ck_assert(gy_vec_push(&w.copies, up));
    gantry_machine *made = calibrated(m, &w);
    ck_assert_int_eq(gy_machine_route(made, 0, 1)->kernel_bytes, 16384);
    ck_assert_int_eq(gy_machine_route(made, 1, 0)->kernel_bytes, 0);
    w.copies.at[0].kernel_bytes = 0;
    w.copies.at[0].partial = true;
    next = calibrated(made, &w);
    ck_assert_int_eq(gy_machine_route(next, 0, 1)->kernel_bytes, 16384);
    gantry_machine_free(next);
    w.copies.at[0].partial = false;
    next = calibrated(made, &w);
    ck_assert_int_eq(gy_machine_route(next, 0, 1)->kernel_bytes, 0);
    gy_measured_free(&w);
    gantry_machine_free(m);
    gantry_machine_free(made);
    gantry_machine_free(next);
}
END_TEST

static double kernel_us(const gantry_machine *m, double work)
{
    const gy_kernel_table *t = gy_machine_kernel(m, "gemm", GANTRY_F32, "k");
    return gy_ticks_to_us(gy_kernel_time(t, work, m->device[0].launch));
}

/* A launch is what the shortest kernel of its kind takes, where there is one that takes longer than one that does
 * nothing. */
START_TEST(the_shortest_kernel)
{
    static const double work[] = { 100, 1000 }, us[] = { 1.5, 4 }, shorter[] = { 0.5, 4 };
    static const struct {
        const double *us;
        const char *kind;
        double launch;
    } cases[] = { { us, "k", 1.5 }, { shorter, "k", 0.75 }, { us, "other", 0.75 } };
    gantry_machine *m = machine_of(TWO);
    for (size_t i = 0; i < 3; i++) {
        gy_measured w = { 0 };
        gy_measured_device d = { .device = 0, .graph_node = figure(0.75) };
        gy_measured_kernel k = { .name = "copy", .kind = cases[i].kind, .dtype = GANTRY_F32 };
        k.points = points_of(2, work, cases[i].us);
        ck_assert(gy_vec_push(&w.devices, d) && gy_vec_push(&w.kernels, k));
        gantry_machine *made = calibrated(m, &w);
        ck_assert_int_eq(made->device[0].launch, gy_ticks_from_us(cases[i].launch));
        gy_measured_free(&w);
        gantry_machine_free(made);
    }
    gantry_machine_free(m);
}
END_TEST

/* TWO, and what the host takes: read, written, kept by a selection, by a run's kernels, and by what was not measured.
 */
START_TEST(what_the_host_takes)
{
    static const double work[] = { 100, 1000 }, us[] = { 0.5, 4 };
    static const double given[] = { 2, 3, 11 };
    static const struct {
        gy_measured_device device;
        double submit, start, launch;
    } cases[] = { { { .launch = { 5, 0, 3 } }, 5, 11, 3 },
                  { { .graph_node = { 0.75, 0, 3 } }, 3, 11, 0.75 },
                  { { .graph_node = { 0.75, 0, 3 }, .graph_launch = { 8.75, 0, 3 } }, 3, 8, 0.75 },
                  { { .signal = { 2, 0, 3 } }, 3, 11, 3 } };
    char text[sizeof TWO + 160];
    snprintf(text, sizeof text,
             "%.*s,'model':{'issue_us':2,'submit_us':3,'start_us':11,'another_us':7,'edge_us':6,'gate_us':2.5,"
             "'when_us':8,'left_out_us':4}}",
             (int)strlen(TWO) - 1, TWO);
    gantry_machine *m = machine_of(text), *plain = machine_of(TWO), *eight = load_machine("hgx-h200-8"), *two = NULL;
    char *json = json_of(m), *without = json_of(plain);
    eight->issue = m->issue;
    eight->submit = m->submit;
    eight->start = m->start;
    eight->another = m->another;
    eight->edge = m->edge;
    eight->gate = m->gate;
    eight->when = m->when;
    eight->left_out = m->left_out;
    ck_assert(!gantry_machine_select(&two, eight, "2", NULL));
    gantry_machine *list[] = { m, two, machine_of(json) };
    for (size_t i = 0; i < 3; i++)
        ck_assert(list[i]->issue == gy_ticks_from_us(given[0]) && list[i]->submit == gy_ticks_from_us(given[1]) &&
                  list[i]->start == gy_ticks_from_us(given[2]) && list[i]->another == gy_ticks_from_us(7) &&
                  list[i]->edge == gy_ticks_from_us(6) && list[i]->gate == gy_ticks_from_us(2.5) &&
                  list[i]->when == gy_ticks_from_us(8) && list[i]->left_out == gy_ticks_from_us(4));
    ck_assert(machine_hash(m) == machine_hash(list[2]) && machine_hash(m) != machine_hash(plain));
    ck_assert(!strstr(without, "issue_us") && !strstr(without, "submit_us") && !strstr(without, "start_us") &&
              !strstr(without, "another_us"));
    ck_assert(!strstr(without, "edge_us") && !strstr(without, "gate_us"));
    ck_assert(!strstr(without, "when_us") && !strstr(without, "left_out_us"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gy_measured w = { 0 };
        gy_measured_kernel k = { .name = "copy", .kind = "k", .dtype = GANTRY_F32, .partial = true };
        k.points = points_of(2, work, us);
        ck_assert(gy_vec_push(&w.devices, cases[i].device) && gy_vec_push(&w.kernels, k));
        gantry_machine *made = calibrated(m, &w);
        ck_assert_int_eq(made->issue, gy_ticks_from_us(given[0]));
        ck_assert_int_eq(made->submit, gy_ticks_from_us(cases[i].submit));
        ck_assert_int_eq(made->start, gy_ticks_from_us(cases[i].start));
        ck_assert_int_eq(made->device[0].launch, gy_ticks_from_us(cases[i].launch));
        gy_measured_free(&w);
        gantry_machine_free(made);
    }
    for (size_t i = 0; i < 3; i++)
        gantry_machine_free(list[i]);
    gantry_machine_free(plain);
    gantry_machine_free(eight);
    gantry_free(json);
    gantry_free(without);
}
END_TEST

static gantry_machine *with_gemm(const gantry_machine *m, bool partial, bool by_flops)
{
    static const double work[] = { 1000, 2000 }, us[] = { 40, 60 };
    gy_measured w = { 0 };
    gy_measured_kernel k = {
        .name = "gemm", .kind = "k", .dtype = GANTRY_F32, .by_flops = by_flops, .partial = partial
    };
    k.points = points_of(2, work, us);
    ck_assert(gy_vec_push(&w.kernels, k));
    gantry_machine *made = calibrated(m, &w);
    gy_measured_free(&w);
    return made;
}

/* The time that ops add to a batch is measured by a calibration of the whole machine, and kept by those of runs. */
START_TEST(batches)
{
    static const double work[] = { 1000, 2000 }, us[] = { 40, 60 }, more[] = { 1, 2 };
    gantry_machine *m = machine_of(TWO);
    gy_measured w = { 0 };
    gy_measured_kernel k = { .name = "gemm", .kind = "k", .dtype = GANTRY_F32, .by_flops = true };
    k.points = points_of(2, work, us);
    k.batched = points_of(2, work, more);
    ck_assert(gy_vec_push(&w.kernels, k));
    gantry_machine *made = calibrated(m, &w), *part = with_gemm(made, true, true),
                   *whole = with_gemm(made, false, true);
    gy_measured_free(&w);
    ck_assert_int_eq(gy_kernel_batched(gy_machine_kernel(m, "gemm", GANTRY_F32, "k"), 1500), GY_TICKS_MAX);
    ck_assert_int_eq(gy_kernel_batched(gy_machine_kernel(made, "gemm", GANTRY_F32, "k"), 1500), 1500000);
    ck_assert_int_eq(gy_kernel_batched(gy_machine_kernel(part, "gemm", GANTRY_F32, "k"), 1500), 1500000);
    ck_assert_int_eq(gy_kernel_batched(gy_machine_kernel(whole, "gemm", GANTRY_F32, "k"), 1500), GY_TICKS_MAX);
    gantry_machine_free(m);
    gantry_machine_free(made);
    gantry_machine_free(part);
    gantry_machine_free(whole);
}
END_TEST

static const gy_device *gpu_of(const gantry_machine *m)
{
    for (uint32_t i = 0; i < m->devices; i++)
        if (m->device[i].gpu)
            return &m->device[i];
    return NULL;
}

/* Both figures of nodes with a flag, or neither. */
START_TEST(nodes_with_a_flag)
{
    static const gy_figure when = { 7, 0, 3 }, left_out = { 3, 0, 3 };
    gantry_machine *m = machine_of(TWO);
    for (int i = 0; i < 4; i++) {
        gy_measured w = { 0 };
        w.when = i & 1 ? when : w.when;
        w.left_out = i & 2 ? left_out : w.left_out;
        gantry_machine *made = calibrated(m, &w);
        ck_assert_int_eq(made->when, i == 3 ? gy_ticks_from_us(7) : 0);
        ck_assert_int_eq(made->left_out, i == 3 ? gy_ticks_from_us(3) : 0);
        gantry_machine_free(made);
    }
    gantry_machine_free(m);
}
END_TEST

/* The time without the launch, or without the least of workers, of which one is 2 us and the other 1;
 * what was not measured stays, and of times that are launches hardly anything can be said. */
START_TEST(formulas)
{
    gantry_machine *m = machine_of("{'gantry_machine':1,'memories':[{'id':'host','capacity':'8GiB'},{'id':'a',"
                                   "'capacity':'1GiB'}],'devices':[{'id':'g','kind':'big','type':'gpu','memory':'a',"
                                   "'launch_us':2,'formulas':{'f16':7}}],'routes':[{'from':'host','to':'a','both':true,"
                                   "'bandwidth_gbs':1}]}");
    gy_measured_pair pairs[] = { { { 2, 0, 3 }, { 1, 0, 3 } }, { { 5, 0, 3 }, { 6, 0, 3 } } };
    gy_measured_workers workers = { .kind = "big", .pairs = { pairs, 2, 2 }, .beside = 1 };
    gy_measured_formulas f[] = { { "big", GANTRY_F32, 1e6, { 12, 0, 3 }, { 0, 0, 0 } },
                                 { "big", GANTRY_F64, 1e6, { 52, 0, 3 }, { 101, 0, 3 } },
                                 { "big", GANTRY_I32, 1e6, { 3, 0, 3 }, { 0, 0, 0 } },
                                 { "small", GANTRY_F32, 1e6, { 9, 0, 3 }, { 9, 0, 3 } } };
    gy_measured w = { .workers = { &workers, 1, 1 }, .formulas = { f, 4, 4 } };
    gantry_machine *made = calibrated(m, &w);
    const gy_device *d = gpu_of(made);
    ck_assert_double_eq_tol(d->formulas[GANTRY_F32], 100, 1e-9);
    ck_assert_double_eq_tol(d->formulas[GANTRY_F64], 20, 1e-9);
    ck_assert_double_eq_tol(d->formulas[GANTRY_I32], 1e3 / 3, 1e-9);
    ck_assert_double_eq_tol(d->formulas[GANTRY_F16], 7, 1e-9);
    ck_assert_double_eq_tol(d->workers.formulas[GANTRY_F64], 10, 1e-9);
    ck_assert_double_eq(d->workers.formulas[GANTRY_F32], 0);
    ck_assert_double_eq(gpu_of(m)->formulas[GANTRY_F32], 0);
    gantry_machine_free(made);
    gantry_machine_free(m);
}
END_TEST

static gantry_machine *with_pieces(const gantry_machine *m, bool partial, size_t pieces)
{
    /* 1000 bytes in one piece take 40 us, 2000 60, and so on: 50 us are the work of 1500, 120 of 4000; 30 of fewer than
     * there are, so that such pieces take no less than longer ones. */
    static const double work[] = { 1000, 2000 }, us[] = { 40, 60 }, bytes[] = { 8, 32, 64, 128 },
                        time[] = { 120, 30, 50, 40 };
    gy_measured w = { 0 };
    gy_measured_kernel k = { .name = "copy", .kind = "k", .dtype = GANTRY_F32, .partial = partial };
    k.points = points_of(2, work, us);
    if (pieces)
        k.strided = points_of(pieces, bytes, time);
    k.strided_work = 1000;
    ck_assert(gy_vec_push(&w.kernels, k));
    gantry_machine *made = calibrated(m, &w);
    gy_measured_free(&w);
    return made;
}

START_TEST(pieces_of_a_kernel)
{
    gantry_machine *m = machine_of(TWO), *made = with_pieces(m, false, 4), *part = with_pieces(made, true, 0),
                   *whole = with_pieces(made, false, 0);
    static const double bytes[] = { 8, 32, 64, 128 }, want[] = { 4, 1.5, 1.5, 1 };
    for (size_t i = 0; i < 4; i++) {
        const gy_kernel_table *t = gy_machine_kernel(made, "copy", GANTRY_F32, "k");
        ck_assert_double_eq_tol(gy_kernel_strided(t, bytes[i]), want[i], 1e-9);
        t = gy_machine_kernel(part, "copy", GANTRY_F32, "k");
        ck_assert_double_eq_tol(gy_kernel_strided(t, bytes[i]), want[i], 1e-9);
        t = gy_machine_kernel(whole, "copy", GANTRY_F32, "k"); /* the last that speaks of all has not measured them */
        ck_assert_double_eq(gy_kernel_strided(t, bytes[i]), 1);
    }
    char *text = json_of(made);
    ck_assert_ptr_nonnull(strstr(text, "\"strided\": [[8, 4], [32, 1.5], [64, 1.5], [128, 1]] }"));
    gantry_free(text);
    gantry_machine_free(m);
    gantry_machine_free(made);
    gantry_machine_free(part);
    gantry_machine_free(whole);
}
END_TEST

START_TEST(parts_of_a_kernel)
{
    gantry_machine *m = machine_of(TWO);
    gantry_machine *whole = with_gemm(m, false, true), *part = with_gemm(m, true, true),
                   *other = with_gemm(m, true, false);
    ck_assert_uint_eq(whole->kernels, 1);
    ck_assert_uint_eq(gy_machine_kernel(whole, "gemm", GANTRY_F32, "k")->points, 2);
    ck_assert(!gy_machine_kernel(other, "gemm", GANTRY_F32, "k")->by_flops);
    ck_assert_uint_eq(gy_machine_kernel(other, "gemm", GANTRY_F32, "k")->points, 2);
    for (double work = 10; work < 1e6; work *= 1.7) /* what was measured by itself says more than nodes of a graph */
        ck_assert_double_eq_tol(kernel_us(part, work), kernel_us(m, work), 1e-9);
    gantry_machine *again = with_gemm(part, true, true);
    char *a = json_of(part), *b = json_of(again);
    ck_assert_str_eq(a, b); /* the same figures once more change nothing */
    gantry_free(a);
    gantry_free(b);
    gantry_machine_free(m);
    gantry_machine_free(whole);
    gantry_machine_free(part);
    gantry_machine_free(other);
    gantry_machine_free(again);
}
END_TEST

/* Figures of all sizes replace what was known; figures of some leave what the others had. */
START_TEST(shares_of_a_kernel)
{
    static const double work[] = { 100, 1000 }, us[] = { 10, 20 };
    gantry_machine *m = machine_of(TWO);
    gy_measured w = { 0 };
    gy_measured_kernel k = { .name = "gemm", .kind = "k", .dtype = GANTRY_F32, .by_flops = true };
    k.points = points_of(2, work, us);
    k.points.at[0].share = 125;
    ck_assert(gy_vec_push(&w.kernels, k));
    gantry_machine *made = calibrated(m, &w);
    const gy_kernel_table *t = gy_machine_kernel(made, "gemm", GANTRY_F32, "k");
    ck_assert(t->share && t->points == 2 && t->share[0] == 125 && t->share[1] == GY_WHOLE_DEVICE);
    w.kernels.at[0].partial = true;
    w.kernels.at[0].points.at[0] = (gy_measured_point){ 550, figure(15), 0 };
    w.kernels.at[0].points.count = 1;
    gantry_machine *part = calibrated(made, &w);
    t = gy_machine_kernel(part, "gemm", GANTRY_F32, "k");
    ck_assert(t->share && t->points == 2 && t->share[0] == 125 && t->share[1] == GY_WHOLE_DEVICE);
    gy_measured_free(&w);
    gantry_machine_free(m);
    gantry_machine_free(made);
    gantry_machine_free(part);
}
END_TEST

static gantry_machine *with_case(const gantry_machine *m, const char *arguments, double work, double us)
{
    gy_measured w = { 0 };
    gy_measured_kernel k = { .name = "copy", .kind = "k", .dtype = GANTRY_F32, .partial = true }, all = k;
    k.arguments = arguments;
    k.points = points_of(1, &work, &us);
    all.points = points_of(1, &work, &us);
    ck_assert(gy_vec_push(&w.kernels, all) && gy_vec_push(&w.kernels, k));
    gantry_machine *made = calibrated(m, &w);
    gy_measured_free(&w);
    return made;
}

static void check_point(const gantry_machine *m, uint32_t i, int64_t work, double us)
{
    const gy_kernel_table *t = gy_machine_kernel(m, "copy", GANTRY_F32, "k");
    ck_assert_uint_lt(i, t->points);
    ck_assert_int_eq(t->point[i].bytes, work);
    ck_assert_int_eq(t->point[i].time, gy_ticks_from_us(us));
}

/* A table that nodes of graphs began goes on to be made of them; each has its own time, the last one measured. */
START_TEST(exact_arguments)
{
    gantry_machine *m = machine_of(TWO), *a = with_case(m, "100 100", 1000, 10), *b = with_case(a, "300 300", 3000, 20),
                   *c = with_case(b, "30x10 30x10", 3010, 50), *d = with_case(c, "100 100", 1000, 12);
    ck_assert_uint_eq(a->kernels, m->kernels + 2);
    ck_assert_uint_eq(d->kernels, m->kernels + 4);
    check_point(a, 0, 1000, 10);
    check_point(b, 0, 1000, 10);
    check_point(b, 1, 3000, 20);
    check_point(c, 0, 1000, 10);
    check_point(c, 1, 3010, 50); /* of about the same work: the later one */
    check_point(d, 0, 1000, 12);
    check_point(d, 1, 3010, 50);
    static const struct {
        const char *text;
        double us;
    } exact[] = { { "100 100", 12 }, { "300 300", 20 }, { "30x10 30x10", 50 } };
    for (size_t i = 0; i < 3; i++) {
        const gy_kernel_table *t = gy_machine_case(d, "copy", GANTRY_F32, "k", exact[i].text);
        ck_assert(t && t->points == 1 && t->point[0].time == gy_ticks_from_us(exact[i].us));
    }
    gantry_machine *list[] = { m, a, b, c, d };
    for (size_t i = 0; i < 5; i++)
        gantry_machine_free(list[i]);
}
END_TEST

/* ---- everything else ---- */

START_TEST(launches_collectives_facts)
{
    gantry_machine *m = load_machine("hgx-h200-8");
    gy_measured w = { 0 };
    static const double size[] = { 1024, 1 << 20, 1 << 24 }, us[] = { 30, 25, 80 };
    gy_measured_device d = { .device = 2,
                             .launch = figure(3.25),
                             .graph_node = figure(0.75),
                             .graph_launch = figure(11.5),
                             .signal = figure(2.5),
                             .clock_mhz = 1980 };
    gy_measured_collective c = { .collective = GANTRY_ALL_GATHER, .algorithm = GY_ALGORITHM_NCCL, .kind = "h200" };
    c.ranks = 8;
    c.points = points_of(3, size, us);
    ck_assert(gy_vec_push(&w.devices, d) && gy_vec_push(&w.collectives, c));
    w.issue = figure(1.25);
    w.edge = figure(5.5);
    w.gate = figure(2.25);
    gy_text_add(&w.fingerprint, "driver: 580.65\nCUDA: 13.0\n");
    gantry_machine *made = calibrated(m, &w);
    ck_assert_int_eq(made->device[2].launch, gy_ticks_from_us(0.75));
    ck_assert_int_eq(made->submit, gy_ticks_from_us(3.25));
    ck_assert_int_eq(made->start, gy_ticks_from_us(10.75));
    ck_assert_int_eq(made->device[1].launch, m->device[1].launch);
    ck_assert_int_eq(made->issue, gy_ticks_from_us(1.25));
    ck_assert_int_eq(made->edge, gy_ticks_from_us(5.5));
    ck_assert_int_eq(made->gate, gy_ticks_from_us(2.25));
    ck_assert_int_eq(made->device[2].signal, gy_ticks_from_us(2.5));
    ck_assert_int_eq(made->device[1].signal, m->device[1].signal);
    ck_assert_uint_eq(made->tables, m->tables); /* one of them replaced */
    const gy_collective_table *t = gy_machine_table(made, GANTRY_ALL_GATHER, GY_ALGORITHM_NCCL, "h200", 8);
    ck_assert_int_eq(gy_points_time(t->point, t->points, 1), gy_ticks_from_us(25));
    ck_assert_int_eq(gy_points_time(t->point, t->points, 1 << 24), gy_ticks_from_us(80));
    ck_assert_uint_eq(made->calibration.facts, 2);
    ck_assert_str_eq(made->calibration.fact[1].name, "CUDA");
    ck_assert_str_eq(made->calibration.fact[1].value, "13.0");
    ck_assert_str_eq(made->note[made->notes - 1],
                     "measured gpu2: launch in a stream 3.25 us, node of a graph 0.75 us, start of a "
                     "graph 11.5 us, signal 2.5 us, clock 1980 MHz");
    gantry_machine *again = calibrated(made, &w); /* notes of the same are not heaped up */
    ck_assert_uint_eq(again->notes, made->notes);
    ck_assert_str_eq(again->source, made->source);
    gy_measured_free(&w);
    gantry_machine_free(m);
    gantry_machine_free(made);
    gantry_machine_free(again);
}
END_TEST

/* A few figures more do not make the many that there were any better, or fewer. */
START_TEST(quality_of_both)
{
    truth t = { .gpus = 2, .peer = { { false, true }, { true, false } }, .latency = 2, .host_latency = 9 };
    for (uint32_t g = 0; g < 2; g++)
        t.alone[g][1 - g] = t.to_host[g] = t.from_host[g] = 50;
    gantry_machine *whole = check_truth(&t);
    const gy_quality *many = &whole->calibration.quality[GY_FAMILY_COPIES];
    gy_measured w = { 0 };
    gy_measured_copy c = { .from = 1, .to = 2, .partial = true };
    ck_assert(gy_vec_push(&c.points, ((gy_measured_point){ 1e6, { 25, 10, 3 }, 0 })) && gy_vec_push(&w.copies, c));
    gantry_machine *made = calibrated(whole, &w);
    const gy_quality *both = &made->calibration.quality[GY_FAMILY_COPIES];
    ck_assert_uint_eq(both->figures, many->figures);
    ck_assert_uint_eq(both->samples, 3);
    ck_assert_double_eq_tol(both->worst, 0.4, 1e-9);
    ck_assert_uint_eq(made->notes, whole->notes); /* the line on copies is replaced */
    gy_measured_free(&w);
    gantry_machine_free(whole);
    gantry_machine_free(made);
}
END_TEST

/* However odd the figures: what is made can be read back. */
START_TEST(odd_figures)
{
    static const double work[] = { -5, 0, 1, 2, 3, 1e6, 1e300, NAN }, us[] = { 1, 5, 0, NAN, 1e12, 4e8, 1, 1 };
    gantry_machine *m = machine_of(TWO), *again = NULL;
    gy_measured w = { 0 };
    gy_measured_copy c = { .from = _i & 2 ? 1 : 0, .to = _i & 2 ? 0 : 1, .partial = _i % 2 };
    gy_measured_kernel k = { .name = "gemm", .kind = "k", .dtype = GANTRY_F32, .by_flops = true, .partial = _i % 2 };
    gy_measured_traffic t = { GY_TRAFFIC_HOST_OUT, GY_MACHINE_NONE, _i % 3 ? 1e300 : 1e-9, figure(1e5) };
    c.points = points_of(8, work, us);
    k.points = points_of(8, work, us);
    ck_assert(gy_vec_push(&w.copies, c) && gy_vec_push(&w.kernels, k));
    if (_i >= 4)
        ck_assert(gy_vec_push(&w.traffic, t));
    gantry_machine *made = calibrated(m, &w);
    char *text = json_of(made);
    gantry_error err = { 0 };
    gantry_status status = gantry_machine_parse(&again, text, strlen(text), "again", &err);
    ck_assert_msg(status == GANTRY_OK, "%s: %s\n%s", err.where, err.text, text);
    gantry_free(text);
    gy_measured_free(&w);
    gantry_machine_free(m);
    gantry_machine_free(made);
    gantry_machine_free(again);
}
END_TEST

/* Nothing measured: the same machine. */
START_TEST(nothing)
{
    gantry_machine *m = load_machine("dgx1-v100");
    gy_measured w = { 0 };
    gantry_machine *made = calibrated(m, &w);
    char *a = json_of(m), *b = json_of(made);
    ck_assert_str_eq(a, b);
    gantry_free(a);
    gantry_free(b);
    gantry_machine_free(m);
    gantry_machine_free(made);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("machine: calibrated");
    TCase *c = tcase_create("calibrated");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, hgx);
    tcase_add_test(c, pci);
    tcase_add_loop_test(c, by_lot, 0, 150);
    tcase_add_loop_test(c, noise, 0, 40);
    tcase_add_test(c, parts_of_a_route);
    tcase_add_test(c, copies_by_kernels);
    tcase_add_test(c, batches);
    tcase_add_test(c, nodes_with_a_flag);
    tcase_add_test(c, formulas);
    tcase_add_test(c, pieces_of_a_kernel);
    tcase_add_test(c, parts_of_a_kernel);
    tcase_add_test(c, shares_of_a_kernel);
    tcase_add_test(c, exact_arguments);
    tcase_add_test(c, launches_collectives_facts);
    tcase_add_test(c, the_shortest_kernel);
    tcase_add_test(c, what_the_host_takes);
    tcase_add_test(c, quality_of_both);
    tcase_add_loop_test(c, odd_figures, 0, 12);
    tcase_add_test(c, nothing);
    suite_add_tcase(s, c);
    return run_suite(s);
}
