/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/radix.h"

#include <stdbool.h>

enum { SMALLEST, X, VALUES, INDICES }; /* arguments */
enum { MOST = 1024 };                  /* elements of a row; top_k.cu has shared memory for so many */

/* An element and where it is; less is better. */
typedef struct place {
    uint64_t number;
    int64_t at;
} place;

static bool is_worse(const place *a, const place *b)
{
    return a->number != b->number ? a->number > b->number : a->at > b->at;
}

/* Puts `one` where heap[0] was: the worst of all comes first, and none is worse than heap[(i - 1) / 2]. */
static void replace_worst(place *heap, int64_t count, place one)
{
    int64_t i = 0;
    for (int64_t child = 1; child < count; child = 2 * i + 1) {
        if (child + 1 < count && is_worse(&heap[child + 1], &heap[child]))
            child++;
        if (!is_worse(&heap[child], &one))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = one;
}

/* Numbers that order elements; the best k of a row, in any order. */
static void find_best(place *heap, int64_t k, const gantry_arg *x, int64_t row, gy_radix_order order)
{
    int64_t width = gy_arg_width(x);
    int bytes = (int)gantry_dtype_size(x->dtype);
    for (int64_t i = 0; i < k; i++) /* nothing is worse than these */
        heap[i] = (place){ UINT64_MAX, INT64_MAX };
    for (int64_t i = 0; i < width; i++) {
        place one = { gy_radix_number(gy_radix_bits(x->data, row * width + i, bytes), bytes, order), i };
        if (is_worse(&heap[0], &one))
            replace_worst(heap, k, one);
    }
}

static void store(const gantry_launch *l, int64_t row, int64_t i, int64_t at)
{
    const gantry_arg *x = &l->arg[X], *values = &l->arg[VALUES], *indices = &l->arg[INDICES];
    int64_t to = row * gy_arg_width(values) + i, from = row * gy_arg_width(x) + at;
    size_t bytes = gantry_dtype_size(x->dtype);
    for (size_t b = 0; b < bytes; b++)
        ((char *)values->data)[(size_t)to * bytes + b] = ((const char *)x->data)[(size_t)from * bytes + b];
    if (indices->dtype == GANTRY_I32)
        ((int32_t *)indices->data)[to] = (int32_t)at;
    else
        ((int64_t *)indices->data)[to] = at;
}

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    place heap[MOST];
    int64_t k = gy_arg_width(&l->arg[VALUES]);
    gy_radix_order order = gy_radix_order_of(l->arg[X].dtype, l->arg[SMALLEST].number == 0);
    (void)data;
    for (int64_t r = first; r < last && k; r++) {
        find_best(heap, k, &l->arg[X], r, order);
        for (int64_t left = k; left > 0; left--) {
            store(l, r, left - 1, heap[0].at);
            replace_worst(heap, left - 1, heap[left - 1]);
        }
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[X];
    return gantry_launch_cut(l, x->rows, gy_grain_of_rows(4 * gy_arg_width(x)), piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[X], *values = &l->arg[VALUES], *indices = &l->arg[INDICES];
    int64_t width = gy_arg_width(x), k = gy_arg_width(values), most = width < MOST ? width : MOST;
    if (x->rows != values->rows || x->rows != indices->rows)
        return gy_check_fail(text, size,
                             "\"x\", \"values\" and \"indices\" have %lld, %lld and %lld rows; they must agree",
                             (long long)x->rows, (long long)values->rows, (long long)indices->rows);
    if (width > INT32_MAX)
        return gy_check_fail(text, size, "a row of \"x\" has %lld elements; it may have %d: split it into rows",
                             (long long)width, INT32_MAX);
    if (k > most)
        return gy_check_fail(text, size, "a row of \"values\" has %lld elements; it may have %lld, of %lld in \"x\"%s",
                             (long long)k, (long long)most, (long long)width,
                             width > MOST ? ": \"argsort\" finds more" : "");
    return gy_check_same_size(l, VALUES, INDICES, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("smallest", 0, "1: the smallest, in ascending order; NaN is greater than all others"),
    GY_REGION("x", GANTRY_READ, 0, 'T', "rows"),
    GY_REGION("values", GANTRY_WRITE, 0, 'T', "as many rows, of k elements, at most 1024"),
    GY_REGION("indices", GANTRY_WRITE, GANTRY_DTYPE_BIT(GANTRY_I32) | GANTRY_DTYPE_BIT(GANTRY_I64), 0,
              "where they are in the row"),
};

const gantry_kernel gy_kernel_top_k = {
    .struct_size = sizeof(gantry_kernel),
    .name = "top_k",
    .summary = "the k largest of each row, the largest first; of equal ones that of the lower index",
    GANTRY_KERNEL_ARGS(args),
    .flops = "8 * x.bytes",
    .bytes = "x.bytes * (1 + x.bytes / max(1, x.size)) + values.bytes + indices.bytes",
    .host = run,
    .check = check
};
