/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Balance by what was measured, on host devices made unequal on purpose while the machine calls them equal: a function
 * sleeps 90 us for each of its rows on `slow`, 30 us on `fast`. 2000 rows in 2 parts: cut by the declared speeds, 1000
 * rows take `slow` 90 ms; 500 rows there and 1500 on `fast` take both 45 ms.
 */
#include "../scheduler/suite.h"

#include <errno.h>
#include <gantry/run.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROWS = 2000, SLOW_US = 90, FAST_US = 30 };

static const char machine_text[] =
    "{\"gantry_machine\":1,\"name\":\"called equal\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
    "{\"id\":\"m0\",\"capacity\":\"64MiB\"},{\"id\":\"m1\",\"capacity\":\"64MiB\"}],\"devices\":["
    "{\"id\":\"slow\",\"kind\":\"cpu\",\"type\":\"cpu\",\"memory\":\"m0\",\"gflops\":{\"f32\":1}},"
    "{\"id\":\"fast\",\"kind\":\"cpu\",\"type\":\"cpu\",\"memory\":\"m1\",\"gflops\":{\"f32\":1}}],"
    "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":5,\"bandwidth_gbs\":5}]}";

/* w = w + x; y = w. */
static gantry_status work_on(const gantry_launch *l)
{
    const float *x = l->arg[0].data;
    float *w = l->arg[1].data, *y = l->arg[2].data;
    int64_t rows = l->arg[0].rows, us = rows * (l->device == 0 ? SLOW_US : FAST_US);
    struct timespec left = { us / 1000000, us % 1000000 * 1000 };
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
    for (int64_t i = 0; i < rows; i++)
        y[i] = w[i] += x[i];
    return GANTRY_OK;
}

static gantry_graph *make_graph(gantry_buffer *y)
{
    gantry_graph *g = gantry_graph_new("unequal");
    gantry_buffer x = buffer(g, "x", ROWS), w = buffer(g, "w", ROWS);
    *y = buffer(g, "y", ROWS);
    gantry_buffer_init_iota(g, x);
    gantry_buffer_init_value(g, w, 0);
    gantry_buffer_set_class(g, w, GANTRY_STATE);
    gantry_buffer_output(g, *y);
    gantry_buffer_split_auto(g, x, 2);
    gantry_buffer_split_auto(g, w, 2);
    gantry_buffer_split_auto(g, *y, 2);
    for (int i = 0; i < 2; i++) {
        gantry_node n = gantry_graph_launch(g, "work", work_on, NULL);
        gantry_node_read(g, n, gantry_part(x, i));
        gantry_node_readwrite(g, n, gantry_part(w, i));
        gantry_node_write(g, n, gantry_part(*y, i));
        gantry_node_cost(g, n, ROWS / 2 * FAST_US * 1e3, 0); /* at 1 GFLOP/s: 30 us a row */
        gantry_node_on(g, n, i ? "fast" : "slow");
    }
    return g;
}

static gantry_run *open_run(gantry_schedule *s, bool record)
{
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    gantry_run *run = NULL;
    gantry_error err;
    o.backend = "host";
    o.record_trace = record;
    if (gantry_run_new(&run, s, &o, &err))
        ck_abort_msg("%s", err.text);
    return run;
}

/* The n-th start since the state was 0 gives n times x. Returns its time in ms. */
static double start(gantry_run *run, gantry_buffer y, int n)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    const void *host;
    uint64_t ticket, bytes;
    gantry_error err;
    if (gantry_run_start(run, &ticket, &err) || gantry_run_wait(run, ticket, &err) ||
        gantry_run_get_info(run, &info, &err) || gantry_run_output(run, y, &host, &bytes, &err))
        ck_abort_msg("%s", err.text);
    for (int i = 0; i < ROWS; i++)
        ck_assert_float_eq(((const float *)host)[i], (float)(n * i));
    return info.last_us / 1e3;
}

static gantry_schedule *make(gantry_graph *g)
{
    gantry_machine *m = parse_machine(machine_text);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.balance = "guided";
    if (gantry_schedule_new(&s, g, m, &o, &err))
        ck_abort_msg("%s", err.text);
    gantry_machine_free(m);
    ck_assert_str_eq(s->balance, "guided");
    return s;
}

static gantry_rebalance rebalance(gantry_run *run, int64_t left, gantry_schedule **next)
{
    gantry_rebalance r = GANTRY_REBALANCE_INIT;
    gantry_error err;
    if (gantry_run_rebalance(next, run, left, NULL, &r, &err))
        ck_abort_msg("%s", err.text);
    return r;
}

/* Sleeping takes a little longer than asked for, and starts have other costs: load on this computer makes them longer,
 * never shorter. */
START_TEST(parts_follow_what_was_measured)
{
    gantry_buffer y;
    gantry_graph *g = make_graph(&y);
    gantry_schedule *first = make(g), *second = NULL, *third = NULL;
    gantry_run *run = open_run(first, true), *then;
    gantry_error err;
    ck_assert_int_eq(first->bounds.at[0].first[1], ROWS / 2);
    double equal = start(run, y, 1);
    gantry_rebalance r = rebalance(run, 10, &second);
    ck_assert_ptr_nonnull(second);
    ck_assert_int_eq(r.pays, 1);
    ck_assert_str_eq(second->balance, "guided");
    int64_t rows = second->bounds.at[0].first[1];
    ck_assert_int_gt(rows, 400);
    ck_assert_int_lt(rows, 650);
    ck_assert_double_gt(r.now_us, 90e3);
    ck_assert_double_lt(r.then_us, 0.75 * r.now_us);
    ck_assert_uint_eq(r.moved_bytes, (uint64_t)(ROWS / 2 - rows) * sizeof(float)); /* from slow to fast */
    ck_assert_uint_eq(r.handed_bytes, ROWS * sizeof(float));
    /* Out of two memories and into two, each 5 us and its bytes at 5 GB/s: 20 us and 2 x 8000 bytes. */
    ck_assert_double_eq_tol(r.hand_over_us, 4 * 5 + 2 * 8000 / 5e3, 0.1);
    then = open_run(second, true);
    if (gantry_run_take_over(then, run, &err))
        ck_abort_msg("%s", err.text);
    gantry_run_free(run);
    double fair = start(then, y, 2), again = start(then, y, 3);
    fair = again < fair ? again : fair;
    printf("called equal: %.1f ms; after what was measured, %lld rows on slow: %.1f ms (predicted %.1f)\n", equal,
           (long long)rows, fair, r.then_us / 1e3);
    ck_assert_double_gt(equal, 90);
    ck_assert_double_lt(fair, 0.75 * equal);
    r = rebalance(then, 0, &third); /* nothing is left to gain anything for */
    ck_assert_ptr_null(third);
    ck_assert_int_eq(r.pays, 0);
    ck_assert_double_lt(r.now_us, 0.75 * 90e3); /* the new schedule is predicted by what was measured */
    gantry_run_free(then);
    gantry_schedule_free(first);
    gantry_schedule_free(second);
    gantry_graph_free(g);
}
END_TEST

/* By speed from the beginning: there is nothing to gain. */
START_TEST(what_is_even_stays)
{
    gantry_buffer y;
    gantry_graph *g = make_graph(&y);
    gantry_schedule *s = make(g), *fair = NULL, *next = NULL;
    gantry_run *run = open_run(s, true);
    start(run, y, 1);
    rebalance(run, 1000, &fair);
    ck_assert_ptr_nonnull(fair);
    gantry_run_free(run);
    run = open_run(fair, true);
    start(run, y, 1);
    gantry_rebalance r = rebalance(run, 1, &next);
    ck_assert_double_lt(r.now_us - r.then_us, 10e3); /* of 45 */
    gantry_run_free(run);
    gantry_schedule_free(next);
    gantry_schedule_free(fair);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(wrong_calls_are_refused)
{
    gantry_buffer y;
    gantry_graph *g = make_graph(&y);
    gantry_schedule *s = make(g), *next = s;
    gantry_run *bare = open_run(s, false), *run = open_run(s, true);
    gantry_error err;
    ck_assert_int_eq(gantry_run_rebalance(&next, bare, 1, NULL, NULL, &err), GANTRY_E_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "record_trace"));
    ck_assert_int_eq(gantry_run_rebalance(&next, run, 1, NULL, NULL, &err), GANTRY_E_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "gantry_run_wait"));
    ck_assert_int_eq(gantry_run_rebalance(&next, run, -1, NULL, NULL, &err), GANTRY_E_INVALID);
    ck_assert_ptr_eq(next, s);
    ck_assert_int_eq(gantry_run_take_over(run, run, &err), GANTRY_E_INVALID);
    start(run, y, 1);
    ck_assert_int_eq(gantry_run_take_over(run, bare, &err), GANTRY_E_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "first start"));
    ck_assert_int_eq(gantry_run_take_over(bare, run, &err), GANTRY_OK);
    start(bare, y, 2);
    gantry_run_free(run);
    gantry_run_free(bare);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("balance by what was measured");
    TCase *t = tcase_create("guided");
    tcase_add_test(t, parts_follow_what_was_measured);
    tcase_add_test(t, what_is_even_stays);
    tcase_add_test(t, wrong_calls_are_refused);
    suite_add_tcase(s, t);
    return run_suite(s);
}
