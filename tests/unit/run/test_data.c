/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, fills, conversions, reductions, tiles: what has no schedule in it. */
#include "base/half.h"
#include "run/edge.h"
#include "run/fill.h"
#include "run/number.h"
#include "run/philox.h"
#include "run/reduce.h"
#include "support/faults.h"
#include "support/run_suite.h"
#include <check.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Random123 1.14, tests/kat_vectors, the lines "philox4x32 10". */
START_TEST(philox_gives_the_published_numbers)
{
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } cases[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gy_philox_block counter;
        memcpy(counter.word, cases[i].counter, sizeof counter.word);
        gy_philox_block got = gy_philox(counter, cases[i].key[0], cases[i].key[1]);
        for (int k = 0; k < 4; k++)
            ck_assert_uint_eq(got.word[k], cases[i].expected[k]);
    }
}
END_TEST

/* The mapping of fill.h by hand: seed 0, block 0 is the first published vector. */
START_TEST(uniform_numbers_follow_the_documented_mapping)
{
    const gy_init unit = { .kind = GY_INIT_UNIFORM, .seed = 0, .a = { .real = 0 }, .b = { .real = 1 } };
    float f32[4];
    gy_fill_elements(f32, GANTRY_F32, &unit, 0, 4);
    static const uint32_t words[] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 };
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(f32[i], (float)((double)words[i] / 4294967296.0));
    double f64[2];
    gy_fill_elements(f64, GANTRY_F64, &unit, 0, 2);
    ck_assert_double_eq(f64[0], (double)(0xe169c58d6627e8d5u >> 11) / 9007199254740992.0);
    ck_assert_double_eq(f64[1], (double)(0x9b00dbd8bc57ac4cu >> 11) / 9007199254740992.0);
    const gy_init bytes = { .kind = GY_INIT_UNIFORM, .seed = 0, .a = { .real = 0 }, .b = { .real = 256 } };
    uint8_t u8[4];
    gy_fill_elements(u8, GANTRY_U8, &bytes, 0, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(u8[i], words[i] >> 24);
    const gy_init normal = { .kind = GY_INIT_NORMAL, .seed = 0, .a = { .real = 3 }, .b = { .real = 2 } };
    gy_fill_elements(f32, GANTRY_F32, &normal, 1, 1); /* element 1: words 2 and 3 */
    double v = ((double)words[2] + 1) / 4294967296.0, w = (double)words[3] / 4294967296.0;
    ck_assert_float_eq(f32[0], (float)(3 + 2 * (sqrt(-2 * log(v)) * cos(2 * acos(-1.0) * w))));
}
END_TEST

/* Any cut gives the bytes of the whole. */
START_TEST(fills_do_not_depend_on_the_split)
{
    static const gy_init_kind kinds[] = { GY_INIT_VALUE, GY_INIT_UNIFORM, GY_INIT_NORMAL, GY_INIT_IOTA };
    enum { N = 1003 };
    static unsigned char whole[N * 8], parts[N * 8];
    for (int kind = 0; kind < 4; kind++) {
        gy_init what = { .kind = kinds[kind], .seed = 99, .a = { .real = 1 }, .b = { .real = 3 } };
        for (gantry_dtype dtype = GANTRY_F16; dtype < GANTRY_DTYPE_COUNT; dtype++) {
            size_t size = gantry_dtype_size(dtype);
            gy_fill_elements(whole, dtype, &what, 0, N);
            for (uint64_t first = 0, step = 1; first < N; first += step, step = step * 2 % 97 + 1) {
                uint64_t count = first + step > N ? N - first : step;
                gy_fill_elements(parts + first * size, dtype, &what, first, count);
            }
            ck_assert_mem_eq(whole, parts, N * size);
        }
    }
}
END_TEST

START_TEST(uniform_and_normal_numbers_have_their_moments)
{
    enum { N = 200000 };
    static double x[N];
    const gy_init uniform = { .kind = GY_INIT_UNIFORM, .seed = 7, .a = { .real = -1 }, .b = { .real = 3 } };
    gy_fill_elements(x, GANTRY_F64, &uniform, 0, N);
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        ck_assert(x[i] >= -1 && x[i] < 3);
        sum += x[i];
        squares += x[i] * x[i];
    }
    /* mean 1, deviation 4/sqrt(12); six standard errors */
    ck_assert_double_eq_tol(sum / N, 1, 6 * 1.1547 / sqrt(N));
    ck_assert_double_eq_tol(squares / N - sum / N * sum / N, 16.0 / 12, 0.02);
    const gy_init normal = { .kind = GY_INIT_NORMAL, .seed = 7, .a = { .real = 5 }, .b = { .real = 2 } };
    gy_fill_elements(x, GANTRY_F64, &normal, 0, N);
    sum = squares = 0;
    int beyond = 0;
    for (int i = 0; i < N; i++) {
        sum += x[i];
        squares += (x[i] - 5) * (x[i] - 5);
        beyond += fabs(x[i] - 5) > 4;
    }
    ck_assert_double_eq_tol(sum / N, 5, 6 * 2 / sqrt(N));
    ck_assert_double_eq_tol(squares / N, 4, 0.1);
    ck_assert_double_eq_tol((double)beyond / N, 0.0455, 0.003); /* outside two deviations */
}
END_TEST

START_TEST(iota_wraps_and_values_keep_every_digit)
{
    int8_t i8[4];
    const gy_init up = { .kind = GY_INIT_IOTA, .a = { .real = 126 }, .b = { .real = 1 } };
    gy_fill_elements(i8, GANTRY_I8, &up, 0, 4);
    ck_assert_int_eq(i8[1], 127);
    ck_assert_int_eq(i8[2], -128);
    uint64_t u64[2];
    const gy_init down = { .kind = GY_INIT_IOTA, .a = { .real = 0 }, .b = { .real = -1 } };
    gy_fill_elements(u64, GANTRY_U64, &down, 0, 2);
    ck_assert_uint_eq(u64[1], UINT64_MAX);
    const gy_init up_far = { .kind = GY_INIT_IOTA, .a = gy_constant_whole(INT64_MAX), .b = { .real = -2 } };
    gy_fill_elements(u64, GANTRY_I64, &up_far, 1, 2);
    ck_assert_int_eq((int64_t)u64[1], INT64_MAX - 4);
    const gy_init odd = { .kind = GY_INIT_VALUE, .a = gy_constant_whole(-9007199254740993) };
    gy_fill_elements(u64, GANTRY_I64, &odd, 0, 2);
    ck_assert_int_eq((int64_t)u64[1], -9007199254740993);
    const gy_init large = { .kind = GY_INIT_VALUE, .a = { .real = 0x1.8p63 } };
    gy_fill_elements(u64, GANTRY_U64, &large, 0, 1);
    ck_assert_uint_eq(u64[0], UINT64_C(0xC000000000000000));
    float f[3];
    const gy_init half = { .kind = GY_INIT_IOTA, .a = { .real = 1 }, .b = { .real = 0.5 } };
    gy_fill_elements(f, GANTRY_F32, &half, 4, 3);
    ck_assert_float_eq(f[0], 3);
    ck_assert_float_eq(f[2], 4);
}
END_TEST

/* By Cholesky's own test: the factorisation meets only positive pivots. */
START_TEST(spd_matrices_are_symmetric_and_positive)
{
    enum { N = 40 };
    static double a[N * N];
    int64_t shape[] = { N, N };
    gy_buffer b = { .dtype = GANTRY_F64, .rank = 2, .shape = shape, .rows = N, .row_bytes = N * 8, .bytes = sizeof a };
    const gy_init spd = { .kind = GY_INIT_SPD, .seed = 5 };
    gy_fill_rows(a, &b, &spd, 0, N);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            ck_assert(a[i * N + j] == a[j * N + i]);
    for (int k = 0; k < N; k++) {
        ck_assert(a[k * N + k] > 0);
        for (int i = k + 1; i < N; i++)
            for (int j = k + 1; j < N; j++)
                a[i * N + j] -= a[i * N + k] * a[k * N + j] / a[k * N + k];
    }
}
END_TEST

/* The nearest of all 65536 patterns by searching, ties to the even one. */
static uint16_t nearest(double x, float (*widen)(uint16_t), uint16_t infinity)
{
    uint16_t low = 0, high = infinity;
    while (high - low > 1) { /* patterns of positive numbers are in their order */
        uint16_t middle = (uint16_t)((low + high) / 2);
        if ((double)widen(middle) <= x)
            low = middle;
        else
            high = middle;
    }
    double below = (double)widen(low);
    double above = high == infinity ? 2 * below - (double)widen((uint16_t)(low - 1)) : (double)widen(high);
    double up = above - x, down = x - below;
    return up < down || (up == down && low % 2 == 1) ? high : low;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

START_TEST(narrowing_rounds_to_nearest_even_once)
{
    /* 1 + 2^-11 is the middle of two f16; a bit more, beyond what a float holds, must round up. */
    ck_assert_uint_eq(gy_f16_from_f64(1 + 0x1p-11), 0x3C00);
    ck_assert_uint_eq(gy_f16_from_f64(1 + 0x1p-11 + 0x1p-40), 0x3C01);
    ck_assert_uint_eq(gy_f16_from_f64(1 + 3 * 0x1p-11), 0x3C02);
    ck_assert_uint_eq(gy_bf16_from_f64(1 + 0x1p-8 + 0x1p-40), 0x3F81);
    ck_assert_uint_eq(gy_f16_from_f64(-65519.999), 0xFBFF);
    ck_assert_uint_eq(gy_f16_from_f64(65520), 0x7C00);
    ck_assert_uint_eq(gy_f16_from_f64(0x1p-25), 0);
    ck_assert_uint_eq(gy_f16_from_f64(0x1.000001p-25), 1);
    uint64_t state = 42;
    for (int i = 0; i < 300000; i++) {
        double x = ldexp((double)(next_random(&state) >> 11), (int)(next_random(&state) % 45) - 53 - 28);
        if (i % 3 == 0) { /* exactly between two */
            uint16_t h = (uint16_t)(next_random(&state) % 0x7BFF);
            x = ((double)gy_f16_to_float(h) + (double)gy_f16_to_float((uint16_t)(h + 1))) / 2;
        }
        if (gy_f16_from_f64(x) != nearest(x, gy_f16_to_float, 0x7C00) ||
            gy_bf16_from_f64(x) != nearest(x, gy_bf16_to_float, 0x7F80))
            ck_abort_msg("%a: %04x %04x", x, gy_f16_from_f64(x), gy_bf16_from_f64(x));
    }
}
END_TEST

START_TEST(reductions_are_exact_in_integers_and_ordered_in_floats)
{
    int32_t a[] = { INT32_MAX, -5, 7 }, b[] = { 1, 9, 7 }, c[] = { 0, 1, 2 }, to[3];
    const void *from[] = { a, b, c };
    gy_reduce(GANTRY_I32, GANTRY_SUM, to, from, 3, 3);
    ck_assert_int_eq(to[0], INT32_MIN);
    ck_assert_int_eq(to[1], 5);
    gy_reduce(GANTRY_I32, GANTRY_MIN, to, from, 3, 3);
    ck_assert_int_eq(to[1], -5);
    gy_reduce(GANTRY_I32, GANTRY_MAX, to, from, 3, 3);
    ck_assert_int_eq(to[0], INT32_MAX);
    gy_reduce(GANTRY_I32, GANTRY_PROD, to, from, 3, 3);
    ck_assert_int_eq(to[2], 98);
    /* (1e8 + -1e8) + 1 = 1, but 1e8 + (-1e8 + 1) = 0 in f32 */
    float x[] = { 1e8f }, y[] = { -1e8f }, z[] = { 1 }, r[1];
    gy_reduce(GANTRY_F32, GANTRY_SUM, r, (const void *[]){ x, y, z }, 3, 1);
    ck_assert_float_eq(r[0], 1);
    gy_reduce(GANTRY_F32, GANTRY_SUM, r, (const void *[]){ z, y, x }, 3, 1);
    ck_assert_float_eq(r[0], 0);
    float nan[] = { NAN };
    gy_reduce(GANTRY_F32, GANTRY_MAX, r, (const void *[]){ z, nan, x }, 3, 1);
    ck_assert(isnan(r[0]));
    /* f16: 2048 + 1 + 1 is 2050 in f32, but 2048 when rounded after every step */
    uint16_t big[] = { gy_float_to_f16(2048) }, one[] = { gy_float_to_f16(1) }, h[1];
    gy_reduce(GANTRY_F16, GANTRY_SUM, h, (const void *[]){ big, one, one }, 3, 1);
    ck_assert_float_eq(gy_f16_to_float(h[0]), 2050);
}
END_TEST

/* All types and operations against doubles, on small whole numbers, which all of them hold exactly; in place too. */
START_TEST(reductions_agree_with_doubles)
{
    enum { N = 1500 };
    static unsigned char a[N * 8], b[N * 8], to[N * 8];
    for (gantry_dtype dtype = GANTRY_F16; dtype <= GANTRY_U64; dtype++) {
        for (gantry_access op = GANTRY_SUM; op <= GANTRY_PROD; op++) {
            for (int i = 0; i < N; i++) {
                gy_element_store(a, dtype, (uint64_t)i, i % 11);
                gy_element_store(b, dtype, (uint64_t)i, i % 7);
            }
            gy_reduce(dtype, op, to, (const void *[]){ a, b }, 2, N);
            gy_reduce(dtype, op, b, (const void *[]){ a, b }, 2, N);
            ck_assert_mem_eq(to, b, N * gantry_dtype_size(dtype));
            for (int i = 0; i < N; i++) {
                double x = i % 11, y = i % 7;
                double expected = op == GANTRY_SUM   ? x + y
                                  : op == GANTRY_MIN ? fmin(x, y)
                                  : op == GANTRY_MAX ? fmax(x, y)
                                                     : x * y;
                if (gy_element_load(to, dtype, (uint64_t)i) != expected)
                    ck_abort_msg("%s %s of %g and %g", gantry_dtype_name(dtype), gantry_access_name(op), x, y);
            }
        }
    }
}
END_TEST

START_TEST(identities_change_nothing)
{
    for (gantry_dtype dtype = GANTRY_F16; dtype <= GANTRY_U64; dtype++) {
        for (gantry_access op = GANTRY_SUM; op <= GANTRY_PROD; op++) {
            uint64_t identity[2], value[2] = { 0 }, to[2] = { 0 };
            gy_fill_identity(identity, dtype, op, 2);
            gy_element_store(value, dtype, 1, 77);
            gy_reduce(dtype, op, to, (const void *[]){ identity, value }, 2, 2);
            ck_assert_mem_eq(to, value, 2 * gantry_dtype_size(dtype));
        }
    }
}
END_TEST

/* 5 x 7 in 2 x 3 tiles: rows cut at 0 2 5, columns at 0 2 4 7. */
START_TEST(tiles_are_packed_and_unpacked)
{
    gantry_graph *g = gantry_graph_new("tiles");
    gantry_buffer id = gantry_graph_buffer(g, "a", GANTRY_U8, 2, ((int64_t[]){ 5, 7 }));
    gantry_buffer_tiles(g, id, 2, 3);
    gantry_buffer_init_iota(g, id);
    gantry_error err;
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    const gy_buffer *b = &g->buffers.at[0];
    uint8_t array[35], packed[35], back[35], filled[35];
    for (uint8_t i = 0; i < 35; i++)
        array[i] = i;
    gy_tiles_pack(packed, array, b);
    static const uint8_t expected[35] = { 0,  1,  7,  8,  2,  3,  9,  10, 4,  5,  6,  11, 12, 13, 14, 15, 21, 22,
                                          28, 29, 16, 17, 23, 24, 30, 31, 18, 19, 20, 25, 26, 27, 32, 33, 34 };
    ck_assert_mem_eq(packed, expected, 35);
    gy_tiles_unpack(back, packed, b);
    ck_assert_mem_eq(back, array, 35);
    gy_fill_rows(filled, b, &b->init, 0, b->rows);
    ck_assert_mem_eq(filled, expected, 35);
    gy_fill_rows(filled, b, &b->init, 4, 5); /* one tile alone: rows 2..4 of columns 2..3 */
    ck_assert_mem_eq(filled, expected + 20, 6);
    gantry_graph_free(g);
}
END_TEST

/* Elements behind an axis, of axes that are not cut, lie together along it: 4 x 6 x 5 x 2 in tiles along some axes,
 * against the place of each element, and with as few lines as there can be. */
START_TEST(lines_of_tiles_are_as_long_as_they_can_be)
{
    static const struct {
        int64_t tiles[4], lines;
    } cut[] = { { { 2, 1, 1, 1 }, 1 }, { { 1, 3, 1, 1 }, 4 }, { { 2, 1, 5, 1 }, 12 }, { { 1, 1, 1, 2 }, 120 } };
    enum { WHOLE = 4 * 6 * 5 * 2 };
    const int64_t *n = cut[_i].tiles, shape[] = { 4, 6, 5, 2 };
    gantry_graph *g = gantry_graph_new("tiles");
    gantry_buffer id = gantry_graph_buffer(g, "a", GANTRY_I32, 4, shape);
    gantry_buffer_tiles_by_axis(g, id, 4, n);
    gantry_buffer_init_iota(g, id);
    gantry_error err;
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    const gy_buffer *b = &g->buffers.at[0];
    int32_t array[WHOLE], packed[WHOLE], filled[WHOLE], expected[WHOLE];
    int at = 0;
    for (int64_t tile = 0; tile < b->rows; tile++) {
        int64_t rest = tile, low[4], high[4];
        for (int k = 3; k >= 0; k--) {
            low[k] = shape[k] * (rest % n[k]) / n[k];
            high[k] = shape[k] * (rest % n[k] + 1) / n[k];
            rest /= n[k];
        }
        ck_assert_int_eq(gy_tile_lines(b, tile), cut[_i].lines);
        for (int64_t i = low[0]; i < high[0]; i++)
            for (int64_t j = low[1]; j < high[1]; j++)
                for (int64_t k = low[2]; k < high[2]; k++)
                    for (int64_t l = low[3]; l < high[3]; l++)
                        expected[at++] = (int32_t)(((i * 6 + j) * 5 + k) * 2 + l);
    }
    for (int32_t i = 0; i < WHOLE; i++)
        array[i] = i;
    gy_tiles_pack(packed, array, b);
    ck_assert_mem_eq(packed, expected, sizeof expected);
    gy_fill_rows(filled, b, &b->init, 0, b->rows);
    ck_assert_mem_eq(filled, expected, sizeof expected);
    memset(array, -1, sizeof array);
    gy_tiles_unpack(array, packed, b);
    for (int32_t i = 0; i < WHOLE; i++)
        ck_assert_int_eq(array[i], i);
    gantry_graph_free(g);
}
END_TEST

/* ---- by several threads ---- */

static int had, most_threads; /* threads that were made; that can be had */
static bool loud;             /* one of them would get signals of the program */

static int before_thread(void)
{
    sigset_t blocked;
    if (had == most_threads)
        return EAGAIN;
    had++;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    loud = loud || !sigismember(&blocked, SIGUSR1) || !sigismember(&blocked, SIGALRM);
    return 0;
}

static void fill_both_ways(const gy_buffer *b)
{
    char *one = malloc(b->bytes), *many = malloc(b->bytes);
    ck_assert(one && many);
    gy_fill_rows(one, b, &b->init, 0, b->rows);
    memset(many, 0x5a, b->bytes);
    gy_fill_buffer(many, b, &b->init, 0, b->rows);
    ck_assert_mem_eq(one, many, b->bytes);
    free(one);
    free(many);
}

/* Large enough for many threads, and of rows that no number of threads divides: rows, tiles, one single row, and
 * numbers that depend on row and column. There are as many threads as are asked for, one, or none. */
START_TEST(many_threads_fill_as_one)
{
    static const int64_t shapes[][2] = { { 1000003, 7 }, { 1021, 2053 }, { 1, 5000000 }, { 1499, 1499 } };
    static const int threads[] = { 1000, 1, 0 };
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    faults_before_thread(before_thread);
    for (int kind = 0; kind < 4; kind++) {
        for (int tiled = 0; tiled < 2; tiled++) {
            gantry_error err;
            gantry_graph *g = gantry_graph_new("large");
            gantry_buffer id = gantry_graph_buffer(g, "a", GANTRY_F32, 2, shapes[kind]);
            if (tiled && shapes[kind][0] > 1)
                gantry_buffer_tiles(g, id, 5, 3);
            kind == 3 ? gantry_buffer_init_spd(g, id, 5) : gantry_buffer_init_uniform(g, id, 5, -1, 1);
            ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
            had = 0;
            most_threads = threads[_i];
            fill_both_ways(&g->buffers.at[0]);
            ck_assert_int_le(had, 15);
            gantry_graph_free(g);
        }
    }
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    ck_assert(!loud && sigismember(&before, SIGUSR1) == sigismember(&after, SIGUSR1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run data");
    TCase *all = tcase_create("all");
    tcase_add_test(all, philox_gives_the_published_numbers);
    tcase_add_test(all, uniform_numbers_follow_the_documented_mapping);
    tcase_add_test(all, fills_do_not_depend_on_the_split);
    tcase_add_test(all, uniform_and_normal_numbers_have_their_moments);
    tcase_add_test(all, iota_wraps_and_values_keep_every_digit);
    tcase_add_test(all, spd_matrices_are_symmetric_and_positive);
    tcase_add_test(all, narrowing_rounds_to_nearest_even_once);
    tcase_add_test(all, reductions_are_exact_in_integers_and_ordered_in_floats);
    tcase_add_test(all, reductions_agree_with_doubles);
    tcase_add_test(all, identities_change_nothing);
    tcase_add_test(all, tiles_are_packed_and_unpacked);
    tcase_add_loop_test(all, lines_of_tiles_are_as_long_as_they_can_be, 0, 4);
    tcase_add_loop_test(all, many_threads_fill_as_one, 0, 3);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
