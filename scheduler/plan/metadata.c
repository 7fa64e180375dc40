/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of a schedule: names and sizes of its graph, copied, so that it does not depend on the graph's life. */
#include "scheduler/plan/metadata.h"

#include "base/error.h"
#include "schedule/words.h"
#include <string.h>

static const int64_t *copy_rows(gantry_schedule *s, const int64_t *from, int64_t count)
{
    int64_t *to = gy_arena_alloc(&s->arena, (size_t)count * sizeof *to);
    if (to)
        memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

bool gy_plan_add_bounds(gantry_schedule *s, const gy_buffer *b)
{
    struct gy_part_bounds bounds = { .parts = (uint32_t)b->parts };
    if (!b->part_first || !b->parts)
        return true;
    bounds.buffer = gy_arena_strdup(&s->arena, b->name);
    bounds.first = copy_rows(s, b->part_first, b->parts + 1);
    return bounds.buffer && bounds.first && gy_vec_push(&s->bounds, bounds);
}

/* Generations share name and offsets with their buffer, whose value comes before them. */
static bool add_value(gy_plan *p, uint32_t value)
{
    gantry_schedule *s = p->schedule;
    gy_schedule_value new = gy_schedule_value_of(p->graph, p->flow, value);
    const gy_schedule_value *own = new.generation ? &s->values.at[new.buffer] : NULL;
    const int64_t *offset = new.offset;
    new.name = own ? own->name : gy_arena_strdup(&s->arena, new.name);
    if (offset)
        new.offset = own ? own->offset : copy_rows(s, offset, new.rows + 1);
    if (!new.name || (offset && !new.offset))
        return false;
    return gy_vec_push(&s->values, new);
}

static bool add_params(gantry_schedule *s, const gantry_graph *g)
{
    for (size_t i = 0; i < g->params.count; i++) {
        gy_param param = g->params.at[i];
        param.name = gy_arena_strdup(&s->arena, param.name);
        if (!param.name || !gy_vec_push(&s->params, param))
            return false;
    }
    return true;
}

static bool add_ids(gantry_schedule *s, const gantry_graph *g)
{
    for (size_t i = 0; i < g->nodes.count; i++) {
        const char *id = gy_arena_strdup(&s->arena, g->nodes.at[i].id);
        if (!id || !gy_vec_push(&s->node_ids, id))
            return false;
    }
    return true;
}

gantry_status gy_schedule_describe(gantry_schedule *s, const gantry_graph *graph, const gantry_machine *machine,
                                   const gy_options *o, gantry_error *err)
{
    s->graph = gy_graph_ref(graph);
    s->machine = gy_machine_ref(machine);
    s->graph_name = gy_arena_strdup(&s->arena, graph->name ? graph->name : "");
    s->graph_hash = graph->hash;
    s->replay = o->replay;
    s->objective = o->objective;
    s->effort = o->effort;
    s->seed = o->seed;
    return s->graph_name && add_params(s, graph) && add_ids(s, graph) ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_plan_metadata(gy_plan *p, const gy_options *o, gantry_error *err)
{
    gantry_schedule *s = p->schedule;
    GY_TRY(gy_schedule_describe(s, p->graph, p->machine, o, err));
    bool done = true;
    for (uint32_t b = 0; b < p->graph->buffers.count && done; b++)
        done = gy_plan_add_bounds(s, &p->graph->buffers.at[b]);
    for (uint32_t v = 0; v < p->flow->values && done; v++)
        done = add_value(p, v);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
