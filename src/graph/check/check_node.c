/* SPDX-License-Identifier: Apache-2.0 */
/* Checking nodes one by one, and their costs. */
#include "base/error.h"
#include "graph/check/check.h"
#include "graph/halo.h"
#include "graph/nest.h"
#include <stdio.h>
#include <string.h>

/* Room for describing launches, kept from node to node. */
typedef struct scratch_args {
    GY_VEC(gantry_arg) args;
    int64_t checks; /* of launches, so far */
} scratch_args;

/* ---- what every kind obeys ---- */

static gantry_status check_classes(const gantry_graph *g, const gy_node *n, gantry_error *err)
{
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_access *a = &g->access.at[n->access + i];
        const gy_buffer *b = &g->buffers.at[a->buffer];
        if (b->cls == GANTRY_CONST && a->mode != GANTRY_READ) {
            return gy_graph_fail(
                g, n->origin, err, GANTRY_E_GRAPH,
                "node \"%s\" has access %s to const buffer \"%s\"; only its init or binding fills it: make it "
                "state or input",
                n->id, gantry_access_name(gy_access_given(a)), b->name);
        }
    }
    return GANTRY_OK;
}

static double bytes_of_regions(const gantry_graph *g, const gy_node *n)
{
    double sum = 0;
    for (uint32_t i = 0; i < gy_node_regions(n); i++)
        sum += (double)gy_access_bytes(g, &g->access.at[n->access + i]);
    return sum;
}

/* ---- copies ---- */

static bool spans_tiles(const gantry_graph *g, const gy_access *a)
{
    return g->buffers.at[a->buffer].tiles[0] && a->last - a->first > 1;
}

/* Several tiles in one piece are copied tile by tile: they must be alike. */
static bool are_tiles_alike(const gantry_graph *g, const gy_access *from, const gy_access *to)
{
    const gy_buffer *x = &g->buffers.at[from->buffer], *y = &g->buffers.at[to->buffer];
    if (!spans_tiles(g, from) && !spans_tiles(g, to))
        return true;
    if (!x->tiles[0] || !y->tiles[0] || from->last - from->first != to->last - to->first)
        return false;
    for (int64_t i = 0; i < from->last - from->first; i++)
        if (!gy_tiles_alike(x, from->first + i, y, to->first + i))
            return false;
    return true;
}

static gantry_status check_copy(const gantry_graph *g, const gy_node *n, gantry_error *err)
{
    const gy_access *from = &g->access.at[n->access], *to = from + 1;
    const gy_buffer *x = &g->buffers.at[from->buffer], *y = &g->buffers.at[to->buffer];
    if (x->dtype != y->dtype) {
        return gy_graph_fail(g, n->origin, err, GANTRY_E_GRAPH,
                             "copy \"%s\" from \"%s\" (%s) to \"%s\" (%s); both must have the same dtype", n->id,
                             x->name, gantry_dtype_name(x->dtype), y->name, gantry_dtype_name(y->dtype));
    }
    long long size = (long long)gantry_dtype_size(x->dtype);
    if (gy_access_bytes(g, from) != gy_access_bytes(g, to)) {
        return gy_graph_fail(g, n->origin, err, GANTRY_E_GRAPH,
                             "copy \"%s\" from %lld elements of \"%s\" to %lld of \"%s\"; both must be as many", n->id,
                             (long long)gy_access_bytes(g, from) / size, x->name,
                             (long long)gy_access_bytes(g, to) / size, y->name);
    }
    if (!are_tiles_alike(g, from, to)) {
        return gy_graph_fail(
            g, n->origin, err, GANTRY_E_GRAPH,
            "copy \"%s\" from \"%s\" to \"%s\" would change how tiles are cut; copy tile by tile between "
            "tiles of one shape",
            n->id, x->name, y->name);
    }
    return GANTRY_OK;
}

/* ---- kernels ---- */

/* Goes on from *next, where the last argument was found: accesses and scalars are sorted by argument. */
static bool has_arg(const gantry_graph *g, const gy_node *n, uint32_t arg, bool scalar, uint32_t *next)
{
    uint32_t count = scalar ? n->scalars : n->accesses;
    while (*next < count) {
        uint32_t at = scalar ? g->scalar.at[n->scalar + *next].arg : g->access.at[n->access + *next].arg;
        if (at >= arg)
            return at == arg;
        (*next)++;
    }
    return false;
}

static gantry_status check_given(const gantry_graph *g, const gy_node *n, const gantry_kernel *k, gantry_error *err)
{
    uint32_t next_access = 0, next_scalar = 0;
    for (int32_t i = 0; i < k->args; i++) {
        const gantry_kernel_arg *a = &k->arg[i];
        bool given = has_arg(g, n, (uint32_t)i, a->scalar, a->scalar ? &next_scalar : &next_access);
        if (!given && !a->optional) {
            return gy_graph_fail_in(g, n->origin, "/args", err, GANTRY_E_GRAPH,
                                    "node \"%s\": argument \"%s\" of kernel \"%s\" is missing; give it %s", n->id,
                                    a->name, k->name, a->scalar ? "a number" : "a region of a buffer");
        }
    }
    return GANTRY_OK;
}

static gantry_status check_same(const gantry_graph *g, const gy_node *n, const gantry_kernel *k, gantry_error *err)
{
    const gy_access *first[128] = { 0 }; /* by letter */
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_access *a = &g->access.at[n->access + i];
        int letter = a->arg < (uint32_t)k->args ? k->arg[a->arg].same & 0x7f : 0;
        if (letter == 0)
            continue;
        if (!first[letter])
            first[letter] = a;
        gantry_dtype one = g->buffers.at[first[letter]->buffer].dtype, other = g->buffers.at[a->buffer].dtype;
        if (one != other) {
            return gy_graph_fail_in(
                g, n->origin, "/args", err, GANTRY_E_GRAPH,
                "node \"%s\": arguments \"%s\" (%s) and \"%s\" (%s) of kernel \"%s\" must have the same "
                "dtype",
                n->id, k->arg[first[letter]->arg].name, gantry_dtype_name(one), k->arg[a->arg].name,
                gantry_dtype_name(other), k->name);
        }
    }
    return GANTRY_OK;
}

static bool varies(const gantry_graph *g, const gy_node *n)
{
    for (uint32_t i = 0; i < n->scalars; i++)
        if (g->scalar.at[n->scalar + i].expr)
            return true;
    return false;
}

enum { MOST_CHECKED = 10000, MOST_CHECKS = 10000000 };

/* Iterations of one node that are checked: few where very many nodes have many. */
static int64_t checked_iterations(const scratch_args *room)
{
    return room->checks < MOST_CHECKS ? MOST_CHECKED : 1;
}

/* The manifest's own check, in every iteration where scalars depend on it; of very many, in the last and the first ones
 * (the others show when they run). Leaves iteration 0 in *launch. */
static gantry_status check_launches(const gantry_graph *g, uint32_t node, const gantry_kernel *k, gantry_launch *launch,
                                    scratch_args *room, gantry_error *err)
{
    const gy_node *n = &g->nodes.at[node];
    int64_t count = varies(g, n) ? gy_node_runs(g, n) : 1, most = checked_iterations(room);
    for (int64_t it = count > 0 ? count - 1 : 0; it >= 0; it = it > most ? most - 1 : it - 1, room->checks++) {
        char text[256] = "";
        gantry_status status = gy_launch_describe(g, node, it, launch, room->args.at, err);
        if (status)
            return status;
        if (k->check && k->check(launch, text, sizeof text) != GANTRY_OK) {
            text[sizeof text - 1] = '\0';
            if (g->kernels.at[n->kernel].maths)
                return gy_graph_fail_in(g, n->origin, "/args", err, GANTRY_E_GRAPH, "node \"%s\": %s", n->id, text);
            return gy_graph_fail_in(g, n->origin, "/args", err, GANTRY_E_GRAPH, "node \"%s\", kernel \"%s\": %s", n->id,
                                    k->name, text[0] ? text : "its arguments do not fit together");
        }
    }
    return GANTRY_OK;
}

static gantry_status check_kernel(gantry_graph *g, uint32_t node, scratch_args *room, gantry_error *err)
{
    gy_node *n = &g->nodes.at[node];
    const gy_kernel *kernel = &g->kernels.at[n->kernel];
    gantry_status status = check_given(g, n, kernel->manifest, err);
    if (!status)
        status = check_same(g, n, kernel->manifest, err);
    if (status)
        return status;
    if (!gy_vec_reserve(&room->args, gy_launch_args(g, node) + 1))
        return gy_fail_nomem(err);
    gantry_launch launch;
    status = check_launches(g, node, kernel->manifest, &launch, room, err);
    if (status)
        return status;
    double flops, bytes;
    int64_t scratch;
    gantry_error inner;
    status = gy_kernel_cost(kernel, &launch, &flops, &bytes, &scratch, &inner);
    if (status)
        return gy_graph_fail(g, n->origin, err, status, "node \"%s\": %s", n->id, inner.text);
    n->flops = n->cost_given ? n->flops : flops;
    n->bytes = n->cost_given ? n->bytes : bytes;
    n->scratch = n->scratch_given ? n->scratch : scratch;
    n->blocks = gy_kernel_blocks(kernel, &launch);
    n->waits = gy_kernel_waits(kernel, &launch);
    n->form = gy_kernel_form_name(kernel, &launch);
    n->contiguous = gy_halo_contiguous(kernel->manifest, &launch);
    n->overhead = n->cost_given ? 0 : gy_kernel_overhead(kernel, &launch);
    return GANTRY_OK;
}

static gantry_status check_regions(const gantry_graph *g, const gy_node *n, gantry_error *err)
{
    GY_TRY(check_classes(g, n, err));
    if (n->kind == GY_NODE_COPY)
        GY_TRY(check_copy(g, n, err));
    if (n->kind == GY_NODE_COLLECTIVE)
        GY_TRY(gy_check_collective(g, n, err));
    return gy_check_overlap(g, n, err);
}

gantry_status gy_check_meeting(const gantry_graph *graph, gantry_error *err)
{
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        const gy_node *n = &graph->nodes.at[i];
        if (n->kind == GY_NODE_COLLECTIVE && gy_node_extra_of(graph, i)->meets)
            GY_TRY(check_regions(graph, n, err));
    }
    return GANTRY_OK;
}

static gantry_status check_node(gantry_graph *g, uint32_t node, scratch_args *room, gantry_error *err)
{
    gy_node *n = &g->nodes.at[node];
    gantry_status status = check_regions(g, n, err);
    if (!status && n->kernel != GY_NONE)
        return check_kernel(g, node, room, err);
    if (!n->cost_given && n->kind != GY_NODE_WORK)
        n->bytes = bytes_of_regions(g, n);
    return status;
}

gantry_status gy_check_nodes(gantry_graph *graph, gantry_error *err)
{
    scratch_args room = { 0 };
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < graph->nodes.count && !status; i++)
        status = check_node(graph, i, &room, err);
    gy_vec_free(&room.args);
    return status;
}
