/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linalg.h"
#include <string.h>

enum { A, PIVOTS, B }; /* arguments */

static void exchange(char *x, char *y, size_t bytes)
{
    char kept[256];
    for (size_t done = 0; done < bytes && x != y; done += sizeof kept) {
        size_t now = bytes - done < sizeof kept ? bytes - done : sizeof kept;
        memcpy(kept, x + done, now);
        memcpy(x + done, y + done, now);
        memcpy(y + done, kept, now);
    }
}

/* The number of the first pivot that is no row, from 1; 0: all are. */
static int32_t exchange_rows(const gantry_arg *b, const int32_t *pivots, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (pivots[i] < 1 || pivots[i] > n)
            return (int32_t)(i + 1);
    for (int64_t i = 0; i < n; i++)
        exchange((char *)b->data + i * b->row_bytes, (char *)b->data + (pivots[i] - 1) * b->row_bytes,
                 (size_t)b->row_bytes);
    return 0;
}

/* Columns of b have nothing to do with each other. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    gantry_dtype dtype = l->arg[A].dtype;
    for (int64_t i = first; i < last; i++)
        gy_linalg_of(l)->getrs(dtype, gy_matrix_of(&l->arg[A]), gy_band_of_columns(gy_matrix_of(&l->arg[B]), dtype, i));
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    double order = (double)l->arg[A].rows;
    const gantry_arg *a = &l->arg[A], *b = &l->arg[B];
    if (b->rows == 0 || b->row_bytes == 0)
        return GANTRY_OK;
    *l->status = exchange_rows(b, l->arg[PIVOTS].data, a->rows);
    if (*l->status)
        return GANTRY_OK;
    return gy_linalg_cut(l, gy_bands_of(gy_arg_width(b)), 2 * GY_BAND * order * order, piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *a = &l->arg[A], *b = &l->arg[B];
    gantry_status status = gy_check_square(l, A, text, size);
    status = status ? status : gy_check_pivots(l, A, PIVOTS, text, size);
    if (status)
        return status;
    if (b->rank > 2)
        return gy_check_fail(text, size,
                             "\"b\" has %d dimensions; it must be a vector, or a matrix with a column for "
                             "each system",
                             (int)b->rank);
    if (b->rows == a->rows)
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"a\" has %lld rows and \"b\" %lld; they must agree", (long long)a->rows,
                         (long long)b->rows);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("a", GANTRY_READ, GY_WIDE_DTYPES, 'T', "factors, as getrf leaves them"),
    GY_REGION("pivots", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_I32), 0, "as getrf leaves them: from 1"),
    GY_REGION("b", GANTRY_READWRITE, GY_WIDE_DTYPES, 'T', "right sides, a column each; become the solutions"),
};

const gantry_kernel gy_kernel_getrs = {
    .struct_size = sizeof(gantry_kernel),
    .name = "getrs",
    .summary = "b = a^-1 b, from the factors of getrf; status: number of a pivot that is no row",
    GANTRY_KERNEL_ARGS(args),
    .flops = "2 * a.rows * b.size",
    .bytes = "a.bytes + 2 * b.bytes",
    .host = run,
    .check = check,
    .open = gy_linalg_open_kernel,
    .close = gy_linalg_close
};
