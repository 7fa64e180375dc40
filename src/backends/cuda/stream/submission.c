/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that every submission is made of: events between streams, the streams of one op, host functions. */
#include "backends/cuda/stream/stream.h"

#include "base/error.h"
#include <stdio.h>

gantry_status gy_submit_check(gy_submit *x, CUresult code, gy_queue queue, const char *what)
{
    if (code == CUDA_SUCCESS) {
        return GANTRY_OK;
    }
    const gantry_schedule *s = x->h->job->schedule;
    char text[200];
    if (x->op < s->ops.count) {
        gy_text name = { 0 };
        gy_op_text(&name, s, x->op);
        snprintf(text, sizeof text, "op %u, \"%s\": %s", x->op, name.failed || !name.length ? "?" : name.at, what);
        gy_text_free(&name);
    } else {
        snprintf(text, sizeof text, "%s", what);
    }
    return gy_cuda_fail(x->h, code, queue.device, text, x->err);
}

gantry_status gy_submit_record(gy_submit *x, gy_queue queue, CUevent event)
{
    gantry_status status = gy_cuda_use(x->h, queue.device, x->err);
    return status ? status
                  : gy_submit_check(x, x->h->d.cuEventRecord(event, queue.stream), queue, "recording an event");
}

gantry_status gy_submit_await(gy_submit *x, gy_queue queue, CUevent event)
{
    gantry_status status = gy_cuda_use(x->h, queue.device, x->err);
    return status
               ? status
               : gy_submit_check(x, x->h->d.cuStreamWaitEvent(queue.stream, event, 0), queue, "waiting for an event");
}

gantry_status gy_submit_mark(gy_submit *x, gy_queue queue, CUevent *event)
{
    gy_cuda_device *d = &x->h->device[queue.device];
    *event = d->mark[d->next_mark++ % GY_CUDA_MARKS];
    return gy_submit_record(x, queue, *event);
}

gantry_status gy_submit_order(gy_submit *x, gy_queue from, gy_queue to)
{
    if (from.stream == to.stream) {
        return GANTRY_OK;
    }
    CUevent mark;
    gantry_status status = gy_submit_mark(x, from, &mark);
    return status ? status : gy_submit_await(x, to, mark);
}

gy_queue gy_submit_lane(const gy_submit *x, uint32_t i)
{
    const gantry_schedule *s = x->h->job->schedule;
    return x->h->lane[s->op_lane.at[s->ops.at[x->op].lane + i]].queue;
}

/* Of the op's own lanes, else aside. */
static gy_queue queue_on(const gy_submit *x, uint32_t device)
{
    const gy_op *op = &x->h->job->schedule->ops.at[x->op];
    for (uint32_t i = 0; i < op->lanes; i++) {
        gy_queue lane = gy_submit_lane(x, i);
        if (gy_cuda_same_gpu(x->h, lane.device, device)) {
            return lane;
        }
    }
    return x->h->device[device].side;
}

gantry_status gy_submit_on(gy_submit *x, uint32_t device, gy_queue *queue)
{
    if (gy_cuda_same_gpu(x->h, x->lead.device, device)) {
        *queue = x->lead;
        return GANTRY_OK;
    }
    *queue = queue_on(x, device);
    if (x->h->aside[device]) {
        return GANTRY_OK;
    }
    x->h->aside[device] = 1;
    return gy_submit_order(x, x->lead, *queue);
}

gantry_status gy_submit_join(gy_submit *x)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < x->h->devices && status == GANTRY_OK; i++) {
        if (x->h->aside[i]) {
            x->h->aside[i] = 0;
            status = gy_submit_order(x, queue_on(x, i), x->lead);
        }
    }
    return status;
}

gantry_status gy_submit_note(gy_submit *x, gy_queue queue, gy_note note)
{
    gy_note *kept = gy_notes_add(x->notes, sizeof *kept);
    if (!kept) {
        return gy_fail_nomem(x->err);
    }
    *kept = note;
    kept->op = x->op;
    kept->h = x->h;
    kept->turn = x->turn;
    gantry_status status = gy_cuda_use(x->h, queue.device, x->err);
    return status ? status
                  : gy_submit_check(x, x->h->d.cuLaunchHostFunc(queue.stream, gy_note_run, kept), queue,
                                    "queueing a host function");
}
