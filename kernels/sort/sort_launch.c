/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/radix_launch.h"
#include "kernels/sort/sort.h"

static gantry_status launch_sort(const gantry_launch *l)
{
    gy_radix r = gy_sort_of(l);
    return gy_radix_launch(l, &r, GY_RADIX_MOVE);
}

GY_CUDA_KERNEL(sort, launch_sort, GY_RADIX_DTYPES, "_count", "_starts", "_move")
