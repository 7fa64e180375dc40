/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/solver.h"

/* CUDA 11.1 to 12 have the same number; which of them it is shows when a handle is made. */
gantry_status gy_solver_open(gy_solver *solver, int driver_version, gantry_error *err)
{
    static const char *const names[] = { "libcusolver.so.12", "libcusolver.so.11", NULL };
    int newer = driver_version == 0 || driver_version >= 13000 ? 0 : 1;
    gy_solver s;
    gantry_status status = gy_library_open(&s.lib, names + newer, err);
#define GY_X(name) status = status ? status : gy_library_find(&s.lib, #name, &s.name, err);
    GY_SOLVER_FUNCTIONS(GY_X)
#undef GY_X
    if (status == GANTRY_OK)
        *solver = s;
    return status;
}

const char *gy_solver_status_name(cusolverStatus_t status)
{
    switch (status) {
#define NAME(name)                                                                                                     \
    case name:                                                                                                         \
        return #name;
        NAME(CUSOLVER_STATUS_SUCCESS)
        NAME(CUSOLVER_STATUS_NOT_INITIALIZED)
        NAME(CUSOLVER_STATUS_ALLOC_FAILED)
        NAME(CUSOLVER_STATUS_INVALID_VALUE)
        NAME(CUSOLVER_STATUS_ARCH_MISMATCH)
        NAME(CUSOLVER_STATUS_MAPPING_ERROR)
        NAME(CUSOLVER_STATUS_EXECUTION_FAILED)
        NAME(CUSOLVER_STATUS_INTERNAL_ERROR)
        NAME(CUSOLVER_STATUS_NOT_SUPPORTED)
        NAME(CUSOLVER_STATUS_INVALID_LICENSE)
    default:
        return "a status without a name";
    }
}
