/* SPDX-License-Identifier: Apache-2.0 */
/* Why it does not fit: replays which instances are in use at each op until they pass the limit. */
#include "base/error.h"
#include "scheduler/pack/packing.h"

#include <stdio.h>

#define LARGEST 3

typedef struct crowd {
    uint32_t op;     /* where it overflows, or where most is in use */
    uint64_t needed; /* bytes there */
} crowd;

static bool is_there(const gy_pack *k, uint32_t instance, uint32_t store, uint32_t op)
{
    const gy_life *f = &k->life[instance];
    return f->store == store && (gy_pack_persists(k, instance) || (f->first <= op && op <= f->last));
}

/* The first op at which more is in use than fits; if holes are to blame, the one with most. */
static crowd find_crowd(const gy_pack *k, uint32_t store, uint64_t limit)
{
    crowd most = { 0, 0 };
    uint64_t sum = 0;
    for (uint32_t i = 0; i < k->s->instances.count; i++)
        sum += k->life[i].store == store && gy_pack_persists(k, i) ? k->life[i].bytes : 0;
    for (uint32_t i = 0; i < k->s->ops.count; i++) {
        for (size_t n = k->start_first[i]; n < k->start_first[i + 1]; n++)
            if (k->life[k->start[n]].store == store && !gy_pack_persists(k, k->start[n]))
                sum += k->life[k->start[n]].bytes;
        if (sum > most.needed)
            most = (crowd){ i, sum };
        if (sum > limit)
            break;
        for (size_t n = k->end_first[i]; n < k->end_first[i + 1]; n++)
            sum -= k->life[k->end[n]].store == store ? k->life[k->end[n]].bytes : 0;
    }
    return most;
}

static void add_largest(const gy_pack *k, uint32_t store, uint32_t op, gy_text *to)
{
    uint32_t top[LARGEST], count = 0;
    for (uint32_t i = 0; i < k->s->instances.count; i++) {
        if (!is_there(k, i, store, op))
            continue;
        uint32_t at = count < LARGEST ? count++ : LARGEST;
        for (; at && k->life[top[at - 1]].bytes < k->life[i].bytes; at--)
            if (at < LARGEST)
                top[at] = top[at - 1];
        if (at < LARGEST)
            top[at] = i;
    }
    for (uint32_t n = 0; n < count; n++) {
        const gy_instance *in = &k->s->instances.at[top[n]];
        gy_use all = { top[n], GANTRY_READ, 0, in->first, in->last };
        char size[32];
        gy_text_add(to, n ? ", " : "; largest: ");
        gy_use_text(to, k->s, &all);
        gy_text_printf(to, " %s", gy_bytes_text(size, sizeof size, in->bytes));
    }
}

/* The node that the op belongs to; a copy belongs to the node that it is made for, the next one. */
static const char *node_at(const gy_pack *k, uint32_t op)
{
    for (uint32_t i = op; i < k->s->ops.count; i++)
        if (k->s->ops.at[i].node != GY_NONE)
            return k->p->graph->nodes.at[k->s->ops.at[i].node].id;
    return "the end";
}

/* The words on holes: the bytes that packing would take, where those in use at one time would fit; else "". */
static const char *holes_text(char *to, size_t room, uint64_t used, const crowd *c, uint64_t limit)
{
    char size[32];
    *to = 0;
    if (c->needed <= limit)
        snprintf(to, room, " (%s with the holes between instances)", gy_bytes_apart(size, sizeof size, used, limit));
    return to;
}

gantry_status gy_pack_refuse(gy_pack *k, uint32_t store, gantry_error *err)
{
    const gantry_machine *m = k->p->machine;
    uint32_t memory = store == k->stores - 1 ? 0 : store, device = gy_plan_device_of(k->p, memory);
    uint64_t limit = gy_pack_limit(k, store);
    crowd c = find_crowd(k, store, limit);
    gy_text largest = { 0 };
    char needs[32], has[32], holes[80], beside[64] = "";
    if (store < k->stores - 1)
        gy_plan_scratch_text(k->p, memory, beside, sizeof beside);
    add_largest(k, store, c.op, &largest);
    gantry_status status = gy_fail(
        err, GANTRY_E_CAPACITY, NULL, "%s needs %s at node \"%s\"%s and has %s%s%s; %s more parts, %s",
        device == GY_NONE || store == k->stores - 1 ? m->memory[memory].id : m->device[device].id,
        gy_bytes_apart(needs, sizeof needs, c.needed, limit), node_at(k, c.op),
        holes_text(holes, sizeof holes, k->used[store], &c, limit), gy_bytes_apart(has, sizeof has, limit, c.needed),
        beside, largest.failed || !largest.at ? "" : largest.at, gy_plan_room_remedy(k->p, memory),
        k->p->attempt->spill.spilling == GY_SPILL_OFF ? "more devices, or --spill auto" : "or more devices");
    if (err && device != GY_NONE)
        err->device = (int32_t)device;
    gy_text_free(&largest);
    return status;
}
