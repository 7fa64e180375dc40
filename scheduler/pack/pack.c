/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes of instances, what persists, and the choice between the two ways of packing. */
#include "scheduler/pack/pack.h"

#include "scheduler/pack/packing.h"

#include "base/align.h"
#include "base/error.h"

/* Bytes that a store takes of its memory: those of all starts. */
static uint64_t taken(const gy_pack *k, uint32_t store)
{
    return k->fixed[store] + (k->used[store] - k->fixed[store]) * k->p->attempt->in_flight;
}

uint64_t gy_pack_limit(const gy_pack *k, uint32_t store)
{
    uint64_t room = k->p->capacity[store < k->stores - 1 ? store : 0], fixed = k->fixed[store];
    if (store == k->stores - 1)
        room = room > taken(k, 0) ? room - taken(k, 0) : 0;
    if (k->p->attempt->in_flight == 1 || room < fixed)
        return room;
    return fixed + (room - fixed) / k->p->attempt->in_flight / GY_ALIGN * GY_ALIGN;
}

static bool note_use(gy_pack *k, uint32_t instance, uint32_t position)
{
    gy_life *f = &k->life[instance];
    uint32_t lane = k->s->op_lane.at[k->s->ops.at[position].lane];
    f->first = position < f->first ? position : f->first;
    f->last = position;
    for (gy_last_use *u = f->uses; u; u = u->next)
        if (u->lane == lane) {
            u->op = position;
            return true;
        }
    gy_last_use *new = gy_arena_alloc(&k->arena, sizeof *new);
    if (!new)
        return false;
    *new = (gy_last_use){ lane, position, f->uses };
    f->uses = new;
    return true;
}

static bool find_lives(gy_pack *k)
{
    const gantry_schedule *s = k->s;
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *in = &s->instances.at[i];
        uint32_t store = in->space == GY_SPACE_SLAB      ? in->memory
                         : in->space == GY_SPACE_STAGING ? k->stores - 1
                                                         : GY_NONE;
        k->life[i] = (gy_life){ .store = store, .first = GY_NONE, .bytes = gy_aligned(in->bytes) };
    }
    for (uint32_t i = 0; i < s->ops.count; i++)
        for (uint32_t u = 0; u < s->ops.at[i].uses; u++)
            if (!note_use(k, s->use.at[s->ops.at[i].use + u].instance, i))
                return false;
    return true;
}

/* Counting sorts of the instances by the positions of their first and of their last use. */
static void sort_lives(gy_pack *k)
{
    size_t instances = k->s->instances.count, ops = k->s->ops.count;
    for (uint32_t i = 0; i < instances; i++) {
        if (k->life[i].store == GY_NONE)
            continue;
        k->start_first[k->life[i].first + 1]++;
        if (!gy_pack_persists(k, i))
            k->end_first[k->life[i].last + 1]++;
    }
    for (size_t i = 0; i < ops; i++) {
        k->start_first[i + 1] += k->start_first[i];
        k->end_first[i + 1] += k->end_first[i];
    }
    for (uint32_t i = 0; i < instances; i++) { /* begins move to ends here, and back below */
        if (k->life[i].store == GY_NONE)
            continue;
        k->start[k->start_first[k->life[i].first]++] = i;
        if (!gy_pack_persists(k, i))
            k->end[k->end_first[k->life[i].last]++] = i;
    }
    for (size_t i = ops; i > 0; i--) {
        k->start_first[i] = k->start_first[i - 1];
        k->end_first[i] = k->end_first[i - 1];
    }
    k->start_first[0] = k->end_first[0] = 0;
}

/* Outside spaces have the offsets of the buffer's rows; what persists goes to the bottom of its slab. */
static void place_fixed(gy_pack *k)
{
    for (uint32_t i = 0; i < k->s->instances.count; i++) {
        gy_instance *in = &k->s->instances.at[i];
        if (!gy_pack_is_given(k, k->life[i].store) || gy_pack_persists(k, i))
            in->offset = 0; /* inputs and outputs begin with row 0 */
        if (k->life[i].store != GY_NONE && gy_pack_persists(k, i)) {
            in->offset = k->used[k->life[i].store];
            k->used[k->life[i].store] += k->life[i].bytes;
        }
    }
    for (uint32_t store = 0; store < k->stores; store++)
        k->fixed[store] = k->used[store];
}

static gantry_status check_limits(gy_pack *k, gantry_error *err)
{
    for (uint32_t store = 0; store < k->stores; store++)
        if (k->used[store] > gy_pack_limit(k, store))
            return gy_pack_refuse(k, store, err);
    return GANTRY_OK;
}

static gantry_status write_slabs(gy_pack *k, gantry_error *err)
{
    gantry_schedule *s = k->s;
    uint32_t staging = k->stores - 1;
    s->slab.count = s->window.count = 0;
    s->in_flight = k->p->attempt->in_flight;
    if (!gy_vec_add(&s->slab, staging) || (s->in_flight > 1 && !gy_vec_add(&s->window, staging)))
        return gy_fail_nomem(err);
    for (uint32_t m = 0; m < staging; m++)
        s->slab.at[m] = taken(k, m);
    for (uint32_t m = 0; m < s->window.count; m++)
        s->window.at[m] = k->used[m] - k->fixed[m];
    s->staging = taken(k, staging);
    s->staging_window = s->in_flight > 1 ? k->used[staging] : 0;
    return GANTRY_OK;
}

/* Best fit first; stores that it overfills are searched. The staging space comes last: it has what is left of a memory.
 */
static gantry_status place_tightly(gy_pack *k, gantry_error *err)
{
    for (uint32_t store = 0; store < k->stores; store++) { /* hopeless? That is known sooner than offsets are */
        uint64_t load = gy_pack_load(k, store);
        if (load <= gy_pack_limit(k, store))
            continue;
        k->used[store] = load;
        return gy_pack_refuse(k, store, err);
    }
    GY_TRY(gy_pack_tight(k, err));
    for (uint32_t store = 0; store < k->stores; store++)
        if (k->used[store] > gy_pack_limit(k, store))
            GY_TRY(gy_pack_offsets(k, store, err));
    return check_limits(k, err);
}

static gantry_status pack(gy_pack *k, gantry_error *err)
{
    if (!find_lives(k))
        return gy_fail_nomem(err);
    sort_lives(k);
    place_fixed(k);
    if (k->how->tight)
        GY_TRY(place_tightly(k, err));
    GY_TRY(gy_pack_sweep(k, !k->how->tight, err));
    if (!k->how->tight)
        GY_TRY(check_limits(k, err));
    return write_slabs(k, err);
}

gantry_status gy_plan_pack(gy_plan *p, const gy_arrangement *how, gantry_error *err)
{
    gantry_schedule *s = p->schedule;
    gy_pack k = { .p = p, .how = how, .s = s, .stores = p->machine->memories + 1 };
    size_t instances = s->instances.count + 1, ops = s->ops.count + 2;
    k.life = gy_calloc(instances, sizeof *k.life);
    k.used = gy_calloc(k.stores, sizeof *k.used);
    k.fixed = gy_calloc(k.stores, sizeof *k.fixed);
    k.start = gy_calloc(instances, sizeof *k.start);
    k.end = gy_calloc(instances, sizeof *k.end);
    k.start_first = gy_calloc(ops, sizeof *k.start_first);
    k.end_first = gy_calloc(ops, sizeof *k.end_first);
    gantry_status status = GANTRY_OK;
    if (!k.life || !k.used || !k.fixed || !k.start || !k.end || !k.start_first || !k.end_first)
        status = gy_fail_nomem(err);
    else
        status = pack(&k, err);
    gy_arena_free(&k.arena);
    gy_free(k.life);
    gy_free(k.used);
    gy_free(k.fixed);
    gy_free(k.start);
    gy_free(k.end);
    gy_free(k.start_first);
    gy_free(k.end_first);
    return status;
}
