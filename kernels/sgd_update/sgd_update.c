/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/manifest.h"

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    switch (l->arg[1].dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        type *w = l->arg[1].data;                                                                                      \
        const type *g = l->arg[2].data;                                                                                \
        const wide lr = (wide)l->arg[0].number;                                                                        \
        for (int64_t i = first; i < last; i++)                                                                         \
            w[i] = STORE(LOAD(w[i]) - lr * LOAD(g[i]));                                                                \
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
    return gantry_launch_cut(l, gy_arg_size(&l->arg[1]), GY_GRAIN, piece, NULL);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE("lr", "learning rate"),
    GY_REGION("w", GANTRY_READWRITE, GY_FLOAT_DTYPES, 'T', "weights"),
    GY_REGION("g", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "their gradient, as many elements"),
};

const gantry_kernel gy_kernel_sgd_update = { .struct_size = sizeof(gantry_kernel),
                                             .name = "sgd_update",
                                             .summary = "w = w - lr g",
                                             GANTRY_KERNEL_ARGS(args),
                                             .flops = "2 * w.size",
                                             .bytes = "2 * w.bytes + g.bytes",
                                             .host = run,
                                             .check = gy_check_regions_alike,
                                             .formula = "w = w - lr * g" };
