/* SPDX-License-Identifier: Apache-2.0 */
/* Which times of a run count for a calibration, and the figures that are made of them. */
#include "run/samples.h"
#include "support/hand.h"
#include "support/run_suite.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which count ---- */

/* Two copies of 10 GB/s fit the bus, three do not; the wire to c is not the bus. */
#define MACHINE                                                                                                        \
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1TiB\"},{\"id\":\"a\",\"capacity\":"          \
    "\"1TiB\"},{\"id\":\"b\",\"capacity\":\"1TiB\"},{\"id\":\"c\",\"capacity\":\"1TiB\"}],\"devices\":["               \
    "{\"id\":\"a\",\"memory\":\"a\"},{\"id\":\"b\",\"memory\":\"b\"},{\"id\":\"c\",\"memory\":\"c\"}],"                \
    "\"resources\":{\"bus\":25,\"wire\":10},\"routes\":["                                                              \
    "{\"from\":\"host\",\"to\":[\"a\",\"b\"],\"bandwidth_gbs\":10,\"via\":[\"bus\"],\"both\":true},"                   \
    "{\"from\":\"host\",\"to\":\"c\",\"bandwidth_gbs\":10,\"via\":[\"wire\"],\"both\":true}]}"

enum { OPS = 24 };
static const uint32_t to_memory[] = { 1, 2, 3 };

static gantry_schedule *make_ops(void)
{
    gantry_schedule *s = hand_new(MACHINE);
    for (uint32_t i = 0; i < OPS; i++) {
        uint32_t d = i % 3;
        if (i % 2)
            hand_launch(s, "work", hand_lane(s, d, GY_LANE_COMPUTE), 1);
        else
            hand_move(s, hand_lane(s, d, GY_LANE_COPY), 0, to_memory[d], 1000);
    }
    return s;
}

static bool is_at_work(const gy_op_time *t, int64_t now)
{
    return t->start <= now && now < t->end;
}

/* The same by looking at every moment: what op i asks for is asked for by too many. */
static bool is_hindered(const gy_op_time *time, uint32_t i, int64_t now)
{
    uint32_t on_bus = 0, on_wire = 0, on_device = 0;
    if (!is_at_work(&time[i], now))
        return false;
    for (uint32_t k = 0; k < OPS; k++) {
        if (!is_at_work(&time[k], now))
            continue;
        on_bus += k % 2 == 0 && k % 3 < 2;
        on_wire += k % 2 == 0 && k % 3 == 2;
        on_device += k % 2 == 1 && k % 3 == i % 3;
    }
    return i % 2 ? on_device > 1 : i % 3 < 2 ? on_bus > 2 : on_wire > 1;
}

START_TEST(what_others_slow_down)
{
    gantry_schedule *s = make_ops();
    gy_op_time time[OPS];
    double us[OPS];
    bool ever[2] = { false, false };
    srand((unsigned)_i);
    for (uint32_t i = 0; i < OPS; i++) {
        time[i].start = rand() % 60;
        time[i].end = time[i].start + rand() % 12;
    }
    ck_assert(gy_samples_count(s, time, false, us));
    for (uint32_t i = 0; i < OPS; i++) {
        bool hindered = time[i].end == time[i].start;
        for (int64_t now = 0; now < 80; now++)
            hindered = hindered || is_hindered(time, i, now);
        ck_assert_msg((us[i] < 0) == hindered, "op %u counts: %g", i, us[i]);
        ck_assert(hindered || fabs(us[i] - (double)(time[i].end - time[i].start) / 1e3) < 1e-12);
        ever[hindered] = true;
    }
    ck_assert(ever[0] && ever[1]);
    gantry_schedule_free(s);
}
END_TEST

/* Where a device computes one op after the other, the next may seem to begin before the end, and takes what is left. */
START_TEST(one_after_the_other)
{
    static const struct {
        int64_t start, end;
        double us;
    } ops[] = { { 1000, 5000, 4 }, { 4500, 9000, 4 }, { 8000, 8900, -1 }, { 9500, 9700, 0.2 }, { 9700, 9700, -1 } };
    enum { COUNT = sizeof ops / sizeof *ops };
    gantry_schedule *s = hand_new(MACHINE);
    gy_op_time time[COUNT + 2];
    double us[COUNT + 2];
    for (uint32_t i = 0; i < COUNT; i++) {
        hand_launch(s, "work", hand_lane(s, 0, GY_LANE_COMPUTE), 1);
        time[i] = (gy_op_time){ ops[i].start, ops[i].end };
    }
    hand_launch(s, "work", hand_lane(s, 1, GY_LANE_COMPUTE), 1);
    hand_move(s, hand_lane(s, 0, GY_LANE_COPY), 0, 1, 1000);
    time[COUNT] = time[COUNT + 1] = (gy_op_time){ 2000, 4000 };
    ck_assert(gy_samples_count(s, time, true, us));
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert_msg(fabs(us[i] - ops[i].us) < 1e-12, "op %u: %g", i, us[i]);
    ck_assert(fabs(us[COUNT] - 2) < 1e-12 && fabs(us[COUNT + 1] - 2) < 1e-12); /* of another device; a copy */
    gantry_schedule_free(s);
}
END_TEST

/* ---- figures ---- */

static const char graph_text[] =
    "{\"gantry\":1,\"name\":\"g\",\"buffers\":{"
    "\"x\":{\"dtype\":\"f32\",\"shape\":[4000],\"split\":4,\"init\":1},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[4000],\"split\":4,\"init\":1,\"output\":true},"
    "\"t\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":0,\"output\":true}},\"nodes\":["
    "{\"id\":\"saxpy[i]\",\"for\":{\"i\":4},\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x[i]\",\"y\":\"y[i]\"}},"
    "{\"id\":\"sum[i]\",\"for\":{\"i\":4},\"kernel\":\"reduce_sum\",\"args\":{\"x\":\"y[i]\",\"out\":\"t\"}}]}";

typedef struct made {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    gantry_run *run;
} made;

static made make_run(const char *backend, int trace)
{
    made w = { 0 };
    gantry_error err = { 0 };
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    ro.backend = backend;
    ro.record_trace = trace;
    ck_assert_msg(!gantry_graph_parse(&w.g, graph_text, strlen(graph_text), "g", NULL, NULL, &err) &&
                      !gantry_machine_virtual(&w.m, 2, &err) && !gantry_schedule_new(&w.s, w.g, w.m, NULL, &err) &&
                      !gantry_run_new(&w.run, w.s, &ro, &err),
                  "%s", err.text);
    return w;
}

static void end(made *w)
{
    gantry_run_free(w->run);
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
}

static void start(const made *w)
{
    uint64_t ticket;
    ck_assert_int_eq(gantry_run_start(w->run, &ticket, NULL), GANTRY_OK);
    ck_assert_int_eq(gantry_run_wait(w->run, ticket, NULL), GANTRY_OK);
}

/* Times as if they had been measured, in start k: of saxpy, of the sums, of copies to a device; none of others. */
static void pretend(const made *w, size_t k, double saxpy, double sum, double upload)
{
    double *us = w->run->samples->start.at[k];
    for (size_t i = 0; i < w->s->ops.count; i++) {
        const gy_op *op = &w->s->ops.at[i];
        const char *id = op->node == GY_NONE ? "" : w->s->node_ids.at[op->node];
        us[i] = !strncmp(id, "saxpy", 5) ? saxpy : !strncmp(id, "sum", 3) ? sum : -1;
        if (gy_op_is_copy(op) && w->s->instances.at[w->s->use.at[op->use].instance].memory == 0)
            us[i] = upload;
    }
}

static gantry_machine *calibrated(const made *w)
{
    gantry_machine *m = NULL;
    ck_assert_int_eq(gantry_run_calibrated(&m, w->run, NULL), GANTRY_OK);
    return m;
}

START_TEST(medians)
{
    made w = make_run("host", 1);
    for (int i = 0; i < 4; i++) {
        start(&w);
        ck_assert_int_eq(gantry_run_sample(w.run, NULL), GANTRY_OK);
    }
    pretend(&w, 0, 1e9, 1e9, 1e9); /* a warm-up */
    pretend(&w, 1, 40, -1, 7);
    pretend(&w, 2, 4000, -1, -1);
    pretend(&w, 3, 50, -1, 9);
    gantry_machine *m = calibrated(&w);
    const gy_kernel_table *t = gy_machine_kernel(m, "saxpy", GANTRY_F32, "cpu");
    ck_assert_ptr_null(gy_machine_kernel(m, "reduce_sum", GANTRY_F32, "cpu")); /* it never counted */
    ck_assert_uint_eq(t->points, 1);
    ck_assert_int_eq(t->point[0].bytes, t->by_flops ? 2000 : 12000); /* 1000 elements, 2 flops and 12 bytes each */
    ck_assert_int_eq(t->point[0].time, gy_ticks_from_us(50));
    ck_assert_uint_eq(m->calibration.quality[GY_FAMILY_KERNELS].samples, 3 * 4);
    ck_assert_double_eq_tol(gantry_machine_copy_us(m, 0, 1, 4000), 8, 1e-6); /* between 7 and 9 */
    ck_assert_double_eq_tol(gantry_machine_copy_us(m, 1, 0, 4000), gantry_machine_copy_us(w.m, 1, 0, 4000), 1e-9);
    gantry_machine_free(m);
    end(&w);
}
END_TEST

START_TEST(a_single_start_counts)
{
    made w = make_run("host", 1);
    start(&w);
    ck_assert_int_eq(gantry_run_sample(w.run, NULL), GANTRY_OK);
    pretend(&w, 0, 11, 3, -1);
    gantry_machine *m = calibrated(&w);
    ck_assert_int_eq(gy_machine_kernel(m, "saxpy", GANTRY_F32, "cpu")->point[0].time, gy_ticks_from_us(11));
    ck_assert_int_eq(gy_machine_kernel(m, "reduce_sum", GANTRY_F32, "cpu")->point[0].time, gy_ticks_from_us(3));
    gantry_machine_free(m);
    end(&w);
}
END_TEST

START_TEST(no_more_than_are_kept)
{
    made w = make_run("host", 1);
    for (int i = 0; i < GY_SAMPLES_MOST + 3; i++) {
        start(&w);
        ck_assert_int_eq(gantry_run_sample(w.run, NULL), GANTRY_OK);
    }
    ck_assert_uint_eq(w.run->samples->start.count, GY_SAMPLES_MOST);
    end(&w);
}
END_TEST

/* ---- calls that are refused ---- */

static void refused(const made *w, const char *want)
{
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_run_sample(w->run, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, want);
}

START_TEST(refusals)
{
    static const char none[] =
        "the run has measured no times; set record_trace in its options, with a back end that executes";
    gantry_error err = { 0 };
    gantry_machine *m = NULL;
    made sim = make_run("sim", 1), silent = make_run("host", 0), w = make_run("host", 1);
    start(&sim);
    refused(&sim, none);
    start(&silent);
    refused(&silent, none);
    refused(&w, "there are no times of a whole start yet; call gantry_run_wait on one that succeeds");
    ck_assert_int_eq(gantry_run_calibrated(&m, w.run, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "no start was sampled; call gantry_run_sample after one has ended");
    ck_assert_int_eq(gantry_run_calibrated(NULL, w.run, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text,
                     "gantry_run_calibrated was called with NULL for `machine`; pass what its header asks for");
    ck_assert_int_eq(gantry_run_calibrated(&m, NULL, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "gantry_run_calibrated was called with NULL for `run`; pass what its header asks for");
    ck_assert_int_eq(gantry_run_sample(NULL, &err), GANTRY_E_INVALID);
    end(&sim);
    end(&silent);
    end(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run: samples");
    TCase *c = tcase_create("samples");
    tcase_add_loop_test(c, what_others_slow_down, 0, 200);
    tcase_add_test(c, one_after_the_other);
    tcase_add_test(c, medians);
    tcase_add_test(c, a_single_start_counts);
    tcase_add_test(c, no_more_than_are_kept);
    tcase_add_test(c, refusals);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
