/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention.h"

enum { LENGTH = GY_ATTENTION_V + 1, Y }; /* arguments */

static gantry_status run(const gantry_launch *l)
{
    return gy_attention_run(l, LENGTH, Y, 0);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_attention_check_inputs(l, LENGTH, text, size);
    return status ? status : gy_check_same_size(l, GY_ATTENTION_Q, Y, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_ATTENTION_ARGS,
    GY_REGION("length", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_I32), 0,
              "how many keys there are, the others are not read: one number, or one for each so many heads of k"),
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as many elements as q, in its order"),
};

const gantry_kernel gy_kernel_attention_cached = {
    .struct_size = sizeof(gantry_kernel),
    .name = "attention_cached",
    .summary =
        "attention over the first keys of a cache; status: number, from 1, of a length below 0 or above the keys",
    GANTRY_KERNEL_ARGS(args),
    .flops = "4 * " GY_ATTENTION_SCORES,
    .bytes = "q.bytes + k.bytes + v.bytes + y.bytes",
    .host = run,
    .check = check,
    .open = gy_linalg_open_kernel,
    .close = gy_linalg_close
};
