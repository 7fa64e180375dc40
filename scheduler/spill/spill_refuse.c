/* SPDX-License-Identifier: Apache-2.0 */
/* Why what an op uses is too much. */
#include "scheduler/spill/spill.h"

#include "base/error.h"

#define LARGEST 3

/* The largest of what the op itself has in the memory. */
static void add_largest(const gy_spill *w, uint32_t memory, uint32_t i, gy_text *to)
{
    const gy_op *op = &w->old->op.at[i].op;
    uint32_t top[LARGEST], count = 0;
    for (uint32_t k = 0; k < op->uses; k++) {
        uint32_t x = w->old->use.at[op->use + k].instance, at = 0;
        while (at < count && top[at] != x)
            at++;
        if (at < count || gy_spill_old(w, x)->memory != memory || !w->held[x].bytes)
            continue;
        for (at = count < LARGEST ? count++ : LARGEST; at && w->held[top[at - 1]].bytes < w->held[x].bytes; at--)
            if (at < LARGEST)
                top[at] = top[at - 1];
        if (at < LARGEST)
            top[at] = x;
    }
    for (uint32_t n = 0; n < count; n++) {
        const gy_instance *in = gy_spill_old(w, top[n]);
        char size[32];
        gy_text_add(to, n ? ", " : "; largest: ");
        gy_rows_text(to, w->p->graph, w->p->flow->value[in->value].buffer, in->first, in->last);
        gy_text_printf(to, " %s", gy_bytes_text(size, sizeof size, in->bytes));
    }
}

/* The node that an op belongs to; a copy belongs to the node that it is made for, the next one. */
static const char *node_at(const gy_spill *w, uint32_t i)
{
    for (; i < w->old->op.count; i++)
        if (w->old->op.at[i].op.node != GY_NONE)
            return w->p->graph->nodes.at[w->old->op.at[i].op.node].id;
    return "the end";
}

gantry_status gy_spill_cannot(gy_spill *w, uint32_t memory, uint32_t i, gantry_error *err)
{
    const gy_plan *p = w->p;
    uint32_t device = gy_plan_device_of(p, memory);
    uint64_t load = gy_spill_load(w, memory, i, i);
    char needs[32], has[32], beside[64];
    gy_text largest = { 0 };
    w->alone = !w->how.addressed; /* else it may lie too scattered */
    add_largest(w, memory, i, &largest);
    gantry_status status = gy_fail(err, GANTRY_E_CAPACITY, NULL,
                                   "%s needs %s at node \"%s\" and has %s%s%s; %s more parts, or more devices",
                                   device == GY_NONE ? p->machine->memory[memory].id : p->machine->device[device].id,
                                   gy_bytes_apart(needs, sizeof needs, load, p->capacity[memory]), node_at(w, i),
                                   gy_bytes_apart(has, sizeof has, p->capacity[memory], load),
                                   gy_plan_scratch_text(p, memory, beside, sizeof beside),
                                   largest.failed || !largest.at ? "" : largest.at, gy_plan_room_remedy(p, memory));
    if (err && device != GY_NONE)
        err->device = (int32_t)device;
    gy_text_free(&largest);
    return status;
}
