/* SPDX-License-Identifier: Apache-2.0 */
/* Which device computes which node of the model: a replica's own, stage by stage. */
#include "base/error.h"
#include "graph/build/build_state.h"
#include "graph/strategy/strategy.h"

#include <stdio.h>

static bool has_place(const gantry_graph *g, uint32_t node)
{
    const gy_node_extra *x = gy_node_extra_of(g, node);
    return x->on || x->on_expr;
}

/* One expression for each device, so that places are equal where they are the same one. On fewer devices than the
 * strategy is for, each takes what several would have: the same graph, so it can go on there (checkpoints). */
static gantry_status make_places(gy_spreading *s, const gy_expr **place, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "%u %% devices", i);
        GY_TRY(gy_expr_parse(&place[i], &s->graph->arena, text, (size_t)length, GANTRY_E_GRAPH, NULL, s->err));
    }
    return GANTRY_OK;
}

/*
 * Micro-batches follow each other by priority. Each device takes chunk after chunk for as many of them as there are
 * stages, as in Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM
 * (2021); with one chunk it is one micro-batch after the other. Backward passes come so many turns later as it takes a
 * micro-batch to go through the chunks. Where nothing is kept for a backward pass and there are no stages, they have no
 * order: one computes while what another has given is sent.
 */
static void give_turn(gy_spreading *s, gantry_node node, uint32_t chunk)
{
    int pp = s->strategy.pp, chunks = s->strategy.interleave;
    int micro = (int)(gy_spread_micro(s, node.id) % (uint32_t)s->strategy.micro);
    int turn = micro / pp * pp * chunks + (int)chunk * pp + micro % pp;
    int delay = 2 * (chunks - 1 - (int)chunk) * pp;
    if ((!turn && !delay) || (pp == 1 && s->graph->is_used))
        return;
    gantry_node_priority(s->graph, node, -turn);
    gy_node_extra *x = gy_build_extra(s->graph, &s->graph->nodes.at[node.id]);
    if (x)
        x->back_delay = delay;
}

static gantry_status place_nodes(gy_spreading *s, const gy_expr *const *place, const uint32_t *stage)
{
    gantry_graph *g = s->graph;
    uint32_t dp = (uint32_t)s->strategy.dp, micro = (uint32_t)s->strategy.micro, tp = (uint32_t)s->strategy.tp;
    uint32_t pp = (uint32_t)s->strategy.pp;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        gantry_node node = { i, g->number };
        uint32_t slice = s->from[i].slice == GY_NONE ? s->of[i].from % tp : s->from[i].slice;
        if (s->of[i].from == s->of[i].to)
            continue;
        if (!has_place(g, i))
            gy_node_on_expr(g, node, place[(stage[i] % pp * dp + gy_spread_micro(s, i) / micro) * tp + slice]);
        give_turn(s, node, stage[i] / pp);
    }
    return g->error.status ? (*s->err = g->error, g->error.status) : GANTRY_OK;
}

gantry_status gy_spread_place(gy_spreading *s)
{
    uint32_t devices = (uint32_t)(s->strategy.dp * s->strategy.tp * s->strategy.pp);
    const gy_expr **place = gy_calloc(devices + 1, sizeof *place);
    uint32_t *stage = gy_calloc(s->graph->nodes.count + 1, sizeof *stage);
    gantry_status status = place && stage ? make_places(s, place, devices) : gy_fail_nomem(s->err);
    if (!status && s->strategy.pp > 1)
        status = gy_spread_stages(s, stage);
    status = status ? status : place_nodes(s, place, stage);
    gy_free((void *)place);
    gy_free(stage);
    return status;
}
