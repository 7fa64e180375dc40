/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/conv2d/conv2d_launch.h"

gantry_status gy_plain_conv2d_grad_x_launch(const gantry_launch *l)
{
    enum { W = GY_CONV_PAD + 1, DY, DX };
    gy_conv c = gy_conv_of(l, DX, W, DY);
    return gy_conv_launch(l, &c, c.channels, (int64_t)c.images * c.height * c.width, W, DY, DX);
}

GY_PLAIN_KERNEL(conv2d_grad_x, NULL, GY_FLOAT_DTYPES, "")
