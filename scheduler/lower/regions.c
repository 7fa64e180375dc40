/* SPDX-License-Identifier: Apache-2.0 */
/* The first walk: what is touched where, and the areas that follow. */
#include "scheduler/lower/lowering.h"

#include "base/error.h"
#include "base/sort.h"

#define TURNS 2 /* areas of rows that are only read in a memory, and written anew elsewhere */

uint32_t gy_lower_device(const gy_lower *l, uint32_t task, uint32_t k)
{
    const gy_team *team = gy_plan_team(l->p, task);
    if (!team)
        return l->p->placed.device[task];
    return team->device[gy_access_rank(gy_plan_extra(l->p, l->p->flow->task[task].node), k)];
}

uint32_t gy_lower_memory(const gy_lower *l, uint32_t task, uint32_t k)
{
    return l->p->machine->device[gy_lower_device(l, task, k)].memory;
}

uint32_t gy_lower_memory_of(const gy_lower *l, uint32_t task, uint32_t execution, uint32_t k)
{
    const gy_plan *p = l->p;
    return execution ? p->machine->device[gy_plan_replica_device(p, task, execution)].memory
                     : gy_lower_memory(l, task, k);
}

static bool add_touch(gy_lower *l, uint32_t value, uint32_t memory, const gy_rows *rows, bool read, size_t index)
{
    uint32_t version = read && l->version_of ? l->version_of[index] : 0;
    gy_touch t = { value, memory, read, false, version, rows->first, rows->last, index };
    return gy_vec_push(&l->touch, t);
}

gantry_status gy_lower_touch(gy_lower *l, uint32_t value, uint32_t memory, int64_t first, int64_t last, size_t *index,
                             gantry_error *err)
{
    *index = l->p->flow->accesses + l->extras++;
    gy_rows rows = { first, last };
    return add_touch(l, value, memory, &rows, false, *index) ? GANTRY_OK : gy_fail_nomem(err);
}

/* Replicas touch the rows of their task in other memories. */
static gantry_status touch_replicas(gy_lower *l, gantry_error *err)
{
    const gy_plan *p = l->p;
    size_t count = p->placed.replica.count, index;
    l->replica_area = gy_arena_calloc(&l->arena, count + 1, sizeof *l->replica_area);
    if (!l->replica_area)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const gy_replica *r = &p->placed.replica.at[i];
        l->replica_area[i] = p->flow->accesses + l->extras;
        for (uint32_t k = 0; k < gy_plan_node(p, r->task)->accesses; k++) {
            size_t access = p->flow->task[r->task].access + k;
            const gy_access *a = gy_flow_access_of(p->graph, p->flow, access);
            uint32_t memory = p->machine->device[r->device].memory;
            GY_TRY(gy_lower_touch(l, p->flow->access[access].value, memory, a->first, a->last, &index, err));
        }
    }
    return GANTRY_OK;
}

/* Contributions of a split epoch go to accumulators and touch no area. */
static gantry_status touch_accesses(gy_lower *l, gantry_error *err)
{
    const gy_plan *p = l->p;
    if (!gy_vec_reserve(&l->touch, l->touch.count + p->flow->accesses))
        return gy_fail_nomem(err);
    for (uint32_t t = 0; t < p->flow->tasks; t++) {
        for (uint32_t k = 0; k < gy_plan_node(p, t)->accesses; k++) {
            size_t i = p->flow->task[t].access + k;
            const gy_access *a = gy_flow_access_of(p->graph, p->flow, i);
            if (a->mode >= GANTRY_SUM && gy_epoch_root(l, l->epoch_of[i])->split)
                continue;
            gy_rows rows = { a->first, a->last };
            if (!add_touch(l, p->flow->access[i].value, gy_lower_memory(l, t, k), &rows, a->mode == GANTRY_READ, i))
                return gy_fail_nomem(err);
        }
    }
    return GANTRY_OK;
}

static int64_t place_of(const gy_lower *l, const gy_touch *t)
{
    return ((int64_t)t->value * 2 + t->gathered) * l->p->machine->memories + t->memory;
}

/* Numbers of the touches, in the order of areas, by first and last row and version; yours. NULL: out of memory. */
static uint32_t *sort_touches(const gy_lower *l)
{
    size_t count = l->touch.count;
    uint32_t *sorted = gy_calloc(count + 1, sizeof *sorted);
    int64_t *key = gy_calloc(count + 1, sizeof *key);
    bool done = sorted && key && count < UINT32_MAX;
    for (uint32_t i = 0; done && i < count; i++)
        sorted[i] = i;
    for (int by = l->version_of ? 0 : 1; by < 4 && done; by++) {
        for (size_t i = 0; i < count; i++) {
            const gy_touch *t = &l->touch.at[i];
            key[i] = by == 0 ? t->version : by == 1 ? t->last : by == 2 ? t->first : place_of(l, t);
        }
        done = gy_sort_by_key(sorted, key, count);
    }
    gy_free(key);
    if (done)
        return sorted;
    gy_free(sorted);
    return NULL;
}

/* Regions that share a row grow together; equal empty ones too. */
static bool grows(const gy_area *area, const gy_touch *t)
{
    return area->value == t->value && area->memory == t->memory && area->gathered == t->gathered &&
           (t->first < area->last || (t->first == area->first && t->last == area->last));
}

/* The area of a run of touches from sorted[i] on; *turns: all of them read the same rows. */
static size_t grow_area(const gy_lower *l, const uint32_t *sorted, size_t i, gy_area *area, bool *turns)
{
    const gy_touch *t = &l->touch.at[sorted[i]], *first = t;
    *area = (gy_area){ t->value, t->memory, t->first, t->last, GY_NONE, GY_ROLE_DATA, t->gathered };
    *turns = t->read;
    while (++i < l->touch.count && grows(area, t = &l->touch.at[sorted[i]])) {
        *turns = *turns && t->read && t->first == first->first && t->last == first->last;
        area->last = t->last > area->last ? t->last : area->last;
    }
    return i;
}

static gantry_status make_areas(gy_lower *l, gantry_error *err)
{
    size_t count = l->p->flow->accesses + l->extras;
    uint32_t *sorted = sort_touches(l);
    l->area_of = gy_calloc(count + 1, sizeof *l->area_of);
    if (!sorted || !l->area_of || !gy_vec_reserve(&l->area, l->touch.count)) {
        gy_free(sorted);
        return gy_fail_nomem(err);
    }
    for (size_t i = 0; i < count; i++)
        l->area_of[i] = GY_NONE;
    for (size_t i = 0, end = 0; i < l->touch.count; i = end) {
        gy_area area;
        bool turns;
        size_t first = l->area.count, turn = 0;
        end = grow_area(l, sorted, i, &area, &turns);
        l->area.at[l->area.count++] = area;
        for (size_t k = i; k < end; k++) {
            const gy_touch *t = &l->touch.at[sorted[k]];
            if (turns && k > i && t->version != l->touch.at[sorted[k - 1]].version && ++turn < TURNS) {
                l->area.at[l->area.count++] = area;
                l->p->turns = true;
            }
            l->area_of[t->index] = (uint32_t)(first + turn % TURNS);
        }
    }
    gy_free(sorted);
    gy_vec_free(&l->touch);
    return GANTRY_OK;
}

/* Is the area at or before (value, memory, row)? */
static bool not_behind(const gy_area *a, uint32_t value, uint32_t memory, int64_t row)
{
    if (a->value != value)
        return a->value < value;
    if (a->gathered)
        return false;
    if (a->memory != memory)
        return a->memory < memory;
    return a->first <= row;
}

/* How many areas are at or before (value, memory, row). */
static size_t areas_before(const gy_lower *l, uint32_t value, uint32_t memory, int64_t row)
{
    size_t low = 0, high = l->area.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (not_behind(&l->area.at[middle], value, memory, row))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t gy_lower_find_area(const gy_lower *l, uint32_t value, uint32_t memory, int64_t row)
{
    size_t count = areas_before(l, value, memory, row);
    if (!count)
        return GY_NONE;
    const gy_area *a = &l->area.at[count - 1];
    return a->value == value && a->memory == memory && row < a->last ? (uint32_t)(count - 1) : GY_NONE;
}

size_t gy_lower_first_area(const gy_lower *l, uint32_t value)
{
    return areas_before(l, value, 0, -1);
}

static gantry_status walk_access(gy_lower *l, uint32_t task, uint32_t k, gantry_error *err)
{
    GY_TRY(gy_epochs_walk(l, task, k, err));
    return gy_boundary_walk(l, task, k, err);
}

static gantry_status walk_task(gy_lower *l, uint32_t task, gantry_error *err)
{
    const gy_plan *p = l->p;
    gantry_status status = GANTRY_OK;
    for (int second = 0; second < 2; second++)
        for (uint32_t k = 0; k < gy_plan_node(p, task)->accesses && !status; k++)
            if (gy_lower_is_second(l, task, k) == second)
                status = walk_access(l, task, k, err);
    return status;
}

gantry_status gy_lower_regions(gy_lower *l, gantry_error *err)
{
    const gy_plan *p = l->p;
    for (uint32_t i = 0; i < p->flow->tasks; i++)
        GY_TRY(walk_task(l, p->placed.order[i], err));
    GY_TRY(gy_epochs_finish(l, err));
    GY_TRY(gy_lower_versions(l, err));
    GY_TRY(gy_boundary_touch(l, err));
    GY_TRY(touch_accesses(l, err));
    GY_TRY(touch_replicas(l, err));
    if (p->attempt->spill.gather_again) {
        GY_TRY(gy_lower_deal_homes(l, err));
        GY_TRY(gy_lower_mark_gathered(l, err));
    }
    GY_TRY(make_areas(l, err));
    GY_TRY(gy_boundary_homes(l, err));
    return gy_boundary_finals(l, err);
}
