/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that a graph answers. */
#include "base/error.h"
#include "base/versioned.h"
#include "graph/phase.h"
#include "kernel/identity.h"
#include <string.h>

gantry_graph *gy_graph_ref(const gantry_graph *graph)
{
    /* Counting owners does not change the graph: it may be shared, and const, between threads. */
    gantry_graph *owned = (gantry_graph *)(uintptr_t)graph;
    __atomic_fetch_add(&owned->refs, 1, __ATOMIC_RELAXED);
    return owned;
}

const char *gantry_graph_name(const gantry_graph *graph)
{
    return graph ? graph->name : NULL;
}

size_t gantry_graph_buffer_count(const gantry_graph *graph)
{
    return graph ? graph->buffers.count : 0;
}

size_t gantry_graph_node_count(const gantry_graph *graph)
{
    return graph ? graph->nodes.count : 0;
}

const char *gantry_graph_node_id(const gantry_graph *graph, gantry_node node)
{
    bool known = graph && gy_graph_gave(graph, node.graph) && node.id < graph->nodes.count;
    return known ? graph->nodes.at[node.id].id : NULL;
}

void gantry_graph_machine_hint(const gantry_graph *graph, const char **json, const char **path)
{
    if (json)
        *json = graph ? graph->machine_json : NULL;
    if (path)
        *path = graph ? graph->machine_path : NULL;
}

gantry_node gantry_graph_find_node(const gantry_graph *graph, const char *id)
{
    uint32_t found = graph && id ? gy_names_find(&graph->node_names, id) : GANTRY_NONE;
    return (gantry_node){ found, found == GANTRY_NONE ? 0 : graph->number };
}

gantry_buffer gantry_graph_find_buffer(const gantry_graph *graph, const char *name)
{
    uint32_t found = graph && name ? gy_names_find(&graph->buffer_names, name) : GANTRY_NONE;
    return (gantry_buffer){ found, found == GANTRY_NONE ? 0 : graph->number };
}

int64_t gy_buffer_offset(const gy_buffer *buffer, int64_t row)
{
    return buffer->tile_offset ? buffer->tile_offset[row] : row * buffer->row_bytes;
}

/* Does the region only hold what was computed, or what may be left out, in a dtype of its own? A manifest says by
 * letters what is computed in. */
static bool is_result(const gantry_kernel *k, uint32_t arg)
{
    if (!k || arg >= (uint32_t)k->args || k->arg[arg].same)
        return false;
    if (k->arg[arg].access == GANTRY_READ && !k->arg[arg].optional)
        return false;
    for (int32_t i = 0; i < k->args; i++)
        if (!k->arg[i].scalar && k->arg[i].same)
            return true;
    return false;
}

bool gy_node_is_after(const gantry_graph *graph, const gy_node *node, uint32_t other)
{
    for (uint32_t i = 0; i < node->afters; i++)
        if (graph->after.at[node->after + i] == other)
            return true;
    return false;
}

/* By which the dtype of a node is that of its widest real numbers. */
static int width_of(gantry_dtype d)
{
    bool half = d == GANTRY_F16 || d == GANTRY_BF16;
    return d == GANTRY_F64 ? 4 : d == GANTRY_F32 ? 3 : half ? 2 : gy_dtype_is_f8(d) ? 1 : 0;
}

gantry_dtype gy_node_dtype(const gantry_graph *graph, const gy_node *node)
{
    const gy_access *access = gy_node_regions(node) ? &graph->access.at[node->access] : NULL;
    gantry_dtype best = access ? graph->buffers.at[access->buffer].dtype : GANTRY_F32;
    const gantry_kernel *kernel = node->kernel == GY_NONE ? NULL : graph->kernels.at[node->kernel].manifest;
    int width = 0;
    for (uint32_t k = 0; k < gy_node_regions(node); k++) {
        if (is_result(kernel, access[k].arg))
            continue;
        gantry_dtype d = graph->buffers.at[access[k].buffer].dtype;
        int w = width_of(d);
        if (w > width) {
            width = w;
            best = d;
        }
    }
    return best;
}

bool gy_node_is_formula(const gantry_graph *graph, const gy_node *node)
{
    return node->kernel != GY_NONE && graph->kernels.at[node->kernel].program;
}

double gy_formula_work(const gantry_graph *graph, const gy_node *node)
{
    if (!gy_node_is_formula(graph, node))
        return 0;
    return node->flops + (gy_node_dtype(graph, node) == GANTRY_F64 ? node->overhead / 2 : node->overhead);
}

bool gy_graph_entry_rows(const gantry_graph *graph, uint32_t id, uint32_t run, gy_rows *rows)
{
    const gy_buffer *b = &graph->buffers.at[id];
    const gy_phase_context *x = graph->phase;
    if (b->cls == GANTRY_TEMP)
        return false;
    if (!x || !x->defined[id]) {
        *rows = (gy_rows){ 0, b->rows };
        return run == 0;
    }
    if (run >= x->defineds[id])
        return false;
    *rows = x->defined[id][run];
    return true;
}

const gy_node_extra *gy_node_extra_of(const gantry_graph *graph, uint32_t node)
{
    static const gy_node_extra none = { .share = 1 };
    uint32_t extra = graph->nodes.at[node].extra;
    return extra == GY_NONE ? &none : &graph->extra.at[extra];
}

uint32_t gy_node_ranks(const gantry_graph *graph, uint32_t node)
{
    const gy_node_extra *extra = gy_node_extra_of(graph, node);
    if (graph->nodes.at[node].kind != GY_NODE_COLLECTIVE)
        return 1;
    return extra->ins > extra->outs ? extra->ins : extra->outs;
}

bool gy_fill_is_identity(const gantry_graph *graph, uint32_t node, gantry_access op)
{
    const gy_node *n = &graph->nodes.at[node];
    const gy_init *fill = &gy_node_extra_of(graph, node)->fill;
    return n->kind == GY_NODE_FILL && !n->has_when && fill->kind == GY_INIT_VALUE &&
           gy_is_identity(graph->buffers.at[graph->access.at[n->access].buffer].dtype, op, fill->a);
}

gantry_kernel_fn gy_node_function(const gantry_graph *graph, uint32_t node, void **user)
{
    const gy_node *n = &graph->nodes.at[node];
    *user = NULL;
    if (n->function != GY_NONE) {
        *user = graph->functions.at[n->function].user;
        return graph->functions.at[n->function].function;
    }
    if (n->kernel == GY_NONE)
        return NULL;
    *user = (void *)(uintptr_t)graph->kernels.at[n->kernel].program; /* what formulas are carried out from */
    return graph->kernels.at[n->kernel].manifest->host;
}

/* The relative difference that another order of summing some thousand terms may make; integers differ by nothing. */
static double default_tolerance(gantry_dtype dtype)
{
    switch (dtype) {
    case GANTRY_F16:
        return 1e-2;
    case GANTRY_BF16:
        return 5e-2;
    case GANTRY_F8E4M3: /* a step of the last bit of the fraction */
        return 0.125;
    case GANTRY_F8E5M2:
        return 0.25;
    case GANTRY_F32:
        return 1e-5;
    case GANTRY_F64:
        return 1e-11;
    default:
        return 0;
    }
}

gantry_status gantry_graph_buffer_info(const gantry_graph *graph, gantry_buffer buffer, gantry_buffer_info *info,
                                       gantry_error *err)
{
    GY_NEED(graph, err);
    GY_TRY(gy_struct_check(info, sizeof *info, "gantry_buffer_info", err));
    if (!gy_graph_gave(graph, buffer.graph)) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, GY_OTHER_GRAPH, "buffer", buffer.id, buffer.graph, graph->name,
                       graph->number);
    }
    if (buffer.id >= graph->buffers.count) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no buffer has the id %u; graph \"%s\" has %zu", buffer.id,
                       graph->name, graph->buffers.count);
    }
    const gy_buffer *b = &graph->buffers.at[buffer.id];
    double tolerance = default_tolerance(b->dtype);
    gantry_buffer_info full = { .name = b->name,
                                .dtype = b->dtype,
                                .cls = b->cls,
                                .rank = b->rank,
                                .output = b->output,
                                .shape = b->shape,
                                .parts = b->parts,
                                .tiles = { b->tiles[0], b->tiles[1] },
                                .bytes = b->bytes,
                                .rtol = b->rtol < 0 ? tolerance : b->rtol,
                                .atol = b->atol < 0 ? tolerance : b->atol,
                                .equal_nan = b->equal_nan,
                                .by_axis = b->tiles[0] ? b->tiles : NULL };
    gy_struct_write(info, &full, sizeof full);
    return GANTRY_OK;
}
