/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of the program with CUDA code: an image that is loaded on every GPU that needs it, beside a version for
 * CPUs. The image is PTX here; a file that `nvcc -fatbin` made, or handles of functions (gantry_cuda_code.function), do
 * as well. Where there is no GPU the CPU's version runs. */
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

enum { N = 100000, PARTS = 4 };

/* extern "C" __global__ void clip(const float *x, float *y, float limit, unsigned n): y = min(x, limit) */
static const char clip_ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry clip(.param .u64 x, .param .u64 y, .param .f32 limit, .param .u32 n)\n"
                               "{\n"
                               "    .reg .pred %p;\n"
                               "    .reg .b32 %r<5>;\n"
                               "    .reg .b64 %rd<6>;\n"
                               "    .reg .f32 %f<4>;\n"
                               "    ld.param.u64 %rd1, [x];\n"
                               "    ld.param.u64 %rd2, [y];\n"
                               "    ld.param.f32 %f1, [limit];\n"
                               "    ld.param.u32 %r1, [n];\n"
                               "    mov.u32 %r2, %ctaid.x;\n"
                               "    mov.u32 %r3, %ntid.x;\n"
                               "    mov.u32 %r4, %tid.x;\n"
                               "    mad.lo.u32 %r2, %r2, %r3, %r4;\n"
                               "    setp.ge.u32 %p, %r2, %r1;\n"
                               "    @%p bra done;\n"
                               "    cvta.to.global.u64 %rd1, %rd1;\n"
                               "    cvta.to.global.u64 %rd2, %rd2;\n"
                               "    mul.wide.u32 %rd3, %r2, 4;\n"
                               "    add.u64 %rd4, %rd1, %rd3;\n"
                               "    add.u64 %rd5, %rd2, %rd3;\n"
                               "    ld.global.f32 %f2, [%rd4];\n"
                               "    min.f32 %f3, %f2, %f1;\n"
                               "    st.global.f32 [%rd5], %f3;\n"
                               "done:\n"
                               "    ret;\n"
                               "}\n";

static gantry_status clip(const gantry_launch *l)
{
    const float *x = gantry_launch_arg(l, 0)->data;
    float *y = gantry_launch_arg(l, 1)->data, limit = (float)gantry_launch_arg(l, 2)->number;
    for (int64_t i = 0; i < gantry_launch_arg(l, 3)->integer; i++)
        y[i] = x[i] < limit ? x[i] : limit;
    return GANTRY_OK;
}

/* Arguments are in the order of the function's parameters. Nobody gives `n`: it follows from x. */
static const gantry_kernel_arg clip_args[] = {
    { .name = "x", .access = GANTRY_READ, .dtypes = GANTRY_DTYPE_BIT(GANTRY_F32) },
    { .name = "y", .access = GANTRY_WRITE, .dtypes = GANTRY_DTYPE_BIT(GANTRY_F32) },
    { .name = "limit", .scalar = 1 },
    { .name = "n", .scalar = 1, .optional = 1 },
};
static const gantry_kernel clip_kernel = {
    .struct_size = sizeof(gantry_kernel), .name = "clip", GANTRY_KERNEL_ARGS(clip_args), .flops = "n", .host = clip
};
static const gantry_dtype clip_types[] = { GANTRY_F32, GANTRY_F32, GANTRY_F32, GANTRY_U32 };
static const char *const clip_defaults[] = { NULL, NULL, NULL, "x.size" };

static gantry_graph *build(gantry_buffer *y)
{
    gantry_graph *g = gantry_graph_new("clip");
    gantry_cuda_code code = GANTRY_CUDA_CODE_INIT;
    code.image = clip_ptx;
    code.bytes = sizeof clip_ptx;
    code.grid[0] = "ceil_div(n, 128)";
    code.block[0] = "128";
    code.types = clip_types;
    code.defaults = clip_defaults;
    gantry_graph_add_cuda_kernel(g, &clip_kernel, &code);
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, ((int64_t[]){ N }));
    *y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, ((int64_t[]){ N }));
    gantry_buffer_init_iota(g, x);
    gantry_buffer_output(g, *y);
    gantry_buffer_split(g, x, PARTS);
    gantry_buffer_split(g, *y, PARTS);
    for (int i = 0; i < PARTS; i++) {
        gantry_node k = gantry_graph_kernel(g, "clip", "clip");
        gantry_node_arg(g, k, "x", gantry_part(x, i));
        gantry_node_arg(g, k, "y", gantry_part(*y, i));
        gantry_node_scalar(g, k, "limit", 60000);
    }
    return g;
}

int main(void)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    gantry_buffer y;
    uint64_t ticket, bytes;
    const void *result = NULL;
    int code = 1;

    gantry_graph *g = build(&y);
    if (gantry_machine_detect(&machine, NULL, &err) || gantry_schedule_new(&schedule, g, machine, NULL, &err) ||
        gantry_run_new(&run, schedule, NULL, &err) || gantry_run_start(run, &ticket, &err) ||
        gantry_run_wait(run, ticket, &err) || gantry_run_output(run, y, &result, &bytes, &err) ||
        gantry_run_get_info(run, &info, &err)) {
        char line[1024];
        gantry_error_format(&err, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    } else {
        const float *v = result;
        printf("back end \"%s\": %g %g %g\n", info.backend, (double)v[59999], (double)v[60000], (double)v[N - 1]);
        code = v[59999] == 59999 && v[60001] == 60000 && v[N - 1] == 60000 ? 0 : 1;
    }
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    gantry_graph_free(g);
    return code;
}
