/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas beside the same in C; tests/cli/maps holds random ones against NumPy. */
#include "maths/maths.h"

#include "base/half.h"
#include "support/run_suite.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
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

/* Arguments of a launch: name by name. */
typedef struct given {
    const char *name;
    gantry_dtype dtype;
    bool is_number;
    double number;
    int64_t count;
    void *data;
} given;

static gantry_arg describe(const given *g)
{
    static int64_t shape[1]; /* of rank 1 nobody asks for it */
    return (gantry_arg){ .name = g->name,
                         .dtype = g->dtype,
                         .access = g->is_number ? (gantry_access)0 : GANTRY_READ,
                         .rank = g->is_number ? 0 : 1,
                         .shape = shape,
                         .rows = g->count,
                         .own_rows = g->count,
                         .row_bytes = (int64_t)gantry_dtype_size(g->dtype),
                         .data = g->data,
                         .number = g->number,
                         .count = 1 };
}

static const given *find(const given *given_, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(given_[i].name, name) == 0)
            return &given_[i];
    ck_abort_msg("nothing is given for \"%s\"", name);
    return NULL;
}

static gantry_status make(const gy_maths_program **program, const char *text, const given *given_, size_t count,
                          gantry_arg *args)
{
    gy_maths_kind kind[GY_MATHS_ARGS];
    set_up();
    gantry_status status = gy_maths_add_all(&maths, &arena, text, GANTRY_E_GRAPH, NULL, &err);
    ck_assert_msg(status == GANTRY_OK, "%s: %s", text, err.text);
    for (uint32_t i = 0; i < maths.args; i++) {
        const given *g = find(given_, count, maths.arg[i]);
        kind[i] = (gy_maths_kind){ .is_number = g->is_number, .dtype = g->dtype };
        args[i] = describe(g);
    }
    return gy_maths_make_program(program, &arena, &maths, kind, GANTRY_E_GRAPH, NULL, &err);
}

static void run(const char *text, const given *given_, size_t count)
{
    gantry_arg args[GY_MATHS_ARGS];
    const gy_maths_program *program;
    char said[256];
    ck_assert_msg(make(&program, text, given_, count, args) == GANTRY_OK, "%s: %s", text, err.text);
    gantry_launch launch = { .struct_size = sizeof launch,
                             .user = (void *)(uintptr_t)program,
                             .args = (int32_t)maths.args,
                             .arg = args,
                             .arg_size = sizeof *args };
    ck_assert_msg(gy_maths_check(&launch, said, sizeof said) == GANTRY_OK, "%s: %s", text, said);
    ck_assert_int_eq(gy_maths_run(&launch), GANTRY_OK);
}

enum { MANY = 1000 };

START_TEST(floats_are_those_of_c)
{
    float x[MANY], y[MANY], z[MANY];
    for (int i = 0; i < MANY; i++) {
        x[i] = (float)i * 0.37f + 0.01f;
        z[i] = 40.0f - (float)i * 0.11f;
    }
    given given_[] = { { "x", GANTRY_F32, false, 0, MANY, x },
                       { "y", GANTRY_F32, false, 0, MANY, y },
                       { "z", GANTRY_F32, false, 0, MANY, z },
                       { "s", GANTRY_F64, true, 0.7, 1, NULL } };
    run("y = sqrt(x) * s + 1", given_, COUNT(given_));
    for (int i = 0; i < MANY; i++)
        ck_assert_float_eq(y[i], sqrtf(x[i]) * 0.7f + 1.0f);
    run("y = -x * z - 2 / (x + 1)", given_, COUNT(given_));
    for (int i = 0; i < MANY; i++)
        ck_assert_float_eq(y[i], -x[i] * z[i] - 2.0f / (x[i] + 1.0f));
    run("y = select(x < z, max(x, 3), min(z, -1)) + rsqrt(x) + square(z) + abs(z)", given_, COUNT(given_));
    for (int i = 0; i < MANY; i++) {
        float chosen = x[i] < z[i] ? fmaxf(x[i], 3) : fminf(z[i], -1);
        ck_assert_float_eq(y[i], chosen + 1 / sqrtf(x[i]) + z[i] * z[i] + fabsf(z[i]));
    }
    run("y = exp(-x) + log(x) + sin(z) * cos(z) + tanh(z) + erf(z) + pow(x, 0.25) + floor(z) - ceil(z)", given_,
        COUNT(given_));
    for (int i = 0; i < MANY; i++) {
        float expected = expf(-x[i]) + logf(x[i]) + sinf(z[i]) * cosf(z[i]) + tanhf(z[i]) + erff(z[i]) +
                         powf(x[i], 0.25f) + floorf(z[i]) - ceilf(z[i]);
        ck_assert_float_eq(y[i], expected);
    }
}
END_TEST

START_TEST(results_are_written_when_all_formulas_are_worked_out)
{
    double x[MANY], y[MANY];
    for (int i = 0; i < MANY; i++) {
        x[i] = i;
        y[i] = 2.0 * i + 1;
    }
    given given_[] = { { "x", GANTRY_F64, false, 0, MANY, x }, { "y", GANTRY_F64, false, 0, MANY, y } };
    run("x = y; y = x", given_, COUNT(given_));
    for (int i = 0; i < MANY; i++) {
        ck_assert_double_eq(x[i], 2.0 * i + 1);
        ck_assert_double_eq(y[i], i);
    }
}
END_TEST

START_TEST(one_element_is_for_all)
{
    int32_t x[MANY], one = 7;
    double y[MANY];
    for (int i = 0; i < MANY; i++)
        x[i] = i - 500;
    given given_[] = { { "x", GANTRY_I32, false, 0, MANY, x },
                       { "y", GANTRY_F64, false, 0, MANY, y },
                       { "one", GANTRY_I32, false, 0, 1, &one } };
    run("y = x / one", given_, COUNT(given_));
    for (int i = 0; i < MANY; i++)
        ck_assert_double_eq(y[i], (i - 500) / 7.0);
}
END_TEST

START_TEST(whole_numbers_wrap_and_real_ones_are_cast)
{
    uint8_t x[] = { 0, 1, 127, 200, 255 }, y[5];
    given bytes[] = { { "x", GANTRY_U8, false, 0, 5, x }, { "y", GANTRY_U8, false, 0, 5, y } };
    run("y = x * 2 + 10", bytes, COUNT(bytes));
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(y[i], (uint8_t)(x[i] * 2 + 10));
    run("y = u8(f32(x) * 1.5)", bytes, COUNT(bytes));
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(y[i], x[i] * 1.5f > 255 ? 255 : (uint8_t)(x[i] * 1.5f));
    double a[] = { NAN, -INFINITY, INFINITY, -0.9, 1e10, -1e10, 2147483647.5, -2147483648.9 };
    int32_t b[8], expected[] = { 0, INT32_MIN, INT32_MAX, 0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN };
    given reals[] = { { "a", GANTRY_F64, false, 0, 8, a }, { "b", GANTRY_I32, false, 0, 8, b } };
    run("b = i32(a)", reals, COUNT(reals));
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(b[i], expected[i]);
}
END_TEST

START_TEST(halves_are_computed_as_floats)
{
    enum { ALL = 0x7c00 }; /* all that are finite and not negative */
    static uint16_t x[ALL], y[ALL];
    for (int i = 0; i < ALL; i++)
        x[i] = (uint16_t)i;
    given half[] = { { "x", GANTRY_F16, false, 0, ALL, x }, { "y", GANTRY_F16, false, 0, ALL, y } };
    run("y = sqrt(x) / 3", half, COUNT(half));
    for (int i = 0; i < ALL; i++)
        if (y[i] != gy_float_to_f16(sqrtf(gy_f16_to_float(x[i])) / 3))
            ck_abort_msg("of f16 %x: %x", x[i], y[i]);
    given brain[] = { { "x", GANTRY_BF16, false, 0, ALL, x }, { "y", GANTRY_BF16, false, 0, ALL, y } };
    run("y = x + bf16(x * 0.1)", brain, COUNT(brain));
    for (int i = 0; i < ALL; i++) {
        float value = gy_bf16_to_float(x[i]);
        if (y[i] != gy_float_to_bf16(value + gy_bf16_to_float(gy_float_to_bf16(value * 0.1f))))
            ck_abort_msg("of bf16 %x: %x", x[i], y[i]);
    }
}
END_TEST

START_TEST(not_a_number_stays_one)
{
    float x[] = { NAN, 1, NAN }, z[] = { 1, NAN, NAN }, y[3];
    given given_[] = { { "x", GANTRY_F32, false, 0, 3, x },
                       { "y", GANTRY_F32, false, 0, 3, y },
                       { "z", GANTRY_F32, false, 0, 3, z } };
    static const char *const texts[] = { "y = min(x, z)", "y = max(x, z)" };
    for (size_t k = 0; k < COUNT(texts); k++) {
        run(texts[k], given_, COUNT(given_));
        for (int i = 0; i < 3; i++)
            ck_assert_float_nan(y[i]);
    }
}
END_TEST

START_TEST(types_that_do_not_fit_are_refused)
{
    float x[1];
    given given_[] = { { "x", GANTRY_F32, false, 0, 1, x },
                       { "n", GANTRY_I32, false, 0, 1, x },
                       { "u", GANTRY_U64, false, 0, 1, x },
                       { "b", GANTRY_U8, false, 0, 1, x },
                       { "s", GANTRY_F64, true, 0.5, 1, NULL } };
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "n = x + 1",
          "formula \"x + 1\" gives real numbers, and argument \"n\" has elements of i32: write i32(x + 1)" },
        { "n = n / 2", "gives real numbers" },
        { "n = n * s", "gives real numbers" },
        { "b = 0.5", "write u8(0.5)" },
        { "s = x", "argument \"s\" is a number, and a formula is given to it" },
        { "x = u", "argument \"u\" has elements of u64, and formulas compute whole numbers as i64" },
        { "u = n", "argument \"u\" has elements of u64" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        gantry_arg args[GY_MATHS_ARGS];
        const gy_maths_program *program;
        ck_assert_int_eq(make(&program, cases[i].text, given_, COUNT(given_), args), GANTRY_E_GRAPH);
        ck_assert_msg(strstr(err.text, cases[i].part), "%s", err.text);
    }
}
END_TEST

START_TEST(regions_of_other_shapes_are_refused)
{
    float x[4], y[4];
    given given_[] = { { "x", GANTRY_F32, false, 0, 3, x }, { "y", GANTRY_F32, false, 0, 4, y } };
    gantry_arg args[GY_MATHS_ARGS];
    const gy_maths_program *program;
    char said[256];
    ck_assert_int_eq(make(&program, "y = x", given_, COUNT(given_), args), GANTRY_OK);
    gantry_launch launch = { .user = (void *)(uintptr_t)program, .arg = args, .arg_size = sizeof *args, .args = 2 };
    ck_assert_int_eq(gy_maths_check(&launch, said, sizeof said), GANTRY_E_GRAPH);
    ck_assert_str_eq(said,
                     "region \"x\" is 3 and \"y\" is 4, which do not fit each other with these rows: cut both alike");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("running formulas");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, floats_are_those_of_c);
    tcase_add_test(tests, results_are_written_when_all_formulas_are_worked_out);
    tcase_add_test(tests, one_element_is_for_all);
    tcase_add_test(tests, whole_numbers_wrap_and_real_ones_are_cast);
    tcase_add_test(tests, halves_are_computed_as_floats);
    tcase_add_test(tests, not_a_number_stays_one);
    tcase_add_test(tests, types_that_do_not_fit_are_refused);
    tcase_add_test(tests, regions_of_other_shapes_are_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
