/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Surroundings of a run that keep kernels from waiting for each other: a kernel of one GPU waits for that of another,
 * or for a stream, so all that a start gives to GPUs has to be under way at once, and may take as long as the start.
 */
#include "backends/cuda/resident/resident.h"

/* Displays do not move while a kernel runs, so the driver ends one that takes some seconds. */
static bool has_time_limit(const gy_cuda *h)
{
    bool any = false;
    for (uint32_t i = 0; i < h->devices && !any; i++) {
        int value = 0;
        any = h->resident->gpu[i].used &&
              h->d.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, h->device[i].id) ==
                  CUDA_SUCCESS &&
              value;
    }
    return any;
}

const char *gy_resident_around(const gy_cuda *h)
{
    if (gy_driver_blocks())
        return "CUDA_LAUNCH_BLOCKING is set, so no launch begins before the one ahead has ended: unset it";
    if (gy_driver_debugged(&h->d))
        return "a debugger stops kernels, for which others would wait: run it without, or with the replay mode "
               "\"stream\"";
    if (gy_driver_has_part())
        return "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE leaves the process a part of a GPU, and workers need all of it: "
               "unset it, or set it to 100";
    if (has_time_limit(h))
        return "a GPU drives a display, and the driver ends kernels that take long there: leave it out by "
               "CUDA_VISIBLE_DEVICES";
    return NULL;
}
