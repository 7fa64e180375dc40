/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that begin before what is ahead of them in their stream has ended (kernels/begin.cuh): which of those that
 * come next with one handle may, and whether one was made. */
#ifndef GY_CUDA_NVIDIA_EARLY_H
#define GY_CUDA_NVIDIA_EARLY_H

#include "backends/cuda/nvidia/driver.h"

/* Which launches of a call may come early; only while they are captured. */
typedef enum gy_early { GY_EARLY_NONE, GY_EARLY_INSIDE, GY_EARLY_ALL } gy_early; /* INSIDE: all but the first */

typedef struct gy_early_launches {
    bool can; /* the functions begin in that way, and the device takes it */
    bool made;
    gy_early next;
} gy_early_launches;

/* Does the device of the current context take launches in graphs that come early? */
bool gy_early_can(const gy_driver *driver);
/* How those that come next may be made. True if one that could be early was made since it was last called. */
bool gy_early_next(gy_early_launches *launches, gy_early which);
CUresult gy_early_launch(gy_early_launches *launches, const gy_driver *driver, CUfunction function,
                         const unsigned grid[3], const unsigned block[3], unsigned shared, CUstream stream,
                         void **params);

#endif
