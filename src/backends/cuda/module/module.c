/* SPDX-License-Identifier: Apache-2.0 */
/* gantry-cuda.so: what it exports. */
#include "backends/cuda/module/module.h"

#include "backends/cuda/measure/measure.h"
#include "backends/cuda/nvidia/discover.h"
#include "gantry_build_id.h"

GANTRY_API extern const char gantry_cuda_build_id[];
const char gantry_cuda_build_id[] = GY_BUILD_ID;

GANTRY_API const void *gantry_cuda_module(void);

const void *gantry_cuda_module(void)
{
    static const gy_backend_module module = { &gy_backend_cuda, gy_cuda_discover, gy_cuda_describe, gy_cuda_measure };
    return &module;
}
