/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "kernels/linalg.h"
#include <string.h>

enum { A, PIVOTS }; /* arguments */

/* Bands of GY_BAND columns; band j has its factors, and others follow it. */
typedef struct panel {
    gantry_dtype dtype;
    gy_matrix a;
    const int32_t *pivots;
    int64_t j;
} panel;

static gy_matrix below(const panel *p, gy_matrix band, int64_t row)
{
    band.data = (char *)band.data + row * band.ld * (int64_t)gantry_dtype_size(p->dtype);
    band.rows -= row;
    return band;
}

/* Rows [first, first + count) of a band change places as those of the panel did. */
static void exchange_rows(const panel *p, gy_matrix band, int64_t first, int64_t count)
{
    char kept[GY_BAND * sizeof(double)];
    size_t bytes = (size_t)band.columns * gantry_dtype_size(p->dtype),
           apart = (size_t)band.ld * gantry_dtype_size(p->dtype);
    for (int64_t i = first; i < first + count; i++) {
        char *one = (char *)band.data + (size_t)i * apart,
             *other = (char *)band.data + (size_t)(p->pivots[i] - 1) * apart;
        if (one == other)
            continue;
        memcpy(kept, one, bytes);
        memcpy(one, other, bytes);
        memcpy(other, kept, bytes);
    }
}

/* The rows of the panel in band k become its part of U, and the product is taken off what is below. */
static void follow(const gantry_launch *l, const panel *p, int64_t k)
{
    const gy_linalg *table = gy_linalg_of(l);
    int64_t first = p->j * GY_BAND;
    gy_matrix own = gy_band_of_columns(p->a, p->dtype, p->j), band = gy_band_of_columns(p->a, p->dtype, k);
    exchange_rows(p, band, first, own.columns);
    if (k < p->j)
        return;
    gy_matrix corner = below(p, own, first), top = below(p, band, first);
    corner.rows = top.rows = own.columns;
    table->lower(p->dtype, corner, top);
    if (first + own.columns < p->a.rows)
        table->gemm(p->dtype, 0, 0, -1, below(p, own, first + own.columns), top, 1,
                    below(p, band, first + own.columns));
}

static gantry_status follow_bands(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const panel *p = data;
    for (int64_t k = first; k < last; k++)
        follow(l, p, k < p->j ? k : k + 1);
    return GANTRY_OK;
}

/* The plain table has the order of additions that GPUs without libraries have, so its one call does all. */
static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *a = &l->arg[A];
    int32_t *pivots = l->arg[PIVOTS].data;
    panel p = { a->dtype, gy_matrix_of(a), pivots, 0 };
    const gy_linalg *table = gy_linalg_of(l);
    int64_t bands = gy_bands_of(a->rows);
    if (table == &gy_linalg_plain || bands < 2) {
        *l->status = a->rows > 0 ? table->getrf(a->dtype, p.a, pivots) : 0;
        return GANTRY_OK;
    }
    for (p.j = 0; p.j < bands && *l->status >= 0; p.j++) {
        int64_t first = p.j * GY_BAND;
        gy_matrix own = below(&p, gy_band_of_columns(p.a, p.dtype, p.j), first);
        int32_t code = table->getrf(p.dtype, own, pivots + first);
        for (int64_t i = 0; i < own.columns; i++)
            pivots[first + i] += (int32_t)first;
        if (code && !*l->status)
            *l->status = code > 0 ? (int32_t)first + code : code;
        if (code >= 0)
            GY_TRY(gy_linalg_cut(l, bands - 1, 2.0 * (double)own.rows * GY_BAND * GY_BAND, follow_bands, &p));
    }
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_check_square(l, A, text, size);
    return status ? status : gy_check_pivots(l, A, PIVOTS, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("a", GANTRY_READWRITE, GY_WIDE_DTYPES, 0,
              "square; becomes its factors, the lower one without its diagonal of ones"),
    GY_REGION("pivots", GANTRY_WRITE, GANTRY_DTYPE_BIT(GANTRY_I32), 0,
              "one a row: row i was exchanged with row pivots[i] - 1, in the order of i"),
};

const gantry_kernel gy_kernel_getrf = {
    .struct_size = sizeof(gantry_kernel),
    .name = "getrf",
    .summary = "P a = L U with partial pivoting; status: order of the minor that is singular",
    GANTRY_KERNEL_ARGS(args),
    .flops = "2 * a.size * a.rows // 3",
    .bytes = "2 * a.bytes",
    .host = run,
    .check = check,
    .open = gy_linalg_open_kernel,
    .close = gy_linalg_close
};
