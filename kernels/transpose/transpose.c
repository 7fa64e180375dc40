/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/manifest.h"
#include <string.h>

enum { BLOCK = 32 }; /* a block of both matrices stays in the nearest cache */

static void move(const gantry_arg *x, const gantry_arg *y, int64_t row, int64_t column, size_t element)
{
    int64_t rows = x->rows, columns = gy_arg_width(x);
    for (int64_t r = row; r < rows && r < row + BLOCK; r++)
        for (int64_t c = column; c < columns && c < column + BLOCK; c++)
            memcpy((char *)y->data + (size_t)(c * rows + r) * element,
                   (const char *)x->data + (size_t)(r * columns + c) * element, element);
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[0];
    for (int64_t r = 0; r < x->rows; r += BLOCK)
        for (int64_t c = 0; c < gy_arg_width(x); c += BLOCK)
            move(x, &l->arg[1], r, c, gantry_dtype_size(x->dtype));
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[0], *y = &l->arg[1];
    if (x->rank != 2 || y->rank != 2)
        return gy_check_fail(text, size, "\"x\" has %d dimensions and \"y\" %d; both must have 2", (int)x->rank,
                             (int)y->rank);
    if (x->rows != gy_arg_width(y) || y->rows != gy_arg_width(x))
        return gy_check_fail(
            text, size, "\"x\" is %lld x %lld and \"y\" is %lld x %lld; they must be each other's transpose",
            (long long)x->rows, (long long)gy_arg_width(x), (long long)y->rows, (long long)gy_arg_width(y));
    return GANTRY_OK;
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, 0, 'T', "a matrix"),
    GY_REGION("y", GANTRY_WRITE, 0, 'T', "a matrix"),
};

const gantry_kernel gy_kernel_transpose = { sizeof(gantry_kernel),
                                            "transpose",
                                            "y = x transposed",
                                            GY_ARGS(args),
                                            0,
                                            "0",
                                            "x.bytes + y.bytes",
                                            NULL,
                                            run,
                                            check,
                                            NULL,
                                            NULL };
