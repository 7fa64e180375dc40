/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linalg.h"

/* A band of rows of the lower triangle: a product, and the triangle at its end. */
static void do_band(const gantry_launch *l, int64_t i)
{
    const gy_linalg *table = gy_linalg_of(l);
    gantry_dtype dtype = l->arg[2].dtype;
    double alpha = l->arg[0].number, beta = l->arg[1].number;
    gy_matrix a = gy_matrix_of(&l->arg[2]), before = a, band = gy_band_of_rows(a, dtype, i);
    gy_matrix c = gy_band_of_rows(gy_matrix_of(&l->arg[3]), dtype, i), corner = gy_band_of_columns(c, dtype, i);
    before.rows = c.columns = i * GY_BAND;
    if (i)
        table->gemm(dtype, 0, 1, alpha, band, before, beta, c);
    table->syrk(dtype, alpha, band, beta, corner);
}

/* The last bands have most of the work, so they are begun first. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    int64_t bands = *(const int64_t *)data;
    for (int64_t i = first; i < last; i++)
        do_band(l, bands - 1 - i);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    int64_t bands = gy_bands_of(l->arg[3].rows);
    return gy_linalg_cut(l, bands, (double)gy_arg_size(&l->arg[2]) * GY_BAND, piece, &bands);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_check_matrix(l, 2, text, size);
    if (!status)
        status = gy_check_square(l, 3, text, size);
    if (status || l->arg[2].rows == l->arg[3].rows)
        return status;
    return gy_check_fail(text, size, "\"a\" has %lld rows and \"c\" %lld; they must agree", (long long)l->arg[2].rows,
                         (long long)l->arg[3].rows);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("alpha", -1, NULL),
    GY_SCALE_OR("beta", 1, NULL),
    GY_REGION("a", GANTRY_READ, GY_WIDE_DTYPES, 'T', "matrix"),
    GY_REGION("c", GANTRY_READWRITE, GY_WIDE_DTYPES, 'T', "square; only its lower triangle is used"),
};

const gantry_kernel gy_kernel_syrk = { .struct_size = sizeof(gantry_kernel),
                                       .name = "syrk",
                                       .summary = "c = alpha a a^T + beta c, lower triangle",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flops = "a.size * c.rows",
                                       .bytes = "a.bytes + 2 * c.bytes",
                                       .host = run,
                                       .check = check,
                                       .open = gy_linalg_open_kernel,
                                       .close = gy_linalg_close };
