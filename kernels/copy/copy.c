/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/manifest.h"
#include <string.h>

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    memcpy((char *)l->arg[1].data + first, (const char *)l->arg[0].data + first, (size_t)(last - first));
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    return gantry_launch_cut(l, l->arg[0].rows * l->arg[0].row_bytes, GY_GRAIN * 8, piece, NULL);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, 0, 'T', "source"),
    GY_REGION("y", GANTRY_WRITE, 0, 'T', "target, as many elements"),
};

const gantry_kernel gy_kernel_copy = { .struct_size = sizeof(gantry_kernel),
                                       .name = "copy",
                                       .summary = "y = x",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flops = "0",
                                       .bytes = "x.bytes + y.bytes",
                                       .host = run,
                                       .check = gy_check_regions_alike,
                                       .formula = "y = x" };
