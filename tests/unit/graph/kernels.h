/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for the tests of this folder: manifests with every feature, and no code that does anything. */
#ifndef TEST_UNIT_GRAPH_KERNELS_H
#define TEST_UNIT_GRAPH_KERNELS_H

#include "graph/graph.h"
#include "unit/base/suite.h"
#include <stdio.h>

static inline gantry_status do_nothing(const gantry_launch *launch)
{
    (void)launch;
    return GANTRY_OK;
}

#define FLOATS (GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64))

/* y = a x, in rows; refuses a = 13 and x longer than y. */
static inline gantry_status check_scale(const gantry_launch *l, char *text, size_t size)
{
    if (l->arg[0].number == 13) {
        snprintf(text, size, "a is 13 in iteration %lld", (long long)l->iteration);
        return GANTRY_E_GRAPH;
    }
    if (l->arg[1].rows > l->arg[2].rows) {
        snprintf(text, size, "x has %lld rows and y has %lld", (long long)l->arg[1].rows, (long long)l->arg[2].rows);
        return GANTRY_E_GRAPH;
    }
    return GANTRY_OK;
}

static const gantry_kernel_arg scale_args[] = {
    { .name = "a", .scalar = 1, .optional = 1, .fallback = 2.5 },
    { .name = "x", .access = GANTRY_READ, .dtypes = FLOATS, .same = 'T' },
    { .name = "y",
      .access = GANTRY_WRITE,
      .accesses = GANTRY_ACCESS_BIT(GANTRY_WRITE) | GANTRY_ACCESS_BIT(GANTRY_SUM),
      .dtypes = FLOATS,
      .same = 'T' },
};
static const gantry_kernel scale_kernel = {
    .struct_size = sizeof(gantry_kernel),
    .name = "t_scale",
    GANTRY_KERNEL_ARGS(scale_args),
    .flops = "x.size + 7 * y.count",
    .bytes = "x.bytes + y.bytes + 1000 * a",
    .scratch = "8 * x.rows + x.shape0 * x.shape1",
    .host = do_nothing,
    .check = check_scale,
};

/* A list of tiles into one tile, with a required number and whatever is read besides. */
static const gantry_kernel_arg gather_args[] = {
    { .name = "tiles", .access = GANTRY_READ, .list = 1 },
    { .name = "to", .access = GANTRY_READWRITE },
    { .name = "n", .scalar = 1 },
};
static const gantry_kernel gather_kernel = {
    .struct_size = sizeof(gantry_kernel),
    .name = "t_gather",
    GANTRY_KERNEL_ARGS(gather_args),
    .flags = GANTRY_KERNEL_VARIADIC,
    .flops = "n * tiles.count",
    .host = do_nothing,
};

static const gantry_kernel gpu_kernel = {
    .struct_size = sizeof(gantry_kernel),
    .name = "t_gpu",
    .flags = GANTRY_KERNEL_NO_CPU,
};

/* In place of the library's table, sorted by name: it is visible, so calls within gantry_internal reach it. */
GANTRY_API const gantry_kernel *const *gy_builtin_kernels(size_t *count)
{
    static const gantry_kernel *const kernels[] = { &gather_kernel, &gpu_kernel, &scale_kernel };
    *count = 3;
    return kernels;
}

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

#endif
