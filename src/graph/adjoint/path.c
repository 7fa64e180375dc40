/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes between weights and loss, and what they may not be: each value that the backward pass wants has to be there
 * still when it comes, and each row of an active buffer has to come from one place. */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/nest.h"

#include <stdlib.h>
#include <string.h>

static bool is_read(const gy_access *a)
{
    return a->mode == GANTRY_READ || a->mode == GANTRY_READWRITE;
}

/* ---- active buffers ---- */

/* Marks real buffers on one side of the node where one of the other side is marked. True: some were not before. */
static bool spread(const gy_adjoint *a, uint8_t *marked, uint32_t node, bool forward)
{
    const gantry_graph *g = a->graph;
    const gy_node *n = &g->nodes.at[node];
    bool touched = false, changed = false;
    for (uint32_t i = 0; i < gy_node_regions(n); i++) {
        const gy_access *x = &g->access.at[n->access + i];
        bool is_source = forward ? is_read(x) : x->mode != GANTRY_READ;
        touched = touched || (is_source && marked[gy_adjoint_source(g, x)]);
    }
    for (uint32_t i = 0; touched && i < gy_node_regions(n); i++) {
        const gy_access *x = &g->access.at[n->access + i];
        bool is_goal = forward ? x->mode != GANTRY_READ : is_read(x);
        uint32_t buffer = gy_adjoint_source(g, x);
        if (is_goal && !marked[buffer] && gy_dtype_is_float(g->buffers.at[buffer].dtype))
            marked[buffer] = changed = 1;
    }
    return changed;
}

/* Names of a carried pair mean one another's values. */
static bool spread_carried(const gantry_graph *g, uint8_t *marked)
{
    bool changed = false;
    for (size_t i = 0; i < gy_loop_count(g); i++) {
        const gy_loop *l = gy_loop_at(g, i);
        for (size_t k = 0; k < l->carry.count; k++) {
            uint8_t *prev = &marked[l->carry.at[k].prev], *next = &marked[l->carry.at[k].next];
            changed = changed || *prev != *next;
            *prev = *next = *prev | *next;
        }
    }
    return changed;
}

/* One pass is enough, but where something goes round a loop. */
static void spread_all(const gy_adjoint *a, uint8_t *marked, bool forward)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < a->nodes; i++)
            changed = spread(a, marked, forward ? i : a->nodes - 1 - i, forward) || changed;
        changed = (spread_carried(a->graph, marked) || changed) && gy_loop_count(a->graph) > 0;
    }
}

bool gy_adjoint_is_on_path(const gy_adjoint *a, uint32_t node)
{
    const gy_node *n = &a->graph->nodes.at[node];
    bool reads = false, writes = false;
    for (uint32_t i = 0; i < gy_node_regions(n); i++) {
        const gy_access *x = &a->graph->access.at[n->access + i];
        bool is_active = gy_adjoint_is_active(a, gy_adjoint_source(a->graph, x));
        reads = reads || (is_active && is_read(x));
        writes = writes || (is_active && x->mode != GANTRY_READ);
    }
    return reads && writes;
}

/* ---- what a node on the path may not be ---- */

static const gy_rule *rule_of(const gantry_graph *g, const gy_node *n)
{
    const gy_kernel *kernel = n->kernel == GY_NONE ? NULL : &g->kernels.at[n->kernel];
    return kernel && !kernel->code ? gy_adjoint_rule(kernel->manifest->name) : NULL;
}

static bool is_word(const char *words, const gantry_graph *g, const gy_node *n, const gy_access *x)
{
    return words && gy_adjoint_has_word(words, g->kernels.at[n->kernel].manifest->arg[x->arg].name);
}

/* Of a node with such a rule, or without one. */
static gantry_status check_access(gy_adjoint *a, uint32_t node, const gy_rule *rule, const gy_access *x)
{
    const gantry_graph *g = a->graph;
    bool one_tile = !rule || !rule->takes_lists, one_piece = !rule || !rule->to;
    bool has_halo = x->before || x->after || gy_adjoint_source(g, x) != x->buffer;
    const gy_buffer *source = &g->buffers.at[gy_adjoint_source(g, x)];
    const char *name = source->name;
    if (gy_dtype_is_f8(source->dtype) && gy_adjoint_is_active(a, gy_adjoint_source(g, x)))
        return gy_node_fail(g, a->err, node,
                            "has \"%s\" of %s between weights and loss, and adjoints are not kept in 8 bits; round in "
                            "a formula, as f32(%s(x)) does, whose adjoint goes on as it is",
                            name, gantry_dtype_name(source->dtype), gantry_dtype_name(source->dtype));
    if (one_tile && (x->is_list || (g->buffers.at[x->buffer].tiles[0] && x->last - x->first != 1)))
        return gy_node_fail(g, a->err, node,
                            "names several tiles of \"%s\", which have no adjoint but in retile; name one tile", name);
    if (one_piece && has_halo)
        return gy_node_fail(g, a->err, node,
                            "reads \"%s\" with a halo, which has no adjoint but in jacobi2d, jacobi3d, filter2d and "
                            "gaussian_blur; read the whole buffer",
                            name);
    bool may_change = rule && x->buffer != a->loss && is_word(rule->changed, g, &g->nodes.at[node], x);
    if (x->mode == GANTRY_READWRITE && !may_change)
        return gy_node_fail(g, a->err, node,
                            "changes \"%s\" in place, and the backward pass wants what it read; give the result a "
                            "buffer of its own",
                            name);
    if (x->mode == GANTRY_PROD)
        return gy_node_fail(g, a->err, node, "multiplies into \"%s\": access prod has no adjoint; use a map", name);
    return GANTRY_OK;
}

static gantry_status check_accesses(gy_adjoint *a, uint32_t node)
{
    const gantry_graph *g = a->graph;
    const gy_node *n = &g->nodes.at[node];
    const gy_rule *rule = rule_of(g, n);
    for (uint32_t i = 0; i < gy_node_regions(n); i++)
        GY_TRY(check_access(a, node, rule, &g->access.at[n->access + i]));
    return GANTRY_OK;
}

static gantry_status check_node(gy_adjoint *a, uint32_t node)
{
    const gantry_graph *g = a->graph;
    const gy_node *n = &g->nodes.at[node];
    if (n->loop != GY_NONE)
        return gy_node_fail(a->graph, a->err, node,
                            "lies between weights and loss, in a loop (repeat), which has no adjoint; write its "
                            "iterations with \"for\"");
    if (n->has_when)
        return gy_node_fail(a->graph, a->err, node,
                            "lies between weights and loss, and has a \"when\", which has no adjoint; use "
                            "select in a map");
    for (uint32_t i = 0; i < n->scalars; i++)
        if (g->scalar.at[n->scalar + i].dynamic)
            return gy_node_fail(a->graph, a->err, node,
                                "has a dynamic scalar, and the backward pass would not see it change; give "
                                "it a number, or read a buffer of one element");
    return check_accesses(a, node);
}

/* ---- rows that are written ---- */

typedef struct use {
    const gy_access *access;
    uint32_t buffer; /* gy_adjoint_source */
    uint32_t node;
    bool on_path;
} use;

static int compare_uses(const void *one, const void *other)
{
    const use *a = one, *b = other;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

static bool overlap(const gy_access *a, const gy_access *b)
{
    return a->first < b->last && b->first < a->last;
}

static bool is_one(const gantry_graph *g, const gy_node *n, const char *scalar)
{
    for (uint32_t i = n->scalar; i < n->scalar + n->scalars; i++)
        if (strcmp(g->kernels.at[n->kernel].manifest->arg[g->scalar.at[i].arg].name, scalar) == 0)
            return g->scalar.at[i].number.real == 1;
    return false;
}

/* Does the backward pass of the node read what this access of it writes? */
static bool is_kept(const gantry_graph *g, const use *u)
{
    const gy_node *n = &g->nodes.at[u->node];
    const gy_rule *rule = rule_of(g, n);
    const char *unfit;
    const gy_maths *m = rule ? NULL : gy_node_formulas(g, n, &unfit);
    const gy_maths_result *r = m ? gy_maths_result_of(m, u->access->arg) : NULL;
    return rule ? is_word(rule->kept, g, n, u->access) && (!rule->kept_with || is_one(g, n, rule->kept_with))
                : r && (r->reduction == GY_MATHS_LEAST || r->reduction == GY_MATHS_MOST);
}

/* Two accesses to a buffer, the second of a later node. */
static gantry_status check_pair(gy_adjoint *a, const use *first, const use *second)
{
    const gantry_graph *g = a->graph;
    const char *name = g->buffers.at[first->buffer].name;
    bool writes = second->access->mode != GANTRY_READ, replaces = writes && second->access->mode < GANTRY_SUM;
    if (!writes || !first->on_path || !overlap(first->access, second->access))
        return GANTRY_OK;
    if (first->access->mode == GANTRY_READ)
        return gy_node_fail(a->graph, a->err, second->node,
                            "writes rows of \"%s\" that node \"%.80s\" read before, and the backward pass wants what "
                            "that read; give the result a buffer of its own",
                            name, g->nodes.at[first->node].id);
    bool is_in_place = second->access->mode == GANTRY_READWRITE && second->on_path;
    bool is_other = replaces && !gy_adjoint_is_active(a, first->buffer);
    if ((is_in_place || is_other || second->access->mode == GANTRY_SUM) && is_kept(g, first))
        return gy_node_fail(a->graph, a->err, second->node,
                            "changes rows of \"%s\" that node \"%.80s\" wrote, and the backward pass wants what that "
                            "wrote; change a copy in a buffer of its own",
                            name, g->nodes.at[first->node].id);
    replaces = replaces && !is_in_place;
    if (replaces && gy_adjoint_is_active(a, first->buffer))
        return gy_node_fail(a->graph, a->err, second->node,
                            "writes rows of \"%s\" that node \"%.80s\" wrote before, and the adjoint of both would be "
                            "one; give the result a buffer of its own",
                            name, g->nodes.at[first->node].id);
    return GANTRY_OK;
}

static gantry_status check_uses(gy_adjoint *a, const use *at, size_t count)
{
    for (size_t first = 0; first < count; first++) {
        for (size_t i = first + 1; i < count && at[i].buffer == at[first].buffer; i++) {
            if (!at[first].on_path)
                break;
            GY_TRY(check_pair(a, &at[first], &at[i]));
        }
    }
    return GANTRY_OK;
}

/* Only buffers that some node writes twice, or reads and then writes, can be wrong; `seen` keeps pairs few. */
static gantry_status check_rows(gy_adjoint *a, const uint8_t *on_path, const uint32_t *last_write)
{
    const gantry_graph *g = a->graph;
    GY_VEC(use) uses = { 0 };
    bool ok = true;
    for (uint32_t i = 0; i < a->nodes; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = 0; k < gy_node_regions(n); k++) {
            const gy_access *x = &g->access.at[n->access + k];
            use made = { x, gy_adjoint_source(g, x), i, on_path[i] };
            bool matters = x->mode != GANTRY_READ || (on_path[i] && last_write[made.buffer] > i + 1);
            ok = (!matters || gy_vec_push(&uses, made)) && ok;
        }
    }
    gantry_status status = ok ? GANTRY_OK : gy_fail_nomem(a->err);
    if (uses.count)
        qsort(uses.at, uses.count, sizeof *uses.at, compare_uses);
    status = status ? status : check_uses(a, uses.at, uses.count);
    gy_vec_free(&uses);
    return status;
}

static gantry_status check_path(gy_adjoint *a, uint8_t *on_path, uint32_t *last_write)
{
    const gantry_graph *g = a->graph;
    for (uint32_t i = 0; i < a->nodes; i++) {
        const gy_node *n = &g->nodes.at[i];
        on_path[i] = gy_adjoint_is_on_path(a, i);
        if (on_path[i])
            GY_TRY(check_node(a, i));
        for (uint32_t k = 0; k < gy_node_regions(n); k++)
            if (g->access.at[n->access + k].mode != GANTRY_READ)
                last_write[g->access.at[n->access + k].buffer] = i + 1;
    }
    return check_rows(a, on_path, last_write);
}

/* ---- weights ---- */

static gantry_status check_weights(gy_adjoint *a)
{
    const gantry_graph *g = a->graph;
    for (size_t w = 0; w < a->weight.count; w++) {
        const gy_buffer *b = &g->buffers.at[a->weight.at[w]];
        if (!a->leads[a->weight.at[w]])
            return gy_graph_fail(
                g, b->origin, a->err, GANTRY_E_GRAPH,
                "weight \"%s\" does not reach the loss \"%s\": no node on the way reads it; take it out "
                "of the weights",
                b->name, g->buffers.at[a->loss].name);
    }
    for (uint32_t i = 0; i < a->nodes; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = 0; k < gy_node_regions(n); k++) {
            const gy_access *x = &g->access.at[n->access + k];
            for (size_t w = 0; w < a->weight.count && x->mode != GANTRY_READ; w++)
                if (a->weight.at[w] == x->buffer)
                    return gy_node_fail(a->graph, a->err, i,
                                        "writes weight \"%s\"; weights are written by the optimiser alone",
                                        g->buffers.at[x->buffer].name);
        }
    }
    return GANTRY_OK;
}

gantry_status gy_adjoint_find_path(gy_adjoint *a)
{
    uint8_t *on_path = gy_calloc(a->nodes + 1, 1);
    uint32_t *last_write = gy_calloc(a->buffers + 1, sizeof *last_write);
    for (size_t i = 0; i < a->weight.count; i++)
        a->follows[a->weight.at[i]] = 1;
    a->leads[a->loss] = 1;
    spread_all(a, a->follows, true);
    spread_all(a, a->leads, false);
    gantry_status status = on_path && last_write ? check_weights(a) : gy_fail_nomem(a->err);
    status = status ? status : check_path(a, on_path, last_write);
    gy_free(on_path);
    gy_free(last_write);
    return status;
}
