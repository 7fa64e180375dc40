/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that must be the same for measured figures to hold: what a detection would find, and the clocks. */
#include "backends/cuda/measure/measure.h"

#include "backends/cuda/nvidia/discover.h"
#include "base/error.h"

double gy_nvml_clock(const gy_nvml *nvml, const gy_driver *d, const gantry_machine *m, uint32_t device)
{
    char bus[32];
    CUdevice id;
    if (d->cuDeviceGet(&id, gy_device_ordinal(m, device)) || d->cuDeviceGetPCIBusId(bus, (int)sizeof bus, id))
        return 0;
    return gy_nvml_clock_now(nvml, bus);
}

gantry_status gy_cuda_fingerprint(const gy_driver *d, const gy_nvml *nvml, gy_text *to, gantry_error *err)
{
    gy_gpus gpus = { 0 };
    int count = 0;
    CUresult code = d->cuDeviceGetCount(&count);
    gantry_status status =
        code ? gy_driver_fail(d, code, "counting GPUs", err) : gy_cuda_discover_with(d, count, &gpus, err);
    if (status)
        return status;
    gy_gpus_fingerprint(to, &gpus);
    for (uint32_t i = 0; i < gpus.count; i++) {
        unsigned most = gy_nvml_clock_most(nvml, gpus.at[i].bus);
        if (most)
            gy_text_printf(to, "gpu%u.clock: %u MHz at most\n", i, most);
    }
    gy_gpus_free(&gpus);
    return to->failed ? gy_fail_nomem(err) : GANTRY_OK;
}
