/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting until streams are done. */
#include "backends/cuda/stream/stream.h"

#include "base/clock.h"
#include <sched.h>
#include <time.h>

enum { SPINS = 2000, YIELDS = 2000 };
#define NAP_NS INT64_C(50000)

void gy_cuda_rest(unsigned polls)
{
    if (polls >= SPINS + YIELDS)
        nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    else if (polls >= SPINS)
        sched_yield();
}

int64_t gy_cuda_patience(const gy_cuda *h)
{
    return gy_job_patience(h->job);
}

/* NOT_READY: it is not done in all the time that it may take. */
static CUresult settle(gy_cuda *h, gy_queue queue)
{
    gy_cuda_device *d = &h->device[queue.device];
    CUevent event = d->scratch_event[d->next_scratch_event++ % GY_CUDA_SCRATCH_EVENTS];
    int64_t patience = gy_cuda_patience(h);
    gy_waited waited = gy_waited_begin();
    CUresult code = h->d.cuCtxSetCurrent(d->context);
    h->current = GY_NONE;
    code = code == CUDA_SUCCESS ? h->d.cuEventRecord(event, queue.stream) : code;
    if (code != CUDA_SUCCESS)
        return code;
    for (unsigned polls = 0; (code = h->d.cuEventQuery(event)) == CUDA_ERROR_NOT_READY; polls++) {
        if (gy_waited_look(&waited) > patience)
            break;
        gy_cuda_rest(polls);
    }
    return code;
}

CUresult gy_cuda_settle(gy_cuda *h, gy_queue queue)
{
    CUresult code = settle(h, queue);
    return code == CUDA_ERROR_NOT_READY ? CUDA_ERROR_LAUNCH_TIMEOUT : code;
}

/* A call that fails does not say whether the context is lost, and nothing runs any more, or it failed alone: the next
 * one does. */
static bool is_quiet(gy_cuda *h, const gy_queue *queue)
{
    bool made = queue->stream &&
                h->device[queue->device].scratch_event[GY_CUDA_SCRATCH_EVENTS - 1]; /* else nothing was queued */
    CUresult code = made ? settle(h, *queue) : CUDA_SUCCESS;
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_NOT_READY)
        code = settle(h, *queue);
    return code == CUDA_SUCCESS || (code != CUDA_ERROR_NOT_READY && gy_cuda_lost(h));
}

void gy_cuda_quieten_for(gy_cuda *h, gy_queue queue, void (*let_go)(gy_cuda *h), int64_t most_ns)
{
    gy_cuda_device *d = &h->device[queue.device];
    CUevent event = d->scratch_event[d->next_scratch_event++ % GY_CUDA_SCRATCH_EVENTS];
    gy_waited waited = gy_waited_begin();
    if (!queue.stream || gy_cuda_use(h, queue.device, NULL) || h->d.cuEventRecord(event, queue.stream) != CUDA_SUCCESS)
        return;
    while (h->d.cuEventQuery(event) == CUDA_ERROR_NOT_READY && gy_waited_look(&waited) < most_ns) {
        let_go(h);
        gy_cuda_rest(UINT32_MAX);
    }
}

void gy_cuda_quieten(gy_cuda *h, gy_queue queue, void (*let_go)(gy_cuda *h))
{
    gy_cuda_quieten_for(h, queue, let_go, gy_cuda_patience(h));
}

void gy_cuda_quieten_all(gy_cuda *h, void (*let_go)(gy_cuda *h))
{
    for (uint32_t i = 0; i < h->lanes; i++)
        gy_cuda_quieten(h, h->lane[i].queue, let_go);
    for (uint32_t i = 0; i < h->devices; i++)
        gy_cuda_quieten(h, h->device[i].auxiliary, let_go);
    gy_cuda_quieten(h, h->end_stream, let_go);
}

/* The work that a failed submission has queued ends before the failure is reported, and before memory that it uses is
 * freed. */
void gy_cuda_settle_all(gy_cuda *h)
{
    bool quiet = is_quiet(h, &h->end_stream);
    for (uint32_t i = 0; i < h->lanes; i++)
        quiet = is_quiet(h, &h->lane[i].queue) && quiet;
    for (uint32_t i = 0; i < h->devices; i++)
        quiet = is_quiet(h, &h->device[i].auxiliary) && is_quiet(h, &h->device[i].landing) && quiet;
    h->stuck = h->stuck || !quiet;
}
