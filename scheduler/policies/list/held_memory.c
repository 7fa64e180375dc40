/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/list/held_memory.h"

#include "base/imap.h"

struct gy_held_memory {
    const gy_plan *p;
    uint64_t *left;       /* per memory: bytes that nothing has been in */
    gy_map index;         /* buffer * memories + memory -> index of held */
    GY_VEC(gy_imap) held; /* payload 1: the memory has held these rows */
};

void gy_held_memory_free(gy_held_memory *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->held.count; i++)
        gy_imap_free(&r->held.at[i]);
    gy_vec_free(&r->held);
    gy_map_free(&r->index);
    gy_free(r->left);
    gy_free(r);
}

gy_held_memory *gy_held_memory_new(const gy_plan *p)
{
    const gantry_machine *m = p->machine;
    gy_held_memory *r = gy_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->p = p;
    r->left = gy_calloc(m->memories, sizeof *r->left);
    if (!r->left) {
        gy_held_memory_free(r);
        return NULL;
    }
    for (uint32_t i = 0; i < m->memories; i++)
        r->left[i] = p->capacity[i];
    return r;
}

static uint64_t key_of(const gy_held_memory *r, uint32_t buffer, uint32_t memory)
{
    return (uint64_t)buffer * r->p->machine->memories + memory;
}

/* Bytes of the rows that the memory has never held. */
static uint64_t missing(const gy_held_memory *r, const gy_access *a, uint32_t memory)
{
    const gy_buffer *b = &r->p->graph->buffers.at[a->buffer];
    uint64_t index, bytes = 0;
    if (a->first >= a->last)
        return 0;
    if (!gy_map_get(&r->index, key_of(r, a->buffer, memory), &index))
        return (uint64_t)gy_buffer_span(b, a->first, a->last);
    const gy_imap *map = &r->held.at[index];
    for (uint32_t i = gy_imap_find(map, a->first); i != GY_IMAP_NONE && map->at[i].first < a->last;
         i = gy_imap_next(map, i)) {
        int64_t first = map->at[i].first > a->first ? map->at[i].first : a->first;
        int64_t last = map->at[i].last < a->last ? map->at[i].last : a->last;
        if (!map->at[i].payload)
            bytes += (uint64_t)gy_buffer_span(b, first, last);
    }
    return bytes;
}

bool gy_held_memory_has(const gy_held_memory *r, uint32_t task, uint32_t memory)
{
    const gy_node *n = gy_plan_node(r->p, task);
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < n->accesses; k++)
        bytes += missing(r, &r->p->graph->access.at[n->access + k], memory);
    return bytes <= r->left[memory];
}

static gy_imap *map_of(gy_held_memory *r, uint32_t buffer, uint32_t memory)
{
    uint64_t index, key = key_of(r, buffer, memory);
    if (gy_map_get(&r->index, key, &index))
        return &r->held.at[index];
    if (!gy_vec_reserve(&r->held, r->held.count + 1))
        return NULL;
    gy_imap *map = &r->held.at[r->held.count];
    if (!gy_imap_init(map, 0, r->p->graph->buffers.at[buffer].rows, 0))
        return NULL;
    r->held.count++;
    return gy_map_put(&r->index, key, r->held.count - 1) ? map : NULL;
}

static bool hold(gy_held_memory *r, const gy_access *a, uint32_t memory)
{
    uint64_t bytes = missing(r, a, memory);
    if (!bytes)
        return true;
    gy_imap *map = map_of(r, a->buffer, memory);
    if (!map || !gy_imap_set(map, a->first, a->last, 1))
        return false;
    r->left[memory] -= bytes < r->left[memory] ? bytes : r->left[memory];
    return true;
}

bool gy_held_memory_take(gy_held_memory *r, uint32_t task, uint32_t memory)
{
    const gy_node *n = gy_plan_node(r->p, task);
    bool done = true;
    for (uint32_t k = 0; k < n->accesses && done; k++)
        done = hold(r, &r->p->graph->access.at[n->access + k], memory);
    return done;
}
