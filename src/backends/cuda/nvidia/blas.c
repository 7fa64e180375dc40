/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/blas.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x) /* of the name that cublas_v2.h makes of x, such as cublasCreate_v2 */

gantry_status gy_blas_open(gy_blas *blas, int driver_version, gantry_error *err)
{
    static const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11", NULL };
    gy_blas b;
    gantry_status status = gy_library_open(&b.lib, gy_library_names_from(names, driver_version), err);
#define GY_X(name) status = status ? status : gy_library_find(&b.lib, TEXT(name), &b.name, err);
    GY_BLAS_FUNCTIONS(GY_X)
#undef GY_X
    if (status == GANTRY_OK)
        *blas = b;
    return status;
}

const char *gy_blas_status_name(cublasStatus_t status)
{
    switch (status) {
#define NAME(name)                                                                                                     \
    case name:                                                                                                         \
        return #name;
        NAME(CUBLAS_STATUS_SUCCESS)
        NAME(CUBLAS_STATUS_NOT_INITIALIZED)
        NAME(CUBLAS_STATUS_ALLOC_FAILED)
        NAME(CUBLAS_STATUS_INVALID_VALUE)
        NAME(CUBLAS_STATUS_ARCH_MISMATCH)
        NAME(CUBLAS_STATUS_MAPPING_ERROR)
        NAME(CUBLAS_STATUS_EXECUTION_FAILED)
        NAME(CUBLAS_STATUS_INTERNAL_ERROR)
        NAME(CUBLAS_STATUS_NOT_SUPPORTED)
        NAME(CUBLAS_STATUS_LICENSE_ERROR)
    default:
        return "a status without a name";
    }
}
