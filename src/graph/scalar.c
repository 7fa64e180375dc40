/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars of kernels: the numbers that their types can hold. */
#include "base/error.h"
#include "graph/graph.h"

/* The first region of the node that the manifest gives this letter; NULL: none. */
static const gy_access *find_region(const gantry_graph *g, const gy_node *n, const gantry_kernel *k, char letter)
{
    for (uint32_t i = 0; i < gy_node_regions(n); i++) {
        const gy_access *a = &g->access.at[n->access + i];
        if (a->arg < (uint32_t)k->args && k->arg[a->arg].same == letter)
            return a;
    }
    return NULL;
}

static gantry_status check_type(const gantry_kernel *k, uint32_t arg, gantry_dtype type, gy_constant value,
                                gantry_error *err)
{
    char seen[GY_CONSTANT_TEXT], allowed[GY_CONSTANT_TEXT];
    if (gy_constant_fits(value, type, false))
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_GRAPH, NULL,
                   "argument \"%s\" of kernel \"%s\" is %s, and its type %s holds %s; correct the number or the type",
                   k->arg[arg].name, k->name, gy_constant_text(seen, value), gantry_dtype_name(type),
                   gy_constant_range(allowed, type, false));
}

/* A factor of integers, say. Arithmetic of integers wraps, so unsigned ones take negative numbers. */
static gantry_status check_like(const gantry_graph *g, const gantry_kernel *k, uint32_t arg, const gy_access *region,
                                gy_constant value, gantry_error *err)
{
    char seen[GY_CONSTANT_TEXT], allowed[GY_CONSTANT_TEXT];
    gantry_dtype type = g->buffers.at[region->buffer].dtype;
    if (gy_constant_fits(value, type, true))
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_GRAPH, NULL,
                   "argument \"%s\" of kernel \"%s\" is %s, and \"%s\" is %s; give %s, or buffers of a floating dtype",
                   k->arg[arg].name, k->name, gy_constant_text(seen, value), k->arg[region->arg].name,
                   gantry_dtype_name(type), gy_constant_range(allowed, type, true));
}

gantry_status gy_scalar_check(const gantry_graph *graph, uint32_t node, uint32_t arg, gy_constant value,
                              gantry_error *err)
{
    const gy_node *n = &graph->nodes.at[node];
    const gy_kernel *kernel = &graph->kernels.at[n->kernel];
    const gantry_kernel *k = kernel->manifest;
    if (kernel->code && kernel->code->types)
        return check_type(k, arg, kernel->code->types[arg], value, err);
    const gy_access *region = k->arg[arg].same ? find_region(graph, n, k, k->arg[arg].same) : NULL;
    return region ? check_like(graph, k, arg, region, value, err) : GANTRY_OK;
}
