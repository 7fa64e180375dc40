/* SPDX-License-Identifier: Apache-2.0 */
#include "base/expr.h"

#include "base/memory.h"
#include "expr_cases.h"
#include "suite.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static gy_arena arena;
static gantry_error err;

static void set_up(void)
{
    memset(&err, 0, sizeof err);
}

static void tear_down(void)
{
    gy_arena_free(&arena);
}

static bool look_up(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    static const struct {
        const char *name;
        int64_t integer;
        double real;
    } known[] = { { "a", 7, 7 },
                  { "b", -3, -3 },
                  { "c", 0, 0 },
                  { "x.rows", 1000, 1000 },
                  { "lr", 0, 0.25 },
                  { "huge", INT64_MAX, (double)INT64_MAX },
                  { "low", INT64_MIN, (double)INT64_MIN },
                  { "inf", 0, 1e308 * 10 },
                  { "whole", 0, 2.0 } };
    (void)context;
    for (size_t i = 0; i < COUNT(known); i++) {
        if (strcmp(name, known[i].name) == 0) {
            *integer = known[i].integer;
            *real = known[i].real;
            *is_real = strcmp(name, "lr") == 0 || strcmp(name, "inf") == 0 || strcmp(name, "whole") == 0;
            return true;
        }
    }
    return false;
}

static const gy_expr *parse(const char *text)
{
    const gy_expr *e = NULL;
    gantry_status status = gy_expr_parse(&e, &arena, text, strlen(text), GANTRY_E_GRAPH, "/p", &err);
    ck_assert_msg(status == GANTRY_OK, "\"%s\": %s", text, err.text);
    return e;
}

static char *print(const gy_expr *e)
{
    gy_text text = { 0 };
    gy_expr_print(&text, e);
    char *printed = gy_text_take(&text, NULL);
    char *kept = gy_arena_strdup(&arena, printed);
    gy_free(printed);
    return kept;
}

static int64_t integer(const char *text)
{
    int64_t value = -77;
    gantry_status status = gy_expr_integer(parse(text), look_up, NULL, &value, GANTRY_E_GRAPH, "/p", &err);
    ck_assert_msg(status == GANTRY_OK, "\"%s\": %s", text, err.text);
    return value;
}

static double real(const char *text)
{
    double value = -77;
    gantry_status status = gy_expr_real(parse(text), look_up, NULL, &value, GANTRY_E_GRAPH, "/p", &err);
    ck_assert_msg(status == GANTRY_OK, "\"%s\": %s", text, err.text);
    return value;
}

START_TEST(python_agrees)
{
    for (size_t i = 0; i < COUNT(expr_cases); i++) {
        int64_t value = integer(expr_cases[i].text);
        ck_assert_msg(value == expr_cases[i].value, "%s is %" PRId64 ", not %" PRId64, expr_cases[i].text,
                      expr_cases[i].value, value);
    }
    for (size_t i = 0; i < COUNT(expr_failures); i++) {
        int64_t value = -77;
        const gy_expr *e = parse(expr_failures[i]);
        gantry_status status = gy_expr_integer(e, look_up, NULL, &value, GANTRY_E_GRAPH, NULL, &err);
        ck_assert_msg(status == GANTRY_E_GRAPH && value == -77, "%s is %" PRId64, expr_failures[i], value);
    }
}
END_TEST

START_TEST(integers_are_exact)
{
    ck_assert_int_eq(integer("-7 // 2"), -4);
    ck_assert_int_eq(integer("7 // -2"), -4);
    ck_assert_int_eq(integer("-7 // -2"), 3);
    ck_assert_int_eq(integer("-7 % 3"), 2);
    ck_assert_int_eq(integer("7 % -3"), -2);
    ck_assert_int_eq(integer("-6 % 3"), 0);
    ck_assert_int_eq(integer("ceil_div(-7, 2)"), -3);
    ck_assert_int_eq(integer("ceil_div(7, 2)"), 4);
    ck_assert_int_eq(integer("ceil_div(-7, -2)"), 4);
    ck_assert_int_eq(integer("ceil_div(8, 2)"), 4);
    ck_assert_int_eq(integer("9223372036854775807"), INT64_MAX);
    ck_assert_int_eq(integer("-9223372036854775808"), INT64_MIN);
    ck_assert_int_eq(integer("low % -1"), 0);
    ck_assert_int_eq(integer("9223372036854775807 - 1 + 1"), INT64_MAX);
    ck_assert_int_eq(integer("9007199254740993 * 3"), INT64_C(27021597764222979)); /* a double cannot */
    ck_assert_int_eq(integer("floor(7 / 2)"), 3);
    ck_assert_int_eq(integer("ceil(0.25 * 10)"), 3);
    ck_assert_int_eq(integer("round(2.5) + round(3.5)"), 6);
    ck_assert_int_eq(integer("floor(sqrt(99)) * 2"), 18);
    ck_assert_int_eq(integer("floor(log2(1024))"), 10);
    ck_assert_int_eq(integer("abs(3 - 10)"), 7);
    ck_assert_int_eq(integer("clamp(15, 0, 9)"), 9);
    ck_assert_int_eq(integer("clamp(-1, 0, 9)"), 0);
    ck_assert_int_eq(integer("clamp(4, 0, 9)"), 4);
    ck_assert_int_eq(integer("min(3, 1, 2) + max(1, 3, 2)"), 4);
    ck_assert_int_eq(integer("c != 0 and 5 // c > 1"), 0); /* the right side is not evaluated */
    ck_assert_int_eq(integer("c == 0 or 5 // c > 1"), 1);
    ck_assert_int_eq(integer("5 and 7"), 1);
    ck_assert_int_eq(integer("0 or 7"), 1);
    ck_assert_int_eq(integer("not 0"), 1);
    ck_assert_int_eq(integer("not a == 7"), 0);
    ck_assert_int_eq(integer(" \t( x.rows )\n"), 1000);
    ck_assert_int_eq(integer("- - -a"), -7);
    ck_assert_int_eq(integer("2*-a"), -14);
    ck_assert_int_eq(integer("100 / 10 / 5"), 2);
    ck_assert_int_eq(integer("100 - 10 - 5"), 85);
}
END_TEST

START_TEST(reals_are_doubles_throughout)
{
    ck_assert_double_eq(real("1 / 4"), 0.25);
    ck_assert_double_eq(real("lr * 2 + 1e-3"), 0.501);
    ck_assert_double_eq(real("7 // 2"), 3);
    ck_assert_double_eq(real("-7.5 // 2"), -4);
    ck_assert_double_eq(real("-7.5 % 2"), 0.5);
    ck_assert_double_eq(real("7.5 % -2"), -0.5);
    ck_assert_double_eq(real("ceil_div(7.1, 2)"), 4);
    ck_assert_double_eq(real("clamp(lr, 0.5, 1)"), 0.5);
    ck_assert_double_eq(real("sqrt(2) + pow(2, 0.5)"), 2 * sqrt(2));
    ck_assert_double_eq(real("exp(1) - log(3) + sin(1) * cos(1)"), exp(1) - log(3) + sin(1) * cos(1));
    ck_assert_double_eq(real("abs(-0.5)"), 0.5);
    ck_assert_double_eq(real("min(lr, 1, 0.125)"), 0.125);
    ck_assert_double_eq(real("max(lr, 1, 0.125)"), 1);
    ck_assert_double_eq(real("lr < 1 and not lr > 1"), 1);
    ck_assert_double_eq(real("0.5 or c"), 1);
    ck_assert_double_eq(real("lr == 0.25 or 1 / c"), 1);
    ck_assert_double_eq(real("(a != b) + (a >= b) + (a <= b)"), 2);
    ck_assert_double_eq(real("9223372036854775807 + 1"), 9223372036854775808.0);
    ck_assert_double_eq(real("-lr"), -0.25);
    ck_assert_double_eq(real("-(0.5) - lr"), -0.75);
    ck_assert_double_eq(real("1E+2"), 100);
}
END_TEST

/* ---- errors ---- */

static void assert_parse_fails(const char *text, const char *message)
{
    const gy_expr *untouched = (const gy_expr *)&arena, *e = untouched;
    ck_assert_int_eq(gy_expr_parse(&e, &arena, text, strlen(text), GANTRY_E_KERNEL, "/w", &err), GANTRY_E_KERNEL);
    ck_assert_ptr_eq(e, untouched);
    char expected[600];
    snprintf(expected, sizeof expected, "in expression \"%s\": %s", text, message);
    ck_assert_str_eq(err.text, message[0] == '^' ? message + 1 : expected);
    ck_assert_str_eq(err.where, "/w");
    ck_assert_int_eq(err.status, GANTRY_E_KERNEL);
}

START_TEST(bad_texts_are_refused_with_a_place)
{
    assert_parse_fails("", "^the expression is empty: write a number, a name or a formula");
    assert_parse_fails("  ", "^the expression is empty: write a number, a name or a formula");
    assert_parse_fails("n +", "at character 4: expected a number, a name or '(', not the end");
    assert_parse_fails("(n", "at character 3: expected an operator or ')', not the end");
    assert_parse_fails("(n]", "at character 3: expected an operator or ')', not ']'");
    assert_parse_fails("n)", "at character 2: expected an operator or the end, not ')'");
    assert_parse_fails("n m", "at character 3: expected an operator or the end, not 'm'");
    assert_parse_fails("* n", "at character 1: expected a number, a name or '(', not '*'");
    assert_parse_fails("a = b", "at character 3: expected an operator or the end, not '='");
    assert_parse_fails("()", "at character 2: expected a number, a name or '(', not ')'");
    assert_parse_fails("2n", "at character 1: badly written number: write 12, 0.5, 1e-3 or 2*n");
    assert_parse_fails("1 + 1.", "at character 5: badly written number: write 12, 0.5, 1e-3 or 2*n");
    assert_parse_fails("1e", "at character 1: badly written number: write 12, 0.5, 1e-3 or 2*n");
    assert_parse_fails("x.", "at character 1: badly written name: a '.' joins two words, as in x.rows");
    assert_parse_fails("x..y", "at character 1: badly written name: a '.' joins two words, as in x.rows");
    assert_parse_fails("a < b < c", "at character 7: comparisons do not chain: write a < b and b < c");
    assert_parse_fails("1 + not a", "at character 5: put 'not ...' in parentheses here");
    assert_parse_fails("18446744073709551616",
                       "at character 1: the number does not fit in 64 bits: the largest is 18446744073709551615");
    assert_parse_fails("-9223372036854775809",
                       "at character 2: the number does not fit in 64 bits: the smallest is -9223372036854775808");
    assert_parse_fails("1e999", "at character 1: the number does not fit in a double: the largest is about 1.8e308");
}
END_TEST

START_TEST(bad_calls_are_refused_with_the_usage)
{
    assert_parse_fails("1 + ceildiv(a, 2)", "at character 5: no function \"ceildiv\" (did you mean \"ceil_div\"?)");
    assert_parse_fails("Min(a, 2)", "at character 1: no function \"Min\" (did you mean \"min\"?)");
    assert_parse_fails("tan(a)",
                       "at character 1: no function \"tan\": there are min, max, ceil_div, clamp, abs, floor, "
                       "ceil, round, sqrt, exp, log, log2, sin, cos and pow");
    assert_parse_fails("sqrt(1, 2)", "at character 1: sqrt takes 1 argument, not 2: write sqrt(x)");
    assert_parse_fails("pow(2)", "at character 1: pow takes 2 arguments, not 1: write pow(base, exponent)");
    assert_parse_fails("min()", "at character 1: min takes 2 or more arguments, not 0: write min(a, b, ...)");
    assert_parse_fails("max(1)", "at character 1: max takes 2 or more arguments, not 1: write max(a, b, ...)");
    assert_parse_fails("ceil_div(1)", "at character 1: ceil_div takes 2 arguments, not 1: write ceil_div(a, b)");
    assert_parse_fails("ceil_div(1, 2, 3)", "at character 1: ceil_div takes 2 arguments, not 3: write ceil_div(a, b)");
    assert_parse_fails("clamp(1, 2)", "at character 1: clamp takes 3 arguments, not 2: write clamp(x, low, high)");
    assert_parse_fails("min(1,", "at character 7: expected a number, a name or '(', not the end");
    assert_parse_fails("min(1,)", "at character 7: expected a number, a name or '(', not ')'");
    assert_parse_fails("min(1 2)", "at character 7: expected ',' or ')', not '2'");
    ck_assert_int_eq(integer("a - min(a, 1)"), 6);
}
END_TEST

static void assert_integer_fails(const char *text, const char *message)
{
    int64_t value = -77;
    const gy_expr *e = parse(text);
    ck_assert_int_eq(gy_expr_integer(e, look_up, NULL, &value, GANTRY_E_GRAPH, "/w", &err), GANTRY_E_GRAPH);
    ck_assert_int_eq(value, -77);
    char expected[600];
    snprintf(expected, sizeof expected, "in expression \"%s\": %s", text, message);
    ck_assert_str_eq(err.text, expected);
    ck_assert_str_eq(err.where, "/w");
}

static void assert_real_fails(const char *text, const char *message)
{
    double value = -77;
    const gy_expr *e = parse(text);
    ck_assert_int_eq(gy_expr_real(e, look_up, NULL, &value, GANTRY_E_GRAPH, "/w", &err), GANTRY_E_GRAPH);
    ck_assert_double_eq(value, -77);
    char expected[600];
    snprintf(expected, sizeof expected, "in expression \"%s\": %s", text, message);
    ck_assert_str_eq(err.text, expected);
}

START_TEST(integer_evaluation_says_what_is_wrong)
{
    assert_integer_fails("a / 2", "7 / 2 is not a whole number: '//' rounds down, ceil_div rounds up");
    assert_integer_fails("a / c", "7 / 0: division by zero");
    assert_integer_fails("a // c", "7 // 0: division by zero");
    assert_integer_fails("a % c", "7 % 0: division by zero");
    assert_integer_fails("ceil_div(a, c)", "7 ceil_div 0: division by zero");
    assert_integer_fails("huge + 1", "9223372036854775807 + 1 does not fit in 64 bits");
    assert_integer_fails("low - 1", "-9223372036854775808 - 1 does not fit in 64 bits");
    assert_integer_fails("huge * 2", "9223372036854775807 * 2 does not fit in 64 bits");
    assert_integer_fails("-low", "0 - -9223372036854775808 does not fit in 64 bits");
    assert_integer_fails("low / -1", "-9223372036854775808 / -1 does not fit in 64 bits");
    assert_integer_fails("low // -1", "-9223372036854775808 // -1 does not fit in 64 bits");
    assert_integer_fails("ceil_div(low, -1)", "-9223372036854775808 ceil_div -1 does not fit in 64 bits");
    assert_integer_fails("sqrt(16)", "sqrt gives a real number, and only whole numbers are allowed here: write floor, "
                                     "ceil or round around it");
    assert_integer_fails("floor(1e300)", "floor gives 1e+300, and whole numbers beyond 2^53 are not exact there");
    assert_integer_fails("floor(sqrt(0 - 1))", "sqrt(-1) is no finite number");
    assert_integer_fails("abs(-9223372036854775807 - 1)", "0 - -9223372036854775808 does not fit in 64 bits");
    assert_real_fails("log(0)", "log(0) is no finite number");
    assert_real_fails("pow(10, 400)", "pow(10, 400) is no finite number");
    assert_integer_fails("clamp(1, 5, 3)", "clamp: the low end 5 is above the high end 3");
    assert_integer_fails("nn * 2", "unknown name \"nn\"");
    assert_integer_fails("a * 1e6",
                         "1000000.0 is a real number, and only whole numbers are allowed here: write 1000000");
    assert_integer_fails("a * 0.5", "0.5 is a real number, and only whole numbers are allowed here");
    assert_integer_fails("a * lr", "\"lr\" is 0.25, and only whole numbers are allowed here");
    assert_integer_fails("min(1, 2, nn)", "unknown name \"nn\"");
    assert_integer_fails("1 and nn", "unknown name \"nn\"");
    assert_integer_fails("clamp(1, 2, nn)", "unknown name \"nn\"");
    assert_integer_fails("not nn", "unknown name \"nn\"");
}
END_TEST

START_TEST(real_evaluation_says_what_is_wrong)
{
    assert_real_fails("lr / c", "0.25 / 0: division by zero");
    assert_real_fails("lr % c", "0.25 % 0: division by zero");
    assert_real_fails("lr // 0.0", "0.25 // 0: division by zero");
    assert_real_fails("ceil_div(lr, 0)", "0.25 ceil_div 0: division by zero");
    assert_real_fails("1e308 * 10", "1e+308 * 10 does not fit in a double");
    assert_real_fails("clamp(1, 5.5, 3)", "clamp: the low end 5.5 is above the high end 3");
    assert_real_fails("nn", "unknown name \"nn\"");
    assert_real_fails("inf + 1", "\"inf\" is inf, and only finite numbers are allowed");
    assert_real_fails("-nn", "unknown name \"nn\"");
    assert_real_fails("0 or nn", "unknown name \"nn\"");
    assert_real_fails("clamp(1, nn, 2)", "unknown name \"nn\"");
    assert_real_fails("nn + 1", "unknown name \"nn\"");
    assert_real_fails("nn and 1", "unknown name \"nn\"");
    assert_real_fails("not nn", "unknown name \"nn\"");
}
END_TEST

/* ---- hostile texts ---- */

static gantry_status parse_repeated(const char *head, const char *piece, const char *tail, size_t times)
{
    gy_text text = { 0 };
    gy_text_add(&text, head);
    for (size_t i = 0; i < times; i++)
        gy_text_add(&text, piece);
    gy_text_add(&text, tail);
    const gy_expr *e;
    gantry_status status = gy_expr_parse(&e, &arena, text.at, text.length, GANTRY_E_GRAPH, NULL, &err);
    int64_t value;
    if (!status)
        status = gy_expr_integer(e, look_up, NULL, &value, GANTRY_E_GRAPH, NULL, &err);
    gy_text_free(&text);
    return status;
}

START_TEST(nesting_cannot_overflow_the_stack)
{
    static const char *const pieces[] = { "(", "-(", "not ", "- ", "min(1,", "1+(", "a<(", "1 or (" };
    for (size_t i = 0; i < COUNT(pieces); i++) {
        ck_assert_int_eq(parse_repeated("", pieces[i], "1", 1000000), GANTRY_E_GRAPH);
        ck_assert_ptr_nonnull(strstr(err.text, "nested more than 256 deep: split the expression"));
    }
    ck_assert_int_eq(parse_repeated("1", "+1", "", 1000000), GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "more than 256 levels or terms: split the expression"));
    ck_assert_int_eq(parse_repeated("1", "+1", "", 200), GANTRY_OK);
    ck_assert_int_eq(parse_repeated("1", " and 1", "", 200), GANTRY_OK);
    ck_assert_int_eq(parse_repeated("min(1", ",1", ")", 100000), GANTRY_OK);
    ck_assert_int_eq(parse_repeated("", "((((", "1))))", 1), GANTRY_OK);
}
END_TEST

START_TEST(any_bytes_are_survived)
{
    static const char alphabet[] = "ab.19+-*/%()<>=!, eE_minxclapdortf\n\x00\xFF";
    uint64_t state = 9;
    for (int i = 0; i < 200000; i++) {
        char text[24];
        size_t length = next_random(&state) % sizeof text;
        for (size_t k = 0; k < length; k++)
            text[k] = alphabet[next_random(&state) % (sizeof alphabet - 1)];
        /* A copy of exactly that size: a sanitizer sees a read behind its end. */
        char *exact = gy_alloc(length);
        memcpy(exact, text, length);
        const gy_expr *e;
        int64_t value;
        if (!gy_expr_parse(&e, &arena, exact, length, GANTRY_E_GRAPH, NULL, &err))
            (void)!gy_expr_integer(e, look_up, NULL, &value, GANTRY_E_GRAPH, NULL, &err);
        gy_free(exact);
        if (i % 1000 == 0)
            gy_arena_free(&arena);
    }
}
END_TEST

/* ---- a second evaluator: random trees, written with all parentheses, in 128 bits ---- */

__extension__ typedef __int128 wide;

typedef struct outcome {
    wide value;
    bool failed;
} outcome;

static wide floor_of(wide a, wide b)
{
    wide quotient = a / b;
    return quotient - (quotient * b != a && (a < 0) != (b < 0));
}

static outcome combine(int op, outcome l, outcome r)
{
    wide a = l.value, b = r.value;
    bool failed = l.failed || r.failed || (op >= 3 && op <= 6 && b == 0);
    if (failed)
        return (outcome){ 0, true };
    wide value = op == 0   ? a + b
                 : op == 1 ? a - b
                 : op == 2 ? a * b
                 : op == 3 ? a / b
                 : op == 4 ? floor_of(a, b)
                 : op == 5 ? a - b * floor_of(a, b)
                 : op == 6 ? -floor_of(-a, b)
                 : op == 7 ? (a < b ? a : b)
                 : op == 8 ? (a > b ? a : b)
                 : op == 9 ? a < b
                           : a == b;
    failed = (op == 3 && value * b != a) || value > INT64_MAX || value < INT64_MIN;
    return (outcome){ value, failed };
}

static outcome random_tree(gy_text *text, uint64_t *state, int depth)
{
    static const char *const symbols[] = { " + ", " - ", " * ", " / ", " // ", " % ", ", ", ", ", ", ", " < ", " == " };
    static const char *const opens[] = { "(", "(", "(", "(", "(", "(", "ceil_div(", "min(", "max(", "(", "(" };
    if (depth == 0 || next_random(state) % 8 == 0) {
        int shift = (int)(next_random(state) % 64);
        int64_t value = (int64_t)next_random(state) >> shift;
        gy_text_printf(text, "%" PRId64, value);
        return (outcome){ value, false };
    }
    int op = (int)(next_random(state) % 11);
    gy_text_add(text, opens[op]);
    outcome left = random_tree(text, state, depth - 1);
    gy_text_add(text, symbols[op]);
    outcome right = random_tree(text, state, depth - 1);
    gy_text_add(text, ")");
    return combine(op, left, right);
}

static void assert_outcome(const gy_expr *e, outcome expected, const char *text)
{
    int64_t value = -77;
    gantry_status status = gy_expr_integer(e, look_up, NULL, &value, GANTRY_E_GRAPH, NULL, &err);
    ck_assert_msg((status != GANTRY_OK) == expected.failed, "%s: %s", text, status ? err.text : "did not fail");
    ck_assert_msg(status || value == (int64_t)expected.value, "%s is not %" PRId64, text, value);
}

START_TEST(random_trees_equal_128_bit_arithmetic_before_and_after_printing)
{
    uint64_t state = 1234;
    int fine = 0;
    for (int i = 0; i < 50000; i++) {
        gy_text text = { 0 };
        outcome expected = random_tree(&text, &state, (int)(next_random(&state) % 5));
        const gy_expr *e = parse(text.at);
        assert_outcome(e, expected, text.at);
        const char *printed = print(e);
        const gy_expr *again = parse(printed);
        assert_outcome(again, expected, printed);
        ck_assert_str_eq(print(again), printed);
        fine += !expected.failed;
        gy_text_free(&text);
        gy_arena_free(&arena);
    }
    ck_assert_int_gt(fine, 15000);
}
END_TEST

/* ---- printing and binding ---- */

START_TEST(printing_is_normal)
{
    static const char *const pairs[][2] = {
        { "1+2*3", "1 + 2 * 3" },
        { "(1+2)*3", "(1 + 2) * 3" },
        { "1-(2-3)", "1 - (2 - 3)" },
        { "(1-2)-3", "1 - 2 - 3" },
        { "a/(b*c)", "a / (b * c)" },
        { "((a))", "a" },
        { "-(a+b)", "-(a + b)" },
        { "-a*b", "-a * b" },
        { "-(a*b)", "-(a * b)" },
        { "a- -5", "a - -5" },
        { "- -5", "5" },
        { "--a", "--a" },
        { "-(-9223372036854775808)", "--9223372036854775808" },
        { "min( a,b,  c+1 )", "min(a, b, c + 1)" },
        { "not(a and b)or c", "not (a and b) or c" },
        { "not not a", "not not a" },
        { "(not a)+1", "(not a) + 1" },
        { "(a<b)<c", "(a < b) < c" },
        { "(a<b)==(b<c)", "(a < b) == (b < c)" },
        { "a or(b and c)", "a or b and c" },
        { "(a or b)and c", "(a or b) and c" },
        { "1e6*x.rows", "1000000.0 * x.rows" },
        { "-1.50", "-1.5" },
        { "a//b%c", "a // b % c" },
    };
    for (size_t i = 0; i < COUNT(pairs); i++) {
        ck_assert_str_eq(print(parse(pairs[i][0])), pairs[i][1]);
        ck_assert_str_eq(print(parse(pairs[i][1])), pairs[i][1]);
    }
    for (size_t i = 0; i < COUNT(expr_cases); i++) {
        const char *printed = print(parse(expr_cases[i].text));
        ck_assert_str_eq(print(parse(printed)), printed);
        ck_assert_int_eq(integer(printed), expr_cases[i].value);
    }
}
END_TEST

static bool collect(void *context, const char *name)
{
    gy_text *text = context;
    gy_text_printf(text, "%s;", name);
    return text->length < 8;
}

START_TEST(names_come_from_left_to_right)
{
    gy_text text = { 0 };
    ck_assert(gy_expr_names(parse("a + min(b, a)"), collect, &text));
    ck_assert_str_eq(text.at, "a;b;a;");
    ck_assert(!gy_expr_names(parse("x.rows + b * c"), collect, &text)); /* stops when told to */
    ck_assert_str_eq(text.at, "a;b;a;x.rows;");
    gy_text_free(&text);
    ck_assert(gy_expr_names(parse("1 + 2"), collect, &text));
    ck_assert_ptr_null(text.at);
}
END_TEST

static const gy_expr *bind(const char *text)
{
    const gy_expr *bound = gy_expr_bind(parse(text), &arena, look_up, NULL);
    ck_assert_ptr_nonnull(bound);
    return bound;
}

START_TEST(binding_replaces_known_names)
{
    ck_assert_str_eq(print(bind("a * n + min(b, i, x.rows)")), "7 * n + min(-3, i, 1000)");
    ck_assert_str_eq(print(bind("a - b")), "7 - -3");
    ck_assert_str_eq(print(bind("-b")), "3"); /* as reading "- -3" would give */
    ck_assert_str_eq(print(bind("-low")), "--9223372036854775808");
    ck_assert_str_eq(print(bind("lr * 2 - whole")), "0.25 * 2 - 2.0");
    ck_assert_str_eq(print(bind("inf")), "inf"); /* has no literal: stays a name */
    ck_assert_str_eq(print(bind("not (a and z)")), "not (7 and z)");
    int64_t value = 0;
    ck_assert(gy_expr_is_integer(bind("a"), &value) && value == 7);
    ck_assert(gy_expr_is_integer(parse("-12"), &value) && value == -12);
    ck_assert(!gy_expr_is_integer(parse("1.0"), &value));
    ck_assert(!gy_expr_is_integer(parse("1 + 1"), &value));
    ck_assert(!gy_expr_is_integer(parse("n"), &value));
    ck_assert_int_eq(value, -12);
    gantry_status status = gy_expr_integer(bind("a / 2"), look_up, NULL, &value, GANTRY_E_GRAPH, NULL, &err);
    ck_assert_int_eq(status, GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "\"a / 2\"")); /* as the user wrote it */
}
END_TEST

START_TEST(only_the_given_length_is_read)
{
    const gy_expr *e;
    int64_t value;
    ck_assert_int_eq(gy_expr_parse(&e, &arena, "12:34", 2, GANTRY_E_GRAPH, NULL, &err), GANTRY_OK);
    ck_assert(gy_expr_is_integer(e, &value) && value == 12);
    char long_text[300];
    memset(long_text, 'n', sizeof long_text);
    ck_assert_int_eq(gy_expr_parse(&e, &arena, long_text, sizeof long_text, GANTRY_E_GRAPH, NULL, &err), GANTRY_OK);
    long_text[299] = '$';
    ck_assert_int_eq(gy_expr_parse(&e, &arena, long_text, sizeof long_text, GANTRY_E_GRAPH, NULL, &err),
                     GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "nnn...\": at character 300: expected an operator or the end, not '$'"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("expressions");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, python_agrees);
    tcase_add_test(tests, integers_are_exact);
    tcase_add_test(tests, reals_are_doubles_throughout);
    tcase_add_test(tests, bad_texts_are_refused_with_a_place);
    tcase_add_test(tests, bad_calls_are_refused_with_the_usage);
    tcase_add_test(tests, integer_evaluation_says_what_is_wrong);
    tcase_add_test(tests, real_evaluation_says_what_is_wrong);
    tcase_add_test(tests, nesting_cannot_overflow_the_stack);
    tcase_add_test(tests, any_bytes_are_survived);
    tcase_add_test(tests, random_trees_equal_128_bit_arithmetic_before_and_after_printing);
    tcase_add_test(tests, printing_is_normal);
    tcase_add_test(tests, names_come_from_left_to_right);
    tcase_add_test(tests, binding_replaces_known_names);
    tcase_add_test(tests, only_the_given_length_is_read);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
