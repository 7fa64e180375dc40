/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/norm.h"

static gantry_status run(const gantry_launch *l)
{
    return gy_norm_backward(l, &l->arg[6]);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_check_norm(l, 4, 5, 6, text, size);
    return status ? status : gy_check_same_size(l, 1, 3, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("eps", 1e-5, "that of layernorm"),
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "rows along the last axis, or along all but the first"),
    GY_REGION("gain", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "as many elements as a row of x"),
    GY_REGION("dy", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "gradient of y, as many elements as x"),
    GY_REGION("dx", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "gradient of x"),
    GY_REGION("dgain", GANTRY_SUM, GY_FLOAT_DTYPES, 'T', "gradient of gain"),
    GY_REGION("dbias", GANTRY_SUM, GY_FLOAT_DTYPES, 'T', "gradient of bias"),
};

const gantry_kernel gy_kernel_layernorm_grad = {
    .struct_size = sizeof(gantry_kernel),
    .name = "layernorm_grad",
    .summary = "gradients of layernorm: dx = that of x, dgain += that of gain, dbias += that of bias",
    GANTRY_KERNEL_ARGS(args),
    .flops = "24 * x.size",
    .bytes = "2 * x.bytes + 2 * dy.bytes + gain.bytes + dx.bytes + dgain.bytes + dbias.bytes",
    .scratch = "16 * (x.size // max(1, gain.size))",
    .host = run,
    .check = check
};
