/* SPDX-License-Identifier: Apache-2.0 */
/* The graph that a schedule is of: the user's, with the automatic splits cut where the schedule says. */
#include "base/error.h"
#include "graph/derive/specialise.h"
#include "schedule/schedule.h"

/* The automatic split of entry i; NULL: the graph has none of that name, or one of another size. Rule form refuses
 * these later. */
static const gy_buffer *find_split(const gantry_schedule *s, const gantry_graph *graph, size_t i)
{
    const struct gy_part_bounds *p = &s->bounds.at[i];
    uint32_t index = p->buffer && p->first ? gy_names_find(&graph->buffer_names, p->buffer) : GY_NO_NAME;
    const gy_buffer *b = index == GY_NO_NAME ? NULL : &graph->buffers.at[index];
    bool same = b && b->split_auto && b->parts == p->parts && p->first[p->parts] == b->rows;
    return same ? b : NULL;
}

gantry_status gy_schedule_graph(gantry_graph **out, const gantry_schedule *s, const gantry_graph *graph,
                                gantry_error *err)
{
    gy_cut *cut = gy_calloc(s->bounds.count + 1, sizeof *cut);
    size_t cuts = 0;
    if (!cut)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < s->bounds.count; i++) {
        const gy_buffer *b = find_split(s, graph, i);
        if (b)
            cut[cuts++] = (gy_cut){ (uint32_t)(b - graph->buffers.at), s->bounds.at[i].first };
    }
    gantry_error inner = { 0 };
    gantry_status status = gy_graph_specialise(out, graph, cut, cuts, &inner);
    gy_free(cut);
    if (status == GANTRY_E_GRAPH || status == GANTRY_E_INVALID) {
        return gy_fail(err, GANTRY_E_SCHEDULE, "/bounds",
                       "rule form: the graph cannot be cut at the bounds of the "
                       "schedule: %s",
                       inner.text);
    }
    if (status && err)
        *err = inner;
    return status;
}
