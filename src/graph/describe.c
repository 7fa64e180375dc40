/* SPDX-License-Identifier: Apache-2.0 */
/* A node as its kernel sees it. */
#include "base/error.h"
#include "graph/graph.h"

#include <math.h>

static const gantry_kernel *manifest_of(const gantry_graph *g, const gy_node *n)
{
    return n->kernel == GY_NONE ? NULL : g->kernels.at[n->kernel].manifest;
}

/* Arguments proper, without the items of lists. Accesses are sorted by argument. */
static uint32_t count_args(const gantry_graph *g, const gy_node *n)
{
    const gantry_kernel *k = manifest_of(g, n);
    uint32_t named = k ? (uint32_t)k->args : 0;
    uint32_t used = n->accesses ? g->access.at[n->access + n->accesses - 1].arg + 1 : 0;
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
    for (uint32_t i = 0; i < n->accesses; i++) {
        count += is_item(&graph->access.at[n->access + i]);
    }
    return count;
}

/* ---- regions ---- */

static void describe_tile(gantry_arg *arg, const gy_buffer *b, int64_t tile)
{
    const int64_t *shape = gy_tile_shape(b, tile);
    arg->shape = shape;
    arg->rows = arg->own_rows = shape[0];
    arg->row_bytes = shape[1] * (int64_t)gantry_dtype_size(b->dtype);
    arg->tile[0] = tile / b->tiles[1];
    arg->tile[1] = tile % b->tiles[1];
}

static void describe_access(gantry_arg *arg, const gantry_graph *g, const gy_access *a)
{
    const gy_buffer *b = &g->buffers.at[a->buffer];
    *arg = (gantry_arg){ .name = b->name,
                         .dtype = b->dtype,
                         .access = (gantry_access)a->mode,
                         .rank = b->rank,
                         .shape = b->shape,
                         .tile = { -1, -1 },
                         .count = 1 };
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
    const gy_buffer *b = &g->buffers.at[a->buffer];
    *arg = (gantry_arg){ .name = b->name,
                         .dtype = b->dtype,
                         .access = (gantry_access)a->mode,
                         .rank = b->rank,
                         .shape = b->shape,
                         .tile = { -1, -1 },
                         .items = items };
}

/* Returns the next free entry for items. */
static gantry_arg *describe_accesses(const gantry_graph *g, const gy_node *n, gantry_arg *args, gantry_arg *items)
{
    uint32_t open = UINT32_MAX;
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_access *a = &g->access.at[n->access + i];
        gantry_arg *arg = &args[a->arg];
        if (!a->is_list) {
            describe_access(arg, g, a);
            continue;
        }
        if (a->arg != open) {
            begin_list(arg, g, a, items);
            open = a->arg;
        }
        if (is_item(a)) {
            describe_access(items, g, a);
            arg->count++;
            arg->rows += items->rows;
            arg->own_rows = arg->rows;
            items++;
        }
    }
    return items;
}

/* ---- scalars ---- */

static bool iteration_value(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    (void)name; /* `it`: nothing else gets this far */
    *integer = *(const int64_t *)context;
    *real = (double)*integer;
    *is_real = false;
    return true;
}

static void describe_scalar(gantry_arg *arg, const char *name, double number)
{
    bool whole = number == floor(number) && fabs(number) < 0x1p63;
    *arg = (gantry_arg){ .name = name,
                         .dtype = GANTRY_F64,
                         .tile = { -1, -1 },
                         .number = number,
                         .integer = whole ? (int64_t)number : 0,
                         .count = 1 };
}

static gantry_status number_at(const gantry_graph *g, const gy_node *n, const gy_scalar *s, int64_t it, double *number,
                               gantry_error *err)
{
    gantry_error inner;
    *number = s->number;
    if (s->expr && gy_expr_real(s->expr, iteration_value, &it, number, GANTRY_E_GRAPH, NULL, &inner)) {
        return gy_graph_fail(g, n->origin, err, inner.status, "node \"%s\", argument \"%s\", iteration %lld: %s", n->id,
                             manifest_of(g, n)->arg[s->arg].name, (long long)it, inner.text);
    }
    return GANTRY_OK;
}

gantry_status gy_launch_iterate(const gantry_graph *graph, uint32_t node, const gantry_launch *launch,
                                gantry_error *err)
{
    const gy_node *n = &graph->nodes.at[node];
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < n->scalars && !status; i++) {
        const gy_scalar *s = &graph->scalar.at[n->scalar + i];
        gantry_arg *arg = (gantry_arg *)(uintptr_t)&launch->arg[s->arg]; /* whoever described it owns it */
        double number;
        if (s->expr && !(status = number_at(graph, n, s, launch->iteration, &number, err))) {
            describe_scalar(arg, arg->name, number);
        }
    }
    return status;
}

static gantry_status describe_scalars(const gantry_graph *g, const gy_node *n, int64_t it, gantry_arg *args,
                                      gantry_error *err)
{
    const gantry_kernel *k = manifest_of(g, n);
    for (int32_t i = 0; k && i < k->args; i++) {
        if (k->arg[i].scalar) {
            describe_scalar(&args[i], k->arg[i].name, k->arg[i].fallback);
        }
    }
    for (uint32_t i = 0; i < n->scalars; i++) {
        const gy_scalar *s = &g->scalar.at[n->scalar + i];
        double number;
        gantry_status status = number_at(g, n, s, it, &number, err);
        if (status) {
            return status;
        }
        describe_scalar(&args[s->arg], k->arg[s->arg].name, number);
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
    for (uint32_t i = 0; i < n->scalars; i++) {
        if (g->scalar.at[n->scalar + i].arg == (uint32_t)arg) {
            return true;
        }
    }
    return false;
}

/* Scalars that nobody gives and that follow from the regions, which are described by now. */
static gantry_status describe_defaults(const gantry_graph *g, const gy_node *n, gantry_launch *launch, gantry_arg *args,
                                       gantry_error *err)
{
    const gantry_kernel *k = manifest_of(g, n);
    for (int32_t i = 0; k && i < k->args; i++) {
        const gy_expr *e = fallback_of(g, n, i);
        double number;
        gantry_error inner;
        if (!e || is_given(g, n, i)) {
            continue;
        }
        if (gy_expr_real(e, gy_launch_lookup, launch, &number, GANTRY_E_GRAPH, NULL, &inner)) {
            return gy_graph_fail(g, n->origin, err, inner.status, "node \"%s\", the default of argument \"%s\": %s",
                                 n->id, k->arg[i].name, inner.text);
        }
        describe_scalar(&args[i], k->arg[i].name, number);
    }
    return GANTRY_OK;
}

gantry_status gy_launch_describe(const gantry_graph *graph, uint32_t node, int64_t it, gantry_launch *launch,
                                 gantry_arg *args, gantry_error *err)
{
    const gy_node *n = &graph->nodes.at[node];
    const gantry_kernel *k = manifest_of(graph, n);
    uint32_t count = count_args(graph, n);
    gantry_status status = describe_scalars(graph, n, it, args, err);
    if (status) {
        return status;
    }
    describe_accesses(graph, n, args, args + count);
    for (int32_t i = 0; k && i < k->args; i++) {
        args[i].name = k->arg[i].name;
    }
    *launch = (gantry_launch){ .struct_size = sizeof *launch,
                               .node = n->id,
                               .iteration = it,
                               .device = -1,
                               .device_ordinal = -1,
                               .args = (int32_t)count,
                               .arg = args,
                               .scratch_bytes = (uint64_t)n->scratch };
    gy_node_function(graph, node, &launch->user);
    return describe_defaults(graph, n, launch, args, err);
}

gantry_arg *gy_launch_arg_of(const gantry_graph *graph, uint32_t node, gantry_arg *args, uint32_t k)
{
    const gy_node *n = &graph->nodes.at[node];
    const gy_access *access = &graph->access.at[n->access];
    gantry_arg *arg = &args[access[k].arg];
    if (!access[k].is_list) {
        return arg;
    }
    /* Items are in the order of the accesses: how far is k from the first access of its argument? */
    uint32_t low = 0, high = k;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (access[middle].arg < access[k].arg) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return is_item(&access[k]) ? args + (arg->items - args) + (k - low) : arg;
}

gantry_arg *gy_launch_scalar_of(const gantry_graph *graph, uint32_t node, gantry_arg *args, uint32_t k)
{
    return &args[graph->scalar.at[graph->nodes.at[node].scalar + k].arg];
}
