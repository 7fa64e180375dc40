/* SPDX-License-Identifier: Apache-2.0 */
/* Building: the kernels that a graph uses, its own and the library's. */
#include "base/error.h"
#include "graph/build/build_state.h"

uint32_t gy_build_use_kernel(gantry_graph *graph, const gy_kernel *kernel)
{
    bool is_new;
    uint32_t index = gy_names_add(&graph->build_->kernel_names, kernel->manifest->name, &is_new);
    if (index == GY_NO_NAME || !gy_vec_push(&graph->kernels, *kernel)) {
        gy_build_nomem(graph);
        return GY_NONE;
    }
    return index;
}

/* Compiles a manifest and gives it the next index; GY_NONE with the mistake noted. */
static uint32_t use_kernel(gantry_graph *g, const gantry_kernel *manifest, const gy_kernel_code *code)
{
    gantry_error err;
    gy_kernel kernel;
    gantry_status status = gy_kernel_compile(&kernel, &g->arena, manifest, &err);
    if (status) {
        gy_graph_mistake(g, status, "%s", err.text);
        return GY_NONE;
    }
    kernel.code = code;
    return gy_build_use_kernel(g, &kernel);
}

/* The kernel of that name in use by the graph (its own first, then the library's), or GY_NONE. Reports nothing. */
static uint32_t find_kernel(gantry_graph *graph, const char *name)
{
    uint32_t index = gy_names_find(&graph->build_->kernel_names, name);
    if (index != GY_NO_NAME)
        return index;
    const gantry_kernel *manifest = gantry_kernel_find(name);
    return manifest ? use_kernel(graph, manifest, NULL) : GY_NONE;
}

uint32_t gy_build_kernel(gantry_graph *graph, const char *name)
{
    if (!name) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, "a kernel node without the name of a kernel");
        return GY_NONE;
    }
    uint32_t index = find_kernel(graph, name);
    if (index != GY_NONE || graph->error.status)
        return index;
    gy_near near = { 0 };
    for (uint32_t i = 0; i < graph->build_->kernel_names.count; i++)
        gy_near_offer(&near, name, gy_names_at(&graph->build_->kernel_names, i));
    for (size_t i = 0; i < gantry_kernel_count(); i++)
        gy_near_offer(&near, name, gantry_kernel_at(i)->name);
    if (near.best) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "there is no kernel \"%s\" (did you mean \"%s\"?)", name, near.best);
    } else {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "there is no kernel \"%s\"; `gantry kernels` lists the library's, gantry_graph_add_kernel and "
                         "\"kernels\" in a file add others",
                         name);
    }
    return GY_NONE;
}

const gantry_kernel *gy_build_manifest(gantry_graph *graph, const gantry_kernel *given)
{
    const gantry_kernel *manifest = NULL;
    gantry_error err;
    gantry_status status = gy_kernel_read(&manifest, &graph->arena, given, &err);
    if (status)
        gy_graph_mistake(graph, status, "%s", err.text);
    return manifest;
}

void gy_graph_add_kernel_code(gantry_graph *graph, const gantry_kernel *manifest, const gy_kernel_code *code)
{
    if (!gy_building(graph))
        return;
    if (manifest->name && gy_names_find(&graph->build_->kernel_names, manifest->name) != GY_NO_NAME) {
        gy_graph_mistake(
            graph, GANTRY_E_GRAPH,
            "kernel \"%s\" is already in use by this graph; add it once, before the first node that uses it",
            manifest->name);
        return;
    }
    if (!(manifest->flags & GANTRY_KERNEL_NO_CPU) && !manifest->host && !code) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "kernel \"%s\" has no host version; give one, or set GANTRY_KERNEL_NO_CPU",
                         manifest->name ? manifest->name : "");
        return;
    }
    use_kernel(graph, manifest, code);
}

void gantry_graph_add_kernel(gantry_graph *graph, const gantry_kernel *kernel)
{
    const gantry_kernel *manifest = gy_building(graph) ? gy_build_manifest(graph, kernel) : NULL;
    if (manifest)
        gy_graph_add_kernel_code(graph, manifest, NULL);
}
