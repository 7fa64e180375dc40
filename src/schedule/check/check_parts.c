/* SPDX-License-Identifier: Apache-2.0 */
/* The checker, for schedules that are made of phases: each against the graph that is derived for it. */
#include "base/error.h"
#include "schedule/check/check.h"

/* The graphs of the phases: to be freed with free_graphs. */
static gantry_status derive(gantry_graph ***graphs, const gantry_schedule *s, const gantry_graph *graph,
                            gantry_error *err)
{
    size_t count = s->parts.count;
    gantry_graph **made = gy_calloc(count + 1, sizeof *made);
    gy_phase *list = gy_calloc(count + 1, sizeof *list);
    gantry_status status = made && list ? GANTRY_OK : gy_fail_nomem(err);
    for (size_t i = 0; i < count && !status; i++) {
        list[i] = s->parts.at[i].phase;
    }
    status = status ? status : gy_phases_derive(made, graph, list, count, err);
    gy_free(list);
    if (status) {
        gy_free((void *)made);
        return status;
    }
    *graphs = made;
    return GANTRY_OK;
}

static void free_graphs(gantry_graph **graphs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gantry_graph_free(graphs[i]);
    }
    gy_free((void *)graphs);
}

gantry_status gy_parts_verify(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err)
{
    gantry_graph **graphs;
    gantry_status status = derive(&graphs, s, graph, err);
    if (status) {
        return status;
    }
    for (size_t i = 0; i < s->parts.count && !status; i++) {
        gantry_error inner = { 0 };
        status = gy_schedule_verify(s->parts.at[i].schedule, graphs[i], &inner);
        if (status) {
            gy_part_fail(i, &inner, err);
        }
    }
    free_graphs(graphs, s->parts.count);
    return status;
}

gantry_status gy_parts_attach(gantry_schedule *s, gantry_graph *graph, gantry_error *err)
{
    gantry_graph **graphs;
    gantry_status status = derive(&graphs, s, graph, err);
    if (status) {
        return status;
    }
    for (size_t i = 0; i < s->parts.count && !status; i++) {
        gantry_graph *mine;
        gantry_schedule *one = s->parts.at[i].schedule;
        status = gy_schedule_graph(&mine, one, graphs[i], err);
        if (!status) {
            gantry_graph_free(one->graph);
            one->graph = mine;
        }
    }
    free_graphs(graphs, s->parts.count);
    return status;
}
