/* SPDX-License-Identifier: Apache-2.0 */
/* gantry-cuda.so: what it exports. */
#include "backends/cuda/module/cuda_backend.h"

GANTRY_API const void *gantry_cuda_module(uint32_t version);

const void *gantry_cuda_module(uint32_t version)
{
    static const gy_backend_module module = { GY_BACKEND_VERSION, &gy_backend_cuda, gy_cuda_discover,
                                              gy_cuda_describe,   gy_cuda_measure,  &gy_cuda_raw };
    (void)version; /* who asks compares */
    return &module;
}
