/* SPDX-License-Identifier: Apache-2.0 */
/* A machine whose GPUs carry starts out by themselves, figure by figure against the one that it was made of. */
#include "suite.h"

static const char text[] =
    "{'gantry_machine':1,'memories':[{'id':'host','capacity':'8GiB'},{'id':'a','capacity':'1GiB'},"
    "{'id':'b','capacity':'1GiB'}],'devices':[{'id':'cpu','type':'cpu','memory':'host','launch_us':0.3},"
    "{'id':'g0','kind':'big','type':'gpu','memory':'a','lanes':4,'multiprocessors':132,'launch_us':1.3,'signal_us':3.4}"
    ","
    "{'id':'g1','kind':'odd','type':'gpu','memory':'b','lanes':80,'signal_us':0.5}],"
    "'routes':[{'from':'a','to':'b','latency_us':4,'bandwidth_gbs':100},{'from':'b','to':'a','latency_us':0.5,"
    "'bandwidth_gbs':100},{'from':'host','to':'a','both':true,'latency_us':9,'bandwidth_gbs':10},"
    "{'from':'host','to':'b','both':true,'latency_us':9,'bandwidth_gbs':10}],'model':{'submit_us':1,'issue_us':2}}";

static gy_ticks us(double time)
{
    return gy_ticks_from_us(time);
}

START_TEST(devices)
{
    gantry_machine *m = machine_of(text), *w = gy_machine_for_workers(m);
    ck_assert_ptr_nonnull(w);
    ck_assert(w->workers && !m->workers);
    ck_assert_str_eq(w->name, m->name);
    ck_assert_uint_eq(w->devices, 3);
    ck_assert_int_eq(w->device[0].launch, us(0.3)); /* no GPU */
    ck_assert_uint_eq(w->device[1].lanes, 132);
    ck_assert_int_eq(w->device[1].launch, us(0.6));
    ck_assert_int_eq(w->device[1].signal, us(1));
    ck_assert_uint_eq(w->device[2].lanes, 80); /* more than it is taken to have */
    ck_assert_int_eq(w->device[2].launch, us(0.6));
    ck_assert_int_eq(w->device[2].signal, us(0.5));
    ck_assert_int_eq(gy_machine_signals(w, 1, 2), us(1.5));
    ck_assert(w->issue == 0 && w->submit == 0);
    ck_assert_uint_eq(m->device[1].lanes, 4); /* as it was */
    gantry_machine_free(m);
    gantry_machine_free(w);
}
END_TEST

START_TEST(copies)
{
    gantry_machine *m = machine_of(text), *w = gy_machine_for_workers(m);
    for (int64_t bytes = 1 << 10; bytes < 1 << 30; bytes *= 3) {
        ck_assert_int_eq(copy_ticks(w, "a", "b", bytes), copy_ticks(m, "a", "b", bytes) - us(4) + us(0.8));
        ck_assert_int_eq(copy_ticks(w, "b", "a", bytes), copy_ticks(m, "b", "a", bytes)); /* it is less */
        ck_assert_int_eq(copy_ticks(w, "host", "a", bytes), copy_ticks(m, "host", "a", bytes));
        ck_assert_int_eq(copy_ticks(w, "b", "host", bytes), copy_ticks(m, "b", "host", bytes));
    }
    gantry_machine_free(m);
    gantry_machine_free(w);
}
END_TEST

/* Measured times lose what the first has above a turn, two launches at most. */
START_TEST(kernels)
{
    gantry_machine *m = load_machine("h200-8"), *w = gy_machine_for_workers(m);
    uint32_t seen = 0;
    ck_assert_uint_eq(w->kernels, m->kernels);
    ck_assert_uint_eq(w->tables, m->tables);
    for (uint32_t i = 0; i < m->kernels; i++) {
        const gy_point *before = m->kernel[i].point, *after = w->kernel[i].point;
        gy_ticks launch = 0, less = before[0].time - after[0].time;
        for (uint32_t d = 0; d < m->devices; d++)
            if (m->device[d].gpu)
                launch = m->device[d].launch;
        ck_assert(less >= 0 && less <= 2 * launch);
        ck_assert(after[0].time == us(0.6) || less == 2 * launch || less == 0);
        for (uint32_t k = 0; k < m->kernel[i].points; k++) {
            ck_assert_int_eq(after[k].bytes, before[k].bytes);
            ck_assert_int_eq(before[k].time - after[k].time, less);
        }
        seen += less > 0;
    }
    ck_assert_uint_gt(seen, 0);
    gantry_machine_free(m);
    gantry_machine_free(w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine for workers");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, devices);
    tcase_add_test(tests, copies);
    tcase_add_test(tests, kernels);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
