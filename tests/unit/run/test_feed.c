/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that each start finds filled anew: start n has array n, whatever overlaps, fails or is cancelled; reading goes
 * on beside starts. */
#include "build.h"
#include "support/faults.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 24, STARTS = 40 };

static void nap(long us)
{
    struct timespec t = { us / 1000000, us % 1000000 * 1000 };
    nanosleep(&t, NULL);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A test, of an input (_i is 0) and of a constant (1): how long its arrays and its work take, and which fail. */
typedef struct world {
    gantry_buffer_class cls; /* of what is fed */
    long fill_us, work_us;   /* how long they take */
    int bad_fill, bad_work;  /* the array that cannot be made, and the one that the work fails on; -1: none */
    atomic_bool blocked;     /* arrays are not made while this holds */
    atomic_int filled;       /* how many were */
} world;

#define WORLD                                                                                                          \
    {                                                                                                                  \
        .cls = _i ? GANTRY_CONST : GANTRY_INPUT, .bad_fill = -1, .bad_work = -1                                        \
    }

/* Element i of array n: 1000 n + i. */
static gantry_status fill(void *user, uint64_t number, void *to, uint64_t bytes, gantry_error *err)
{
    world *w = user;
    ck_assert_uint_eq(bytes, N * sizeof(double));
    nap(w->fill_us);
    while (atomic_load(&w->blocked))
        nap(200);
    if ((int)number == w->bad_fill) {
        strcpy(err->text, "the camera is gone");
        return GANTRY_E_IO;
    }
    for (int i = 0; i < N; i++)
        ((double *)to)[i] = 1000.0 * (double)number + i;
    atomic_fetch_add(&w->filled, 1);
    return GANTRY_OK;
}

/* y = x + 1 */
static gantry_status step(const gantry_launch *l)
{
    const world *w = l->user;
    const double *x = l->arg[0].data;
    nap(w->work_us);
    if ((int)(x[0] / 1000) == w->bad_work)
        return GANTRY_E_KERNEL;
    for (int i = 0; i < N; i++)
        ((double *)l->arg[1].data)[i] = x[i] + 1;
    return GANTRY_OK;
}

/* sum = 2 sum + y: the order of starts shows. */
static gantry_status add_up(const gantry_launch *l)
{
    double *sum = l->arg[1].data;
    for (int i = 0; i < N; i++)
        sum[i] = 2 * sum[i] + ((const double *)l->arg[0].data)[i];
    return GANTRY_OK;
}

typedef struct line {
    gantry_graph *g;
    gantry_buffer x, y, sum, weight;
    gantry_schedule *s;
    gantry_run *run;
} line;

static gantry_buffer vector(gantry_graph *g, const char *name, gantry_buffer_class cls)
{
    gantry_buffer b = gantry_graph_buffer(g, name, GANTRY_F64, 1, (int64_t[]){ N });
    gantry_buffer_set_class(g, b, cls);
    return b;
}

static void open_run(line *l, int in_flight, const char *backend, bool check)
{
    gantry_machine *m;
    gantry_schedule_options so = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    so.policy = "heft";
    so.objective = in_flight > 1 ? "period" : NULL;
    so.in_flight = in_flight > 1 ? in_flight : 0;
    ro.backend = backend;
    ro.check = check;
    MUST(gantry_machine_virtual(&m, 2, MUST_ERR));
    MUST(gantry_schedule_new(&l->s, l->g, m, &so, MUST_ERR));
    gantry_machine_free(m);
    MUST(gantry_run_new(&l->run, l->s, &ro, MUST_ERR));
}

/* x -> y = x + 1 -> sum. */
static line make_line(world *w, int in_flight, const char *backend, bool check)
{
    line l = { .g = gantry_graph_new("line") };
    l.x = vector(l.g, "x", w->cls);
    l.weight = vector(l.g, "weight", GANTRY_CONST);
    gantry_buffer_init_value(l.g, l.weight, 0);
    l.y = gantry_graph_buffer(l.g, "y", GANTRY_F64, 1, (int64_t[]){ N });
    gantry_buffer_output(l.g, l.y);
    l.sum = vector(l.g, "sum", GANTRY_STATE);
    gantry_buffer_init_value(l.g, l.sum, 0);
    gantry_buffer_output(l.g, l.sum);
    gantry_node n = gantry_graph_launch(l.g, "step", step, w);
    gantry_node_read(l.g, n, gantry_all(l.x));
    gantry_node_write(l.g, n, gantry_all(l.y));
    gantry_node_time(l.g, n, NULL, 1000);
    n = gantry_graph_launch(l.g, "add_up", add_up, NULL);
    gantry_node_read(l.g, n, gantry_all(l.y));
    gantry_node_readwrite(l.g, n, gantry_all(l.sum));
    open_run(&l, in_flight, backend, check);
    return l;
}

static void free_line(line *l)
{
    gantry_run_free(l->run);
    gantry_schedule_free(l->s);
    gantry_graph_free(l->g);
}

static const double *output(const line *l, gantry_buffer b)
{
    const void *host = NULL;
    MUST(gantry_run_output(l->run, b, &host, NULL, MUST_ERR));
    return host;
}

/* The start that was waited for had array n. */
static void expect_array(const line *l, int n)
{
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(output(l, l->y)[i], 1000.0 * n + i + 1);
}

static gantry_status once(const line *l, gantry_error *err)
{
    return run_once(l->run, err);
}

static double waited_us(const line *l)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(l->run, &info, MUST_ERR));
    return info.fed_wait_us;
}

/* Starts with as many in flight as there may be, each with another array; sum is what a loop makes of them. */
static void run_many(const line *l, int in_flight, int starts, double *sum)
{
    uint64_t ticket[STARTS];
    for (int n = 0; n < starts; n++) {
        MUST(gantry_run_start(l->run, &ticket[n], MUST_ERR));
        if (n + 1 >= in_flight) {
            MUST(gantry_run_wait(l->run, ticket[n + 1 - in_flight], MUST_ERR));
            expect_array(l, n + 1 - in_flight);
        }
        for (int i = 0; i < N; i++)
            sum[i] = 2 * sum[i] + (1000.0 * n + i + 1);
    }
    MUST(gantry_run_wait(l->run, ticket[starts - 1], MUST_ERR));
    expect_array(l, starts - 1);
    ck_assert_int_eq(memcmp(output(l, l->sum), sum, N * sizeof *sum), 0);
}

START_TEST(each_start_has_the_next)
{
    for (int in_flight = 1; in_flight <= 4; in_flight++) {
        for (int check = 0; check < 2; check++) {
            for (int slow = 0; slow < 3; slow++) {
                world w = WORLD;
                w.fill_us = slow == 1 ? 300 : 0;
                w.work_us = slow == 2 ? 300 : 0;
                double sum[N] = { 0 };
                line l = make_line(&w, in_flight, "host", check);
                MUST(gantry_run_feed(l.run, l.x, fill, &w, MUST_ERR));
                run_many(&l, in_flight, STARTS, sum);
                /* No more are made than there are starts and room. */
                ck_assert_int_le(atomic_load(&w.filled), STARTS + in_flight + 2);
                free_line(&l);
            }
        }
    }
}
END_TEST

START_TEST(repeat_takes_one_a_start)
{
    world w = WORLD;
    line l = make_line(&w, 1, "host", false);
    MUST(gantry_run_feed(l.run, l.x, fill, &w, MUST_ERR));
    MUST(gantry_run_repeat(l.run, 9, MUST_ERR));
    expect_array(&l, 8);
    MUST(gantry_run_repeat(l.run, 1, MUST_ERR));
    expect_array(&l, 9);
    free_line(&l);
}
END_TEST

/* Seconds for so many starts: arrays made ahead, or each by the thread that starts, before its start. */
static double timed(world *w, bool fed, int starts)
{
    double x[N];
    line l = make_line(w, 1, "host", false);
    double begin = seconds();
    if (fed)
        MUST(gantry_run_feed(l.run, l.x, fill, w, MUST_ERR));
    for (int n = 0; n < starts; n++) {
        gantry_error err = { 0 };
        if (!fed) {
            MUST(fill(w, (uint64_t)n, x, sizeof x, MUST_ERR));
            MUST(gantry_run_bind(l.run, l.x, x, sizeof x, MUST_ERR));
        }
        ck_assert_int_eq(once(&l, &err), GANTRY_OK);
        expect_array(&l, n);
    }
    double took = seconds() - begin;
    free_line(&l);
    return took;
}

/* Both take 5 ms: one behind the other that is 10 ms a start, beside each other 5 ms. The machine may be busy, so the
 * best of a few is what counts. */
START_TEST(reading_goes_on_beside_starts)
{
    double best = 1;
    for (int try = 0; try < 6 && best > 0.66; try++) {
        world w = WORLD;
        w.fill_us = w.work_us = 5000;
        double apart = timed(&w, false, 12), beside = timed(&w, true, 12);
        best = beside / apart < best ? beside / apart : best;
    }
    ck_assert_double_le(best, 0.66); /* 13 of 24 steps where nothing else takes time */
}
END_TEST

START_TEST(waiting_is_counted)
{
    world w = WORLD;
    line l = make_line(&w, 1, "host", false);
    gantry_error err = { 0 };
    ck_assert_double_eq(waited_us(&l), 0);
    w.fill_us = 20000;
    MUST(gantry_run_feed(l.run, l.x, fill, &w, MUST_ERR));
    double begin = seconds();
    ck_assert_int_eq(once(&l, &err), GANTRY_OK);
    ck_assert_double_gt(waited_us(&l), 10000);
    ck_assert_double_le(waited_us(&l), (seconds() - begin) * 1e6);
    free_line(&l);
}
END_TEST

static void expect_error(gantry_status status, const gantry_error *err, gantry_status wanted, const char *text)
{
    ck_assert_msg(status == wanted && strstr(err->text, text), "%s: %s", gantry_status_name(status), err->text);
}

/* Starts before the array that is missing are as ever, those behind it fail alike, and the run goes on with others. */
START_TEST(an_array_cannot_be_made)
{
    for (int in_flight = 1; in_flight <= 3; in_flight += 2) {
        world w = WORLD, other = WORLD;
        gantry_error err = { 0 };
        double sum[N] = { 0 };
        line l = make_line(&w, in_flight, "host", false);
        w.bad_fill = 5;
        MUST(gantry_run_feed(l.run, l.x, fill, &w, MUST_ERR));
        run_many(&l, in_flight, 5, sum);
        for (int i = 0; i < 2; i++)
            expect_error(once(&l, &err), &err, GANTRY_E_IO,
                         "array 5 of buffer \"x\" could not be made: the camera is gone");
        ck_assert_int_eq(memcmp(output(&l, l.sum), sum, sizeof sum), 0); /* no start was made */
        MUST(gantry_run_feed(l.run, l.x, fill, &other, MUST_ERR));
        ck_assert_int_eq(once(&l, &err), GANTRY_OK);
        expect_array(&l, 0);
        free_line(&l);
    }
}
END_TEST

/* The start that failed had its array; the next has the next. */
START_TEST(a_start_fails)
{
    world w = WORLD;
    gantry_error err = { 0 };
    line l = make_line(&w, 1, "host", false);
    w.bad_work = 2;
    MUST(gantry_run_feed(l.run, l.x, fill, &w, MUST_ERR));
    for (int n = 0; n < 12; n++) {
        gantry_status status = once(&l, &err);
        ck_assert_int_eq(status, n == 2 ? GANTRY_E_KERNEL : GANTRY_OK);
        if (n != 2)
            expect_array(&l, n);
    }
    free_line(&l);
}
END_TEST

static void *cancel_later(void *run)
{
    nap(20000);
    gantry_run_cancel(run);
    return NULL;
}

/* The start that waits for an array gives up at once; the array is not lost. */
START_TEST(cancelled_while_an_array_is_made)
{
    for (int in_flight = 1; in_flight <= 3; in_flight += 2) {
        world w = WORLD;
        gantry_error err = { 0 };
        pthread_t thread;
        double sum[N] = { 0 };
        line l = make_line(&w, in_flight, "host", false);
        MUST(gantry_run_feed(l.run, l.x, fill, &w, MUST_ERR));
        run_many(&l, in_flight, 3, sum);
        atomic_store(&w.blocked, true);
        gantry_status status = GANTRY_OK;
        pthread_create(&thread, NULL, cancel_later, l.run);
        int made = 3; /* some are ready */
        uint64_t ticket;
        while ((status = gantry_run_start(l.run, &ticket, &err)) == GANTRY_OK) {
            made++; /* also where the start was made, and then cancelled */
            if ((status = gantry_run_wait(l.run, ticket, &err)))
                break;
            expect_array(&l, made - 1);
        }
        expect_error(status, &err, GANTRY_E_CANCELED, "the run was cancelled");
        pthread_join(thread, NULL);
        ck_assert_int_le(made, 3 + in_flight + 2);
        atomic_store(&w.blocked, false);
        ck_assert_int_eq(once(&l, &err), GANTRY_OK);
        expect_array(&l, made);
        free_line(&l);
    }
}
END_TEST

/* Freed, bound to something else or fed anew while the thread is at work. */
START_TEST(ends_at_any_time)
{
    for (int round = 0; round < 60; round++) {
        world w = WORLD, other = WORLD;
        gantry_error err = { 0 };
        double x[N] = { 0 };
        w.fill_us = round % 7 * 100;
        line l = make_line(&w, 1 + round % 3, "host", false);
        MUST(gantry_run_feed(l.run, l.x, fill, &w, MUST_ERR));
        for (int n = 0; n < round % 4; n++)
            ck_assert_int_eq(once(&l, &err), GANTRY_OK);
        if (round % 3 == 1) {
            MUST(gantry_run_bind(l.run, l.x, x, sizeof x, MUST_ERR));
            ck_assert_int_eq(once(&l, &err), GANTRY_OK);
            ck_assert_double_eq(output(&l, l.y)[0], 1);
        } else if (round % 3 == 2) {
            MUST(gantry_run_feed(l.run, l.x, fill, &other, MUST_ERR));
            ck_assert_int_eq(once(&l, &err), GANTRY_OK);
            expect_array(&l, 0);
        }
        free_line(&l);
    }
}
END_TEST

START_TEST(refusals)
{
    world w = WORLD;
    gantry_error err = { 0 };
    uint64_t ticket;
    double x[N] = { 0 };
    line l = make_line(&w, 3, "host", false), sim = make_line(&w, 1, "sim", false);
    expect_error(gantry_run_feed(l.run, l.sum, fill, &w, &err), &err, GANTRY_E_INVALID, "\"sum\" is a state");
    expect_error(gantry_run_feed(l.run, l.y, fill, &w, &err), &err, GANTRY_E_INVALID, "\"y\" is temporary");
    expect_error(gantry_run_feed(l.run, sim.x, fill, &w, &err), &err, GANTRY_E_INVALID, "another graph");
    expect_error(gantry_run_feed_files(l.run, l.x, "x.npy", (gantry_feed)7, NULL, &err), &err, GANTRY_E_INVALID,
                 "7 is no gantry_feed");
    w.work_us = 20000;
    MUST(gantry_run_feed(l.run, l.x, fill, &w, MUST_ERR));
    MUST(gantry_run_start(l.run, &ticket, MUST_ERR));
    expect_error(gantry_run_bind(l.run, l.x, x, sizeof x, &err), &err, GANTRY_E_INVALID, "is in flight");
    expect_error(gantry_run_feed(l.run, l.x, fill, &w, &err), &err, GANTRY_E_INVALID, "is in flight");
    MUST(gantry_run_wait(l.run, ticket, MUST_ERR));
    expect_array(&l, 0);
    /* Times only: nothing is made. */
    atomic_store(&w.filled, 0);
    MUST(gantry_run_feed(sim.run, sim.x, fill, &w, MUST_ERR));
    free_line(&l);
    int before = atomic_load(&w.filled);
    ck_assert_int_eq(once(&sim, &err), GANTRY_OK);
    ck_assert_int_eq(atomic_load(&w.filled), before);
    free_line(&sim);
}
END_TEST

/* The host back end computes where arrays are put: nothing lands, and the run says why. */
START_TEST(a_constant_is_put)
{
    world w = WORLD;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    gantry_error err = { 0 };
    double x[N] = { 7 };
    line l = make_line(&w, 1, "host", false);
    MUST(gantry_run_get_info(l.run, &info, MUST_ERR));
    ck_assert_ptr_null(info.landing_why);
    MUST(gantry_run_feed(l.run, l.x, fill, &w, MUST_ERR));
    ck_assert_int_eq(once(&l, &err), GANTRY_OK);
    expect_array(&l, 0);
    MUST(gantry_run_get_info(l.run, &info, MUST_ERR));
    ck_assert_uint_eq(info.landing_bytes, 0);
    ck_assert_str_eq(info.landing_why, "the back end computes where arrays are put");
    MUST(gantry_run_bind(l.run, l.x, x, sizeof x, MUST_ERR)); /* it stays the same from now on */
    for (int n = 0; n < 2; n++) {
        ck_assert_int_eq(once(&l, &err), GANTRY_OK);
        ck_assert_double_eq(output(&l, l.y)[0], 8);
    }
    free_line(&l);
}
END_TEST

/* Another run goes on with the next array. */
START_TEST(handed_over)
{
    world w = WORLD;
    gantry_error err = { 0 };
    line l = make_line(&w, 1, "host", false), next = l;
    MUST(gantry_run_feed(l.run, l.x, fill, &w, MUST_ERR));
    for (int n = 0; n < 4; n++)
        ck_assert_int_eq(once(&l, &err), GANTRY_OK);
    open_run(&next, 4, "host", false);
    MUST(gantry_run_take_over(next.run, l.run, MUST_ERR));
    gantry_run_free(l.run);
    gantry_schedule_free(l.s);
    for (int n = 4; n < 20; n++) {
        ck_assert_int_eq(once(&next, &err), GANTRY_OK);
        expect_array(&next, n);
    }
    free_line(&next);
}
END_TEST

static int no_thread(void)
{
    return EAGAIN;
}

/* A feed that could not begin changes nothing, and leaves nothing. */
START_TEST(memory_and_threads_run_out)
{
    world w = WORLD;
    gantry_error err = { 0 };
    double x[N] = { 0 };
    line l = make_line(&w, 1, "host", false);
    MUST(gantry_run_bind(l.run, l.x, x, sizeof x, MUST_ERR));
    ck_assert_int_eq(once(&l, &err), GANTRY_OK);
    long alive = faults_alive();
    int failed = 0;
    for (;; failed++) {
        faults_after(failed);
        gantry_status status = gantry_run_feed(l.run, l.x, fill, &w, &err);
        if (!faults_off())
            break;
        ck_assert_int_eq(status, GANTRY_E_NOMEM);
        ck_assert_int_le(faults_alive(), alive + 2); /* lists that have grown */
        ck_assert_int_eq(once(&l, &err), GANTRY_OK);
        ck_assert_double_eq(output(&l, l.y)[0], 1);
    }
    ck_assert_int_ge(failed, 5);
    ck_assert_int_eq(once(&l, &err), GANTRY_OK);
    expect_array(&l, 0);
    faults_before_thread(no_thread);
    expect_error(gantry_run_feed(l.run, l.x, fill, &w, &err), &err, GANTRY_E_IO, "a thread that reads ahead");
    faults_before_thread(NULL);
    ck_assert_int_eq(once(&l, &err), GANTRY_OK); /* the feed that it had goes on */
    expect_array(&l, 1);
    free_line(&l);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("feed");
    TCase *c = tcase_create("feed");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, each_start_has_the_next, 0, 2);
    tcase_add_loop_test(c, repeat_takes_one_a_start, 0, 2);
    tcase_add_loop_test(c, reading_goes_on_beside_starts, 0, 2);
    tcase_add_loop_test(c, waiting_is_counted, 0, 2);
    tcase_add_loop_test(c, an_array_cannot_be_made, 0, 2);
    tcase_add_loop_test(c, a_start_fails, 0, 2);
    tcase_add_loop_test(c, cancelled_while_an_array_is_made, 0, 2);
    tcase_add_loop_test(c, ends_at_any_time, 0, 2);
    tcase_add_loop_test(c, refusals, 0, 2);
    tcase_add_loop_test(c, a_constant_is_put, 1, 2);
    tcase_add_loop_test(c, handed_over, 0, 2);
    tcase_add_loop_test(c, memory_and_threads_run_out, 0, 2);
    suite_add_tcase(s, c);
    return run_suite(s);
}
