/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring collectives that need no NCCL, on GPUs of the fake driver: which tables there are, and that what goes wrong
 * costs no more than it must. Times mean nothing. */
#include "control.h"
#include "suite.h"

#include "run/measure/collectives.h"
#include "scheduler/collective/collective.h"
#include <stdio.h>
#include <string.h>

static void check_alive(const char *what)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "%s: left behind: %s", what, text);
}

static const gy_measured_collective *table_of(const gy_measured *what, gantry_collective kind, gy_algorithm algorithm,
                                              uint32_t ranks)
{
    const gy_measured_collective *found = NULL;
    for (size_t i = 0; i < what->collectives.count; i++) {
        const gy_measured_collective *c = &what->collectives.at[i];
        if (c->collective == kind && c->algorithm == algorithm && c->ranks == ranks) {
            ck_assert_ptr_null(found);
            found = c;
        }
    }
    return found;
}

static gy_measured measure(const gantry_machine *m, double seconds)
{
    gy_measured what = { .copies = { 0 } };
    MUST(gy_measure_collectives(&what, m, m, seconds, MUST_ERR));
    return what;
}

/* With little memory, so that large sizes do not fit, which would take long here. */
static gantry_machine *small_machine(int gpus, uint64_t bytes)
{
    gantry_machine *m = gpu_machine(gpus, false);
    for (uint32_t i = 1; i < m->memories; i++) { /* nobody else has it */
        m->memory[i].capacity = bytes;
        m->memory[i].reserved = 0;
    }
    return m;
}

/* Collectives by copies and by kernels of the back end are measured, and the machine is given the tables. */
START_TEST(tables)
{
    static const int gpus[] = { 2, 3, 4 };
    static const uint32_t ranks[][2] = { { 2, 0 }, { 3, 2 }, { 4, 2 } };
    fakeCudaDevices(gpus[_i], "all", 0);
    gantry_machine *m = small_machine(gpus[_i], 1 << 20);
    gy_measured what = measure(m, 60);
    size_t wanted = 0;
    for (int r = 0; r < 2 && ranks[_i][r]; r++) {
        for (int k = GANTRY_ALL_REDUCE; k <= GANTRY_ALL_TO_ALL; k++) {
            bool whole = k == GANTRY_ALL_REDUCE || k == GANTRY_REDUCE || k == GANTRY_BROADCAST;
            bool moves = k != GANTRY_ALL_REDUCE && k != GANTRY_REDUCE && k != GANTRY_REDUCE_SCATTER;
            const gy_measured_collective *two =
                                             table_of(&what, (gantry_collective)k, GY_ALGORITHM_TWO_SHOT, ranks[_i][r]),
                                         *copy = table_of(&what, (gantry_collective)k, GY_ALGORITHM_COPY, ranks[_i][r]);
            ck_assert_msg((two != NULL) == whole, "two_shot, %s", gantry_collective_name((gantry_collective)k));
            ck_assert_msg((copy != NULL) == moves, "copy_engine, %s", gantry_collective_name((gantry_collective)k));
            wanted += whole + moves;
        }
    }
    ck_assert_uint_eq(what.collectives.count, wanted);
    for (size_t i = 0; i < wanted; i++) {
        const gy_measured_collective *c = &what.collectives.at[i];
        ck_assert_str_eq(c->kind, m->device[0].kind);
        ck_assert_msg(c->points.count == 3, "%zu points", c->points.count);
        for (size_t k = 0; k < c->points.count; k++) {
            ck_assert(c->points.at[k].time.us > 0 && c->points.at[k].time.samples >= 3);
            ck_assert(k == 0 || c->points.at[k].work > 10 * c->points.at[k - 1].work);
        }
    }
    gy_measured_free(&what);
    gantry_machine_free(m);
    check_alive("tables");
}
END_TEST

/* Bytes are those of gy_collective_table, as the scheduler counts them for the op, and ranks are devices in order. */
START_TEST(graphs)
{
    fakeCudaDevices(4, "all", 0);
    gantry_machine *m = gpu_machine(4, false);
    for (int k = GANTRY_ALL_REDUCE; k <= GANTRY_ALL_TO_ALL; k++) {
        gantry_graph *g = NULL;
        MUST(gy_collective_graph(&g, (gantry_collective)k, GY_ALGORITHM_ONE_SHOT, 4, 4096, 5, 7, MUST_ERR));
        gantry_schedule *s = make_schedule(g, m, "graph", "heft");
        int found = 0;
        gy_ticks end = 0;
        for (size_t i = 0; i < s->ops.count; i++) {
            const gy_op *op = &s->ops.at[i];
            gy_group group;
            if (op->kind != GY_OP_COLLECTIVE)
                continue;
            ck_assert(gy_group_of_op(&group, s, op));
            ck_assert_int_eq(group.bytes, 4096);
            ck_assert_uint_eq(group.ranks, 4);
            ck_assert(gy_group_is_full(&group) && gy_group_is_even(&group));
            gy_group_free(&group);
            for (uint32_t r = 0; r < 4; r++)
                ck_assert_uint_eq(gy_op_device(s, op, r), r);
            ck_assert_int_ge(op->start, end); /* one after another */
            end = op->start + op->duration;
            found++;
        }
        ck_assert_int_eq(found, 5);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
    gantry_machine_free(m);
}
END_TEST

START_TEST(nothing_to_do)
{
    fakeCudaDevices(2, "all", 0);
    gantry_machine *one = gpu_machine(1, false), *shared = shared_machine(2, 1), *mixed = NULL;
    MUST(gantry_machine_detect(&mixed, NULL, MUST_ERR));
    const gantry_machine *each[] = { one, shared, mixed };
    for (int i = 0; i < 3; i++) {
        gy_measured what = measure(each[i], 60);
        ck_assert_uint_eq(what.collectives.count, 0);
        ck_assert_msg(what.notes.length == 0, "%s", what.notes.at);
        gy_measured_free(&what);
    }
    gantry_machine_free(one);
    gantry_machine_free(shared);
    gantry_machine_free(mixed);
    check_alive("nothing to do");
}
END_TEST

START_TEST(no_time)
{
    fakeCudaDevices(2, "all", 0);
    gantry_machine *m = gpu_machine(2, false);
    gy_measured what = measure(m, 0);
    ck_assert_uint_eq(what.collectives.count, 0);
    ck_assert_str_eq(what.notes.at, "not measured: some collectives without NCCL, for lack of time\n");
    gy_measured_free(&what);
    gantry_machine_free(m);
    check_alive("no time");
}
END_TEST

/* The n-th call fails: a table is left out, with a note. */
START_TEST(failing)
{
    static const char *const calls[] = { "cuMemAlloc",        "cuStreamCreate",       "cuEventCreate", "cuEventRecord",
                                         "cuMemcpyDtoDAsync", "cuStreamBeginCapture", "cuGraphLaunch" };
    fakeCudaDevices(2, "all", 0);
    gantry_machine *m = small_machine(2, 100000);
    int notes = 0, called = 1;
    for (int n = 1; n <= called && n <= 4096; n *= 4) {
        char spec[80];
        int before = fakeCudaCalls(calls[_i]);
        snprintf(spec, sizeof spec, "%s:%d:%d", calls[_i], n, CUDA_ERROR_INVALID_VALUE);
        fakeCudaFail(spec);
        gy_measured what = measure(m, 60);
        fakeCudaFail(NULL);
        called = fakeCudaCalls(calls[_i]) - before; /* one beyond the last would change nothing */
        notes += what.notes.length > 0;
        ck_assert_uint_ge(what.collectives.count, 7);
        gy_measured_free(&what);
        check_alive(spec);
    }
    ck_assert_msg(notes > 0, "%s never mattered", calls[_i]);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("own collectives");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, tables, 0, 3);
    tcase_add_test(tests, graphs);
    tcase_add_test(tests, nothing_to_do);
    tcase_add_test(tests, no_time);
    tcase_add_loop_test(tests, failing, 0, 7);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
