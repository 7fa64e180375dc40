/* SPDX-License-Identifier: Apache-2.0 */
/* A machine whose GPUs carry starts out by themselves, figure by figure against the one that it was made of. */
#include "suite.h"

#include <string.h>

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

/* Of all the time in which the GPU takes launches, each of these takes 0.4 us, though the smallest have next to nothing
 * to do: workers have what is beyond. The last one has all of them: (10 x 1 - 0.4) of 9.6 us, without its launch. */
START_TEST(shares)
{
    static const char gpu[] =
        "{'gantry_machine':1,'memories':[{'id':'host','capacity':'8GiB'},{'id':'a','capacity':'1GiB'}],"
        "'devices':[{'id':'g0','kind':'big','type':'gpu','memory':'a','multiprocessors':100,'launch_us':1},"
        "{'id':'cpu','type':'cpu','memory':'host','use':'host'}],'routes':[{'from':'host','to':'a','both':true,"
        "'bandwidth_gbs':10}],'kernels':[{'kernel':'copy','dtype':'f32','kind':'big','by':'bytes','points':"
        "[[1024,1],[4096,1.6],[65536,2],[16777216,10]],'share':[0.4,0.25,0.6,1]},"
        "{'kernel':'copy','dtype':'f64','kind':'big','by':'bytes','points':[[1024,1],[4096,1.6]]}]}";
    gantry_machine *m = machine_of(gpu), *w = gy_machine_for_workers(m);
    const gy_kernel_table *t = &w->kernel[0];
    ck_assert_int_eq(t->point[1].time, us(1.2)); /* all 0.4 less */
    ck_assert_uint_eq(t->share[0], 11);          /* a worker of 100, and a little more */
    ck_assert_uint_eq(t->share[1], 11);
    ck_assert_uint_eq(t->share[2], 500); /* (2 x 0.6 - 0.4) of 1.6 */
    ck_assert_uint_eq(t->share[3], 1000);
    ck_assert_ptr_null(w->kernel[1].share); /* not known */
    ck_assert_uint_eq(m->kernel[0].share[0], 400);
    gantry_machine_free(m);
    gantry_machine_free(w);
}
END_TEST

static const char measured[] =
    "{'gantry_machine':1,'memories':[{'id':'host','capacity':'8GiB'},{'id':'a','capacity':'1GiB'}],"
    "'devices':[{'id':'g0','kind':'big','type':'gpu','memory':'a','launch_us':1.3,'bandwidth_gbs':1000,"
    "'gflops':{'f32':500},'formulas':{'f32':400,'f64':90},'workers':{'times_us':[[1.5,0.5],[3.5,1.5],[10,21]],"
    "'switch_us':4,'start_us':11,'beside':1.25,'formulas':{'f64':40}}},{'id':'cpu','type':'cpu','memory':'host','use':'"
    "host'}],'routes':[{'from':'host','to':'a',"
    "'both':true,'bandwidth_gbs':10}],'kernels':[{'kernel':'copy','dtype':'f32','kind':'big','by':'bytes','points':"
    "[[1024,1],[1048576,2.5],[16777216,12]]}],'model':{'start_us':5}}";

/* On the lines between pairs, the first below them, beyond them as the last two. */
START_TEST(times)
{
    gantry_machine *m = machine_of(measured);
    const gy_device *d = &m->device[0];
    ck_assert(gy_machine_knows_workers(m));
    const double pair[][2] = { { 0, 0.5 },      { 1.5, 0.5 }, { 2.5, 1 }, { 3.5, 1.5 },
                               { 6.75, 11.25 }, { 10, 21 },   { 12, 27 } };
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        ck_assert_int_eq(gy_worker_time(d, us(pair[i][0])), us(pair[i][1]));
    ck_assert_int_eq(gy_worker_time(&m->device[1], us(7)), us(7));
    gantry_machine_free(m);
    m = machine_of(text);
    ck_assert(!gy_machine_knows_workers(m));
    ck_assert_int_eq(gy_worker_time(&m->device[1], us(7)), us(7));
    gantry_machine_free(m);
}
END_TEST

/* The operations of formulas take 25 ps each in f64, behind the least time of a worker; that of f32 is not known. */
START_TEST(formulas)
{
    gantry_machine *m = machine_of(measured);
    const gy_device *d = &m->device[0];
    ck_assert_int_eq(gy_worker_formula_time(d, GANTRY_F64, 4e6, us(3.5)), us(100.5));
    ck_assert_int_eq(gy_worker_formula_time(d, GANTRY_F64, 1e3, us(3.5)), us(1.5)); /* it moves more than it computes */
    ck_assert_int_eq(gy_worker_formula_time(d, GANTRY_F32, 4e6, us(3.5)), us(1.5));
    ck_assert_double_eq(gy_formula_gflops(d->formulas, GANTRY_F16), 400); /* calculated in f32 */
    ck_assert_double_eq(gy_formula_gflops(d->workers.formulas, GANTRY_F16), 0);
    gantry_machine_free(m);
}
END_TEST

/* Launched, a node that asks a flag takes what was measured or stands in for that, on a GPU. Workers ask in passing: an
 * op takes its work, and one that is left out the turn of a worker, 0.6 us where none was measured, else 0.5. */
START_TEST(flags)
{
    static const char *const texts[] = { text, measured };
    static const double turn[] = { 0.6, 0.5 };
    for (int i = 0; i < 2; i++) {
        gantry_machine *m = machine_of(texts[i]);
        m->when = i ? us(7) : 0;
        m->left_out = i ? us(3) : 0;
        gantry_machine *w = gy_machine_for_workers(m), *b = gy_machine_beside_workers(m);
        uint32_t gpu = gy_machine_find_device(m, "g0"), cpu = gy_machine_find_device(m, "cpu");
        ck_assert_int_eq(gy_device_when(m, gpu, true), us(i ? 7 : 9));
        ck_assert_int_eq(gy_device_when(m, gpu, false), us(i ? 3 : 5));
        ck_assert_int_eq(gy_device_when(b, gpu, true), us(i ? 7 : 9)); /* of what is launched beside workers */
        ck_assert_int_eq(gy_device_when(w, gpu, true), 0);
        ck_assert_int_eq(gy_device_when(w, gpu, false), us(turn[i]));
        ck_assert(!gy_device_when(m, cpu, true) && !gy_device_when(w, cpu, false));
        gantry_machine_free(m);
        gantry_machine_free(w);
        gantry_machine_free(b);
    }
}
END_TEST

/* Tables, launches, starts and speeds are those that were measured. */
START_TEST(by_measured_times)
{
    gantry_machine *m = machine_of(measured), *w = gy_machine_for_workers(m), *b = gy_machine_beside_workers(m);
    const gy_device *d = &w->device[0];
    ck_assert_int_eq(d->launch, us(0.5));
    ck_assert_int_eq(w->start, us(11));
    ck_assert_int_eq(w->kernel[0].point[0].time, us(0.5));
    ck_assert_int_eq(w->kernel[0].point[1].time, us(1));
    ck_assert_int_eq(w->kernel[0].point[2].time, us(27));
    ck_assert_double_eq_tol(d->bandwidth_gbs, 1000 / 3.0, 1e-9); /* large ops: three times as long */
    ck_assert_double_eq_tol(d->gflops[GANTRY_F32], 500 / 3.0, 1e-9);
    ck_assert_double_eq(d->formulas[GANTRY_F64], 40); /* as measured; those that were not are so much longer, too */
    ck_assert_double_eq_tol(d->formulas[GANTRY_F32], 400 / 3.0, 1e-9);
    ck_assert(!gy_machine_knows_workers(w)); /* its times are workers' already */
    ck_assert(b->start == us(11) && !b->submit && !b->issue && !b->workers);
    ck_assert_int_eq(b->device[0].launch, us(1.3));
    ck_assert(gy_machine_knows_workers(b) && b->device[0].workers.change == us(4));
    ck_assert_uint_eq(b->device[0].workers.beside, 1250);
    gantry_machine_free(m);
    gantry_machine_free(w);
    gantry_machine_free(b);
}
END_TEST

/* A file of it says the same again. */
START_TEST(written)
{
    char *once = NULL, *twice = NULL;
    gantry_machine *m = machine_of(measured), *again = NULL, *some = NULL;
    ck_assert(!gantry_machine_json(m, &once, NULL, NULL));
    ck_assert(strstr(once, "\"workers\": { \"times_us\": [[1.5, 0.5], [3.5, 1.5], [10, 21]], \"switch_us\": 4, "
                           "\"start_us\": 11, \"beside\": 1.25, \"formulas\": { \"f64\": 40 } }") != NULL);
    ck_assert(strstr(once, "\"formulas\": { \"f32\": 400, \"f64\": 90 }, \"bandwidth_gbs\"") != NULL);
    ck_assert(!gantry_machine_parse(&again, once, strlen(once), "text", NULL));
    ck_assert(!gantry_machine_json(again, &twice, NULL, NULL));
    ck_assert_str_eq(once, twice);
    ck_assert(!gantry_machine_select(&some, m, "id:g0", NULL));
    ck_assert(gy_machine_knows_workers(some));
    gantry_free(once);
    gantry_free(twice);
    gantry_machine_free(m);
    gantry_machine_free(again);
    gantry_machine_free(some);
}
END_TEST

/* Machines that were made of one outlive it, with points of their own. */
START_TEST(copied)
{
    gantry_machine *m = machine_of(measured), *other = machine_of(measured), *made[2] = { NULL };
    const gantry_machine *nodes[] = { m, other };
    const gy_point *before = m->device[0].workers.point;
    gantry_join_options o = GANTRY_JOIN_OPTIONS_INIT;
    o.gbs = 10;
    ck_assert(!gantry_machine_join(&made[0], nodes, 2, &o, NULL));
    made[1] = gy_machine_without_workers(m);
    gantry_machine_free(other);
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < made[0]->devices; i++) {
        const gy_device *d = &made[0]->device[i];
        gpus += d->gpu;
        ck_assert(!d->gpu || (d->workers.point != before && gy_worker_time(d, us(10)) == us(21)));
    }
    ck_assert_uint_eq(gpus, 2);
    ck_assert(!gy_machine_knows_workers(made[1]) && gy_machine_knows_workers(m));
    gantry_machine_free(m);
    gantry_machine_free(made[0]);
    gantry_machine_free(made[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine for workers");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, devices);
    tcase_add_test(tests, copies);
    tcase_add_test(tests, kernels);
    tcase_add_test(tests, shares);
    tcase_add_test(tests, times);
    tcase_add_test(tests, by_measured_times);
    tcase_add_test(tests, formulas);
    tcase_add_test(tests, flags);
    tcase_add_test(tests, written);
    tcase_add_test(tests, copied);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
