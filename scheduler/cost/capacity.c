/* SPDX-License-Identifier: Apache-2.0 */
/* How much of each memory instances may take: capacity less what is reserved and the largest scratch, or less still. */
#include "scheduler/plan/plan.h"

#include "base/align.h"
#include "base/error.h"
#include "scheduler/cost/cost.h"
#include <string.h>

/* The memory that a name stands for: a memory's id, or the memory of a device. */
static uint32_t find_memory(const gantry_machine *m, const char *name)
{
    uint32_t device = gy_machine_find_device(m, name);
    return device != GY_MACHINE_NONE ? m->device[device].memory : gy_machine_find_memory(m, name);
}

static gantry_status no_memory(const gantry_machine *m, const char *name, gantry_error *err)
{
    gy_near near = { 0 };
    for (uint32_t i = 0; i < m->devices; i++)
        gy_near_offer(&near, name, m->device[i].id);
    for (uint32_t i = 0; i < m->memories; i++)
        gy_near_offer(&near, name, m->memory[i].id);
    char meant[GY_MEANT_TEXT];
    gy_text ids = { 0 };
    gy_machine_list_devices(&ids, m);
    gantry_status status =
        ids.failed ? gy_fail_nomem(err)
                   : gy_fail(err, GANTRY_E_INVALID, NULL,
                             "max_memory: machine \"%s\" has no device or memory \"%s\"%s; its devices are %s", m->name,
                             name, gy_meant_text(meant, near.best), ids.at);
    gy_text_free(&ids);
    return status;
}

/* One "name=size", cut out of the list. */
static gantry_status apply_one(gy_plan *p, char *entry, gantry_error *err)
{
    char *equal = strchr(entry, '=');
    uint64_t bytes;
    if (!equal)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "max_memory: \"%s\" must be name=size, such as gpu0=4GiB", entry);
    *equal = 0;
    uint32_t memory = find_memory(p->machine, entry);
    if (memory == GY_MACHINE_NONE)
        return no_memory(p->machine, entry, err);
    if (!gy_parse_bytes(equal + 1, &bytes))
        return gy_fail(err, GANTRY_E_INVALID, NULL, "max_memory: \"%s\" of \"%s\" is no size; give one such as 512MiB",
                       equal + 1, entry);
    if (bytes < p->capacity[memory]) {
        p->capacity[memory] = bytes;
        p->limited[memory] = true;
    }
    return GANTRY_OK;
}

static gantry_status apply_all(gy_plan *p, const char *max_memory, gantry_error *err)
{
    char *text = gy_strdup(max_memory), *rest = text, *entry;
    gantry_status status = text ? GANTRY_OK : gy_fail_nomem(err);
    while (!status && (entry = strsep(&rest, ",")) != NULL)
        if (*entry)
            status = apply_one(p, entry, err);
    gy_free(text);
    return status;
}

bool gy_capacity_select(gy_text *text, const char *max_memory, const gantry_machine *m, const gantry_machine *some)
{
    char *copy = gy_strdup(max_memory), *rest = copy, *entry;
    bool same = true;
    text->failed = text->failed || !copy;
    gy_text_add(text, "");
    while (copy && same && (entry = strsep(&rest, ",")) != NULL) {
        const char *equal = strchr(entry, '=');
        if (!equal)
            continue;
        entry[equal - entry] = 0;
        uint32_t whole = find_memory(m, entry), here = find_memory(some, entry);
        const char *id = whole == GY_MACHINE_NONE ? "" : m->memory[whole].id;
        same = here == GY_MACHINE_NONE ? gy_machine_find_memory(some, id) == GY_MACHINE_NONE
                                       : !strcmp(some->memory[here].id, id);
        if (here != GY_MACHINE_NONE)
            gy_text_printf(text, "%s=%s,", entry, equal + 1);
    }
    gy_free(copy);
    if (!same)
        gy_text_free(text);
    return same;
}

gantry_status gy_plan_capacity(gy_plan *p, const char *max_memory, gantry_error *err)
{
    const gantry_machine *m = p->machine;
    p->capacity = gy_calloc(m->memories, sizeof *p->capacity);
    p->limited = gy_calloc(m->memories, sizeof *p->limited);
    if (!p->capacity || !p->limited)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < m->memories; i++)
        p->capacity[i] = m->memory[i].capacity - m->memory[i].reserved;
    return max_memory ? apply_all(p, max_memory, err) : GANTRY_OK;
}

/* Scratch is no instance: each lane of a device has as much as the largest node that runs there asks. Where memory is
 * to be spared, devices whose nodes ask for some have one lane. */
gantry_status gy_plan_scratch(gy_plan *p, gantry_error *err)
{
    uint64_t *scratch = gy_calloc(p->devices, sizeof *scratch);
    p->one_lane = p->attempt->spare_memory ? gy_arena_calloc(&p->arena, p->devices, sizeof *p->one_lane) : NULL;
    p->scratch = gy_arena_calloc(&p->arena, p->machine->memories, sizeof *p->scratch);
    if (!scratch || !p->scratch || (p->attempt->spare_memory && !p->one_lane)) {
        gy_free(scratch);
        return gy_fail_nomem(err);
    }
    for (uint32_t t = 0; t < p->flow->tasks; t++) {
        uint64_t bytes = gy_aligned(gy_plan_node_scratch(p, p->flow->task[t].node));
        uint32_t d = p->placed.device[t];
        scratch[d] = bytes > scratch[d] ? bytes : scratch[d];
    }
    for (size_t i = 0; i < p->placed.replica.count; i++) {
        const gy_replica *r = &p->placed.replica.at[i];
        uint64_t bytes = gy_aligned(gy_plan_node_scratch(p, p->flow->task[r->task].node));
        scratch[r->device] = bytes > scratch[r->device] ? bytes : scratch[r->device];
    }
    for (uint32_t d = 0; d < p->devices; d++) {
        uint64_t *left = &p->capacity[p->machine->device[d].memory];
        uint32_t lanes = gy_plan_spreads(p, d) ? p->machine->device[d].lanes : 1;
        if (p->one_lane && lanes > 1 && scratch[d] > 0) {
            p->one_lane[d] = 1;
            lanes = 1;
        }
        uint64_t need = lanes * scratch[d];
        p->scratch[p->machine->device[d].memory] += need;
        *left = *left > need ? *left - need : 0;
    }
    gy_free(scratch);
    return GANTRY_OK;
}

bool gy_plan_can_spare(const gantry_graph *graph, const gantry_machine *machine)
{
    uint32_t lanes = 0;
    for (uint32_t d = 0; d < machine->devices; d++)
        lanes = machine->device[d].lanes > lanes ? machine->device[d].lanes : lanes;
    if (lanes > 1 && gy_machine_has_workspace(machine))
        return true;
    for (uint32_t n = 0; n < graph->nodes.count; n++)
        if (graph->nodes.at[n].kind == GY_NODE_COLLECTIVE || (graph->nodes.at[n].scratch > 0 && lanes > 1))
            return true;
    return false;
}
