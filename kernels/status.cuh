/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel reports failure: by a word that is 0 until something else is stored there. */
#ifndef GY_KERNELS_STATUS_CUH
#define GY_KERNELS_STATUS_CUH

#include <stdint.h>

/* Of several codes, all above 0, the smallest stays, whatever the order of threads: that of the first row, say. */
static __device__ inline void gy_tell_least(int32_t *status, int32_t code)
{
    int32_t old = atomicCAS(status, 0, code);
    while (old != 0 && code < old) {
        int32_t seen = atomicCAS(status, old, code);
        if (seen == old)
            return;
        old = seen;
    }
}

#endif
