/* SPDX-License-Identifier: Apache-2.0 */
/* Starts that overlap, as a caller sees them: which start an output is of, bindings that change while starts are in
 * flight, arrays that one start writes and another reads, failures. */
#include "base/file.h"
#include "build.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 64, K = 3 };

static void nap(long us)
{
    struct timespec t = { 0, us * 1000 };
    nanosleep(&t, NULL);
}

/* Calls that are still to come before one fails; negative: none does. */
static atomic_int good = -1;

/* Element i, in packed order where the buffer has four tiles. */
static double *at(const gantry_arg *a, int i)
{
    return a->items ? (double *)a->items[i / (N / 4)].data + i % (N / 4) : (double *)a->data + i;
}

/* y = x + 1, slowly. */
static gantry_status step(const gantry_launch *l)
{
    nap(1000);
    for (int i = 0; i < N; i++)
        *at(&l->arg[1], i) = *at(&l->arg[0], i) + 1;
    return atomic_fetch_sub(&good, 1) == 0 ? GANTRY_E_KERNEL : GANTRY_OK;
}

/* sum += x */
static gantry_status add_up(const gantry_launch *l)
{
    for (int i = 0; i < N; i++)
        *at(&l->arg[1], i) += *at(&l->arg[0], i);
    return GANTRY_OK;
}

typedef struct line {
    gantry_graph *g;
    gantry_buffer x, y, sum;
    gantry_schedule *s;
    gantry_run *run;
} line;

/* x -> dev0 -> dev1 -> dev2 -> y = x + 3; dev2 adds y up in a state, which is an output too. With `tiles`, x and y are
 * 8 x 8 numbers in 4 x 4 tiles. */
static line make_line(bool tiles, int in_flight)
{
    line l = { .g = gantry_graph_new("line") };
    gantry_buffer a = gantry_graph_buffer(l.g, "a", GANTRY_F64, 1, (int64_t[]){ N });
    gantry_buffer b = gantry_graph_buffer(l.g, "b", GANTRY_F64, 1, (int64_t[]){ N });
    l.x = gantry_graph_buffer(l.g, "x", GANTRY_F64, 2, (int64_t[]){ 8, 8 });
    l.y = gantry_graph_buffer(l.g, "y", GANTRY_F64, 2, (int64_t[]){ 8, 8 });
    l.sum = gantry_graph_buffer(l.g, "sum", GANTRY_F64, 1, (int64_t[]){ N });
    if (tiles) {
        gantry_buffer_tiles(l.g, l.x, 2, 2);
        gantry_buffer_tiles(l.g, l.y, 2, 2);
    }
    gantry_buffer_set_class(l.g, l.x, GANTRY_INPUT);
    gantry_buffer_set_class(l.g, l.sum, GANTRY_STATE);
    gantry_buffer_init_value(l.g, l.sum, 0);
    gantry_buffer_output(l.g, l.y);
    gantry_buffer_output(l.g, l.sum);
    const gantry_buffer chain[] = { l.x, a, b, l.y };
    for (int i = 0; i < 3; i++) {
        static const char *const device[] = { "dev0", "dev1", "dev2" };
        gantry_node n = gantry_graph_launch(l.g, "step", step, NULL);
        gantry_node_read(l.g, n, gantry_all(chain[i]));
        gantry_node_write(l.g, n, gantry_all(chain[i + 1]));
        gantry_node_on(l.g, n, device[i]);
        gantry_node_time(l.g, n, NULL, 1000);
    }
    gantry_node n = gantry_graph_launch(l.g, "add_up", add_up, NULL);
    gantry_node_read(l.g, n, gantry_all(l.y));
    gantry_node_readwrite(l.g, n, gantry_all(l.sum));
    gantry_node_on(l.g, n, "dev2");
    gantry_node_time(l.g, n, NULL, 1);
    gantry_machine *m;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.policy = "heft";
    o.objective = "period";
    o.in_flight = in_flight;
    MUST(gantry_machine_virtual(&m, 3, MUST_ERR));
    MUST(gantry_schedule_new(&l.s, l.g, m, &o, MUST_ERR));
    gantry_machine_free(m);
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    ro.backend = "host";
    MUST(gantry_run_new(&l.run, l.s, &ro, MUST_ERR));
    return l;
}

static void free_line(line *l)
{
    gantry_run_free(l->run);
    gantry_schedule_free(l->s);
    gantry_graph_free(l->g);
}

static void fill(double *x, double value)
{
    for (int i = 0; i < N; i++)
        x[i] = value + i;
}

static uint64_t start_with(const line *l, const double *x)
{
    uint64_t ticket;
    MUST(gantry_run_bind(l->run, l->x, x, N * 8, MUST_ERR));
    MUST(gantry_run_start(l->run, &ticket, MUST_ERR));
    return ticket;
}

static void expect(const line *l, gantry_buffer buffer, double value)
{
    const void *host;
    uint64_t bytes;
    MUST(gantry_run_output(l->run, buffer, &host, &bytes, MUST_ERR));
    const double *y = host;
    for (int i = 0; i < N; i++)
        ck_assert_msg(y[i] == value + i, "element %d is %g, not %g", i, y[i], value + i);
}

START_TEST(an_output_is_of_the_start_that_was_waited_for)
{
    line l = make_line(_i, K);
    double x[6][N];
    uint64_t ticket[6];
    for (int s = 0; s < 6; s++)
        fill(x[s], 100 * s);
    for (int s = 0; s < K; s++)
        ticket[s] = start_with(&l, x[s]);
    for (int s = 0; s < 3; s++) { /* others are in flight all the time */
        MUST(gantry_run_wait(l.run, ticket[s], MUST_ERR));
        expect(&l, l.y, 100 * s + 3);
        ticket[s + K] = start_with(&l, x[s + K]);
    }
    gantry_error err = { 0 };
    const void *host;
    uint64_t bytes;
    ck_assert_int_eq(gantry_run_output(l.run, l.y, &host, &bytes, &err), GANTRY_E_INVALID); /* start 6 has its memory */
    ck_assert_msg(strstr(err.text, "has not been waited for") != NULL, "%s", err.text);
    MUST(gantry_run_wait(l.run, ticket[5], MUST_ERR));
    expect(&l, l.y, 503);
    MUST(gantry_run_wait(l.run, ticket[4], MUST_ERR)); /* still there */
    expect(&l, l.y, 403);
    free_line(&l);
}
END_TEST

START_TEST(states_go_from_start_to_start)
{
    line l = make_line(false, K);
    double x[N] = { 0 };
    uint64_t ticket = 0;
    for (int s = 0; s < 20; s++)
        ticket = start_with(&l, x);
    MUST(gantry_run_wait(l.run, ticket, MUST_ERR));
    const void *host;
    uint64_t bytes;
    MUST(gantry_run_output(l.run, l.sum, &host, &bytes, MUST_ERR));
    ck_assert(((const double *)host)[5] == 60); /* 20 times 0 + 3 */
    gantry_error err = { 0 };
    start_with(&l, x);
    ck_assert_int_eq(gantry_run_bind(l.run, l.sum, x, sizeof x, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "gantry_run_bind while start 21 is in flight; wait for it first");
    free_line(&l);
}
END_TEST

/* One array for the outputs of all starts, or for one start's output and the next one's input: these starts wait. */
START_TEST(starts_that_share_an_array_follow_each_other)
{
    line l = make_line(_i, K);
    double one[N], ring[4][N];
    uint64_t ticket = 0;
    MUST(gantry_run_bind_output(l.run, l.y, one, sizeof one, MUST_ERR));
    for (int s = 0; s < 5; s++) {
        fill(ring[0], 10 * s);
        ticket = start_with(&l, ring[0]);
        MUST(gantry_run_wait(l.run, ticket, MUST_ERR));
        expect(&l, l.y, 10 * s + 3);
    }
    for (int s = 0; s < 5; s++)
        ticket = start_with(&l, ring[0]); /* no wait: the last one's is there in the end */
    MUST(gantry_run_wait(l.run, ticket, MUST_ERR));
    expect(&l, l.y, 43);
    fill(ring[0], 0);
    for (int s = 0; s < 9; s++) { /* ring[s] -> ring[s + 1] */
        MUST(gantry_run_bind_output(l.run, l.y, ring[(s + 1) % 4], sizeof ring[0], MUST_ERR));
        ticket = start_with(&l, ring[s % 4]);
    }
    MUST(gantry_run_wait(l.run, ticket, MUST_ERR));
    expect(&l, l.y, 27);
    free_line(&l);
}
END_TEST

/* Contents that a start in flight reads stay, though the run's own memory of them was replaced. */
START_TEST(files_can_be_bound_in_flight)
{
    line l = make_line(false, K);
    double x[N];
    uint64_t ticket[K];
    char path[64];
    snprintf(path, sizeof path, "/tmp/gantry-starts-%d.raw", (int)getpid());
    for (int s = 0; s < K; s++) {
        fill(x, 1000 * s);
        MUST(gy_file_write(path, (const char *)x, sizeof x, MUST_ERR));
        MUST(gantry_run_bind_file(l.run, l.x, path, MUST_ERR));
        MUST(gantry_run_start(l.run, &ticket[s], MUST_ERR));
    }
    unlink(path);
    for (int s = 0; s < K; s++) {
        MUST(gantry_run_wait(l.run, ticket[s], MUST_ERR));
        expect(&l, l.y, 1000 * s + 3);
    }
    free_line(&l);
}
END_TEST

START_TEST(a_failure_ends_what_is_in_flight)
{
    line l = make_line(false, K);
    double x[N];
    uint64_t ticket[3];
    gantry_error err = { 0 };
    fill(x, 0);
    atomic_store(&good, 4); /* a step of the second start */
    for (int s = 0; s < 3; s++)
        ticket[s] = start_with(&l, x);
    ck_assert_int_eq(gantry_run_wait(l.run, ticket[2], &err), GANTRY_E_KERNEL);
    ck_assert_int_eq(gantry_run_output(l.run, l.y, &(const void *){ NULL }, &(uint64_t){ 0 }, &err), GANTRY_E_INVALID);
    ck_assert_msg(strstr(err.text, "failed") != NULL, "%s", err.text);
    atomic_store(&good, -1);
    uint64_t again = start_with(&l, x);
    MUST(gantry_run_wait(l.run, again, MUST_ERR));
    expect(&l, l.y, 3);
    expect(&l, l.sum, 3); /* states begin anew */
    free_line(&l);
}
END_TEST

static double ms_of_starts(const line *l, int starts)
{
    double x[N] = { 0 };
    struct timespec begin, end;
    uint64_t ticket = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int s = 0; s < starts; s++)
        ticket = start_with(l, x);
    MUST(gantry_run_wait(l->run, ticket, MUST_ERR));
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
}

/* The three devices work on three starts at a time: that takes much less than one start after the other. Once in ten
 * times is enough, on a computer that has other things to do. */
START_TEST(starts_really_overlap)
{
    enum { STARTS = 60, TIMES = 10 };
    const double most = STARTS * 3 * 0.75;
    line l = make_line(false, 4);
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    double ms = ms_of_starts(&l, STARTS);
    MUST(gantry_run_get_info(l.run, &info, MUST_ERR));
    ck_assert_uint_eq(info.starts, STARTS);
    for (int time = 1; time < TIMES && ms >= most; time++)
        ms = ms_of_starts(&l, STARTS);
    ck_assert_msg(ms < most, "60 starts of 3 ms took %.1f ms", ms);
    free_line(&l);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run starts");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, an_output_is_of_the_start_that_was_waited_for, 0, 2);
    tcase_add_test(tc, states_go_from_start_to_start);
    tcase_add_loop_test(tc, starts_that_share_an_array_follow_each_other, 0, 2);
    tcase_add_test(tc, files_can_be_bound_in_flight);
    tcase_add_test(tc, a_failure_ends_what_is_in_flight);
    tcase_add_test(tc, starts_really_overlap);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
