/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of users that say that workers may call them, on emulated GPUs, whose driver links no code: the run says why
 * streams launch them, with the numbers, and results are the host's. Functions of C run in place of what NVRTC
 * compiled.
 */
#include "control.h"
#include "rings.h"
#include "unit/cuda/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 1000 };

static void mix(float a, const float *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}

static gantry_status mix_on_host(const gantry_launch *l)
{
    mix((float)l->arg[0].number, l->arg[1].data, l->arg[2].data, l->arg[3].integer);
    return GANTRY_OK;
}

static void mix_on_gpu(const fakeCudaLaunch *l, void **p)
{
    (void)l;
    mix(*(float *)p[0], *(const float **)p[1], *(float **)p[2], *(int64_t *)p[3]);
}

static const char source[] = "extern \"C\" __global__ void mix(float a, const float *x, float *y, long long n)\n{\n"
                             "    long long i = blockIdx.x * 256 + threadIdx.x;\n"
                             "    if (i < n)\n        y[i] = a * x[i] + y[i];\n}\n";
static const char ptx[] =
    "// by hand\n.version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry mix(\n.param .f32 a, .param .u64 b, .param .u64 c, .param .u64 d\n)\n{\nret;\n}\n";

static void add_mix(gantry_graph *g, bool compiled, int64_t shared)
{
    static const gantry_kernel_arg args[] = { { .name = "a", .scalar = 1 },
                                              { .name = "x", .access = GANTRY_READ },
                                              { .name = "y", .access = GANTRY_READWRITE },
                                              { .name = "n", .scalar = 1, .optional = 1 } };
    static const gantry_dtype types[] = { GANTRY_F32, GANTRY_F32, GANTRY_F32, GANTRY_I64 };
    static const char *const defaults[] = { NULL, NULL, NULL, "x.size" };
    static const gantry_kernel kernel = { .struct_size = sizeof kernel,
                                          .name = "mix",
                                          .summary = "",
                                          GANTRY_KERNEL_ARGS(args),
                                          .flags = GANTRY_KERNEL_RESIDENT,
                                          .host = mix_on_host };
    gantry_cuda_code code = GANTRY_CUDA_CODE_INIT;
    code.source = compiled ? source : NULL;
    code.image = compiled ? NULL : ptx;
    code.bytes = compiled ? 0 : sizeof ptx;
    code.grid[0] = "ceil_div(n, 256)";
    code.block[0] = "256";
    code.shared_bytes = shared;
    code.types = types;
    code.defaults = defaults;
    gantry_graph_add_cuda_kernel(g, &kernel, &code);
}

/* Steps of the library, with one of the user's in their middle. */
static gantry_graph *graph_of(bool compiled, int64_t shared)
{
    enum { STEPS = 11 };
    gantry_graph *g = gantry_graph_new("users");
    const int64_t length = LENGTH;
    gantry_buffer x[2];
    add_mix(g, compiled, shared);
    for (int k = 0; k < 2; k++) {
        x[k] = gantry_graph_buffer(g, k ? "x1" : "x0", GANTRY_F32, 1, &length);
        gantry_buffer_init_iota(g, x[k]);
        gantry_buffer_output(g, x[k]);
    }
    for (int i = 0; i < STEPS; i++) {
        bool own = i == STEPS / 2;
        gantry_node node = gantry_graph_kernel(g, NULL, own ? "mix" : "axpby");
        gantry_node_scalar(g, node, "a", 0.25);
        if (!own)
            gantry_node_scalar(g, node, "b", 0.5);
        gantry_node_arg(g, node, "x", gantry_all(x[i % 2]));
        gantry_node_arg(g, node, "y", gantry_all(x[1 - i % 2]));
        gantry_node_on(g, node, "gpu0");
    }
    return g;
}

static void check_refused(bool compiled, int64_t shared, const char *why)
{
    static const size_t sizes[] = { 4, 8, 8, 8 };
    char replay[720], alive[160];
    fakeCudaDevices(1, "all", 0);
    fakeCudaFunction("mix", mix_on_gpu, sizes, 4);
    gantry_graph *g = graph_of(compiled, shared);
    gantry_machine *m = ring_machine(1, 1);
    gantry_schedule *s = make_schedule(g, m, "device", NULL);
    compare_with_host(g, s, 3, replay, sizeof replay);
    ck_assert_msg(strncmp(replay, "device and stream; not by the device alone: op ", 47) == 0 && strstr(replay, why),
                  "%s", replay);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    ck_assert_msg(fakeCudaAlive(alive, sizeof alive) == 0, "left behind: %s", alive);
}

START_TEST(no_source)
{
    check_refused(false, 0, "its kernel has no CUDA C++ source to compile for workers");
}
END_TEST

/* A machine on which workers take less time than launches by far, as was measured there. */
static gantry_machine *quick_machine(void)
{
    static const char text[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"gpu0\",\"capacity\":"
        "\"64MiB\"}],\"devices\":[{\"id\":\"cpu\",\"type\":\"cpu\",\"memory\":\"host\"},{\"id\":\"gpu0\",\"type\":"
        "\"gpu\","
        "\"memory\":\"gpu0\",\"ordinal\":0,\"launch_us\":20,\"workers\":{\"times_us\":[[20,0.5],[100,90]],\"switch_"
        "us\":1,"
        "\"start_us\":1}}],\"routes\":[{\"from\":\"gpu*\",\"to\":\"host\",\"both\":true,\"bandwidth_gbs\":10}]}";
    gantry_machine *m = NULL;
    MUST(gantry_machine_parse(&m, text, strlen(text), "quick", MUST_ERR));
    return m;
}

/* Workers were to have all that is computed, and cannot have the user's kernel: what was predicted of them is void, and
 * starts are led by the host as ever. With replay "device" it is as the caller will have it. */
START_TEST(planned_in_vain)
{
    static const size_t sizes[] = { 4, 8, 8, 8 };
    static const char *const wanted[] = { "; not by the device: its kernel has no CUDA C++ source",
                                          "device and stream; not by the device alone" };
    char replay[720];
    fakeCudaDevices(1, "all", 0);
    fakeCudaFunction("mix", mix_on_gpu, sizes, 4);
    gantry_graph *g = graph_of(false, 0);
    gantry_machine *m = quick_machine();
    gantry_schedule *s = make_schedule(g, m, _i ? "device" : "auto", NULL);
    compare_with_host(g, s, 3, replay, sizeof replay);
    ck_assert_msg(strstr(replay, wanted[_i]), "%s", replay);
    ck_assert_msg(_i || strncmp(replay, "device", 6) != 0, "%s", replay);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

START_TEST(too_much)
{
    static const struct {
        const char *name, *value;
        int64_t shared;
        const char *why;
    } cases[] = {
        { "FAKE_CUDA_REGISTERS", "168", 0,
          "its kernel has 168 registers a thread, and workers have 128: let it have fewer (__launch_bounds__)" },
        { "FAKE_CUDA_SHARED", "16385", 0,
          "its kernel has 16385 bytes of shared memory, and workers give up to 16384: let it have less, or leave" },
        { "FAKE_CUDA_SHARED", "0", 512,
          "its kernel asks for 512 bytes of dynamic shared memory, and workers give 0: let it have an array of fixed "
          "size, or leave" },
        { "FAKE_CUDA_REGISTERS", "128", 0, "the driver links no code: update it" }
    };
    if (!have_nvrtc())
        return;
    setenv(cases[_i].name, cases[_i].value, 1);
    folder_make(); /* with a cache of its own */
    check_refused(true, cases[_i].shared, cases[_i].why);
    folder_remove();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("code of users");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, no_source);
    tcase_add_loop_test(c, planned_in_vain, 0, 2);
    tcase_add_loop_test(c, too_much, 0, 4);
    Suite *s = suite_create("code of users");
    suite_add_tcase(s, c);
    return run_suite(s);
}
