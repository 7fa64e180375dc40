/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_MACHINE_GPUS_BUILD_H
#define GY_MACHINE_GPUS_BUILD_H

#include "machine/build.h"
#include "machine/gpus.h"
#include "machine/host.h"

/* At least one GPU. NULL: out of memory. */
gantry_machine *gy_gpu_machine(const gy_host_info *host, const gy_gpus *gpus);

#endif
