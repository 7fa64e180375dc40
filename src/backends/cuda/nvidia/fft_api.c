/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/fft_api.h"

gantry_status gy_cufft_open(gy_cufft *fft, int driver_version, gantry_error *err)
{
    static const char *const names[] = { "libcufft.so.12", "libcufft.so.11", "libcufft.so.10",
                                         NULL }; /* CUDA 13, 12, 11 */
    gy_cufft f;
    gantry_status status = gy_library_open(&f.lib, gy_library_names_from(names, driver_version), err);
#define GY_X(name) status = status ? status : gy_library_find(&f.lib, #name, &f.name, err);
    GY_CUFFT_FUNCTIONS(GY_X)
#undef GY_X
    if (status == GANTRY_OK)
        *fft = f;
    return status;
}

const char *gy_cufft_status_name(cufftResult status)
{
    switch (status) {
#define NAME(name)                                                                                                     \
    case name:                                                                                                         \
        return #name;
        NAME(CUFFT_SUCCESS)
        NAME(CUFFT_INVALID_PLAN)
        NAME(CUFFT_ALLOC_FAILED)
        NAME(CUFFT_INVALID_TYPE)
        NAME(CUFFT_INVALID_VALUE)
        NAME(CUFFT_INTERNAL_ERROR)
        NAME(CUFFT_EXEC_FAILED)
        NAME(CUFFT_SETUP_FAILED)
        NAME(CUFFT_INVALID_SIZE)
        NAME(CUFFT_UNALIGNED_DATA)
        NAME(CUFFT_INVALID_DEVICE)
        NAME(CUFFT_NO_WORKSPACE)
        NAME(CUFFT_NOT_IMPLEMENTED)
        NAME(CUFFT_NOT_SUPPORTED)
    default:
        return "a status without a name";
    }
}
