/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to the program that calls: its memory on GPUs, and its streams. */
#include "backends/cuda/state/state.h"

#include "base/error.h"
#include <inttypes.h>

/* Asked for together, since of memory that CUDA does not know that is no error. */
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
    if (device == GY_NONE) {
        return GANTRY_OK; /* another memory of the host */
    }
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

/* The GPU of the stream: one of those whose contexts we have. */
static uint32_t device_of(gy_cuda *h, CUstream stream)
{
    CUcontext context = h->before;
    if (stream && h->d.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS) {
        return GY_NONE;
    }
    for (uint32_t i = 0; i < h->devices; i++) {
        if (h->device[i].gpu && context && h->device[i].context == context) {
            return i;
        }
    }
    return GY_NONE;
}

gantry_status gy_cuda_follow(gy_cuda *h, CUstream stream, gy_queue *caller, gantry_error *err)
{
    uint32_t device = device_of(h, stream);
    if (device == GY_NONE) {
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "the stream is of none of the GPUs that the schedule uses; make it in the primary context of one "
            "(streams of the runtime API are), and have that current for the default stream");
    }
    *caller = (gy_queue){ stream, device };
    gy_submit x = { .h = h, .op = GY_NONE, .err = err };
    return gy_submit_order(&x, *caller, h->tail);
}

gantry_status gy_cuda_lead(gy_cuda *h, gy_queue caller, CUevent end, gantry_error *err)
{
    gantry_status status = gy_cuda_use(h, caller.device, err);
    CUresult code = status ? CUDA_SUCCESS : h->d.cuStreamWaitEvent(caller.stream, end, 0);
    return code == CUDA_SUCCESS ? status : gy_cuda_fail(h, code, caller.device, "ordering a stream of the caller", err);
}
