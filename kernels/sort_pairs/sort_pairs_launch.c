/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/radix_launch.h"
#include "kernels/sort_pairs/sort_pairs.h"

static gantry_status launch_sort_pairs(const gantry_launch *l)
{
    gy_radix r = gy_sort_pairs_of(l);
    return gy_radix_launch(l, &r, r.value_bytes == 4 ? GY_RADIX_MOVE : GY_RADIX_MOVE + 1);
}

GY_CUDA_KERNEL(sort_pairs, launch_sort_pairs, GY_RADIX_DTYPES, "_count", "_starts", "_move4", "_move8")
