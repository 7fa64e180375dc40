/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Collectives that are carried out as soon as they can be have their results in all memories until these are read.
 * Where memory is short, they begin later: some time before the first reader, and before what the reader's device does
 * just then, so that they go beside it.
 */
#include "scheduler/place/place.h"

#include "base/error.h"

#define TIMES 2 /* so many times what it takes, a collective begins before its reader */

typedef struct late {
    gy_plan *p;
    uint32_t *before; /* per task: the one before it on its device, GY_NONE */
    uint32_t *reader; /* per task: the first to begin of those that wait for it, GY_NONE */
} late;

static bool is_collective(const gy_plan *p, uint32_t task)
{
    return gy_plan_node(p, task)->kind == GY_NODE_COLLECTIVE;
}

static bool note_devices(late *l)
{
    const gy_plan *p = l->p;
    uint32_t *last = gy_calloc((size_t)p->devices + 1, sizeof *last);
    for (uint32_t d = 0; last && d < p->devices; d++)
        last[d] = GY_NONE;
    for (uint32_t i = 0; last && i < p->flow->tasks; i++) {
        uint32_t t = p->placed.order[i];
        l->reader[t] = GY_NONE;
        l->before[t] = is_collective(p, t) ? GY_NONE : last[p->placed.device[t]];
        if (!is_collective(p, t))
            last[p->placed.device[t]] = t;
    }
    gy_free(last);
    return last != NULL;
}

/* Never before it could begin as it was placed, so all that it waits for is done. */
static void delay(late *l, uint32_t task)
{
    gy_placement *at = &l->p->placed;
    uint32_t reader = l->reader[task];
    gy_ticks takes = at->finish[task] - at->start[task];
    if (reader == GY_NONE || !is_collective(l->p, task))
        return;
    gy_ticks begin = at->start[reader] - TIMES * takes;
    uint32_t beside = l->before[reader];
    if (beside != GY_NONE && at->start[beside] <= begin)
        begin = at->start[beside] - 1;
    if (begin <= at->start[task])
        return;
    at->start[task] = begin;
    at->finish[task] = begin + takes;
}

gantry_status gy_place_late(gy_plan *p, gantry_error *err)
{
    size_t tasks = p->flow->tasks;
    late l = { .p = p };
    l.before = gy_calloc(tasks + 1, sizeof *l.before);
    l.reader = gy_calloc(tasks + 1, sizeof *l.reader);
    bool done = l.before && l.reader && note_devices(&l);
    for (size_t i = tasks; done && i-- > 0;) {
        uint32_t t = p->placed.order[i];
        delay(&l, t);
        for (const gy_dep *d = gy_deps_begin(p->flow, t); d < gy_deps_end(p->flow, t); d++)
            if (l.reader[d->from] == GY_NONE || p->placed.start[t] < p->placed.start[l.reader[d->from]])
                l.reader[d->from] = t;
    }
    done = done && gy_place_in_order(p);
    gy_free(l.before);
    gy_free(l.reader);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
