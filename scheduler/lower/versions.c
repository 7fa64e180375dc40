/* SPDX-License-Identifier: Apache-2.0 */
/* Which version of its rows each access reads: only of values that are written again after something has read them. */
#include "scheduler/lower/lowering.h"

#include "base/error.h"

/* Accesses of a value so far. */
enum { UNREAD, READ, REWRITTEN };

typedef struct versions {
    gy_lower *l;
    uint8_t *seen;  /* per value */
    gy_imap **last; /* per value that is rewritten: payload the last write of the rows */
    uint32_t writes;
} versions;

static bool writes(const gy_access *a)
{
    return a->mode != GANTRY_READ;
}

static bool is_any_rewritten(versions *v)
{
    const gy_plan *p = v->l->p;
    bool any = false;
    for (uint32_t i = 0; i < p->flow->tasks; i++) {
        const gy_task *t = &p->flow->task[p->placed.order[i]];
        for (uint32_t k = 0; k < p->graph->nodes.at[t->node].accesses; k++) {
            const gy_access *a = gy_flow_access_of(p->graph, p->flow, t->access + k);
            uint8_t *seen = &v->seen[p->flow->access[t->access + k].value];
            if (!writes(a) && *seen == UNREAD)
                *seen = READ;
            else if (writes(a) && *seen == READ)
                *seen = REWRITTEN;
            any = any || *seen == REWRITTEN;
        }
    }
    return any;
}

static gy_imap *map_of(versions *v, uint32_t value)
{
    gy_imap **map = &v->last[value];
    if (!*map) {
        *map = gy_arena_calloc(&v->l->arena, 1, sizeof **map);
        if (!*map || !gy_imap_init(*map, 0, gy_lower_buffer(v->l, value)->rows, 0))
            return NULL;
    }
    return *map;
}

/* The last write of any of the rows. */
static uint32_t version_of(const gy_imap *map, const gy_access *a)
{
    uint64_t last = 0;
    uint32_t i = a->first < a->last ? gy_imap_find(map, a->first) : GY_IMAP_NONE;
    for (; i != GY_IMAP_NONE && map->at[i].first < a->last; i = gy_imap_next(map, i))
        last = map->at[i].payload > last ? map->at[i].payload : last;
    return (uint32_t)last;
}

/* A task reads before it writes. */
static bool walk(versions *v, uint32_t task, bool write)
{
    const gy_plan *p = v->l->p;
    bool done = true;
    for (uint32_t k = 0; k < gy_plan_node(p, task)->accesses && done; k++) {
        size_t i = p->flow->task[task].access + k;
        const gy_access *a = gy_flow_access_of(p->graph, p->flow, i);
        uint32_t value = p->flow->access[i].value;
        if (v->seen[value] != REWRITTEN || writes(a) != write)
            continue;
        gy_imap *map = map_of(v, value);
        done = map && (!write || a->first >= a->last || gy_imap_set(map, a->first, a->last, v->writes));
        if (done && !write)
            v->l->version_of[i] = version_of(map, a);
    }
    return done;
}

static bool find(versions *v)
{
    const gy_plan *p = v->l->p;
    bool done = true;
    v->last = gy_calloc((size_t)p->flow->values + 1, sizeof *v->last);
    v->l->version_of = gy_arena_calloc(&v->l->arena, p->flow->accesses + 1, sizeof *v->l->version_of);
    done = v->last && v->l->version_of;
    for (uint32_t i = 0; i < p->flow->tasks && done; i++) {
        v->writes++;
        done = walk(v, p->placed.order[i], false) && walk(v, p->placed.order[i], true);
    }
    for (uint32_t i = 0; v->last && i < p->flow->values; i++)
        if (v->last[i])
            gy_imap_free(v->last[i]);
    gy_free((void *)v->last);
    return done;
}

gantry_status gy_lower_versions(gy_lower *l, gantry_error *err)
{
    versions v = { .l = l };
    if (l->p->one_instance || l->p->attempt->one_instance || l->p->attempt->spare_memory)
        return GANTRY_OK;
    v.seen = gy_calloc((size_t)l->p->flow->values + 1, 1);
    bool done = v.seen && (!is_any_rewritten(&v) || find(&v));
    gy_free(v.seen);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
