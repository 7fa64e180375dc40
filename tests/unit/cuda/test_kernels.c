/* SPDX-License-Identifier: Apache-2.0 */
/* The launchers of the real gantry-cuda.so: its images are loaded, functions found by name, parameters passed in the
 * order of the kernels. What runs is a C function of those parameters, written here; kernels themselves need a GPU
 * (tests/gpu). */
#include "control.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ran;

/* As saxpy_f32, scale_f64 and copy_u8 in kernels/. */
static void saxpy_f32(void **p)
{
    float a = (float)*(double *)p[0], *y = *(float **)p[2];
    const float *x = *(const float **)p[1];
    for (int64_t i = 0; i < *(int64_t *)p[3]; i++) {
        y[i] = a * x[i] + y[i];
    }
    ran |= 1;
}

static void scale_f64(void **p)
{
    double a = *(double *)p[0], *y = *(double **)p[2];
    const double *x = *(const double **)p[1];
    for (int64_t i = 0; i < *(int64_t *)p[3]; i++) {
        y[i] = a * x[i];
    }
    ran |= 2;
}

static void copy_u8(void **p)
{
    memcpy(*(uint8_t **)p[1], *(const uint8_t **)p[0], (size_t) * (int64_t *)p[2]);
    ran |= 4;
}

static void never(void **p)
{
    (void)p;
    ck_abort_msg("a kernel of another dtype was launched");
}

static void register_all(void)
{
    static const char *const kernels[] = { "saxpy", "scale", "copy" };
    static const size_t axy[] = { 8, 8, 8, 8 }, xy[] = { 8, 8, 8 };
    for (int k = 0; k < 3; k++) {
        for (int d = 0; d < GANTRY_DTYPE_COUNT; d++) {
            char name[40];
            snprintf(name, sizeof name, "%s_%s", kernels[k], gantry_dtype_name((gantry_dtype)d));
            fakeCudaFunction(name, never, k == 2 ? xy : axy, k == 2 ? 3 : 4);
        }
    }
    fakeCudaFunction("saxpy_f32", saxpy_f32, axy, 4);
    fakeCudaFunction("scale_f64", scale_f64, axy, 4);
    fakeCudaFunction("copy_u8", copy_u8, xy, 3);
}

static const char text[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[1000],\"split\":3,\"init\":{\"random\":{\"seed\":1}"
    "}},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[1000],\"split\":3,\"init\":{\"random\":{\"seed\":2}},\"output\":true},"
    "\"d\":{\"dtype\":\"f64\",\"shape\":[10,7],\"init\":\"iota\"},\"e\":{\"dtype\":\"f64\",\"shape\":[10,7],\"output\":"
    "true},"
    "\"b\":{\"dtype\":\"u8\",\"shape\":[333],\"init\":\"iota\"},\"c\":{\"dtype\":\"u8\",\"shape\":[333],\"output\":"
    "true}},"
    "\"nodes\":[{\"id\":\"s[i]\",\"for\":{\"i\":3},\"kernel\":\"saxpy\",\"args\":{\"a\":2.5,\"x\":\"x[i]\",\"y\":\"y[i]"
    "\"}},"
    "{\"id\":\"t\",\"kernel\":\"scale\",\"args\":{\"a\":-3,\"x\":\"d\",\"y\":\"e\"}},"
    "{\"id\":\"u\",\"kernel\":\"copy\",\"args\":{\"x\":\"b\",\"y\":\"c\"}}]}";

START_TEST(launchers)
{
    char alive[160];
    gantry_graph *g = NULL;
    fakeCudaDevices(2, "all", 0);
    register_all();
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, _i ? "graph" : "stream", "round-robin");
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    for (int start = 0; start < 2; start++) {
        results want = run_results(host, g), got = run_results(run, g);
        ck_assert(same(&got, &want));
    }
    ck_assert_int_eq(ran, 7);
    gantry_run_free(host);
    gantry_run_free(run);
    ck_assert_msg(fakeCudaAlive(alive, sizeof alive) == 0, "left behind: %s", alive);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* An image that cannot be loaded, a function that is not in it. */
START_TEST(code_is_missing)
{
    gantry_graph *g = NULL;
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    fakeCudaDevices(1, "all", 0);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    fakeCudaFail("cuModuleLoadData:1:209");
    ck_assert_int_eq(gantry_run_new(&run, s, &options, &err), GANTRY_E_DEVICE);
    ck_assert_msg(strstr(err.text, " could not be opened on device \"gpu0\": loading the code of \""), "%s", err.text);
    ck_assert_int_eq(err.native, 209);
    fakeCudaFail(NULL);
    ck_assert_int_eq(gantry_run_new(&run, s, &options, &err), GANTRY_E_DEVICE);
    ck_assert_msg(strstr(err.text, ": finding the function \"") && strstr(err.text, "_f16\": "), "%s", err.text);
    ck_assert_int_eq(err.native, CUDA_ERROR_NOT_FOUND);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda kernels");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, launchers, 0, 2);
    tcase_add_test(tests, code_is_missing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
