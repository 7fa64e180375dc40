/* SPDX-License-Identifier: Apache-2.0 */
/* The default plans for several counts of devices side by side: the schedule is the same for any number of threads. */
#include "suite.h"

#include "base/thread.h"
#include <gantry/gantry.h>
#include <sched.h>

static const char *const graphs[] = { "jacobi.json", "pipeline3.json" };

static char *plan(gantry_graph *g, const gantry_machine *m)
{
    gantry_error err;
    gantry_schedule *s = NULL;
    ck_assert_msg(!gantry_schedule_new(&s, g, m, NULL, &err), "%s", err.text);
    char *text = schedule_text(s);
    gantry_schedule_free(s);
    return text;
}

/* As `plan`, with one processor for all threads of the program. */
static char *plan_on_one(gantry_graph *g, const gantry_machine *m)
{
    cpu_set_t all, one;
    size_t first = 0;
    ck_assert(!sched_getaffinity(0, sizeof all, &all));
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ck_assert(!sched_setaffinity(0, sizeof one, &one));
    ck_assert_uint_eq(gy_thread_processors(), 1);
    char *text = plan(g, m);
    ck_assert(!sched_setaffinity(0, sizeof all, &all));
    return text;
}

START_TEST(one_thread_or_several)
{
    char path[4096];
    gantry_graph *g;
    gantry_machine *m;
    gantry_error err;
    snprintf(path, sizeof path, "%s/graphs/%s", GANTRY_SOURCE_DIR, graphs[_i]);
    ck_assert_msg(!gantry_graph_load(&g, path, NULL, &err), "%s", err.text);
    snprintf(path, sizeof path, "%s/graphs/machines/dgx1-v100.json", GANTRY_SOURCE_DIR);
    ck_assert_msg(!gantry_machine_load(&m, path, &err), "%s", err.text);
    char *several = plan(g, m), *one = plan_on_one(g, m);
    ck_assert_str_eq(several, one);
    gantry_free(several);
    gantry_free(one);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("threads");
    TCase *c = tcase_create("devices");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, one_thread_or_several, 0, sizeof graphs / sizeof *graphs);
    suite_add_tcase(s, c);
    return run_suite(s);
}
