/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNELS_CONV2D_LAUNCH_H
#define GY_KERNELS_CONV2D_LAUNCH_H

#include "backends/cuda/kernels/plain.h"
#include "kernels/conv2d/conv2d.h"

/* A product of so many rows and columns, in tiles of conv2d.cuh; the function is given two regions and the result. */
static inline gantry_status gy_conv_launch(const gantry_launch *l, gy_conv *c, int64_t rows, int64_t columns, int from,
                                           int other, int to)
{
    enum { SIDE = 64 };
    const void *x = l->arg[from].data, *y = l->arg[other].data;
    void *z = l->arg[to].data;
    uint32_t across = (uint32_t)gy_tiles(columns, SIDE);
    gy_grid grid = { (unsigned)(across * gy_tiles(rows, SIDE)), 1, 1, GY_IMAGE_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, 0, l->arg[from].dtype, grid, (void *[]){ c, &across, &x, &y, &z });
}

#endif
