// SPDX-License-Identifier: Apache-2.0
// The flag of a node's `when`: says to the conditional node of a graph whether what is in it runs.

#include "kernels/begin.cuh"

// The driver has this function, for CUDA 12.3 and later; CUDA's own header of device code declares it, too.
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);

static __device__ unsigned long long load(const void *at, int bytes)
{
    switch (bytes) {
    case 1:
        return *static_cast<const unsigned char *>(at);
    case 2:
        return *static_cast<const unsigned short *>(at);
    case 4:
        return *static_cast<const unsigned *>(at);
    default:
        return *static_cast<const unsigned long long *>(at);
    }
}

// `mask` leaves the sign of floating numbers out, so that -0 is 0; a NaN has other bits, too.
extern "C" __global__ void when(unsigned long long handle, const void *flag, int bytes, unsigned long long mask)
{
    gy_begin();
    cudaGraphSetConditional(handle, (load(flag, bytes) & mask) != 0);
}
