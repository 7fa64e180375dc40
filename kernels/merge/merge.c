/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of what two sorted arrays are together. How many of the first k come from x is found by bisection (Odeh and
 * others, Merge Path, 2012), so pieces have nothing to do with each other. */
#include "kernels/radix.h"

#include <stdbool.h>

enum { FIRST, DESCENDING, X, Y, Z }; /* arguments */

typedef struct merging {
    const void *x, *y;
    int64_t xs, ys; /* elements */
    int bytes;      /* of one */
    gy_radix_order order;
} merging;

static uint64_t number_at(const merging *m, const void *data, int64_t i)
{
    return gy_radix_number(gy_radix_bits(data, i, m->bytes), m->bytes, m->order);
}

/* Of the first k elements, how many come from x; equal ones of x come first. */
static int64_t of_x(const merging *m, int64_t k)
{
    int64_t low = k > m->ys ? k - m->ys : 0, high = k < m->xs ? k : m->xs;
    while (low < high) {
        int64_t i = low + (high - low) / 2;
        if (number_at(m, m->x, i) <= number_at(m, m->y, k - 1 - i))
            low = i + 1;
        else
            high = i;
    }
    return low;
}

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const merging *m = data;
    int64_t from = (int64_t)l->arg[FIRST].number + first, i = of_x(m, from), j = from - i;
    uint64_t x = i < m->xs ? number_at(m, m->x, i) : 0, y = j < m->ys ? number_at(m, m->y, j) : 0;
    for (int64_t k = first; k < last; k++) {
        bool takes_x = j >= m->ys || (i < m->xs && x <= y);
        const void *source = takes_x ? m->x : m->y;
        gy_radix_copy(l->arg[Z].data, k, source, takes_x ? i : j, m->bytes);
        if (takes_x)
            x = ++i < m->xs ? number_at(m, m->x, i) : 0;
        else
            y = ++j < m->ys ? number_at(m, m->y, j) : 0;
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[X], *y = &l->arg[Y];
    merging m = { .x = x->data,
                  .y = y->data,
                  .xs = gy_arg_size(x),
                  .ys = gy_arg_size(y),
                  .bytes = (int)gantry_dtype_size(x->dtype),
                  .order = gy_radix_order_of(x->dtype, l->arg[DESCENDING].number != 0) };
    return gantry_launch_cut(l, gy_arg_size(&l->arg[Z]), GY_GRAIN, piece, &m);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    int64_t x = gy_arg_size(&l->arg[X]), y = gy_arg_size(&l->arg[Y]), z = gy_arg_size(&l->arg[Z]);
    double first = l->arg[FIRST].number, most = (double)(x + y - z);
    if (z > x + y)
        return gy_check_fail(text, size, "\"z\" has %lld elements, \"x\" and \"y\" %lld; it may have as many",
                             (long long)z, (long long)(x + y));
    if (first >= 0 && first <= most && first == (double)(int64_t)first)
        return GANTRY_OK;
    return gy_check_fail(text, size,
                         "\"first\" is %g; of %lld elements in \"x\" and \"y\" and %lld in \"z\" it must be a whole "
                         "number from 0 to %g",
                         first, (long long)(x + y), (long long)z, most);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("first", 0, "which of all elements, from 0, is the first of z"),
    GY_SCALE_OR("descending", 0, "1: x and y are in descending order, and so is z"),
    GY_REGION("x", GANTRY_READ, 0, 'T', "sorted, as sort does"),
    GY_REGION("y", GANTRY_READ, 0, 'T', "sorted, as sort does"),
    GY_REGION("z", GANTRY_WRITE, 0, 'T', "at most as many elements as both, in the same order; equal ones of x first"),
};

const gantry_kernel gy_kernel_merge = { .struct_size = sizeof(gantry_kernel),
                                        .name = "merge",
                                        .summary = "z = elements of two sorted arrays in order, from number `first` on",
                                        GANTRY_KERNEL_ARGS(args),
                                        .flops = "8 * z.size",
                                        .bytes = "2 * z.bytes",
                                        .host = run,
                                        .check = check };
