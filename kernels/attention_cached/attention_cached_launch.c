/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention_launch.h"

static gantry_status launch_cached(const gantry_launch *l)
{
    enum { LENGTH = GY_ATTENTION_V + 1, Y };
    return gy_attention_launch(l, LENGTH, Y);
}

GY_CUDA_KERNEL(attention_cached, launch_cached, GY_FLOAT_DTYPES, "_64", "_128", "_256")
