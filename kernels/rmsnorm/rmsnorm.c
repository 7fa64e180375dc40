/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/norm.h"

static gantry_status run(const gantry_launch *l)
{
    return gy_norm_forward(l, NULL, &l->arg[3]);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_norm(l, 3, 2, 2, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("eps", 1e-5, "what is added to the mean of squares"),
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "rows along the last axis, or along all but the first"),
    GY_REGION("gain", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "as many elements as a row of x"),
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_rmsnorm = { .struct_size = sizeof(gantry_kernel),
                                          .name = "rmsnorm",
                                          .summary = "y = x / sqrt(mean(x * x) + eps) * gain, for each row",
                                          GANTRY_KERNEL_ARGS(args),
                                          .flops = "5 * x.size",
                                          .bytes = "x.bytes + gain.bytes + y.bytes",
                                          .host = run,
                                          .check = check };
