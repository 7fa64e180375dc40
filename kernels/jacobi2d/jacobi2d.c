/* SPDX-License-Identifier: Apache-2.0 */
/* One step of Jacobi's method for Laplace's equation on a grid: the mean of the four neighbours; the border stays. */
#include "kernels/manifest.h"
#include <string.h>

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    int64_t columns = gy_arg_width(in), last = in->shape[0] - 1;
    for (int64_t row = out->first_row; row < out->first_row + out->rows; row++) {
        const char *from = (const char *)in->data + (row - in->first_row) * in->row_bytes;
        char *to = (char *)out->data + (row - out->first_row) * out->row_bytes;
        memcpy(to, from, (size_t)in->row_bytes);
        if (row == 0 || row == last)
            continue;
        switch (in->dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        const type *x = (const type *)(const void *)from;                                                              \
        type *y = (type *)(void *)to;                                                                                  \
        for (int64_t i = 1; i < columns - 1; i++)                                                                      \
            y[i] = (type)0.25 * ((x[i - columns] + x[i + columns]) + (x[i - 1] + x[i + 1]));                           \
        break;                                                                                                         \
    }
            GY_WIDE_TYPES(LOOP)
#undef LOOP
        default:
            return GANTRY_E_KERNEL;
        }
    }
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[0], *y = &l->arg[1];
    if (x->rank != 2 || y->rank != 2 || x->shape[0] != y->shape[0] || x->shape[1] != y->shape[1])
        return gy_check_fail(text, size, "\"x\" and \"y\" must be two grids of the same shape");
    int64_t first = y->first_row > 0 ? y->first_row - 1 : 0, last = y->first_row + y->rows;
    last = last < y->shape[0] ? last + 1 : last;
    if (y->rows == 0 || (x->first_row <= first && x->first_row + x->rows >= last))
        return GANTRY_OK;
    return gy_check_fail(
        text, size, "\"x\" has rows %lld to %lld and \"y\" needs %lld to %lld; add a halo of one row: x[i]~1",
        (long long)x->first_row, (long long)(x->first_row + x->rows), (long long)first, (long long)last);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, GY_WIDE_DTYPES, 'T', "grid; the rows of y and one more on each side"),
    GY_REGION("y", GANTRY_WRITE, GY_WIDE_DTYPES, 'T', "grid after the step"),
};

const gantry_kernel gy_kernel_jacobi2d = { sizeof(gantry_kernel),
                                           "jacobi2d",
                                           "y = mean of x's four neighbours, border kept",
                                           GY_ARGS(args),
                                           0,
                                           "4 * y.size",
                                           "x.bytes + y.bytes",
                                           NULL,
                                           run,
                                           check,
                                           NULL,
                                           NULL };
