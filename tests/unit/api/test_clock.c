/* SPDX-License-Identifier: Apache-2.0 */
/* A start that takes its time while clocks go forwards and backwards by hours (a process that was stopped, a computer
 * that slept), or stand still: no watchdog takes it for one that hangs. */
#include "support/run_suite.h"

#include <check.h>
#include <gantry/gantry.h>
#include <stdlib.h>
#include <time.h>

static const char *const ways[] = { "forwards", "backwards", "still", "random" };
enum { WAYS = sizeof ways / sizeof *ways, STARTS = 3 };

static void must(gantry_status status, const gantry_error *err)
{
    ck_assert_msg(status == GANTRY_OK, "%s: %s", gantry_status_name(status), err->text);
}

/* Adds 1, after longer than a dozen looks of a watchdog. */
static gantry_status dawdle(const gantry_launch *l)
{
    nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
    *(double *)l->arg[0].data += 1;
    return GANTRY_OK;
}

static gantry_run *open_run(void)
{
    gantry_error err = { 0 };
    gantry_machine *m;
    gantry_schedule *s = NULL;
    gantry_run *run = NULL;
    gantry_graph *g = gantry_graph_new("slow");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F64, 1, ((int64_t[]){ 1 }));
    gantry_buffer_set_class(g, x, GANTRY_STATE);
    gantry_buffer_init_value(g, x, 0);
    gantry_buffer_output(g, x);
    gantry_node_readwrite(g, gantry_graph_host(g, "dawdle", dawdle, NULL), gantry_all(x));
    must(gantry_machine_virtual(&m, 2, &err), &err);
    must(gantry_schedule_new(&s, g, m, NULL, &err), &err);
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "host";
    must(gantry_run_new(&run, s, &options, &err), &err);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return run;
}

START_TEST(starts_end_whatever_the_clock_says)
{
    gantry_error err = { 0 };
    gantry_run *run = open_run();
    uint64_t ticket, bytes;
    const void *host;
    setenv("SURROUNDINGS_CLOCK", ways[_i], 1);
    for (int i = 1; i <= STARTS; i++) {
        must(gantry_run_start(run, &ticket, &err), &err);
        must(gantry_run_wait(run, ticket, &err), &err);
        must(gantry_run_output(run, (gantry_buffer){ .id = 0 }, &host, &bytes, &err), &err);
        ck_assert_double_eq(*(const double *)host, i);
    }
    gantry_run_free(run);
    unsetenv("SURROUNDINGS_CLOCK");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clock");
    TCase *tests = tcase_create("clock");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, starts_end_whatever_the_clock_says, 0, WAYS);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
