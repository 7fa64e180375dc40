/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/transpose/transpose.h"
#include <stdbool.h>
#include <string.h>

enum { BLOCK = 32 }; /* a block of both matrices stays in the nearest cache */

static void move(const gantry_arg *x, const gantry_arg *y, int64_t row, int64_t column, int64_t columns, size_t cell)
{
    int64_t rows = x->rows;
    for (int64_t r = row; r < rows && r < row + BLOCK; r++)
        for (int64_t c = column; c < columns && c < column + BLOCK; c++)
            memcpy((char *)y->data + (size_t)(c * rows + r) * cell,
                   (const char *)x->data + (size_t)(r * columns + c) * cell, cell);
}

/* Items are strips of BLOCK rows of x. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    const gantry_arg *x = &l->arg[0];
    int64_t columns = gy_transpose_columns(l), cell = columns ? x->row_bytes / columns : 0;
    for (int64_t r = first * BLOCK; r < x->rows && r < last * BLOCK; r += BLOCK)
        for (int64_t c = 0; c < columns; c += BLOCK)
            move(x, &l->arg[1], r, c, columns, (size_t)cell);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    int64_t strips = (l->arg[0].rows + BLOCK - 1) / BLOCK;
    return gantry_launch_cut(l, strips, gy_grain_of_rows(gy_arg_width(&l->arg[0]) * BLOCK), piece, NULL);
}

static gantry_status check_matrices(const gantry_arg *x, const gantry_arg *y, char *text, size_t size)
{
    if (x->rows == gy_arg_width(y) && y->rows == gy_arg_width(x))
        return GANTRY_OK;
    return gy_check_fail(
        text, size, "\"x\" is %lld x %lld and \"y\" is %lld x %lld; they must be each other's transpose",
        (long long)x->rows, (long long)gy_arg_width(x), (long long)y->rows, (long long)gy_arg_width(y));
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[0], *y = &l->arg[1];
    if (x->rank < 2 || y->rank < 2)
        return gy_check_fail(text, size, "\"x\" has %d dimensions and \"y\" %d; both must have 2 or more", (int)x->rank,
                             (int)y->rank);
    if (x->rank == 2 && y->rank == 2)
        return check_matrices(x, y, text, size);
    bool splits = x->rank == 2 && y->shape[1] == x->rows && y->rows > 0 && x->shape[1] % y->rows == 0;
    if ((splits || y->rows == x->shape[1]) && gy_arg_size(x) == gy_arg_size(y))
        return GANTRY_OK;
    if (x->rank == 2)
        return gy_check_fail(
            text, size,
            "\"x\" is %lld x %lld and \"y\" has %lld rows of %lld rows of further axes, %lld elements; \"y\" must "
            "have as many rows as \"x\" has columns, or as many as its columns are divided by: [n, heads * d] "
            "to [heads, n, d]",
            (long long)x->rows, (long long)x->shape[1], (long long)y->rows, (long long)y->shape[1],
            (long long)gy_arg_size(y));
    return gy_check_fail(text, size,
                         "\"x\" has %lld x %lld rows of further axes and %lld elements, and \"y\" has %lld rows and "
                         "%lld elements; \"y\" must have as many rows as \"x\" has columns, and as many elements",
                         (long long)x->rows, (long long)x->shape[1], (long long)gy_arg_size(x), (long long)y->rows,
                         (long long)gy_arg_size(y));
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, 0, 'T', "a matrix; what is behind its second axis is moved whole"),
    GY_REGION("y", GANTRY_WRITE, 0, 'T',
              "as many rows as x has columns, and as many elements; or [heads, n, d] of x [n, heads * d]"),
};

const gantry_kernel gy_kernel_transpose = { sizeof(gantry_kernel),
                                            "transpose",
                                            "y = x with its first two axes exchanged",
                                            GY_ARGS(args),
                                            0,
                                            "0",
                                            "x.bytes + y.bytes",
                                            NULL,
                                            run,
                                            check,
                                            NULL,
                                            NULL };
