/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/scan.h"
#include "kernels/manifest.h"

#include <stdbool.h>
#include <string.h>

enum { EXCLUSIVE, X, Y }; /* arguments */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- floats: in the order of scan.h ---- */

/* A row from `at` on; behind `end` elements are 0. */
static void load_row(double *row, const gantry_arg *x, int64_t at, int64_t end)
{
    int64_t count = least(end - at, GY_SCAN_ROW);
    memset(row, 0, GY_SCAN_ROW * sizeof *row);
    switch (x->dtype) {
#define REAL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < count; i++)                                                                            \
            row[i] = (double)LOAD(((const type *)x->data)[at + i]);                                                    \
        break;
        GY_FLOAT_TYPES(REAL)
#undef REAL
    default:
        break;
    }
}

static void store_row(const double *row, const gantry_arg *y, int64_t at, int64_t end)
{
    int64_t count = least(end - at, GY_SCAN_ROW);
    switch (y->dtype) {
#define REAL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < count; i++)                                                                            \
            ((type *)y->data)[at + i] = STORE((wide)row[i]);                                                           \
        break;
        GY_FLOAT_TYPES(REAL)
#undef REAL
    default:
        break;
    }
}

static double sum_chunk(const gantry_arg *x, int64_t begin, int64_t end)
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

static void scan_chunk(const gantry_arg *x, const gantry_arg *y, int64_t begin, int64_t end, double start,
                       bool exclusive)
{
    double row[GY_SCAN_ROW];
    for (int64_t at = begin; at < end; at += GY_SCAN_ROW) {
        load_row(row, x, at, end);
        start = scan_row(row, start, exclusive);
        store_row(row, y, at, end);
    }
}

static void scan_floats(const gantry_launch *l, bool exclusive)
{
    const gantry_arg *x = &l->arg[X];
    int64_t n = gy_arg_size(x), chunk = gy_scan_chunk(n), chunks = (n + chunk - 1) / chunk;
    gantry_arg starts = { .dtype = GANTRY_F64, .data = l->scratch };
    double *start = l->scratch;
    for (int64_t c = 0; c < chunks; c++)
        start[c] = sum_chunk(x, c * chunk, least(n, (c + 1) * chunk));
    scan_chunk(&starts, &starts, 0, chunks, 0, true);
    for (int64_t c = 0; c < chunks; c++)
        scan_chunk(x, &l->arg[Y], c * chunk, least(n, (c + 1) * chunk), start[c], exclusive);
}

/* ---- integers wrap, so any order will do ---- */

static void scan_integers(const gantry_launch *l, bool exclusive)
{
    int64_t n = gy_arg_size(&l->arg[X]);
    uint64_t before = 0;
    switch (l->arg[X].dtype) {
#define WHOLE(dtype, type, wide, LOAD, STORE)                                                                          \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            uint64_t upto = before + LOAD(((const type *)l->arg[X].data)[i]);                                          \
            ((type *)l->arg[Y].data)[i] = STORE(exclusive ? before : upto);                                            \
            before = upto;                                                                                             \
        }                                                                                                              \
        break;
        GY_INTEGER_TYPES(WHOLE)
#undef WHOLE
    default:
        break;
    }
}

static gantry_status run(const gantry_launch *l)
{
    bool exclusive = l->arg[EXCLUSIVE].number != 0;
    GANTRY_DTYPE_BIT(l->arg[X].dtype) & GY_FLOAT_DTYPES ? scan_floats(l, exclusive) : scan_integers(l, exclusive);
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_same_size(l, X, Y, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("exclusive", 0, "1: without the element itself, so the first result is 0"),
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
                                       .check = check };
