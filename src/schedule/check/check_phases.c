/* SPDX-License-Identifier: Apache-2.0 */
/* The checker, for schedules that are made of phases: each against the graph that is derived for it. */
#include "base/error.h"
#include "graph/derive/phase.h"
#include "schedule/check/check.h"

/* The graphs of the phases: to be freed with free_graphs. */
static gantry_status derive(gantry_graph ***graphs, const gantry_schedule *s, const gantry_graph *graph,
                            gantry_error *err)
{
    size_t count = s->phases.count;
    gantry_graph **made = gy_calloc(count + 1, sizeof *made);
    gy_phase *list = gy_calloc(count + 1, sizeof *list);
    gantry_status status = made && list ? GANTRY_OK : gy_fail_nomem(err);
    for (size_t i = 0; i < count && !status; i++)
        list[i] = s->phases.at[i].phase;
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
    for (size_t i = 0; i < count; i++)
        gantry_graph_free(graphs[i]);
    gy_free((void *)graphs);
}

/* A split has one set of bounds. A phase that was cut elsewhere would find rows in a part that the part did not have
 * when it was written. `graph` is cut as the whole schedule says. */
static gantry_status check_cuts(const gantry_schedule *s, const gantry_graph *graph, size_t i, gantry_error *err)
{
    const gantry_schedule *one = s->phases.at[i].schedule;
    for (size_t k = 0; k < one->bounds.count; k++) {
        const struct gy_part_bounds *p = &one->bounds.at[k];
        uint32_t index = gy_names_find(&graph->buffer_names, p->buffer), part = 0;
        const gy_buffer *b = index == GY_NO_NAME ? NULL : &graph->buffers.at[index];
        if (!b || b->parts != p->parts)
            continue; /* rule form refuses that */
        while (part < p->parts && p->first[part + 1] == b->part_first[part + 1])
            part++;
        if (part < p->parts) {
            return gy_breach(err, "phases", "phases", i,
                             "phase %zu ends part %u of \"%s\" at row %lld, and the schedule as a whole at row %lld; "
                             "all phases have the bounds of the whole",
                             i, part, p->buffer, (long long)p->first[part + 1], (long long)b->part_first[part + 1]);
        }
    }
    return GANTRY_OK;
}

static gantry_status check_phases(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err)
{
    gantry_graph **graphs;
    gantry_status status = gy_check_bounds(s, graph, err);
    status = status ? status : gy_check_node_ids(s, graph, err);
    for (size_t i = 0; i < s->phases.count && !status; i++)
        status = check_cuts(s, graph, i, err);
    status = status ? status : derive(&graphs, s, graph, err);
    if (status)
        return status;
    for (size_t i = 0; i < s->phases.count && !status; i++) {
        gantry_error inner = { 0 };
        status = gy_schedule_verify(s->phases.at[i].schedule, graphs[i], &inner);
        if (status)
            gy_schedule_phase_fail(i, &inner, err);
    }
    status = status ? status : gy_check_hand_over(s, graph, graphs, err);
    free_graphs(graphs, s->phases.count);
    return status;
}

gantry_status gy_schedule_phases_verify(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err)
{
    gantry_graph *cut;
    gantry_status status = gy_schedule_graph(&cut, s, graph, err);
    if (status)
        return status;
    status = check_phases(s, cut, err);
    gantry_graph_free(cut);
    return status;
}

gantry_status gy_schedule_phases_attach(gantry_schedule *s, gantry_graph *graph, gantry_error *err)
{
    gantry_graph **graphs;
    GY_TRY(derive(&graphs, s, graph, err));
    for (size_t i = 0; i < s->phases.count; i++) {
        gantry_schedule *one = s->phases.at[i].schedule;
        gantry_graph_free(one->graph);
        one->graph = graphs[i];
    }
    gy_free((void *)graphs);
    return GANTRY_OK;
}
