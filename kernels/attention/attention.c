/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention.h"

enum { Y = GY_ATTENTION_V + 1 }; /* arguments */

static gantry_status run(const gantry_launch *l)
{
    return gy_attention_run(l, 0, Y);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_attention_check(l, 0, Y, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_ATTENTION_ARGS,
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as q"),
};

const gantry_kernel gy_kernel_attention = { .struct_size = sizeof(gantry_kernel),
                                            .name = "attention",
                                            .summary = "y = softmax(scale q k^T) v, for each head",
                                            GANTRY_KERNEL_ARGS(args),
                                            .flops = "4 * " GY_ATTENTION_SCORES,
                                            .bytes = "q.bytes + k.bytes + v.bytes + y.bytes",
                                            .host = run,
                                            .check = check,
                                            .open = gy_linalg_open_kernel,
                                            .close = gy_linalg_close };
