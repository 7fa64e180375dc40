/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows.h"
#include <math.h>

enum { SCALE, CAUSAL, FIRST, X, Y }; /* arguments */

/* Columns of row r that count. */
static int64_t seen(const gantry_launch *l, int64_t r)
{
    int64_t width = gy_row_width(&l->arg[X]);
    return l->arg[CAUSAL].integer ? (l->arg[FIRST].integer + r) % width + 1 : width;
}

static void softmax_row(const gantry_launch *l, int64_t r)
{
    const gantry_arg *x = &l->arg[X];
    int64_t first = r * gy_row_width(x), end = first + gy_row_width(x), stop = first + seen(l, r);
    double scale = l->arg[SCALE].number, largest = -INFINITY;
    int lanes = gy_lanes_of(gy_row_width(x)), pack = gy_row_pack(x), most = lanes * pack;
    gy_lanes sum = { { 0 } };
    gy_packs v;
    for (int64_t i = first; i < stop; i += most) {
        int count = gy_packs_load(&v, most, x, i, stop);
        for (int k = 0; k < count; k++)
            largest = fmax(largest, scale * v.at[k]);
    }
    for (int64_t i = first; i < stop; i += most) {
        int count = gy_packs_load(&v, most, x, i, stop);
        for (int k = 0; k < count; k++)
            sum.at[k / pack] += exp(scale * v.at[k] - largest);
    }
    double total = gy_lanes_sum(&sum, lanes);
    for (int64_t i = first; i < end; i += most) {
        int count = gy_packs_load(&v, most, x, i, end);
        for (int k = 0; k < count; k++)
            v.at[k] = i + k < stop ? exp(scale * v.at[k] - largest) / total : 0;
        gy_packs_store(&v, &l->arg[Y], i, count);
    }
}

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    for (int64_t r = first; r < last; r++)
        softmax_row(l, r);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    int64_t width = gy_row_width(&l->arg[X]);
    return gantry_launch_cut(l, gy_row_count(&l->arg[X], width), gy_grain_of_rows(width * 8), piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *causal = &l->arg[CAUSAL], *first = &l->arg[FIRST];
    if (causal->number != 0 && causal->number != 1)
        return gy_check_fail(text, size, "\"causal\" is %g; it must be 0 or 1", causal->number);
    if (first->number < 0 || first->number != (double)first->integer)
        return gy_check_fail(text, size, "\"first\" is %g; it must be a whole number of at least 0", first->number);
    return gy_check_same_size(l, X, Y, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("scale", 1, "factor of x, such as 1 / sqrt(width of a head)"),
    GY_NUMBER_OR("causal", 0, "1: row r has columns up to (first + r) % columns alone, and 0 in the others"),
    GY_NUMBER_OR("first", 0, "position of the first row, where causal is 1"),
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "rows along the last axis"),
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_softmax = { .struct_size = sizeof(gantry_kernel),
                                          .name = "softmax",
                                          .summary = "y = exp(scale x) / sum of exp(scale x), for each row",
                                          GANTRY_KERNEL_ARGS(args),
                                          .flops = "12 * x.size",
                                          .bytes = "x.bytes + y.bytes",
                                          .host = run,
                                          .check = check };
