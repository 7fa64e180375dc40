/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/blas_lt.h"

gantry_status gy_blas_lt_open(gy_blas_lt *blas, int driver_version, gantry_error *err)
{
    static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", NULL };
    gy_blas_lt b;
    gantry_status status = gy_library_open(&b.lib, gy_library_names_from(names, driver_version), err);
#define GY_X(name) status = status ? status : gy_library_find(&b.lib, #name, &b.name, err);
    GY_BLAS_LT_FUNCTIONS(GY_X)
#undef GY_X
    if (status == GANTRY_OK)
        *blas = b;
    return status;
}

void gy_blas_lt_forget(const gy_blas_lt *blas, gy_blas_lt_call *call)
{
    if (call->product)
        blas->cublasLtMatmulDescDestroy(call->product);
    if (call->a)
        blas->cublasLtMatrixLayoutDestroy(call->a);
    if (call->b)
        blas->cublasLtMatrixLayoutDestroy(call->b);
    if (call->c)
        blas->cublasLtMatrixLayoutDestroy(call->c);
    if (call->wanted)
        blas->cublasLtMatmulPreferenceDestroy(call->wanted);
}
