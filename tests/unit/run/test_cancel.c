/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are cancelled, by other threads and by signals, at random moments: what had completed by then is right,
 * what had not is refused, and the run can be started again. */
#include "build.h"
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { N = 32, ROUNDS = 120 };

static void nap(long us)
{
    struct timespec t = { 0, us * 1000 };
    nanosleep(&t, NULL);
}

/* b = a + 1, in about a millisecond. */
static gantry_status step(const gantry_launch *l)
{
    nap(700);
    for (int i = 0; i < N; i++)
        ((double *)l->arg[1].data)[i] = ((double *)l->arg[0].data)[i] + 1;
    return GANTRY_OK;
}

/* sum += b */
static gantry_status add_up(const gantry_launch *l)
{
    for (int i = 0; i < N; i++)
        ((double *)l->arg[1].data)[i] += ((double *)l->arg[0].data)[i];
    return GANTRY_OK;
}

typedef struct line {
    gantry_graph *g;
    gantry_buffer x, y[3], sum;
    gantry_schedule *s;
    gantry_run *run;
} line;

static gantry_buffer vector(gantry_graph *g, const char *name)
{
    return gantry_graph_buffer(g, name, GANTRY_F64, 1, (int64_t[]){ N });
}

static gantry_node call(gantry_graph *g, const char *name, gantry_kernel_fn fn, gantry_buffer from, int device)
{
    static const char *const devices[] = { "dev0", "dev1", "dev2" };
    gantry_node n = gantry_graph_launch(g, name, fn, NULL);
    gantry_node_read(g, n, gantry_all(from));
    gantry_node_on(g, n, devices[device]);
    gantry_node_time(g, n, NULL, 1000);
    return n;
}

/* x -> dev0 -> y0 -> dev1 -> y1 -> dev2 -> y2 = x + 3, each an output; dev2 adds y2 up in a state, an output too. */
static line make_line(int in_flight, const gantry_run_options *options)
{
    static const char *const name[] = { "y0", "y1", "y2" };
    line l = { .g = gantry_graph_new("line") };
    l.x = vector(l.g, "x");
    l.sum = vector(l.g, "sum");
    gantry_buffer_set_class(l.g, l.x, GANTRY_INPUT);
    gantry_buffer_set_class(l.g, l.sum, GANTRY_STATE);
    gantry_buffer_init_value(l.g, l.sum, 0);
    gantry_buffer_output(l.g, l.sum);
    for (int i = 0; i < 3; i++) {
        l.y[i] = vector(l.g, name[i]);
        gantry_buffer_output(l.g, l.y[i]);
        gantry_node_write(l.g, call(l.g, "step", step, i ? l.y[i - 1] : l.x, i), gantry_all(l.y[i]));
    }
    gantry_node_readwrite(l.g, call(l.g, "add_up", add_up, l.y[2], 2), gantry_all(l.sum));
    gantry_machine *m;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.policy = "heft";
    o.objective = in_flight > 1 ? "period" : NULL;
    o.in_flight = in_flight > 1 ? in_flight : 0;
    MUST(gantry_machine_virtual(&m, 3, MUST_ERR));
    MUST(gantry_schedule_new(&l.s, l.g, m, &o, MUST_ERR));
    gantry_machine_free(m);
    MUST(gantry_run_new(&l.run, l.s, options, MUST_ERR));
    return l;
}

static void free_line(line *l)
{
    gantry_run_free(l->run);
    gantry_schedule_free(l->s);
    gantry_graph_free(l->g);
}

static uint64_t completed(const gantry_run *run)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    return info.completed;
}

/* True: the output is there, and all of it is what it should be. False: it is not. */
static bool has(const line *l, gantry_buffer b, double expected)
{
    const void *host = NULL;
    gantry_error err = { 0 };
    gantry_status status = gantry_run_output(l->run, b, &host, NULL, &err);
    if (status == GANTRY_E_CANCELED) {
        ck_assert_ptr_nonnull(strstr(err.text, "cancelled before it was complete"));
        return false;
    }
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(((const double *)host)[i], expected);
    return true;
}

typedef struct canceler {
    gantry_run *run;
    long after_us;
} canceler;

static void *cancel_later(void *data)
{
    const canceler *c = data;
    nap(c->after_us);
    gantry_run_cancel(c->run);
    return NULL;
}

/* Starts until the run says that it was cancelled, each with another x; what each start leaves is checked. After a
 * start that was cut the sum begins at 0 again. Returns how many of y0, y1, y2 that one had completed. */
static int run_until_canceled(line *l, double *x, double *sum)
{
    gantry_error err = { 0 };
    for (int starts = 0;; starts++) {
        uint64_t ticket, before = completed(l->run);
        for (int i = 0; i < N; i++)
            x[i] = starts;
        gantry_status status = gantry_run_start(l->run, &ticket, &err);
        bool begun = status == GANTRY_OK;
        status = status ? status : gantry_run_wait(l->run, ticket, &err);
        ck_assert_uint_eq(completed(l->run), before + (status == GANTRY_OK));
        if (status == GANTRY_OK) {
            *sum += starts + 3;
            ck_assert(has(l, l->y[0], starts + 1) && has(l, l->y[1], starts + 2) && has(l, l->y[2], starts + 3) &&
                      has(l, l->sum, *sum));
            continue;
        }
        ck_assert_msg(status == GANTRY_E_CANCELED, "%s", err.text);
        ck_assert_msg(strncmp(err.text, "the run was cancelled: ", 23) == 0, "%s", err.text);
        if (!begun)
            return 0;
        bool y[] = { has(l, l->y[0], starts + 1), has(l, l->y[1], starts + 2), has(l, l->y[2], starts + 3) };
        (void)has(l, l->sum, *sum + starts + 3);
        *sum = 0;
        return y[0] + y[1] + y[2];
    }
}

START_TEST(another_thread_cancels)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "host";
    options.check = _i;
    line l = make_line(1, &options);
    double x[N] = { 0 };
    double sum = 0;
    int partly = 0;
    srand(7);
    MUST(gantry_run_bind(l.run, l.x, x, sizeof x, MUST_ERR));
    for (int round = 0; round < (_i ? 20 : ROUNDS); round++) {
        pthread_t thread;
        canceler c = { l.run, rand() % 8000 };
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_later, &c), 0);
        int there = run_until_canceled(&l, x, &sum);
        partly += there > 0 && there < 3;
        pthread_join(thread, NULL);
    }
    if (!_i) /* two of three moments are such */
        ck_assert_int_gt(partly, 0);
    free_line(&l);
}
END_TEST

/* Starts that overlap: those that say so are complete and right, those after the first that is not are not. */
START_TEST(starts_in_flight_are_canceled)
{
    enum { STARTS = 12 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "host";
    line l = make_line(3, &options);
    double x[N] = { 0 };
    gantry_error err = { 0 };
    srand(11);
    MUST(gantry_run_bind(l.run, l.x, x, sizeof x, MUST_ERR));
    for (int round = 0; round < ROUNDS / 2; round++) {
        uint64_t ticket[STARTS], before = completed(l.run), good = 0;
        pthread_t thread;
        canceler c = { l.run, rand() % 12000 };
        bool failed = false;
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_later, &c), 0);
        int begun = 0;
        gantry_status status = GANTRY_OK;
        while (begun < STARTS && !(status = gantry_run_start(l.run, &ticket[begun], &err)))
            begun++;
        ck_assert(!status || status == GANTRY_E_CANCELED);
        for (int i = 0; i < begun; i++) {
            status = gantry_run_wait(l.run, ticket[i], &err);
            ck_assert(!status || status == GANTRY_E_CANCELED);
            ck_assert(!(failed && !status));
            failed = status != GANTRY_OK;
            good += !failed;
        }
        ck_assert_uint_eq(completed(l.run), before + good);
        pthread_join(thread, NULL);
        while (gantry_run_start(l.run, &ticket[0], &err)) /* where the cancellation came late */
            ck_assert_int_eq(err.status, GANTRY_E_CANCELED);
        MUST(gantry_run_wait(l.run, ticket[0], MUST_ERR));
        ck_assert(has(&l, l.y[2], 3));
    }
    free_line(&l);
}
END_TEST

/* Of so many starts that follow each other, those that ended are counted, and the outputs are those of the last or of
 * the one that was cut. */
START_TEST(repeated_starts_are_canceled)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "host";
    line l = make_line(1, &options);
    double x[N] = { 0 };
    gantry_error err = { 0 };
    MUST(gantry_run_bind(l.run, l.x, x, sizeof x, MUST_ERR));
    srand(13);
    for (int round = 0; round < 10; round++) {
        pthread_t thread;
        canceler c = { l.run, rand() % 15000 };
        uint64_t before = completed(l.run);
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_later, &c), 0);
        ck_assert_int_eq(gantry_run_repeat(l.run, 1000000000, &err), GANTRY_E_CANCELED);
        pthread_join(thread, NULL);
        ck_assert_uint_lt(completed(l.run) - before, 1000);
        before = completed(l.run);
        MUST(gantry_run_repeat(l.run, 3, MUST_ERR));
        ck_assert_uint_eq(completed(l.run), before + 3);
        ck_assert(has(&l, l.y[2], 3));
    }
    free_line(&l);
}
END_TEST

/* While nothing is in flight: the next start says so, once. */
START_TEST(an_idle_run_is_canceled)
{
    static const char *const backends[] = { "host", "sim" };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = backends[_i];
    line l = make_line(1, &options);
    double x[N] = { 0 };
    gantry_error err = { 0 };
    MUST(gantry_run_bind(l.run, l.x, x, sizeof x, MUST_ERR));
    MUST(run_once(l.run, MUST_ERR));
    gantry_run_cancel(l.run);
    gantry_run_cancel(l.run);
    ck_assert_int_eq(run_once(l.run, &err), GANTRY_E_CANCELED);
    ck_assert_str_eq(err.text, "the run was cancelled: 1 start is complete; it can be started again");
    MUST(run_once(l.run, MUST_ERR));
    ck_assert_uint_eq(completed(l.run), 2);
    gantry_run_cancel(l.run);
    free_line(&l);
}
END_TEST

/* A run that is freed does not wait for what was not begun. */
START_TEST(a_canceled_run_is_freed_in_flight)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "host";
    for (int round = 0; round < 20; round++) {
        line l = make_line(3, &options);
        double x[N] = { 0 };
        MUST(gantry_run_bind(l.run, l.x, x, sizeof x, MUST_ERR));
        for (int i = 0; i < 3; i++)
            MUST(gantry_run_start(l.run, NULL, MUST_ERR));
        nap(rand() % 3000);
        gantry_run_cancel(l.run);
        free_line(&l);
    }
}
END_TEST

static gantry_run *to_cancel;

static void on_alarm(int number)
{
    (void)number;
    gantry_run_cancel(to_cancel);
}

START_TEST(a_signal_handler_cancels)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "host";
    line l = make_line(1, &options);
    double x[N] = { 0 }, sum = 0;
    struct sigaction how = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    ck_assert_int_eq(sigaction(SIGALRM, &how, NULL), 0);
    to_cancel = l.run;
    srand(5);
    MUST(gantry_run_bind(l.run, l.x, x, sizeof x, MUST_ERR));
    for (int round = 0; round < ROUNDS / 2; round++) {
        struct itimerval when = { .it_value = { 0, 1 + rand() % 6000 } };
        setitimer(ITIMER_REAL, &when, NULL);
        run_until_canceled(&l, x, &sum);
    }
    free_line(&l);
}
END_TEST

/* ---- loops, and what is told ---- */

/* x counts iterations; `done` is more than 0 once it is greater than the number that is filled in. */
static const char counting[] = "{\"gantry\":1,\"name\":\"count\",\"buffers\":{"
                               "\"x\":{\"dtype\":\"f64\",\"shape\":[1],\"init\":0,\"output\":true},"
                               "\"next\":{\"dtype\":\"f64\",\"shape\":[1]},"
                               "\"done\":{\"dtype\":\"f64\",\"shape\":[1],\"output\":true}},"
                               "\"nodes\":[{\"repeat\":2000000,\"carry\":{\"x\":\"next\"},"
                               "\"until\":{\"buffer\":\"done\",\"every\":10},\"nodes\":["
                               "{\"id\":\"add\",\"map\":{\"next\":\"x + 1\"},\"args\":{\"x\":\"x\",\"next\":\"next\"}},"
                               "{\"id\":\"test\",\"map\":{\"done\":\"max(n - %d, 0)\"},"
                               "\"args\":{\"n\":\"next\",\"done\":\"done\"}}]}]}";

typedef struct told {
    gantry_run_progress last;
    int calls;
    uint64_t stop_at;
    pthread_t by;
} told;

static int tell(void *user, const gantry_run_progress *p)
{
    told *t = user;
    ck_assert_uint_eq(p->struct_size, sizeof *p);
    ck_assert(p->iterations >= t->last.iterations && p->iterations <= p->most);
    ck_assert(pthread_equal(pthread_self(), t->by));
    t->last = *p;
    t->calls++;
    return p->iterations >= t->stop_at;
}

static gantry_run *open_loop(gantry_schedule **s, gantry_graph **g, int last, told *t)
{
    char text[sizeof counting + 16];
    gantry_run *run;
    gantry_machine *m;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    int length = snprintf(text, sizeof text, counting, last);
    options.backend = "host";
    options.progress = t ? tell : NULL;
    options.user = t;
    MUST(gantry_graph_parse(g, text, (size_t)length, "count", NULL, NULL, MUST_ERR));
    MUST(gantry_machine_virtual(&m, 1, MUST_ERR));
    MUST(gantry_schedule_new(s, *g, m, NULL, MUST_ERR));
    MUST(gantry_run_new(&run, *s, &options, MUST_ERR));
    gantry_machine_free(m);
    return run;
}

/* Whoever is told says when it is enough; the loop ends, and a run that is started again begins anew. */
START_TEST(a_loop_tells_and_is_canceled)
{
    gantry_graph *g;
    gantry_schedule *s;
    gantry_error err = { 0 };
    told t = { .stop_at = 200, .by = pthread_self() };
    gantry_run *run = open_loop(&s, &g, 1000000, &t);
    for (int round = 0; round < 3; round++) {
        gantry_run_info info = GANTRY_RUN_INFO_INIT;
        t.last.iterations = 0;
        t.calls = 0;
        ck_assert_int_eq(run_once(run, &err), GANTRY_E_CANCELED);
        ck_assert_msg(strstr(err.text, "in phase 0 after ") && strstr(err.text, " iterations, before "), "%s",
                      err.text);
        MUST(gantry_run_get_info(run, &info, MUST_ERR));
        ck_assert_int_gt(t.calls, 0);
        ck_assert_uint_ge(info.iterations, t.last.iterations);
        ck_assert_uint_eq(info.completed, 0);
        ck_assert_uint_eq(t.last.most, 2000000);
        ck_assert(t.last.watched == 0.0);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* A loop that is not cancelled ends where it should, though it was before; between starts of a phase, too. */
START_TEST(a_canceled_loop_is_run_again)
{
    gantry_graph *g;
    gantry_schedule *s;
    gantry_error err = { 0 };
    gantry_run *run = open_loop(&s, &g, 300, NULL);
    srand(3);
    for (int round = 0; round < 40; round++) {
        pthread_t thread;
        canceler c = { run, rand() % 4000 };
        const void *x;
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_later, &c), 0);
        gantry_status status = run_once(run, &err);
        pthread_join(thread, NULL);
        ck_assert(!status || status == GANTRY_E_CANCELED);
        if (!status) /* the cancellation came behind it */
            ck_assert_int_eq(run_once(run, &err), GANTRY_E_CANCELED);
        MUST(run_once(run, MUST_ERR));
        MUST(gantry_run_output(run, gantry_graph_find_buffer(g, "x"), &x, NULL, MUST_ERR));
        ck_assert_double_eq(*(const double *)x, 310); /* looked at after every tenth */
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cancel");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, another_thread_cancels, 0, 2);
    tcase_add_test(all, starts_in_flight_are_canceled);
    tcase_add_test(all, repeated_starts_are_canceled);
    tcase_add_loop_test(all, an_idle_run_is_canceled, 0, 2);
    tcase_add_test(all, a_canceled_run_is_freed_in_flight);
    tcase_add_test(all, a_signal_handler_cancels);
    tcase_add_test(all, a_loop_tells_and_is_canceled);
    tcase_add_test(all, a_canceled_loop_is_run_again);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
