/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/relocate.h"

#include "base/error.h"
#include <string.h>

typedef struct move {
    const gantry_machine *to;
    uint32_t *device, *memory; /* new number of each */
} move;

static bool find_numbers(move *x, const gantry_machine *from)
{
    x->device = gy_calloc(from->devices, sizeof *x->device);
    x->memory = gy_calloc(from->memories, sizeof *x->memory);
    if (!x->device || !x->memory)
        return false;
    for (uint32_t i = 0; i < from->devices; i++)
        x->device[i] = gy_machine_find_device(x->to, from->device[i].id);
    for (uint32_t i = 0; i < from->memories; i++)
        x->memory[i] = gy_machine_find_memory(x->to, from->memory[i].id);
    return true;
}

/* One size for each memory of the machine; none where there were none. */
static bool spread_sizes(gy_sizes *sizes, const move *x)
{
    gy_sizes spread = { 0 };
    if (!sizes->count)
        return true;
    if (!gy_vec_add(&spread, x->to->memories))
        return false;
    memset(spread.at, 0, spread.count * sizeof *spread.at);
    for (uint32_t i = 0; i < sizes->count; i++)
        spread.at[x->memory[i]] = sizes->at[i];
    gy_vec_free(sizes);
    *sizes = spread;
    return true;
}

static bool relocate(gantry_schedule *s, const move *x)
{
    for (size_t i = 0; i < s->instances.count; i++)
        s->instances.at[i].memory = x->memory[s->instances.at[i].memory];
    for (size_t i = 0; i < s->lanes.count; i++)
        s->lanes.at[i].device = x->device[s->lanes.at[i].device];
    if (!spread_sizes(&s->slab, x) || !spread_sizes(&s->window, x))
        return false;
    gantry_machine_free(s->machine);
    s->machine = gy_machine_ref(x->to);
    bool done = true;
    for (size_t i = 0; i < s->phases.count && done; i++)
        done = relocate(s->phases.at[i].schedule, x);
    return done;
}

gantry_status gy_schedule_relocate(gantry_schedule *s, const gantry_machine *machine, gantry_error *err)
{
    move x = { .to = machine };
    bool done = find_numbers(&x, s->machine) && relocate(s, &x);
    gy_free(x.device);
    gy_free(x.memory);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
