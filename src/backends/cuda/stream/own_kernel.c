/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/stream/own_kernel.h"

#include "base/error.h"

gantry_status gy_own_kernel_fail(const gy_cuda *h, const gy_own_kernel *own, uint32_t device, gantry_status status,
                                 const gantry_error *why, gantry_error *err)
{
    gy_fail(err, status, NULL, "%s could not be opened on device \"%s\": %s", own->what,
            h->job->schedule->machine->device[device].id, why->text);
    if (err) {
        err->native = why->native;
        err->device = (int32_t)device;
    }
    return status;
}

gantry_status gy_own_kernel_open(gy_cuda *h, const gy_own_kernel *own, void **handle, uint32_t device,
                                 gantry_error *err)
{
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(own->name);
    gantry_error why = { 0 };
    if (!kernel || handle[device])
        return GANTRY_OK;
    GY_TRY(gy_cuda_use(h, device, err));
    gantry_status status = kernel->open(&handle[device], kernel, &h->d, &why);
    if (status == GANTRY_OK)
        return GANTRY_OK;
    handle[device] = NULL;
    if (why.native == CUDA_ERROR_NO_BINARY_FOR_GPU)
        return GANTRY_OK;
    return gy_own_kernel_fail(h, own, device, status, &why, err);
}

void gy_own_kernel_close(gy_cuda *h, const gy_own_kernel *own, void **handle)
{
    for (uint32_t i = 0; handle && i < h->devices; i++) {
        if (!handle[i])
            continue;
        gy_cuda_use(h, i, NULL); /* where that fails a part of it is still the host's */
        gy_cuda_kernel_find(own->name)->close(handle[i]);
    }
}
