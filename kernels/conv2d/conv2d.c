/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/conv2d/conv2d.h"

enum { X = GY_CONV_PAD + 1, W, Y }; /* arguments */

static gantry_status run(const gantry_launch *l)
{
    return gy_conv_run(l, GY_CONV_FORWARD, X, W, Y);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_conv_check(l, X, W, Y, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_CONV_SCALARS,
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "[images, channels, height, width]"),
    GY_REGION("w", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "[channels of y, channels of x, height, width]"),
    { .name = "y",
      .access = GANTRY_WRITE,
      .accesses = GANTRY_ACCESS_BIT(GANTRY_WRITE) | GANTRY_ACCESS_BIT(GANTRY_SUM),
      .dtypes = GY_FLOAT_DTYPES,
      .same = 'T',
      .summary = "as x, (height + 2 pad - height of w) // stride + 1 pixels high, and so wide; sum adds to it" },
};

const gantry_kernel gy_kernel_conv2d = {
    .struct_size = sizeof(gantry_kernel),
    .name = "conv2d",
    .summary = "y = windows of images times weights, for each pixel of y; not turned around",
    GANTRY_KERNEL_ARGS(args),
    .flops = "2 * y.size * w.size / max(1, w.shape0)",
    .host = run,
    .check = check,
    .open = gy_linalg_open_kernel,
    .close = gy_linalg_close
};
