/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/select/select.h"
#include "kernels/manifest.h"

#include <stdbool.h>
#include <string.h>

enum { X, MASK, Y, COUNT };

/* Integers: how a comparison is written by a map. */
#define INTEGERS                                                                                                       \
    (GANTRY_DTYPE_BIT(GANTRY_I8) | GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_I32) |                        \
     GANTRY_DTYPE_BIT(GANTRY_U32) | GANTRY_DTYPE_BIT(GANTRY_I64) | GANTRY_DTYPE_BIT(GANTRY_U64))

typedef struct selecting {
    int64_t rows, chunk;
    int64_t *start; /* of each chunk: how many rows are taken; then, where its rows go */
} selecting;

static bool is_set(const gantry_arg *mask, int64_t i)
{
    switch (gantry_dtype_size(mask->dtype)) {
    case 1:
        return ((const uint8_t *)mask->data)[i] != 0;
    case 4:
        return ((const uint32_t *)mask->data)[i] != 0;
    default:
        return ((const uint64_t *)mask->data)[i] != 0;
    }
}

static int64_t end_of(const selecting *s, int64_t chunk)
{
    int64_t end = (chunk + 1) * s->chunk;
    return end < s->rows ? end : s->rows;
}

static gantry_status count_chunks(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const selecting *s = data;
    for (int64_t c = first; c < last; c++) {
        s->start[c] = 0;
        for (int64_t i = c * s->chunk; i < end_of(s, c); i++)
            s->start[c] += is_set(&l->arg[MASK], i);
    }
    return GANTRY_OK;
}

static gantry_status take_chunks(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const selecting *s = data;
    const gantry_arg *x = &l->arg[X], *y = &l->arg[Y];
    size_t bytes = (size_t)x->row_bytes;
    for (int64_t c = first; c < last; c++) {
        int64_t to = s->start[c];
        for (int64_t i = c * s->chunk; i < end_of(s, c) && to < y->rows; i++)
            if (is_set(&l->arg[MASK], i))
                memcpy((char *)y->data + (size_t)to++ * bytes, (const char *)x->data + (size_t)i * bytes, bytes);
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *y = &l->arg[Y], *count = &l->arg[COUNT];
    selecting s = { .rows = l->arg[X].rows, .start = l->scratch };
    s.chunk = gy_select_chunk(s.rows);
    int64_t chunks = (s.rows + s.chunk - 1) / s.chunk, grain = gy_grain_of_rows(s.chunk), all = 0;
    gantry_launch_cut(l, chunks, grain, count_chunks, &s);
    for (int64_t c = 0; c < chunks; c++) {
        int64_t own = s.start[c];
        s.start[c] = all;
        all += own;
    }
    gantry_launch_cut(l, chunks, grain, take_chunks, &s);
    if (all < y->rows)
        memset((char *)y->data + all * y->row_bytes, 0, (size_t)((y->rows - all) * y->row_bytes));
    if (all > y->rows)
        *l->status = all < INT32_MAX ? (int32_t)all : INT32_MAX;
    if (gantry_dtype_size(count->dtype) == 4)
        *(int32_t *)count->data = (int32_t)all;
    else
        *(int64_t *)count->data = all;
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[X], *mask = &l->arg[MASK], *y = &l->arg[Y];
    if (gy_arg_size(mask) != x->rows)
        return gy_check_fail(text, size, "\"mask\" has %lld elements and \"x\" %lld rows; it must have one for each",
                             (long long)gy_arg_size(mask), (long long)x->rows);
    if (gy_arg_width(y) != gy_arg_width(x))
        return gy_check_fail(text, size, "a row of \"x\" has %lld elements and one of \"y\" %lld; they must agree",
                             (long long)gy_arg_width(x), (long long)gy_arg_width(y));
    if (gantry_dtype_size(l->arg[COUNT].dtype) == 4 && x->rows > INT32_MAX)
        return gy_check_fail(text, size, "\"x\" has %lld rows and \"count\" is i32, which counts to %d; make it i64",
                             (long long)x->rows, INT32_MAX);
    return gy_check_one_element(l, COUNT, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, 0, 'T', NULL),
    GY_REGION("mask", GANTRY_READ, INTEGERS, 0, "one element for each row of x"),
    GY_REGION("y", GANTRY_WRITE, 0, 'T', "room for the rows that are taken, in their order; zeros behind them"),
    GY_REGION("count", GANTRY_WRITE, GANTRY_DTYPE_BIT(GANTRY_I32) | GANTRY_DTYPE_BIT(GANTRY_I64), 0,
              "one element: how many are taken; more than y has room for end the run, their number in the status word"),
};

const gantry_kernel gy_kernel_select = { .struct_size = sizeof(gantry_kernel),
                                         .name = "select",
                                         .summary = "y = rows of x, or elements, where mask is not 0; status: how many "
                                                    "are taken, where y has no room for them",
                                         GANTRY_KERNEL_ARGS(args),
                                         .flops = "2 * mask.size",
                                         .bytes = "x.bytes + 2 * mask.bytes + y.bytes",
                                         .scratch = GY_SELECT_SCRATCH,
                                         .host = run,
                                         .check = check };
