/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linalg.h"

/* Rows of b have nothing to do with each other. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    gantry_dtype dtype = l->arg[0].dtype;
    for (int64_t i = first; i < last; i++)
        gy_linalg_of(l)->trsm(dtype, gy_matrix_of(&l->arg[0]), gy_band_of_rows(gy_matrix_of(&l->arg[1]), dtype, i));
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    double order = (double)l->arg[0].rows;
    return gy_linalg_cut(l, gy_bands_of(l->arg[1].rows), GY_BAND * order * order, piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_check_square(l, 0, text, size);
    if (!status)
        status = gy_check_matrix(l, 1, text, size);
    if (status || gy_arg_width(&l->arg[1]) == l->arg[0].rows)
        return status;
    return gy_check_fail(text, size, "\"a\" has %lld rows and \"b\" %lld columns; they must agree",
                         (long long)l->arg[0].rows, (long long)gy_arg_width(&l->arg[1]));
}

static const gantry_kernel_arg args[] = {
    GY_REGION("a", GANTRY_READ, GY_WIDE_DTYPES, 'T', "lower triangular"),
    GY_REGION("b", GANTRY_READWRITE, GY_WIDE_DTYPES, 'T', "matrix with as many columns"),
};

const gantry_kernel gy_kernel_trsm = { .struct_size = sizeof(gantry_kernel),
                                       .name = "trsm",
                                       .summary = "b = b a^-T, a lower triangular",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flops = "b.size * a.rows",
                                       .bytes = "a.bytes + 2 * b.bytes",
                                       .host = run,
                                       .check = check,
                                       .open = gy_linalg_open_kernel,
                                       .close = gy_linalg_close };
