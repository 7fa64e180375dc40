/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a run fails once: the answer is E_NOMEM, nothing leaks (AddressSanitizer looks), nothing hangs,
 * and the run can be used afterwards. */
#include "build.h"
#include "support/faults.h"
#include <stdlib.h>
#include <string.h>

enum { N = 16, MOST = 400 };

static gantry_status add_one(const gantry_launch *l)
{
    for (int64_t i = 0; i < l->arg[0].rows; i++)
        ((double *)l->arg[0].data)[i] += 1;
    return GANTRY_OK;
}

/* Something of everything: input, state, tiles, a reduction, two devices, events. */
static gantry_schedule *make(gantry_graph **graph)
{
    gantry_graph *g = gantry_graph_new("nomem");
    int64_t n = N;
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F64, 1, &n);
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F64, 1, &n);
    gantry_buffer t = gantry_graph_buffer(g, "t", GANTRY_F64, 2, ((int64_t[]){ 4, 4 }));
    gantry_buffer_init_iota(g, x);
    gantry_buffer_init_iota(g, y);
    gantry_buffer_set_class(g, y, GANTRY_STATE);
    gantry_buffer_tiles(g, t, 2, 2);
    gantry_buffer_init_iota(g, t);
    gantry_buffer_output(g, t);
    gantry_buffer_output(g, x);
    for (int i = 0; i < 2; i++) {
        gantry_node node = gantry_graph_launch(g, "add", add_one, NULL);
        gantry_node_readwrite(g, node, gantry_all(i ? y : x));
        gantry_node_scratch(g, node, 100);
    }
    gantry_schedule *s = build_schedule(g, 2);
    uint32_t xs = build_instance(s, x.id, 1, 0, N), ys = build_persist(s, y.id, 2),
             there = build_instance(s, x.id, 2, 0, N);
    uint32_t up = build_copy(s, 0, build_input(s, x.id), xs);
    build_op(s, GY_OP_LAUNCH, 0, 0);
    build_use_all(s, xs, GANTRY_READWRITE);
    build_op(s, GY_OP_LAUNCH, 1, 1);
    build_use_all(s, ys, GANTRY_READWRITE);
    uint32_t over = build_collective(s, GANTRY_BROADCAST, 0, GY_NONE, 2);
    build_use_all(s, xs, GANTRY_READ);
    build_use_all(s, there, GANTRY_WRITE);
    uint32_t down = build_copy(s, 1, there, build_output(s, x.id));
    uint32_t ts = build_instance(s, t.id, 1, 0, 4);
    build_copy(s, 0, build_input(s, t.id), ts);
    build_copy(s, 0, ts, build_output(s, t.id));
    build_event(s, up, over, 0);
    build_event(s, over, down, 0);
    *graph = g;
    return s;
}

/* True once it gets through without a failure. */
static bool attempt(gantry_schedule *s, int after, bool check)
{
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_machine *machine = NULL;
    char *text = NULL;
    size_t length = 0;
    uint64_t ticket = 0;
    options.check = check;
    options.record_trace = 1;
    faults_after(after);
    gantry_status status = gantry_run_new(&run, s, &options, &err);
    status = status ? status : gantry_run_start(run, &ticket, &err);
    status = status ? status : gantry_run_wait(run, ticket, &err);
    status = status ? status : gantry_run_trace(run, &text, &length, &err);
    status = status ? status : gantry_run_sample(run, &err);
    status = status ? status : gantry_run_calibrated(&machine, run, &err);
    status = status ? status : gantry_run_save(run, (gantry_buffer){ .id = 2 }, "/dev/null", &err);
    faults_off();
    ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_NOMEM, "after %d: %s: %s", after,
                  gantry_status_name(status), err.text);
    if (run)
        MUST(run_once(run, MUST_ERR));
    gantry_free(text);
    gantry_machine_free(machine);
    gantry_run_free(run);
    return status == GANTRY_OK;
}

static void survive(bool check)
{
    gantry_graph *g;
    gantry_schedule *s = make(&g);
    int after = 0;
    while (!attempt(s, after, check)) {
        ck_assert_int_lt(after, MOST);
        after++;
    }
    ck_assert_int_gt(after, 40); /* so many are there at least: the test can fail */
    gantry_schedule_free(s);
    gantry_graph_free(g);
}

START_TEST(every_allocation_may_fail)
{
    survive(false);
}
END_TEST

START_TEST(every_allocation_of_checking_mode_may_fail)
{
    survive(true);
}
END_TEST

/* Once prepared, a start and a wait ask for nothing. */
START_TEST(nothing_is_allocated_in_flight)
{
    gantry_graph *g;
    gantry_schedule *s = make(&g);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    faults_after(0);
    gantry_status status = run_once(run, &err);
    bool allocated = faults_off();
    ck_assert_int_eq(status, GANTRY_OK);
    ck_assert(!allocated);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run without memory");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, every_allocation_may_fail);
    tcase_add_test(all, every_allocation_of_checking_mode_may_fail);
    tcase_add_test(all, nothing_is_allocated_in_flight);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
