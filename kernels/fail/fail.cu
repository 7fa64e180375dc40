/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"

#include <stdint.h>

extern "C" __global__ void fail_copy(const uint8_t *x, uint8_t *y, int64_t bytes)
{
    gy_begin();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += (int64_t)gridDim.x * blockDim.x)
        y[i] = x[i];
}

/* One thread, behind the copy. NULL: not that way. */
extern "C" __global__ void fail_tell(int32_t *status, int32_t code, float *not_a_number)
{
    gy_begin();
    if (status)
        *status = code;
    if (not_a_number)
        *not_a_number = __int_as_float(0x7fc00000);
}
