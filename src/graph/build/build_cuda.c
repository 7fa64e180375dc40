/* SPDX-License-Identifier: Apache-2.0 */
/* Building: kernels with CUDA code of the program. It becomes what a graph file's code is, with the image or the
 * handles in place of a file. */
#include "base/error.h"
#include "base/versioned.h"
#include "graph/build/build.h"
#include "graph/build/build_state.h"

#include <string.h>

typedef struct making {
    gantry_graph *g;
    const gantry_kernel *manifest;
    const gantry_cuda_code *from;
    gy_kernel_code *code;
} making;

/* False with the mistake noted, as all of these. */
static bool compile(const making *m, const gy_expr **out, const char *what, const char *text)
{
    gantry_error err;
    gantry_status status = gy_kernel_formula(out, &m->g->arena, m->manifest, what, text, &err);
    if (status)
        gy_graph_mistake(m->g, status, "%s", err.text);
    return status == GANTRY_OK;
}

static bool make_launch(const making *m)
{
    if (m->from->launch)
        return true;
    if (!m->from->grid[0] || !m->from->block[0]) {
        gy_graph_mistake(m->g, GANTRY_E_INVALID,
                         "the CUDA code of kernel \"%s\" does not say how many threads a launch has; give grid[0] and "
                         "block[0]",
                         m->manifest->name);
        return false;
    }
    bool fine = true;
    for (int i = 0; i < 3 && fine; i++) {
        fine = compile(m, &m->code->grid[i], "grid", m->from->grid[i]) &&
               compile(m, &m->code->block[i], "block", m->from->block[i]);
    }
    return fine;
}

static bool is_region(void *context, const char *name)
{
    (void)context;
    return strchr(name, '.') != NULL;
}

static bool make_default(const making *m, const gy_expr **out, int32_t i)
{
    const gantry_kernel_arg *arg = &m->manifest->arg[i];
    if (!arg->scalar || !arg->optional) {
        gy_graph_mistake(m->g, GANTRY_E_INVALID,
                         "kernel \"%s\": argument \"%s\" has a default and is no optional scalar in the manifest",
                         m->manifest->name, arg->name);
        return false;
    }
    if (!compile(m, out, "the default", m->from->defaults[i]))
        return false;
    if (!gy_expr_names(*out, is_region, NULL)) {
        gy_graph_mistake(
            m->g, GANTRY_E_INVALID,
            "kernel \"%s\": the default \"%s\" of argument \"%s\" may use regions, as in \"x.size\", and no "
            "other numbers",
            m->manifest->name, m->from->defaults[i], arg->name);
        return false;
    }
    return true;
}

static bool make_scalars(const making *m)
{
    size_t count = (size_t)m->manifest->args;
    gantry_dtype *types = gy_arena_calloc(&m->g->arena, count + 1, sizeof *types);
    const gy_expr **fallback = gy_arena_calloc(&m->g->arena, count + 1, sizeof *fallback);
    if (!types || !fallback) {
        gy_build_nomem(m->g);
        return false;
    }
    for (int32_t i = 0; i < m->manifest->args; i++) {
        types[i] = m->from->types && m->manifest->arg[i].scalar ? m->from->types[i] : GANTRY_F64;
        if (!gantry_dtype_name(types[i])) {
            gy_graph_mistake(m->g, GANTRY_E_INVALID,
                             "kernel \"%s\": argument \"%s\" is passed as type %d, which is none", m->manifest->name,
                             m->manifest->arg[i].name, (int)types[i]);
            return false;
        }
        if (m->from->defaults && m->from->defaults[i] && !make_default(m, &fallback[i], i))
            return false;
    }
    m->code->types = types;
    m->code->fallback = fallback;
    return true;
}

static bool make_program(const making *m)
{
    const gantry_cuda_code *from = m->from;
    gy_kernel_program *program = gy_arena_calloc(&m->g->arena, 1, sizeof *program);
    const char *entry = gy_arena_strdup(&m->g->arena, from->entry ? from->entry : m->manifest->name);
    const char *source = from->source ? gy_arena_strdup(&m->g->arena, from->source) : NULL;
    if (!program || !entry || (from->source && !source)) {
        gy_build_nomem(m->g);
        return false;
    }
    *program = (gy_kernel_program){ from->image,        from->bytes, from->function, from->user,
                                    from->shared_bytes, source,      from->launch };
    m->code->program = program;
    m->code->entry = entry;
    return true;
}

static bool take_code(gantry_graph *g, gantry_cuda_code *code, const gantry_cuda_code *given)
{
    gantry_error err = { .status = GANTRY_E_INVALID, .text = "no CUDA code is given: the gantry_cuda_code is NULL" };
    if (!given || gy_struct_read(code, sizeof *code, given, "gantry_cuda_code", &err)) {
        gy_graph_mistake(g, err.status, "%s", err.text);
        return false;
    }
    return true;
}

static bool check_form(gantry_graph *g, const gantry_kernel *kernel, const gantry_cuda_code *code)
{
    int forms = !!code->image + !!code->function + !!code->source + !!code->launch;
    if (forms != 1) {
        gy_graph_mistake(g, GANTRY_E_INVALID,
                         "the CUDA code of kernel \"%s\" is given in %d ways; give one of an image with its bytes, a "
                         "function that gives handles, a source, and a function that launches",
                         kernel->name, forms);
    } else if (code->image && code->bytes < 4) {
        gy_graph_mistake(g, GANTRY_E_INVALID, "the image of the CUDA code of kernel \"%s\" has %zu bytes; at least 4",
                         kernel->name, code->bytes);
    } else if (code->launch && (code->grid[0] || code->block[0] || code->entry || code->shared_bytes)) {
        gy_graph_mistake(g, GANTRY_E_INVALID,
                         "kernel \"%s\" has a function that launches, which chooses grid, block, entry and shared "
                         "memory by itself; leave them out",
                         kernel->name);
    } else if (code->shared_bytes < 0) {
        gy_graph_mistake(g, GANTRY_E_INVALID, "kernel \"%s\" has %lld bytes of shared memory; at least 0", kernel->name,
                         (long long)code->shared_bytes);
    } else if (!kernel->host && !(kernel->flags & GANTRY_KERNEL_NO_CPU)) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "kernel \"%s\" has no host version; give one, or set GANTRY_KERNEL_NO_CPU",
                         kernel->name);
    }
    return g->error.status == GANTRY_OK;
}

void gantry_graph_add_cuda_kernel(gantry_graph *graph, const gantry_kernel *kernel, const gantry_cuda_code *code)
{
    gy_kernel compiled;
    gantry_error err;
    gantry_cuda_code from = GANTRY_CUDA_CODE_INIT;
    const gantry_kernel *manifest = gy_building(graph) ? gy_build_manifest(graph, kernel) : NULL;
    if (!manifest || !take_code(graph, &from, code))
        return;
    gantry_status status = gy_kernel_compile(&compiled, &graph->arena, manifest, &err);
    if (status) {
        gy_graph_mistake(graph, status, "%s", err.text);
        return;
    }
    making m = { graph, manifest, &from, gy_arena_calloc(&graph->arena, 1, sizeof *m.code) };
    if (!m.code) {
        gy_build_nomem(graph);
        return;
    }
    if (check_form(graph, manifest, &from) && make_launch(&m) && make_scalars(&m) && make_program(&m))
        gy_graph_add_kernel_code(graph, manifest, m.code);
}
