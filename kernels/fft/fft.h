/* SPDX-License-Identifier: Apache-2.0 */
/* How the host version and the launcher of fft.cu cut a transform into passes. */
#ifndef GY_KERNELS_FFT_H
#define GY_KERNELS_FFT_H

#include "kernel/fft.h"
#include "kernels/manifest.h"

enum { GY_FFT_INVERSE, GY_FFT_SCALE, GY_FFT_AXIS, GY_FFT_COUNT, GY_FFT_X, GY_FFT_Y }; /* arguments */
enum { GY_FFT_RADIX = 13, GY_FFT_PASSES = 64 }; /* the largest prime that has passes of its own */

typedef struct gy_fft_passes {
    int count; /* at least 1 */
    int radix[GY_FFT_PASSES];
} gy_fft_passes;

/* Passes whose radices multiply to n, fours first; false: n has a larger prime factor than GY_FFT_RADIX. */
static inline bool gy_fft_passes_of(int64_t n, gy_fft_passes *p)
{
    static const int radices[] = { 4, 2, 3, 5, 7, 11, 13 };
    *p = (gy_fft_passes){ 0 };
    for (size_t i = 0; i < sizeof radices / sizeof *radices; i++)
        for (; n % radices[i] == 0; n /= radices[i])
            p->radix[p->count++] = radices[i];
    if (p->count == 0)
        p->radix[p->count++] = 1;
    return n == 1;
}

/* The power of two to which Bluestein's algorithm pads a transform of n numbers. */
static inline int64_t gy_fft_padded(int64_t n)
{
    int64_t m = 1;
    while (m < 2 * n - 1)
        m *= 2;
    return m;
}

/* The first axis of argument x or y that is transformed; -1: it has not so many. The last axis of all is that of pairs.
 */
static inline int32_t gy_fft_first_axis(const gantry_launch *l, const gantry_arg *a)
{
    int64_t axis = l->arg[GY_FFT_AXIS].integer, count = l->arg[GY_FFT_COUNT].integer;
    axis += axis < 0 ? a->rank : 0;
    return axis >= 0 && axis + count < a->rank ? (int32_t)axis : -1;
}

/* Of argument x or y, which has the axes. */
static inline gy_fft_shape gy_fft_shape_of_arg(const gantry_launch *l, const gantry_arg *a)
{
    gy_fft_shape s = { .dtype = a->dtype, .inverse = l->arg[GY_FFT_INVERSE].number != 0, .n = { 1, 1, 1 }, .outer = 1 };
    int32_t first = gy_fft_first_axis(l, a);
    s.axes = (int)l->arg[GY_FFT_COUNT].integer;
    s.inner = 1;
    for (int32_t k = 0; k < a->rank - 1; k++) {
        int64_t extent = k ? a->shape[k] : a->rows;
        *(k < first ? &s.outer : k < first + s.axes ? &s.n[k - first] : &s.inner) *= extent;
    }
    return s;
}

static inline gy_fft_shape gy_fft_shape_of(const gantry_launch *l)
{
    return gy_fft_shape_of_arg(l, &l->arg[GY_FFT_X]);
}

/* An inverse divides by the numbers that are transformed together, as NumPy's does. */
static inline double gy_fft_scale_of(const gantry_launch *l)
{
    gy_fft_shape s = gy_fft_shape_of(l);
    int64_t points = gy_fft_points(&s);
    return l->arg[GY_FFT_SCALE].number / (s.inverse && points > 0 ? (double)points : 1);
}

extern const gy_fft gy_fft_plain;

#endif
