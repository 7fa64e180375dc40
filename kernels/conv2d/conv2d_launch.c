/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/conv2d/conv2d_launch.h"

gantry_status gy_plain_conv2d_launch(const gantry_launch *l)
{
    enum { X = GY_CONV_PAD + 1, W, Y };
    gy_conv c = gy_conv_of(l, X, W, Y);
    c.adds = l->arg[Y].access == GANTRY_SUM;
    return gy_conv_launch(l, &c, c.results, (int64_t)c.images * c.high * c.wide, X, W, Y);
}

GY_PLAIN_KERNEL(conv2d, NULL, GY_FLOAT_DTYPES, "")
