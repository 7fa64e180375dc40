/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The sync table: of the needed dependencies those that neither lane order nor other rows imply. An op's dependencies
 * are looked at from the latest to the earliest, so that one that another implies comes after it; what remains is the
 * transitive reduction. Each op that is waited for has one event. Where starts overlap, sync_starts.c adds what joins
 * one start to the next.
 */
#include "scheduler/order/vector_clock.h"

#include "base/error.h"
#include "scheduler/order/order.h"
#include <string.h>

static bool add_row(gantry_schedule *s, const gy_edge *e, uint32_t *slot, uint32_t *slots)
{
    gy_sync row = { .from = e->from, .to = e->to, .reason = e->reason, .carrier = GY_CARRIER_EVENT };
    if (s->replay == GY_REPLAY_GRAPH) {
        row.carrier = GY_CARRIER_EDGE;
    } else {
        if (slot[e->from] == GY_NONE)
            slot[e->from] = (*slots)++;
        row.slot = slot[e->from];
    }
    return gy_vec_push(&s->sync, row);
}

gantry_status gy_plan_sync(gy_plan *p, gantry_error *err)
{
    gantry_schedule *s = p->schedule;
    gy_vector_clock c;
    uint32_t slots = 0, *slot = gy_calloc(s->ops.count + 1, sizeof *slot);
    gantry_status status = GANTRY_OK;
    if (!slot || !gy_vector_clock_init(&c, s)) {
        gy_free(slot);
        return gy_fail_nomem(err);
    }
    memset(slot, 0xff, (s->ops.count + 1) * sizeof *slot);
    s->sync.count = 0;
    for (uint32_t i = 0; i < s->ops.count && !status; i++) {
        gy_vector_clock_begin(&c, i);
        for (size_t e = p->sequence.need_first[i]; e < p->sequence.need_first[i + 1] && !status; e++) {
            if (gy_vector_clock_has(&c, p->sequence.need.at[e].from))
                continue;
            gy_vector_clock_wait(&c, p->sequence.need.at[e].from);
            if (!add_row(s, &p->sequence.need.at[e], slot, &slots))
                status = gy_fail_nomem(err);
        }
        if (!status && !gy_vector_clock_end(&c, i))
            status = gy_fail_nomem(err);
    }
    gy_vector_clock_free(&c);
    if (!status && s->in_flight > 1)
        status = gy_plan_sync_starts(p, slot, &slots, err);
    gy_free(slot);
    gy_vec_free(&p->sequence.need); /* it has been read */
    return status;
}
