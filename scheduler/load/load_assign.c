/* SPDX-License-Identifier: Apache-2.0 */
/* Assignments of units to devices, with loads that follow each change. */
#include "scheduler/load/load.h"

bool gy_assignment_init(gy_assignment *a, const gy_load *l)
{
    *a = (gy_assignment){ .l = l };
    a->device = gy_calloc((size_t)l->units + 1, sizeof *a->device);
    a->load = gy_calloc((size_t)l->devices + 1, sizeof *a->load);
    a->used = gy_calloc((size_t)l->memories + 1, sizeof *a->used);
    a->readers = gy_calloc(l->items.count * l->devices + 1, sizeof *a->readers);
    a->users = gy_calloc(l->held.count * l->memories + 1, sizeof *a->users);
    if (!a->device || !a->load || !a->used || !a->readers || !a->users)
        return false;
    for (uint32_t u = 0; u < l->units; u++)
        a->device[u] = GY_NONE;
    return true;
}

void gy_assignment_free(gy_assignment *a)
{
    gy_free(a->device);
    gy_free(a->load);
    gy_free(a->used);
    gy_free(a->readers);
    gy_free(a->users);
    *a = (gy_assignment){ 0 };
}

static uint32_t memory_of(const gy_load *l, uint32_t device)
{
    return l->p->machine->device[device].memory;
}

/* Was one of the devices before `device`, in the same memory, a reader? Then its memory is paid for. */
static bool is_paid(const gy_load *l, const uint32_t *readers, uint32_t device)
{
    for (uint32_t d = 0; d < device; d++)
        if (readers[d] && memory_of(l, d) == memory_of(l, device))
            return true;
    return false;
}

/* Adds (sign 1) or takes away (sign -1) the cost of the item under the assignment as it is. */
static void count_item(gy_assignment *a, uint32_t index, gy_ticks sign)
{
    const gy_load *l = a->l;
    const gy_load_item *item = &l->items.at[index];
    const uint32_t *readers = &a->readers[(size_t)index * l->devices];
    uint32_t maker = item->maker == GY_NONE ? GY_NONE : a->device[item->maker];
    if (item->maker != GY_NONE && maker == GY_NONE)
        return;
    uint32_t from = maker == GY_NONE ? 0 : memory_of(l, maker);
    const gy_load_pay *pay = &l->pay[((size_t)item->size * l->memories + from) * l->memories];
    gy_ticks once = item->home && from != 0 ? pay[0].send : 0, each = 0;
    for (uint32_t d = 0; d < l->devices; d++) {
        uint32_t to = memory_of(l, d);
        if (!readers[d] || to == from)
            continue;
        a->load[d] += sign * pay[to].receive;
        if (!pay[to].once)
            each += is_paid(l, readers, d) ? 0 : pay[to].send;
        else if (pay[to].send > once)
            once = pay[to].send;
    }
    if (maker != GY_NONE)
        a->load[maker] += sign * (once + each);
}

static void hold(gy_assignment *a, uint32_t unit, uint32_t device, bool more)
{
    const gy_load *l = a->l;
    uint32_t memory = memory_of(l, device);
    for (uint32_t i = l->held_first[unit]; i < l->held_first[unit + 1]; i++) {
        uint32_t *users = &a->users[(size_t)l->held_of[i] * l->memories + memory];
        uint64_t bytes = l->held.at[l->held_of[i]].bytes;
        if (more && (*users)++ == 0)
            a->used[memory] += bytes;
        else if (!more && --*users == 0)
            a->used[memory] -= bytes;
    }
}

static void work(gy_assignment *a, uint32_t unit, uint32_t device, gy_ticks sign)
{
    gy_ticks time = a->l->time[(size_t)unit * a->l->devices + device];
    a->load[device] += time < GY_TICKS_MAX ? sign * time : 0;
}

void gy_assignment_move(gy_assignment *a, uint32_t unit, uint32_t device)
{
    const gy_load *l = a->l;
    uint32_t old = a->device[unit], first = l->item_first[unit], last = l->item_first[unit + 1];
    if (old == device)
        return;
    for (uint32_t i = first; i < last; i++)
        count_item(a, l->item_of[i], -1);
    for (uint32_t i = first; i < last; i++) {
        uint32_t *readers = &a->readers[(size_t)l->item_of[i] * l->devices];
        if (l->items.at[l->item_of[i]].maker == unit)
            continue;
        if (old != GY_NONE)
            readers[old]--;
        if (device != GY_NONE)
            readers[device]++;
    }
    a->device[unit] = device;
    for (uint32_t i = first; i < last; i++)
        count_item(a, l->item_of[i], 1);
    if (old != GY_NONE) {
        hold(a, unit, old, false);
        work(a, unit, old, -1);
    }
    if (device != GY_NONE) {
        hold(a, unit, device, true);
        work(a, unit, device, 1);
    }
}

void gy_assignment_set(gy_assignment *a, const uint32_t *device)
{
    for (uint32_t u = 0; u < a->l->units; u++)
        gy_assignment_move(a, u, device[u]);
}

gy_ticks gy_assignment_load(const gy_assignment *a)
{
    gy_ticks most = 0;
    for (uint32_t d = 0; d < a->l->devices; d++)
        most = a->load[d] > most ? a->load[d] : most;
    return most;
}

uint64_t gy_assignment_excess(const gy_assignment *a)
{
    uint64_t excess = 0;
    for (uint32_t m = 0; m < a->l->memories; m++) {
        const gy_memory *memory = &a->l->p->machine->memory[m];
        uint64_t room = a->l->p->capacity ? a->l->p->capacity[m] : memory->capacity - memory->reserved;
        excess += a->used[m] > room ? a->used[m] - room : 0;
    }
    return excess;
}

bool gy_assignment_allows(const gy_assignment *a, uint32_t unit, uint32_t device)
{
    const gy_load *l = a->l;
    const gy_plan *p = l->p;
    if (l->time[(size_t)unit * l->devices + device] >= GY_TICKS_MAX)
        return false;
    uint32_t node = p->flow->task[l->task_of[unit]].node;
    const uint32_t *apart = p->cost.pinned[node] ? p->cost.apart[p->cost.group[node]] : NULL;
    for (uint32_t i = 0; apart && i < apart[0]; i++) {
        /* A group is pinned as a whole, so its unit is that of its first node's task, in whatever iteration. */
        for (uint32_t u = 0; u < l->units; u++) {
            uint32_t other = p->flow->task[l->task_of[u]].node;
            if (a->device[u] == device && p->cost.pinned[other] && p->cost.group[other] == apart[i + 1])
                return false;
        }
    }
    return true;
}
