/* SPDX-License-Identifier: Apache-2.0 */
/* A sparse matrix in CSR form times a matrix, cut as that of spmv_csr. */
#include "kernels/manifest.h"
#include <stdbool.h>

enum { ROW, COLUMN, VALUE, X, Y }; /* arguments */

static int64_t index_at(const gantry_arg *a, int64_t i)
{
    return a->dtype == GANTRY_I32 ? ((const int32_t *)a->data)[i] : ((const int64_t *)a->data)[i];
}

enum { BLOCK = 256 }; /* columns whose sums stay in the nearest cache */

#define ADD(dtype, type, wide, LOAD, STORE)                                                                            \
    /* Columns [j, j + count) of row r; false: an entry is not there, or has no row of x. */                           \
    static bool row_##type(const gantry_launch *l, int64_t r, int64_t j, int64_t count)                                \
    {                                                                                                                  \
        const gantry_arg *column = &l->arg[COLUMN], *x = &l->arg[X];                                                   \
        int64_t width = gy_arg_width(x);                                                                               \
        double sum[BLOCK] = { 0 };                                                                                     \
        for (int64_t k = index_at(&l->arg[ROW], r); k < index_at(&l->arg[ROW], r + 1); k++) {                          \
            int64_t c = k >= 0 && k < gy_arg_size(column) ? index_at(column, k) : -1;                                  \
            if (c < 0 || c >= x->rows)                                                                                 \
                return false;                                                                                          \
            double value = (double)((const type *)l->arg[VALUE].data)[k];                                              \
            const type *from = (const type *)x->data + c * width + j;                                                  \
            for (int64_t i = 0; i < count; i++)                                                                        \
                sum[i] += value * (double)from[i];                                                                     \
        }                                                                                                              \
        type *to = (type *)l->arg[Y].data + r * width + j;                                                             \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = (type)sum[i];                                                                                      \
        return true;                                                                                                   \
    }
GY_WIDE_TYPES(ADD)

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const gantry_arg *y = &l->arg[Y];
    int64_t width = gy_arg_width(y);
    for (int64_t r = first; r < last; r++) {
        bool there = true;
        for (int64_t j = 0; j < width && there; j += BLOCK) {
            int64_t count = width - j < BLOCK ? width - j : BLOCK;
            there = y->dtype == GANTRY_F32 ? row_float(l, r, j, count) : row_double(l, r, j, count);
        }
        if (!there) {
            gy_least_row_note(data, r);
            return GANTRY_OK;
        }
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *y = &l->arg[Y];
    gy_least_row wrong = INT64_MAX;
    int64_t entries = gy_arg_size(&l->arg[COLUMN]) / (y->shape[0] > 0 ? y->shape[0] : 1);
    int64_t grain = gy_grain_of_rows((entries + 1) * gy_arg_width(y));
    gantry_status status = gantry_launch_cut(l, y->rows, grain, piece, &wrong);
    gy_least_row_tell(&wrong, l);
    return status;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[X], *y = &l->arg[Y];
    if (l->arg[ROW].rows != y->rows + 1)
        return gy_check_fail(text, size, "\"row_ptr\" has %lld elements and \"y\" %lld rows; it must have one more",
                             (long long)l->arg[ROW].rows, (long long)y->rows);
    if (gy_arg_width(x) != gy_arg_width(y))
        return gy_check_fail(text, size, "\"x\" has %lld columns and \"y\" %lld; they must agree",
                             (long long)gy_arg_width(x), (long long)gy_arg_width(y));
    return gy_check_same_size(l, COLUMN, VALUE, text, size);
}

enum { INDEX = GANTRY_DTYPE_BIT(GANTRY_I32) | GANTRY_DTYPE_BIT(GANTRY_I64) };

static const gantry_kernel_arg args[] = {
    GY_REGION("row_ptr", GANTRY_READ, INDEX, 'I', "where each row begins in col and val; one more than rows"),
    GY_REGION("col", GANTRY_READ, INDEX, 'I', "all of it: column of each entry"),
    GY_REGION("val", GANTRY_READ, GY_WIDE_DTYPES, 'T', "all of it: value of each entry"),
    GY_REGION("x", GANTRY_READ, GY_WIDE_DTYPES, 'T', "matrix, with a row for each column of A"),
    GY_REGION("y", GANTRY_WRITE, GY_WIDE_DTYPES, 'T', "rows of the result"),
};

const gantry_kernel gy_kernel_spmm_csr = {
    .struct_size = sizeof(gantry_kernel),
    .name = "spmm_csr",
    .summary = "y = A x, A in compressed sparse rows, x a matrix; status: number, from 1, of a row with an entry that "
               "is not there",
    GANTRY_KERNEL_ARGS(args),
    .flops = "2 * val.size * y.size // max(1, y.shape0)",
    .bytes = "(val.bytes + col.bytes) * y.rows // max(1, y.shape0) + x.bytes + y.bytes",
    .host = run,
    .check = check
};
