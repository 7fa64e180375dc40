/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/conv2d/conv2d_launch.h"

gantry_status gy_plain_conv2d_grad_w_launch(const gantry_launch *l)
{
    enum { X = GY_CONV_PAD + 1, DY, DW };
    gy_conv c = gy_conv_of(l, X, DW, DY);
    return gy_conv_launch(l, &c, c.results, (int64_t)c.channels * c.window_height * c.window_width, X, DY, DW);
}

GY_PLAIN_KERNEL(conv2d_grad_w, NULL, GY_FLOAT_DTYPES, "")
