/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/host/check.h"

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include <string.h>

typedef struct arrow {
    uint32_t from, to;
} arrow;

typedef GY_VEC(arrow) arrows;

/* Neighbours in a lane. */
static bool add_lanes(arrows *all, const gantry_schedule *s)
{
    uint32_t *last = gy_alloc((s->lanes.count + 1) * sizeof *last);
    if (!last)
        return false;
    bool fine = true;
    memset(last, 0xFF, (s->lanes.count + 1) * sizeof *last);
    for (uint32_t id = 0; id < s->ops.count; id++) {
        const gy_op *op = &s->ops.at[id];
        for (uint32_t i = 0; i < op->lanes; i++) {
            uint32_t *before = &last[s->op_lane.at[op->lane + i]];
            arrow a = { *before, id };
            fine = fine && (*before == GY_NONE || gy_vec_push(all, a));
            *before = id;
        }
    }
    gy_free(last);
    return fine;
}

/* Rows with a distance join different starts, which checking mode runs one after the other. */
static bool add_rows(arrows *all, const gantry_schedule *s)
{
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        arrow a = { row->from, row->to };
        if (row->carrier != GY_CARRIER_LANE && row->distance == 0 && !gy_vec_push(all, a))
            return false;
    }
    return true;
}

static void group(gy_order *o, const arrows *all)
{
    for (size_t i = 0; i < all->count; i++) {
        o->first[all->at[i].from + 2]++;
        o->before[all->at[i].to]++;
    }
    for (uint32_t i = 2; i < o->ops + 2; i++)
        o->first[i] += o->first[i - 1];
    for (size_t i = 0; i < all->count; i++)
        o->next[o->first[all->at[i].from + 1]++] = all->at[i].to;
}

gantry_status gy_order_make(gy_order *o, const gantry_schedule *s, gantry_error *err)
{
    arrows all = { 0 };
    *o = (gy_order){ .ops = (uint32_t)s->ops.count };
    bool room = add_lanes(&all, s) && add_rows(&all, s);
    o->first = gy_calloc(s->ops.count + 2, sizeof *o->first);
    o->next = gy_calloc(all.count, sizeof *o->next);
    o->before = gy_calloc(s->ops.count, sizeof *o->before);
    o->left = gy_calloc(s->ops.count, sizeof *o->left);
    o->ready = gy_calloc(s->ops.count, sizeof *o->ready);
    room = room && o->first && o->next && o->before && o->left && o->ready;
    if (room)
        group(o, &all);
    gy_vec_free(&all);
    if (!room) {
        gy_order_free(o);
        return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

void gy_order_free(gy_order *o)
{
    gy_free(o->first);
    gy_free(o->next);
    gy_free(o->before);
    gy_free(o->left);
    gy_free(o->ready);
    *o = (gy_order){ 0 };
}

gantry_status gy_order_shuffle(gy_order *o, uint64_t seed, uint32_t *out, gantry_error *err)
{
    uint32_t ready = 0, done = 0;
    for (uint32_t op = 0; op < o->ops; op++) {
        o->left[op] = o->before[op];
        if (o->left[op] == 0)
            o->ready[ready++] = op;
    }
    while (ready > 0) {
        seed = gy_hash64(seed + 0x9E3779B97F4A7C15u);
        uint32_t pick = (uint32_t)(seed % ready), op = o->ready[pick];
        o->ready[pick] = o->ready[--ready];
        out[done++] = op;
        for (uint32_t i = o->first[op]; i < o->first[op + 1]; i++)
            if (--o->left[o->next[i]] == 0)
                o->ready[ready++] = o->next[i];
    }
    if (done != o->ops) {
        return gy_fail(err, GANTRY_E_SCHEDULE, NULL, "%u ops of the schedule wait for each other for ever",
                       o->ops - done);
    }
    return GANTRY_OK;
}
