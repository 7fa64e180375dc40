/* SPDX-License-Identifier: Apache-2.0 */
/** Kernels by cuBLASLt share the library, a handle of it, and the algorithms that were chosen for products. */
#ifndef GY_CUDA_KERNELS_BLAS_LT_CALLS_H
#define GY_CUDA_KERNELS_BLAS_LT_CALLS_H

#include "backends/cuda/kernels/blas_calls.h"
#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/nvidia/blas_lt.h"

#include "base/vec.h"

/* An algorithm is chosen by these. Shapes are compared with their padding, so each begins as gy_blas_lt_shape_of has
 * it. */
typedef struct gy_blas_lt_shape {
    int rows, columns, depth, ta, tb, activation;
    gantry_dtype dtype, result; /* of the factors; of c */
    uint32_t is_added;          /* to what c was */
    uint32_t a, b, c, bias;     /* alignment in bytes */
} gy_blas_lt_shape;

typedef struct gy_blas_lt_plan {
    gy_blas_lt_shape of;
    bool refused;
    cublasLtMatmulAlgo_t algorithm;
} gy_blas_lt_plan;

typedef struct gy_blas_lt_calls {
    gy_blas_lt api;
    cublasLtHandle_t lt; /* NULL: not opened */
    GY_VEC(gy_blas_lt_plan) plans;
    char why[160]; /* the last call failed */
} gy_blas_lt_calls;

/* In the context that is current. */
gantry_status gy_blas_lt_calls_open(gy_blas_lt_calls *c, int driver_version, gantry_error *err);
void gy_blas_lt_calls_close(gy_blas_lt_calls *c); /* also what was not opened */

/* E_DEVICE: the call failed; `why` says so. */
gantry_status gy_blas_lt_check(gy_blas_lt_calls *c, cublasStatus_t status, const char *call);
#define GY_BLAS_LT_CALL(c, name, ...) gy_blas_lt_check(c, (c)->api.name(__VA_ARGS__), #name)

/* Of c = op(a) b: extents and types; all else is 0. */
gy_blas_lt_shape gy_blas_lt_shape_of(const gantry_arg *a, bool ta, const gantry_arg *c);
/* The algorithm that the heuristics put first, with so much workspace at most, among those that add up parts of sums
 * in f32: the same for all products of a shape, and not tried out by the clock. `p` describes the product but for what
 * is wanted of an algorithm. NULL: cuBLASLt does not do it. */
gantry_status gy_blas_lt_choose(gy_blas_lt_calls *c, const gy_blas_lt_shape *s, gy_blas_lt_call *p, uint64_t workspace,
                                const cublasLtMatmulAlgo_t **algorithm);

#endif
