/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/transpose/transpose.h"
#include <string.h>

enum { BLOCK = 32 }; /* a block of both matrices stays in the nearest cache */

static void move(const gy_transposition *t, const char *x, char *y, int64_t row, int64_t column)
{
    for (int64_t r = row; r < t->rows && r < row + BLOCK; r++)
        for (int64_t c = column; c < t->columns && c < column + BLOCK; c++)
            memcpy(y + (c * t->rows + r) * t->cell, x + (r * t->columns + c) * t->cell, (size_t)t->cell);
}

/* Items are strips of BLOCK rows, those of each array after another. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const gy_transposition *t = data;
    int64_t strips = (t->rows + BLOCK - 1) / BLOCK, bytes = t->rows * t->columns * t->cell;
    for (int64_t i = first; i < last; i++)
        for (int64_t c = 0; c < t->columns; c += BLOCK)
            move(t, (const char *)l->arg[GY_TRANSPOSE_X].data + i / strips * bytes,
                 (char *)l->arg[GY_TRANSPOSE_Y].data + i / strips * bytes, i % strips * BLOCK, c);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_transposition t = gy_transposition_of(l);
    int64_t strips = t.cell ? t.arrays * ((t.rows + BLOCK - 1) / BLOCK) : 0;
    return gantry_launch_cut(l, strips, gy_grain_of_rows(t.columns * BLOCK), piece, &t);
}

static gantry_status check_matrices(const gantry_arg *x, const gantry_arg *y, char *text, size_t size)
{
    if (x->rows == gy_arg_width(y) && y->rows == gy_arg_width(x))
        return GANTRY_OK;
    return gy_check_fail(
        text, size, "\"x\" is %lld x %lld and \"y\" is %lld x %lld; they must be each other's transpose",
        (long long)x->rows, (long long)gy_arg_width(x), (long long)y->rows, (long long)gy_arg_width(y));
}

/* Of axis 1: arrays that are matrices, or have further axes. */
static gantry_status check_arrays(const gantry_arg *x, const gantry_arg *y, char *text, size_t size)
{
    bool fits = gy_arg_size(x) == gy_arg_size(y);
    if (x->rank == 2) /* [arrays * n, heads * d] to [arrays, heads, n, d] */
        fits = fits && y->rank > 3 && y->rows * y->shape[2] == x->rows && y->shape[1] && x->shape[1] % y->shape[1] == 0;
    else if (y->rank == 2)
        fits = fits && x->rank > 2 && y->rows == x->rows * x->shape[2];
    else
        fits = fits && x->rank > 2 && y->rank > 2 && y->rows == x->rows && y->shape[1] == x->shape[2];
    if (fits)
        return GANTRY_OK;
    return gy_check_fail(
        text, size,
        "with \"axis\" 1 \"x\" has %d axes, %lld rows and %lld elements, and \"y\" %d, %lld and %lld; axes 1 "
        "and 2 change places, or it is [arrays * n, heads * d] to [arrays, heads, n, d], or back",
        (int)x->rank, (long long)x->rows, (long long)gy_arg_size(x), (int)y->rank, (long long)y->rows,
        (long long)gy_arg_size(y));
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[GY_TRANSPOSE_X], *y = &l->arg[GY_TRANSPOSE_Y];
    double axis = l->arg[GY_TRANSPOSE_AXIS].number;
    if (axis != 0 && axis != 1)
        return gy_check_fail(text, size,
                             "\"axis\" is %g; it must be 0 or 1, the first of the two axes that change places", axis);
    if (axis == 1)
        return check_arrays(x, y, text, size);
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
    GY_NUMBER_OR("axis", 0, "the first of the two axes; 1: of each of the arrays that axis 0 counts"),
    GY_REGION("x", GANTRY_READ, GY_USUAL_DTYPES | GY_F8_DTYPES, 'T',
              "a matrix; what is behind the two axes is moved whole"),
    GY_REGION("y", GANTRY_WRITE, GY_USUAL_DTYPES | GY_F8_DTYPES, 'T',
              "as many rows as x has columns, and as many elements; or [heads, n, d] of x [n, heads * d]; with axis 1 "
              "[arrays, heads, n, d] of [arrays * n, heads * d], or back"),
};

const gantry_kernel gy_kernel_transpose = {
    .struct_size = sizeof(gantry_kernel),
    .name = "transpose",
    .summary = "y = x with its first two axes exchanged, or those of each of several arrays",
    GANTRY_KERNEL_ARGS(args),
    .flops = "0",
    .bytes = "x.bytes + y.bytes",
    .host = run,
    .check = check
};
