/* SPDX-License-Identifier: Apache-2.0 */
/* A sparse matrix in CSR form times a vector. The rows are those of y; rows of the matrix may be cut with
 * row_ptr{a:b+1}. */
#include "kernels/manifest.h"

static int64_t index_at(const gantry_arg *a, int64_t i)
{
    return a->dtype == GANTRY_I32 ? ((const int32_t *)a->data)[i] : ((const int64_t *)a->data)[i];
}

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const gantry_arg *row = &l->arg[0], *column = &l->arg[1], *val = &l->arg[2], *vec = &l->arg[3], *out = &l->arg[4];
    for (int64_t r = first; r < last; r++) {
        double total = 0;
        for (int64_t k = index_at(row, r); k < index_at(row, r + 1); k++) {
            int64_t c = k >= 0 && k < gy_arg_size(column) ? index_at(column, k) : -1;
            if (c < 0 || c >= gy_arg_size(vec)) {
                gy_least_row_note(data, r);
                return GANTRY_E_KERNEL;
            }
            total += val->dtype == GANTRY_F32
                         ? (double)((const float *)val->data)[k] * (double)((const float *)vec->data)[c]
                         : ((const double *)val->data)[k] * ((const double *)vec->data)[c];
        }
        if (out->dtype == GANTRY_F32)
            ((float *)out->data)[r] = (float)total;
        else
            ((double *)out->data)[r] = total;
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *column = &l->arg[1], *out = &l->arg[4];
    gy_least_row wrong = INT64_MAX;
    int64_t entries = gy_arg_size(column) / (out->shape[0] > 0 ? out->shape[0] : 1);
    gantry_status status = gantry_launch_cut(l, out->rows, gy_grain_of_rows(4 * (entries + 1)), piece, &wrong);
    gy_least_row_tell(&wrong, l);
    return status;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    if (l->arg[0].rows != l->arg[4].rows + 1)
        return gy_check_fail(text, size, "\"row_ptr\" has %lld elements and \"y\" %lld rows; it must have one more",
                             (long long)l->arg[0].rows, (long long)l->arg[4].rows);
    return gy_check_same_size(l, 1, 2, text, size);
}

enum { INDEX = GANTRY_DTYPE_BIT(GANTRY_I32) | GANTRY_DTYPE_BIT(GANTRY_I64) };

static const gantry_kernel_arg args[] = {
    GY_REGION("row_ptr", GANTRY_READ, INDEX, 'I', "where each row begins in col and val; one more than rows"),
    GY_REGION("col", GANTRY_READ, INDEX, 'I', "all of it: column of each entry"),
    GY_REGION("val", GANTRY_READ, GY_WIDE_DTYPES, 'T', "all of it: value of each entry"),
    GY_REGION("x", GANTRY_READ, GY_WIDE_DTYPES, 'T', "vector"),
    GY_REGION("y", GANTRY_WRITE, GY_WIDE_DTYPES, 'T', "rows of the result"),
};

const gantry_kernel gy_kernel_spmv_csr = {
    .struct_size = sizeof(gantry_kernel),
    .name = "spmv_csr",
    .summary = "y = A x, A in compressed sparse rows; status: number of a row with an entry that is not there",
    GANTRY_KERNEL_ARGS(args),
    .flops = "2 * val.size * y.rows // max(1, y.shape0)",
    .bytes = "(val.bytes + col.bytes) * y.rows // max(1, y.shape0) + x.bytes + y.bytes",
    .host = run,
    .check = check
};
