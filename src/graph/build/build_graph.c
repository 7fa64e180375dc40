/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing a graph. Freeing needs to know everything that a graph owns, also the state of building and the
 * flow, so it is here and not in the core. */
#include "graph/build/build_state.h"
#include "graph/flow/flow.h"

/* Most of it is the base's; its own arrays are in its arena. */
static void free_derived(gantry_graph *g)
{
    gy_flow_free(g->flow);
    gy_arena_free(&g->arena);
    gantry_graph_free(g->base ? g->base : g->whole);
    gy_free(g);
}

static void free_graph(gantry_graph *g)
{
    if (g->base || g->whole) {
        free_derived(g);
        return;
    }
    for (size_t i = 0; i < g->extra.count; i++) {
        gy_vec_free(&g->extra.at[i].with);
        gy_vec_free(&g->extra.at[i].apart);
        gy_vec_free(&g->extra.at[i].rank_on);
        gy_vec_free(&g->extra.at[i].time);
    }
    for (size_t i = 0; i < g->loops.count; i++)
        gy_vec_free(&g->loops.at[i].carry);
    for (size_t i = 0; i < g->inner.count; i++)
        gy_vec_free(&g->inner.at[i].carry);
    gy_vec_free(&g->params);
    gy_vec_free(&g->buffers);
    gy_vec_free(&g->kernels);
    gy_vec_free(&g->functions);
    gy_vec_free(&g->nodes);
    gy_vec_free(&g->access);
    gy_vec_free(&g->scalar);
    gy_vec_free(&g->after);
    gy_vec_free(&g->extra);
    gy_vec_free(&g->loops);
    gy_vec_free(&g->inner);
    gy_vec_free(&g->origins);
    gy_vec_free(&g->warnings);
    gy_names_free(&g->buffer_names);
    gy_names_free(&g->node_names);
    gy_flow_free(g->flow);
    gy_build_free(g->build_);
    gy_arena_free(&g->arena);
    gy_free(g);
}

/* Numbers are given once (but for every 2^32nd), so that a graph is not taken for one that was freed before. They show
 * in no result but in messages on handles of other graphs. */
static uint32_t next_number(void)
{
    static uint32_t last;
    uint32_t number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return number ? number : __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

gantry_graph *gantry_graph_new(const char *name)
{
    gantry_graph *g = gy_calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->refs = 1;
    g->number = next_number();
    g->build_ = gy_calloc(1, sizeof *g->build_);
    if (!g->build_)
        goto free_graph;
    g->build_->origin = g->build_->open_loop = g->build_->open_inner = GY_NONE;
    g->build_->file = GY_NO_NAME;
    gy_origin nowhere = { 0 };
    char *copy = gy_arena_strdup(&g->arena, name ? name : "graph");
    if (copy)
        gy_make_plain(copy);
    g->name = copy;
    if (!copy || !gy_vec_push(&g->origins, nowhere))
        goto free_graph;
    return g;

free_graph:
    free_graph(g);
    return NULL;
}

void gantry_graph_free(gantry_graph *graph)
{
    if (graph && __atomic_fetch_sub(&graph->refs, 1, __ATOMIC_ACQ_REL) == 1)
        free_graph(graph);
}
