/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/manifest.h"
#include <math.h>

enum { DIM, FIRST, LENGTH, BASE, SIGN, X, Y }; /* arguments */

/* The element i of each head and the one half a head on are turned. */
static void turn(const gantry_launch *l, int64_t row, int64_t i, double c, double s)
{
    const gantry_arg *x = &l->arg[X], *y = &l->arg[Y];
    int64_t width = gy_arg_width(x), dim = l->arg[DIM].integer, half = dim / 2;
    switch (x->dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int64_t a = row * width + i; a < (row + 1) * width; a += dim) {                                           \
            double u = (double)LOAD(((const type *)x->data)[a]), v = (double)LOAD(((const type *)x->data)[a + half]);  \
            ((type *)y->data)[a] = STORE((wide)(u * c - v * s));                                                       \
            ((type *)y->data)[a + half] = STORE((wide)(v * c + u * s));                                                \
        }                                                                                                              \
        break;
        GY_FLOAT_TYPES(LOOP)
#undef LOOP
    default:
        break;
    }
}

static gantry_status run(const gantry_launch *l)
{
    int64_t length = l->arg[LENGTH].integer, dim = l->arg[DIM].integer;
    if (dim < 2 || dim % 2 || gy_arg_width(&l->arg[X]) % dim) /* check() does not see numbers that change later */
        return GANTRY_E_KERNEL;
    for (int64_t r = 0; r < l->arg[X].rows; r++) {
        int64_t position = l->arg[FIRST].integer + r;
        position = length > 0 ? position % length : position;
        for (int64_t i = 0; i < dim / 2; i++) {
            double angle = (double)position * pow(l->arg[BASE].number, -2 * (double)i / (double)dim);
            turn(l, r, i, cos(angle), l->arg[SIGN].number * sin(angle));
        }
    }
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    int64_t width = gy_arg_width(&l->arg[X]), dim = l->arg[DIM].integer;
    if (dim < 2 || dim % 2 || width % dim)
        return gy_check_fail(text, size,
                             "\"dim\" is %g; it must be even and divide a row of \"x\", which has %lld elements",
                             l->arg[DIM].number, (long long)width);
    for (int i = FIRST; i <= LENGTH; i++) {
        if (l->arg[i].number < 0 || l->arg[i].number != (double)l->arg[i].integer)
            return gy_check_fail(text, size, "\"%s\" is %g; it must be a whole number of at least 0", l->arg[i].name,
                                 l->arg[i].number);
    }
    if (l->arg[SIGN].number != 1 && l->arg[SIGN].number != -1)
        return gy_check_fail(text, size, "\"sign\" is %g; it must be 1 or -1", l->arg[SIGN].number);
    return gy_check_same_size(l, X, Y, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_NUMBER("dim", "width of a head; a row has one head or several"),
    GY_SCALE_OR("first", 0, "position of the first row"),
    GY_SCALE_OR("length", 0, "positions begin again after so many; 0: never"),
    GY_SCALE_OR("base", 10000, "pair i turns by position * base^(-2 i / dim)"),
    GY_SCALE_OR("sign", 1, "-1: turns back, which is the gradient, too"),
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "a row for each position"),
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_rope = {
    sizeof(gantry_kernel),
    "rope",
    "rotary positions: elements i and i + dim / 2 of each head are turned by an angle",
    GY_ARGS(args),
    0,
    "6 * x.size",
    "x.bytes + y.bytes",
    NULL,
    run,
    check,
    NULL,
    NULL
};
