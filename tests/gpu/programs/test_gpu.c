/* SPDX-License-Identifier: Apache-2.0 */
/* On real GPUs, against the host back end: exit code 77 without one. Each test has a process of its own, and the parent
 * never starts CUDA. The same program runs on the fake driver, which holds it against something where there is no GPU.
 */
#include "../../unit/cuda/linalg_cases.h"
#include "../../unit/cuda/suite.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const replays[] = { "stream", "graph" };

/* ---- the driver, for functions of this program ---- */

static void *symbol(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = library ? dlsym(library, name) : NULL;
    ck_assert_msg(found != NULL, "libcuda.so.1 has no %s", name);
    return found;
}
#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
#define FIND(name)                                                                                                     \
    __typeof__(name) *name##_ = NULL;                                                                                  \
    {                                                                                                                  \
        void *at_ = symbol(TEXT(name));                                                                                \
        memcpy(&name##_, &at_, sizeof at_);                                                                            \
    }

static bool on_fake(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    return library && dlsym(library, "fakeCudaFunction");
}

/* Also outside of tests. */
static int count_gpus(void)
{
    gantry_machine *m = NULL;
    int gpus = 0;
    if (gantry_machine_detect(&m, NULL, NULL)) {
        return 0;
    }
    for (size_t i = 0; i < gantry_machine_device_count(m); i++) {
        gantry_device_info info = GANTRY_DEVICE_INFO_INIT;
        gpus += gantry_machine_device(m, i, &info, NULL) == GANTRY_OK && info.gpu;
    }
    gantry_machine_free(m);
    return gpus;
}

/* In a child: CUDA does not survive a fork. */
static bool has_gpu(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        _exit(count_gpus() > 0 ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- graphs ---- */

/* False: a kernel has no CUDA version yet, which is said. */
static bool open_cuda(gantry_run **run, gantry_schedule *s, const char *what)
{
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    gantry_status status = gantry_run_new(run, s, &options, &err);
    if (status == GANTRY_E_UNSUPPORTED) {
        printf("skipped: %s: %s\n", what, err.text);
        return false;
    }
    ck_assert_msg(status == GANTRY_OK, "%s: %s", what, err.text);
    return true;
}

/* `near`: what libraries compute is not the host's bits. */
static void compare_as(gantry_graph *g, const gantry_machine *m, const char *what, bool near)
{
    for (int k = 0; k < 2; k++) {
        gantry_schedule *s = make_schedule(g, m, replays[k], "round-robin");
        gantry_run *host = open_run(s, "host"), *run = NULL;
        if (open_cuda(&run, s, what)) {
            for (int start = 0; start < 3; start++) {
                if (near) {
                    start_and_wait(host);
                    start_and_wait(run);
                    expect_near(run, host, g, what);
                    continue;
                }
                results want = run_results(host, g), got = run_results(run, g);
                ck_assert_msg(same(&got, &want), "%s, replay %s, start %d: other results", what, replays[k], start);
            }
            if (near && strcmp(replay_of(run), replays[k]) != 0) {
                printf("to look at: %s, replay %s: %s\n", what, replays[k],
                       replay_of(run)); /* cuSOLVER promises nothing */
            } else {
                ck_assert_str_eq(replay_of(run), replays[k]);
            }
            gantry_run_free(run);
        }
        gantry_run_free(host);
        gantry_schedule_free(s);
    }
}

static void compare(gantry_graph *g, const gantry_machine *m, const char *what)
{
    compare_as(g, m, what, false);
}

/* 1, 2, 4, 8 devices, on as many GPUs as there are: several devices may be one GPU. */
START_TEST(graphs)
{
    int here = count_gpus();
    for (const graph_case *c = graph_cases; c->file; c++) {
        for (int devices = 1; devices <= 8; devices *= 2) {
            char what[80];
            int gpus = devices < here ? devices : here;
            gantry_graph *g = load_graph(c);
            gantry_machine *m = shared_machine(devices, gpus);
            snprintf(what, sizeof what, "%s on %d devices, %d GPUs", c->file, devices, gpus);
            compare_as(g, m, what, strcmp(c->file, "cholesky") == 0 || strcmp(c->file, "mlp_step") == 0);
            gantry_machine_free(m);
            gantry_graph_free(g);
        }
    }
}
END_TEST

/* gemm, potrf, trsm, syrk in all their forms, by cuBLAS and cuSOLVER. */
START_TEST(linear_algebra)
{
    char what[120];
    gantry_graph *g;
    int here = count_gpus();
    for (int i = 0; (g = linalg_case(i, what, sizeof what)); i++) {
        gantry_machine *m = shared_machine(1 + i % 2, here < 2 ? 1 : 1 + i % 2);
        compare_as(g, m, what, true);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

START_TEST(not_positive_definite)
{
    gantry_graph *g = NULL;
    gantry_machine *m = shared_machine(1, 1);
    MUST(gantry_graph_parse(&g, one_root, strlen(one_root), "text", NULL, NULL, MUST_ERR));
    gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
    gantry_run *host = open_run(s, "host"), *run = NULL;
    if (open_cuda(&run, s, "not_positive_definite")) {
        expect_pivots(run, host);
        gantry_run_free(run);
    }
    gantry_run_free(host);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* The kernels that have a CUDA version: every dtype, sizes around those of blocks; bit for bit. */
START_TEST(kernels)
{
    static const int sizes[] = { 1, 255, 256, 257, 100003 };
    gantry_machine *m = shared_machine(1, 1);
    for (int d = 0; d < GANTRY_DTYPE_COUNT; d++) {
        const char *dtype = gantry_dtype_name((gantry_dtype)d);
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
            char text[1200], what[60];
            int length = snprintf(
                text, sizeof text,
                "{\"gantry\":1,\"params\":{\"n\":%d},\"buffers\":{"
                "\"x\":{\"dtype\":\"%s\",\"shape\":[\"n\"],\"init\":{\"random\":{\"seed\":1,\"low\":0,\"high\":100}}},"
                "\"y\":{\"dtype\":\"%s\",\"shape\":[\"n\"],\"init\":{\"random\":{\"seed\":2,\"low\":0,\"high\":100}},"
                "\"output\":true},"
                "\"z\":{\"dtype\":\"%s\",\"shape\":[\"n\"],\"output\":true},\"w\":{\"dtype\":\"%s\",\"shape\":[\"n\"],"
                "\"output\":true}},"
                "\"nodes\":[{\"id\":\"k0\",\"kernel\":\"saxpy\",\"args\":{\"a\":3,\"x\":\"x\",\"y\":\"y\"},\"on\":"
                "\"gpu0\"},"
                "{\"id\":\"k1\",\"kernel\":\"scale\",\"args\":{\"a\":7,\"x\":\"x\",\"y\":\"z\"},\"on\":\"gpu0\"},"
                "{\"id\":\"k2\",\"kernel\":\"copy\",\"args\":{\"x\":\"x\",\"y\":\"w\"},\"on\":\"gpu0\"}]}",
                sizes[n], dtype, dtype, dtype, dtype);
            gantry_graph *g = NULL;
            MUST(gantry_graph_parse(&g, text, (size_t)length, "text", NULL, NULL, MUST_ERR));
            snprintf(what, sizeof what, "%s, %d elements", dtype, sizes[n]);
            compare(g, m, what);
            gantry_graph_free(g);
        }
    }
    gantry_machine_free(m);
}
END_TEST

/* Fills of all widths, copies beyond a chunk, collectives through the host. */
START_TEST(data)
{
    static const char *const texts[] = {
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f64\",\"shape\":[3000001],\"output\":true},"
        "\"b\":{\"dtype\":\"f64\",\"shape\":[3000001],\"output\":true}},\"nodes\":["
        "{\"id\":\"f\",\"fill\":{\"to\":\"a\",\"value\":1.1},\"on\":\"gpu0\"},"
        "{\"id\":\"c\",\"kernel\":\"copy\",\"args\":{\"x\":\"a\",\"y\":\"b\"},\"on\":\"gpu1\"}]}",
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"u8\",\"shape\":[70001]},\"b\":{\"dtype\":\"u8\",\"shape\":["
        "70001],"
        "\"output\":true}},\"nodes\":[{\"id\":\"f\",\"fill\":{\"to\":\"a\",\"iota\":{\"start\":2,\"step\":3}},\"on\":"
        "\"gpu1\"},"
        "{\"id\":\"c\",\"kernel\":\"copy\",\"args\":{\"x\":\"a\",\"y\":\"b\"},\"on\":\"gpu0\"}]}",
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[2000003],\"init\":{\"random\":{\"seed\":3}}},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[2000003]},\"z\":{\"dtype\":\"f32\",\"shape\":[2000003]},"
        "\"t\":{\"dtype\":\"f32\",\"shape\":[2000003],\"output\":true},\"u\":{\"dtype\":\"f32\",\"shape\":[2000003],"
        "\"output\":true}},\"nodes\":[{\"id\":\"a\",\"kernel\":\"scale\",\"args\":{\"a\":2,\"x\":\"x\",\"y\":\"y\"},"
        "\"on\":\"gpu0\"},"
        "{\"id\":\"b\",\"kernel\":\"scale\",\"args\":{\"a\":3,\"x\":\"x\",\"y\":\"z\"},\"on\":\"gpu1\"},"
        "{\"id\":\"d\",\"collective\":\"all_reduce\",\"op\":\"sum\",\"in\":[\"y\",\"z\"],\"out\":[\"t\",\"u\"]}]}",
    };
    int here = count_gpus();
    gantry_machine *m = shared_machine(2, here < 2 ? 1 : 2);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        gantry_graph *g = NULL;
        char what[20];
        MUST(gantry_graph_parse(&g, texts[i], strlen(texts[i]), "text", NULL, NULL, MUST_ERR));
        snprintf(what, sizeof what, "text %zu", i);
        compare(g, m, what);
        gantry_graph_free(g);
    }
    gantry_machine_free(m);
}
END_TEST

/* ---- functions of the program ---- */

/* y = x, by a copy on the stream. */
static gantry_status copy_on_stream(const gantry_launch *l)
{
    if (!l->stream) {
        memcpy(l->arg[1].data, l->arg[0].data, (size_t)(l->arg[0].rows * l->arg[0].row_bytes));
        return GANTRY_OK;
    }
    FIND(cuMemcpyDtoDAsync)
    CUdeviceptr to = (CUdeviceptr)(uintptr_t)l->arg[1].data, from = (CUdeviceptr)(uintptr_t)l->arg[0].data;
    size_t bytes = (size_t)(l->arg[0].rows * l->arg[0].row_bytes);
    return cuMemcpyDtoDAsync_(to, from, bytes, l->stream) == CUDA_SUCCESS ? GANTRY_OK : GANTRY_E_DEVICE;
}

/* The same, but it waits, which no capture allows. */
static gantry_status copy_and_wait(const gantry_launch *l)
{
    gantry_status status = copy_on_stream(l);
    if (l->stream) {
        FIND(cuStreamSynchronize)
        cuStreamSynchronize_(l->stream);
    }
    return status;
}

static const char fault_ptx[] = ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry fault()\n{\n"
                                ".reg .u64 %a; .reg .u32 %b; mov.u64 %a, 64; mov.u32 %b, 1;\n"
                                "st.global.u32 [%a], %b; ret;\n}\n";

/* A kernel that writes where nothing is. */
static gantry_status write_nowhere(const gantry_launch *l)
{
    if (!l->stream) {
        return GANTRY_OK;
    }
    FIND(cuModuleLoadData)
    FIND(cuModuleGetFunction)
    FIND(cuLaunchKernel)
    static CUmodule module; /* of this process, which ends after the test */
    CUfunction function;
    if ((!module && cuModuleLoadData_(&module, fault_ptx) != CUDA_SUCCESS) ||
        cuModuleGetFunction_(&function, module, "fault") != CUDA_SUCCESS ||
        cuLaunchKernel_(function, 1, 1, 1, 1, 1, 1, 0, l->stream, NULL, NULL) != CUDA_SUCCESS) {
        return GANTRY_E_DEVICE;
    }
    return GANTRY_OK;
}

typedef struct own {
    gantry_graph *g;
    gantry_buffer x, y;
    gantry_schedule *s;
} own;

static own make_own(gantry_kernel_fn function, const char *replay, int64_t n)
{
    own o = { .g = gantry_graph_new("own") };
    o.x = gantry_graph_buffer(o.g, "x", GANTRY_F32, 1, &n);
    o.y = gantry_graph_buffer(o.g, "y", GANTRY_F32, 1, &n);
    gantry_buffer_set_class(o.g, o.x, GANTRY_INPUT);
    gantry_buffer_output(o.g, o.y);
    gantry_node node = gantry_graph_launch(o.g, "own", function, NULL);
    gantry_node_read(o.g, node, gantry_all(o.x));
    gantry_node_write(o.g, node, gantry_all(o.y));
    gantry_node_on(o.g, node, "gpu0");
    gantry_machine *m = shared_machine(1, 1);
    o.s = make_schedule(o.g, m, replay, NULL);
    gantry_machine_free(m);
    return o;
}

static void free_own(own *o)
{
    gantry_schedule_free(o->s);
    gantry_graph_free(o->g);
}

/* Bound memory, large and small, at odd addresses; bound again between starts. */
static void check_copies(own *o, gantry_run *run, int64_t n)
{
    float *x = malloc(((size_t)n + 8) * sizeof *x);
    for (int start = 0; start < 4; start++) {
        const void *y = NULL;
        uint64_t bytes = 0, ticket = 0;
        float *from = x + 1 + start % 3;
        for (int64_t i = 0; i < n; i++) {
            from[i] = (float)(i * 3 + start);
        }
        MUST(gantry_run_bind(run, o->x, from, (uint64_t)n * sizeof *x, MUST_ERR));
        MUST(gantry_run_start(run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        MUST(gantry_run_output(run, o->y, &y, &bytes, MUST_ERR));
        ck_assert_mem_eq(y, from, (size_t)n * sizeof *x);
    }
    free(x);
}

START_TEST(bound_memory_and_own_functions)
{
    static const int64_t sizes[] = { 10, 1000000 };
    for (size_t k = 0; k < 4; k++) {
        own o = make_own(copy_on_stream, replays[k % 2], sizes[k / 2]);
        gantry_run *run = open_run(o.s, "cuda");
        check_copies(&o, run, sizes[k / 2]);
        ck_assert_str_eq(replay_of(run), replays[k % 2]);
        gantry_run_free(run);
        free_own(&o);
    }
}
END_TEST

START_TEST(capture_refused)
{
    own o = make_own(copy_and_wait, "graph", 1000);
    gantry_run *run = open_run(o.s, "cuda");
    check_copies(&o, run, 1000);
    ck_assert_str_eq(replay_of(run), "stream (capture refused)");
    gantry_run_free(run);
    free_own(&o);
}
END_TEST

START_TEST(kernel_faults)
{
    gantry_error err = { 0 };
    uint64_t ticket = 0;
    float x[16] = { 0 };
    if (on_fake()) {
        printf("skipped: kernel_faults: the fake driver runs no PTX\n");
        return;
    }
    own o = make_own(write_nowhere, replays[_i], 16);
    gantry_run *run = open_run(o.s, "cuda");
    MUST(gantry_run_bind(run, o.x, x, sizeof x, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_DEVICE);
    ck_assert_msg(err.native == CUDA_ERROR_ILLEGAL_ADDRESS, "%d: %s", err.native, err.text);
    printf("as it should: %s\n", err.text);
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_DEVICE);
    gantry_run_free(run);
    free_own(&o);
}
END_TEST

/* A machine that claims more memory than any GPU has. */
START_TEST(too_little_memory)
{
    static const char machine[] = "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"9TiB\"},{\"id\":"
                                  "\"gpu0\",\"capacity\":\"9TiB\"}],"
                                  "\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\",\"memory\":\"gpu0\"}],"
                                  "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"bandwidth_gbs\":10}]}";
    const int64_t n = INT64_C(1) << 40;
    gantry_machine *m = NULL;
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    gantry_graph *g = gantry_graph_new("large");
    gantry_buffer t = gantry_graph_buffer(g, "t", GANTRY_F32, 1, &n);
    gantry_node node = gantry_graph_launch(g, "write", copy_on_stream, NULL);
    gantry_node_write(g, node, gantry_all(t));
    MUST(gantry_machine_parse(&m, machine, strlen(machine), "text", MUST_ERR));
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    ck_assert_int_eq(gantry_run_new(&run, s, &options, &err), GANTRY_E_CAPACITY);
    ck_assert_msg(strstr(err.text, "device \"gpu0\" needs 4.0 TiB for its slab and has "), "%s", err.text);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    if (!has_gpu()) {
        printf("skipped: no GPU, see \"gantry machine\"\n");
        return 77;
    }
    Suite *suite = suite_create("gpu");
    TCase *tests = tcase_create("all");
    const char *only = getenv("GANTRY_GPU_TEST"); /* one of them, for compute-sanitizer */
    tcase_set_timeout(tests, 120);
#define ADD(name, count)                                                                                               \
    if (!only || strcmp(only, #name) == 0)                                                                             \
    tcase_add_loop_test(tests, name, 0, count)
    ADD(graphs, 1);
    ADD(kernels, 1);
    ADD(linear_algebra, 1);
    ADD(not_positive_definite, 2);
    ADD(data, 1);
    ADD(bound_memory_and_own_functions, 1);
    ADD(capture_refused, 1);
    ADD(kernel_faults, 2);
    ADD(too_little_memory, 1);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
