/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that the caller gives: page-locked, of a GPU, or unknown to CUDA. */
#include "backends/cuda/memory/memory.h"

#include "base/error.h"
#include <inttypes.h>

/* Both attributes are asked for in one call, which makes it no error if CUDA does not know the memory. */
bool gy_cuda_memory_type(gy_cuda *h, const void *at, unsigned *type, int *ordinal)
{
    CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
    void *to[] = { type, ordinal };
    *type = 0;
    *ordinal = -1;
    return h->d.cuPointerGetAttributes(2, which, to, (CUdeviceptr)(uintptr_t)at) == CUDA_SUCCESS && *type != 0;
}

gantry_status gy_cuda_locate(gy_cuda *h, uint32_t memory, const void *at, uint64_t bytes, gantry_error *err)
{
    unsigned type;
    int ordinal;
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)at, base = 0;
    size_t size = 0;
    uint32_t device = h->memory[memory].device;
    if (device == GY_NONE)
        return GANTRY_OK; /* another memory of the host */
    if (!gy_cuda_memory_type(h, at, &type, &ordinal) || type != CU_MEMORYTYPE_DEVICE) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "that is no memory of a GPU; allocate it there (cuMemAlloc, cudaMalloc)");
    }
    if (ordinal != h->device[device].ordinal) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "that is memory of GPU %d, and \"%s\" is GPU %d", ordinal,
                       h->job->schedule->machine->memory[memory].id, h->device[device].ordinal);
    }
    CUresult code = h->d.cuMemGetAddressRange(&base, &size, address);
    if (code == CUDA_SUCCESS && address - base + bytes > size) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "%" PRIu64 " bytes are wanted, and %" PRIu64 " are left from there to the end of the allocation",
                       bytes, (uint64_t)(size - (address - base)));
    }
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, device, "looking for an allocation", err);
}
