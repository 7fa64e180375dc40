/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies to other GPUs that are not packets of their own: the launch ahead of one in its lane stores each element there
 * as well. By itself such a copy would meet at barriers, read back what was just written, and only then begin to wait
 * until the other GPU can see it.
 *
 * Nothing is reordered where the copy waits for no counter, and for no other segment: what it has to come after has
 * ended when the launch begins, but for the launch itself. Of that it only reads what it sends.
 */
#include "backends/cuda/resident/resident.h"

#include "base/error.h"
#include <string.h>

/* The last launch of a lane, if what follows it may be sent by it. */
typedef struct sender {
    uint32_t launch, last, copies; /* launch: GY_NONE: there is none; last: of the copies, or the launch */
} sender;

typedef struct finder {
    const gy_cuda *h;
    uint32_t turn;
    const gy_resident_calls *calls;
    const size_t *first;
} finder;

static const gy_op *op_of(const finder *f, uint32_t id)
{
    return &f->h->job->schedule->ops.at[id];
}

static uint32_t device_of(const finder *f, uint32_t id)
{
    return gy_cuda_lane_of(f->h, id, 0)->queue.device;
}

/* All that the launch reads and writes lies on its GPU, so that nothing it sends is read by itself. */
static bool stays_at_home(const finder *f, uint32_t id)
{
    const gy_op *op = op_of(f, id);
    bool stays = true;
    for (uint32_t k = 0; k < op->uses; k++) {
        gy_location at = gy_cuda_location(f->h, &f->h->job->schedule->use.at[op->use + k], f->turn);
        stays = stays && at.device != GY_NONE && gy_cuda_same_gpu(f->h, at.device, device_of(f, id));
    }
    return stays;
}

/* A launch by a flag may store nothing, and what it would send goes all the same. */
static bool can_send(const finder *f, uint32_t id)
{
    return op_of(f, id)->kind == GY_OP_LAUNCH && !gy_op_is_conditional(f->h->job->schedule, op_of(f, id)) &&
           f->first[id + 1] - f->first[id] == 1 && gy_resident_call_sends(&f->calls->at[f->first[id]]) &&
           stays_at_home(f, id);
}

/* The launch writes all of the range. */
static bool writes(const finder *f, uint32_t launch, const gy_resident_send *send)
{
    const gantry_schedule *s = f->h->job->schedule;
    const gy_op *op = op_of(f, launch);
    bool all = false;
    for (uint32_t k = 0; k < op->uses; k++) {
        const gy_use *use = &s->use.at[op->use + k];
        uint64_t at = gy_cuda_location(f->h, use, f->turn).at;
        all = all ||
              (use->mode != GANTRY_READ && send->from >= at && send->from + send->bytes <= at + gy_use_bytes(s, use));
    }
    return all;
}

/* False: it has to be a packet of its own. One by a flag has a third use. */
static bool is_sent(const finder *f, uint32_t launch, uint32_t id, gy_resident_send *send)
{
    const gantry_schedule *s = f->h->job->schedule;
    const gy_resident *r = f->h->resident;
    const gy_op *op = op_of(f, id);
    bool waits = r->waits.first[id] != r->waits.first[id + 1] || gy_resident_awaits_detour(f->h, id);
    if (!gy_op_is_copy(op) || op->uses != 2 || waits)
        return false;
    gy_location from = gy_cuda_location(f->h, &s->use.at[op->use], f->turn);
    gy_location to = gy_cuda_location(f->h, &s->use.at[op->use + 1], f->turn);
    *send = (gy_resident_send){ from.at, gy_use_bytes(s, &s->use.at[op->use + 1]), to.at };
    return from.device != GY_NONE && to.device != GY_NONE && (send->from | send->bytes | send->to) % 16 == 0 &&
           !gy_cuda_same_gpu(f->h, to.device, device_of(f, id)) && writes(f, launch, send);
}

static void look_at(const finder *f, uint32_t id, sender *of, gy_resident_sent *to)
{
    gy_resident_send send;
    if (of->launch != GY_NONE && of->copies < GY_RESIDENT_SENDS && is_sent(f, of->launch, id, &send)) {
        to[id] = (gy_resident_sent){ of->launch, GY_NONE, send };
        to[of->last].next = id;
        of->last = id;
        of->copies++;
        return;
    }
    *of = (sender){ can_send(f, id) ? id : GY_NONE, id, 0 };
}

bool gy_resident_find_sends(const gy_cuda *h, uint32_t turn, const gy_resident_calls *calls, const size_t *first,
                            gy_resident_sent *to)
{
    const finder f = { h, turn, calls, first };
    const gantry_schedule *s = h->job->schedule;
    sender *of = gy_calloc(h->lanes + 1, sizeof *of);
    bool room = of != NULL;
    for (uint32_t i = 0; room && i < h->lanes; i++)
        of[i].launch = GY_NONE;
    for (uint32_t id = 0; room && id < s->ops.count; id++) {
        const gy_op *op = &s->ops.at[id];
        to[id] = (gy_resident_sent){ .launch = GY_NONE, .next = GY_NONE };
        if (gy_resident_has(h, id))
            look_at(&f, id, &of[s->op_lane.at[op->lane]], to);
        for (uint32_t k = gy_resident_has(h, id); k < op->lanes; k++)
            of[s->op_lane.at[op->lane + k]].launch = GY_NONE;
    }
    gy_free(of);
    return room;
}
