/* SPDX-License-Identifier: Apache-2.0 */
/* Where automatic splits are cut, against bounds computed by hand. */
#include "../scheduler/suite.h"
#include "schedule/check/verify.h"

#include <stdio.h>
#include <string.h>

/* Two devices: `slow` does 1 operation a nanosecond, `fast` three; both have room for `kib` and 3 * kib KiB. */
static gantry_machine *unequal(double slow_launch, double fast_launch, int kib)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"gantry_machine\":1,\"name\":\"unequal\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},"
             "{\"id\":\"m0\",\"capacity\":\"%dKiB\"},{\"id\":\"m1\",\"capacity\":\"%dKiB\"}],\"devices\":["
             "{\"id\":\"slow\",\"memory\":\"m0\",\"gflops\":{\"f32\":1},\"launch_us\":%g},"
             "{\"id\":\"fast\",\"memory\":\"m1\",\"gflops\":{\"f32\":3},\"launch_us\":%g}],"
             "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":0.001,\"bandwidth_gbs\":1000}]}",
             kib, 3 * kib, slow_launch, fast_launch);
    return parse_machine(text);
}

/* Each of `rows` rows takes 1 us on `slow`, a third of it on `fast`. Nothing goes to or from the host. */
static gantry_graph *rows_of_work(int64_t rows, int parts)
{
    gantry_graph *g = gantry_graph_new("rows");
    gantry_buffer x = buffer(g, "x", rows), y = buffer(g, "y", rows);
    gantry_buffer_set_class(g, x, GANTRY_CONST);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_split_auto(g, x, parts);
    gantry_buffer_split_auto(g, y, parts);
    for (int i = 0; i < parts; i++) {
        gantry_node n = gantry_graph_work(g, "work");
        gantry_node_read(g, n, gantry_part(x, i));
        gantry_node_write(g, n, gantry_part(y, i));
        gantry_node_cost(g, n, (double)rows / parts * 1000, 0);
    }
    return g;
}

static gantry_schedule *cut_by(gantry_graph *g, const gantry_machine *m, const char *balance, const char *max_memory)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.balance = balance;
    o.max_memory = max_memory;
    if (gantry_schedule_new(&s, g, m, &o, &err) || gy_schedule_verify(s, g, &err))
        ck_abort_msg("%s", err.text);
    return s;
}

static void expect_bounds(const gantry_schedule *s, size_t i, size_t parts, const int64_t *first)
{
    ck_assert_uint_lt(i, s->bounds.count);
    ck_assert_uint_eq(s->bounds.at[i].parts, parts);
    for (size_t k = 0; k <= parts; k++)
        ck_assert_int_eq(s->bounds.at[i].first[k], first[k]);
}

static double makespan(const gantry_schedule *s)
{
    return gy_ticks_to_us(s->makespan);
}

START_TEST(in_proportion_to_speed)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *g = rows_of_work(400, 2);
    gantry_schedule *even = cut_by(g, m, "static", NULL), *fair = cut_by(g, m, "dynamic", NULL);
    expect_bounds(even, 0, 2, (int64_t[]){ 0, 200, 400 });
    ck_assert_double_eq_tol(makespan(even), 200. / 3 * 2, 1e-3); /* both parts on `fast`, which alone beats the two */
    expect_bounds(fair, 0, 2, (int64_t[]){ 0, 100, 400 });
    expect_bounds(fair, 1, 2, (int64_t[]){ 0, 100, 400 });
    ck_assert_double_eq_tol(makespan(fair), 100, 1e-3);
    ck_assert_str_eq(even->balance, "static");
    ck_assert_str_eq(fair->balance, "dynamic");
    gantry_schedule_free(even);
    gantry_schedule_free(fair);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* 1 part and 3 parts of 100 rows are in proportion already; of 5 parts `slow` gets one: 100 rows, the others 75. */
START_TEST(several_parts_a_device)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *four = rows_of_work(400, 4), *five = rows_of_work(400, 5);
    gantry_schedule *s = cut_by(four, m, "dynamic", NULL);
    expect_bounds(s, 0, 4, (int64_t[]){ 0, 100, 200, 300, 400 });
    gantry_schedule_free(s);
    s = cut_by(five, m, "dynamic", NULL);
    expect_bounds(s, 0, 5, (int64_t[]){ 0, 100, 175, 250, 325, 400 });
    ck_assert_double_eq_tol(makespan(s), 100, 1e-3);
    gantry_schedule_free(s);
    gantry_graph_free(four);
    gantry_graph_free(five);
    gantry_machine_free(m);
}
END_TEST

/* 60 + r = 20 + (400 - r) / 3 at r = 70: 130 us. */
START_TEST(launch_costs_count)
{
    gantry_machine *m = unequal(60, 20, 1024);
    gantry_graph *g = rows_of_work(400, 2);
    gantry_schedule *s = cut_by(g, m, "dynamic", NULL);
    expect_bounds(s, 0, 2, (int64_t[]){ 0, 70, 400 });
    ck_assert_double_eq_tol(makespan(s), 130, 1e-3);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* The nodes before a loop take 100 us on `slow` and 300 on `fast` for equal parts, each of 100 iterations 300 and 100:
 * 30100 and 10300 in all, so `slow` gets 400 * 103 / 404 rows. The loop is not unrolled. */
START_TEST(phases_are_cut_together)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *g = gantry_graph_new("phases");
    gantry_buffer y = buffer(g, "y", 400), z = buffer(g, "z", 400), flag = buffer(g, "flag", 1);
    gantry_buffer_split_auto(g, y, 2);
    gantry_buffer_split_auto(g, z, 2);
    for (int i = 0; i < 2; i++) {
        gantry_node n = gantry_graph_work(g, i ? "b1" : "b0");
        gantry_node_write(g, n, gantry_part(y, i));
        gantry_node_time(g, n, "slow", 100);
        gantry_node_time(g, n, "fast", 300);
    }
    gantry_graph_repeat(g, 100);
    gantry_graph_until(g, flag, 100);
    for (int i = 0; i < 2; i++) {
        gantry_node n = gantry_graph_work(g, i ? "l1" : "l0");
        gantry_node_read(g, n, gantry_part(y, i));
        gantry_node_write(g, n, gantry_part(z, i));
        gantry_node_time(g, n, "slow", 300);
        gantry_node_time(g, n, "fast", 100);
    }
    gantry_graph_fill(g, "never", gantry_all(flag), 0);
    gantry_graph_repeat_end(g);
    gantry_schedule *s = cut_by(g, m, "dynamic", NULL);
    ck_assert_uint_eq(s->phases.count, 2);
    ck_assert_uint_eq(s->bounds.count, 2);
    for (size_t i = 0; i < 2; i++) {
        expect_bounds(s, i, 2, (int64_t[]){ 0, 102, 400 });
        for (size_t k = 0; k < 2; k++)
            expect_bounds(s->phases.at[k].schedule, i, 2, (int64_t[]){ 0, 102, 400 });
    }
    ck_assert_str_eq(s->balance, "dynamic");
    ck_assert_str_eq(s->phases.at[1].schedule->balance, "dynamic");
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* If the loop ends after one iteration, v holds all rows, since it was filled before; later, part 0 and 200 more rows.
 * Equal parts are 200 rows each, so these are all rows, too, but by speed part 0 would end at row 100. */
START_TEST(parts_that_phases_cannot_have_stay_equal)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *g = gantry_graph_new("ends");
    gantry_buffer u = buffer(g, "u", 400), v = buffer(g, "v", 400), x = buffer(g, "x", 400), y = buffer(g, "y", 400);
    gantry_buffer flag = buffer(g, "flag", 1);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_split_auto(g, x, 2);
    gantry_buffer_split_auto(g, y, 2);
    gantry_buffer_split_auto(g, u, 2);
    gantry_buffer_split_auto(g, v, 2);
    gantry_graph_fill(g, "u", gantry_all(u), 1);
    gantry_graph_fill(g, "v", gantry_all(v), 1);
    gantry_graph_repeat(g, 5);
    gantry_graph_carry(g, u, v);
    gantry_graph_until(g, flag, 1);
    gantry_graph_fill(g, "flag", gantry_all(flag), 0);
    for (int i = 0; i < 2; i++) {
        gantry_node n = gantry_graph_work(g, i ? "w1" : "w0");
        gantry_node_read(g, n, gantry_part(x, i));
        gantry_node_write(g, n, i ? gantry_part(y, 1) : gantry_halo(gantry_part(v, 0), 0, 200));
        gantry_node_time(g, n, "slow", 300);
        gantry_node_time(g, n, "fast", 100);
    }
    gantry_graph_repeat_end(g);
    gantry_node n = gantry_graph_work(g, "add");
    gantry_node_read(g, n, gantry_part(x, 1));
    gantry_node_reduce(g, n, gantry_part(u, 1), GANTRY_SUM);
    gantry_schedule *s = cut_by(g, m, "dynamic", NULL);
    expect_bounds(s, 0, 2, (int64_t[]){ 0, 200, 400 });
    ck_assert_str_eq(s->balance, "static");
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Speeds that the graph gives itself: 4 us of each 200 rows there, 12 here. */
START_TEST(given_times_count)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *g = rows_of_work(400, 2);
    for (uint32_t n = 0; n < 2; n++) {
        gantry_node_time(g, (gantry_node){ .id = n }, "slow", 4);
        gantry_node_time(g, (gantry_node){ .id = n }, "fast", 12);
    }
    gantry_schedule *s = cut_by(g, m, "dynamic", NULL);
    expect_bounds(s, 0, 2, (int64_t[]){ 0, 300, 400 });
    ck_assert_double_eq_tol(makespan(s), 6, 1e-3); /* 4 us * 300 / 200 */
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(places_are_kept)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *g = rows_of_work(400, 2);
    gantry_node_on(g, (gantry_node){ 0 }, "fast"); /* against the order of devices */
    gantry_node_on(g, (gantry_node){ .id = 1 }, "slow");
    gantry_schedule *s = cut_by(g, m, NULL, NULL);
    expect_bounds(s, 0, 2, (int64_t[]){ 0, 300, 400 });
    ck_assert_double_eq_tol(makespan(s), 100, 1e-3);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* x and y of 320 KiB together, in memories of 100 and 300: halves do not fit, a quarter and three quarters do. */
START_TEST(in_proportion_to_room)
{
    gantry_machine *m = unequal(0, 0, 100);
    gantry_graph *g = rows_of_work(40960, 2);
    for (uint32_t n = 0; n < 2; n++) /* as fast there as here: speed has no say */
        gantry_node_time(g, (gantry_node){ .id = n }, NULL, 10);
    gantry_schedule *s = cut_by(g, m, "memory", NULL);
    expect_bounds(s, 0, 2, (int64_t[]){ 0, 10240, 40960 });
    ck_assert_uint_eq(gantry_schedule_peak_bytes(s, 1), 80 * 1024);
    ck_assert_uint_eq(gantry_schedule_peak_bytes(s, 2), 240 * 1024);
    ck_assert_uint_eq(count_kind(s, GY_OP_EVICT), 0);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(caps_move_the_bounds)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *g = rows_of_work(40960, 2);
    gantry_schedule *s = cut_by(g, m, "memory", "slow=192KiB,fast=768KiB"); /* 1 : 4 */
    expect_bounds(s, 0, 2, (int64_t[]){ 0, 8192, 40960 });
    ck_assert_uint_le(gantry_schedule_peak_bytes(s, 1), 192 * 1024);
    ck_assert_uint_le(gantry_schedule_peak_bytes(s, 2), 768 * 1024);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(the_default_is_the_best_of_them)
{
    for (int parts = 1; parts <= 7; parts++) {
        gantry_machine *m = unequal(7, 31, 1024);
        gantry_graph *g = rows_of_work(1000, parts);
        gantry_schedule *s = cut_by(g, m, NULL, NULL), *even = cut_by(g, m, "static", NULL);
        gantry_schedule *fair = cut_by(g, m, "dynamic", NULL);
        ck_assert_int_le(s->makespan, even->makespan);
        ck_assert_int_le(s->makespan, fair->makespan);
        gantry_schedule_free(s);
        gantry_schedule_free(even);
        gantry_schedule_free(fair);
        gantry_graph_free(g);
        gantry_machine_free(m);
    }
}
END_TEST

/* Nodes may treat parts differently: to compare results, parts must be the same elsewhere. */
START_TEST(another_schedule_lends_its_bounds)
{
    gantry_machine *m = unequal(0, 0, 1024), *one = virtual_machine(1);
    gantry_graph *g = rows_of_work(400, 2), *other = rows_of_work(401, 2);
    gantry_schedule *s = cut_by(g, m, "dynamic", NULL), *t = NULL;
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err;
    o.like = s;
    ck_assert_int_eq(gantry_schedule_new(&t, g, one, &o, &err), GANTRY_OK);
    expect_bounds(t, 0, 2, (int64_t[]){ 0, 100, 400 });
    ck_assert_str_eq(t->balance, "dynamic");
    gantry_schedule_free(t);
    ck_assert_str_eq(refusal(other, one, &o, GANTRY_E_INVALID),
                     "like: a schedule of graph \"rows\", which is not this \"rows\"");
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_graph_free(other);
    gantry_machine_free(one);
    gantry_machine_free(m);
}
END_TEST

/* u and v are carried into each other; w has twice the rows of v and meets it in a node; z is by itself. */
START_TEST(what_belongs_together_is_cut_alike)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *g = gantry_graph_new("together");
    gantry_buffer u = buffer(g, "u", 400), v = buffer(g, "v", 400), w = buffer(g, "w", 800), z = buffer(g, "z", 400);
    gantry_buffer all[] = { u, v, w, z };
    for (int i = 0; i < 4; i++)
        gantry_buffer_split_auto(g, all[i], 2);
    gantry_buffer_init_value(g, u, 1);
    gantry_graph_repeat(g, 3);
    gantry_graph_carry(g, u, v);
    for (int i = 0; i < 2; i++) {
        gantry_node n = gantry_graph_work(g, "sweep");
        gantry_node_read(g, n, gantry_halo(gantry_part(u, i), 1, 1));
        gantry_node_write(g, n, gantry_part(v, i));
        gantry_node_cost(g, n, 200e3, 0);
    }
    gantry_graph_repeat_end(g);
    for (int i = 0; i < 2; i++) {
        gantry_node n = gantry_graph_work(g, "widen");
        gantry_node_read(g, n, gantry_part(v, i));
        gantry_node_write(g, n, gantry_part(w, i));
        gantry_node_cost(g, n, 200e3, 0);
        n = gantry_graph_work(g, "other");
        gantry_node_write(g, n, gantry_part(z, i));
        gantry_node_time(g, n, NULL, 50);
    }
    gantry_schedule *s = cut_by(g, m, "dynamic", NULL);
    expect_bounds(s, 0, 2, (int64_t[]){ 0, 100, 400 });
    expect_bounds(s, 1, 2, (int64_t[]){ 0, 100, 400 });
    expect_bounds(s, 2, 2, (int64_t[]){ 0, 200, 800 });
    expect_bounds(s, 3, 2, (int64_t[]){ 0, 200, 400 }); /* takes as long everywhere */
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Beside a fixed split of as many rows, and with fewer rows than parts. */
START_TEST(some_parts_stay_equal)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *g = rows_of_work(400, 2);
    gantry_buffer fixed = buffer(g, "fixed", 400);
    gantry_buffer_split(g, fixed, 2);
    gantry_node_write(g, (gantry_node){ 0 }, gantry_part(fixed, 0));
    gantry_schedule *s = cut_by(g, m, "dynamic", NULL);
    expect_bounds(s, 0, 2, (int64_t[]){ 0, 200, 400 });
    gantry_schedule_free(s);
    gantry_graph_free(g);
    g = rows_of_work(3, 5);
    s = cut_by(g, m, "dynamic", NULL);
    expect_bounds(s, 0, 5, (int64_t[]){ 0, 0, 1, 1, 2, 3 });
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* A copy onto a fixed split of other rows: not known to belong together until a cut is refused. */
START_TEST(a_node_that_refuses_keeps_its_parts_equal)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *g = rows_of_work(400, 2);
    gantry_buffer half = buffer(g, "half", 800);
    gantry_graph_copy(g, "take", gantry_part(gantry_graph_find_buffer(g, "y"), 0), gantry_rows(half, 0, 200));
    gantry_schedule *s = cut_by(g, m, "dynamic", NULL);
    expect_bounds(s, 0, 2, (int64_t[]){ 0, 200, 400 });
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

START_TEST(unknown_methods_are_refused)
{
    gantry_machine *m = unequal(0, 0, 1024);
    gantry_graph *g = rows_of_work(400, 2);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.balance = "dynamc";
    ck_assert_str_eq(refusal(g, m, &o, GANTRY_E_INVALID), "no balance \"dynamc\" (did you mean \"dynamic\"?)");
    o.struct_size = offsetof(gantry_schedule_options, balance); /* a program from before there was one */
    gantry_schedule *s = NULL;
    gantry_error err;
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_OK);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("balance");
    TCase *t = tcase_create("bounds");
    tcase_add_test(t, in_proportion_to_speed);
    tcase_add_test(t, several_parts_a_device);
    tcase_add_test(t, launch_costs_count);
    tcase_add_test(t, phases_are_cut_together);
    tcase_add_test(t, parts_that_phases_cannot_have_stay_equal);
    tcase_add_test(t, given_times_count);
    tcase_add_test(t, places_are_kept);
    tcase_add_test(t, in_proportion_to_room);
    tcase_add_test(t, caps_move_the_bounds);
    tcase_add_test(t, the_default_is_the_best_of_them);
    tcase_add_test(t, another_schedule_lends_its_bounds);
    tcase_add_test(t, what_belongs_together_is_cut_alike);
    tcase_add_test(t, some_parts_stay_equal);
    tcase_add_test(t, a_node_that_refuses_keeps_its_parts_equal);
    tcase_add_test(t, unknown_methods_are_refused);
    suite_add_tcase(s, t);
    return run_suite(s);
}
