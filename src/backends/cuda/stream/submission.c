/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that every submission is made of: events between streams, the streams of one op, host functions. */
#include "backends/cuda/stream/gates.h"

#include "base/error.h"
#include <stdio.h>

gantry_status gy_submit_check(gy_submit *x, CUresult code, gy_queue queue, const char *what)
{
    if (code == CUDA_SUCCESS)
        return GANTRY_OK;
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

gantry_status gy_submit_record_scratch(gy_submit *x, gy_queue queue, CUevent *event)
{
    gy_cuda_device *d = &x->h->device[queue.device];
    *event = d->scratch_event[d->next_scratch_event++ % GY_CUDA_SCRATCH_EVENTS];
    return gy_submit_record(x, queue, *event);
}

gantry_status gy_submit_order(gy_submit *x, gy_queue from, gy_queue to)
{
    if (from.stream == to.stream)
        return GANTRY_OK;
    if (gy_gates_between(x, from.device, to.device))
        return gy_gates_order(x, from, to);
    CUevent event;
    GY_TRY(gy_submit_record_scratch(x, from, &event));
    return gy_submit_await(x, to, event);
}

gy_queue gy_submit_lane(const gy_submit *x, uint32_t i)
{
    return gy_cuda_lane_of(x->h, x->op, i)->queue;
}

/* Finds a lane of the op on that GPU, else the GPU's auxiliary stream. */
static gy_queue queue_on(const gy_submit *x, uint32_t device)
{
    const gy_op *op = &x->h->job->schedule->ops.at[x->op];
    for (uint32_t i = 0; i < op->lanes; i++) {
        gy_queue lane = gy_submit_lane(x, i);
        if (gy_cuda_same_gpu(x->h, lane.device, device))
            return lane;
    }
    return x->h->device[device].auxiliary;
}

gantry_status gy_submit_on(gy_submit *x, uint32_t device, gy_queue *queue)
{
    if (gy_cuda_same_gpu(x->h, x->first_lane.device, device)) {
        *queue = x->first_lane;
        return GANTRY_OK;
    }
    *queue = queue_on(x, device);
    if (x->h->forked[device])
        return GANTRY_OK;
    x->h->forked[device] = 1;
    return gy_submit_order(x, x->first_lane, *queue);
}

gantry_status gy_submit_join(gy_submit *x)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < x->h->devices && status == GANTRY_OK; i++) {
        if (x->h->forked[i]) {
            x->h->forked[i] = 0;
            status = gy_submit_order(x, queue_on(x, i), x->first_lane);
        }
    }
    return status;
}

gantry_status gy_submit_callback(gy_submit *x, gy_queue queue, gy_callback callback)
{
    gy_callback *kept = gy_callbacks_add(x->callbacks, sizeof *kept);
    if (!kept)
        return gy_fail_nomem(x->err);
    *kept = callback;
    kept->op = x->op;
    kept->h = x->h;
    kept->turn = x->turn;
    gantry_status status = gy_cuda_use(x->h, queue.device, x->err);
    return status ? status
                  : gy_submit_check(x, x->h->d.cuLaunchHostFunc(queue.stream, gy_callback_run, kept), queue,
                                    "queueing a host function");
}

gantry_status gy_cuda_op_cut(const gy_cuda *h, uint32_t id, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    uint32_t device = gy_op_device(s, &s->ops.at[id], 0);
    gy_text name = { 0 };
    gy_op_text(&name, s, id);
    gy_fail(err, GANTRY_E_CANCELED, NULL, "before op %u, \"%s\", on device \"%s\"", id,
            name.failed || !name.length ? "?" : name.at, s->machine->device[device].id);
    gy_text_free(&name);
    return GANTRY_E_CANCELED;
}
