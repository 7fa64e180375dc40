/* SPDX-License-Identifier: Apache-2.0 */
/* Carrying phases out: the result is that of the sequential loop, whatever a start may be. */
#include "build.h"

#include <math.h>
#include <string.h>

static double two = 2;

/* ---- ends ---- */

/* u doubles until the flag is set after iteration `at`; the loop looks every `every` iterations of 20. */
static void expect_end(int64_t at, int64_t every, int64_t want, int devices, bool check)
{
    gantry_graph *g = gantry_graph_new("until");
    gantry_buffer u = vector(g, "u", 6), v = vector(g, "v", 6), flag = vector(g, "flag", 1);
    gantry_buffer_init_value(g, u, 1);
    gantry_buffer_output(g, u);
    gantry_buffer_output(g, v);
    gantry_buffer_split(g, u, 2);
    gantry_buffer_split(g, v, 2);
    gantry_graph_repeat(g, 20);
    gantry_graph_carry(g, u, v);
    gantry_graph_until(g, flag, every);
    flag_at(g, "test", gantry_all(flag), &at);
    scale(g, "a", gantry_part(u, 0), gantry_part(v, 0), &two);
    scale(g, "b", gantry_part(u, 1), gantry_part(v, 1), &two);
    gantry_graph_repeat_end(g);
    gantry_schedule *s = plan(g, devices, 0);
    gantry_run *run = open_run(s, "host", check);
    for (int again = 0; again < 2; again++) {
        start(run);
        for (int i = 0; i < 6; i++) {
            ck_assert_double_eq(result(run, u)[i], ldexp(1, (int)want));
            ck_assert_double_eq(result(run, v)[i], ldexp(1, (int)want));
        }
        ck_assert_uint_eq(iterations(run), (uint64_t)want);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}

/* The first multiple of `every` at or after the iteration that sets the flag, 20 at most. */
START_TEST(a_loop_ends_after_the_first_look_that_finds_something)
{
    static const int64_t cases[][3] = { { 1, 1, 1 },   { 7, 1, 7 },   { 19, 1, 19 },  { 99, 1, 20 },
                                        { 1, 3, 3 },   { 3, 3, 3 },   { 4, 3, 6 },    { 18, 3, 18 },
                                        { 19, 3, 20 }, { 1, 20, 20 }, { 1, 21, 20 },  { 5, 8, 8 },
                                        { 9, 8, 16 },  { 17, 8, 20 }, { 11, 10, 20 }, { 10, 10, 10 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_end(cases[i][0], cases[i][1], cases[i][2], 1 + (int)(i % 3), i % 4 == 3);
}
END_TEST

/* Any dtype: what is not zero ends the loop, also -1, a NaN and a number that no double holds. */
static gantry_status set_flag(const gantry_launch *l)
{
    const void *value = l->user;
    memset(l->arg[0].data, 0, gantry_dtype_size(l->arg[0].dtype));
    if (l->iteration == 2)
        memcpy(l->arg[0].data, value, gantry_dtype_size(l->arg[0].dtype));
    return GANTRY_OK;
}

START_TEST(any_number_but_zero_ends_a_loop)
{
    static const union {
        uint64_t bits;
        unsigned char byte[8];
    } values[GANTRY_DTYPE_COUNT] = {
        [GANTRY_F16] = { 0x0001 }, /* the least there is */
        [GANTRY_BF16] = { 0x7fc0 }, [GANTRY_F32] = { 0x7fc00000 }, [GANTRY_F64] = { 1 },
        [GANTRY_I8] = { 0xff },     [GANTRY_U8] = { 0x80 },        [GANTRY_I32] = { 0x80000000 },
        [GANTRY_U32] = { 1 },       [GANTRY_I64] = { UINT64_MAX }, [GANTRY_U64] = { UINT64_MAX },
        [GANTRY_F8E4M3] = { 0x7f }, [GANTRY_F8E5M2] = { 1 },
    };
    for (gantry_dtype t = 0; t < GANTRY_DTYPE_COUNT; t++) {
        gantry_graph *g = gantry_graph_new("flag");
        gantry_buffer flag = gantry_graph_buffer(g, "flag", t, 1, (int64_t[]){ 1 });
        gantry_graph_repeat(g, 9);
        gantry_graph_until(g, flag, 1);
        gantry_node n = gantry_graph_launch(g, "set", set_flag, (void *)(uintptr_t)&values[t]);
        gantry_node_write(g, n, gantry_all(flag));
        gantry_graph_repeat_end(g);
        gantry_schedule *s = plan(g, 1, 0);
        gantry_run *run = open_run(s, "host", false);
        start(run);
        ck_assert_uint_eq(iterations(run), 3);
        gantry_run_free(run);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

/* ---- what outlives phases and starts ---- */

/*
 * w (state) doubles 10 times in each start, by way of v; then y = 2 w. total (state) counts iterations. Two loops, the
 * second ends by itself: in start n (from 1), w = 2^(10 n) * 2^(3 n), total = 13 n.
 */
START_TEST(states_go_on_from_start_to_start)
{
    for (int unroll = 1; unroll <= 40; unroll += 13) {
        int64_t at = 3;
        gantry_graph *g = gantry_graph_new("states");
        gantry_buffer w = vector(g, "w", 4), v = vector(g, "v", 4), y = vector(g, "y", 4), one = vector(g, "one", 1);
        gantry_buffer total = vector(g, "total", 1), flag = vector(g, "flag", 1);
        gantry_buffer_set_class(g, w, GANTRY_STATE);
        gantry_buffer_init_value(g, w, 1);
        gantry_buffer_output(g, y);
        gantry_buffer_set_class(g, total, GANTRY_STATE);
        gantry_buffer_init_value(g, total, 0);
        gantry_buffer_output(g, total);
        gantry_buffer_set_class(g, one, GANTRY_CONST);
        gantry_buffer_init_value(g, one, 1);
        gantry_graph_repeat(g, 10);
        gantry_graph_carry(g, w, v);
        scale(g, "first", gantry_all(w), gantry_all(v), &two);
        add_to(g, "count", gantry_all(one), gantry_all(total));
        gantry_graph_repeat_end(g);
        gantry_graph_repeat(g, 100);
        gantry_graph_carry(g, w, v);
        gantry_graph_until(g, flag, 1);
        scale(g, "second", gantry_all(w), gantry_all(v), &two);
        add_to(g, "count again", gantry_all(one), gantry_all(total));
        flag_at(g, "test", gantry_all(flag), &at);
        gantry_graph_repeat_end(g);
        scale(g, "after", gantry_all(w), gantry_all(y), &two);
        gantry_schedule *s = plan(g, 2, unroll);
        gantry_run *run = open_run(s, "host", false);
        for (int n = 1; n <= 3; n++) {
            start(run);
            ck_assert_double_eq(result(run, y)[3], ldexp(2, 13 * n));
            ck_assert_double_eq(result(run, total)[0], 13.0 * n);
        }
        /* bound anew, it begins there */
        double begin[4] = { 3, 3, 3, 3 };
        gantry_error err = { 0 };
        ck_assert_msg(!gantry_run_bind(run, w, begin, sizeof begin, &err), "%s", err.text);
        start(run);
        ck_assert_double_eq(result(run, y)[0], ldexp(6, 13));
        ck_assert_double_eq(result(run, total)[0], 13.0 * 4);
        gantry_run_free(run);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

/* Inputs are read anew in every start, and outputs go where they are bound. */
START_TEST(bound_memory_is_used)
{
    gantry_graph *g = gantry_graph_new("bound");
    gantry_buffer x = vector(g, "x", 4), v = vector(g, "v", 4);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_buffer_output(g, v);
    gantry_graph_repeat(g, 12);
    gantry_graph_carry(g, x, v);
    scale(g, "k", gantry_all(x), gantry_all(v), &two);
    gantry_graph_repeat_end(g);
    gantry_schedule *s = plan(g, 1, 4);
    gantry_run *run = open_run(s, "host", false);
    double in[4] = { 1, 2, 3, 4 }, out[4] = { 0 };
    gantry_error err = { 0 };
    uint64_t ticket;
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_INVALID); /* x is not bound */
    ck_assert_int_eq(gantry_run_bind(run, x, in, sizeof in, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_run_bind_output(run, v, out, sizeof out, &err), GANTRY_OK);
    start(run);
    ck_assert_double_eq(out[3], 4 * 4096.0);
    ck_assert_double_eq(in[3], 4);
    in[3] = 5;
    start(run);
    ck_assert_double_eq(out[3], 5 * 4096.0);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* ---- iterations ---- */

static gantry_status note_iteration(const gantry_launch *l)
{
    double *log = l->arg[0].data;
    log[l->iteration] += 1 + (double)l->iteration;
    return GANTRY_OK;
}

/* Every iteration runs once and knows its number, whatever a start has of them: 17 = 3 * 5 + 2 and so on. */
START_TEST(iterations_know_their_numbers)
{
    for (int unroll = 1; unroll <= 20; unroll++) {
        gantry_graph *g = gantry_graph_new("numbers");
        gantry_buffer log = vector(g, "log", 17);
        gantry_buffer_init_value(g, log, 0);
        gantry_buffer_output(g, log);
        gantry_graph_repeat(g, 17);
        gantry_node n = gantry_graph_launch(g, "note", note_iteration, NULL);
        gantry_node_readwrite(g, n, gantry_all(log));
        gantry_graph_repeat_end(g);
        gantry_schedule *s = plan(g, 1, unroll);
        gantry_run *run = open_run(s, "host", unroll % 5 == 0);
        start(run);
        start(run);
        for (int i = 0; i < 17; i++)
            ck_assert_double_eq(result(run, log)[i], i + 1.0);
        gantry_run_free(run);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

static const char dynamic[] =
    "{\"gantry\": 1, \"buffers\": {\"x\": {\"dtype\": \"f64\", \"shape\": [2], \"init\": 1, \"output\": true},"
    " \"y\": {\"dtype\": \"f64\", \"shape\": [2]}, \"z\": {\"dtype\": \"f64\", \"shape\": [2], \"init\": 0, "
    "\"output\": true}},"
    " \"nodes\": [{\"repeat\": 7, \"carry\": {\"x\": \"y\"}, \"nodes\": ["
    "  {\"id\": \"k\", \"kernel\": \"scale\", \"args\": {\"a\": {\"dynamic\": 2}, \"x\": \"x\", \"y\": \"y\"}},"
    "  {\"id\": \"it\", \"kernel\": \"axpby\", \"args\": {\"a\": \"it * it + 1\", \"b\": 1, \"x\": \"x\", \"y\": "
    "\"z\"}}]}]}";

/* By hand: x = 2^7, then 3^7. z = sum of (it^2 + 1) a^it: for a = 2, 1 + 4 + 20 + 80 + 272 + 832 + 2368 = 3577. */
START_TEST(scalars_change_between_starts_and_iterations)
{
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_graph_parse(&g, dynamic, strlen(dynamic), "dynamic", NULL, NULL, &err), "%s", err.text);
    gantry_schedule *s = plan(g, 1, 4);
    gantry_run *run = open_run(s, "host", false);
    gantry_buffer x = gantry_graph_find_buffer(g, "x"), z = gantry_graph_find_buffer(g, "z");
    start(run);
    ck_assert_double_eq(result(run, x)[1], 128);
    ck_assert_double_eq(result(run, z)[1], 3577);
    ck_assert_int_eq(gantry_run_set_scalar(run, gantry_graph_find_node(g, "k"), "a", 3, &err), GANTRY_OK);
    start(run);
    ck_assert_double_eq(result(run, x)[1], 2187);
    /* 1 + 6 + 45 + 270 + 1377 + 6318 + 26973 */
    ck_assert_double_eq(result(run, z)[1], 34990);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* After the first loop u means what nothing has written; the phase leaves it so, and later ones add to it. */
START_TEST(what_holds_nothing_is_left_so)
{
    gantry_graph *g = gantry_graph_new("nothing");
    gantry_buffer u = vector(g, "u", 4), v = vector(g, "v", 4), one = vector(g, "one", 1), y = vector(g, "y", 1);
    gantry_buffer_init_value(g, u, 1);
    gantry_buffer_init_value(g, one, 1);
    gantry_buffer_output(g, y);
    gantry_graph_repeat(g, 3);
    gantry_graph_carry(g, u, v);
    scale(g, "lost", gantry_all(one), gantry_rows(u, 0, 1), &two);
    gantry_graph_repeat_end(g);
    gantry_graph_repeat(g, 9);
    add_to(g, "count", gantry_all(one), gantry_rows(u, 0, 1));
    gantry_graph_repeat_end(g);
    scale(g, "after", gantry_rows(u, 0, 1), gantry_all(y), &two);
    gantry_schedule *s = plan(g, 1, 2);
    ck_assert_uint_gt(gantry_schedule_phase_count(s), 2);
    gantry_run *run = open_run(s, "host", false);
    for (int again = 0; again < 2; again++) {
        start(run);
        ck_assert_double_eq(result(run, y)[0], 18);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* {rows [from, 2) of v = 2 u; v[0] += 1}, 10 times, where v holds 5 at first: 2 u + 1 where row 0 is written first,
 * else 5 + 1 once and then 1. */
/* The loop inside gives the name of its result back to what came in: nothing is left of what it computes. */
START_TEST(a_pair_may_end_as_what_came_in)
{
    for (int64_t unroll = 0; unroll < 4; unroll++) { /* 0: wholly */
        gantry_graph *g = gantry_graph_new("back");
        gantry_buffer u = vector(g, "u", 2), v = vector(g, "v", 2);
        gantry_buffer_init_value(g, u, 7);
        gantry_buffer_init_value(g, v, 3);
        gantry_buffer_output(g, v);
        gantry_graph_repeat(g, 4);
        gantry_graph_carry(g, u, v);
        gantry_graph_repeat(g, 1);
        gantry_graph_carry(g, v, u);
        scale(g, "double", gantry_all(u), gantry_all(v), &two);
        gantry_graph_repeat_end(g);
        gantry_graph_repeat_end(g);
        gantry_schedule *s = plan(g, 1, unroll);
        gantry_run *run = open_run(s, "host", false);
        for (int again = 0; again < 2; again++) {
            start(run);
            ck_assert_double_eq(result(run, v)[1], 7);
        }
        gantry_run_free(run);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

START_TEST(what_next_was_is_added_to_once)
{
    for (int i = 0; i < 4; i++) {
        int from = i % 2, devices = 1 + i / 2;
        gantry_graph *g = gantry_graph_new("adding");
        gantry_buffer u = vector(g, "u", 2), v = vector(g, "v", 2), one = vector(g, "one", 1), w = vector(g, "w", 1);
        gantry_buffer_init_value(g, u, 1);
        gantry_buffer_init_value(g, v, 5);
        gantry_buffer_init_value(g, one, 1);
        gantry_buffer_init_value(g, w, 0);
        gantry_buffer_output(g, u);
        gantry_buffer_output(g, w);
        gantry_graph_repeat(g, 10);
        gantry_graph_carry(g, u, v);
        scale(g, "step", gantry_rows(u, from, 2), gantry_rows(v, from, 2), &two);
        add_to(g, "add", gantry_all(one), gantry_rows(v, 0, 1));
        add_to(g, "sum", gantry_rows(v, 0, 1), gantry_all(w));
        gantry_graph_repeat_end(g);
        gantry_schedule *s = plan(g, devices, 3);
        ck_assert_uint_eq(gantry_schedule_phase_count(s), from ? 2 : 1);
        gantry_run *run = open_run(s, "host", false);
        for (int again = 0; again < 2; again++) {
            start(run);
            ck_assert_double_eq(result(run, u)[0], from ? 1 : 2047);
            ck_assert_double_eq(result(run, u)[1], 1024);
            ck_assert_double_eq(result(run, w)[0], from ? 6 + 9 : 4082); /* 3 + 7 + ... + 2047 */
        }
        gantry_run_free(run);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

/* Row 0 of a holds something if the loop ends after its first iteration, else nothing: it is written before it is added
 * to. */
START_TEST(a_loop_may_end_early)
{
    for (int64_t at = 1; at < 4; at++) {
        gantry_graph *g = gantry_graph_new("early");
        gantry_buffer a = vector(g, "a", 2), b = vector(g, "b", 2), one = vector(g, "one", 1), y = vector(g, "y", 2);
        gantry_buffer flag = vector(g, "flag", 1);
        gantry_buffer_init_value(g, a, 1);
        gantry_buffer_init_value(g, b, 5);
        gantry_buffer_init_value(g, one, 1);
        gantry_buffer_output(g, y);
        gantry_graph_repeat(g, 10);
        gantry_graph_carry(g, a, b);
        gantry_graph_until(g, flag, 1);
        flag_at(g, "test", gantry_all(flag), &at);
        scale(g, "step", gantry_rows(a, 1, 2), gantry_rows(b, 1, 2), &two);
        gantry_graph_repeat_end(g);
        gantry_graph_fill(g, "zero", gantry_rows(a, 0, 1), 0);
        add_to(g, "add", gantry_all(one), gantry_rows(a, 0, 1));
        scale(g, "out", gantry_all(a), gantry_all(y), &two);
        gantry_schedule *s = plan(g, 2, 0);
        gantry_run *run = open_run(s, "host", false);
        start(run);
        ck_assert_uint_eq(iterations(run), (uint64_t)at);
        ck_assert_double_eq(result(run, y)[0], 2);
        ck_assert_double_eq(result(run, y)[1], ldexp(2, (int)at));
        gantry_run_free(run);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

/* Numbers of one loop: i64 in, i64 out, with `a` and what x holds. */
static const char digits[] =
    "{\"gantry\": 1, \"params\": {\"n\": 9007199254740993}, \"kernels\": {}, \"buffers\": {"
    "\"x\": {\"dtype\": \"i64\", \"shape\": [3], \"init\": \"iota\"},"
    "\"y\": {\"dtype\": \"i64\", \"shape\": [3], \"init\": -9007199254740993, \"output\": true},"
    "\"z\": {\"dtype\": \"i64\", \"shape\": [3], \"output\": true},"
    "\"u\": {\"dtype\": \"u64\", \"shape\": [3], \"init\": {\"iota\": {\"start\": 9223372036854775807, \"step\": "
    "\"n\"}}, "
    "\"output\": true},"
    "\"w\": {\"dtype\": \"i64\", \"shape\": [3], \"output\": true}}, \"nodes\": ["
    "{\"id\": \"saxpy\", \"kernel\": \"saxpy\", \"args\": {\"a\": \"n + 2\", \"x\": \"x\", \"y\": \"y\"}},"
    "{\"id\": \"scale\", \"kernel\": \"scale\", \"args\": {\"a\": {\"dynamic\": 9007199254740993}, \"x\": \"x\", "
    "\"y\": "
    "\"z\"}},"
    "{\"id\": \"fill\", \"fill\": {\"to\": \"w\", \"value\": \"3 * n\"}}]}";

static const int64_t *whole_result(gantry_run *run, const gantry_graph *g, const char *name)
{
    return (const int64_t *)(const void *)result(run, gantry_graph_find_buffer(g, name));
}

/* By hand, with n = 2^53 + 1, which is no double: saxpy (n + 2) i - n; scale n i; fill 3 n. */
START_TEST(integers_keep_every_digit)
{
    static const int64_t saxpy[] = { -9007199254740993, 2, 9007199254740997 };
    static const int64_t scale[] = { 0, 9007199254740993, 18014398509481986 };
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_graph_parse(&g, digits, strlen(digits), "digits", NULL, NULL, &err), "%s", err.text);
    gantry_schedule *s = plan(g, 1, 0);
    gantry_run *run = open_run(s, "host", false);
    start(run);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(whole_result(run, g, "y")[i], saxpy[i]);
        ck_assert_int_eq(whole_result(run, g, "z")[i], scale[i]);
        ck_assert_int_eq(whole_result(run, g, "w")[i], 27021597764222979);
        ck_assert_uint_eq((uint64_t)whole_result(run, g, "u")[i],
                          UINT64_C(9223372036854775807) + (uint64_t)i * UINT64_C(9007199254740993));
    }
    ck_assert_int_eq(gantry_run_set_scalar(run, gantry_graph_find_node(g, "scale"), "a", 0.5, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text,
                     "node \"scale\": argument \"a\" of kernel \"scale\" is 0.5, and \"x\" is i64; give a whole "
                     "number from -9223372036854775808 to 9223372036854775807, or buffers of a floating "
                     "dtype");
    ck_assert_int_eq(gantry_run_set_scalar(run, gantry_graph_find_node(g, "scale"), "a", -1e15, &err), GANTRY_OK);
    start(run);
    ck_assert_int_eq(whole_result(run, g, "z")[2], -2000000000000000);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* ---- automatic splits ---- */

/* Where the first of the two parts of y ends in phase i. */
static int64_t end_of_first_part(const gantry_schedule *s, size_t i)
{
    const gantry_schedule *phase = gantry_schedule_phase(s, i, NULL);
    for (size_t k = 0; k < phase->bounds.count; k++)
        if (!strcmp(phase->bounds.at[k].buffer, "y"))
            return phase->bounds.at[k].first[1];
    ck_abort_msg("phase %zu does not say how y is cut", i);
}

/* y[0] is filled before the loop and read in it, and nothing is done with y[1]. The sequential program, wherever y is
 * cut: z is 10 where y[0] is, else 0. */
START_TEST(a_part_has_the_same_rows_in_all_phases)
{
    for (int check = 0; check < 2; check++) {
        int64_t at = 4;
        gantry_graph *g = gantry_graph_new("parts");
        gantry_buffer y = vector(g, "y", 1000), z = vector(g, "z", 1000), flag = vector(g, "flag", 1);
        gantry_buffer_split_auto(g, y, 2);
        gantry_buffer_split_auto(g, z, 2);
        gantry_buffer_output(g, z);
        gantry_graph_fill(g, "five", gantry_part(y, 0), 5);
        gantry_graph_fill(g, "zero", gantry_all(z), 0);
        gantry_graph_repeat(g, 10);
        gantry_graph_until(g, flag, 1);
        scale(g, "double", gantry_part(y, 0), gantry_part(z, 0), &two);
        flag_at(g, "test", gantry_all(flag), &at);
        gantry_graph_repeat_end(g);
        gantry_schedule *s = plan(g, 2, 0);
        ck_assert_uint_eq(gantry_schedule_phase_count(s), 2);
        int64_t end = end_of_first_part(s, 1);
        gantry_run *run = open_run(s, "host", check);
        start(run);
        for (int64_t i = 0; i < 1000; i++)
            ck_assert_double_eq(result(run, z)[i], i < end ? 10 : 0);
        ck_assert_int_eq(end_of_first_part(s, 0), end);
        gantry_run_free(run);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

/* ---- failures ---- */

/* Loading looks at the first 10,000 iterations and the last; this one is between them. */
static const char late[] =
    "{\"gantry\": 1, \"buffers\": {\"x\": {\"dtype\": \"i32\", \"shape\": [2], \"init\": 1, \"output\": true},"
    " \"y\": {\"dtype\": \"i32\", \"shape\": [2]}}, \"nodes\": [{\"repeat\": 20000, \"carry\": {\"x\": \"y\"}, "
    "\"nodes\": ["
    "  {\"id\": \"k\", \"kernel\": \"scale\", \"args\": {\"a\": \"1 + (it == 15000) / 2\", \"x\": \"x\", \"y\": "
    "\"y\"}}]}]}";

START_TEST(a_fraction_for_integers_ends_the_start_that_would_use_it)
{
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    uint64_t ticket;
    ck_assert_msg(!gantry_graph_parse(&g, late, strlen(late), "late", NULL, NULL, &err), "%s", err.text);
    gantry_schedule *s = plan(g, 1, 100);
    gantry_run *run = open_run(s, "host", false);
    gantry_status status = gantry_run_start(run, &ticket, &err);
    status = status ? status : gantry_run_wait(run, ticket, &err);
    ck_assert_int_eq(status, GANTRY_E_GRAPH);
    ck_assert_str_eq(err.text,
                     "node \"k\", iteration 15000: argument \"a\" of kernel \"scale\" is 1.5, and \"x\" is i32; "
                     "give a whole number from -2147483648 to 2147483647, or buffers of a floating dtype");
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

typedef struct trap {
    int64_t fails_at;
} trap;

static gantry_status spring(const gantry_launch *l)
{
    const trap *t = l->user;
    *(double *)l->arg[0].data += 1;
    return l->iteration == t->fails_at ? GANTRY_E_KERNEL : GANTRY_OK;
}

/* The error names the iteration of the loop, not of the start; the state begins again; the next start runs. */
START_TEST(a_failure_is_told_once)
{
    trap t = { 11 };
    gantry_graph *g = gantry_graph_new("trap");
    gantry_buffer n = vector(g, "n", 1);
    gantry_buffer_set_class(g, n, GANTRY_STATE);
    gantry_buffer_init_value(g, n, 0);
    gantry_buffer_output(g, n);
    gantry_graph_repeat(g, 20);
    gantry_node_readwrite(g, gantry_graph_launch(g, "spring", spring, &t), gantry_all(n));
    gantry_graph_repeat_end(g);
    gantry_schedule *s = plan(g, 1, 4);
    gantry_run *run = open_run(s, "host", false);
    gantry_error err = { 0 };
    uint64_t ticket = 0;
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_KERNEL);
    ck_assert_msg(strstr(err.text, "node \"spring\"") && strstr(err.text, "in iteration 11"), "%s", err.text);
    t.fails_at = -1;
    start(run);
    ck_assert_double_eq(result(run, n)[0], 20);
    start(run);
    ck_assert_double_eq(result(run, n)[0], 40);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* ---- other back ends ---- */

START_TEST(sim_takes_the_predicted_time_and_no_time)
{
    gantry_graph *g = gantry_graph_new("sim");
    gantry_buffer x = vector(g, "x", 4), y = vector(g, "y", 4);
    gantry_buffer_init_value(g, x, 1);
    gantry_graph_repeat(g, INT64_C(1) << 40);
    gantry_graph_carry(g, x, y);
    gantry_node n = gantry_graph_work(g, "w");
    gantry_node_read(g, n, gantry_all(x));
    gantry_node_write(g, n, gantry_all(y));
    gantry_node_time(g, n, NULL, 1);
    gantry_graph_repeat_end(g);
    gantry_schedule *s = plan(g, 1, 0);
    gantry_run *run = open_run(s, "sim", false);
    start(run);
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    ck_assert_int_eq(gantry_run_get_info(run, &info, NULL), GANTRY_OK);
    ck_assert_double_ge(info.last_us, 1099511627776.0);
    ck_assert_double_le(info.last_us, 1099511627776.0 * 1.5); /* the launch costs something, too */
    ck_assert_double_eq_tol(info.last_us, info.predicted_us, 1);
    ck_assert_uint_eq(info.iterations, UINT64_C(1) << 40);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* ---- a when around an inner loop that ends by a flag ---- */

typedef enum when_given { AHEAD, BETWEEN, BEHIND, LATE } when_given; /* of the arguments; when all nodes are there */

/* u doubles in each of 4 iterations, in each of 2, until it is more than 100; all nodes run by one flag. */
static void expect_guarded(when_given at, double flagged, double want_u, double want_v)
{
    gantry_graph *g = gantry_graph_new("guarded");
    gantry_buffer u = vector(g, "u", 6), v = vector(g, "v", 6), flag = vector(g, "flag", 1);
    gantry_buffer ready = gantry_graph_buffer(g, "ready", GANTRY_I32, 1, (int64_t[]){ 1 });
    gantry_buffer_init_value(g, u, 1);
    gantry_buffer_init_value(g, v, 7);
    gantry_buffer_init_value(g, flag, flagged);
    gantry_buffer_output(g, u);
    gantry_buffer_output(g, v);
    gantry_graph_repeat(g, 2);
    gantry_graph_repeat(g, 4);
    gantry_graph_carry(g, u, v);
    gantry_graph_until(g, ready, 1);
    gantry_node twice = gantry_graph_map(g, "twice", "v = 2 * u");
    if (at == AHEAD)
        gantry_node_when(g, twice, gantry_all(flag));
    gantry_node_arg(g, twice, "u", gantry_all(u));
    if (at == BETWEEN)
        gantry_node_when(g, twice, gantry_all(flag));
    gantry_node_arg(g, twice, "v", gantry_all(v));
    if (at == BEHIND)
        gantry_node_when(g, twice, gantry_all(flag));
    gantry_node ask = gantry_graph_map(g, "ask", "ready = v > 100");
    gantry_node_arg(g, ask, "v", gantry_rows(v, 0, 1));
    gantry_node_arg(g, ask, "ready", gantry_all(ready));
    if (at == LATE)
        gantry_node_when(g, twice, gantry_all(flag));
    gantry_node_when(g, ask, gantry_all(flag));
    gantry_graph_repeat_end(g);
    gantry_graph_repeat_end(g);
    gantry_schedule *s = plan(g, 1, 0);
    gantry_run *run = open_run(s, "host", false);
    start(run);
    ck_assert_double_eq(result(run, u)[5], want_u);
    ck_assert_double_eq(result(run, v)[5], want_v);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}

START_TEST(nodes_of_a_loop_may_get_their_whens_early_and_late)
{
    for (when_given at = AHEAD; at <= LATE; at++) {
        expect_guarded(at, 0, 1, 7);
        expect_guarded(at, 1, 128, 128);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("phases: running");
    TCase *c = tcase_create("run");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, a_loop_ends_after_the_first_look_that_finds_something);
    tcase_add_test(c, any_number_but_zero_ends_a_loop);
    tcase_add_test(c, states_go_on_from_start_to_start);
    tcase_add_test(c, bound_memory_is_used);
    tcase_add_test(c, iterations_know_their_numbers);
    tcase_add_test(c, scalars_change_between_starts_and_iterations);
    tcase_add_test(c, what_holds_nothing_is_left_so);
    tcase_add_test(c, what_next_was_is_added_to_once);
    tcase_add_test(c, a_pair_may_end_as_what_came_in);
    tcase_add_test(c, a_loop_may_end_early);
    tcase_add_test(c, a_part_has_the_same_rows_in_all_phases);
    tcase_add_test(c, integers_keep_every_digit);
    tcase_add_test(c, a_fraction_for_integers_ends_the_start_that_would_use_it);
    tcase_add_test(c, a_failure_is_told_once);
    tcase_add_test(c, sim_takes_the_predicted_time_and_no_time);
    tcase_add_test(c, nodes_of_a_loop_may_get_their_whens_early_and_late);
    suite_add_tcase(s, c);
    return run_suite(s);
}
