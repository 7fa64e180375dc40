/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses what this version cannot schedule. Automatic splits have their bounds before a plan begins: balance.h. */
#include "scheduler/plan/plan.h"

#include "base/error.h"

gantry_status gy_plan_specialise(gy_plan *p, gantry_error *err)
{
    const gantry_graph *g = p->graph;
    for (size_t i = 0; i < g->loops.count; i++) {
        const gy_loop *l = &g->loops.at[i];
        if (l->until == GY_NONE || l->count == 0)
            continue; /* those with nodes are phases, see phases.h */
        return gy_graph_fail(g, l->origin, err, GANTRY_E_UNSUPPORTED,
                             "a repeat of %lld without nodes ends by \"until\" on buffer \"%s\", which nothing in it "
                             "can change; drop \"until\"",
                             (long long)l->count, g->buffers.at[l->until].name);
    }
    return GANTRY_OK;
}
