/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention.h"

enum { Y = GY_ATTENTION_V + 1, LSE }; /* arguments */

static gantry_status run(const gantry_launch *l)
{
    gy_attention a = gy_attention_in_rows(l, GY_ATTENTION_DIM);
    return gy_attention_run_as(l, &a, 0, Y, LSE);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    static const int as[] = { [GY_ATTENTION_Q] = GY_ATTENTION_Q, GY_ATTENTION_K, GY_ATTENTION_K, GY_ATTENTION_Q };
    return gy_attention_check_all(l, Y, as, GY_ATTENTION_DIM, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_ATTENTION_ARGS,
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as q"),
    GY_ATTENTION_LSE_ARG(GANTRY_WRITE, "logarithm of the sum of exponentials of each query's scaled scores"),
    GY_ATTENTION_ROWS_ARGS,
};

const gantry_kernel gy_kernel_attention = { .struct_size = sizeof(gantry_kernel),
                                            .name = "attention",
                                            .summary = "y = softmax(scale q k^T) v, for each head",
                                            GANTRY_KERNEL_ARGS(args),
                                            .flops = "4 * " GY_ATTENTION_SCORES_IN_ROWS,
                                            .bytes = "q.bytes + k.bytes + v.bytes + y.bytes + lse.bytes",
                                            .host = run,
                                            .check = check,
                                            .open = gy_linalg_open_kernel,
                                            .close = gy_linalg_close };
