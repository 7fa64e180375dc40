/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Linear algebra without libraries: images of this module that do what cuBLAS, cuSOLVER and cuFFT do faster. Results
 * are the bits of the host's plain version, but for fft, whose factors are sines.
 */
#ifndef GY_CUDA_KERNELS_PLAIN_H
#define GY_CUDA_KERNELS_PLAIN_H

#include "backends/cuda/kernels/image.h"

#define KERNEL(name)
#define DEVICE(name)
#define LIBRARY(name)                                                                                                  \
    extern const gy_cuda_image gy_plain_##name##_image;                                                                \
    extern const gy_cuda_kernel gy_plain_##name;                                                                       \
    gantry_status gy_plain_##name##_launch(const gantry_launch *l);
#include "kernels/kernels.def"

/* Turns the square matrix that is the first argument over its diagonal, in place. The launch's handle is that of
 * gy_plain_potrf. */
gantry_status gy_plain_turn(const gantry_launch *l);

/* Exchanges the rows of getrs(a, pivots, b). The launch's handle is that of gy_plain_getrs. */
gantry_status gy_plain_exchange_rows(const gantry_launch *l);

/* Multiplies the result of an fft by its scale. The launch's handle is that of gy_plain_fft. */
gantry_status gy_plain_scale_complex(const gantry_launch *l);

#endif
