/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Linear algebra without libraries: images of this module that do what cuBLAS, cuSOLVER and cuFFT do faster. Results
 * are the bits of the host's plain version, but for fft, whose factors are sines, and qr, whose sums are those of a
 * block.
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

/* For `keeps_word` of factorisations: own launches do nothing once an earlier one of the same call has told of a
 * failure, and cuSOLVER writes its word in any case. */
static inline bool gy_plain_keeps_word(const void *unused)
{
    (void)unused;
    return true;
}

/* Defines gy_plain_NAME and its image, with these functions of a dtype by their suffixes; keeps: `keeps_word`. */
#define GY_PLAIN_KERNEL(name_, keeps, dtypes_, ...)                                                                    \
    const gy_cuda_image gy_plain_##name_##_image = { .code = gy_fatbin_##name_,                                        \
                                                     .dtypes = dtypes_,                                                \
                                                     .variant = { __VA_ARGS__ } };                                     \
    const gy_cuda_kernel gy_plain_##name_ = { .name = #name_,                                                          \
                                              .launch = gy_plain_##name_##_launch,                                     \
                                              .open = gy_cuda_image_open,                                              \
                                              .close = gy_cuda_image_close,                                            \
                                              .data = &gy_plain_##name_##_image,                                       \
                                              .early = gy_cuda_image_early,                                            \
                                              .prepare = gy_cuda_image_prepare,                                        \
                                              .why = gy_cuda_image_why,                                                \
                                              .keeps_word = keeps };

/* Turns the square matrix that is the first argument over its diagonal, in place. The launch's handle is that of
 * gy_plain_potrf. */
gantry_status gy_plain_turn(const gantry_launch *l);

/* Is it a product of one row, whose matrix gy_plain_gemm_rows can read in packs? */
bool gy_plain_gemm_is_row(const gantry_launch *l);
/* Such products: that of the launch, or those of a batch, whose first it is. The launch's handle is that of
 * gy_plain_gemm. Sums have another order than the host's. */
gantry_status gy_plain_gemm_rows(const gantry_launch *l, const gy_cuda_batch *batch);

/* to = the transpose of a matrix of f8. The launch's handle is that of gy_plain_gemm. */
gantry_status gy_plain_turn_f8(const gantry_launch *l, const gantry_arg *matrix, void *to);

/* Exchanges the rows of getrs(a, pivots, b). The launch's handle is that of gy_plain_getrs. */
gantry_status gy_plain_exchange_rows(const gantry_launch *l);

/* Adds the bias to the result of gemm_bias, which has the product, and activates it. The launch's handle is that of
 * gy_plain_gemm_bias. */
gantry_status gy_plain_finish_gemm_bias(const gantry_launch *l);
/* A gemm_bias of one row, where the row version can be launched, with the same handle. */
bool gy_plain_gemm_bias_is_row(const gantry_launch *l);
gantry_status gy_plain_gemm_bias_row(const gantry_launch *l);

/* Multiplies the result of an fft by its scale. The launch's handle is that of gy_plain_fft. */
gantry_status gy_plain_scale_complex(const gantry_launch *l);

#endif
