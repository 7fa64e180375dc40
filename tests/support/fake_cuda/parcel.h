/* SPDX-License-Identifier: Apache-2.0 */
/* Host versions as kernels of the fake driver: they run on the memory of a device, when the stream comes to it. */
#ifndef FAKE_CUDA_PARCEL_H
#define FAKE_CUDA_PARCEL_H

#include "control.h"
#include <gantry/kernel.h>

/* The two functions of the driver that are needed: whoever links the fake gives them, a module finds them. */
typedef struct parcel_driver {
    __typeof__(fakeCudaFunction) *make;
    __typeof__(cuLaunchKernel) *launch;
} parcel_driver;

/* Queues `host` on the launch's stream with a copy of its arguments; `handle` is what it finds as such. What it
 * returns, or leaves in its status word, arrives in the status word of the launch, unless it is 0. */
gantry_status parcel_queue(parcel_driver driver, const gantry_launch *launch, gantry_kernel_fn host, void *handle);

#endif
