/* SPDX-License-Identifier: Apache-2.0 */
/* Samples on a harness of the fake driver: how often what is timed is done, in graphs and on streams, and that it makes
 * no difference where a graph cannot be had. */
#include "backends/cuda/measure/harness.h"
#include "base/clock.h"
#include "control.h"
#include "suite.h"

#include <stdio.h>

typedef gantry_status sampling(gy_harness *harness, const gy_workload *workload, int64_t until_ns, gy_figure *figure,
                               gantry_error *err);
static sampling *const samplings[] = { gy_harness_sample, gy_harness_sample_nodes };

static gantry_status queue(gy_harness *harness, const void *what, gantry_error *err)
{
    return gy_harness_empty(harness, *(const gy_harness_lane *)what, err);
}

/* Kernels that ran in all. */
static int take(gy_harness *harness, sampling *sample, uint32_t most, int64_t until_ns, gy_figure *figure)
{
    gy_harness_lane lane = { 0, 0 };
    gy_workload workload = { .queue = queue, .what = &lane, .first_lane = lane, .most = most };
    int before = fakeCudaCalls("kernel");
    *figure = (gy_figure){ 0 };
    MUST(sample(harness, &workload, until_ns, figure, MUST_ERR));
    ck_assert(gy_harness_settle(harness));
    return fakeCudaCalls("kernel") - before;
}

static void open_harness(gy_harness *harness, gantry_machine **m)
{
    gy_harness_want want = { .bytes = 1 << 16, .host = 1 << 16, .patience = 5 };
    fakeCudaDevices(1, "all", 1 << 20);
    *m = gpu_machine(1, false);
    MUST(gy_harness_open(harness, *m, &want, MUST_ERR));
}

static void close_harness(gy_harness *harness, gantry_machine *m)
{
    char text[160];
    gy_harness_close(harness);
    gantry_machine_free(m);
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

/* However much time there is: never more often than may be, and the least of samples at least. */
START_TEST(no_more_than_may_be)
{
    gy_harness harness;
    gantry_machine *m;
    open_harness(&harness, &m);
    for (uint32_t most = 5; most <= 60; most++) {
        for (int later = 0; later < 2; later++) {
            gy_figure figure;
            int64_t until_ns = gy_now_ns() + later * INT64_C(10000000000);
            int ran = take(&harness, samplings[_i], most, until_ns, &figure);
            ck_assert_msg(ran <= (int)most, "%d times of %u", ran, most);
            ck_assert_uint_ge(figure.samples, GY_HARNESS_LEAST);
            ck_assert_uint_le(figure.samples, GY_HARNESS_SAMPLES);
            ck_assert(figure.us > 0 && figure.us < 1e6);
        }
    }
    close_harness(&harness, m);
}
END_TEST

START_TEST(as_often_as_there_is_time_for)
{
    gy_harness harness;
    gantry_machine *m;
    gy_figure figure;
    open_harness(&harness, &m);
    int ran = take(&harness, samplings[_i], 0, gy_now_ns(), &figure);
    ck_assert_uint_eq(figure.samples, GY_HARNESS_LEAST);
    ck_assert_int_gt(ran, 2 + GY_HARNESS_LEAST); /* it is short: many in a sample */
    take(&harness, samplings[_i], 0, gy_now_ns() + INT64_C(10000000000), &figure);
    ck_assert_uint_eq(figure.samples, GY_HARNESS_SAMPLES);
    close_harness(&harness, m);
}
END_TEST

/* By the host's clock a sample is what a start of a run is: the work and one event, behind two rounds of warming up
 * with an event at each end. */
START_TEST(by_the_clock_of_the_host)
{
    gy_harness harness;
    gantry_machine *m;
    gy_figure figure = { 0 };
    gy_harness_lane lane = { 0, 0 };
    gy_workload workload = { .queue = queue, .what = &lane, .first_lane = lane };
    open_harness(&harness, &m);
    int events = fakeCudaCalls("cuEventRecord"), launches = fakeCudaCalls("cuLaunchKernel");
    MUST(gy_harness_sample_wall(&harness, &workload, gy_now_ns(), &figure, MUST_ERR));
    ck_assert_uint_eq(figure.samples, GY_HARNESS_LEAST);
    ck_assert_int_eq(fakeCudaCalls("cuEventRecord") - events, 2 * 2 + GY_HARNESS_LEAST);
    ck_assert_int_eq(fakeCudaCalls("cuLaunchKernel") - launches, 2 + GY_HARNESS_LEAST);
    ck_assert(figure.us > 0 && gy_harness_settle(&harness));
    fakeCudaFail("cuEventRecord:6:1");
    ck_assert_int_eq(gy_harness_sample_wall(&harness, &workload, gy_now_ns(), &figure, NULL), GANTRY_E_DEVICE);
    fakeCudaFail(NULL);
    close_harness(&harness, m);
}
END_TEST

/* The third launch is the first that is captured, the fifth is in the middle. */
START_TEST(without_graphs)
{
    static const char *const fails[] = { "cuStreamBeginCapture:1:900", "cuLaunchKernel:3:1",
                                         "cuLaunchKernel:5:1",         "cuStreamEndCapture:1:901",
                                         "cuGraphUpload:1:1",          "cuGraphInstantiateWithFlags:1:2" };
    gy_harness harness;
    gantry_machine *m;
    gy_figure figure;
    open_harness(&harness, &m);
    for (uint32_t most = 0; most <= 14; most += 14) {
        int graphs = fakeCudaCalls("cuGraphLaunch");
        fakeCudaFail(fails[_i]);
        int ran = take(&harness, gy_harness_sample_nodes, most, gy_now_ns(), &figure);
        fakeCudaFail(NULL);
        ck_assert_int_eq(fakeCudaCalls("cuGraphLaunch"), graphs);
        ck_assert_msg(!most || ran <= (int)most, "%d times of %u", ran, most);
        ck_assert(figure.samples >= GY_HARNESS_LEAST && figure.us > 0);
    }
    close_harness(&harness, m);
}
END_TEST

/* Once it has a graph, failures are reported. */
START_TEST(failures_are_reported)
{
    static const char *const fails[] = { "cuLaunchKernel:1:1", "cuLaunchKernel:2:1", "cuGraphLaunch:1:1",
                                         "cuGraphLaunch:2:1", "cuEventElapsedTime:4:1" };
    gy_harness harness;
    gantry_machine *m;
    gy_harness_lane lane = { 0, 0 };
    gy_workload workload = { .queue = queue, .what = &lane, .first_lane = lane };
    gy_figure figure = { .us = 1, .samples = 1 };
    gantry_error err = { 0 };
    open_harness(&harness, &m);
    fakeCudaFail(fails[_i]);
    ck_assert_int_eq(gy_harness_sample_nodes(&harness, &workload, gy_now_ns(), &figure, &err), GANTRY_E_DEVICE);
    fakeCudaFail(NULL);
    ck_assert_int_eq(err.native, 1);
    close_harness(&harness, m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("harness");
    TCase *tests = tcase_create("samples");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, no_more_than_may_be, 0, 2);
    tcase_add_loop_test(tests, as_often_as_there_is_time_for, 0, 2);
    tcase_add_test(tests, by_the_clock_of_the_host);
    tcase_add_loop_test(tests, without_graphs, 0, 6);
    tcase_add_loop_test(tests, failures_are_reported, 0, 5);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
