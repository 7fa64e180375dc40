/* SPDX-License-Identifier: Apache-2.0 */
/* The real gantry-cuda.so: its images are loaded, functions found by name, parameters passed in the order of the
 * kernels. What runs is the source of the kernels on the CPU (tests/support/cuda_emulator). */
#include "control.h"
#include "suite.h"

#include <stdio.h>
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

/* Contributions of three GPUs, an all_reduce of halves, rows that three GPUs take part in: two launches for each
 * reduce_sum, and one for what is combined, if a GPU reaches all of it. */
static const char contributions[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[3001],\"split\":3,\"init\":{\"random\":{\"seed\":1}"
    "}},"
    "\"sum\":{\"dtype\":\"f64\",\"shape\":[1],\"init\":0.5,\"output\":true},"
    "\"h0\":{\"dtype\":\"f16\",\"shape\":[37],\"init\":{\"random\":{\"seed\":4}}},"
    "\"h1\":{\"dtype\":\"f16\",\"shape\":[37],\"init\":{\"random\":{\"seed\":5}}},"
    "\"a\":{\"dtype\":\"f16\",\"shape\":[37],\"output\":true},\"b\":{\"dtype\":\"f16\",\"shape\":[37],\"output\":true}}"
    ","
    "\"nodes\":[{\"id\":\"s[i]\",\"for\":{\"i\":3},\"kernel\":\"reduce_sum\",\"args\":{\"x\":\"x[i]\",\"out\":\"sum\"},"
    "\"on\":\"i\"},"
    "{\"id\":\"p\",\"kernel\":\"copy\",\"args\":{\"x\":\"h0\",\"y\":\"a\"},\"on\":\"gpu0\"},"
    "{\"id\":\"q\",\"kernel\":\"copy\",\"args\":{\"x\":\"h1\",\"y\":\"b\"},\"on\":\"gpu1\"},"
    "{\"id\":\"r\",\"collective\":\"all_reduce\",\"op\":\"sum\",\"in\":[\"a\",\"b\"],\"out\":[\"a\",\"b\"]}]}";

static const struct {
    const char *text, *peer;
    int kernels; /* of a start */
} cases[] = { { text, "all", 5 }, { contributions, "all", 3 * 2 + 1 + 2 + 1 }, { contributions, "none", 3 * 2 + 2 } };

START_TEST(launchers)
{
    char alive[160];
    gantry_graph *g = NULL;
    fakeCudaDevices(3, cases[_i / 2].peer, 0);
    MUST(gantry_graph_parse(&g, cases[_i / 2].text, strlen(cases[_i / 2].text), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(3, false);
    gantry_schedule *s = make_schedule(g, m, _i % 2 ? "graph" : "stream", "round-robin");
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    int before = fakeCudaCalls("kernel");
    for (int start = 0; start < 2; start++) {
        results want = run_results(host, g), got = run_results(run, g);
        ck_assert(same(&got, &want));
    }
    ck_assert_int_eq(fakeCudaCalls("kernel"), before + 2 * cases[_i / 2].kernels);
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
    ck_assert_msg(strstr(err.text, ": finding the function \"") && strstr(err.text, "_u8\": "), "%s", err.text);
    ck_assert_int_eq(err.native, CUDA_ERROR_NOT_FOUND);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* The driver loads the code of a function that is looked for, which takes longer than a small run. */
START_TEST(only_what_is_launched_is_looked_for)
{
    static const char *const texts[] = {
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[50],\"init\":\"iota\"},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[50],\"output\":true},\"s\":{\"dtype\":\"f32\","
        "\"shape\":[1],\"init\":0,\"output\":true}},\"nodes\":[{\"id\":\"a\",\"kernel\":\"scale\","
        "\"args\":{\"a\":2,\"x\":\"x\",\"y\":\"y\"}},{\"id\":\"b\",\"kernel\":\"reduce_sum\","
        "\"args\":{\"x\":\"y\",\"out\":\"s\"}}]}", /* scale, and both of reduce_sum */
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[50],\"init\":\"iota\"},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[50],\"output\":true}},\"nodes\":[{\"id\":\"a\",\"kernel\":\"sort\","
        "\"args\":{\"x\":\"x\",\"y\":\"y\"}}]}" /* three launches of functions for keys of 4 bytes */
    };
    gantry_graph *g = NULL;
    fakeCudaDevices(1, "all", 0);
    MUST(gantry_graph_parse(&g, texts[_i], strlen(texts[_i]), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    int before = fakeCudaCalls("cuModuleGetFunction");
    gantry_run *run = open_run(s, "cuda");
    ck_assert_int_eq(fakeCudaCalls("cuModuleGetFunction") - before, 3);
    run_results(run, g);
    ck_assert_int_eq(fakeCudaCalls("cuModuleGetFunction") - before, 3);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* The driver's words are told. */
START_TEST(a_launch_is_refused)
{
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    uint64_t ticket;
    fakeCudaDevices(1, "all", 0);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    gantry_run *run = open_run(s, "cuda");
    fakeCudaFail("cuLaunchKernel:1:1");
    gantry_status status = gantry_run_start(run, &ticket, &err);
    ck_assert_int_eq(status ? status : gantry_run_wait(run, ticket, &err), GANTRY_E_KERNEL);
    ck_assert_msg(strstr(err.text, "failed on device \"gpu0\": launching it: CUDA_ERROR_INVALID_VALUE (1): "), "%s",
                  err.text);
    fakeCudaFail(NULL);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Images are loaded for reduce_sum on three GPUs, copy on two, then for combining on all three. */
START_TEST(combining_fails)
{
    static const struct {
        const char *fail, *text;
        int kernels;
    } failures[] = {
        { "cuModuleLoadData:6:209", NULL, 10 }, /* no code for that GPU: another one does it */
        { "cuModuleLoadData:6:209,cuModuleLoadData:7:209,cuModuleLoadData:8:209", NULL, 8 }, /* the host does */
        { "cuModuleLoadData:6:2", "what combines contributions could not be opened on device \"gpu0\": loading", 0 },
        { "cuModuleLoadData:8:2", "what combines contributions could not be opened on device \"gpu2\": loading", 0 },
        { "cuLaunchKernel:10:1",
          "refused to combine or move its share on device \"gpu0\": launching it: CUDA_ERROR_INVALID_VALUE (1): ", 0 },
        { NULL, NULL, 10 },
    };
    char alive[160];
    gantry_graph *g = NULL;
    fakeCudaDevices(3, "all", 0);
    MUST(gantry_graph_parse(&g, contributions, strlen(contributions), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(3, false);
    gantry_schedule *s = make_schedule(g, m, "stream", "round-robin");
    gantry_run *host = open_run(s, "host"), *run = NULL;
    results want = run_results(host, g);
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
        gantry_error err = { 0 };
        uint64_t ticket;
        int before = fakeCudaCalls("kernel");
        options.backend = "cuda";
        fakeCudaFail(failures[i].fail);
        gantry_status status = gantry_run_new(&run, s, &options, &err);
        status = status ? status : gantry_run_start(run, &ticket, &err);
        status = status ? status : gantry_run_wait(run, ticket, &err);
        ck_assert_int_eq(status, failures[i].text ? GANTRY_E_DEVICE : GANTRY_OK);
        ck_assert_msg(!failures[i].text || strstr(err.text, failures[i].text), "%s", err.text);
        if (status == GANTRY_OK) {
            results got = outputs_of(run, g);
            ck_assert(same(&got, &want));
            ck_assert_int_eq(fakeCudaCalls("kernel") - before, failures[i].kernels);
        }
        gantry_run_free(run);
        run = NULL;
        ck_assert_msg(fakeCudaAlive(alive, sizeof alive) == 0, "left behind: %s", alive);
    }
    gantry_run_free(host);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda kernels");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, launchers, 0, 6);
    tcase_add_test(tests, code_is_missing);
    tcase_add_loop_test(tests, only_what_is_launched_is_looked_for, 0, 2);
    tcase_add_test(tests, a_launch_is_refused);
    tcase_add_test(tests, combining_fails);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
