/* SPDX-License-Identifier: Apache-2.0 */
/* Reading formulas: each mistake has its message, and no text does harm. */
#include "maths/maths.h"

#include "support/run_suite.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static gy_arena arena;
static gantry_error err;
static gy_maths maths;

static void set_up(void)
{
    memset(&err, 0, sizeof err);
    memset(&maths, 0, sizeof maths);
}

static void tear_down(void)
{
    gy_arena_free(&arena);
}

static gantry_status add(const char *text)
{
    return gy_maths_add(&maths, &arena, "y", text, GANTRY_E_GRAPH, NULL, &err);
}

static gantry_status add_all(const char *text)
{
    return gy_maths_add_all(&maths, &arena, text, GANTRY_E_GRAPH, NULL, &err);
}

START_TEST(bad_formulas_are_refused_with_place_and_remedy)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "", "at character 1: expected a number, a name or '(', not the end" },
        { "x +", "at character 4: expected a number, a name or '(', not the end" },
        { "x y", "at character 3: expected an operator or the end, not 'y'" },
        { "(x", "at character 3: expected ')' or an operator, not the end" },
        { "x)", "at character 2: expected an operator or the end, not ')'" },
        { "x ** 2", "at character 3: there is no '**': write pow(a, b) or square(x)" },
        { "x // 2", "at character 3: there is no '//': write floor(a / b)" },
        { "x % 2", "at character 3: there is no '%': write a - floor(a / b) * b" },
        { "x && y", "at character 3: there is no '&&': write select(a, b, 0)" },
        { "x || y", "at character 3: there is no '||': write select(a, 1, b)" },
        { "x & y", "there is no '&'" },
        { "x | y", "there is no '|'" },
        { "!x", "at character 1: there is no '!': write x == 0" },
        { "x = 2", "at character 3: there is no '=': write == to compare" },
        { "x ^ 2", "there is no '^': write pow(a, b)" },
        { ".5", "a number is written 0.5, not .5" },
        { "np.sqrt(x)", "functions have no module: sqrt(x)" },
        { "x > 0 ? x : 0", "there is no '?': write select(c, a, b)" },
        { "x > 0 or x < 1", "there is no 'or': write select(a, 1, b)" },
        { "x if x > 0", "there is no 'if': write select(c, a, b)" },
        { "x order y", "expected an operator or the end, not 'order'" },
        { "x[1]", "elements are not indexed: an argument is a whole region; neighbours are regions of their own "
                  "(x{0:9}, x{1:10})" },
        { "x < y < z", "at character 7: comparisons do not chain: write select(a < b, b < c, 0)" },
        { "sqr(x)", "at character 1: no function \"sqr\" (did you mean \"sqrt\"?)" },
        { "where(x > 0, x, 1)", "at character 1: no function \"where\": write select(c, a, b)" },
        { "1 + maximum(x, 0)", "at character 5: no function \"maximum\": write max(a, b)" },
        { "sigmoid(x)", "write 1 / (1 + exp(-x))" },
        { "std(x)", "reduce mean(x) and mean(square(x))" },
        { "not x", "at character 1: there is no 'not': write x == 0" },
        { "knot x", "expected an operator or the end, not 'x'" },
        { "2 x", "expected an operator or the end, not 'x'; for a product, write 2 * x" },
        { "sqrt(x y)", "expected ',' or ')', not 'y'; for a product, write x * y" },
        { "(x + 1) y", "not 'y'; for a product, write a * b" },
        { "2 (x + 1)", "not '('; for a product, write 2 * (...)" },
        { "gamma(x)", "no function \"gamma\": there are select min max" },
        { "u64(x)", "no function \"u64\"" },
        { "sqrt(x, y)", "at character 1: sqrt takes 1 argument, not 2: write sqrt(x)" },
        { "pow(x)", "pow takes 2 arguments, not 1: write pow(base, exponent)" },
        { "f32()", "f32 takes 1 argument, not 0: write f32(x)" },
        { "select(x, y)", "select takes 3 arguments, not 2: write select(condition, then, else)" },
        { "min(x, y", "at character 9: expected ',' or ')', not the end" },
        { "sqrt + 1", "at character 1: sqrt is a function: write '(' behind it" },
        { "1.5.2", "badly written number: write 12, 0.5, 1e-3 or 2*x" },
        { "2x", "badly written number" },
        { "1e999", "the number does not fit in a double" },
        { "9223372036854775808", "the number does not fit in 64 bits" },
        { "x and y", "at character 3: there is no 'and': write select(a, b, 0)" },
        { "and + 1", "no argument can be named \"and\": write select(a, b, 0)" },
        { "_x + 1", "no argument can be named \"_x\": let the name begin with a letter" },
        { "x + $", "expected a number, a name or '(', not '$'" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        set_up();
        ck_assert_msg(add(cases[i].text) == GANTRY_E_GRAPH, "\"%s\" was taken", cases[i].text);
        ck_assert_msg(strstr(err.text, cases[i].part), "\"%s\": %s", cases[i].text, err.text);
        ck_assert_ptr_nonnull(strstr(err.text, "in formula \""));
    }
}
END_TEST

START_TEST(bad_names_of_results_are_refused)
{
    static const char *const names[] = { "", "2x", "x y", "sqrt", "f32", "_y", "x.y" };
    for (size_t i = 0; i < COUNT(names); i++) {
        set_up();
        ck_assert_int_eq(gy_maths_add(&maths, &arena, names[i], "1", GANTRY_E_GRAPH, NULL, &err), GANTRY_E_GRAPH);
        ck_assert_msg(strstr(err.text, "which is no name of an argument"), "%s", err.text);
    }
    set_up();
    ck_assert_int_eq(add("x"), GANTRY_OK);
    ck_assert_int_eq(add("x"), GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "\"y\" is given by two formulas"));
}
END_TEST

/* "x + x + ... + x" and the like. */
static const char *repeated(const char *part, int count, const char *end)
{
    static gy_text text;
    text.length = 0;
    for (int i = 0; i < count; i++)
        gy_text_add(&text, part);
    gy_text_add(&text, end);
    return text.at;
}

START_TEST(sizes_are_bounded)
{
    ck_assert_int_eq(add(repeated("x+", 255, "x")), GANTRY_OK); /* 256 nodes: x is one */
    set_up();
    ck_assert_int_eq(add(repeated("x+", 256, "x")), GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "have more than 256 numbers, names and operations: make two nodes"));
    static const char *const deep[] = { "(", "-", "sqrt(" };
    for (size_t i = 0; i < COUNT(deep); i++) {
        set_up();
        ck_assert_int_eq(add(repeated(deep[i], 500, "x")), GANTRY_E_GRAPH);
        ck_assert_ptr_nonnull(strstr(err.text, "more than 64 levels of brackets, calls or signs: make two nodes"));
    }
    set_up();
    ck_assert_int_eq(add(repeated(" ", 5000, "x")), GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "5001 characters, the most are 4096: make two nodes"));
    set_up();
    ck_assert_int_eq(add_all("a=1;b=1;c=1;d=1;e=1;f=1;g=1;h=1"), GANTRY_OK);
    ck_assert_int_eq(add("1"), GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "a node has more than 8 formulas: make two nodes"));
    set_up();
    gy_text names = { 0 };
    for (int i = 0; i < 32; i++)
        gy_text_printf(&names, "%sx%d", i ? "+" : "", i);
    ck_assert_int_eq(add(names.at), GANTRY_E_GRAPH);
    ck_assert_ptr_nonnull(strstr(err.text, "have more than 32 names: make two nodes"));
    gy_text_free(&names);
}
END_TEST

START_TEST(several_formulas_are_read_and_printed)
{
    gy_text text = { 0 };
    ck_assert_int_eq(add_all(" y=sqrt(x) * s + 1 ;  z = x == y;"), GANTRY_OK);
    gy_maths_print(&text, &maths);
    ck_assert_str_eq(text.at, "y = sqrt(x) * s + 1; z = x == y");
    ck_assert_uint_eq(maths.args, 4);
    ck_assert_str_eq(maths.arg[0], "y");
    ck_assert(maths.is_written[0] && maths.is_read[0]);
    ck_assert_str_eq(maths.arg[1], "x");
    ck_assert(!maths.is_written[1] && maths.is_read[1]);
    ck_assert_str_eq(maths.arg[3], "z");
    ck_assert(maths.is_written[3] && !maths.is_read[3]);
    gy_text_free(&text);
    static const char *const bad[] = { "", "sqrt(x)", "x == y", "= x", "y = 1; x" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        set_up();
        ck_assert_int_eq(add_all(bad[i]), GANTRY_E_GRAPH);
        ck_assert_ptr_nonnull(strstr(err.text, "does not say what it gives: write \"y = sqrt(x)\""));
    }
}
END_TEST

START_TEST(any_text_is_survived)
{
    static const char *const words[] = { "x",  "y",     "(",    ")", "+", "-",     "*",    "/",       "<",
                                         "==", "sqrt(", "min(", ",", "1", "2.",    "1e3",  "select(", "f16",
                                         "$",  "=",     "**",   " ", ";", "i32(",  "\x80", "and",     ".",
                                         "\"", "0.5",   "u8(",  "[", "%", "12345", "_" };
    uint32_t random = 1;
    int taken = 0;
    for (int round = 0; round < 200000; round++) {
        char text[200] = "";
        set_up();
        for (int i = 0, count = 1 + round % 9; i < count; i++) {
            random = random * 1664525u + 1013904223u;
            strcat(text, words[(random >> 8) % COUNT(words)]);
        }
        gantry_status status = add(text);
        taken += status == GANTRY_OK;
        if ((status != GANTRY_OK) != (err.status != GANTRY_OK) || maths.nodes > GY_MATHS_NODES)
            ck_abort_msg("\"%s\"", text);
        for (uint32_t i = 0; i < maths.nodes; i++)
            if (maths.node[i].operand[0] > i)
                ck_abort_msg("an operand comes after its node in \"%s\"", text);
        gy_arena_free(&arena);
    }
    ck_assert_int_gt(taken, 1000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reading formulas");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, bad_formulas_are_refused_with_place_and_remedy);
    tcase_add_test(tests, bad_names_of_results_are_refused);
    tcase_add_test(tests, sizes_are_bounded);
    tcase_add_test(tests, several_formulas_are_read_and_printed);
    tcase_add_test(tests, any_text_is_survived);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
