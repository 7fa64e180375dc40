/* SPDX-License-Identifier: Apache-2.0 */
/* Building: the kernels that a graph uses, its own and the library's. */
#include "base/error.h"
#include "graph/build/build_state.h"
#include "graph/halo.h"
#include "maths/maths.h"
#include <stdio.h>
#include <string.h>

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

/* ---- what a manifest says in formulas ---- */

static gantry_status fail_formula(const gantry_kernel *k, gantry_status status, gantry_error *err, const char *why)
{
    return status == GANTRY_E_NOMEM
               ? gy_fail_nomem(err)
               : gy_fail(err, status, NULL, "kernel \"%s\": formula \"%.80s\": %s", k->name, k->formula, why);
}

/* Its formulas give the arguments that are written, and name all. */
static gantry_status check_formula(const gantry_kernel *k, const gy_maths *m, gantry_error *err)
{
    char why[160];
    for (uint32_t i = 0; i < m->results; i++)
        if (m->result[i].axes)
            return fail_formula(k, GANTRY_E_GRAPH, err,
                                "reductions of a manifest are of all elements, without an axis");
    if (m->args > (uint32_t)k->args) {
        snprintf(why, sizeof why, "the kernel has no argument \"%.60s\"", m->arg[k->args]);
        return fail_formula(k, GANTRY_E_GRAPH, err, why);
    }
    for (uint32_t i = 0; i < m->args; i++) {
        const gantry_kernel_arg *a = &k->arg[i];
        bool is_given = !a->scalar && a->access != GANTRY_READ;
        if (m->is_written[i] == is_given && (m->is_read[i] || m->is_written[i]) && !a->optional)
            continue;
        snprintf(why, sizeof why, "argument \"%.60s\" %s", a->name,
                 a->optional        ? "is optional, and arguments of formulas are always given"
                 : is_given         ? "is written, and no formula gives it: add one"
                 : m->is_written[i] ? "is not written, so no formula gives it"
                                    : "is in no formula; the formulas of a kernel name all of its arguments");
        return fail_formula(k, GANTRY_E_GRAPH, err, why);
    }
    return GANTRY_OK;
}

static gantry_status read_as(const gantry_kernel *k, gy_arena *arena, bool reduces, gy_maths **out, gantry_error *err)
{
    gantry_error inner;
    gy_maths *m = *out = gy_arena_calloc(arena, 1, sizeof *m);
    if (!m)
        return gy_fail_nomem(err);
    m->reduces = reduces;
    for (; m->args < (uint32_t)k->args && m->args < GY_MATHS_ARGS; m->args++)
        m->arg[m->args] = k->arg[m->args].name;
    gantry_status status = gy_maths_add_all(m, arena, k->formula, GANTRY_E_GRAPH, NULL, &inner);
    return status ? fail_formula(k, status, err, inner.text) : GANTRY_OK;
}

/* A formula with a reduction is that of a reduce node. */
static gantry_status read_formula(const gantry_kernel *k, gy_arena *arena, const gy_maths **out, gantry_error *err)
{
    gy_maths *m;
    *out = NULL;
    if (!k->formula)
        return GANTRY_OK;
    GY_TRY(read_as(k, arena, true, &m, err));
    bool reduces = false;
    for (uint32_t i = 0; i < m->results; i++)
        reduces = reduces || gy_maths_is_reduced(m, i);
    if (!reduces)
        GY_TRY(read_as(k, arena, false, &m, err));
    GY_TRY(check_formula(k, m, err));
    *out = m;
    return GANTRY_OK;
}

/* ---- kernels in use ---- */

/* Compiles a manifest and gives it the next index; GY_NONE with the mistake noted. */
static uint32_t use_kernel(gantry_graph *g, const gantry_kernel *manifest, const gy_kernel_code *code)
{
    gantry_error err;
    gy_kernel kernel;
    gantry_status status = gy_kernel_compile(&kernel, &g->arena, manifest, &err);
    status = status ? status : read_formula(manifest, &g->arena, &kernel.formula, &err);
    if (status) {
        gy_graph_mistake(g, status, "%s", err.text);
        return GY_NONE;
    }
    kernel.code = code;
    kernel.like = gy_halo_moves(manifest) ? "axpby" : NULL;
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

/* Kernels by the names that NumPy, PyTorch and BLAS have for them. */
static const char *known_as(const char *name)
{
    static const char *const names[][2] = {
        { "matmul", "gemm" },
        { "mm", "gemm" },
        { "sgemm", "gemm" },
        { "dgemm", "gemm" },
        { "bmm", "gemm_batched" },
        { "cholesky", "potrf" },
        { "lu", "getrf" },
        { "conv", "conv2d" },
        { "convolve", "conv2d" },
        { "sum", "reduce_sum" },
        { "max", "reduce_max" },
        { "multiply", "mul" },
        { "layer_norm", "layernorm" },
        { "cross_entropy", "softmax_xent" },
        { "axpy", "saxpy" },
        { "daxpy", "saxpy" },
        { "cumsum", "scan" },
        { "prefix_sum", "scan" },
        { "rfft", "fft" },
        { "ifft", "fft" },
        { "bincount", "histogram" },
        { "topk", "top_k" },
        { "solve", "getrs" },
        { "spmv", "spmv_csr" },
        { "spmm", "spmm_csr" },
        { "stencil", "jacobi2d" },
        { "correlate", "filter2d" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

static const char *nearest_kernel(const gantry_graph *graph, const char *name)
{
    gy_near near = { .best = known_as(name) };
    if (near.best)
        return near.best;
    for (uint32_t i = 0; i < graph->build_->kernel_names.count; i++)
        gy_near_offer(&near, name, gy_names_at(&graph->build_->kernel_names, i));
    for (size_t i = 0; i < gantry_kernel_count(); i++)
        gy_near_offer(&near, name, gantry_kernel_at(i)->name);
    return near.best;
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
    const char *meant = nearest_kernel(graph, name);
    if (meant) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "there is no kernel \"%s\" (did you mean \"%s\"?)", name, meant);
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
