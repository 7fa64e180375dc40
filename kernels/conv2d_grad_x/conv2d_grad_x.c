/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/conv2d/conv2d.h"

enum { W = GY_CONV_PAD + 1, DY, DX }; /* arguments */

static gantry_status run(const gantry_launch *l)
{
    return gy_conv_run(l, GY_CONV_GRAD_X, DX, W, DY);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_conv_check(l, DX, W, DY, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_CONV_SCALARS,
    GY_REGION("w", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "[channels of y, channels of x, height, width]"),
    GY_REGION("dy", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "[images, channels, height, width] of y"),
    GY_REGION("dx", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "[images, channels, height, width] of x"),
};

const gantry_kernel gy_kernel_conv2d_grad_x = { .struct_size = sizeof(gantry_kernel),
                                                .name = "conv2d_grad_x",
                                                .summary = "gradient of conv2d by x",
                                                GANTRY_KERNEL_ARGS(args),
                                                .flops = "2 * dy.size * w.size / max(1, w.shape0)",
                                                .host = run,
                                                .check = check,
                                                .open = gy_linalg_open_kernel,
                                                .close = gy_linalg_close };
