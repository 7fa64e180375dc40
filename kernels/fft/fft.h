/* SPDX-License-Identifier: Apache-2.0 */
/* How the host version and the launcher of fft.cu cut a transform into passes. */
#ifndef GY_KERNELS_FFT_H
#define GY_KERNELS_FFT_H

#include "kernel/fft.h"
#include "kernels/manifest.h"

enum { GY_FFT_INVERSE, GY_FFT_SCALE, GY_FFT_X, GY_FFT_Y }; /* arguments */
enum { GY_FFT_RADIX = 13, GY_FFT_PASSES = 64 };            /* the largest prime that has passes of its own */

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

static inline gy_fft_shape gy_fft_shape_of(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[GY_FFT_X];
    gy_fft_shape s = { .dtype = x->dtype, .inverse = l->arg[GY_FFT_INVERSE].number != 0 };
    s.n = x->shape[x->rank - 2];
    s.count = s.n > 0 ? gy_arg_size(x) / (2 * s.n) : 0;
    return s;
}

/* An inverse divides by n, as NumPy's does. */
static inline double gy_fft_scale_of(const gantry_launch *l)
{
    gy_fft_shape s = gy_fft_shape_of(l);
    return l->arg[GY_FFT_SCALE].number / (s.inverse && s.n > 0 ? (double)s.n : 1);
}

extern const gy_fft gy_fft_plain;

#endif
