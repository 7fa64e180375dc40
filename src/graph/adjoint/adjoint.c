/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_graph_differentiate: the path, its adjoints from the last node to the first, the optimiser. */
#include "graph/adjoint/adjoint.h"
#include "base/error.h"
#include "graph/build/build_state.h"

#include <stdarg.h>
#include <stdio.h>

gantry_status gy_node_fail(const gantry_graph *graph, gantry_error *err, uint32_t node, const char *format, ...)
{
    char said[480];
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    const gy_node *n = &graph->nodes.at[node];
    return gy_graph_fail(graph, n->origin, err, GANTRY_E_GRAPH, "node \"%.80s\" %s", n->id, said);
}

gantry_status gy_adjoint_built(gy_adjoint *a)
{
    if (a->graph->error.status && a->err)
        *a->err = a->graph->error;
    return a->graph->error.status;
}

void gy_adjoint_come_from(gantry_graph *g, uint32_t node)
{
    gy_origin o = g->origins.at[g->nodes.at[node].origin];
    gy_graph_set_use(g, o.use);
    if (o.pointer)
        gy_graph_set_origin(g, o.pointer);
    else
        gantry_graph_at(g, o.file, o.line);
}

/* Nodes see what those before them wrote, so a scale that changes is written ahead of all that read it, whichever rule
 * asks for it first. */
static void begin_scale(gy_adjoint *a)
{
    if (gy_train_scales_itself(a->options))
        gy_adjoint_buffer(a, a->loss);
}

/* Does the node add to the adjoint of what it reads here, or take that of what it writes? */
static bool is_wanted(const gy_adjoint *a, const gy_primal *p, const gy_access *x)
{
    return gy_adjoint_is_active(a, x->buffer) && x->buffer != a->loss &&
           (x->mode == GANTRY_READ ? gy_adjoint_gives(a, p, x) : p->rule != NULL);
}

/* As nodes see what those before them wrote, adjoints that begin with zeros do so ahead of the nodes that add to them,
 * and those that nobody adds to ahead of the nodes that read them. */
static void begin_zeros(gy_adjoint *a, const gy_primal *p)
{
    gy_node n = a->graph->nodes.at[p->node]; /* adding fills moves nodes and accesses */
    for (uint32_t i = 0; i < gy_node_regions(&n); i++) {
        gy_access x = a->graph->access.at[n.access + i];
        if (is_wanted(a, p, &x) && a->of[x.buffer].is_filled)
            gy_adjoint_buffer(a, x.buffer);
    }
}

static gantry_status go_back(gy_adjoint *a)
{
    begin_scale(a);
    for (uint32_t i = a->nodes; i-- > 0;) {
        gy_primal p;
        if (!gy_adjoint_is_on_path(a, i))
            continue;
        gy_adjoint_come_from(a->graph, i);
        GY_TRY(gy_adjoint_look(a, i, &p));
        begin_zeros(a, &p);
        GY_TRY(gy_adjoint_go_back(a, &p));
        gy_arena_free(&a->scratch);
    }
    return gy_adjoint_built(a);
}

static bool is_gradient(const gy_adjoint *a, uint32_t buffer)
{
    for (size_t i = 0; i < a->weight.count; i++)
        if (a->of[a->weight.at[i]].buffer.id == buffer)
            return true;
    return false;
}

/* Nobody but the optimiser waits for gradients of weights: in a pipeline they are taken where a device has nothing to
 * do for others (Qi et al., Zero Bubble Pipeline Parallelism, 2023). */
static gantry_status delay_gradients(gy_adjoint *a)
{
    gantry_graph *g = a->graph;
    if (!gy_build_merge(g))
        return gy_fail_nomem(a->err);
    for (uint32_t i = a->nodes; i < g->nodes.count; i++) {
        const gy_node *n = &g->nodes.at[i];
        bool gives = n->kind != GY_NODE_FILL;
        for (uint32_t k = n->access; k < n->access + n->accesses; k++)
            gives = gives && (g->access.at[k].mode == GANTRY_READ || is_gradient(a, g->access.at[k].buffer));
        if (gives)
            gantry_node_priority(g, (gantry_node){ i, g->number }, gy_node_extra_of(g, i)->priority - g->weight_delay);
    }
    return gy_adjoint_built(a);
}

static gantry_status begin(gy_adjoint *a)
{
    gantry_graph *g = a->graph;
    a->nodes = (uint32_t)g->nodes.count;
    a->buffers = (uint32_t)g->buffers.count;
    size_t room = a->buffers + gy_adjoint_count_kept(g) + 1;
    a->follows = gy_calloc(room, 1);
    a->leads = gy_calloc(room, 1);
    a->given = gy_calloc(room, 1);
    a->of = gy_calloc(room, sizeof *a->of);
    if (!a->follows || !a->leads || !a->given || !a->of || !gy_build_merge(g))
        return gy_fail_nomem(a->err);
    GY_TRY(gy_build_maps(g, a->err));
    return gy_train_find(a);
}

static gantry_status differentiate(gy_adjoint *a)
{
    GY_TRY(begin(a));
    GY_TRY(gy_adjoint_find_path(a));
    GY_TRY(gy_adjoint_keep(a));
    GY_TRY(gy_adjoint_find_inflows(a));
    bool unique = a->graph->build_->unique_ids;
    a->graph->build_->unique_ids = false; /* ids that come give way to those that are there */
    gantry_status status = go_back(a);
    if (!status && a->graph->weight_delay)
        status = delay_gradients(a);
    status = status ? status : gy_adjoint_optimise(a);
    if (!status && a->graph->recompute)
        status = gy_adjoint_recompute(a);
    status = status ? status : gy_order_sums(a->graph, a->err);
    status = status ? status : gy_move_parts(a->graph, a->err);
    a->graph->build_->unique_ids = unique;
    return status;
}

static void end(gy_adjoint *a)
{
    gy_arena_free(&a->scratch);
    gy_vec_free(&a->weight);
    gy_vec_free(&a->inflow);
    gy_vec_free(&a->owner);
    gy_free(a->follows);
    gy_free(a->leads);
    gy_free(a->given);
    gy_free(a->of);
}

gantry_status gy_train_check(const gantry_graph *g, const gantry_train_options *options, const char *call,
                             gantry_error *err)
{
    if (g->sealed)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "the graph was checked and is sealed: call %s before gantry_graph_check", call);
    if (g->differentiated)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "the graph was differentiated before: it has its backward pass");
    if (g->build_->open_loop != GY_NONE)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "a repeat of the graph has no end: call gantry_graph_repeat_end before %s", call);
    if (!options && !g->train)
        return gy_fail(err, GANTRY_E_GRAPH, NULL,
                       "the graph does not say what training it means: add \"train\": {\"loss\": ..., \"weights\": "
                       "[...], \"learning_rate\": ...} to its file, or give options");
    return GANTRY_OK;
}

gantry_status gantry_graph_differentiate(gantry_graph *graph, const gantry_train_options *options, gantry_error *err)
{
    if (!graph)
        return gy_fail_nomem(err);
    gantry_error own = { .status = GANTRY_OK };
    gy_adjoint a = { .graph = graph, .err = err ? err : &own };
    GY_TRY(gy_adjoint_built(&a));
    GY_TRY(gy_train_check(graph, options, "gantry_graph_differentiate", a.err));
    gantry_status status = options ? gy_train_note(graph, options, a.err) : GANTRY_OK;
    a.options = graph->train;
    status = status ? status : differentiate(&a);
    end(&a);
    graph->differentiated = true;
    if (status && !graph->error.status)
        graph->error = *a.err;
    return status;
}
