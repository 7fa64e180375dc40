/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring what workers take, on emulated GPUs: which figures there are, what a machine makes of them, and that a
 * schedule and its run go by them. Times mean nothing. */
#include "control.h"
#include "rings.h"

#include "machine/calibrate.h"
#include "run/measure/workers.h"
#include "schedule/stretches/stretches.h"
#include <stdio.h>
#include <string.h>

static void check_alive(void)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

/* Large sizes, which would take long here, do not fit. */
static gantry_machine *little_machine(int gpus)
{
    gantry_machine *m = gpu_machine(gpus, false);
    for (uint32_t i = 1; i < m->memories; i++) {
        m->memory[i].capacity = 400000;
        m->memory[i].reserved = 0;
    }
    return m;
}

/* Formulas cannot be compiled here. */
static void check_notes(const char *notes)
{
    for (const char *line = notes; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        ck_assert_msg(strncmp(line, "not measured: formulas of ", 26) == 0, "%s", line);
}

START_TEST(figures)
{
    int gpus = 1 + _i;
    gy_measured what = { .copies = { 0 } };
    gantry_machine *made = NULL;
    fakeCudaDevices(gpus, "all", 0);
    gantry_machine *m = little_machine(gpus);
    MUST(gy_measure_workers(&what, m, m, 200, MUST_ERR));
    check_notes(what.notes.at);
    ck_assert_uint_eq(what.workers.count, 1);
    const gy_measured_workers *w = &what.workers.at[0];
    ck_assert_str_eq(w->kind, m->device[0].kind);
    ck_assert_uint_eq(w->pairs.count, 2);
    for (size_t i = 0; i < w->pairs.count; i++) {
        ck_assert(w->pairs.at[i].launched.us > 0 && w->pairs.at[i].launched.samples >= 3);
        ck_assert(w->pairs.at[i].by_workers.us > 0 && w->pairs.at[i].by_workers.samples >= 3);
    }
    ck_assert(w->change.us >= 0 && w->start.us >= 0 && w->beside >= 1);
    MUST(gy_machine_calibrated(&made, m, &what, MUST_ERR));
    ck_assert(!gy_machine_knows_workers(m) && gy_machine_knows_workers(made));
    ck_assert_uint_eq(made->calibration.quality[GY_FAMILY_WORKERS].figures, 2);
    for (int d = 0; d < gpus; d++)
        ck_assert_int_eq(gy_worker_time(&made->device[d], gy_ticks_from_us(w->pairs.at[1].launched.us)),
                         gy_ticks_from_us(w->pairs.at[1].by_workers.us));
    gantry_machine_free(made);
    gantry_machine_free(m);
    gy_measured_free(&what);
    check_alive();
}
END_TEST

/* No figures at all, so that nothing goes by them, where one thing is missing. */
START_TEST(refused)
{
    static const char *const why[] = { "workers copy within a GPU, between GPUs that reach each other",
                                       "a debugger stops kernels", "there was no time left for larger ops" };
    gy_measured what = { .copies = { 0 } };
    fakeCudaDevices(2, _i == 0 ? "none" : "all", 0);
    fakeCudaDebug(_i == 1);
    gantry_machine *m = little_machine(2);
    MUST(gy_measure_workers(&what, m, m, _i == 2 ? 0 : 60, MUST_ERR));
    fakeCudaDebug(0);
    ck_assert_uint_eq(what.workers.count, 0);
    ck_assert_msg(what.notes.length && strstr(what.notes.at, "not measured: what workers of resident kernels take: ") &&
                      strstr(what.notes.at, why[_i]),
                  "%s", what.notes.at);
    gantry_machine_free(m);
    gy_measured_free(&what);
    check_alive();
}
END_TEST

/* ---- a run goes by the figures ---- */

/* GPUs whose figures are these; of what was measured, a switch counts most. */
static gantry_machine *figured(int gpus, double workers_us, double switch_us)
{
    char text[4000];
    gantry_machine *m = NULL;
    int at = snprintf(text, sizeof text,
                      "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\","
                      "\"pinned\":true}");
    for (int i = 0; i < gpus; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, ",{\"id\":\"m%d\",\"capacity\":\"256MiB\"}", i);
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"devices\":[");
    for (int i = 0; i < gpus; i++)
        at +=
            snprintf(text + at, sizeof text - (size_t)at,
                     "{\"id\":\"gpu%d\",\"type\":\"gpu\",\"memory\":\"m%d\",\"lanes\":2,\"launch_us\":2,\"ordinal\":%d,"
                     "\"workers\":{\"times_us\":[[2,%g],[100,%g]],\"switch_us\":%g,\"start_us\":9}},",
                     i, i, i, workers_us, workers_us + 200, switch_us);
    snprintf(text + at, sizeof text - (size_t)at,
             "{\"id\":\"cpu\",\"type\":\"cpu\",\"memory\":\"host\",\"use\":\"host\"}],\"routes\":[{\"from\":\"*\","
             "\"to\":\"*\",\"latency_us\":5,\"bandwidth_gbs\":20}]}");
    MUST(gantry_machine_parse(&m, text, strlen(text), "text", MUST_ERR));
    return m;
}

/* Each list: `ops` small kernels, one that workers have not, as many again; lists beside each other. */
static gantry_graph *sandwich(int ops)
{
    char text[1600];
    gantry_graph *g = NULL;
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[4,64],\"split\":4,\"init\":\"iota\"},"
             "\"y\":{\"dtype\":\"f32\",\"shape\":[4,64],\"split\":4,\"init\":\"iota\",\"output\":true}},\"nodes\":["
             "{\"for\":{\"k\":3},\"nodes\":[{\"for\":{\"i\":4},\"nodes\":[{\"id\":\"a[k,i,j]\",\"for\":{\"j\":%d},"
             "\"kernel\":\"axpby\",\"args\":{\"a\":0.5,\"b\":0.25,\"x\":\"x[i]\",\"y\":\"y[i]\"}},"
             "{\"id\":\"s[k,i]\",\"kernel\":\"scan\",\"args\":{\"x\":\"y[i]\",\"y\":\"x[i]\"}}]}]}]}",
             ops);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

static const struct measured_case {
    int ops;
    double workers_us, switch_us;
    const char *replay;
} cases[] = {
    { 2, 0.1, 0.2, "device and stream; not by the device alone: op " }, /* two ops pay for two switches */
    { 8, 0.1, 20, "stream; not by the device: as was measured, launches take less time than workers for each stretch" },
    { 8, 0.1, 0.5, "device and stream; not by the device alone: op " },
    { 8, 3, 0, "stream; not by the device: as was measured, launches take less time than workers for each stretch" },
};

START_TEST(by_figures)
{
    const struct measured_case *c = &cases[_i % 4];
    char replay[512];
    int gpus = 1 + _i / 4 % 2;
    fakeCudaDevices(gpus, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    gantry_graph *g = sandwich(c->ops);
    gantry_machine *m = figured(gpus, c->workers_us, c->switch_us);
    gantry_schedule *s = make_schedule(g, m, "device", "round-robin");
    int launches = fakeCudaCalls("cuLaunchCooperativeKernel");
    compare_with_host(g, s, 3, replay, sizeof replay);
    ck_assert_msg(strncmp(replay, c->replay, strlen(c->replay)) == 0, "%s", replay);
    ck_assert_int_eq(fakeCudaCalls("cuLaunchCooperativeKernel") > launches, c->replay[0] == 'd');
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    check_alive();
}
END_TEST

/* Replay "auto" takes the device by itself where the figures say so. */
START_TEST(automatic)
{
    static const struct {
        double workers_us;
        const char *replay;
    } way[] = { { 0.1, "device" }, { 30, "stream" } };
    char replay[512];
    fakeCudaDevices(2, "all", 0);
    gantry_graph *g = ring_of(0, 8, 12, 64, false);
    gantry_machine *m = figured(2, way[_i].workers_us, 1);
    gantry_schedule *s = make_schedule(g, m, "auto", "round-robin");
    compare_with_host(g, s, 3, replay, sizeof replay);
    ck_assert_str_eq(replay, way[_i].replay);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    check_alive();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measured workers");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, figures, 0, 2);
    tcase_add_loop_test(tests, refused, 0, 3);
    tcase_add_loop_test(tests, by_figures, 0, 16);
    tcase_add_loop_test(tests, automatic, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
