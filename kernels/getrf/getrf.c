/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linalg.h"

enum { A, PIVOTS }; /* arguments */

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *a = &l->arg[A];
    if (a->rows > 0)
        *l->status = gy_linalg_of(l)->getrf(a->dtype, gy_matrix_of(a), l->arg[PIVOTS].data);
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_check_square(l, A, text, size);
    return status ? status : gy_check_pivots(l, A, PIVOTS, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("a", GANTRY_READWRITE, GY_WIDE_DTYPES, 0,
              "square; becomes its factors, the lower one without its diagonal of ones"),
    GY_REGION("pivots", GANTRY_WRITE, GANTRY_DTYPE_BIT(GANTRY_I32), 0,
              "one a row: row i was exchanged with row pivots[i] - 1, in the order of i"),
};

const gantry_kernel gy_kernel_getrf = {
    .struct_size = sizeof(gantry_kernel),
    .name = "getrf",
    .summary = "P a = L U with partial pivoting; status: order of the minor that is singular",
    GANTRY_KERNEL_ARGS(args),
    .flops = "2 * a.size * a.rows // 3",
    .bytes = "2 * a.bytes",
    .host = run,
    .check = check,
    .open = gy_linalg_open_kernel,
    .close = gy_linalg_close
};
