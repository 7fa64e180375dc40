/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Host devices made unequal on purpose: the function sleeps for each of its rows, three times as long on `slow`. 2000
 * rows in 2 parts. Equal parts: 1000 rows * 90 us = 90 ms on `slow` (or 60 ms for both on `fast`). By speed: 500 rows
 * on `slow`, 45 ms, while `fast` does the others.
 */
#include "../scheduler/suite.h"

#include <errno.h>
#include <gantry/run.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROWS = 2000, SLOW_US = 90, FAST_US = 30 };

static const char machine_text[] =
    "{\"gantry_machine\":1,\"name\":\"unequal\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
    "{\"id\":\"m0\",\"capacity\":\"64MiB\"},{\"id\":\"m1\",\"capacity\":\"64MiB\"}],\"devices\":["
    "{\"id\":\"slow\",\"kind\":\"cpu\",\"type\":\"cpu\",\"memory\":\"m0\",\"gflops\":{\"f32\":1}},"
    "{\"id\":\"fast\",\"kind\":\"cpu\",\"type\":\"cpu\",\"memory\":\"m1\",\"gflops\":{\"f32\":3}}],"
    "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":5,\"bandwidth_gbs\":5}]}";

/* y = 2 x + the row's number. */
static gantry_status work_on(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[0], *y = &l->arg[1];
    int64_t us = y->rows * (l->device == 0 ? SLOW_US : FAST_US);
    struct timespec left = { us / 1000000, us % 1000000 * 1000 };
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
    for (int64_t i = 0; i < y->rows; i++)
        ((float *)y->data)[i] = 2 * ((const float *)x->data)[i] + (float)(y->first_row + i);
    return GANTRY_OK;
}

static gantry_graph *make_graph(gantry_buffer *y, bool on_each)
{
    gantry_graph *g = gantry_graph_new("unequal");
    gantry_buffer x = buffer(g, "x", ROWS);
    *y = buffer(g, "y", ROWS);
    gantry_buffer_init_iota(g, x);
    gantry_buffer_output(g, *y);
    gantry_buffer_split_auto(g, x, 2);
    gantry_buffer_split_auto(g, *y, 2);
    for (int i = 0; i < 2; i++) {
        gantry_node n = gantry_graph_launch(g, "work", work_on, NULL);
        gantry_node_read(g, n, gantry_part(x, i));
        gantry_node_write(g, n, gantry_part(*y, i));
        gantry_node_time(g, n, "slow", ROWS / 2 * SLOW_US);
        gantry_node_time(g, n, "fast", ROWS / 2 * FAST_US);
        if (on_each)
            gantry_node_on(g, n, i ? "fast" : "slow");
    }
    return g;
}

static void expect_result(gantry_run *run, gantry_buffer y)
{
    const void *host;
    uint64_t bytes;
    gantry_error err;
    ck_assert_int_eq(gantry_run_output(run, y, &host, &bytes, &err), GANTRY_OK);
    ck_assert_uint_eq(bytes, ROWS * sizeof(float));
    for (int i = 0; i < ROWS; i++)
        ck_assert_float_eq(((const float *)host)[i], (float)(3 * i));
}

/* The shortest of three starts, in us: load on this computer makes starts longer, never shorter. */
static double measure(gantry_schedule *s, gantry_buffer y, bool check)
{
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    gantry_run *run = NULL;
    gantry_error err;
    double best = 1e18;
    o.backend = "host";
    o.check = check;
    if (gantry_run_new(&run, s, &o, &err))
        ck_abort_msg("%s", err.text);
    for (int i = 0; i < (check ? 1 : 3); i++) {
        uint64_t ticket;
        if (gantry_run_start(run, &ticket, &err) || gantry_run_wait(run, ticket, &err) ||
            gantry_run_get_info(run, &info, &err))
            ck_abort_msg("%s", err.text);
        best = info.last_us < best ? info.last_us : best;
        expect_result(run, y);
    }
    gantry_run_free(run);
    return best;
}

static gantry_schedule *make(gantry_graph *g, const char *balance)
{
    gantry_machine *m = parse_machine(machine_text);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.balance = balance;
    if (gantry_schedule_new(&s, g, m, &o, &err))
        ck_abort_msg("%s", err.text);
    gantry_machine_free(m);
    return s;
}

START_TEST(parts_by_speed_are_faster)
{
    gantry_buffer y;
    gantry_graph *g = make_graph(&y, true);
    gantry_schedule *even = make(g, "static"), *fair = make(g, "dynamic");
    ck_assert_int_eq(even->bounds.at[0].first[1], 1000);
    ck_assert_int_eq(fair->bounds.at[0].first[1], 500);
    double equal_us = measure(even, y, false), fair_us = measure(fair, y, false);
    printf("equal parts %.1f ms (predicted %.1f), by speed %.1f ms (predicted %.1f)\n", equal_us / 1e3,
           gy_ticks_to_us(even->makespan) / 1e3, fair_us / 1e3, gy_ticks_to_us(fair->makespan) / 1e3);
    ck_assert_double_gt(equal_us, 90e3 - 1);
    ck_assert_double_lt(fair_us, 0.75 * equal_us); /* 45 of 90 */
    gantry_schedule_free(even);
    gantry_schedule_free(fair);
    gantry_graph_free(g);
}
END_TEST

START_TEST(a_schedule_that_was_read_runs)
{
    gantry_buffer y;
    gantry_graph *g = make_graph(&y, false);
    gantry_schedule *s = make(g, "dynamic"), *back = NULL;
    char *text = schedule_text(s);
    gantry_error err;
    if (gantry_schedule_parse(&back, text, strlen(text), "test", &err) || gantry_schedule_attach(back, g, &err))
        ck_abort_msg("%s", err.text);
    gantry_graph_free(g); /* the schedule keeps what it needs */
    ck_assert_double_lt(measure(back, y, false), 80e3);
    gantry_free(text);
    gantry_schedule_free(back);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(checking_mode_agrees)
{
    gantry_buffer y;
    gantry_graph *g = make_graph(&y, false);
    gantry_schedule *s = make(g, NULL);
    ck_assert_str_eq(s->balance, "dynamic");
    measure(s, y, true);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("balance on host devices");
    TCase *t = tcase_create("run");
    tcase_add_test(t, parts_by_speed_are_faster);
    tcase_add_test(t, a_schedule_that_was_read_runs);
    tcase_add_test(t, checking_mode_agrees);
    suite_add_tcase(s, t);
    return run_suite(s);
}
