/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/manifest.h"

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    switch (l->arg[1].dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        const type *x = l->arg[1].data;                                                                                \
        type *y = l->arg[2].data;                                                                                      \
        const wide a = GY_SCALAR(wide, l->arg[0]);                                                                     \
        for (int64_t i = first; i < last; i++)                                                                         \
            y[i] = STORE(a * LOAD(x[i]) + LOAD(y[i]));                                                                 \
        return GANTRY_OK;                                                                                              \
    }
        GY_ALL_TYPES(LOOP)
#undef LOOP
    default:
        return GANTRY_E_KERNEL;
    }
}

static gantry_status run(const gantry_launch *l)
{
    return gantry_launch_cut(l, gy_arg_size(&l->arg[1]), GY_GRAIN, piece, NULL);
}

static const gantry_kernel_arg args[] = {
    GY_FACTOR("a", 'T', "factor"),
    GY_REGION("x", GANTRY_READ, 0, 'T', NULL),
    GY_REGION("y", GANTRY_READWRITE, 0, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_saxpy = { .struct_size = sizeof(gantry_kernel),
                                        .name = "saxpy",
                                        .summary = "y = a x + y",
                                        GANTRY_KERNEL_ARGS(args),
                                        .flops = "2 * x.size",
                                        .bytes = "x.bytes + 2 * y.bytes",
                                        .host = run,
                                        .check = gy_check_regions_alike,
                                        .formula = "y = a * x + y" };
