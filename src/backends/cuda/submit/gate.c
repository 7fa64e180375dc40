/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the sync table between GPUs that have graphs of their own. Gates of a GPU come one behind the other, so one
 * that waits for several ops costs less than one for each. What ops behind this one wait for is taken in where it is
 * predicted to have ended by the time that this one begins: that holds it up by nothing, and is there already when they
 * come.
 */
#include "backends/cuda/stream/gates.h"
#include "backends/cuda/submit/submit.h"
#include "schedule/gates/gates.h"

static gantry_status want(gy_submit *x, uint32_t from, uint32_t device)
{
    if (gy_gates_passed(x->h, from, device) || gy_gates_full(x->h, device))
        return GANTRY_OK;
    return gy_gates_want(x, from, device);
}

/* Those of its rows that lead to ops ahead of x->op which have been captured. What a copy waits for that another one
 * carries is asked for where that one is submitted, and ops between the two have not. */
static gantry_status want_rows(gy_submit *x, uint32_t op, uint32_t device, gy_ticks end)
{
    const gy_cuda *h = x->h;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = h->op[op].wait; i < h->op[op].wait + h->op[op].waits && status == GANTRY_OK; i++) {
        gy_cuda_wait row = h->wait[i];
        bool now = row.distance == 0 && gy_gate_takes(h->job->schedule, row.from, x->op, end);
        now = now && gy_gates_captured(h, row.from);
        if (now && gy_gates_crosses(h, op, row.from))
            status = want(x, row.from, device);
    }
    return status;
}

gantry_status gy_submit_gate(gy_submit *x, gy_queue queue, uint32_t from)
{
    const gy_cuda *h = x->h;
    uint32_t device = queue.device;
    const uint32_t *last, *op = gy_gates_waiters(h, x->op, device, &last);
    if (gy_gates_passed(h, from, device))
        return gy_gates_pass(x, queue, from);
    if (!gy_gates_captured(h, from))
        return gy_fail(x->err, GANTRY_E_UNSUPPORTED, NULL, "one graph a GPU: op %u waits for op %u, which comes later",
                       x->op, from);
    gy_ticks end = gy_gates_awaited(h, x->op), own = h->job->schedule->ops.at[from].end;
    end = end > own ? end : own;
    GY_TRY(want(x, from, device));
    for (; op < last; op++)
        GY_TRY(want_rows(x, *op, device, end));
    GY_TRY(gy_gates_close(x, device, end));
    return gy_gates_pass(x, queue, from);
}
