/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/ticks.h"
#include "base/vec.h"
#include "suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST(memory_refuses_what_does_not_fit)
{
    ck_assert_ptr_null(gy_calloc(SIZE_MAX / 2, 3));
    ck_assert_ptr_null(gy_realloc(NULL, SIZE_MAX / 2, 3));
    char *a = gy_alloc(0), *b = gy_alloc(0);
    ck_assert(a && b && a != b);
    a = gy_realloc(a, 0, 8);
    ck_assert_ptr_nonnull(a);
    gy_free(a);
    gy_free(b);
    gy_free(NULL);
    char *copy = gy_strndup("abcdef", 3);
    ck_assert_str_eq(copy, "abc");
    gy_free(copy);
}
END_TEST

/* The second time around, memory that was written to and freed before. */
START_TEST(contents_of_arrays_are_zero)
{
    static const size_t sizes[] = { 0, 1, 4096, (4 << 20) - 1, 4 << 20, (9 << 20) + 5 };
    ck_assert_ptr_null(gy_calloc_array(SIZE_MAX));
    for (int i = 0; i < 12; i++) {
        size_t bytes = sizes[i % 6];
        char *a = gy_calloc_array(bytes);
        ck_assert_ptr_nonnull(a);
        ck_assert(bytes < 4 << 20 || (uintptr_t)a % (2 << 20) == 0);
        size_t k = 0;
        while (k < bytes && a[k] == 0)
            k++;
        ck_assert_uint_eq(k, bytes);
        memset(a, 1, bytes);
        gy_free(a);
    }
}
END_TEST

START_TEST(arrays_grow)
{
    typedef GY_VEC(int64_t) numbers;
    numbers v = { 0 };
    for (int64_t i = 0; i < 10000; i++)
        ck_assert(gy_vec_push(&v, i * i));
    ck_assert(gy_vec_add(&v, 5));
    ck_assert_uint_eq(v.count, 10005);
    for (int64_t i = 0; i < 10000; i++)
        assert_quietly(v.at[i] == i * i);
    v.count = 10000;
    ck_assert_int_eq(*gy_vec_last(&v), 9999 * 9999);
    ck_assert(!gy_vec_reserve(&v, SIZE_MAX / 4));
    ck_assert_int_eq(v.at[5], 25);
    gy_vec_free(&v);
    ck_assert(v.at == NULL && v.count == 0 && v.capacity == 0);
}
END_TEST

START_TEST(arenas_hold_what_they_are_given)
{
    gy_arena arena = { 0 };
    uint64_t state = 1;
    enum { PIECES = 4000 };
    static unsigned char *piece[PIECES];
    static size_t bytes[PIECES];
    for (int i = 0; i < PIECES; i++) {
        bytes[i] = next_random(&state) % (i % 100 == 0 ? 100000 : 64);
        piece[i] = gy_arena_alloc(&arena, bytes[i]);
        ck_assert_uint_eq((uintptr_t)piece[i] % 16, 0);
        memset(piece[i], i & 0xFF, bytes[i]);
        char *text = gy_arena_printf(&arena, "n%d", i); /* unaligned things in between */
        ck_assert_int_eq(atoi(text + 1), i);
    }
    for (int i = 0; i < PIECES; i++)
        for (size_t k = 0; k < bytes[i]; k++)
            assert_quietly(piece[i][k] == ((unsigned)i & 0xFF));
    ck_assert_ptr_null(gy_arena_alloc(&arena, SIZE_MAX - 8));
    ck_assert_ptr_null(gy_arena_calloc(&arena, SIZE_MAX / 2, 4));
    ck_assert_ptr_null(gy_arena_strndup(&arena, "", SIZE_MAX));
    gy_arena_free(&arena);
    const unsigned char *zero = gy_arena_calloc(&arena, 100, 8); /* ready again */
    for (int i = 0; i < 800; i++)
        ck_assert_uint_eq(zero[i], 0);
    ck_assert_str_eq(gy_arena_strdup(&arena, "copy"), "copy");
    ck_assert_str_eq(gy_arena_strndup(&arena, "copy", 2), "co");
    gy_arena_free(&arena);
}
END_TEST

/* Keys from a small range, so that the model can be an array. */
START_TEST(map_equals_an_array)
{
    enum { KEYS = 5000 };
    static uint64_t model[KEYS];
    static bool present[KEYS];
    gy_map map = { 0 };
    uint64_t state = 3, value;
    ck_assert(!gy_map_get(&map, 0, &value));
    size_t count = 0;
    for (int step = 0; step < 20000; step++) {
        uint64_t key = next_random(&state) % KEYS;
        model[key] = next_random(&state);
        count += !present[key];
        present[key] = true;
        assert_quietly(gy_map_put(&map, key << 40, model[key]));
    }
    for (uint64_t key = 0; key < KEYS; key++) {
        value = 77;
        ck_assert(gy_map_get(&map, key << 40, &value) == present[key]);
        ck_assert_uint_eq(value, present[key] ? model[key] : 77);
    }
    ck_assert_uint_eq(map.count, count);
    gy_map_free(&map);
    ck_assert(!gy_map_get(&map, 0, &value));
}
END_TEST

START_TEST(hashes_are_the_published_ones)
{
    /* splitmix64 from seed 1234567 (rosettacode.org, "Pseudo-random numbers/Splitmix64"): the state advances by the
     * golden ratio, and gy_hash64(x) is the output for state x. */
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    const uint64_t published[] = { UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                   UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                                   UINT64_C(16408922859458223821) };
    for (uint64_t i = 0; i < 5; i++)
        ck_assert_uint_eq(gy_hash64(1234567 + i * golden), published[i]);
    /* XXH64 of nothing and of "abc" with seed 0 (xxHash's own test vectors). */
    ck_assert_uint_eq(gy_hash_bytes("", 0, 0), UINT64_C(0xef46db3751d8e999));
    ck_assert_uint_eq(gy_hash_bytes("abc", 3, 0), UINT64_C(0x44bc2cf5ad770999));
}
END_TEST

START_TEST(ticks_are_rounded)
{
    ck_assert_int_eq(gy_ticks_from_us(0), 0);
    ck_assert_int_eq(gy_ticks_from_us(-3), 0);
    ck_assert_int_eq(gy_ticks_from_us((double)NAN), 0);
    ck_assert_int_eq(gy_ticks_from_us(1), 1000000);
    ck_assert_int_eq(gy_ticks_from_us(14.3), 14300000);
    ck_assert_int_eq(gy_ticks_from_us(2.5e-6), 3);
    ck_assert_int_eq(gy_ticks_from_us(0.5e-6), 1);
    ck_assert_int_eq(gy_ticks_from_us(0.49e-6), 0);
    ck_assert_int_eq(gy_ticks_from_us(1e13), GY_TICKS_MAX);
    ck_assert_int_eq(gy_ticks_from_us((double)INFINITY), GY_TICKS_MAX);
    /* 2^52 + 1 picoseconds: adding a half before cutting would round it up. */
    ck_assert_int_eq(gy_ticks_from_us(4503599627.370497), INT64_C(4503599627370497));
    ck_assert_double_eq(gy_ticks_to_us(1500000), 1.5);
}
END_TEST

START_TEST(ticks_of_an_amount_round_up)
{
    ck_assert_int_eq(gy_ticks_of(0, 5), 0);
    ck_assert_int_eq(gy_ticks_of(1, 1), INT64_C(1000000000000));
    ck_assert_int_eq(gy_ticks_of(1, 3), INT64_C(333333333334));
    /* 1 GiB at 55 GB/s: 1073741824 / 55e9 s = 19522578618.18... ps */
    ck_assert_int_eq(gy_ticks_of(UINT64_C(1) << 30, INT64_C(55000000000)), INT64_C(19522578619));
    ck_assert_int_eq(gy_ticks_of(UINT64_MAX, 1), GY_TICKS_MAX);
    ck_assert_int_eq(gy_ticks_of(1, 0), GY_TICKS_MAX);
    ck_assert_int_eq(gy_ticks_of(1, -1), GY_TICKS_MAX);
    ck_assert_int_eq(gy_ticks_of(1, INT64_MAX), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory, arrays, maps, ticks");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, memory_refuses_what_does_not_fit);
    tcase_add_test(tests, contents_of_arrays_are_zero);
    tcase_add_test(tests, arrays_grow);
    tcase_add_test(tests, arenas_hold_what_they_are_given);
    tcase_add_test(tests, map_equals_an_array);
    tcase_add_test(tests, hashes_are_the_published_ones);
    tcase_add_test(tests, ticks_are_rounded);
    tcase_add_test(tests, ticks_of_an_amount_round_up);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
