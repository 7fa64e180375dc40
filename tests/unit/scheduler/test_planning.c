/* SPDX-License-Identifier: Apache-2.0 */
/* Planning tells how far it is, which changes nothing of what comes out, and ends when the caller has had enough, at
 * whichever step that is. */
#include "support/run_suite.h"

#include <check.h>
#include <gantry/gantry.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        gantry_error must_ = { 0 };                                                                                    \
        gantry_status status_ = (call);                                                                                \
        ck_assert_msg(status_ == GANTRY_OK, "%s: %s: %s", #call, gantry_status_name(status_), must_.text);             \
    } while (0)
#define MUST_ERR &must_

/* The ways of planning: policies and a search; threads for fewer devices; branch and bound; overlapping starts; phases;
 * memory that is short; many devices, of which a division is made; the least load. */
static const struct way {
    const char *file, *params[3];
    int devices;
    gantry_schedule_options options;
} ways[] = {
    { "saxpy", { "n=64", "parts=4" }, 2, { .effort = 4 } },
    { "cholesky", { "n=48", "nt=6" }, 4, { .effort = 2 } },
    { "cholesky", { "n=24", "nt=3" }, 2, { .effort = 3, .optimal = 1 } },
    { "pipeline3", { "batches=4" }, 3, { .effort = 2, .objective = "period" } },
    { "jacobi_until", { "n=16", "parts=2" }, 2, { .effort = 1 } },
    { "jacobi", { "n=64", "parts=8", "steps=6" }, 8, { .effort = 1, .max_memory = "dev0=64KiB" } },
    { "jacobi", { "n=64", "parts=32", "steps=4" }, 32, { .effort = 0, .policy = "partition" } },
    { "jacobi", { "n=64", "parts=4", "steps=3" }, 4, { .effort = 0, .objective = "max_load" } },
};
enum { WAYS = sizeof ways / sizeof *ways, CUTS = 8 };

typedef struct listener {
    pthread_t by;
    uint64_t calls, stop_at; /* 0: never */
    bool stopped;
    gantry_plan_progress last;
} listener;

static int listen(void *user, const gantry_plan_progress *p)
{
    listener *l = user;
    ck_assert_uint_eq(p->struct_size, sizeof *p);
    ck_assert(pthread_equal(pthread_self(), l->by));
    ck_assert(!l->stopped);
    ck_assert(p->steps >= l->last.steps && p->plans >= l->last.plans);
    ck_assert(l->last.best_us == 0 || (p->best_us > 0 && p->best_us <= l->last.best_us));
    l->last = *p;
    l->stopped = ++l->calls == l->stop_at;
    return l->stopped;
}

static gantry_graph *load(const struct way *w)
{
    char path[512];
    gantry_graph *g = NULL;
    gantry_load_options lo = GANTRY_LOAD_OPTIONS_INIT;
    lo.params = w->params;
    while (lo.param_count < 3 && w->params[lo.param_count])
        lo.param_count++;
    lo.devices = w->devices;
    snprintf(path, sizeof path, "%s/graphs/%s.json", GANTRY_SOURCE_DIR, w->file);
    MUST(gantry_graph_load(&g, path, &lo, MUST_ERR));
    return g;
}

static gantry_status plan(gantry_schedule **s, const struct way *w, listener *l, gantry_error *err)
{
    gantry_graph *g = load(w);
    gantry_machine *m = NULL;
    gantry_schedule_options o = w->options;
    o.struct_size = sizeof o;
    o.progress = l ? listen : NULL;
    o.user = l;
    if (l)
        l->by = pthread_self();
    MUST(gantry_machine_virtual(&m, w->devices, MUST_ERR));
    gantry_status status = gantry_schedule_new(s, g, m, &o, err);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return status;
}

static char *text_of(gantry_schedule *s)
{
    char *text = NULL;
    MUST(gantry_schedule_json(s, &text, NULL, MUST_ERR));
    return text;
}

START_TEST(telling_changes_nothing)
{
    gantry_error err = { 0 };
    gantry_schedule *silent = NULL, *told = NULL;
    listener l = { 0 };
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    ck_assert_msg(plan(&silent, &ways[_i], NULL, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(plan(&told, &ways[_i], &l, &err) == GANTRY_OK, "%s", err.text);
    char *a = text_of(silent), *b = text_of(told);
    ck_assert_str_eq(a, b);
    ck_assert_uint_gt(l.calls, 4);
    ck_assert_uint_gt(l.last.plans, 0);
    MUST(gantry_schedule_summarize(told, &sum, MUST_ERR));
    if (gantry_schedule_phase_count(told) == 0) {
        ck_assert(l.last.best_us > 0 && l.last.best_us <= sum.makespan_us * 1.000001);
        ck_assert(l.last.bound_us <= l.last.best_us);
        ck_assert(l.last.bound_us <= sum.bound_us * 1.000001);
    } else {
        ck_assert(l.last.best_us == 0 && l.last.bound_us == 0);
    }
    gantry_free(a);
    gantry_free(b);
    gantry_schedule_free(silent);
    gantry_schedule_free(told);
}
END_TEST

/* There is no schedule then, nothing is left behind (the address sanitizer looks), and nobody is told any more. */
START_TEST(planning_ends_at_any_step)
{
    gantry_error err = { 0 };
    gantry_schedule *s = NULL;
    listener whole = { 0 };
    ck_assert_msg(plan(&s, &ways[_i], &whole, &err) == GANTRY_OK, "%s", err.text);
    char *want = text_of(s);
    gantry_schedule_free(s);
    srand(9);
    for (int i = 0; i < CUTS; i++) {
        /* Threads take steps, too, of which only some are told. */
        uint64_t at = i == 0 ? 1 : 1 + (uint64_t)rand() % (whole.calls / 2);
        listener l = { .stop_at = at };
        s = (gantry_schedule *)&l;
        ck_assert_msg(plan(&s, &ways[_i], &l, &err) == GANTRY_E_CANCELED, "call %u: %s", (unsigned)at, err.text);
        ck_assert_ptr_eq(s, &l);
        ck_assert(l.stopped && l.calls == at);
        ck_assert_str_eq(err.text,
                         "planning was cancelled by the function of the options that is told of its progress");
    }
    ck_assert_msg(plan(&s, &ways[_i], NULL, &err) == GANTRY_OK, "%s", err.text);
    char *again = text_of(s);
    ck_assert_str_eq(want, again);
    gantry_free(want);
    gantry_free(again);
    gantry_schedule_free(s);
}
END_TEST

/* For the least load two policies place all nodes before a plan is carried through. A large graph takes long there, and
 * a caller who has had enough is heard at each node. */
START_TEST(beginnings_of_the_least_load_are_told)
{
    const struct way w = { "jacobi", { "n=64", "parts=4", "steps=3" }, 4, { .effort = 0, .objective = "max_load" } };
    gantry_error err = { 0 };
    gantry_schedule *s = NULL;
    listener l = { 0 };
    gantry_graph *g = load(&w);
    size_t nodes = gantry_graph_node_count(g);
    gantry_graph_free(g);
    ck_assert_msg(plan(&s, &w, &l, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_uint_ge(l.last.steps, 3 * nodes);
    gantry_schedule_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("planning");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, telling_changes_nothing, 0, WAYS);
    tcase_add_loop_test(all, planning_ends_at_any_step, 0, WAYS);
    tcase_add_test(all, beginnings_of_the_least_load_are_told);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
