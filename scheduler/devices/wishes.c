/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/devices/wishes.h"

#include "base/expr.h"
#include "schedule/schedule.h"
#include <string.h>

static bool look_up_devices(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    const gantry_machine *m = context;
    *integer = gy_machine_workers(m);
    *real = (double)*integer;
    *is_real = false;
    return !strcmp(name, "devices");
}

/* The id of the device that an expression names; NULL: none. */
static const char *device_at(const gantry_machine *m, const gy_expr *e)
{
    int64_t index = -1;
    void *context = (void *)(uintptr_t)m;
    if (!e || gy_expr_integer(e, look_up_devices, context, &index, GANTRY_E_GRAPH, NULL, NULL))
        return NULL;
    return index >= 0 && index < gy_machine_workers(m) ? m->device[index].id : NULL;
}

static bool has_kind(const gantry_machine *m, const char *kind)
{
    for (uint32_t d = 0; d < m->devices; d++)
        if (!strcmp(m->device[d].kind, kind))
            return true;
    return false;
}

/* The id or the kind that `on` stands for; NULL: nothing of the machine. */
static const char *meaning(const gantry_machine *m, const gy_rank_place *place)
{
    if (place->on && (gy_machine_find_device(m, place->on) != GY_MACHINE_NONE || has_kind(m, place->on)))
        return place->on;
    return device_at(m, place->on_expr);
}

static bool stays(const gantry_machine *whole, const gantry_machine *part, const gy_rank_place *place)
{
    if (!place->on && !place->on_expr)
        return true;
    const char *a = meaning(whole, place), *b = meaning(part, place);
    return a && b && !strcmp(a, b);
}

static bool ranks_stay(const gantry_machine *whole, const gantry_machine *part, const gy_node_extra *x)
{
    for (size_t i = 0; i < x->rank_on.count; i++)
        if (!stays(whole, part, &x->rank_on.at[i]))
            return false;
    return true;
}

bool gy_wishes_hold(const gantry_graph *graph, const gantry_machine *whole, const gantry_machine *part)
{
    for (size_t i = 0; i < graph->extra.count; i++) {
        const gy_node_extra *x = &graph->extra.at[i];
        if (!stays(whole, part, &(gy_rank_place){ x->on, x->on_expr }) || !ranks_stay(whole, part, x))
            return false;
    }
    for (size_t i = 0; i < graph->buffers.count; i++)
        if (gy_buffer_home(part, &graph->buffers.at[i]) == GY_NONE)
            return false;
    return true;
}
