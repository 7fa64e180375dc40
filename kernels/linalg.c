/* SPDX-License-Identifier: Apache-2.0 */
/* The plain table: short loops with the inner one over memory in order. Right and slow; OpenBLAS is the fast one. */
#include "kernels/linalg.h"
#include <math.h>

/* Element (i, j) of op(m). */
#define AT(m, t, i, j) ((t) ? (j) * (m).ld + (i) : (i) * (m).ld + (j))

#define GEMM(name, type, result, wide, LOAD, LOAD_RESULT, STORE)                                                       \
    static void gemm_##name(int ta, int tb, wide alpha, gy_matrix a, gy_matrix b, wide beta, gy_matrix c)              \
    {                                                                                                                  \
        const type *pa = a.data, *pb = b.data;                                                                         \
        result *pc = c.data;                                                                                           \
        int64_t depth = ta ? a.rows : a.columns;                                                                       \
        for (int64_t i = 0; i < c.rows; i++)                                                                           \
            for (int64_t j = 0; j < c.columns; j++) {                                                                  \
                wide sum = 0;                                                                                          \
                for (int64_t k = 0; k < depth; k++)                                                                    \
                    sum += LOAD(pa[AT(a, ta, i, k)]) * LOAD(pb[AT(b, tb, k, j)]);                                      \
                wide old = beta != 0 ? beta * LOAD_RESULT(pc[i * c.ld + j]) : 0;                                       \
                pc[i * c.ld + j] = STORE(alpha * sum + old);                                                           \
            }                                                                                                          \
    }
#define ONE_TYPE(dtype, type, wide, LOAD, STORE) GEMM(dtype, type, type, wide, LOAD, LOAD, STORE)
GY_FLOAT_TYPES(ONE_TYPE)
GEMM(f16_to_f32, uint16_t, float, float, gy_f16_to_float, GY_TO_F32, GY_TO_F32)
GEMM(bf16_to_f32, uint16_t, float, float, gy_bf16_to_float, GY_TO_F32, GY_TO_F32)

/* Of 8 bits, with results of three types. */
#define F8_GEMM(name, LOAD)                                                                                            \
    GEMM(name##_to_f16, uint8_t, uint16_t, float, LOAD, gy_f16_to_float, gy_float_to_f16)                              \
    GEMM(name##_to_bf16, uint8_t, uint16_t, float, LOAD, gy_bf16_to_float, gy_float_to_bf16)                           \
    GEMM(name##_to_f32, uint8_t, float, float, LOAD, GY_TO_F32, GY_TO_F32)                                             \
    static void gemm_##name(const gy_product *p)                                                                       \
    {                                                                                                                  \
        (p->result == GANTRY_F32 ? gemm_##name##_to_f32                                                                \
         : p->result == GANTRY_F16                                                                                     \
             ? gemm_##name##_to_f16                                                                                    \
             : gemm_##name##_to_bf16)(p->ta, p->tb, (float)p->alpha, p->a, p->b, (float)p->beta, p->c);                \
    }
F8_GEMM(f8e4m3, gy_f8e4m3_to_float)
F8_GEMM(f8e5m2, gy_f8e5m2_to_float)

static void gemm(gantry_dtype dtype, int ta, int tb, double alpha, gy_matrix a, gy_matrix b, double beta, gy_matrix c)
{
    switch (dtype) {
#define CALL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        gemm_##dtype(ta, tb, (wide)alpha, a, b, (wide)beta, c);                                                        \
        return;
        GY_FLOAT_TYPES(CALL)
    default:
        return;
    }
}

void gy_product_plain(const gy_product *p)
{
    float alpha = (float)p->alpha, beta = (float)p->beta;
    if (p->result == p->dtype)
        gemm(p->dtype, p->ta, p->tb, p->alpha, p->a, p->b, p->beta, p->c);
    else if (p->dtype == GANTRY_F16)
        gemm_f16_to_f32(p->ta, p->tb, alpha, p->a, p->b, beta, p->c);
    else if (p->dtype == GANTRY_F8E4M3)
        gemm_f8e4m3(p);
    else if (p->dtype == GANTRY_F8E5M2)
        gemm_f8e5m2(p);
    else
        gemm_bf16_to_f32(p->ta, p->tb, alpha, p->a, p->b, beta, p->c);
}

#define FACTORS(dtype, type, wide, LOAD, STORE)                                                                        \
    static int32_t potrf_##type(gy_matrix m)                                                                           \
    {                                                                                                                  \
        type *a = m.data;                                                                                              \
        for (int64_t j = 0; j < m.rows; j++) {                                                                         \
            type d = a[j * m.ld + j];                                                                                  \
            for (int64_t k = 0; k < j; k++)                                                                            \
                d -= a[j * m.ld + k] * a[j * m.ld + k];                                                                \
            if (!(d > 0))                                                                                              \
                return (int32_t)(j + 1);                                                                               \
            a[j * m.ld + j] = d = (type)sqrt((double)d);                                                               \
            for (int64_t i = j + 1; i < m.rows; i++) {                                                                 \
                type s = a[i * m.ld + j];                                                                              \
                for (int64_t k = 0; k < j; k++)                                                                        \
                    s -= a[i * m.ld + k] * a[j * m.ld + k];                                                            \
                a[i * m.ld + j] = s / d;                                                                               \
            }                                                                                                          \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static void trsm_##type(gy_matrix m, gy_matrix x)                                                                  \
    {                                                                                                                  \
        const type *a = m.data;                                                                                        \
        for (int64_t i = 0; i < x.rows; i++) {                                                                         \
            type *b = (type *)x.data + i * x.ld;                                                                       \
            for (int64_t j = 0; j < x.columns; j++) {                                                                  \
                for (int64_t k = 0; k < j; k++)                                                                        \
                    b[j] -= b[k] * a[j * m.ld + k];                                                                    \
                b[j] /= a[j * m.ld + j];                                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void syrk_##type(type alpha, gy_matrix m, type beta, gy_matrix x)                                           \
    {                                                                                                                  \
        const type *a = m.data;                                                                                        \
        type *c = x.data;                                                                                              \
        for (int64_t i = 0; i < x.rows; i++)                                                                           \
            for (int64_t j = 0; j <= i; j++) {                                                                         \
                type sum = 0;                                                                                          \
                for (int64_t k = 0; k < m.columns; k++)                                                                \
                    sum += a[i * m.ld + k] * a[j * m.ld + k];                                                          \
                type old = beta != 0 ? beta * c[i * x.ld + j] : 0;                                                     \
                c[i * x.ld + j] = alpha * sum + old;                                                                   \
            }                                                                                                          \
    }
GY_WIDE_TYPES(FACTORS)

static int32_t potrf(gantry_dtype dtype, gy_matrix a)
{
    return dtype == GANTRY_F32 ? potrf_float(a) : potrf_double(a);
}

static void trsm(gantry_dtype dtype, gy_matrix a, gy_matrix b)
{
    if (dtype == GANTRY_F32)
        trsm_float(a, b);
    else
        trsm_double(a, b);
}

static void syrk(gantry_dtype dtype, double alpha, gy_matrix a, double beta, gy_matrix c)
{
    if (dtype == GANTRY_F32)
        syrk_float((float)alpha, a, (float)beta, c);
    else
        syrk_double(alpha, a, beta, c);
}

/* Rows are taken from other rows, which lie in order. */
#define SOLVERS(dtype, type, wide, LOAD, STORE)                                                                        \
    /* x -= factor y */                                                                                                \
    static void take_##type(type *x, type factor, const type *y, int64_t n)                                            \
    {                                                                                                                  \
        for (int64_t j = 0; j < n; j++)                                                                                \
            x[j] -= factor * y[j];                                                                                     \
    }                                                                                                                  \
    static int64_t pivot_##type(const type *column, int64_t ld, int64_t rows)                                          \
    {                                                                                                                  \
        int64_t best = 0;                                                                                              \
        double largest = -1;                                                                                           \
        for (int64_t i = 0; i < rows; i++)                                                                             \
            if (fabs((double)column[i * ld]) > largest) {                                                              \
                largest = fabs((double)column[i * ld]);                                                                \
                best = i;                                                                                              \
            }                                                                                                          \
        return best;                                                                                                   \
    }                                                                                                                  \
    static int32_t getrf_##type(gy_matrix m, int32_t *pivots)                                                          \
    {                                                                                                                  \
        int64_t rows = m.rows, n = m.columns;                                                                          \
        int32_t singular = 0;                                                                                          \
        for (int64_t k = 0; k < n; k++) {                                                                              \
            type *row = (type *)m.data + k * m.ld;                                                                     \
            int64_t with = k + pivot_##type(row + k, m.ld, rows - k);                                                  \
            type *other = (type *)m.data + with * m.ld;                                                                \
            pivots[k] = (int32_t)(with + 1);                                                                           \
            for (int64_t j = 0; j < n && with != k; j++) {                                                             \
                type kept = row[j];                                                                                    \
                row[j] = other[j];                                                                                     \
                other[j] = kept;                                                                                       \
            }                                                                                                          \
            if (row[k] == 0) {                                                                                         \
                singular = singular ? singular : (int32_t)(k + 1);                                                     \
                continue;                                                                                              \
            }                                                                                                          \
            for (int64_t i = k + 1; i < rows; i++) {                                                                   \
                type *below = (type *)m.data + i * m.ld;                                                               \
                below[k] /= row[k];                                                                                    \
                take_##type(below + k + 1, below[k], row + k + 1, n - k - 1);                                          \
            }                                                                                                          \
        }                                                                                                              \
        return singular;                                                                                               \
    }                                                                                                                  \
    static void lower_##type(gy_matrix m, gy_matrix x)                                                                 \
    {                                                                                                                  \
        const type *a = m.data;                                                                                        \
        type *b = x.data;                                                                                              \
        for (int64_t k = 0; k < m.rows; k++)                                                                           \
            for (int64_t i = k + 1; i < m.rows; i++)                                                                   \
                take_##type(b + i * x.ld, a[i * m.ld + k], b + k * x.ld, x.columns);                                   \
    }                                                                                                                  \
    static void getrs_##type(gy_matrix m, gy_matrix x)                                                                 \
    {                                                                                                                  \
        const type *a = m.data;                                                                                        \
        type *b = x.data;                                                                                              \
        lower_##type(m, x);                                                                                            \
        for (int64_t k = m.rows - 1; k >= 0; k--) {                                                                    \
            for (int64_t j = 0; j < x.columns; j++)                                                                    \
                b[k * x.ld + j] /= a[k * m.ld + k];                                                                    \
            for (int64_t i = 0; i < k; i++)                                                                            \
                take_##type(b + i * x.ld, a[i * m.ld + k], b + k * x.ld, x.columns);                                   \
        }                                                                                                              \
    }
GY_WIDE_TYPES(SOLVERS)

static int32_t getrf(gantry_dtype dtype, gy_matrix a, int32_t *pivots)
{
    return dtype == GANTRY_F32 ? getrf_float(a, pivots) : getrf_double(a, pivots);
}

static void lower(gantry_dtype dtype, gy_matrix a, gy_matrix b)
{
    if (dtype == GANTRY_F32)
        lower_float(a, b);
    else
        lower_double(a, b);
}

static void getrs(gantry_dtype dtype, gy_matrix a, gy_matrix b)
{
    if (dtype == GANTRY_F32)
        getrs_float(a, b);
    else
        getrs_double(a, b);
}

const gy_linalg gy_linalg_plain = { "plain C", gemm,  potrf, trsm,           syrk,
                                    getrf,     lower, getrs, gy_geqrf_plain, gy_orgqr_plain };

/* ---- bands ---- */

gy_matrix gy_band_of_rows(gy_matrix m, gantry_dtype dtype, int64_t i)
{
    int64_t first = i * GY_BAND;
    m.data = (char *)m.data + first * m.ld * (int64_t)gantry_dtype_size(dtype);
    m.rows = m.rows - first < GY_BAND ? m.rows - first : GY_BAND;
    return m;
}

gy_matrix gy_band_of_columns(gy_matrix m, gantry_dtype dtype, int64_t i)
{
    int64_t first = i * GY_BAND;
    m.data = (char *)m.data + first * (int64_t)gantry_dtype_size(dtype);
    m.columns = m.columns - first < GY_BAND ? m.columns - first : GY_BAND;
    return m;
}

gantry_status gy_linalg_cut(const gantry_launch *l, int64_t items, double flops, gantry_piece_fn piece, void *data)
{
    const double worth = 1e6; /* a thread */
    const gy_linalg_handle *h = l->handle;
    if (h && h->alone)
        return piece(l, data, 0, items);
    return gantry_launch_cut(l, items,
                             flops > 1 && flops < worth ? (int64_t)(worth / flops)
                             : flops > 1                ? 1
                                                        : items,
                             piece, data);
}

int64_t gy_product_bands(const gy_product *p)
{
    return gy_bands_of(p->c.rows < p->c.columns ? p->c.columns : p->c.rows);
}

double gy_product_flops(const gy_product *p)
{
    int64_t bands = gy_product_bands(p), depth = p->ta ? p->a.rows : p->a.columns;
    return bands ? 2.0 * (double)p->c.rows * (double)p->c.columns * (double)depth / (double)bands : 0;
}

/* Band i along c's larger side. */
static gy_product band_of(const gy_product *p, int64_t i)
{
    gy_product band = *p;
    if (p->c.rows < p->c.columns) {
        band.b = (p->tb ? gy_band_of_rows : gy_band_of_columns)(p->b, p->dtype, i);
        band.c = gy_band_of_columns(p->c, p->result, i);
    } else {
        band.a = (p->ta ? gy_band_of_columns : gy_band_of_rows)(p->a, p->dtype, i);
        band.c = gy_band_of_rows(p->c, p->result, i);
    }
    return band;
}

void gy_product_do_band(const gantry_launch *l, const gy_product *p, int64_t i)
{
    const gy_linalg *table = gy_linalg_of(l);
    gy_product band = band_of(p, i);
    if (p->dtype == GANTRY_F32 || p->dtype == GANTRY_F64)
        table->gemm(p->dtype, p->ta, p->tb, p->alpha, band.a, band.b, p->beta, band.c);
    else if (table == &gy_linalg_plain || !gy_product_in_panels(table, &band))
        gy_product_plain(&band);
}

static gantry_status do_bands(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    for (int64_t band = first; band < last; band++)
        gy_product_do_band(l, data, band);
    return GANTRY_OK;
}

gantry_status gy_product_do(const gantry_launch *l, const gy_product *p)
{
    gy_product copy = *p;
    return gy_linalg_cut(l, gy_product_bands(p), gy_product_flops(p), do_bands, &copy);
}

gantry_status gy_linalg_open_kernel(void **handle, int32_t device_ordinal)
{
    (void)device_ordinal;
    return gy_linalg_open(handle, &gy_linalg_plain);
}

gantry_status gy_check_result(const gantry_launch *l, int a, int c, char *text, size_t size)
{
    gantry_dtype from = l->arg[a].dtype, to = l->arg[c].dtype;
    bool f8 = gy_dtype_is_f8(from), narrow = from == GANTRY_F16 || from == GANTRY_BF16;
    if (f8 ? to == GANTRY_F16 || to == GANTRY_BF16 || to == GANTRY_F32 : from == to || (narrow && to == GANTRY_F32))
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" is %s and \"%s\" is %s; it must be %s%s", l->arg[a].name,
                         gantry_dtype_name(from), l->arg[c].name, gantry_dtype_name(to),
                         f8 ? "f16, bf16" : gantry_dtype_name(from), f8 || narrow ? " or f32" : "");
}

gantry_status gy_check_matrix(const gantry_launch *l, int i, char *text, size_t size)
{
    if (l->arg[i].rank == 2)
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" has %d dimensions; it must be a matrix", l->arg[i].name,
                         (int)l->arg[i].rank);
}

gantry_status gy_check_square(const gantry_launch *l, int i, char *text, size_t size)
{
    gantry_status status = gy_check_matrix(l, i, text, size);
    if (status || l->arg[i].rows == gy_arg_width(&l->arg[i]))
        return status;
    return gy_check_fail(text, size, "\"%s\" is %lld x %lld; it must be square", l->arg[i].name,
                         (long long)l->arg[i].rows, (long long)gy_arg_width(&l->arg[i]));
}

gantry_status gy_check_pivots(const gantry_launch *l, int a, int pivots, char *text, size_t size)
{
    if (gy_arg_size(&l->arg[pivots]) == l->arg[a].rows)
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" has %lld elements and \"%s\" %lld rows; it must have one for each",
                         l->arg[pivots].name, (long long)gy_arg_size(&l->arg[pivots]), l->arg[a].name,
                         (long long)l->arg[a].rows);
}

gantry_status gy_check_product(bool ta, bool tb, gy_matrix a, gy_matrix b, gy_matrix c, char *text, size_t size)
{
    int64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns, k2 = tb ? b.columns : b.rows,
            n = tb ? b.rows : b.columns;
    if (k == k2 && m == c.rows && n == c.columns)
        return GANTRY_OK;
    return gy_check_fail(
        text, size, "op(a) is %lld x %lld, op(b) is %lld x %lld and \"c\" is %lld x %lld; they do not multiply",
        (long long)m, (long long)k, (long long)k2, (long long)n, (long long)c.rows, (long long)c.columns);
}

gantry_status gy_check_beta(const gantry_arg *beta, const gantry_arg *c, char *text, size_t size)
{
    if (beta->number == 0 || c->access != GANTRY_WRITE)
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"beta\" is %g but \"c\" is only written; add \"access\": {\"c\": \"readwrite\"}",
                         beta->number);
}
