/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/argsort/argsort.h"
#include "kernels/radix_launch.h"

static gantry_status launch_argsort(const gantry_launch *l)
{
    gy_radix r = gy_argsort_of(l);
    return gy_radix_launch(l, &r, r.value_bytes == 4 ? GY_RADIX_MOVE : GY_RADIX_MOVE + 1);
}

GY_CUDA_KERNEL(argsort, launch_argsort, GY_RADIX_DTYPES, "_count", "_starts", "_move4", "_move8")
