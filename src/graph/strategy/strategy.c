/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_graph_parallelize: what it is given, and its steps. */
#include "graph/strategy/strategy.h"
#include "base/error.h"
#include "base/versioned.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

static gantry_status begin(gy_spreading *s)
{
    gantry_graph *g = s->graph;
    gy_adjoint a = { .graph = g, .options = s->options, .err = s->err };
    s->buffers = g->buffers.count;
    s->rows = gy_calloc(s->buffers + 1, sizeof *s->rows);
    s->is_weight = gy_calloc(s->buffers + 1, 1);
    s->writer = gy_calloc(s->buffers + 1, sizeof *s->writer);
    s->is_named = gy_calloc(g->nodes.count + 1, 1);
    s->of = gy_calloc(g->nodes.count + 1, sizeof *s->of);
    if (!s->rows || !s->is_weight || !s->writer || !s->is_named || !s->of || !gy_build_merge(g))
        return gy_fail_nomem(s->err);
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
    gy_free(s->is_named);
    gy_free(s->of);
}

static gantry_status spread(gy_spreading *s)
{
    GY_TRY(begin(s));
    GY_TRY(gy_spread_pieces(s));
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
    GY_TRY(gy_train_check(graph, options, "gantry_graph_parallelize", s.err));
    gantry_status status = options ? gy_train_note(graph, options, s.err) : GANTRY_OK;
    s.options = graph->train;
    s.pieces = (uint32_t)(s.strategy.dp * s.strategy.micro);
    status = status ? status : spread(&s);
    end(&s);
    if (status && !graph->error.status)
        graph->error = *s.err;
    return status;
}
