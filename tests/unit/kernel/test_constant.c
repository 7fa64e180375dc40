/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of graphs: no digit of a whole number of 64 bits is lost, and what a type cannot hold is known. */
#include "kernel/constant.h"
#include "unit/base/suite.h"
#include <math.h>
#include <string.h>

static gy_constant real(double value)
{
    return (gy_constant){ .real = value };
}

START_TEST(every_whole_number_of_64_bits_is_exact)
{
    static const int64_t all[] = { 0,
                                   1,
                                   -1,
                                   INT64_MAX,
                                   INT64_MAX - 1,
                                   INT64_MIN,
                                   INT64_MIN + 1,
                                   9007199254740993,
                                   -9007199254740993,
                                   1000000000000000001,
                                   123456789012345678 };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        gy_constant c = gy_constant_whole(all[i]);
        ck_assert_int_eq((int64_t)gy_constant_bits(c), all[i]);
        ck_assert(c.real == (double)all[i] && gy_constant_is_whole(c));
    }
    uint64_t at = 1;
    for (int i = 0; i < 100000; i++) {
        at = at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ck_assert_uint_eq(gy_constant_bits(gy_constant_whole((int64_t)at)), at);
    }
    ck_assert_uint_eq(gy_constant_bits(real(0x1.8p63)), UINT64_C(0xC000000000000000));
    ck_assert(!gy_constant_is_whole(real(0.5)) && !gy_constant_is_whole(real(0x1p64)));
    ck_assert(!gy_constant_is_whole(real(NAN)) && !gy_constant_is_whole(real(-INFINITY)));
}
END_TEST

static bool fits(double value, gantry_dtype dtype, bool wraps)
{
    return gy_constant_fits(real(value), dtype, wraps);
}

START_TEST(ranges_are_those_of_the_types)
{
    ck_assert(fits(127, GANTRY_I8, false) && !fits(128, GANTRY_I8, false));
    ck_assert(fits(-128, GANTRY_I8, false) && !fits(-129, GANTRY_I8, false));
    ck_assert(fits(255, GANTRY_U8, false) && !fits(256, GANTRY_U8, false) && !fits(-1, GANTRY_U8, false));
    ck_assert(fits(-128, GANTRY_U8, true) && !fits(-129, GANTRY_U8, true) && !fits(256, GANTRY_U8, true));
    ck_assert(fits(INT32_MAX, GANTRY_I32, false) && !fits(0x1p31, GANTRY_I32, false));
    ck_assert(fits(UINT32_MAX, GANTRY_U32, false) && !fits(0x1p32, GANTRY_U32, false));
    ck_assert(fits(-0x1p63, GANTRY_I64, false) && !fits(0x1p63, GANTRY_I64, false));
    ck_assert(fits(0x1.8p63, GANTRY_U64, false) && !fits(0x1p64, GANTRY_U64, false));
    ck_assert(gy_constant_fits(gy_constant_whole(INT64_MAX), GANTRY_I64, false));
    ck_assert(fits(-0.0, GANTRY_U8, false) && !fits(0.5, GANTRY_I64, false) && !fits(NAN, GANTRY_I32, false));
    ck_assert(fits(0.1, GANTRY_F16, false) && fits(1e300, GANTRY_F32, false) && fits(NAN, GANTRY_F64, false));
}
END_TEST

START_TEST(texts_name_the_number_and_the_range)
{
    char text[GY_CONSTANT_TEXT];
    ck_assert_str_eq(gy_constant_text(text, gy_constant_whole(9007199254740993)), "9007199254740993");
    ck_assert_str_eq(gy_constant_text(text, gy_constant_whole(INT64_MIN)), "-9223372036854775808");
    ck_assert_str_eq(gy_constant_text(text, real(2.5)), "2.5");
    ck_assert_str_eq(gy_constant_text(text, real(NAN)), "nan");
    ck_assert_str_eq(gy_constant_text(text, (gy_constant){ .real = 1e18, .rounded = true }),
                     "1e+18, calculated in doubles, which are exact below 2^53 only");
    ck_assert_str_eq(gy_constant_range(text, GANTRY_U64, true),
                     "a whole number from -9223372036854775808 to 18446744073709551615");
    ck_assert_str_eq(gy_constant_range(text, GANTRY_U8, false), "a whole number from 0 to 255");
}
END_TEST

static bool look_up(void *context, const char *name, int64_t *integer, double *value, bool *is_real)
{
    (void)context;
    (void)name;
    *integer = 9007199254740993;
    *value = (double)*integer;
    *is_real = false;
    return true;
}

static gy_constant evaluate(const char *text)
{
    gy_arena arena = { 0 };
    const gy_expr *e;
    gy_constant c;
    ck_assert_int_eq(gy_expr_parse(&e, &arena, text, strlen(text), GANTRY_E_GRAPH, NULL, NULL), GANTRY_OK);
    ck_assert_int_eq(gy_constant_evaluate(&c, e, look_up, NULL, GANTRY_E_GRAPH, NULL), GANTRY_OK);
    gy_arena_free(&arena);
    return c;
}

START_TEST(expressions_are_exact_where_they_can_be)
{
    ck_assert_int_eq((int64_t)gy_constant_bits(evaluate("n + 2")), 9007199254740995);
    ck_assert_int_eq((int64_t)gy_constant_bits(evaluate("3 * n / 3")), 9007199254740993);
    ck_assert(evaluate("1 / 2").real == 0.5 && !evaluate("1 / 2").rounded);
    ck_assert(evaluate("1.5 * 2").real == 3 && gy_constant_fits(evaluate("1.5 * 2"), GANTRY_I8, false));
    ck_assert(evaluate("n * 1.0").rounded && !gy_constant_fits(evaluate("n * 1.0"), GANTRY_I64, false));
    ck_assert(gy_constant_fits(evaluate("n * 1.0"), GANTRY_F32, false));
    ck_assert(evaluate("n * n").rounded);
}
END_TEST

START_TEST(whole_numbers_of_u64_alone_are_exact)
{
    static const struct {
        const char *text;
        uint64_t value;
    } all[] = { { "9223372036854775808", UINT64_C(1) << 63 },
                { "9223372036854775809", (UINT64_C(1) << 63) + 1 },
                { "12345678901234567890", UINT64_C(12345678901234567890) },
                { "18446744073709551614", UINT64_MAX - 1 },
                { "18446744073709551615", UINT64_MAX } };
    char text[GY_CONSTANT_TEXT];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        gy_constant c = evaluate(all[i].text);
        ck_assert_uint_eq(gy_constant_bits(c), all[i].value);
        ck_assert(c.real == (double)all[i].value && gy_constant_is_whole(c));
        ck_assert(gy_constant_fits(c, GANTRY_U64, false) && !gy_constant_fits(c, GANTRY_I64, false));
        ck_assert(gy_constant_fits(c, GANTRY_F32, false));
        ck_assert_str_eq(gy_constant_text(text, c), all[i].text);
    }
    ck_assert(evaluate("18446744073709551615 - 1").rounded && evaluate("-(18446744073709551615)").rounded);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("constants");
    TCase *c = tcase_create("all");
    tcase_add_test(c, every_whole_number_of_64_bits_is_exact);
    tcase_add_test(c, ranges_are_those_of_the_types);
    tcase_add_test(c, texts_name_the_number_and_the_range);
    tcase_add_test(c, expressions_are_exact_where_they_can_be);
    tcase_add_test(c, whole_numbers_of_u64_alone_are_exact);
    suite_add_tcase(s, c);
    return run_suite(s);
}
