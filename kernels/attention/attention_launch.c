/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention_launch.h"

static gantry_status launch_attention(const gantry_launch *l)
{
    enum { Y = GY_ATTENTION_V + 1 };
    return gy_attention_launch(l, 0, Y);
}

GY_CUDA_KERNEL(attention, launch_attention, GY_FLOAT_DTYPES, "_64", "_128", "_256")
