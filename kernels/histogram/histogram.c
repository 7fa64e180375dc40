/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/manifest.h"

#include <stdatomic.h>

enum { BINS = 256 };

static gantry_status count_some(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const uint8_t *x = l->arg[0].data;
    _Atomic uint64_t *total = data;
    uint64_t count[BINS] = { 0 };
    for (int64_t i = first; i < last; i++)
        count[x[i]]++;
    for (int i = 0; i < BINS; i++)
        atomic_fetch_add_explicit(&total[i], count[i], memory_order_relaxed);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    _Atomic uint64_t total[BINS];
    for (int i = 0; i < BINS; i++)
        atomic_init(&total[i], 0);
    gantry_launch_cut(l, gy_arg_size(&l->arg[0]), GY_GRAIN, count_some, total);
    switch (l->arg[1].dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int i = 0; i < BINS; i++)                                                                                 \
            ((type *)l->arg[1].data)[i] = STORE(LOAD(((type *)l->arg[1].data)[i]) + total[i]);                         \
        return GANTRY_OK;
        GY_INTEGER_TYPES(LOOP)
#undef LOOP
    default:
        return GANTRY_E_KERNEL;
    }
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    if (gy_arg_size(&l->arg[1]) == BINS)
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" has %lld elements; it must have %d, one a value", l->arg[1].name,
                         (long long)gy_arg_size(&l->arg[1]), BINS);
}

enum {
    WIDE = GANTRY_DTYPE_BIT(GANTRY_I32) | GANTRY_DTYPE_BIT(GANTRY_U32) | GANTRY_DTYPE_BIT(GANTRY_I64) |
           GANTRY_DTYPE_BIT(GANTRY_U64)
};

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_U8), 0, NULL),
    GY_REGION("out", GANTRY_SUM, WIDE, 0, "256 counts"),
};

const gantry_kernel gy_kernel_histogram = { .struct_size = sizeof(gantry_kernel),
                                            .name = "histogram",
                                            .summary = "out[v] += how often v is in x",
                                            GANTRY_KERNEL_ARGS(args),
                                            .flops = "x.size",
                                            .bytes = "x.bytes + 2 * out.bytes",
                                            .host = run,
                                            .check = check };
