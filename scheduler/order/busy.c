/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/order/busy.h"

#include "base/error.h"
#include "scheduler/order/order.h"

void gy_busy_free(gy_busy *b)
{
    gy_free(b->device);
    gy_free(b->upload);
    gy_free(b->link);
    gy_free(b->shared);
}

gantry_status gy_busy_make(gy_busy *b, const gantry_machine *m, gantry_error *err)
{
    b->device = gy_calloc(m->devices, sizeof *b->device);
    b->upload = gy_calloc(m->devices, sizeof *b->upload);
    b->link = gy_calloc((size_t)m->resources + 1, sizeof *b->link);
    b->shared = gy_calloc(m->memories, sizeof *b->shared);
    if (!b->device || !b->upload || !b->link || !b->shared)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < m->memories; i++)
        b->shared[i] = i && m->contention ? gy_shared_link(m, i) : GY_MACHINE_NONE;
    return GANTRY_OK;
}

/* The memory that an upload of an input goes to; 0: it is none, or it waits for nobody. */
static uint32_t upload_target(const gy_plan *p, const gy_op *op)
{
    if (op->kind != GY_OP_COPY || !p->machine->contention)
        return 0;
    const gy_instance *from = &p->draft.instance.at[p->draft.use.at[op->use].instance];
    uint32_t to = p->draft.instance.at[p->draft.use.at[op->use + 1].instance].memory;
    return from->space == GY_SPACE_INPUT && from->memory == 0 ? to : 0;
}

gy_ticks gy_busy_begin(gy_busy *b, const gy_plan *p, const gy_draft_op *d, gy_ticks ready)
{
    gy_ticks duration = d->op.duration;
    if (d->lane == GY_LANE_COMPUTE) {
        gy_ticks begin = b->device[d->device] > ready ? b->device[d->device] : ready;
        b->device[d->device] = begin + gy_plan_op_hold(p, d->device, duration, d->op.spare);
        return begin;
    }
    uint32_t to = upload_target(p, &d->op), link = b->shared[to];
    if (!to)
        return ready;
    gy_ticks begin = b->upload[d->device] > ready ? b->upload[d->device] : ready;
    if (link != GY_MACHINE_NONE) {
        begin = b->link[link] > begin ? b->link[link] : begin;
        b->link[link] += duration / gy_link_turns(p->machine, link, gy_machine_route(p->machine, 0, to));
    }
    b->upload[d->device] = begin + duration;
    return begin;
}
