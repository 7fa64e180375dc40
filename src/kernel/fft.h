/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Discrete Fourier transforms behind the host version of fft: a table of functions. One in plain C is always there;
 * gantry-fftw.so brings one that calls FFTW. Numbers are complex: pairs of floats, the real part first. dtype is
 * GANTRY_F32 or GANTRY_F64.
 */
#ifndef GY_KERNEL_FFT_H
#define GY_KERNEL_FFT_H

#include "base/module.h"
#include <gantry/kernel.h>

enum { GY_FFT_AXES = 3 };

/* Along each of `axes` axes in turn, y[k] = sum of x[j] e^(sign 2 pi i j k / n), and times a scale in the end; sign is
 * -1, or 1 where `inverse` is 1. The numbers are an array [outer, n[0], ..., n[axes - 1], inner] in C order. */
typedef struct gy_fft_shape {
    gantry_dtype dtype;
    int inverse, axes;                    /* axes: 1 to GY_FFT_AXES */
    int64_t n[GY_FFT_AXES], outer, inner; /* at least 1; of axes that there are not, 1 */
} gy_fft_shape;

/* Numbers that are transformed together: the product of all n. */
static inline int64_t gy_fft_points(const gy_fft_shape *s)
{
    return s->n[0] * s->n[1] * s->n[2];
}

/* How far apart neighbours along an axis are. */
static inline int64_t gy_fft_stride(const gy_fft_shape *s, int axis)
{
    int64_t stride = s->inner;
    for (int k = axis + 1; k < s->axes; k++)
        stride *= s->n[k];
    return stride;
}

/* All numbers of x, or y. */
static inline int64_t gy_fft_numbers(const gy_fft_shape *s)
{
    return s->outer * gy_fft_points(s) * s->inner;
}

/* `inverse` counts only where `signs` says so. */
static inline bool gy_fft_same(const gy_fft_shape *a, const gy_fft_shape *b, bool signs)
{
    bool same = a->dtype == b->dtype && (!signs || a->inverse == b->inverse) && a->axes == b->axes &&
                a->outer == b->outer && a->inner == b->inner;
    for (int k = 0; k < GY_FFT_AXES; k++)
        same = same && a->n[k] == b->n[k];
    return same;
}

typedef struct gy_fft {
    const char *name;
    /* Works out what transforms of that shape have in common; x and y, which do not overlap, are neither read nor
     * written. NULL: out of memory. */
    void *(*plan)(const gy_fft_shape *shape, const void *x, void *y);
    /* Any arrays of the plan's shape; several threads at once. E_NOMEM: no room for what is in between. */
    gantry_status (*run)(const void *plan, const void *x, void *y, double scale);
    void (*free)(void *plan);
} gy_fft;

/* gantry_kernel.open and .close: opens gantry-fftw.so; without one, `plain`. */
gantry_status gy_fft_open(void **handle, const gy_fft *plain);
void gy_fft_close(void *handle);
/* Transforms with the handle; plans are kept in it. Threads may call it at once. */
gantry_status gy_fft_run(void *handle, const gy_fft_shape *shape, const void *x, void *y, double scale);

#endif
