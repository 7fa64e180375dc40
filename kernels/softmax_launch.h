/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of softmax with cross entropy: rows that a warp takes, or a block where they are long. */
#ifndef GY_KERNELS_SOFTMAX_LAUNCH_H
#define GY_KERNELS_SOFTMAX_LAUNCH_H

#include "backends/cuda/kernels/image.h"

enum { GY_SOFTMAX_LONG = 1024, GY_SOFTMAX_WARPS = 8, GY_SOFTMAX_LANES = 32 };

/* Threads of a block, and blocks for `groups` groups of threads. */
static inline gy_grid gy_softmax_grid(int64_t width, int64_t groups)
{
    if (width > GY_SOFTMAX_LONG)
        return (gy_grid){ (unsigned)groups, 1, 1, GY_SOFTMAX_WARPS * GY_SOFTMAX_LANES, 1, 1 };
    return (gy_grid){
        (unsigned)((groups + GY_SOFTMAX_WARPS - 1) / GY_SOFTMAX_WARPS), 1, 1, GY_SOFTMAX_LANES, GY_SOFTMAX_WARPS, 1
    };
}

#endif
