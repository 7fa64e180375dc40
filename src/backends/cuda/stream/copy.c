/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: each on a stream of a GPU that it touches. What devices cannot reach by themselves goes through page-locked
 * chunks: between GPUs without peer access two of them in turn, so that both halves run at once. */
#include "backends/cuda/stream/stream.h"

#include "base/error.h"

static uint64_t chunk_of(uint64_t bytes)
{
    return bytes < GY_CUDA_CHUNK ? bytes : GY_CUDA_CHUNK;
}

uint64_t gy_copy_stage(const gy_cuda *h, gy_location to, gy_location from, uint64_t bytes)
{
    if (to.device == GY_NONE && from.device == GY_NONE)
        return 0;
    if (to.device == GY_NONE || from.device == GY_NONE) {
        bool pinned = to.device == GY_NONE ? to.pinned : from.pinned;
        return pinned ? 0 : chunk_of(bytes);
    }
    return gy_cuda_reaches(h, to.device, from.device) ? 0 : 2 * chunk_of(bytes);
}

bool gy_copy_alone(const gy_cuda *h, gy_location to, gy_location from, uint32_t device)
{
    if (to.device == GY_NONE || from.device == GY_NONE) {
        uint32_t end = to.device == GY_NONE ? from.device : to.device;
        return end == GY_NONE || gy_cuda_same_gpu(h, end, device);
    }
    return gy_cuda_reaches(h, to.device, from.device) &&
           (gy_cuda_same_gpu(h, to.device, device) || gy_cuda_same_gpu(h, from.device, device));
}

static gantry_status move(gy_submit *x, gy_queue queue, void *to, const void *from, uint64_t bytes)
{
    return gy_submit_callback(x, queue,
                              (gy_callback){ .kind = GY_CALLBACK_MOVE, .to = to, .from = from, .bytes = bytes });
}

static gantry_status upload(gy_submit *x, gy_queue queue, CUdeviceptr to, const void *from, uint64_t bytes)
{
    gantry_status status = gy_cuda_use(x->h, queue.device, x->err);
    return status ? status
                  : gy_submit_check(x, x->h->d.cuMemcpyHtoDAsync(to, from, bytes, queue.stream), queue,
                                    "copying from the host");
}

static gantry_status fetch(gy_submit *x, gy_queue queue, void *to, CUdeviceptr from, uint64_t bytes)
{
    gantry_status status = gy_cuda_use(x->h, queue.device, x->err);
    return status ? status
                  : gy_submit_check(x, x->h->d.cuMemcpyDtoHAsync(to, from, bytes, queue.stream), queue,
                                    "copying to the host");
}

/* Copies between a GPU and host memory that it can read. */
static gantry_status copy_pinned(gy_submit *x, gy_queue queue, gy_location to, gy_location from, uint64_t bytes)
{
    return to.device == GY_NONE ? fetch(x, queue, to.host, from.at, bytes) : upload(x, queue, to.at, from.host, bytes);
}

static char *stage_of(const gy_submit *x)
{
    return gy_cuda_lane_of(x->h, x->op, 0)->stage;
}

/* Host memory that devices cannot read: the CPU moves it, in stream order. */
static gantry_status copy_pageable(gy_submit *x, gy_queue queue, gy_location to, gy_location from, uint64_t bytes)
{
    char *stage = stage_of(x);
    gantry_status status = GANTRY_OK;
    for (uint64_t done = 0; done < bytes && status == GANTRY_OK; done += GY_CUDA_CHUNK) {
        uint64_t count = chunk_of(bytes - done);
        if (to.device == GY_NONE) {
            status = fetch(x, queue, stage, from.at + done, count);
            status = status ? status : move(x, queue, to.host + done, stage, count);
        } else {
            status = move(x, queue, stage, from.host + done, count);
            status = status ? status : upload(x, queue, to.at + done, stage, count);
        }
    }
    return status;
}

/* Half k % 2 of the stage is free again when chunk k - 2 has left it. */
static gantry_status copy_staged(gy_submit *x, gy_location to, gy_location from, uint64_t bytes)
{
    gy_queue source, target;
    CUevent full, empty[2];
    gantry_status status = gy_submit_on(x, from.device, &source);
    status = status ? status : gy_submit_on(x, to.device, &target);
    for (uint64_t done = 0, k = 0; done < bytes && status == GANTRY_OK; done += GY_CUDA_CHUNK, k++) {
        uint64_t count = chunk_of(bytes - done);
        char *half = stage_of(x) + (k % 2) * chunk_of(bytes);
        status = k < 2 ? GANTRY_OK : gy_submit_await(x, source, empty[k % 2]);
        status = status ? status : fetch(x, source, half, from.at + done, count);
        status = status ? status : gy_submit_record_scratch(x, source, &full);
        status = status ? status : gy_submit_await(x, target, full);
        status = status ? status : upload(x, target, to.at + done, half, count);
        status = status ? status : gy_submit_record_scratch(x, target, &empty[k % 2]);
    }
    return status;
}

/* Copies within a GPU, or from peer to peer; cuMemcpyPeerAsync would do the same, but is refused in a capture. */
static gantry_status copy_direct(gy_submit *x, gy_location to, gy_location from, uint64_t bytes)
{
    gy_queue queue;
    uint32_t where = x->first_lane.device == to.device ? to.device : from.device; /* the lane is of one of the two */
    gantry_status status = gy_submit_on(x, where, &queue);
    status = status ? status : gy_cuda_use(x->h, queue.device, x->err);
    return status ? status
                  : gy_submit_check(x, x->h->d.cuMemcpyDtoDAsync(to.at, from.at, bytes, queue.stream), queue,
                                    "copying between or within devices");
}

gantry_status gy_submit_copy(gy_submit *x, gy_location to, gy_location from, uint64_t bytes)
{
    if (bytes == 0)
        return GANTRY_OK;
    if (to.device == GY_NONE && from.device == GY_NONE)
        return move(x, x->first_lane, to.host, from.host, bytes);
    if (to.device != GY_NONE && from.device != GY_NONE)
        return (gy_cuda_reaches(x->h, to.device, from.device) ? copy_direct : copy_staged)(x, to, from, bytes);
    gy_queue queue;
    GY_TRY(gy_submit_on(x, to.device == GY_NONE ? from.device : to.device, &queue));
    bool pinned = to.device == GY_NONE ? to.pinned : from.pinned;
    return (pinned ? copy_pinned : copy_pageable)(x, queue, to, from, bytes);
}
