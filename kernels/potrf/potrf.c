/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linalg.h"

static gantry_status run(const gantry_launch *l)
{
    *l->status = gy_linalg_of(l)->potrf(l->arg[0].dtype, gy_matrix_of(&l->arg[0]));
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_square(l, 0, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("a", GANTRY_READWRITE, GY_WIDE_DTYPES, 0,
              "symmetric positive definite; its lower triangle becomes the factor"),
};

const gantry_kernel gy_kernel_potrf = { .struct_size = sizeof(gantry_kernel),
                                        .name = "potrf",
                                        .summary =
                                            "Cholesky factor, lower; status: order of the minor that is not positive",
                                        GANTRY_KERNEL_ARGS(args),
                                        .flops = "a.size * a.rows // 3",
                                        .bytes = "2 * a.bytes",
                                        .host = run,
                                        .check = check,
                                        .open = gy_linalg_open_kernel,
                                        .close = gy_linalg_close };
