/* SPDX-License-Identifier: Apache-2.0 */
/** Kernels by cuBLAS share the library, a handle of it, and how it is told of products. */
#ifndef GY_CUDA_KERNELS_BLAS_CALLS_H
#define GY_CUDA_KERNELS_BLAS_CALLS_H

#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/nvidia/blas.h"
#include <stdbool.h>

typedef struct gy_blas_calls {
    const gy_driver *driver;
    gy_blas blas;
    cublasHandle_t cublas; /* NULL: not opened */
    char why[160];         /* the last call failed */
} gy_blas_calls;

/* `usable` of a kernel by cuBLAS. */
gantry_status gy_blas_usable(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err);
/* In the context that is current. */
gantry_status gy_blas_calls_open(gy_blas_calls *c, const gy_driver *driver, gantry_error *err);
void gy_blas_calls_close(gy_blas_calls *c); /* also what was not opened */

/* E_DEVICE: the call of that library failed; `why`, of `size` bytes, gets its name and that of the status. */
gantry_status gy_blas_check_of(cublasStatus_t status, const char *call, const char *library, char *why, size_t size);
gantry_status gy_blas_check(gy_blas_calls *c, cublasStatus_t status, const char *call);
/* Bytes of the workspace that every launch has. */
uint64_t gy_blas_workspace(const gy_driver *driver, int ordinal);
/* The calls that follow go to the launch's stream, with the first `bytes` of its scratch as their workspace. */
gantry_status gy_blas_begin(gy_blas_calls *c, const gantry_launch *l, uint64_t bytes);

/* The type of an element, which is floating. */
cudaDataType gy_blas_type_of(gantry_dtype dtype);

/* A factor as the sums are computed: f64, else f32. */
typedef union gy_factor {
    float single;
    double wide;
} gy_factor;
gy_factor gy_factor_of(double number, gantry_dtype dtype);

/* c = alpha op(a) op(b) + beta c, as cuBLAS is told. */
typedef struct gy_blas_product {
    gy_gpu_matrix a, b, c;
    gy_factor alpha, beta;
    cublasOperation_t op_a, op_b;
    cudaDataType type, result; /* of the factors; of c */
    cublasComputeType_t compute;
    int depth;
} gy_blas_product;

/* `result`: the dtype of c, which is that of the factors, or f32 of f16 and bf16. */
gy_blas_product gy_blas_product_of(gantry_dtype dtype, gantry_dtype result, double alpha, double beta, gy_gpu_matrix a,
                                   bool ta, gy_gpu_matrix b, bool tb, gy_gpu_matrix c);
/* Of `count` matrices each. `step`: elements from matrix to matrix of a, b and c. */
gantry_status gy_blas_multiply(gy_blas_calls *c, const gy_blas_product *p, int count, const long long step[3]);

#endif
