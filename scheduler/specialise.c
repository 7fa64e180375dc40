/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses what this version cannot schedule. Automatic splits have their bounds before a plan begins: balance.h. */
#include "scheduler/plan.h"

#include "base/error.h"

gantry_status gy_plan_specialise(gy_plan *p, gantry_error *err)
{
    const gantry_graph *g = p->graph;
    for (size_t i = 0; i < g->loops.count; i++) {
        const gy_loop *l = &g->loops.at[i];
        if (l->until == GY_NONE)
            continue;
        uint32_t origin = l->first_node < g->nodes.count ? g->nodes.at[l->first_node].origin : 0;
        return gy_graph_fail(g, origin, err, GANTRY_E_UNSUPPORTED,
                             "a repeat of %lld ends early by \"until\" on buffer \"%s\", which this version cannot "
                             "schedule; drop \"until\" and give the number of iterations",
                             (long long)l->count, g->buffers.at[l->until].name);
    }
    return GANTRY_OK;
}
