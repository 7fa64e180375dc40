/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on GPUs that are cancelled: from within, where the moment is known, and by another thread at random moments. */
#include "control.h"
#include "suite.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static gantry_status run_once(gantry_run *run, gantry_error *err)
{
    uint64_t ticket = 0;
    gantry_status status = gantry_run_start(run, &ticket, err);
    return status ? status : gantry_run_wait(run, ticket, err);
}

static uint64_t completed(const gantry_run *run)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    return info.completed;
}

/* ---- from within ---- */

typedef struct witness {
    gantry_run *run;
    int calls, cancel_at; /* calls from 1 on; 0: never */
} witness;

static gantry_status work(const gantry_launch *l)
{
    witness *w = l->user;
    double *x = l->arg[0].data;
    x[0] += 1;
    if (++w->calls == w->cancel_at)
        gantry_run_cancel(w->run);
    return GANTRY_OK;
}

enum { CALLS = 4 };

/* Functions on the host, each behind the one before it: those that were not begun when the run is cancelled are left
 * out, as streams and within a graph that was launched already. The state begins anew. */
START_TEST(functions_on_the_host_are_left_out)
{
    const char *replay = replay_at(_i);
    witness w = { 0 };
    gantry_error err = { 0 };
    const void *x;
    fakeCudaDevices(1, "all", 0);
    gantry_graph *g = gantry_graph_new("host");
    gantry_buffer state = gantry_graph_buffer(g, "x", GANTRY_F64, 1, ((int64_t[]){ 1 }));
    gantry_buffer_set_class(g, state, GANTRY_STATE);
    gantry_buffer_init_value(g, state, 10);
    gantry_buffer_output(g, state);
    for (int i = 0; i < CALLS; i++)
        gantry_node_readwrite(g, gantry_graph_host(g, "work", work, &w), gantry_all(state));
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, replay, "heft");
    w.run = open_run(s, "cuda");
    MUST(run_once(w.run, MUST_ERR));
    for (w.cancel_at = 1; w.cancel_at < CALLS; w.cancel_at++) {
        w.calls = 0;
        uint64_t before = completed(w.run);
        ck_assert_int_eq(run_once(w.run, &err), GANTRY_E_CANCELED);
        ck_assert_int_eq(w.calls, w.cancel_at);
        ck_assert_msg(strstr(err.text, "before op ") && strstr(err.text, "\"work"), "%s", err.text);
        ck_assert_uint_eq(completed(w.run), before);
        ck_assert_int_eq(gantry_run_output(w.run, state, &x, NULL, &err), GANTRY_E_CANCELED);
        w.calls = -CALLS;
        MUST(run_once(w.run, MUST_ERR));
        MUST(gantry_run_output(w.run, state, &x, NULL, MUST_ERR));
        ck_assert_double_eq(*(const double *)x, 10 + CALLS);
    }
    gantry_run_free(w.run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- at random moments ---- */

typedef struct canceler {
    gantry_run *run;
    long after_us;
} canceler;

static void *cancel_later(void *data)
{
    const canceler *c = data;
    nanosleep(&(struct timespec){ .tv_nsec = c->after_us * 1000 }, NULL);
    gantry_run_cancel(c->run);
    return NULL;
}

/* As streams by one thread and by several (this program runs with GANTRY_CUDA_THREADS=on, too), and as a graph. Starts
 * that say so are right, and nothing is left behind. */
START_TEST(another_thread_cancels)
{
    char text[160];
    fakeCudaDevices(2, "all", 0);
    gantry_graph *g = NULL;
    for (const graph_case *c = graph_cases; c->file; c++)
        g = strcmp(c->file, "saxpy") == 0 ? load_graph(c) : g;
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, replay_at(_i), "round-robin");
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    results want = run_results(host, g);
    gantry_run_free(host);
    int cut = 0;
    srand(3);
    for (int round = 0; round < 100; round++) {
        gantry_error err = { 0 };
        gantry_status status;
        pthread_t thread;
        canceler c = { run, rand() % 3000 };
        uint64_t before = completed(run), good = 0;
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_later, &c), 0);
        while (!(status = run_once(run, &err))) {
            results got = outputs_of(run, g);
            ck_assert(same(&got, &want));
            good++;
        }
        ck_assert_msg(status == GANTRY_E_CANCELED, "%s", err.text);
        ck_assert_uint_eq(completed(run), before + good);
        cut += strstr(err.text, "before op ") != NULL;
        pthread_join(thread, NULL);
    }
    if (_i == 0)
        ck_assert_int_gt(cut, 0);
    gantry_run_free(run);
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda cancel");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, functions_on_the_host_are_left_out, 0, 2);
    tcase_add_loop_test(all, another_thread_cancels, 0, 2);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
