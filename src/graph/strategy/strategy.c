/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_graph_parallelize: what it is given, and its steps. */
#include "graph/strategy/strategy.h"
#include "base/error.h"
#include "base/versioned.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"
#include "graph/strategy/slices.h"

#include <string.h>

static void find_writers(gy_spreading *s)
{
    const gantry_graph *g = s->graph;
    for (uint32_t i = (uint32_t)g->nodes.count; i-- > 0;) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses; k++)
            if (g->access.at[k].mode != GANTRY_READ)
                s->writer[g->access.at[k].buffer] = i + 1;
    }
}

static void note_names(gy_spreading *s, const uint32_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        s->is_named[at[i]] = 1;
}

static void find_named(gy_spreading *s)
{
    const gantry_graph *g = s->graph;
    note_names(s, g->after.at, g->after.count);
    for (size_t i = 0; i < g->nodes.count; i++) {
        const gy_node_extra *x = gy_node_extra_of(g, (uint32_t)i);
        s->is_named[i] = s->is_named[i] || g->nodes.at[i].afters || x->with.count || x->apart.count;
        note_names(s, x->with.at, x->with.count);
        note_names(s, x->apart.at, x->apart.count);
    }
}

static gantry_status begin(gy_spreading *s)
{
    gantry_graph *g = s->graph;
    gy_adjoint a = { .graph = g, .options = s->options, .err = s->err };
    s->buffers = g->buffers.count;
    s->rows = gy_calloc(s->buffers + 1, sizeof *s->rows);
    s->is_weight = gy_calloc(s->buffers + 1, 1);
    s->writer = gy_calloc(s->buffers + 1, sizeof *s->writer);
    s->slice = gy_calloc(s->buffers + 1, 1);
    s->is_named = gy_calloc(g->nodes.count + 1, 1);
    s->is_sliced = gy_calloc(g->nodes.count + 1, 1);
    s->of = gy_calloc(g->nodes.count + 1, sizeof *s->of);
    bool ok = s->rows && s->is_weight && s->writer && s->slice && s->is_named && s->is_sliced && s->of;
    if (!ok || !gy_build_merge(g))
        return gy_fail_nomem(s->err);
    memset(s->slice, GY_SLICE_WHOLE, s->buffers);
    find_writers(s);
    find_named(s);
    gantry_status status = gy_train_find(&a);
    for (size_t i = 0; i < a.weight.count; i++)
        s->is_weight[a.weight.at[i]] = 1;
    gy_vec_free(&a.weight);
    return status;
}

static void end(gy_spreading *s)
{
    for (size_t i = 0; s->rows && i < s->buffers; i++)
        gy_vec_free(&s->rows[i]);
    gy_free(s->rows);
    gy_free(s->is_weight);
    gy_free(s->writer);
    gy_free(s->slice);
    gy_free(s->is_named);
    gy_free(s->is_sliced);
    gy_free(s->of);
    gy_free(s->from);
    s->rows = NULL;
    s->is_weight = s->is_named = s->is_sliced = NULL;
    s->writer = NULL;
    s->slice = NULL;
    s->of = NULL;
    s->from = NULL;
}

static gantry_status find_slices(gy_spreading *s)
{
    bool has_changed;
    GY_TRY(begin(s));
    GY_TRY(gy_spread_slices(s));
    GY_TRY(gy_spread_classes(s, &has_changed));
    if (!has_changed)
        return GANTRY_OK;
    end(s);
    GY_TRY(begin(s));
    return gy_spread_slices(s);
}

static gantry_status spread(gy_spreading *s)
{
    GY_TRY(find_slices(s));
    GY_TRY(gy_spread_pieces(s));
    GY_TRY(gy_spread_find_moving(s));
    GY_TRY(gy_spread_cut(s));
    GY_TRY(gy_spread_place(s));
    return gy_spread_shards(s);
}

gantry_status gantry_graph_parallelize(gantry_graph *graph, const gantry_strategy *strategy,
                                       const gantry_train_options *options, gantry_error *err)
{
    if (!graph)
        return gy_fail_nomem(err);
    gantry_error own = { .status = GANTRY_OK };
    gy_spreading s = { .graph = graph, .strategy = GANTRY_STRATEGY_INIT, .err = err ? err : &own };
    if (graph->error.status) {
        *s.err = graph->error;
        return graph->error.status;
    }
    GY_TRY(gy_struct_read(&s.strategy, sizeof s.strategy, strategy, "gantry_strategy", s.err));
    GY_TRY(gy_strategy_check(&s.strategy, s.err));
    if (s.strategy.recompute == GANTRY_RECOMPUTE_AUTO)
        return gy_fail(s.err, GANTRY_E_INVALID, NULL,
                       "strategy: recompute=auto is for who schedules, such as gantry train: which number fits the "
                       "memories is known by trying; give \"recompute=all\", or how many layers of a stage");
    if (!options && !graph->train)
        return gy_fail(s.err, GANTRY_E_GRAPH, NULL,
                       "a strategy cuts a model by its weights and its batch, and the graph names neither: add "
                       "\"train\": {\"loss\": ..., \"weights\": [...], \"learning_rate\": ...} to its file, or give "
                       "options; or leave the strategy out, as for graphs that decode: the scheduler spreads their "
                       "nodes and parts (\"split\", \"tiles\"), and \"on\" says where a node is");
    GY_TRY(gy_train_check(graph, options, "gantry_graph_parallelize", s.err));
    gantry_status status = options ? gy_train_note(graph, options, s.err) : GANTRY_OK;
    s.options = graph->train;
    s.pieces = (uint32_t)(s.strategy.dp * s.strategy.micro * s.strategy.tp);
    status = status ? status : spread(&s);
    graph->recompute = s.strategy.recompute;
    graph->orders_sums = s.strategy.ordered;
    graph->stage_devices = s.strategy.pp > 1 ? (uint32_t)(s.strategy.dp * s.strategy.tp) : 0;
    graph->weight_delay = s.strategy.pp > 1 && !s.strategy.recompute ? s.strategy.pp : 0;
    end(&s);
    if (!status && graph->is_used)
        status = gy_order_sums(graph, s.err);
    if (!status && graph->is_used)
        status = gy_move_parts(graph, s.err);
    if (status && !graph->error.status)
        graph->error = *s.err;
    return status;
}
