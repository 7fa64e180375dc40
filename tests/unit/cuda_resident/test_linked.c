/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formulas as functions for workers: NVRTC takes what is printed of them, and nvlink joins it to the code of the
 * resident kernel, within the registers that two workers of a multiprocessor have. What comes out runs on GPUs only
 * (test_gpu_resident).
 */
#include "backends/cuda/resident/resident.h"

#include "backends/cuda/usercode/compile.h"
#include "base/memory.h"
#include "unit/cuda/suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of all sorts: spread regions, numbers, 16 bits, several results, reductions of all, of rows, of columns, and where.
 */
static const char formulas[] =
    "{\"gantry\":1,\"buffers\":{"
    "\"a\":{\"dtype\":\"f64\",\"shape\":[40,30],\"init\":\"iota\"},\"row\":{\"dtype\":\"f64\",\"shape\":[1,30],"
    "\"init\":1},"
    "\"column\":{\"dtype\":\"f64\",\"shape\":[40,1],\"init\":2},\"b\":{\"dtype\":\"f64\",\"shape\":[40,30]},"
    "\"h\":{\"dtype\":\"bf16\",\"shape\":[40,30]},\"i\":{\"dtype\":\"i32\",\"shape\":[40,30]},"
    "\"sum\":{\"dtype\":\"f64\",\"shape\":[1]},\"rows\":{\"dtype\":\"f32\",\"shape\":[40]},"
    "\"columns\":{\"dtype\":\"f64\",\"shape\":[30]},\"most\":{\"dtype\":\"f64\",\"shape\":[40]},"
    "\"where\":{\"dtype\":\"i64\",\"shape\":[40]}},"
    "\"nodes\":["
    "{\"id\":\"spread\",\"map\":{\"y\":\"sqrt(x) * s + r / "
    "c\"},\"args\":{\"x\":\"a\",\"s\":0.5,\"r\":\"row\",\"c\":\"column\",\"y\":\"b\"}},"
    "{\"id\":\"two\",\"map\":{\"h\":\"exp(x)\",\"i\":\"i32(floor(x))\"},\"args\":{\"x\":\"a\",\"h\":\"h\",\"i\":\"i\"}}"
    ","
    "{\"id\":\"all\",\"reduce\":{\"n\":\"sum(square(x - y))\"},\"args\":{\"x\":\"a\",\"y\":\"b\",\"n\":\"sum\"}},"
    "{\"id\":\"rows\",\"reduce\":{\"n\":\"mean(x, 1)\"},\"args\":{\"x\":\"h\",\"n\":\"rows\"}},"
    "{\"id\":\"columns\",\"reduce\":{\"n\":\"sum(x, 0)\"},\"args\":{\"x\":\"a\",\"n\":\"columns\"}},"
    "{\"id\":\"where\",\"reduce\":{\"m\":\"max(x, 1)\",\"w\":\"argmax(x, "
    "1)\"},\"args\":{\"x\":\"a\",\"m\":\"most\",\"w\":\"where\"}}"
    "]}";

static gantry_graph *graph_of(const char *text)
{
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

/* The text for all of its formulas; *count: how many there are. */
static char *print(const gantry_graph *g, unsigned *count)
{
    gy_text text = { 0 };
    uint32_t *number = gy_calloc(g->kernels.count + 1, sizeof *number);
    *count = 0;
    for (uint32_t k = 0; k < g->kernels.count; k++)
        if (g->kernels.at[k].program)
            number[k] = GY_RESIDENT_FUNCTIONS + 2 * (*count)++;
    gy_resident_print_linked(&text, g, number);
    gy_free(number);
    return gy_text_take(&text, NULL);
}

static void write_file(const char *path, const char *at, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(at, 1, bytes, f) == bytes && fclose(f) == 0);
}

START_TEST(each_has_its_function)
{
    unsigned count;
    gantry_graph *g = graph_of(formulas);
    char *text = print(g, &count);
    ck_assert_uint_eq(count, 6);
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "case %u:\n        return gy_call<f%u::f%u>::of(word);", 2 * i, 2 * i, 2 * i);
        ck_assert_msg(strstr(text, name) != NULL, "no %s in\n%s", name, text);
        snprintf(name, sizeof name, "case %u:\n        return gy_call<f%u::f%u_finish>::of(word);", 2 * i + 1, 2 * i,
                 2 * i);
        ck_assert_int_eq(strstr(text, name) != NULL, i >= 2); /* reductions have two */
    }
    gy_free(text);
    gantry_graph_free(g);
}
END_TEST

START_TEST(they_are_linked)
{
    unsigned count;
    gy_nvrtc nvrtc;
    gy_code code = { 0 };
    gantry_error err = { 0 };
    if (gy_nvrtc_open(&nvrtc, &err)) {
        printf("skipped: %s\n", err.text);
        return;
    }
    gantry_graph *g = graph_of(formulas);
    char *text = print(g, &count);
    gantry_status status = gy_nvrtc_compile_to_link(&code, &nvrtc, "formulas", text, 90, &err);
    ck_assert_msg(status == GANTRY_OK, "%s\n%s", err.text, text);
    write_file(OUTPUT "/formulas.cubin", code.at, code.bytes);
    ck_assert_int_eq(system(NVLINK " --arch=sm_90 -o " OUTPUT "/linked.cubin " OPEN " " OUTPUT "/formulas.cubin"), 0);
    gy_free(code.at);
    gy_free(text);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("formulas for workers");
    TCase *c = tcase_create("linked");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, each_has_its_function);
    tcase_add_test(c, they_are_linked);
    suite_add_tcase(s, c);
    return run_suite(s);
}
