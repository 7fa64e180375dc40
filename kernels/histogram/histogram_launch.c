/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"

/* A block counts so much before it adds up, or there would be more adding up than counting. */
static gantry_status launch_histogram(const gantry_launch *l)
{
    enum { THREADS = 512, BYTES_OF_BLOCK = 1 << 16, MOST_BLOCKS = 1024 }; /* threads of histogram.cu */
    const void *x = l->arg[0].data;
    void *out = l->arg[1].data;
    int64_t n = gy_arg_size(&l->arg[0]), blocks = (n + BYTES_OF_BLOCK - 1) / BYTES_OF_BLOCK;
    gantry_dtype dtype = gantry_dtype_size(l->arg[1].dtype) == 4 ? GANTRY_U32 : GANTRY_U64;
    gy_grid grid = { (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, 1, THREADS, 1, 1 };
    return gy_cuda_image_launch(l, 0, dtype, grid, (void *[]){ &x, &out, &n });
}

GY_CUDA_KERNEL(histogram, launch_histogram, GANTRY_DTYPE_BIT(GANTRY_U32) | GANTRY_DTYPE_BIT(GANTRY_U64), "")
