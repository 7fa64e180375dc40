/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of lu.json for the CPU: the textbook's loops. */
#include <gantry/kernel.h>

enum { WIDTH = 32 };

#define KERNELS(name, type)                                                                                            \
    gantry_status lu_diagonal##name(const gantry_launch *l);                                                           \
    gantry_status lu_edges##name(const gantry_launch *l);                                                              \
    gantry_status lu_rest##name(const gantry_launch *l);                                                               \
    gantry_status lu_split##name(const gantry_launch *l);                                                              \
                                                                                                                       \
    gantry_status lu_diagonal##name(const gantry_launch *l)                                                            \
    {                                                                                                                  \
        type *a = l->arg[0].data;                                                                                      \
        int64_t at = l->arg[1].integer, n = l->arg[2].integer, end = at + WIDTH < n ? at + WIDTH : n;                  \
        for (int64_t k = at; k < end; k++)                                                                             \
            for (int64_t i = k + 1; i < end; i++) {                                                                    \
                a[i * n + k] /= a[k * n + k];                                                                          \
                for (int64_t j = k + 1; j < end; j++)                                                                  \
                    a[i * n + j] -= a[i * n + k] * a[k * n + j];                                                       \
            }                                                                                                          \
        return GANTRY_OK;                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    gantry_status lu_edges##name(const gantry_launch *l)                                                               \
    {                                                                                                                  \
        type *a = l->arg[0].data;                                                                                      \
        int64_t at = l->arg[1].integer, n = l->arg[2].integer, end = at + WIDTH;                                       \
        for (int64_t i = end; i < n; i++)                                                                              \
            for (int64_t k = at; k < end; k++) {                                                                       \
                for (int64_t j = at; j < k; j++) {                                                                     \
                    a[i * n + k] -= a[i * n + j] * a[j * n + k];                                                       \
                    a[k * n + i] -= a[k * n + j] * a[j * n + i];                                                       \
                }                                                                                                      \
                a[i * n + k] /= a[k * n + k];                                                                          \
            }                                                                                                          \
        return GANTRY_OK;                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    gantry_status lu_rest##name(const gantry_launch *l)                                                                \
    {                                                                                                                  \
        type *a = l->arg[0].data;                                                                                      \
        int64_t at = l->arg[1].integer, n = l->arg[2].integer, end = at + WIDTH;                                       \
        for (int64_t i = end; i < n; i++)                                                                              \
            for (int64_t j = end; j < n; j++)                                                                          \
                for (int64_t k = at; k < end; k++)                                                                     \
                    a[i * n + j] -= a[i * n + k] * a[k * n + j];                                                       \
        return GANTRY_OK;                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    gantry_status lu_split##name(const gantry_launch *l)                                                               \
    {                                                                                                                  \
        const type *a = l->arg[0].data;                                                                                \
        type *lower = l->arg[1].data, *upper = l->arg[2].data;                                                         \
        int64_t n = l->arg[3].integer;                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                                                \
            for (int64_t j = 0; j < n; j++) {                                                                          \
                lower[i * n + j] = i > j ? a[i * n + j] : i == j;                                                      \
                upper[j * n + i] = i <= j ? a[i * n + j] : 0;                                                          \
            }                                                                                                          \
        return GANTRY_OK;                                                                                              \
    }

KERNELS(_f64, double)
KERNELS(_f32, float)
