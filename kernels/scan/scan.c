/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/scan.h"
#include "kernels/manifest.h"

#include <stdbool.h>
#include <string.h>

enum { EXCLUSIVE, REVERSE, X, Y }; /* arguments */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Elements as they come: from the first on, or from the last back. */
typedef struct side {
    gantry_dtype dtype;
    void *first;
    int64_t step;
} side;

/* ---- floats: in the order of scan.h ---- */

/* A row from `at` on; behind `end` elements are 0. */
static void load_row(double *row, const side *x, int64_t at, int64_t end)
{
    int64_t count = least(end - at, GY_SCAN_ROW);
    memset(row, 0, GY_SCAN_ROW * sizeof *row);
    switch (x->dtype) {
#define REAL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < count; i++)                                                                            \
            row[i] = (double)LOAD(((const type *)x->first)[(at + i) * x->step]);                                       \
        break;
        GY_FLOAT_TYPES(REAL)
#undef REAL
    default:
        break;
    }
}

static void store_row(const double *row, const side *y, int64_t at, int64_t end)
{
    int64_t count = least(end - at, GY_SCAN_ROW);
    switch (y->dtype) {
#define REAL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < count; i++)                                                                            \
            ((type *)y->first)[(at + i) * y->step] = STORE((wide)row[i]);                                              \
        break;
        GY_FLOAT_TYPES(REAL)
#undef REAL
    default:
        break;
    }
}

static double sum_chunk(const side *x, int64_t begin, int64_t end)
{
    double lane[GY_SCAN_LANES] = { 0 }, row[GY_SCAN_ROW];
    for (int64_t at = begin; at < end; at += GY_SCAN_ROW) {
        load_row(row, x, at, end);
        for (int i = 0; i < GY_SCAN_ROW; i++)
            lane[i / GY_SCAN_PACK] += row[i];
    }
    for (int by = GY_SCAN_LANES / 2; by > 0; by /= 2)
        for (int i = 0; i < by; i++)
            lane[i] += lane[i + by];
    return lane[0];
}

/* Returns the start of the next row. */
static double scan_row(double *row, double start, bool exclusive)
{
    double lane[GY_SCAN_LANES], upto[GY_SCAN_ROW];
    for (int i = 0; i < GY_SCAN_LANES; i++) {
        double sum = 0;
        for (int j = 0; j < GY_SCAN_PACK; j++)
            upto[i * GY_SCAN_PACK + j] = sum += row[i * GY_SCAN_PACK + j];
        lane[i] = sum;
    }
    for (int by = 1; by < GY_SCAN_LANES; by *= 2)
        for (int i = GY_SCAN_LANES - 1; i >= by; i--)
            lane[i] = lane[i - by] + lane[i];
    for (int i = 0; i < GY_SCAN_ROW; i++) {
        double own = start + (i < GY_SCAN_PACK ? 0 : lane[i / GY_SCAN_PACK - 1]);
        row[i] = own + (!exclusive ? upto[i] : i % GY_SCAN_PACK ? upto[i - 1] : 0);
    }
    return start + lane[GY_SCAN_LANES - 1];
}

static void scan_chunk(const side *x, const side *y, int64_t begin, int64_t end, double start, bool exclusive)
{
    double row[GY_SCAN_ROW];
    for (int64_t at = begin; at < end; at += GY_SCAN_ROW) {
        load_row(row, x, at, end);
        start = scan_row(row, start, exclusive);
        store_row(row, y, at, end);
    }
}

/* ---- chunks, which threads share ---- */

typedef struct scanning {
    side x, y;
    int64_t n, chunk;
    bool exclusive, is_real;
    double *real; /* of each chunk: its sum, then its start; integers are in the same memory */
    uint64_t *whole;
} scanning;

/* Integers wrap, so any order will do. Returns what is behind the last. */
static uint64_t scan_integers(const scanning *s, int64_t begin, int64_t end, uint64_t before, bool stores)
{
    switch (s->x.dtype) {
#define WHOLE(dtype, type, wide, LOAD, STORE)                                                                          \
    case dtype:                                                                                                        \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            uint64_t upto = before + LOAD(((const type *)s->x.first)[i * s->x.step]);                                  \
            if (stores)                                                                                                \
                ((type *)s->y.first)[i * s->y.step] = STORE(s->exclusive ? before : upto);                             \
            before = upto;                                                                                             \
        }                                                                                                              \
        break;
        GY_INTEGER_TYPES(WHOLE)
#undef WHOLE
    default:
        break;
    }
    return before;
}

static gantry_status sum_chunks(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const scanning *s = data;
    (void)l;
    for (int64_t c = first; c < last; c++) {
        int64_t begin = c * s->chunk, end = least(s->n, begin + s->chunk);
        if (s->is_real)
            s->real[c] = sum_chunk(&s->x, begin, end);
        else
            s->whole[c] = scan_integers(s, begin, end, 0, false);
    }
    return GANTRY_OK;
}

static gantry_status scan_chunks(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const scanning *s = data;
    (void)l;
    for (int64_t c = first; c < last; c++) {
        int64_t begin = c * s->chunk, end = least(s->n, begin + s->chunk);
        if (s->is_real)
            scan_chunk(&s->x, &s->y, begin, end, s->real[c], s->exclusive);
        else
            scan_integers(s, begin, end, s->whole[c], true);
    }
    return GANTRY_OK;
}

static void find_starts(const scanning *s, int64_t chunks)
{
    side starts = { GANTRY_F64, s->real, 1 };
    uint64_t before = 0;
    if (s->is_real)
        scan_chunk(&starts, &starts, 0, chunks, 0, true);
    for (int64_t c = 0; c < chunks && !s->is_real; c++) {
        uint64_t own = s->whole[c];
        s->whole[c] = before;
        before += own;
    }
}

static side side_of(const gantry_arg *a, bool reverse)
{
    char *first = a->data;
    if (reverse && gy_arg_size(a) > 0)
        first += (gy_arg_size(a) - 1) * (int64_t)gantry_dtype_size(a->dtype);
    return (side){ a->dtype, first, reverse ? -1 : 1 };
}

static gantry_status run(const gantry_launch *l)
{
    bool reverse = l->arg[REVERSE].number != 0;
    scanning s = { .x = side_of(&l->arg[X], reverse),
                   .y = side_of(&l->arg[Y], reverse),
                   .n = gy_arg_size(&l->arg[X]),
                   .exclusive = l->arg[EXCLUSIVE].number != 0,
                   .is_real = GANTRY_DTYPE_BIT(l->arg[X].dtype) & GY_FLOAT_DTYPES,
                   .real = l->scratch,
                   .whole = l->scratch };
    s.chunk = gy_scan_chunk(s.n);
    int64_t chunks = (s.n + s.chunk - 1) / s.chunk, grain = gy_grain_of_rows(s.chunk);
    gantry_launch_cut(l, chunks, grain, sum_chunks, &s);
    find_starts(&s, chunks);
    return gantry_launch_cut(l, chunks, grain, scan_chunks, &s);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("exclusive", 0, "1: without the element itself, so the first result is 0"),
    GY_SCALE_OR("reverse", 0, "1: from the end on, so y[i] = x[i] + ... + x[n - 1]"),
    GY_REGION("x", GANTRY_READ, 0, 'T', NULL),
    GY_REGION("y", GANTRY_WRITE, 0, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_scan = { .struct_size = sizeof(gantry_kernel),
                                       .name = "scan",
                                       .summary = "y[i] = x[0] + ... + x[i]; integers wrap, floats are added in double",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flops = "2 * x.size",
                                       .bytes = "2 * x.bytes + y.bytes",
                                       .scratch = GY_SCAN_SCRATCH,
                                       .host = run,
                                       .check = gy_check_regions_alike };
