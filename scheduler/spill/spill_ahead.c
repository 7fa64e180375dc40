/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Looking ahead. An op waits for the rows it reads to come in, and for the bytes it writes to be free, which may mean
 * for other rows to go out. So both are done for an op some time before its turn: as long as what makes room is asked
 * for later than that op, everything else stays as it was, only earlier. How long before: some times what the copies
 * take, by the device's own clock, which counts what it computes and no waiting. Sending rows away early means sending
 * away more of them: where copies take longer than computing, that may not pay.
 */
#include "scheduler/spill/spill.h"

#include "base/error.h"
#include "scheduler/cost/cost.h"

#define TIMES 8
#define DEPTH 16 /* of what is made again */

/* The device whose time tells when the op comes. */
static uint32_t device_of(const gy_spill *w, const gy_draft_op *d)
{
    const gy_plan *p = w->p;
    if (d->lane == GY_LANE_COMPUTE)
        return d->device;
    if (d->lane == GY_LANE_COLLECTIVE)
        return p->rank_device.at[d->rank];
    uint32_t memory = gy_spill_old(w, w->old->use.at[d->op.use + d->op.uses - 1].instance)->memory;
    uint32_t device = gy_plan_device_of(p, memory);
    return memory && device != GY_NONE ? device : d->device;
}

gantry_status gy_spill_begin_ahead(gy_spill *w, gantry_error *err)
{
    size_t ops = w->old->op.count;
    w->begin = gy_calloc(ops + 1, sizeof *w->begin);
    w->clock = gy_calloc(w->p->devices, sizeof *w->clock);
    if (!w->begin || !w->clock)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < ops; i++) {
        const gy_draft_op *d = &w->old->op.at[i];
        uint32_t device = device_of(w, d);
        w->begin[i] = w->clock[device];
        if (d->lane == GY_LANE_COMPUTE)
            w->clock[device] += d->op.duration;
    }
    for (uint32_t d = 0; d < w->p->devices; d++)
        w->clock[d] = 0;
    return GANTRY_OK;
}

/* Lists the instances that the op lacks, and those that are lacking to make them again. */
static bool list_lack(gy_spill *w, const gy_op *op, uint32_t depth)
{
    bool done = true;
    for (uint32_t k = gy_spill_is_copy(op); k < op->uses && done; k++) { /* a copy may read its rows where they are */
        uint32_t x = w->old->use.at[op->use + k].instance;
        const gy_held *h = &w->held[x];
        if (depth && w->old->use.at[op->use + k].mode != GANTRY_READ)
            continue;
        if (!h->ours || h->now != GY_NONE || !w->ground[gy_spill_old(w, x)->memory].ours)
            continue;
        if (!h->remake)
            done = gy_vec_push(&w->lack, x);
        else if (depth < DEPTH)
            done = list_lack(w, &w->old->op.at[h->maker].op, depth + 1);
    }
    return done;
}

/* Out and in of all that is lacking. */
static gy_ticks copy_time(const gy_spill *w)
{
    gy_ticks time = 0;
    for (size_t n = 0; n < w->lack.count; n++) {
        const gy_instance *in = gy_spill_old(w, w->lack.at[n]);
        time += gy_transfer_time(w->p, in->memory, 0, (int64_t)in->bytes) +
                gy_transfer_time(w->p, 0, in->memory, (int64_t)in->bytes);
    }
    return time;
}

/* Instances that op k lacks come after op i. *done: all of them. */
static gantry_status prepare(gy_spill *w, uint32_t k, uint32_t i, bool *done, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    *done = true;
    for (size_t n = 0; n < w->lack.count && *done && !status; n++) {
        status = gy_spill_come(w, w->lack.at[n], i + 1, k + 1, done, err);
        if (!status && *done)
            gy_spill_book_from(w, w->lack.at[n], i + 1);
    }
    return status;
}

gantry_status gy_spill_look_ahead(gy_spill *w, uint32_t i, gantry_error *err)
{
    const gy_draft_op *d = &w->old->op.at[i];
    gantry_status status = GANTRY_OK;
    bool done = true;
    if (d->lane == GY_LANE_COMPUTE)
        w->clock[d->device] = w->begin[i] + d->op.duration;
    for (w->ahead = w->ahead > i ? w->ahead : i + 1; w->ahead < w->old->op.count && !status; w->ahead++) {
        const gy_draft_op *next = &w->old->op.at[w->ahead];
        uint32_t device = device_of(w, next);
        w->lack.count = 0;
        if (!list_lack(w, &next->op, 0))
            return gy_fail_nomem(err);
        if (w->begin[w->ahead] - w->clock[device] > (w->how.way->late ? 0 : TIMES * copy_time(w)))
            break;
        status = prepare(w, w->ahead, i, &done, err);
        if (!done)
            break;
    }
    return status;
}
