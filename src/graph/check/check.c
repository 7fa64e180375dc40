/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing a graph. */
#include "graph/check/check.h"
#include "base/error.h"
#include "graph/build/build_state.h"
#include "graph/flow/flow.h"
#include "graph/flow/unroll.h"
#include "graph/fuse/fuse.h"
#include "graph/nest.h"

/* Mistakes and warnings are about the nodes that the user wrote; what is scheduled is made of them behind that. */
static gantry_status fuse(gantry_graph *g, gantry_error *err)
{
    uint32_t fused;
    GY_TRY(gy_graph_fuse(g, &fused, err));
    if (!fused)
        return GANTRY_OK;
    gy_flow_free(g->flow);
    g->flow = NULL;
    gy_graph_count_tasks(g);
    gy_graph_fold(g);
    GY_TRY(gy_check_nodes(g, err));
    return gy_flow_make(&g->flow, g, err);
}

static gantry_status check_all(gantry_graph *g, gantry_error *err)
{
    if (g->build_->open_loop != GY_NONE) {
        uint32_t inner = g->build_->open_inner;
        const gy_loop *open = inner == GY_NONE ? &g->loops.at[g->build_->open_loop] : &g->inner.at[inner];
        return gy_graph_fail(g, open->origin, err, GANTRY_E_GRAPH,
                             "a repeat without its end; call gantry_graph_repeat_end");
    }
    if (!gy_build_merge(g))
        return gy_fail_nomem(err);
    GY_TRY(gy_check_meeting(g, err));
    GY_TRY(gy_build_flags(g, err));
    if (g->build_->halos)
        GY_TRY(gy_build_exchanges(g, err));
    GY_TRY(gy_build_maps(g, err));
    GY_TRY(gy_check_keep(g, err));
    gy_graph_count_tasks(g);
    gy_graph_fold(g);
    GY_TRY(gy_check_buffers(g, err));
    GY_TRY(gy_check_loops(g, err));
    GY_TRY(gy_check_nodes(g, err));
    GY_TRY(gy_check_groups(g, err));
    GY_TRY(gy_check_warn(g, err));
    GY_TRY(gy_check_unwritten(g, err));
    GY_TRY(gy_check_overwritten(g, err));
    GY_TRY(gy_check_idle(g, err));
    GY_TRY(gy_flow_make(&g->flow, g, err));
    if (g->fuses)
        GY_TRY(fuse(g, err));
    bool ok = true;
    g->hash = gy_graph_hash(g, &ok);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gantry_graph_check(gantry_graph *graph, gantry_error *err)
{
    if (!graph)
        return gy_fail_nomem(err);
    if (!graph->error.status && !graph->sealed) {
        gantry_status status = check_all(graph, &graph->error);
        if (status == GANTRY_OK) {
            graph->sealed = true;
            gy_build_trim(graph->build_);
        }
    }
    if (graph->error.status && err)
        *err = graph->error;
    return graph->error.status;
}
