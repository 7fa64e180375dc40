/* SPDX-License-Identifier: Apache-2.0 */
/* The real gantry-cuda.so: its images are loaded, functions found by name, parameters passed in the order of the
 * kernels. What runs is the source of the kernels on the CPU (tests/support/cuda_emulator). */
#include "control.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, _i ? "graph" : "stream", "round-robin");
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    int before = fakeCudaCalls("kernel");
    for (int start = 0; start < 2; start++) {
        results want = run_results(host, g), got = run_results(run, g);
        ck_assert(same(&got, &want));
    }
    ck_assert_int_eq(fakeCudaCalls("kernel"), before + 2 * 5);
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
    fakeCudaFail("cuModuleGetFunction:1:500");
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
