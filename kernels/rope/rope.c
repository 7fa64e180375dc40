/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rope/rope.h"
#include <math.h>

/* The element i of each head and the one half a head on are turned. */
static void turn(const gantry_launch *l, int64_t row, int64_t width, int64_t i, double c, double s)
{
    const gantry_arg *x = &l->arg[GY_ROPE_X], *y = &l->arg[GY_ROPE_Y];
    int64_t dim = l->arg[GY_ROPE_DIM].integer, half = dim / 2;
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

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    int64_t length = l->arg[GY_ROPE_LENGTH].integer, dim = l->arg[GY_ROPE_DIM].integer;
    const gy_rope_rows *rows = data;
    for (int64_t r = first; r < last; r++) {
        int64_t position = l->arg[GY_ROPE_FIRST].integer + r % rows->positions;
        position = length > 0 ? position % length : position;
        for (int64_t i = 0; i < dim / 2; i++) {
            double angle = (double)position * pow(l->arg[GY_ROPE_BASE].number, -2 * (double)i / (double)dim);
            turn(l, r, rows->width, i, cos(angle), l->arg[GY_ROPE_SIGN].number * sin(angle));
        }
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    enum { PER_ANGLE = 32 }; /* a power and two sines take as long as so many elements */
    int64_t dim = l->arg[GY_ROPE_DIM].integer;
    gy_rope_rows rows;
    /* check() does not see numbers that change later. */
    if (!gy_rope_rows_of(l, &rows) || dim < 2 || dim % 2 || rows.width % dim)
        return GANTRY_E_KERNEL;
    return gantry_launch_cut(l, rows.rows, gy_grain_of_rows(rows.width + PER_ANGLE * dim), piece, &rows);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *axis = &l->arg[GY_ROPE_AXIS];
    int64_t dim = l->arg[GY_ROPE_DIM].integer;
    int rank = (int)l->arg[GY_ROPE_X].rank;
    gy_rope_rows rows;
    if (axis->number != (double)axis->integer || !gy_rope_rows_of(l, &rows))
        return gy_check_fail(
            text, size,
            "\"axis\" is %g; it must be an axis of \"x\", which has %d: from 0 to %d, or from %d to -1, "
            "which count from the end",
            axis->number, rank, rank - 1, -rank);
    if (dim < 2 || dim % 2 || rows.width % dim)
        return gy_check_fail(text, size,
                             "\"dim\" is %g; it must be even and divide a row of \"x\", which has %lld elements",
                             l->arg[GY_ROPE_DIM].number, (long long)rows.width);
    for (int i = GY_ROPE_FIRST; i <= GY_ROPE_LENGTH; i++) {
        if (l->arg[i].number < 0 || l->arg[i].number != (double)l->arg[i].integer)
            return gy_check_fail(text, size, "\"%s\" is %g; it must be a whole number of at least 0", l->arg[i].name,
                                 l->arg[i].number);
    }
    if (l->arg[GY_ROPE_SIGN].number != 1 && l->arg[GY_ROPE_SIGN].number != -1)
        return gy_check_fail(text, size, "\"sign\" is %g; it must be 1 or -1", l->arg[GY_ROPE_SIGN].number);
    return gy_check_same_size(l, GY_ROPE_X, GY_ROPE_Y, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_NUMBER("dim", "width of a head; a row has one head or several"),
    GY_SCALE_OR("first", 0, "the first position"),
    GY_SCALE_OR("length", 0, "positions begin again after so many; 0: never"),
    GY_SCALE_OR("base", 10000, "pair i turns by position * base^(-2 i / dim)"),
    GY_SCALE_OR("sign", 1, "-1: turns back, which is the gradient, too"),
    GY_NUMBER_OR("axis", 0, "the axis of positions: 1 of [heads, tokens, dim]; from the end if negative"),
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "a row for each position, or several arrays of such rows"),
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_rope = {
    .struct_size = sizeof(gantry_kernel),
    .name = "rope",
    .summary = "rotary positions: elements i and i + dim / 2 of each head are turned by an angle",
    GANTRY_KERNEL_ARGS(args),
    .flops = "6 * x.size",
    .bytes = "x.bytes + y.bytes",
    .host = run,
    .check = check
};
