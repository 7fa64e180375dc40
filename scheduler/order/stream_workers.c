/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of workers of resident kernels. An op goes to the one in which it begins first, while all together need no more
 * workers than the GPU has; docs/design/scheduler.md, "Lanes of a GPU". */
#include "scheduler/order/stream.h"

/* When the op could begin in a compute lane of the device, GY_NONE: a new one. Other lanes have to tell it of their
 * ends. */
static gy_ticks begin_in(const gy_stream *st, uint32_t device, uint32_t position, uint32_t id)
{
    const gy_plan *p = st->p;
    gy_ticks begin = id == GY_NONE ? 0 : st->lanes.at[id].free_at;
    for (size_t e = p->sequence.need_first[position]; e < p->sequence.need_first[position + 1]; e++) {
        uint32_t from = p->sequence.need.at[e].from;
        bool same = id != GY_NONE && st->op_lane.at[p->schedule->ops.at[from].lane] == id;
        gy_ticks told = same ? st->end[from] : gy_ticks_both(st->end[from], p->machine->device[device].signal);
        begin = told > begin ? told : begin;
    }
    return begin;
}

typedef struct choice {
    uint32_t lane;        /* GY_NONE: a new one */
    gy_ticks begin, rank; /* the least rank is chosen */
    bool kin;             /* the op in it that this one waits for writes the same rows, of another buffer */
} choice;

/* An op that is to have a lane: how long it takes, and with how many workers, in thousandths of the GPU's. */
typedef struct seeker {
    uint32_t device, position, needs;
    gy_ticks duration;
} seeker;

/* How long all workers of the GPU could do what those of the lane do not, while the op has but some of them. */
static gy_ticks idle_in(const gy_stream_lane *l, seeker o)
{
    return l && l->needs > o.needs ? o.duration * (l->needs - o.needs) / GY_WHOLE_DEVICE : 0;
}

/* Kin are worth a signal: so the ops of a part stay in one lane where its neighbours end a little later, and lanes are
 * as long as each other. */
static void offer(const gy_stream *st, seeker o, choice c, choice *best)
{
    const gy_stream_lane *l = c.lane == GY_NONE ? NULL : &st->lanes.at[c.lane];
    if (l && (l->device != o.device || l->kind != GY_LANE_COMPUTE))
        return;
    gy_ticks worth = c.kin ? st->p->machine->device[o.device].signal : 0;
    c.begin = begin_in(st, o.device, o.position, c.lane);
    c.rank = c.begin - worth + idle_in(l, o);
    if (c.rank < best->rank)
        *best = c;
}

/* The rows that the op writes first, NULL if it writes none. */
static const gy_use *written(const gantry_schedule *s, const gy_op *op)
{
    for (uint32_t i = 0; i < op->uses; i++)
        if (s->use.at[op->use + i].mode != GANTRY_READ)
            return &s->use.at[op->use + i];
    return NULL;
}

static bool are_kin(const gantry_schedule *s, const gy_op *a, const gy_op *b)
{
    const gy_use *x = written(s, a), *y = written(s, b);
    return x && y && x->first == y->first && x->last == y->last;
}

enum { ONE_LANE = GY_WHOLE_DEVICE / 2 + 1 }; /* workers, in thousandths: no two lanes have so many */
enum { FEW_WORKERS = 4 };

/* The workers with which an op takes what is predicted. One that needs more than half of them needs so many that no
 * other lane has as many: two such ops could not overlap. One that takes hardly more than an empty call, or a few of
 * them, as far as so small a share can be measured, has enough with one worker, as each lane has: there may be as many
 * such lanes as workers. */
static uint32_t needs_of(const gy_plan *p, const gy_draft_op *d, const gy_op *op)
{
    const gy_device *device = &p->machine->device[d->device];
    uint32_t one = GY_WHOLE_DEVICE / device->lanes, used = GY_WHOLE_DEVICE - op->spare;
    bool calls = d->lane == GY_LANE_COMPUTE && gy_op_calls(op) && op->duration > 2 * device->launch;
    return !calls || used < FEW_WORKERS * one ? one : used < ONE_LANE ? used : ONE_LANE;
}

/* Are there workers enough, if that lane (GY_NONE: a new one) is the op's, and one has as many as any op needs? */
static bool has_workers(const gy_stream *st, seeker o, uint32_t id)
{
    const gy_stream_crew *c = &st->crews[o.device];
    uint32_t has = id == GY_NONE ? 0 : st->lanes.at[id].needs;
    uint32_t more = o.needs > has ? o.needs - has : 0, widest = has + more > c->widest ? has + more : c->widest;
    return c->needed + more + (c->most > widest ? c->most - widest : 0) <= GY_WHOLE_DEVICE;
}

/* Lanes of what the op waits for. */
static void offer_behind(const gy_stream *st, seeker o, choice *best)
{
    const gy_plan *p = st->p;
    const gy_op *op = &p->schedule->ops.at[o.position];
    for (size_t e = p->sequence.need_first[o.position]; e < p->sequence.need_first[o.position + 1]; e++) {
        const gy_op *from = &p->schedule->ops.at[p->sequence.need.at[e].from];
        bool kin = are_kin(p->schedule, op, from);
        for (uint32_t k = 0; k < from->lanes; k++) {
            uint32_t id = st->op_lane.at[from->lane + k];
            if (has_workers(st, o, id))
                offer(st, o, (choice){ .lane = id, .kin = kin }, best);
        }
    }
}

enum { FEW = 8 }; /* lanes, whose workers are a small part of a GPU's */

/* May there be one more lane for the op? A fill that waits for nothing could begin before all else: of a loop that adds
 * something up in each iteration all of them, each in a lane of its own. But nobody waits for it before its turn. */
static bool may_have_new(const gy_stream *st, seeker o, size_t lanes)
{
    const gy_plan *p = st->p;
    size_t most = p->machine->device[o.device].lanes;
    if (!gy_stream_waits(p, o.position) && p->schedule->ops.at[o.position].kind == GY_OP_FILL && most > FEW)
        most = FEW;
    return lanes < most && has_workers(st, o, GY_NONE);
}

/* The lane that is free first, or a new one; the lane that needs most may always be it. */
static void offer_free(const gy_stream *st, seeker o, choice *best)
{
    const gy_stream_queues *q = &st->of[o.device * 3 + GY_LANE_COMPUTE];
    uint32_t free = GY_NONE, widest = GY_NONE;
    gy_ticks told = begin_in(st, o.device, o.position, GY_NONE), least = GY_TICKS_MAX;
    for (size_t i = 0; i < q->count; i++) {
        const gy_stream_lane *l = &st->lanes.at[q->at[i].lane];
        gy_ticks rank = (l->free_at > told ? l->free_at : told) + idle_in(l, o);
        if (rank < least && has_workers(st, o, q->at[i].lane)) {
            free = q->at[i].lane;
            least = rank;
        }
        if (widest == GY_NONE || l->needs > st->lanes.at[widest].needs)
            widest = q->at[i].lane;
    }
    if (free != GY_NONE)
        offer(st, o, (choice){ .lane = free }, best);
    if (widest != GY_NONE)
        offer(st, o, (choice){ .lane = widest }, best);
    if (!q->count || may_have_new(st, o, q->count))
        offer(st, o, (choice){ .lane = GY_NONE }, best);
}

/* A lane keeps its workers for a whole start, and ops are predicted with as many as they can use. So lanes are not to
 * need more workers together than there are: a lane that had a wide op once would take from all others for good. */
bool gy_stream_choose_worker(gy_stream *st, const gy_draft_op *d, uint32_t position, uint32_t *lane_id, gy_ticks *begin)
{
    const gy_op *op = &st->p->schedule->ops.at[position];
    uint32_t device = d->device, needs = needs_of(st->p, d, op);
    const seeker o = { device, position, needs, op->duration };
    choice best = { .lane = GY_NONE, .rank = GY_TICKS_MAX };
    offer_behind(st, o, &best);
    offer_free(st, o, &best);
    *begin = best.begin;
    *lane_id = best.lane;
    if (best.lane == GY_NONE &&
        !gy_stream_nth_lane(st, device, GY_LANE_COMPUTE, st->of[device * 3 + GY_LANE_COMPUTE].count, lane_id))
        return false;
    gy_stream_lane *l = &st->lanes.at[*lane_id];
    gy_stream_crew *c = &st->crews[device];
    c->needed += needs > l->needs ? needs - l->needs : 0;
    l->needs = needs > l->needs ? needs : l->needs;
    c->widest = l->needs > c->widest ? l->needs : c->widest;
    return true;
}

/* Of the ops that compute on a device, what the widest needs. */
void gy_stream_note_needs(gy_stream *st, uint32_t position)
{
    const gy_draft_op *d = &st->p->draft.op.at[st->p->sequence.draft_of[position]];
    if (d->lane != GY_LANE_COMPUTE || !st->p->machine->workers || !gy_stream_spreads(st->p, d->device))
        return;
    uint32_t needs = needs_of(st->p, d, &st->p->schedule->ops.at[position]);
    gy_stream_crew *c = &st->crews[d->device];
    c->most = needs > c->most ? needs : c->most;
}
