/* SPDX-License-Identifier: Apache-2.0 */
/* Without a module, a driver or a device: what is said, and that everything else works. */
#include "suite.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t cuda_index(void)
{
    size_t i = 0;
    while (strcmp(gantry_backend_name(i), "cuda") != 0)
        i++;
    return i;
}

static void expect_line(const char *line)
{
    char *text = NULL;
    MUST(gantry_backend_describe(cuda_index(), &text, MUST_ERR));
    ck_assert_msg(strstr(text, line), "no \"%s\" in:\n%s", line, text);
    gantry_free(text);
    ck_assert_str_eq(gantry_backend_summary(cuda_index()),
                     "NVIDIA GPUs: cannot be used here, \"gantry machine\" says why");
}

/* "cuda" is refused with these words, "auto" takes the host, also for a machine with GPUs, and detection finds none. */
static void expect_host(const char *why)
{
    gantry_graph *g = load_graph(&graph_cases[0]);
    gantry_machine *m = gpu_machine(2, false), *here = NULL;
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    ck_assert_int_eq(gantry_run_new(&run, s, &options, &err), GANTRY_E_DEVICE);
    ck_assert_msg(strstr(err.text, "back end \"cuda\" cannot be used: ") == err.text && strstr(err.text, why), "%s",
                  err.text);
    options.backend = "auto";
    MUST(gantry_run_new(&run, s, &options, MUST_ERR));
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    run_results(run, g);
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    ck_assert_str_eq(info.backend, "host");
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    MUST(gantry_machine_detect(&here, NULL, MUST_ERR));
    for (size_t i = 0; i < gantry_machine_device_count(here); i++) {
        gantry_device_info device = GANTRY_DEVICE_INFO_INIT;
        MUST(gantry_machine_device(here, i, &device, MUST_ERR));
        ck_assert_int_eq(device.gpu, 0);
    }
    gantry_machine_free(here);
}

START_TEST(no_module)
{
    setenv("GANTRY_MODULES", "/nonexistent", 1);
    expect_line("module: gantry-cuda.so was not found in /nonexistent, the folder GANTRY_MODULES\n");
    expect_host("gantry-cuda.so was not found in /nonexistent");
}
END_TEST

START_TEST(another_build)
{
    setenv("GANTRY_MODULES", GANTRY_ABSENT "/build", 1);
    expect_line("/build/gantry-cuda.so has build id 0123456789abcdef and this library has ");
    expect_line(
        ": they were built from different headers; install the gantry-cuda.so that was built with this library\n");
    expect_host("has build id 0123456789abcdef");
}
END_TEST

START_TEST(not_a_module)
{
    setenv("GANTRY_MODULES", GANTRY_ABSENT "/symbol", 1);
    expect_line("/symbol/gantry-cuda.so is no module of this version of gantry: it has no symbol gantry_cuda_build_id; "
                "install the gantry-cuda.so that was built with this library\n");
    expect_host("is no module of this version of gantry");
}
END_TEST

START_TEST(not_a_library)
{
    setenv("GANTRY_MODULES", GANTRY_ABSENT "/text", 1);
    expect_line("/text/gantry-cuda.so cannot be opened: ");
    expect_host("cannot be opened");
}
END_TEST

START_TEST(no_driver)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    setenv("GANTRY_MODULES", GANTRY_MODULE_FOLDER, 1);
    if (driver) {
        printf("skipped: this computer has an NVIDIA driver\n");
        return;
    }
    expect_line("driver: no NVIDIA driver: libcuda.so.1: cannot open shared object file");
    expect_line("\nNCCL: ");
    expect_line("\nNVRTC: ");
    expect_line("\nCUPTI: ");
    expect_host("no NVIDIA driver: libcuda.so.1: cannot open shared object file");
}
END_TEST

/* A library of that name that is open already is the one that dlopen finds. */
START_TEST(old_driver)
{
    ck_assert_msg(dlopen(GANTRY_ABSENT "/old/libcuda.so.1", RTLD_NOW) != NULL, "%s", dlerror());
    setenv("GANTRY_MODULES", GANTRY_MODULE_FOLDER, 1);
    expect_line("driver: libcuda.so.1 has no function cuGetErrorName: the driver is too old; CUDA 11.4 or later is "
                "needed\n");
    expect_host("has no function cuGetErrorName");
}
END_TEST

START_TEST(no_device)
{
    ck_assert_msg(dlopen(GANTRY_FAKE "/libcuda.so.1", RTLD_NOW) != NULL, "%s", dlerror());
    setenv("GANTRY_MODULES", GANTRY_MODULE_FOLDER, 1);
    setenv("FAKE_CUDA_DEVICES", "0", 1);
    expect_line("driver: the NVIDIA driver sees no device\n");
    expect_host("the NVIDIA driver sees no device");
}
END_TEST

START_TEST(driver_does_not_start)
{
    ck_assert_msg(dlopen(GANTRY_FAKE "/libcuda.so.1", RTLD_NOW) != NULL, "%s", dlerror());
    setenv("GANTRY_MODULES", GANTRY_MODULE_FOLDER, 1);
    setenv("FAKE_CUDA_FAIL", "cuInit:1:2,cuInit:2:2,cuInit:3:2,cuInit:4:2,cuInit:5:2", 1);
    expect_line("driver: the NVIDIA driver cannot be initialised: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory\n");
}
END_TEST

static gantry_status set_to_nine(const gantry_launch *l)
{
    *(float *)l->arg[0].data = 9;
    return GANTRY_OK;
}

static const gantry_kernel_arg nine_args[] = { { .name = "x", .access = GANTRY_WRITE } };
static const gantry_kernel nine = {
    .struct_size = sizeof nine, .name = "t_nine", GANTRY_KERNEL_ARGS(nine_args), .host = set_to_nine
};

/* Kernels without a CUDA version: auto takes the host rather than fail, "cuda" says which kernel, and whether it is one
 * of a program or the module has none at all, as where there was no nvcc. */
START_TEST(no_version_of_a_kernel)
{
    static const struct {
        const char *folder, *words;
    } modules[] = {
        { GANTRY_FAKE, "kernel \"t_nine\" of node \"t_nine\" has no CUDA version; give it one "
                       "(gantry_graph_add_cuda_kernel), or use the back end \"host\"" },
        { GANTRY_ABSENT "/kernels",
          "kernel \"t_nine\" of node \"t_nine\" has no CUDA version: gantry-cuda.so was built without "
          "nvcc; build it where nvcc is, or use the back end \"host\"" },
    };
    ck_assert_msg(dlopen(GANTRY_FAKE "/libcuda.so.1", RTLD_NOW) != NULL, "%s", dlerror());
    setenv("GANTRY_MODULES", modules[_i].folder, 1);
    gantry_graph *g = gantry_graph_new("nine");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, (int64_t[]){ 1 });
    gantry_buffer_output(g, x);
    gantry_graph_add_kernel(g, &nine);
    gantry_node n = gantry_graph_kernel(g, NULL, "t_nine");
    gantry_node_arg(g, n, "x", gantry_all(x));
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    ck_assert_int_eq(gantry_run_new(&run, s, &options, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, modules[_i].words), "%s", err.text);
    options.backend = NULL;
    MUST(gantry_run_new(&run, s, &options, MUST_ERR));
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    ck_assert_str_eq(info.backend, "host");
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda absent");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, no_module);
    tcase_add_test(tests, another_build);
    tcase_add_test(tests, not_a_module);
    tcase_add_test(tests, not_a_library);
    tcase_add_test(tests, no_driver);
    tcase_add_test(tests, old_driver);
    tcase_add_test(tests, no_device);
    tcase_add_test(tests, driver_does_not_start);
    tcase_add_loop_test(tests, no_version_of_a_kernel, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
