/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The GPUs of a run: their contexts, streams and events. The primary context of each GPU is used, so that memory and
 * streams of an application that uses CUDA fit. Several devices of a machine may be one GPU.
 */
#ifndef GY_CUDA_STATE_DEVICE_H
#define GY_CUDA_STATE_DEVICE_H

#include "backends/cuda/state/state.h"

/* Opens the contexts of all devices that are used, and the streams of all lanes with an op. */
gantry_status gy_cuda_devices_make(gy_cuda *h, gantry_error *err);
void gy_cuda_devices_free(gy_cuda *h);

/* A call of the back end stands between these two: the first remembers the context of the caller, the second makes it
 * current again. */
void gy_cuda_enter(gy_cuda *h);
void gy_cuda_leave(gy_cuda *h);
/* Makes the context of the device current. */
gantry_status gy_cuda_use(gy_cuda *h, uint32_t device, gantry_error *err);
void gy_cuda_forget(gy_cuda *h); /* another context may be current by now */

/* A stream of its own; *queue has none if that fails. */
gantry_status gy_cuda_queue_new(gy_cuda *h, gy_queue *queue, uint32_t device, bool urgent, gantry_error *err);
gantry_status gy_cuda_event_new(gy_cuda *h, CUevent *event, uint32_t device, bool timed, gantry_error *err);
/* Fails with E_DEVICE, the text "WHAT on device "gpu0"", the device and the native code. Later calls fail with the same
 * error if no call of the driver can succeed any more. */
gantry_status gy_cuda_fail(gy_cuda *h, CUresult code, uint32_t device, const char *what, gantry_error *err);

/* Two devices of the machine may be one GPU. */
static inline bool gy_cuda_same_gpu(const gy_cuda *h, uint32_t a, uint32_t b)
{
    return h->device[a].context == h->device[b].context;
}
/* Each of the two can read and write the memory of the other. */
static inline bool gy_cuda_reaches(const gy_cuda *h, uint32_t a, uint32_t b)
{
    return gy_cuda_same_gpu(h, a, b) || h->peer[a * h->devices + b];
}

/* ---- lanes by which ops wait for each other ---- */

/* The lane of the op on the GPU of that device; GY_NONE: it has none there, or `device` is GY_NONE. */
uint32_t gy_cuda_lane_on(const gy_cuda *h, uint32_t op, uint32_t device);
/* The lane that waits where the op comes after the op `from` by the sync table: of an op whose lanes meet the one on
 * the GPU of that op. */
uint32_t gy_cuda_lane_after(const gy_cuda *h, uint32_t op, uint32_t from);
/* The lane that an op on that device waits for where it comes after the op `from`: of one whose lanes have met when it
 * ends the one on its own GPU. */
uint32_t gy_cuda_lane_ahead(const gy_cuda *h, uint32_t from, uint32_t device);

#endif
