/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the table that the back end launches for itself: a handle for each device, `handle` in the state. */
#ifndef GY_CUDA_STREAM_OWN_KERNEL_H
#define GY_CUDA_STREAM_OWN_KERNEL_H

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/state/device.h"

typedef struct gy_own_kernel {
    const char *name, *what; /* in the table; in messages, "what fills memory" */
} gy_own_kernel;

/* Opens it on the device, unless that was done. That there is none, or no code for the GPU, is no failure:
 * handle[device] stays NULL then, and others do the work. */
gantry_status gy_own_kernel_open(gy_cuda *h, const gy_own_kernel *own, void **handle, uint32_t device,
                                 gantry_error *err);
/* Says that it could not be opened, and why. */
gantry_status gy_own_kernel_fail(const gy_cuda *h, const gy_own_kernel *own, uint32_t device, gantry_status status,
                                 const gantry_error *why, gantry_error *err);
/* On all devices; `handle` may be NULL. */
void gy_own_kernel_close(gy_cuda *h, const gy_own_kernel *own, void **handle);

#endif
