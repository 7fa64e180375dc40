/* SPDX-License-Identifier: Apache-2.0 */
/* Measured times of kernels, and what says whether measured figures still hold. */
#include "base/memory.h"
#include "suite.h"
#include <stdlib.h>
#include <string.h>

/* Spelt as the normal form is, so that what is read and what is written can be compared. */
#define FACTS  "'fingerprint': { 'driver': '580.65', 'CUDA': '13.0', 'gpu0': 'NVIDIA H200', 'gpu0.ecc': 'on' }"
#define COPIES "'copies': { 'figures': 12, 'samples': 20, 'mad': 0.004, 'worst': 0.21 }"
#define GEMM                                                                                                           \
    "{ 'kernel': 'gemm', 'dtype': 'f32', 'kind': 'h200', 'by': 'flops', 'points': [[1000, 4], [1000000, 10]], "        \
    "'batched': [[1000, 0.1], [4000, 0.4]] }"
#define BLUR                                                                                                           \
    "{ 'kernel': 'blur', 'dtype': 'u8', 'kind': 'other', 'by': 'bytes', 'points': [[4096, 2.5]], 'share': [0.25], "    \
    "'strided': [[8, 4], [32, 1.375], [512, 1]] }"
#define EXACT                                                                                                          \
    "{ 'kernel': 'gemm', 'dtype': 'f32', 'kind': 'h200', 'case': '64x128 128x32 64x32:sum ta=1', 'by': 'flops', "      \
    "'points': [[1000, 7]] }"
#define OTHER                                                                                                          \
    "{ 'kernel': 'gemm', 'dtype': 'f32', 'kind': 'h200', 'case': '8x8 8x8 8x8', 'by': 'bytes', 'points': [[5, 3]] }"
#define CALIBRATION "'calibration': {\n    " FACTS ",\n    " COPIES "\n  },\n  "
#define KERNELS     "'kernels': [\n    " GEMM ",\n    " EXACT ",\n    " BLUR ",\n    " OTHER "\n  ],\n  "

static gantry_machine *machine_with(const char *rest)
{
    gy_text text = { 0 };
    gy_text_printf(&text,
                   "{\n  'gantry_machine': 1,\n  'name': 't',\n  'memories': [\n"
                   "    { 'id': 'host', 'capacity': 1000, 'reserved': 0 },\n"
                   "    { 'id': 'a', 'capacity': 1000, 'reserved': 0 },\n"
                   "    { 'id': 'b', 'capacity': 1000, 'reserved': 0 }\n  ],\n  'devices': [\n"
                   "    { 'id': 'a', 'kind': 'h200', 'memory': 'a', 'launch_us': 2 },\n"
                   "    { 'id': 'b', 'kind': 'other', 'memory': 'b' }\n  ],\n"
                   "  'routes': [{'from':'*','to':'*','bandwidth_gbs':1}],\n  %s'model': { 'launch_us': 0 }\n}\n",
                   rest);
    gantry_machine *m = machine_of(text.at);
    gy_text_free(&text);
    return m;
}

START_TEST(normal_form)
{
    gantry_machine *m = machine_with(KERNELS CALIBRATION), *again = NULL;
    char *text = NULL, *text2 = NULL, *part = with_quotes(KERNELS CALIBRATION "'model'");
    size_t length = 0;
    ck_assert_int_eq(gantry_machine_json(m, &text, &length, NULL), GANTRY_OK);
    ck_assert_msg(strstr(text, part) != NULL, "%s", text);
    ck_assert_int_eq(gantry_machine_parse(&again, text, length, "again", NULL), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_json(again, &text2, NULL, NULL), GANTRY_OK);
    ck_assert_str_eq(text, text2);
    gantry_free(text);
    gantry_free(text2);
    free(part);
    gantry_machine_free(m);
    gantry_machine_free(again);
}
END_TEST

/* A schedule depends on the times of kernels, not on how they came about. */
START_TEST(what_the_hash_is_of)
{
    gantry_machine *bare = machine_with(""), *with = machine_with(KERNELS),
                   *other = machine_with("'kernels': [" GEMM "],");
    gantry_machine *calibrated = machine_with(KERNELS CALIBRATION), *exact = machine_with("'kernels': [" EXACT "],");
    ck_assert_uint_ne(machine_hash(bare), machine_hash(exact));
    ck_assert_uint_ne(machine_hash(bare), machine_hash(with));
    ck_assert_uint_ne(machine_hash(other), machine_hash(with));
    ck_assert_uint_eq(machine_hash(calibrated), machine_hash(with));
    ck_assert(calibrated->calibration.measured && !with->calibration.measured);
    gantry_machine_free(bare);
    gantry_machine_free(with);
    gantry_machine_free(other);
    gantry_machine_free(exact);
    gantry_machine_free(calibrated);
}
END_TEST

START_TEST(of_some_of_the_devices)
{
    gantry_machine *m = machine_with(KERNELS CALIBRATION), *s = NULL;
    ck_assert_int_eq(gantry_machine_select(&s, m, "id:b", NULL), GANTRY_OK);
    ck_assert_uint_eq(m->kernels, 4);
    ck_assert_uint_eq(s->kernels, 1);
    ck_assert_ptr_null(gy_machine_kernel(s, "gemm", GANTRY_F32, "h200"));
    gantry_machine_free(m);
    const gy_kernel_table *t = gy_machine_kernel(s, "blur", GANTRY_U8, "other");
    ck_assert(t && !t->by_flops && t->points == 1 && t->point[0].bytes == 4096 && t->share[0] == 250);
    ck_assert_ptr_null(gy_machine_kernel(s, "blur", GANTRY_F32, "other"));
    ck_assert(s->calibration.measured && s->calibration.facts == 4);
    ck_assert_str_eq(s->calibration.fact[3].value, "on");
    ck_assert_uint_eq(s->calibration.quality[GY_FAMILY_COPIES].samples, 20);
    gantry_machine_free(s);
}
END_TEST

START_TEST(exact_arguments)
{
    gantry_machine *m = machine_with(KERNELS);
    const gy_kernel_table *all = gy_machine_kernel(m, "gemm", GANTRY_F32, "h200"), *t;
    ck_assert(all && !all->arguments && all->points == 2);
    t = gy_machine_case(m, "gemm", GANTRY_F32, "h200", "64x128 128x32 64x32:sum ta=1");
    ck_assert(t && t->by_flops && t->points == 1 && t->point[0].time == gy_ticks_from_us(7));
    t = gy_machine_case(m, "gemm", GANTRY_F32, "h200", "8x8 8x8 8x8");
    ck_assert(t && !t->by_flops && t->point[0].bytes == 5);
    ck_assert_ptr_null(gy_machine_case(m, "gemm", GANTRY_F32, "h200", "64x128 128x32 64x32:sum"));
    ck_assert_ptr_null(gy_machine_case(m, "gemm", GANTRY_F64, "h200", "8x8 8x8 8x8"));
    ck_assert_ptr_null(gy_machine_case(m, "gemm", GANTRY_F32, "other", "8x8 8x8 8x8"));
    ck_assert_ptr_null(gy_machine_case(m, "blur", GANTRY_U8, "other", "8x8 8x8 8x8"));
    gantry_machine_free(m);
}
END_TEST

/* The law, in floating point: lines from (0, launch) through the points, then the last rate. */
static double law(const gy_kernel_table *t, double work, double launch)
{
    double x0 = 0, y0 = launch < (double)t->point[0].time ? launch : (double)t->point[0].time;
    for (uint32_t i = 0; i < t->points; i++) {
        double x1 = (double)t->point[i].bytes, y1 = (double)t->point[i].time;
        if (work <= x1)
            return y0 + (y1 - y0) * (work - x0) / (x1 - x0);
        x0 = x1;
        y0 = y1;
    }
    return y0 * work / x0;
}

START_TEST(what_one_more_adds_to_a_batch)
{
    gantry_machine *m = machine_with(KERNELS), *s = NULL;
    ck_assert_int_eq(gantry_machine_select(&s, m, "id:a", NULL), GANTRY_OK);
    gantry_machine_free(m);
    const gy_kernel_table *t = gy_machine_kernel(s, "gemm", GANTRY_F32, "h200");
    ck_assert_int_eq(gy_kernel_batched(t, 10), 100000);
    ck_assert_int_eq(gy_kernel_batched(t, 1000), 100000);
    ck_assert_int_eq(gy_kernel_batched(t, 2500), 250000);
    ck_assert_int_eq(gy_kernel_batched(t, 4000), 400000);
    ck_assert_int_eq(gy_kernel_batched(t, 4001), GY_TICKS_MAX);
    ck_assert_int_eq(gy_kernel_batched(t, 0), GY_TICKS_MAX);
    gantry_machine_free(s);
    m = machine_with(KERNELS);
    ck_assert_int_eq(gy_kernel_batched(gy_machine_kernel(m, "blur", GANTRY_U8, "other"), 4096), GY_TICKS_MAX);
    gantry_machine_free(m);
}
END_TEST

/* Of n bytes in pieces of c each place takes as long as 24 more would: 1 + 24 / c times as many bytes. That law is on
 * the lines between the points. A selection keeps it. */
START_TEST(pieces)
{
    gantry_machine *m = machine_with(KERNELS), *s = NULL;
    ck_assert_int_eq(gantry_machine_select(&s, m, "id:b", NULL), GANTRY_OK);
    const gy_kernel_table *t = gy_machine_kernel(s, "blur", GANTRY_U8, "other");
    gy_strided law[] = { { 8, 4000 }, { 24, 2000 }, { 96, 1250 } };
    gy_kernel_table by_law = { .strided = law, .strides = 3 }, one = { .strided = law, .strides = 1 };
    for (double c = 8; c <= 96; c++)
        ck_assert_double_eq_tol(gy_kernel_strided(&by_law, c), 1 + 24 / c, 1e-9);
    ck_assert_double_eq(gy_kernel_strided(&by_law, 1), 4);
    ck_assert_double_eq(gy_kernel_strided(&by_law, 97), 1.25);
    ck_assert_double_eq(gy_kernel_strided(&by_law, 0), 1); /* not known */
    ck_assert_double_eq(gy_kernel_strided(&one, 7), 4);
    ck_assert_double_eq(gy_kernel_strided(&one, 9), 4);
    ck_assert_uint_eq(t->strides, 3);
    ck_assert_double_eq(gy_kernel_strided(t, 8), 4);
    ck_assert_double_eq(gy_kernel_strided(t, 32), 1.375);
    ck_assert_double_eq(gy_kernel_strided(t, 1000), 1);
    ck_assert_double_eq(gy_kernel_strided(gy_machine_kernel(m, "gemm", GANTRY_F32, "h200"), 8), 1);
    gantry_machine_free(s);
    gantry_machine_free(m);
}
END_TEST

START_TEST(times)
{
    static const gy_point three[] = { { 1000, 5000000 }, { 64000, 5000000 }, { 4000000, 90000000 } };
    for (uint32_t points = 1; points <= 3; points++) {
        gy_kernel_table t = { .kernel = "gemm", .kind = "h200", .by_flops = true, .point = three, .points = points };
        for (gy_ticks launch = 0; launch < 8000000; launch += 1300000) {
            gy_ticks before = 0;
            for (double work = 1; work < 1e9; work = work * 1.37 + 1) {
                gy_ticks time = gy_kernel_time(&t, work, launch);
                double want = law(&t, (double)(int64_t)(work + 0.5), (double)launch);
                ck_assert_msg((double)time >= want - 1 && (double)time <= want + 2, "%g: %lld, not %g", work,
                              (long long)time, want);
                ck_assert_int_ge(time, before);
                before = time;
            }
        }
        for (uint32_t i = 0; i < points; i++)
            ck_assert_int_eq(gy_kernel_time(&t, (double)three[i].bytes, 1), three[i].time);
        ck_assert_int_eq(gy_kernel_time(&t, 1e300, 0), GY_TICKS_MAX);
        ck_assert_int_eq(gy_kernel_time(&t, -1, 77), 77);
    }
}
END_TEST

/* Of time multiplied by share on lines between the points: (1 * 100 + 2 * 600) / 2 by a time of 1.5, (2 * 600 + 3 *
 * 500) / 2 by one of 2.5. What the outermost say beyond them. */
START_TEST(shares)
{
    static const gy_point three[] = { { 1000, 1 }, { 2000, 2 }, { 4000, 3 } };
    static const uint16_t share[] = { 100, 600, 500 };
    static const struct {
        double work;
        uint32_t share;
    } cases[] = {
        { 1, 100 }, { 1000, 100 }, { 1500, 433 }, { 2000, 600 }, { 3000, 540 }, { 4000, 500 }, { 1e300, 500 }
    };
    gy_kernel_table t = {
        .kernel = "gemm", .kind = "h200", .by_flops = true, .point = three, .points = 3, .share = share
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_uint_eq(gy_kernel_share(&t, cases[i].work), cases[i].share);
    t.share = NULL;
    ck_assert_uint_eq(gy_kernel_share(&t, 1500), GY_WHOLE_DEVICE);
}
END_TEST

/* ---- whether figures still hold ---- */

static void check_stale(const char *then, const char *now, const char *want)
{
    gy_text a = { 0 }, b = { 0 };
    char *said = NULL;
    gy_text_printf(&a, "'calibration': { 'fingerprint': %s },", then);
    gy_text_printf(&b, "'calibration': { 'fingerprint': %s },", now);
    gantry_machine *was = machine_with(a.at), *is = machine_with(b.at);
    ck_assert_int_eq(gantry_machine_stale(was, is, &said, NULL), GANTRY_OK);
    if (want)
        ck_assert_str_eq(said, want);
    else
        ck_assert_ptr_null(said);
    gantry_free(said);
    gy_text_free(&a);
    gy_text_free(&b);
    gantry_machine_free(was);
    gantry_machine_free(is);
}

START_TEST(stale)
{
    static const char h200[] = "{ 'driver': '580.65', 'GPUs': '8', 'gpu0.ecc': 'on' }";
    check_stale(h200, h200, NULL);
    check_stale(h200, "{ 'GPUs': '8', 'gpu0.ecc': 'on', 'driver': '580.65' }", NULL);
    check_stale(h200, "{ 'CUDA': '13.1', 'GPUs': '8' }", NULL); /* what only one tells */
    check_stale("{}", h200, NULL);
    check_stale(h200, "{ 'driver': '590.1', 'GPUs': '8' }", "driver was \"580.65\" and is \"590.1\"");
    check_stale(h200, "{ 'gpu0.ecc': 'off', 'driver': '590.1', 'GPUs': '8' }",
                "driver was \"580.65\" and is \"590.1\", gpu0.ecc was \"on\" and is \"off\"");
}
END_TEST

START_TEST(stale_calls)
{
    gantry_error err = { 0 };
    gantry_machine *m = machine_with("");
    char *said = NULL;
    ck_assert_int_eq(gantry_machine_stale(m, m, &said, NULL), GANTRY_OK); /* never measured */
    ck_assert_ptr_null(said);
    ck_assert_int_eq(gantry_machine_stale(NULL, m, &said, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text,
                     "gantry_machine_stale was called with NULL for `machine`; pass what its header asks for");
    ck_assert_int_eq(gantry_machine_stale(m, NULL, &said, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "gantry_machine_stale was called with NULL for `here`; pass what its header asks for");
    ck_assert_int_eq(gantry_machine_stale(m, m, NULL, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "gantry_machine_stale was called with NULL for `text`; pass what its header asks for");
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("machine: kernels");
    TCase *c = tcase_create("kernels");
    tcase_add_test(c, normal_form);
    tcase_add_test(c, what_the_hash_is_of);
    tcase_add_test(c, of_some_of_the_devices);
    tcase_add_test(c, what_one_more_adds_to_a_batch);
    tcase_add_test(c, exact_arguments);
    tcase_add_test(c, pieces);
    tcase_add_test(c, times);
    tcase_add_test(c, shares);
    tcase_add_test(c, stale);
    tcase_add_test(c, stale_calls);
    suite_add_tcase(s, c);
    return run_suite(s);
}
