/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of this computer, as the driver and NVML report them. */
#ifndef GY_CUDA_NVIDIA_DISCOVER_H
#define GY_CUDA_NVIDIA_DISCOVER_H

#include "backends/cuda/nvidia/driver.h"
#include "machine/gpus.h"

/* See gy_backend_module. */
gantry_status gy_cuda_discover(gy_gpus *found, gantry_error *err);
/* The same with a driver that is open and sees so many devices. */
gantry_status gy_cuda_discover_with(const gy_driver *driver, int devices, gy_gpus *found, gantry_error *err);

#endif
