/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stencils read rows and some more around them, which others read too. What a row gets comes from the rows around it,
 * of the adjoint of the result: so the adjoint of a part is a stencil of as wide a halo, and nobody adds to rows of
 * another. It wants all nodes of the stencil to be known to have done: nodes of one kernel between two buffers that are
 * cut alike are one *sweep*, and go back together where the first of them stands.
 */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <math.h>
#include <string.h>

static uint32_t buffer_of(const gy_adjoint *a, const gy_primal *p, const char *arg)
{
    return gy_adjoint_source(a->graph, gy_primal_access(a, p, arg));
}

/* Is it a node of the sweep? */
static bool is_of(const gy_adjoint *a, const gy_primal *p, uint32_t node, gy_primal *found)
{
    const gy_node *n = &a->graph->nodes.at[node], *own = &a->graph->nodes.at[p->node];
    if (n->kind != own->kind || n->kernel != own->kernel || !gy_adjoint_is_on_path(a, node))
        return false;
    *found = (gy_primal){ .node = node, .id = n->id, .manifest = p->manifest, .maths = p->maths, .rule = p->rule };
    return buffer_of(a, found, p->rule->args) == buffer_of(a, p, p->rule->args) &&
           buffer_of(a, found, p->rule->to) == buffer_of(a, p, p->rule->to);
}

static bool are_cut_alike(const gy_buffer *x, const gy_buffer *y)
{
    return x->rank == y->rank && memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape) == 0 &&
           x->parts == y->parts && x->split_auto == y->split_auto && memcmp(x->tiles, y->tiles, sizeof x->tiles) == 0;
}

gy_access gy_stencil_inflow(const gy_adjoint *a, const gy_primal *p)
{
    gy_access found = *gy_primal_access(a, p, p->rule->to);
    found.buffer = buffer_of(a, p, p->rule->args);
    found.mode = GANTRY_READ;
    return found;
}

/* Does a node between these two write x? Its adjoint would be taken before that of x is there. */
static gantry_status check_between(gy_adjoint *a, uint32_t first, uint32_t last, uint32_t x)
{
    for (uint32_t i = first + 1; i < last; i++) {
        const gy_node *n = &a->graph->nodes.at[i];
        for (uint32_t k = 0; k < gy_node_regions(n); k++) {
            const gy_access *access = &a->graph->access.at[n->access + k];
            if (access->buffer == x && access->mode != GANTRY_READ)
                return gy_node_fail(a->graph, a->err, i,
                                    "writes rows of \"%s\" between nodes of one stencil that reads them, which has no "
                                    "adjoint; write all of \"%s\" before the first of them",
                                    a->graph->buffers.at[x].name, a->graph->buffers.at[x].name);
        }
    }
    return GANTRY_OK;
}

/* Rows near the end of a part get from nodes of others as they do from their own: all have one filter. */
static gantry_status check_filter(gy_adjoint *a, const gy_primal *p, const gy_primal *other)
{
    const gy_access *weights = gy_primal_access(a, p, "weights"), *others = gy_primal_access(a, other, "weights");
    const gy_scalar *sigma = gy_primal_scalar(a, p, "sigma"), *sigmas = gy_primal_scalar(a, other, "sigma");
    bool is_same = !weights || (weights->buffer == others->buffer && weights->first == others->first &&
                                weights->last == others->last);
    if (weights && gy_adjoint_is_active(a, weights->buffer))
        return gy_node_fail(
            a->graph, a->err, other->node,
            "lies between weights and loss by the weights of its filter, \"%s\", which have no adjoint; "
            "use conv2d, whose weights have one",
            a->graph->buffers.at[weights->buffer].name);
    if (is_same && (!sigma || sigma->number.real == sigmas->number.real))
        return GANTRY_OK;
    return gy_node_fail(
        a->graph, a->err, other->node,
        "filters rows of \"%s\" in another way than node \"%.80s\", which has no adjoint; give both one "
        "filter",
        a->graph->buffers.at[buffer_of(a, p, p->rule->args)].name, p->id);
}

/* The sweep gives all rows of y: those that something else gave would be taken for its own. */
static gantry_status check_sweep(gy_adjoint *a, const gy_primal *p)
{
    const gy_buffer *x = &a->graph->buffers.at[buffer_of(a, p, p->rule->args)];
    const gy_buffer *y = &a->graph->buffers.at[buffer_of(a, p, p->rule->to)];
    gy_primal other;
    int64_t rows = 0;
    uint32_t last = p->node;
    if (!are_cut_alike(x, y))
        return gy_node_fail(
            a->graph, a->err, p->node,
            "is a stencil between \"%s\" and \"%s\", which are not cut alike, which has no adjoint; cut "
            "both into as many parts, or tiles",
            x->name, y->name);
    for (uint32_t i = p->node; i < a->nodes; i++) {
        if (!is_of(a, p, i, &other))
            continue;
        GY_TRY(check_filter(a, p, &other));
        rows += gy_primal_access(a, &other, p->rule->to)->last - gy_primal_access(a, &other, p->rule->to)->first;
        last = i;
    }
    if (rows != y->rows)
        return gy_node_fail(a->graph, a->err, p->node,
                            "is one of the nodes of a stencil that give %lld of the %lld rows of \"%s\", which has no "
                            "adjoint; give all of them by \"%s\"",
                            (long long)rows, (long long)y->rows, y->name, p->manifest->name);
    return check_between(a, p->node, last, buffer_of(a, p, p->rule->args));
}

/* How far the stencil reaches along each axis: of filters along rows and columns, and not to other frames. */
static void find_reach(const gy_adjoint *a, const gy_primal *p, int64_t reach[GANTRY_TILE_AXES])
{
    const gy_access *weights = gy_primal_access(a, p, "weights");
    const gy_scalar *sigma = gy_primal_scalar(a, p, "sigma");
    bool is_filter = weights || sigma;
    for (int k = 0; k < GANTRY_TILE_AXES; k++)
        reach[k] = is_filter ? 0 : 1;
    int rows = a->graph->buffers.at[buffer_of(a, p, p->rule->to)].rank > 2;
    if (is_filter)
        reach[rows] = reach[rows + 1] = sigma ? (int64_t)ceil(3 * sigma->number.real) : 0;
    if (weights) {
        gy_maths_shape shape = gy_access_shape(a->graph, weights);
        reach[rows] = shape.extent[0] / 2;
        reach[rows + 1] = shape.extent[1] / 2;
    }
}

/* The adjoint of y, of the rows or the tile of one node and so much more on each side. */
static gantry_region around(gy_adjoint *a, const gy_access *y, const int64_t reach[GANTRY_TILE_AXES])
{
    gantry_buffer grad = gy_adjoint_buffer(a, y->buffer);
    const gy_buffer *b = &a->graph->buffers.at[y->buffer];
    gantry_region own = gy_adjoint_rows(a, y, grad);
    if (b->tiles[0]) {
        for (int k = 0; k < b->rank; k++)
            own = gantry_halo_axis(own, k, reach[k], reach[k]);
        return own;
    }
    if (y->part >= 0)
        return gantry_halo(own, reach[0], reach[0]);
    int64_t first = y->first > reach[0] ? y->first - reach[0] : 0;
    int64_t last = y->last + reach[0] < b->rows ? y->last + reach[0] : b->rows;
    return first == 0 && last == b->rows ? gantry_all(grad) : gantry_rows(grad, first, last);
}

static void go_back_one(gy_adjoint *a, const gy_primal *p)
{
    gy_access to = gy_stencil_inflow(a, p), y = *gy_primal_access(a, p, p->rule->to);
    int64_t reach[GANTRY_TILE_AXES];
    find_reach(a, p, reach);
    gy_destination target;
    gantry_region given = gy_adjoint_written(a, &to, &target);
    const char *kernel = gy_arena_printf(&a->scratch, "%s_grad", p->manifest->name);
    gantry_node node = gantry_graph_kernel(a->graph, gy_adjoint_id(a, p, p->rule->args), kernel ? kernel : "");
    bool is_filter = strcmp(p->rule->to, "out") == 0;
    gy_adjoint_place(a, node, p->node);
    gantry_node_arg(a->graph, node, is_filter ? "dout" : "x", around(a, &y, reach));
    gantry_node_arg(a->graph, node, is_filter ? "dimage" : "y", given);
    const gy_access *weights = gy_primal_access(a, p, "weights");
    const gy_scalar *sigma = gy_primal_scalar(a, p, "sigma");
    if (weights)
        gantry_node_arg(a->graph, node, "weights", gy_adjoint_primal_rows(a, weights));
    if (sigma)
        gy_node_scalar_constant(a->graph, node, "sigma", sigma->number, false);
    gy_adjoint_add_rows(a, p, p->rule->args, given, &target);
}

gantry_status gy_stencil_go_back(gy_adjoint *a, const gy_primal *p)
{
    gy_primal other;
    for (uint32_t i = 0; i < p->node; i++)
        if (is_of(a, p, i, &other))
            return GANTRY_OK;
    GY_TRY(check_sweep(a, p));
    for (uint32_t i = a->nodes; i-- > p->node;) {
        if (!is_of(a, p, i, &other))
            continue;
        gy_adjoint_come_from(a->graph, i);
        go_back_one(a, &other);
    }
    return gy_adjoint_built(a);
}
