/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: finding them, every mistake one can have, and what their expressions give. */
#include "kernel/registry.h"
#include "kernel/word.h"
#include "unit/base/suite.h"
#include <math.h>
#include <string.h>

static gantry_status do_nothing(const gantry_launch *launch)
{
    (void)launch;
    return GANTRY_OK;
}

static gantry_status open_handle(void **handle, int32_t ordinal)
{
    *handle = NULL;
    return ordinal < 0 ? GANTRY_E_DEVICE : GANTRY_OK;
}

static const gantry_kernel first = { .struct_size = sizeof first, .name = "alpha" },
                           second = { .struct_size = sizeof second, .name = "beta_2" },
                           third = { .struct_size = sizeof third, .name = "gamma" };

/* In place of the library's table: it is visible, so calls within gantry_internal reach it. */
GANTRY_API const gantry_kernel *const *gy_builtin_kernels(size_t *count)
{
    static const gantry_kernel *const kernels[] = { &first, &second, &third };
    *count = 3;
    return kernels;
}

START_TEST(finding)
{
    ck_assert_uint_eq(gantry_kernel_count(), 3);
    ck_assert_ptr_eq(gantry_kernel_at(1), &second);
    ck_assert_ptr_null(gantry_kernel_at(3));
    ck_assert_ptr_eq(gantry_kernel_find("alpha"), &first);
    ck_assert_ptr_eq(gantry_kernel_find("beta_2"), &second);
    ck_assert_ptr_eq(gantry_kernel_find("gamma"), &third);
    static const char *const absent[] = { "", "a", "alpha2", "beta", "delta", "gammb", "zeta" };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        ck_assert_ptr_null(gantry_kernel_find(absent[i]));
    ck_assert_ptr_null(gantry_kernel_find(NULL));
}
END_TEST

/* ---- mistakes ---- */

/* A good manifest that each case spoils. */
static gantry_kernel_arg arg[3];
static gantry_kernel kernel;
static gy_arena arena;

static void set_up(void)
{
    arg[0] = (gantry_kernel_arg){ .name = "x", .access = GANTRY_READ, .list = 1 };
    arg[1] = (gantry_kernel_arg){ .name = "y",
                                  .access = GANTRY_WRITE,
                                  .accesses = GANTRY_ACCESS_BIT(GANTRY_WRITE) | GANTRY_ACCESS_BIT(GANTRY_PROD) };
    arg[2] = (gantry_kernel_arg){ .name = "a_1", .scalar = 1, .optional = 1, .fallback = 3 };
    kernel = (gantry_kernel){ .struct_size = sizeof kernel, .name = "k", GANTRY_KERNEL_ARGS(arg), .host = do_nothing };
}

static void tear_down(void)
{
    gy_arena_free(&arena);
}

#define SPOIL(name, statement)                                                                                         \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        statement;                                                                                                     \
    }

SPOIL(name_null, kernel.name = NULL)
SPOIL(name_digit, kernel.name = "3d")
SPOIL(name_dash, kernel.name = "a-b")
SPOIL(flags_unknown, kernel.flags = 64)
SPOIL(open_alone, kernel.open = open_handle)
SPOIL(args_negative, kernel.args = -1)
SPOIL(args_no_table, kernel.arg = NULL)
SPOIL(arg_name, arg[1].name = "y.rows")
SPOIL(arg_name_null, arg[1].name = NULL)
SPOIL(arg_twice, arg[1].name = "x")
SPOIL(scalar_access, arg[2].access = GANTRY_READ)
SPOIL(scalar_letter, arg[2].same = 'T')
SPOIL(scalar_fallback, arg[2].fallback = NAN)
SPOIL(region_access, arg[0].access = (gantry_access)0)
SPOIL(region_access_high, arg[0].access = (gantry_access)8)
SPOIL(region_accesses, arg[1].accesses = GANTRY_ACCESS_BIT(GANTRY_READ))
SPOIL(region_accesses_unknown, arg[1].accesses = GANTRY_ACCESS_BIT(GANTRY_WRITE) | 1)
SPOIL(region_dtypes, arg[1].dtypes = 1u << GANTRY_DTYPE_COUNT)
SPOIL(flops_syntax, kernel.flops = "2 *")
SPOIL(bytes_unknown, kernel.bytes = "x.bytes + z.bytes")
SPOIL(scratch_region, kernel.scratch = "x")
SPOIL(scratch_scalar_field, kernel.scratch = "a_1.rows")
SPOIL(scratch_field, kernel.scratch = "x.columns")
SPOIL(scratch_shape, kernel.scratch = "x.shape01")
SPOIL(scratch_prefix, kernel.scratch = "a_.rows")

static const struct mistake {
    void (*spoil)(void);
    gantry_status status;
    const char *text;
} mistakes[] = {
    { name_null, GANTRY_E_GRAPH, "a kernel is named \"\"; use letters, digits and '_'" },
    { name_digit, GANTRY_E_GRAPH, "a kernel is named \"3d\"; use letters, digits and '_'" },
    { name_dash, GANTRY_E_GRAPH, "a kernel is named \"a-b\"; use letters, digits and '_'" },
    { flags_unknown, GANTRY_E_GRAPH, "kernel \"k\" has unknown flags 0x40" },
    { open_alone, GANTRY_E_GRAPH, "kernel \"k\" has open() without close()" },
    { args_negative, GANTRY_E_GRAPH, "kernel \"k\": -1 arguments without a table of arguments" },
    { args_no_table, GANTRY_E_GRAPH, "kernel \"k\": 3 arguments without a table of arguments" },
    { arg_name, GANTRY_E_GRAPH, "kernel \"k\": argument 1 is named \"y.rows\"; use letters, digits and '_'" },
    { arg_name_null, GANTRY_E_GRAPH, "kernel \"k\": argument 1 is named \"\"; use letters, digits and '_'" },
    { arg_twice, GANTRY_E_GRAPH, "kernel \"k\" has two arguments named \"x\"" },
    { scalar_access, GANTRY_E_GRAPH,
      "kernel \"k\": argument \"a_1\" is a scalar and has an access, dtypes or a list; leave them 0" },
    { scalar_letter, GANTRY_E_GRAPH,
      "kernel \"k\": scalar \"a_1\" is converted to the dtype of 'T', which no region of it has; give a region that "
      "letter, or leave it 0" },
    { scalar_fallback, GANTRY_E_GRAPH, "kernel \"k\": the fallback of \"a_1\" is not finite" },
    { region_access, GANTRY_E_GRAPH, "kernel \"k\": argument \"x\" has access 0; 1 (read) to 7 (prod) are allowed" },
    { region_access_high, GANTRY_E_GRAPH,
      "kernel \"k\": argument \"x\" has access 8; 1 (read) to 7 (prod) are allowed" },
    { region_accesses, GANTRY_E_GRAPH,
      "kernel \"k\": the allowed accesses 0x2 of \"y\" have bits of no access or lack the default, write" },
    { region_accesses_unknown, GANTRY_E_GRAPH,
      "kernel \"k\": the allowed accesses 0x5 of \"y\" have bits of no access or lack the default, write" },
    { region_dtypes, GANTRY_E_GRAPH, "kernel \"k\": the dtypes 0x1000 of \"y\" have bits of no dtype" },
    { flops_syntax, GANTRY_E_GRAPH, NULL },
#define KNOWN "; scalars of the kernel and ARG.rows, .size, .bytes, .count, .shape0 of its regions are known"
    { bytes_unknown, GANTRY_E_GRAPH, "kernel \"k\": bytes \"x.bytes + z.bytes\" uses \"z.bytes\"" KNOWN },
    { scratch_region, GANTRY_E_GRAPH, "kernel \"k\": scratch \"x\" uses \"x\"" KNOWN },
    { scratch_scalar_field, GANTRY_E_GRAPH, "kernel \"k\": scratch \"a_1.rows\" uses \"a_1.rows\"" KNOWN },
    { scratch_field, GANTRY_E_GRAPH, "kernel \"k\": scratch \"x.columns\" uses \"x.columns\"" KNOWN },
    { scratch_shape, GANTRY_E_GRAPH, "kernel \"k\": scratch \"x.shape01\" uses \"x.shape01\"" KNOWN },
    { scratch_prefix, GANTRY_E_GRAPH, "kernel \"k\": scratch \"a_.rows\" uses \"a_.rows\"" KNOWN },
};

START_TEST(text_of_mistake)
{
    const struct mistake *m = &mistakes[_i];
    gantry_error err;
    gy_kernel out = { 0 };
    ck_assert_int_eq(gy_kernel_compile(&out, &arena, &kernel, &err), GANTRY_OK);
    ck_assert_ptr_eq(out.manifest, &kernel);
    m->spoil();
    out = (gy_kernel){ 0 };
    ck_assert_int_eq(gy_kernel_compile(&out, &arena, &kernel, &err), m->status);
    if (m->text) {
        ck_assert_str_eq(err.text, m->text);
    } else {
        /* The rest of the message comes from base, which reads the expression. */
        ck_assert_ptr_nonnull(strstr(err.text, "kernel \"k\": flops \"2 *\": "));
    }
    ck_assert_ptr_null(out.manifest);
}
END_TEST

/* ---- launches ---- */

static const int64_t shape[2] = { 10, 6 }, tall[2] = { 3, 2 }, wide[2] = { 2, 5 };

static gantry_launch launch_of(gantry_arg *args, gantry_arg *items)
{
    items[0] = (gantry_arg){ .name = "A",
                             .dtype = GANTRY_F32,
                             .access = GANTRY_READ,
                             .rank = 2,
                             .shape = tall,
                             .rows = 3,
                             .row_bytes = 8,
                             .count = 1 };
    items[1] = (gantry_arg){ .name = "A",
                             .dtype = GANTRY_F32,
                             .access = GANTRY_READ,
                             .rank = 2,
                             .shape = wide,
                             .rows = 2,
                             .row_bytes = 20,
                             .count = 1 };
    args[0] = (gantry_arg){ .name = "x",
                            .dtype = GANTRY_F32,
                            .access = GANTRY_READ,
                            .rank = 2,
                            .shape = shape,
                            .rows = 5,
                            .count = 2,
                            .items = items };
    args[1] = (gantry_arg){ .name = "y",
                            .dtype = GANTRY_F64,
                            .access = GANTRY_WRITE,
                            .rank = 2,
                            .shape = shape,
                            .rows = 4,
                            .row_bytes = 48,
                            .count = 1 };
    args[2] = (gantry_arg){ .name = "a_1", .number = 2.5, .integer = 0, .count = 1 };
    return (gantry_launch){ .struct_size = sizeof(gantry_launch), .args = 3, .arg = args };
}

/* Numbers of the launch stand for their names in braces; what is no name stays, and a text that is cut has an end. */
START_TEST(words_of_launch)
{
    static const char *const cases[][2] = {
        { "a kernel", "its kernel left 3 in the status word" },
        { "a kernel; status: a row that is not there",
          "its kernel left 3 in the status word: a row that is not there" },
        { "a kernel; status: none of {y.shape0} rows, {y.last0} long, {x.size} in x, {a_1}",
          "its kernel left 3 in the status word: none of 10 rows, 6 long, 16 in x, 2.5" },
        { "a kernel; status: {z.rows} {y.shape2} {} {y.rows", "its kernel left 3 in the status word: {z.rows} "
                                                              "{y.shape2} {} {y.rows" },
    };
    gantry_arg args[3], items[2];
    gantry_launch l = launch_of(args, items);
    char text[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kernel.summary = cases[i][0];
        gy_launch_word(&kernel, &l, 3, text, sizeof text);
        ck_assert_str_eq(text, cases[i][1]);
        for (size_t size = 1; size < strlen(cases[i][1]); size++) {
            memset(text, '#', sizeof text);
            gy_launch_word(&kernel, &l, 3, text, size);
            ck_assert_uint_eq(strlen(text), size - 1);
            ck_assert_mem_eq(text, cases[i][1], size - 1);
        }
    }
    gy_launch_word(NULL, &l, 7, text, sizeof text);
    ck_assert_str_eq(text, "its kernel left 7 in the status word");
}
END_TEST

static const struct cost_case {
    const char *flops, *bytes, *scratch;
    double want_flops, want_bytes;
    int64_t want_scratch;
    const char *error;
} costs[] = {
    /* Without expressions: no flops, all regions: 3*8 + 2*20 + 4*48. */
    { NULL, NULL, NULL, 0, 256, 0, NULL },
    /* A list: 64 bytes, 16 elements, 2 tiles; y: 4 rows of 6 doubles of an array of 10 x 6. */
    { "x.size", "x.bytes", "x.count", 16, 64, 2, NULL },
    { "y.size + 1000 * y.shape1", "y.rows * y.shape0 + y.count", "y.bytes", 6024, 41, 192, NULL },
    { "a_1 * 2", "a_1 / 5", "7 // 2", 5, 0.5, 3, NULL },
    { "2 * 4611686018427387904 * 4", "0", "0", 0x1p65, 0, 0, NULL },
    { "0 - 1", "0", "0", 0, 0, 0, "flops of kernel \"k\" is -1; it must be finite and at least 0" },
    { "0", "1 - y.rows", "0", 0, 0, 0, "bytes of kernel \"k\" is -3; it must be finite and at least 0" },
    { "0", "0", "3 - y.rows", 0, 0, 0, "scratch of kernel \"k\" is -1 bytes; it must be at least 0" },
    { "y.shape2", "0", "0", 0, 0, 0, "flops of kernel \"k\": in expression \"y.shape2\": unknown name \"y.shape2\"" },
};

START_TEST(cost_of_launch)
{
    const struct cost_case *c = &costs[_i];
    gantry_arg args[3], items[2];
    gantry_launch l = launch_of(args, items);
    gy_kernel k;
    gantry_error err;
    kernel.flops = c->flops;
    kernel.bytes = c->bytes;
    kernel.scratch = c->scratch;
    ck_assert_msg(gy_kernel_compile(&k, &arena, &kernel, &err) == GANTRY_OK, "%s", err.text);
    double flops = -7, bytes = -7;
    int64_t scratch = -7;
    gantry_status status = gy_kernel_cost(&k, &l, &flops, &bytes, &scratch, &err);
    ck_assert_int_eq(status, c->error ? GANTRY_E_GRAPH : GANTRY_OK);
    if (c->error) {
        ck_assert_str_eq(err.text, c->error);
        ck_assert(flops == -7 && bytes == -7 && scratch == -7);
    } else {
        ck_assert_msg(flops == c->want_flops && bytes == c->want_bytes && scratch == c->want_scratch, "%g %g %lld",
                      flops, bytes, (long long)scratch);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kernel_registry");
    TCase *c = tcase_create("registry");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, finding);
    tcase_add_loop_test(c, text_of_mistake, 0, (int)(sizeof mistakes / sizeof *mistakes));
    tcase_add_test(c, words_of_launch);
    tcase_add_loop_test(c, cost_of_launch, 0, (int)(sizeof costs / sizeof *costs));
    suite_add_tcase(s, c);
    return run_suite(s);
}
