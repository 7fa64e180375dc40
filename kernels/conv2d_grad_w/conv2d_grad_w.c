/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/conv2d/conv2d.h"

enum { X = GY_CONV_PAD + 1, DY, DW }; /* arguments */

static gantry_status run(const gantry_launch *l)
{
    return gy_conv_run(l, GY_CONV_GRAD_W, X, DW, DY);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_conv_check(l, X, DW, DY, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_CONV_SCALARS,
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "[images, channels, height, width]"),
    GY_REGION("dy", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "[images, channels, height, width] of y"),
    GY_REGION("dw", GANTRY_SUM, GY_FLOAT_DTYPES, 'T', "[channels of y, channels of x, height, width]"),
};

const gantry_kernel gy_kernel_conv2d_grad_w = { .struct_size = sizeof(gantry_kernel),
                                                .name = "conv2d_grad_w",
                                                .summary = "gradient of conv2d by w, added to dw",
                                                GANTRY_KERNEL_ARGS(args),
                                                .flops = "2 * dy.size * dw.size / max(1, dw.shape0)",
                                                .host = run,
                                                .check = check,
                                                .open = gy_linalg_open_kernel,
                                                .close = gy_linalg_close };
