/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/manifest.h"

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    switch (l->arg[0].dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        const type *x = l->arg[0].data, *dy = l->arg[1].data;                                                          \
        type *dx = l->arg[2].data;                                                                                     \
        for (int64_t i = first; i < last; i++)                                                                         \
            dx[i] = LOAD(x[i]) > 0 ? dy[i] : STORE((wide)0);                                                           \
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
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "what relu was given"),
    GY_REGION("dy", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "gradient of relu's result"),
    GY_REGION("dx", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "gradient of x"),
};

const gantry_kernel gy_kernel_relu_grad = { .struct_size = sizeof(gantry_kernel),
                                            .name = "relu_grad",
                                            .summary = "dx = x > 0 ? dy : 0",
                                            GANTRY_KERNEL_ARGS(args),
                                            .flops = "x.size",
                                            .bytes = "x.bytes + dy.bytes + dx.bytes",
                                            .host = run,
                                            .check = gy_check_regions_alike,
                                            .formula = "dx = select(x > 0, dy, 0)" };
