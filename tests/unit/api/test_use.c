/* SPDX-License-Identifier: Apache-2.0 */
/* A run belongs to the process that made it and to one thread at a time: all others get an error, and change nothing.
 */
#include "support/run_suite.h"
#include <gantry/gantry.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static gantry_machine *machine;
static gantry_graph *graph;
static gantry_schedule *schedule;
static gantry_run *run, *other;
static gantry_buffer x, y;
static gantry_node node;
static sem_t may_end;
static bool blocks;

static void must(gantry_status status, const gantry_error *err)
{
    ck_assert_msg(status == GANTRY_OK, "%s: %s", gantry_status_name(status), err->text);
}

/* Holds the start back until the test lets it end. */
static gantry_status gate(const gantry_launch *launch)
{
    if (*(const bool *)launch->user)
        sem_wait(&may_end);
    return GANTRY_OK;
}

static void set_up(void)
{
    gantry_error err;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    sem_init(&may_end, 0, 0);
    blocks = false;
    graph = gantry_graph_new("use");
    x = gantry_graph_buffer(graph, "x", GANTRY_F32, 1, (const int64_t[]){ 4 });
    y = gantry_graph_buffer(graph, "y", GANTRY_F32, 1, (const int64_t[]){ 4 });
    gantry_buffer_init_value(graph, x, 3);
    gantry_buffer_output(graph, y);
    node = gantry_graph_kernel(graph, "scale", "scale");
    gantry_node_scalar_dynamic(graph, node, "a", 2);
    gantry_node_arg(graph, node, "x", gantry_all(x));
    gantry_node_arg(graph, node, "y", gantry_all(y));
    gantry_node_readwrite(graph, gantry_graph_host(graph, "gate", gate, &blocks), gantry_all(y));
    must(gantry_machine_virtual(&machine, 1, &err), &err);
    must(gantry_schedule_new(&schedule, graph, machine, NULL, &err), &err);
    options.record_trace = 1;
    options.backend = "host";
    must(gantry_run_new(&run, schedule, &options, &err), &err);
    must(gantry_run_new(&other, schedule, &options, &err), &err);
}

static void tear_down(void)
{
    gantry_run_free(other);
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(graph);
    sem_destroy(&may_end);
}

static bool is_right(void)
{
    const void *host = NULL;
    return gantry_run_output(run, y, &host, NULL, NULL) == GANTRY_OK && ((const float *)host)[3] == 6;
}

/* ---- every function that takes a run ---- */

enum { FUNCTIONS = 21 };

/* Calls the i-th function with `run`. */
static gantry_status call(int i, gantry_error *err)
{
    static float data[4];
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    gantry_schedule *next = NULL;
    gantry_machine *m = NULL;
    const void *host;
    uint64_t number;
    char *text;
    switch (i) {
    case 0:
        return gantry_run_bind(run, x, data, sizeof data, err);
    case 1:
        return gantry_run_bind_output(run, y, data, sizeof data, err);
    case 2:
        return gantry_run_bind_file(run, x, "/nowhere/x.npy", err);
    case 3:
        return gantry_run_set_scalar(run, node, "a", 7, err);
    case 4:
        return gantry_run_start(run, &number, err);
    case 5:
        return gantry_run_start_on(run, NULL, &number, err);
    case 6:
        return gantry_run_wait(run, 1, err);
    case 7:
        return gantry_run_output(run, y, &host, &number, err);
    case 8:
        return gantry_run_save(run, y, "/nowhere/y.npy", err);
    case 9:
        return gantry_run_hash(run, y, &number, err);
    case 10:
        return gantry_run_get_info(run, &info, err);
    case 11:
        return gantry_run_trace(run, &text, NULL, err);
    case 12:
        return gantry_run_rebalance(&next, run, 1, NULL, NULL, err);
    case 13:
        return gantry_run_take_over(run, other, err);
    case 14:
        return gantry_run_take_over(other, run, err);
    case 15:
        return gantry_run_sample(run, err);
    case 16:
        return gantry_run_checkpoint(run, "/nowhere/kept", err);
    case 17:
        return gantry_run_resume(run, "/nowhere/kept", NULL, err);
    case 18:
        return gantry_run_state(run, y, data, sizeof data, err);
    case 19:
        return gantry_run_collect(run, err);
    default:
        return gantry_run_calibrated(&m, run, err);
    }
}

/* The first function that did not say `why`, or FUNCTIONS. */
static int first_that_takes_it(const char *why)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        gantry_error err = { 0 };
        if (call(i, &err) != GANTRY_E_INVALID || !strstr(err.text, why))
            return i;
    }
    gantry_run_free(run); /* refused as well: it has no status to say so */
    return FUNCTIONS;
}

/* ---- two threads ---- */

static void *start_and_wait(void *status)
{
    uint64_t ticket;
    gantry_status s = gantry_run_start(run, &ticket, NULL);
    *(gantry_status *)status = s ? s : gantry_run_wait(run, ticket, NULL);
    return NULL;
}

static void sleep_a_little(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* True once the other thread is in gantry_run_wait, in which it stays until the gate opens; gantry_run_start returns at
 * once. */
static bool is_waiting(void)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    int refused = 0;
    for (int i = 0; i < 3000 && refused < 100; i++) {
        refused = gantry_run_get_info(run, &info, NULL) == GANTRY_E_INVALID ? refused + 1 : 0;
        sleep_a_little();
    }
    return refused == 100;
}

START_TEST(a_run_that_a_thread_waits_for_refuses_other_threads)
{
    pthread_t thread;
    gantry_status status = GANTRY_E_TIMEOUT;
    blocks = true;
    ck_assert_int_eq(pthread_create(&thread, NULL, start_and_wait, &status), 0);
    bool waiting = is_waiting();
    int first = waiting ? first_that_takes_it("another thread") : -1;
    sem_post(&may_end);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_msg(waiting, "a second thread was never refused");
    ck_assert_msg(first == FUNCTIONS, "function %d took the run from another thread", first);
    ck_assert_int_eq(status, GANTRY_OK);
    ck_assert(is_right());
}
END_TEST

/* Each start counts once or is refused, whatever the threads' luck. */
static void *start_often(void *count)
{
    int *started = count;
    for (int i = 0; i < 20000; i++) {
        uint64_t ticket;
        if (gantry_run_start(run, &ticket, NULL) == GANTRY_OK) {
            *started += 1;
            while (gantry_run_wait(run, ticket, NULL) == GANTRY_E_INVALID) {
            }
        }
    }
    return NULL;
}

START_TEST(threads_that_collide_lose_no_start)
{
    pthread_t thread[2];
    int started[2] = { 0, 0 };
    gantry_error err;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, start_often, &started[i]), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    must(gantry_run_get_info(run, &info, &err), &err);
    ck_assert_uint_eq(info.starts, (uint64_t)started[0] + (uint64_t)started[1]);
    ck_assert(is_right());
}
END_TEST

/* ---- fork ---- */

START_TEST(a_child_process_is_refused)
{
    gantry_error err;
    uint64_t ticket;
    int status = -1;
    must(gantry_run_start(run, &ticket, &err), &err);
    must(gantry_run_wait(run, ticket, &err), &err);
    pid_t child = fork();
    if (child == 0) {
        alarm(10); /* the threads of the run are not there: who waits for them waits for ever */
        _exit(first_that_takes_it("forks"));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == FUNCTIONS, "function %d took the run of another process", WEXITSTATUS(status));
    must(gantry_run_start(run, &ticket, &err), &err);
    must(gantry_run_wait(run, ticket, &err), &err);
    ck_assert(is_right());
}
END_TEST

/* A schedule holds no threads, so a child makes runs of its own. The threads of the run here are idle by then: what
 * AddressSanitizer's allocator has locked for one of them stays locked in the child. */
START_TEST(a_child_process_may_make_runs)
{
    gantry_error err;
    uint64_t first;
    int status = -1;
    must(gantry_run_start(run, &first, &err), &err);
    must(gantry_run_wait(run, first, &err), &err);
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    pid_t child = fork();
    if (child == 0) {
        gantry_run *mine = NULL;
        uint64_t ticket;
        alarm(10);
        bool fine = !gantry_run_new(&mine, schedule, NULL, NULL) && !gantry_run_start(mine, &ticket, NULL) &&
                    !gantry_run_wait(mine, ticket, NULL);
        gantry_run_free(mine);
        _exit(fine ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("use");
    TCase *t = tcase_create("use");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_run_that_a_thread_waits_for_refuses_other_threads);
    tcase_add_test(t, threads_that_collide_lose_no_start);
    tcase_add_test(t, a_child_process_is_refused);
#ifndef __SANITIZE_THREAD__ /* which supports no threads in the child of a process that has some */
    tcase_add_test(t, a_child_process_may_make_runs);
#else
    (void)a_child_process_may_make_runs;
#endif
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
