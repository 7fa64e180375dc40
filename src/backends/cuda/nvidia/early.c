/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/early.h"

/* Graphs have such edges from CUDA 12.3 on, GPUs from 9.0 on. What runs there was compiled for 9.0 or later. */
bool gy_early_can(const gy_driver *d)
{
    CUdevice device;
    int version = 0, major = 0;
    if (!d->launch_ex || gy_driver_switch("GANTRY_CUDA_EARLY", "off") || d->cuCtxGetDevice(&device) != CUDA_SUCCESS ||
        d->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
        d->cuDriverGetVersion(&version) != CUDA_SUCCESS)
        return false;
    return major >= 9 && version >= 12030;
}

bool gy_early_next(gy_early_launches *l, gy_early which)
{
    bool made = l->made;
    l->next = l->can ? which : GY_EARLY_NONE;
    l->made = false;
    return made;
}

static CUresult launch_early(const gy_driver *d, CUfunction function, const unsigned grid[3], const unsigned block[3],
                             unsigned shared, CUstream stream, void **params)
{
    CUlaunchAttribute early = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                .value.programmaticStreamSerializationAllowed = 1 };
    CUlaunchConfig as = { grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, &early, 1 };
    return d->launch_ex(&as, function, params, NULL);
}

CUresult gy_early_launch(gy_early_launches *l, const gy_driver *d, CUfunction function, const unsigned grid[3],
                         const unsigned block[3], unsigned shared, CUstream stream, void **params)
{
    CUresult code = l->next == GY_EARLY_ALL ? launch_early(d, function, grid, block, shared, stream, params)
                                            : d->cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1],
                                                                block[2], shared, stream, params, NULL);
    l->made = code == CUDA_SUCCESS && l->can;
    l->next = l->next == GY_EARLY_INSIDE ? GY_EARLY_ALL : l->next;
    return code;
}
