/* SPDX-License-Identifier: Apache-2.0 */
/** Products of f8 by cuBLASLt, for gemm: cuBLAS has none. */
#ifndef GY_CUDA_KERNELS_BLAS_F8_H
#define GY_CUDA_KERNELS_BLAS_F8_H

#include "backends/cuda/kernels/blas_calls.h"

typedef struct gy_blas_f8 gy_blas_f8;

/* In the context that is current. Without the library, or where it cannot begin, *f8 is NULL, and a kernel of our own
 * computes these products. */
gantry_status gy_blas_f8_open(gy_blas_f8 **f8, const gy_driver *driver, gantry_error *err);
void gy_blas_f8_close(gy_blas_f8 *f8); /* NULL: nothing */

/* Bytes that transposes of a launch's factors take, ahead of the workspace: cuBLASLt reads rows of a and of b^T. 0 also
 * where it is not asked, as it multiplies no such factors or extents. */
uint64_t gy_blas_f8_room(const gantry_launch *l);
/* gemm(alpha, beta, ta, tb, a, b, c, scale_a, scale_b) of f8, where c is not empty. `plain`: a handle of gy_plain_gemm.
 * `refused`: cuBLASLt does not do it, and nothing was queued. */
gantry_status gy_blas_f8_launch(gy_blas_f8 *f8, const gantry_launch *l, void *plain, bool *refused);
const char *gy_blas_f8_why(const gy_blas_f8 *f8);

#endif
