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

/* y[k] = scale * sum of x[j] e^(sign 2 pi i j k / n), `count` times, one behind the other; sign is -1, or 1 where
 * `inverse` is 1. */
typedef struct gy_fft_shape {
    gantry_dtype dtype;
    int inverse;
    int64_t n, count; /* at least 1 */
} gy_fft_shape;

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
