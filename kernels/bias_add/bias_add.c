/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/manifest.h"

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    int64_t width = gy_arg_width(&l->arg[0]);
    switch (l->arg[0].dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        const type *x = l->arg[0].data, *b = l->arg[1].data;                                                           \
        type *y = l->arg[2].data;                                                                                      \
        for (int64_t r = first; r < last; r++)                                                                         \
            for (int64_t i = 0; i < width; i++)                                                                        \
                y[r * width + i] = STORE(LOAD(x[r * width + i]) + LOAD(b[i]));                                         \
        return GANTRY_OK;                                                                                              \
    }
        GY_FLOAT_TYPES(LOOP)
#undef LOOP
    default:
        return GANTRY_E_KERNEL;
    }
}

static gantry_status run(const gantry_launch *l)
{
    return gantry_launch_cut(l, l->arg[0].rows, gy_grain_of_rows(gy_arg_width(&l->arg[0])), piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    if (gy_arg_width(&l->arg[0]) != gy_arg_size(&l->arg[1]))
        return gy_check_fail(text, size, "a row of \"x\" has %lld elements and \"b\" has %lld; they must agree",
                             (long long)gy_arg_width(&l->arg[0]), (long long)gy_arg_size(&l->arg[1]));
    return gy_check_same_size(l, 0, 2, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "rows"),
    GY_REGION("b", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "as many elements as a row of x"),
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_bias_add = { .struct_size = sizeof(gantry_kernel),
                                           .name = "bias_add",
                                           .summary = "y = x + b, the same b for every row",
                                           GANTRY_KERNEL_ARGS(args),
                                           .flops = "x.size",
                                           .bytes = "x.bytes + b.bytes + y.bytes",
                                           .host = run,
                                           .check = check,
                                           .formula = "y = x + b" };
