/* SPDX-License-Identifier: Apache-2.0 */
/* geqrf and orgqr in plain loops, the inner ones over rows in order: LAPACK's geqr2 and org2r (Golub and Van Loan,
 * Matrix Computations, 4th edition, 5.1 and 5.2). A reflection H = 1 - tau v v^T has v[0] = 1, which is not stored. */
#include "kernels/linalg.h"
#include <math.h>

/* The sums of a reflection are kept in entries of tau behind its own: those are not known yet, or no longer needed. */
#define REFLECTIONS(type)                                                                                              \
    /* The part of column k from row k on becomes v, and its first element what H leaves of the column. */             \
    static type reflect_##type(gy_matrix m, int64_t k)                                                                 \
    {                                                                                                                  \
        type *a = m.data;                                                                                              \
        double largest = 0, sum = 0;                                                                                   \
        for (int64_t i = k + 1; i < m.rows; i++)                                                                       \
            largest = fmax(largest, fabs((double)a[i * m.ld + k]));                                                    \
        double first = (double)a[k * m.ld + k];                                                                        \
        if (largest == 0)                                                                                              \
            return 0; /* nothing to reflect */                                                                         \
        largest = fmax(largest, fabs(first));                                                                          \
        for (int64_t i = k; i < m.rows; i++)                                                                           \
            sum += (double)a[i * m.ld + k] / largest * ((double)a[i * m.ld + k] / largest);                            \
        double left = -copysign(largest * sqrt(sum), first);                                                           \
        for (int64_t i = k + 1; i < m.rows; i++)                                                                       \
            a[i * m.ld + k] = (type)((double)a[i * m.ld + k] / (first - left));                                        \
        a[k * m.ld + k] = (type)left;                                                                                  \
        return (type)((left - first) / left);                                                                          \
    }                                                                                                                  \
    /* Columns behind k are multiplied by reflection k. */                                                             \
    static void apply_##type(gy_matrix m, int64_t k, type factor, type *sum)                                           \
    {                                                                                                                  \
        type *a = m.data;                                                                                              \
        for (int64_t j = k + 1; j < m.columns; j++)                                                                    \
            sum[j] = a[k * m.ld + j];                                                                                  \
        for (int64_t i = k + 1; i < m.rows; i++)                                                                       \
            for (int64_t j = k + 1; j < m.columns; j++)                                                                \
                sum[j] += a[i * m.ld + k] * a[i * m.ld + j];                                                           \
        for (int64_t j = k + 1; j < m.columns; j++)                                                                    \
            a[k * m.ld + j] -= factor * sum[j];                                                                        \
        for (int64_t i = k + 1; i < m.rows; i++)                                                                       \
            for (int64_t j = k + 1; j < m.columns; j++)                                                                \
                a[i * m.ld + j] -= factor * a[i * m.ld + k] * sum[j];                                                  \
    }                                                                                                                  \
    static void factor_##type(gy_matrix m, type *tau)                                                                  \
    {                                                                                                                  \
        for (int64_t k = 0; k < m.columns; k++) {                                                                      \
            tau[k] = reflect_##type(m, k);                                                                             \
            apply_##type(m, k, tau[k], tau);                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    /* Column k of the first columns of H_0 H_1 ..., where those behind it have been made of the reflections from k +  \
     * 1 on. */                                                                                                        \
    static void unfold_##type(gy_matrix m, int64_t k, type *tau)                                                       \
    {                                                                                                                  \
        type *a = m.data;                                                                                              \
        for (int64_t j = k + 1; j < m.columns; j++)                                                                    \
            a[k * m.ld + j] = 0;                                                                                       \
        apply_##type(m, k, tau[k], tau);                                                                               \
        a[k * m.ld + k] = 1 - tau[k];                                                                                  \
        for (int64_t i = k + 1; i < m.rows; i++)                                                                       \
            a[i * m.ld + k] *= -tau[k];                                                                                \
    }
REFLECTIONS(float)
REFLECTIONS(double)

int32_t gy_geqrf_plain(gantry_dtype dtype, gy_matrix a, void *tau)
{
    if (dtype == GANTRY_F32)
        factor_float(a, tau);
    else
        factor_double(a, tau);
    return 0;
}

int32_t gy_orgqr_plain(gantry_dtype dtype, gy_matrix a, void *tau)
{
    for (int64_t k = a.columns - 1; k >= 0; k--)
        if (dtype == GANTRY_F32)
            unfold_float(a, k, tau);
        else
            unfold_double(a, k, tau);
    return 0;
}
