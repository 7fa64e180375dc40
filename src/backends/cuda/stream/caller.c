/* SPDX-License-Identifier: Apache-2.0 */
/* Order between a start and a stream of the caller. */
#include "backends/cuda/stream/stream.h"

#include "base/error.h"

/* The GPU of the stream: one of those whose contexts we have. */
static uint32_t device_of(gy_cuda *h, CUstream stream)
{
    CUcontext context = h->before;
    if (stream && h->d.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS)
        return GY_NONE;
    for (uint32_t i = 0; i < h->devices; i++)
        if (h->device[i].gpu && context && h->device[i].context == context)
            return i;
    return GY_NONE;
}

gantry_status gy_cuda_after_caller(gy_cuda *h, CUstream stream, gy_queue *caller, gantry_error *err)
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
    return gy_submit_order(&x, *caller, h->end_stream);
}

gantry_status gy_cuda_before_caller(gy_cuda *h, gy_queue caller, CUevent end, gantry_error *err)
{
    gantry_status status = gy_cuda_use(h, caller.device, err);
    CUresult code = status ? CUDA_SUCCESS : h->d.cuStreamWaitEvent(caller.stream, end, 0);
    return code == CUDA_SUCCESS ? status : gy_cuda_fail(h, code, caller.device, "ordering a stream of the caller", err);
}
