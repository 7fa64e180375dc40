/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/manifest.h"

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    switch (l->arg[0].dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        const type *x = l->arg[0].data;                                                                                \
        type *y = l->arg[1].data;                                                                                      \
        for (int64_t i = first; i < last; i++) {                                                                       \
            wide v = LOAD(x[i]);                                                                                       \
            y[i] = STORE(v > 0 ? v : (wide)0);                                                                         \
        }                                                                                                              \
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
    return gantry_launch_cut(l, gy_arg_size(&l->arg[0]), GY_GRAIN, piece, NULL);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', NULL),
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_relu = { .struct_size = sizeof(gantry_kernel),
                                       .name = "relu",
                                       .summary = "y = max(x, 0)",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flops = "x.size",
                                       .bytes = "x.bytes + y.bytes",
                                       .host = run,
                                       .check = gy_check_regions_alike,
                                       .formula = "y = select(x > 0, x, 0)" };
