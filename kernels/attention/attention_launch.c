/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention_launch.h"

gantry_status gy_plain_attention_launch(const gantry_launch *l)
{
    enum { Y = GY_ATTENTION_V + 1, LSE };
    return gy_attention_launch_as(l, gy_attention_in_rows(l, GY_ATTENTION_DIM), 0, Y, LSE);
}

GY_PLAIN_KERNEL(attention, NULL, GY_FLOAT_DTYPES, "_64", "_128", "_256")
