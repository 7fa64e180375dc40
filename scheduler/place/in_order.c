/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Tasks in the order of their starts. A task that overwrites rows may begin before one that reads them in another
 * memory, from a copy; but what goes through tasks one by one, lowering first of all, has to meet the reader first, as
 * the graph does. So where starts alone break dependencies, tasks are listed by them as far as dependencies go, and
 * each device keeps its own order as far as both do.
 */
#include "scheduler/place/place.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/sort.h"
#include "scheduler/place/heap.h"

typedef struct in_order {
    gy_plan *p;
    gy_followers follower;
    uint32_t *rank;      /* per task: its place by start */
    uint32_t *behind;    /* per task: the one behind it on its device, or GY_NONE */
    size_t *waits;       /* per list: those of it that are not listed yet */
    uint8_t *ready;      /* per task: its predecessors are listed */
    uint8_t *next;       /* per task: the one before it on its device is */
    uint8_t *listed;     /* per task */
    gy_heap both, alone; /* tasks that are ready and next; that are ready */
    uint32_t count;
} in_order;

static bool by_rank(const void *context, uint32_t a, uint32_t b)
{
    const uint32_t *rank = context;
    return rank[a] < rank[b];
}

static bool by_start(gy_plan *p)
{
    for (uint32_t t = 0; t < p->flow->tasks; t++)
        p->placed.order[t] = t;
    return gy_sort_by_key(p->placed.order, p->placed.finish, p->flow->tasks) &&
           gy_sort_by_key(p->placed.order, p->placed.start, p->flow->tasks);
}

/* Does some task begin before one has ended that it depends on? */
static bool overtakes(const gy_plan *p)
{
    const gy_flow *f = p->flow;
    for (uint32_t t = 0; t < f->tasks; t++)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++)
            if (!(d->kinds & GY_DEP_DATA) && p->placed.finish[d->from] > p->placed.start[t])
                return true;
    return false;
}

/* Does each task come behind its predecessors? */
static bool is_right(const gy_plan *p, uint32_t *rank, uint32_t *last)
{
    const gy_flow *f = p->flow;
    bool right = true;
    for (uint32_t i = 0; i < f->tasks; i++)
        rank[p->placed.order[i]] = i;
    for (uint32_t l = 0; l < f->lists; l++) {
        last[l] = 0;
        for (size_t d = f->dep_first[l]; d < f->dep_first[l + 1]; d++)
            last[l] = rank[f->dep[d].from] + 1 > last[l] ? rank[f->dep[d].from] + 1 : last[l];
    }
    for (uint32_t t = 0; t < f->tasks && right; t++)
        right = rank[t] >= last[f->list[t]];
    return right;
}

static bool offer(in_order *o, uint32_t task)
{
    if (!o->ready[task])
        return true;
    return gy_heap_push(&o->alone, task) && (!o->next[task] || gy_heap_push(&o->both, task));
}

static bool make_ready(in_order *o, uint32_t list)
{
    bool done = true;
    for (size_t i = o->follower.member_first[list]; i < o->follower.member_first[list + 1] && done; i++) {
        o->ready[o->follower.member[i]] = 1;
        done = offer(o, o->follower.member[i]);
    }
    return done;
}

static bool list_task(in_order *o, uint32_t task)
{
    uint32_t behind = o->behind[task];
    bool done = true;
    o->listed[task] = 1;
    o->p->placed.order[o->count++] = task;
    for (size_t i = o->follower.list_first[task]; i < o->follower.list_first[task + 1] && done; i++)
        if (--o->waits[o->follower.list[i]] == 0)
            done = make_ready(o, o->follower.list[i]);
    if (behind == GY_NONE || o->listed[behind] || !done)
        return done;
    o->next[behind] = 1;
    return offer(o, behind);
}

/* The first that is ready and next on its device; where there is none, devices wait for each other in a circle, and the
 * first that is ready goes. */
static bool list_all(in_order *o)
{
    const gy_flow *f = o->p->flow;
    bool done = true;
    for (uint32_t l = 0; l < f->lists && done; l++) {
        o->waits[l] = f->dep_first[l + 1] - f->dep_first[l];
        done = o->waits[l] || make_ready(o, l);
    }
    while (o->count < f->tasks && done) {
        uint32_t task = gy_heap_pop(o->both.at.count ? &o->both : &o->alone);
        done = o->listed[task] || list_task(o, task);
    }
    return done;
}

static bool begin(in_order *o)
{
    const gy_plan *p = o->p;
    uint32_t *last = gy_calloc((size_t)p->devices + 1, sizeof *last);
    for (uint32_t d = 0; last && d < p->devices; d++)
        last[d] = GY_NONE;
    for (uint32_t i = 0; last && i < p->flow->tasks; i++) {
        uint32_t t = p->placed.order[i], d = p->placed.device[t];
        o->behind[t] = GY_NONE;
        o->next[t] = last[d] == GY_NONE;
        if (last[d] != GY_NONE)
            o->behind[last[d]] = t;
        last[d] = t;
    }
    gy_free(last);
    o->both = (gy_heap){ .before = by_rank, .context = o->rank };
    o->alone = (gy_heap){ .before = by_rank, .context = o->rank };
    return last != NULL;
}

static bool mend(gy_plan *p, uint32_t *rank)
{
    size_t n = (size_t)p->flow->tasks + 1;
    in_order o = { .p = p, .rank = rank };
    o.behind = gy_calloc(n, sizeof *o.behind);
    o.waits = gy_calloc((size_t)p->flow->lists + 1, sizeof *o.waits);
    o.ready = gy_calloc(n, 1);
    o.next = gy_calloc(n, 1);
    o.listed = gy_calloc(n, 1);
    bool done = gy_followers_make(&o.follower, p->flow) && o.behind && o.waits && o.ready && o.next && o.listed;
    done = done && begin(&o) && list_all(&o);
    gy_followers_free(&o.follower);
    gy_heap_free(&o.both);
    gy_heap_free(&o.alone);
    gy_free(o.behind);
    gy_free(o.waits);
    gy_free(o.ready);
    gy_free(o.next);
    gy_free(o.listed);
    return done;
}

bool gy_place_in_order(gy_plan *p)
{
    uint32_t *rank = gy_calloc((size_t)p->flow->tasks + 1, sizeof *rank);
    uint32_t *last = gy_calloc((size_t)p->flow->lists + 1, sizeof *last);
    bool done = rank && last && by_start(p);
    p->placed.overtakes = overtakes(p);
    if (done && !is_right(p, rank, last)) {
        done = mend(p, rank);
        GY_ASSERT(!done || is_right(p, rank, last));
    }
    gy_free(rank);
    gy_free(last);
    return done;
}
