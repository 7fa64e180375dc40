/* SPDX-License-Identifier: Apache-2.0 */
/* A node as its kernel sees it. */
#include "base/error.h"
#include "graph/halo.h"
#include "graph/nest.h"

#include <stdio.h>

static const gantry_kernel *manifest_of(const gantry_graph *g, const gy_node *n)
{
    return n->kernel == GY_NONE ? NULL : g->kernels.at[n->kernel].manifest;
}

/* Arguments proper, without the items of lists. Accesses are sorted by argument. */
static uint32_t count_args(const gantry_graph *g, const gy_node *n)
{
    const gantry_kernel *k = manifest_of(g, n);
    uint32_t named = k ? (uint32_t)k->args : 0;
    uint32_t regions = gy_node_regions(n), used = regions ? g->access.at[n->access + regions - 1].arg + 1 : 0;
    return used > named ? used : named;
}

static bool is_item(const gy_access *a)
{
    return a->is_list && a->first != a->last;
}

size_t gy_launch_args(const gantry_graph *graph, uint32_t node)
{
    const gy_node *n = &graph->nodes.at[node];
    size_t count = count_args(graph, n);
    for (uint32_t i = 0; i < gy_node_regions(n); i++)
        count += is_item(&graph->access.at[n->access + i]);
    return count;
}

/* ---- regions ---- */

static void describe_tile(gantry_arg *arg, const gy_buffer *b, int64_t tile)
{
    const int64_t *shape = gy_tile_shape(b, tile);
    int64_t index[GANTRY_TILE_AXES];
    gy_tile_index(b, tile, index);
    arg->shape = shape;
    arg->whole = b->shape;
    arg->rows = shape[0];
    arg->row_bytes = (int64_t)gantry_dtype_size(b->dtype);
    for (int k = 0; k < b->rank; k++) {
        gantry_axis *axis = &arg->axis[k];
        arg->row_bytes *= k ? shape[k] : 1;
        axis->before = (int32_t)gy_halo_side(b, k, index[k], 0);
        axis->after = (int32_t)gy_halo_side(b, k, index[k], 1);
        axis->first = gy_tile_bound(b, k, index[k]) - axis->before;
    }
    arg->own_first = arg->axis[0].before;
    arg->own_rows = arg->rows - arg->axis[0].before - arg->axis[0].after;
    arg->tile[0] = index[0];
    arg->tile[1] = index[1];
}

/* Name, type and shape, which do not depend on the rows that are named. */
static gantry_arg arg_of(const gantry_graph *g, const gy_access *a)
{
    const gy_buffer *b = &g->buffers.at[a->buffer];
    return (gantry_arg){ .name = b->name,
                         .dtype = b->dtype,
                         .access = gy_access_given(a),
                         .rank = b->rank,
                         .shape = b->shape,
                         .tile = { -1, -1 } };
}

void gy_arg_describe(gantry_arg *arg, const gantry_graph *g, const gy_access *a)
{
    const gy_buffer *b = &g->buffers.at[a->buffer];
    *arg = arg_of(g, a);
    arg->count = 1;
    if (b->tiles[0] && a->last == a->first + 1) {
        describe_tile(arg, b, a->first);
    } else if (b->tiles[0]) {
        /* Several tiles in one piece: of nodes that no kernel runs. One row, so that the bytes are right. */
        arg->rows = arg->own_rows = 1;
        arg->row_bytes = gy_buffer_span(b, a->first, a->last);
    } else {
        arg->first_row = a->first;
        arg->rows = a->last - a->first;
        arg->own_first = a->first + a->before;
        arg->own_rows = arg->rows - a->before - a->after;
        arg->row_bytes = b->row_bytes;
    }
}

/* The first entry of a list; items follow one by one. */
static void begin_list(gantry_arg *arg, const gantry_graph *g, const gy_access *a, const gantry_arg *items)
{
    *arg = arg_of(g, a);
    arg->items = items;
}

/* Returns the next free entry for items. */
static gantry_arg *describe_accesses(const gantry_graph *g, const gy_node *n, gantry_arg *args, gantry_arg *items)
{
    uint32_t open = UINT32_MAX;
    for (uint32_t i = 0; i < gy_node_regions(n); i++) {
        const gy_access *a = &g->access.at[n->access + i];
        gantry_arg *arg = &args[a->arg];
        if (!a->is_list) {
            gy_arg_describe(arg, g, a);
            continue;
        }
        if (a->arg != open) {
            begin_list(arg, g, a, items);
            open = a->arg;
        }
        if (is_item(a)) {
            gy_arg_describe(items, g, a);
            arg->count++;
            arg->rows += items->rows;
            arg->own_rows = arg->rows;
            items++;
        }
    }
    return items;
}

/* ---- scalars ---- */

typedef struct turn {
    const gantry_graph *graph;
    const gy_node *node;
    int64_t iteration;
} turn;

static bool iteration_value(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    const turn *t = context;
    if (!gy_node_index(t->graph, t->node, t->iteration, name, integer))
        return false;
    *real = (double)*integer;
    *is_real = false;
    return true;
}

static void describe_scalar(gantry_arg *arg, const char *name, gy_constant value)
{
    *arg = (gantry_arg){ .name = name, .dtype = GANTRY_F64, .tile = { -1, -1 }, .count = 1 };
    gy_launch_set_scalar(arg, value);
}

void gy_launch_set_scalar(gantry_arg *arg, gy_constant value)
{
    arg->number = value.real;
    arg->integer = (int64_t)gy_constant_bits(value);
}

/* Of the argument, in an iteration where that matters. */
static gantry_status fail_scalar(const gantry_graph *g, const gy_node *n, const gy_scalar *s, int64_t it,
                                 const gantry_error *inner, gantry_error *err)
{
    char inside[128], when[64] = "";
    snprintf(inside, sizeof inside, "/args/%.100s", manifest_of(g, n)->arg[s->arg].name);
    if (s->expr)
        snprintf(when, sizeof when, ", iteration %lld", (long long)it);
    return gy_graph_fail_in(g, n->origin, inside, err, inner->status, "node \"%s\"%s: %s", n->id, when, inner->text);
}

/* The number that the node gives, which its type can hold. */
static gantry_status number_at(const gantry_graph *g, uint32_t node, const gy_scalar *s, int64_t it, gy_constant *out,
                               gantry_error *err)
{
    const gy_node *n = &g->nodes.at[node];
    gantry_error inner;
    *out = s->number;
    turn now = { g, n, it };
    if (s->expr && gy_constant_evaluate(out, s->expr, iteration_value, &now, GANTRY_E_GRAPH, &inner)) {
        return gy_graph_fail(g, n->origin, err, inner.status, "node \"%s\", argument \"%s\", iteration %lld: %s", n->id,
                             manifest_of(g, n)->arg[s->arg].name, (long long)it, inner.text);
    }
    return gy_scalar_check(g, node, s->arg, *out, &inner) ? fail_scalar(g, n, s, it, &inner, err) : GANTRY_OK;
}

gantry_status gy_launch_iterate(const gantry_graph *graph, uint32_t node, const gantry_launch *launch,
                                gantry_error *err)
{
    const gy_node *n = &graph->nodes.at[node];
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < n->scalars && !status; i++) {
        const gy_scalar *s = &graph->scalar.at[n->scalar + i];
        gantry_arg *arg = (gantry_arg *)(uintptr_t)&launch->arg[s->arg]; /* the caller described it */
        gy_constant value;
        if (s->expr && !(status = number_at(graph, node, s, launch->iteration, &value, err)))
            gy_launch_set_scalar(arg, value);
    }
    return status;
}

static gantry_status describe_scalars(const gantry_graph *g, uint32_t node, int64_t it, gantry_arg *args,
                                      gantry_error *err)
{
    const gy_node *n = &g->nodes.at[node];
    const gantry_kernel *k = manifest_of(g, n);
    for (int32_t i = 0; k && i < k->args; i++)
        if (k->arg[i].scalar)
            describe_scalar(&args[i], k->arg[i].name, (gy_constant){ .real = k->arg[i].fallback });
        else if (k->arg[i].optional) /* until it is found among the regions */
            args[i] = (gantry_arg){ .tile = { -1, -1 } };
    for (uint32_t i = 0; i < n->scalars; i++) {
        const gy_scalar *s = &g->scalar.at[n->scalar + i];
        gy_constant value;
        gantry_status status = number_at(g, node, s, it, &value, err);
        if (status)
            return status;
        gy_launch_set_scalar(&args[s->arg], value);
    }
    return GANTRY_OK;
}

static const gy_expr *fallback_of(const gantry_graph *g, const gy_node *n, int32_t arg)
{
    const gy_kernel_code *code = n->kernel == GY_NONE ? NULL : g->kernels.at[n->kernel].code;
    return code && code->fallback ? code->fallback[arg] : NULL;
}

static bool is_given(const gantry_graph *g, const gy_node *n, int32_t arg)
{
    for (uint32_t i = 0; i < n->scalars; i++)
        if (g->scalar.at[n->scalar + i].arg == (uint32_t)arg)
            return true;
    return false;
}

/* Describes a scalar that the node does not give: it follows from the regions, which are described by now, or is the
 * manifest's number. */
static gantry_status describe_default(const gantry_graph *g, uint32_t node, int32_t arg, gantry_launch *launch,
                                      gantry_arg *args, gantry_error *err)
{
    const gy_node *n = &g->nodes.at[node];
    const gy_expr *e = fallback_of(g, n, arg);
    gy_constant value = { .real = args[arg].number };
    gantry_error inner;
    if (e && gy_constant_evaluate(&value, e, gy_launch_lookup, launch, GANTRY_E_GRAPH, &inner)) {
        return gy_graph_fail(g, n->origin, err, inner.status, "node \"%s\", the default of argument \"%s\": %s", n->id,
                             manifest_of(g, n)->arg[arg].name, inner.text);
    }
    if (gy_scalar_check(g, node, (uint32_t)arg, value, &inner))
        return gy_graph_fail(g, n->origin, err, inner.status, "node \"%s\", by default: %s", n->id, inner.text);
    gy_launch_set_scalar(&args[arg], value);
    return GANTRY_OK;
}

static gantry_status describe_defaults(const gantry_graph *g, uint32_t node, gantry_launch *launch, gantry_arg *args,
                                       gantry_error *err)
{
    const gy_node *n = &g->nodes.at[node];
    const gantry_kernel *k = manifest_of(g, n);
    for (int32_t i = 0; k && i < k->args; i++)
        if (k->arg[i].scalar && k->arg[i].optional && !is_given(g, n, i))
            GY_TRY(describe_default(g, node, i, launch, args, err));
    return GANTRY_OK;
}

gantry_status gy_launch_describe(const gantry_graph *graph, uint32_t node, int64_t it, gantry_launch *launch,
                                 gantry_arg *args, gantry_error *err)
{
    const gy_node *n = &graph->nodes.at[node];
    const gantry_kernel *k = manifest_of(graph, n);
    uint32_t count = count_args(graph, n);
    GY_TRY(describe_scalars(graph, node, it, args, err));
    describe_accesses(graph, n, args, args + count);
    for (int32_t i = 0; k && i < k->args; i++)
        args[i].name = k->arg[i].name;
    *launch = (gantry_launch){ .struct_size = sizeof *launch,
                               .node = n->id,
                               .iteration = it,
                               .device = -1,
                               .device_ordinal = -1,
                               .args = (int32_t)count,
                               .arg = args,
                               .arg_size = sizeof *args,
                               .scratch_bytes = (uint64_t)n->scratch };
    gy_node_function(graph, node, &launch->user);
    return describe_defaults(graph, node, launch, args, err);
}

gantry_arg *gy_launch_arg_of(const gantry_graph *graph, uint32_t node, gantry_arg *args, uint32_t k)
{
    const gy_node *n = &graph->nodes.at[node];
    const gy_access *access = gy_vec_from(&graph->access, n->access);
    if (k >= gy_node_regions(n))
        return NULL;
    gantry_arg *arg = &args[access[k].arg];
    if (!access[k].is_list)
        return arg;
    /* Items are in the order of the accesses: how far is k from the first access of its argument? */
    uint32_t low = 0, high = k;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (access[middle].arg < access[k].arg)
            low = middle + 1;
        else
            high = middle;
    }
    return is_item(&access[k]) ? args + (arg->items - args) + (k - low) : arg;
}
