/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building: map nodes. A graph makes a kernel of its own for the formulas of a node. While the node is built nobody
 * knows which names are numbers and which types elements have, so its first kernel takes a region for each name; when
 * the graph is checked, the node gets the kernel for the arguments that it was given. Nodes with equal formulas and
 * types share one.
 */
#include "base/error.h"
#include "base/map.h"
#include "graph/build/build_state.h"

#include <inttypes.h>
#include <string.h>

/* ---- manifests ---- */

static gantry_access access_of(const gy_maths *m, uint32_t arg)
{
    return m->is_written[arg] ? m->is_read[arg] ? GANTRY_READWRITE : GANTRY_WRITE : GANTRY_READ;
}

/* A reduction may also be added to what other nodes give; a mean may not. */
static uint32_t accesses_of(const gy_maths *m, uint32_t arg)
{
    static const gantry_access also[GY_MATHS_REDUCTIONS] = {
        [GY_MATHS_TOTAL] = GANTRY_SUM, [GY_MATHS_LEAST] = GANTRY_MIN, [GY_MATHS_MOST] = GANTRY_MAX
    };
    uint32_t accesses = GANTRY_ACCESS_BIT(access_of(m, arg));
    for (uint32_t i = 0; i < m->results; i++)
        if (m->result[i].arg == arg && also[m->result[i].reduction] && !m->is_read[arg])
            accesses |= GANTRY_ACCESS_BIT(also[m->result[i].reduction]);
    return accesses;
}

static gantry_kernel_arg make_arg(const gy_maths *m, const gy_maths_kind *kind, uint32_t arg)
{
    if (kind && kind[arg].is_number)
        return (gantry_kernel_arg){ .name = m->arg[arg], .scalar = GANTRY_FACTOR };
    return (gantry_kernel_arg){ .name = m->arg[arg],
                                .access = access_of(m, arg),
                                .accesses = accesses_of(m, arg),
                                .dtypes = kind ? GANTRY_DTYPE_BIT(kind[arg].dtype) : 0 };
}

/* Two kernels have one name only if their formulas and types are the same, so measured times are for all graphs. */
static const char *name_of(gantry_graph *g, const char *key)
{
    return gy_arena_printf(&g->arena, "map_%016" PRIx64, gy_hash_bytes(key, strlen(key), 0));
}

/* ---- what CUDA code is given beside the arguments ---- */

/* A region that is only read may have one element for all. */
static bool has_step(const gy_maths *m, const gy_maths_kind *kind, uint32_t arg)
{
    return !m->is_written[arg] && !kind[arg].is_number;
}

/* Adds a scalar that nodes do not give, as no name of a formula begins with '_'. */
static bool add_hidden(gantry_graph *g, const gantry_kernel *manifest, gantry_kernel_arg *arg, const gy_expr **value,
                       const char *formula)
{
    *arg = (gantry_kernel_arg){ .name = arg->name, .scalar = 1, .optional = 1 };
    return arg->name && formula &&
           gy_kernel_formula(value, &g->arena, manifest, "the default", formula, NULL) == GANTRY_OK;
}

static uint32_t hidden_args(const gy_maths *m, const gy_maths_kind *kind)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < m->args; i++)
        count += has_step(m, kind, i);
    return count;
}

/* The launch of the code that gy_maths_print_cuda makes, in the order of its parameters. False: out of memory. */
static bool make_code(gantry_graph *g, gy_kernel *kernel, gantry_kernel_arg *arg)
{
    const gy_maths *m = kernel->maths;
    const gy_maths_kind *kind = kernel->program->kind;
    const gantry_kernel *manifest = kernel->manifest;
    size_t count = (size_t)manifest->args;
    gy_kernel_code *code = gy_arena_calloc(&g->arena, 1, sizeof *code);
    gantry_dtype *types = gy_arena_calloc(&g->arena, count, sizeof *types);
    const gy_expr **value = gy_arena_calloc(&g->arena, count, sizeof *value);
    const char *model = m->arg[m->result[0].arg];
    uint32_t next = m->args;
    if (!code || !types || !value)
        return false;
    for (uint32_t i = 0; i < count; i++)
        types[i] = i < m->args ? GANTRY_F64 : GANTRY_I64;
    arg[next].name = "_n";
    bool made = add_hidden(g, manifest, &arg[next], &value[next], gy_arena_printf(&g->arena, "%s.size", model));
    for (uint32_t i = 0; i < m->args && made; i++) {
        if (!has_step(m, kind, i))
            continue;
        arg[++next].name = gy_arena_printf(&g->arena, "_step_%s", m->arg[i]);
        made = add_hidden(g, manifest, &arg[next], &value[next],
                          gy_arena_printf(&g->arena, "min(1, %s.size - 1)", m->arg[i]));
    }
    code->types = types;
    code->fallback = value;
    kernel->code = code;
    const char *grid = gy_arena_printf(&g->arena, "ceil_div(_n, %d)", GY_MATHS_BLOCK_ELEMENTS);
    const char *block = gy_arena_printf(&g->arena, "%d", GY_MATHS_BLOCK);
    return made && grid && block &&
           gy_kernel_formula(&code->grid[0], &g->arena, manifest, "grid", grid, NULL) == GANTRY_OK &&
           gy_kernel_formula(&code->block[0], &g->arena, manifest, "block", block, NULL) == GANTRY_OK;
}

/* ---- the manifest ---- */

static const char *flops_of(gantry_graph *g, const gy_maths_program *program)
{
    const gy_maths *m = program->maths;
    char number[GY_DOUBLE_TEXT];
    gy_text size = { 0 };
    for (uint32_t i = 0; i < m->args; i++)
        if (m->reduces ? has_step(m, program->kind, i) : i == m->result[0].arg)
            gy_text_printf(&size, ", %s.size", m->arg[i]);
    const char *text = size.failed ? NULL
                                   : gy_arena_printf(&g->arena, "%s * max(0%s)",
                                                     gy_double_text(number, sizeof number, program->flops), size.at);
    gy_text_free(&size);
    return text;
}

/* NULL: out of memory. `kind` and `program` are NULL where types are not known. */
static const gantry_kernel *make_manifest(gantry_graph *g, const char *key, const gy_maths *m,
                                          const gy_maths_kind *kind, const gy_maths_program *program,
                                          gantry_kernel_arg **args)
{
    uint32_t count = m->args + (program && !m->reduces ? hidden_args(m, kind) : 0);
    gantry_kernel *manifest = gy_arena_calloc(&g->arena, 1, sizeof *manifest);
    gantry_kernel_arg *arg = *args = gy_arena_calloc(&g->arena, count, sizeof *arg);
    const char *name = name_of(g, key), *summary = gy_arena_strdup(&g->arena, key);
    const char *flops = program ? flops_of(g, program) : "";
    if (!manifest || !arg || !name || !summary || !flops)
        return NULL;
    for (uint32_t i = 0; i < m->args; i++)
        arg[i] = make_arg(m, kind, i);
    for (uint32_t i = m->args; i < count; i++) /* so that formulas know nothing of them before they have names */
        arg[i] = (gantry_kernel_arg){ .name = "_", .scalar = 1, .optional = 1 };
    *manifest = (gantry_kernel){ .struct_size = sizeof *manifest,
                                 .name = name,
                                 .summary = summary,
                                 .arg = arg,
                                 .arg_size = sizeof *arg,
                                 .args = (int32_t)count,
                                 .flags = GANTRY_KERNEL_PURE | (m->reduces ? GANTRY_KERNEL_NO_GPU : 0u),
                                 .flops = program ? flops : NULL,
                                 .host = gy_maths_run,
                                 .check = gy_maths_check };
    return manifest;
}

/* ---- kernels ---- */

/* The kernel that was made for the key, GY_NONE: none yet, or one that only looks like it, a mistake. */
static uint32_t find_kernel(gantry_graph *g, const char *key)
{
    const char *name = name_of(g, key);
    uint32_t index = name ? gy_names_find(&g->build_->kernel_names, name) : GY_NO_NAME;
    if (!name)
        gy_build_nomem(g);
    if (!name || index == GY_NO_NAME)
        return GY_NONE;
    const gy_kernel *found = &g->kernels.at[index];
    if (found->maths && strcmp(found->manifest->summary, key) == 0)
        return index;
    gy_graph_mistake(g, GANTRY_E_GRAPH, "kernel \"%s\" of the graph has the name of the formulas \"%.80s\": rename it",
                     name, key);
    return GY_NONE;
}

static uint32_t make_kernel(gantry_graph *g, const char *key, const gy_maths *m, const gy_maths_kind *kind,
                            const gy_maths_program *program)
{
    gantry_error err;
    gy_kernel kernel = { 0 };
    gantry_kernel_arg *args;
    kernel.manifest = make_manifest(g, key, m, kind, program, &args);
    kernel.maths = m;
    kernel.program = program;
    bool made = kernel.manifest && (!program || m->reduces || make_code(g, &kernel, args));
    const gy_kernel_code *code = kernel.code;
    gantry_status status = made ? gy_kernel_compile(&kernel, &g->arena, kernel.manifest, &err) : gy_fail_nomem(&err);
    if (status) {
        gy_graph_mistake(g, status, "%s", err.text);
        return GY_NONE;
    }
    kernel.maths = m;
    kernel.program = program;
    kernel.code = code;
    return gy_build_use_kernel(g, &kernel);
}

/* ---- nodes ---- */

gantry_node gy_graph_map_with(gantry_graph *graph, const char *id, const gy_maths *maths)
{
    gantry_node none = { GANTRY_NONE, 0 };
    if (!gy_building(graph))
        return none;
    gy_text key = { 0 };
    gy_maths_print(&key, maths);
    if (key.failed) {
        gy_text_free(&key);
        gy_build_nomem(graph);
        return none;
    }
    uint32_t index = find_kernel(graph, key.at);
    if (index == GY_NONE && !graph->error.status)
        index = make_kernel(graph, key.at, maths, NULL, NULL);
    gy_text_free(&key);
    gy_node *node =
        index == GY_NONE ? NULL : gy_build_add_node(graph, id, maths->reduces ? "reduce" : "map", GY_NODE_KERNEL);
    if (node)
        node->kernel = index;
    return gy_node_handle(graph, node);
}

static gantry_node add_formulas(gantry_graph *graph, const char *id, const char *formulas, bool reduces)
{
    const char *sort = reduces ? "reduce" : "map";
    gantry_node none = { GANTRY_NONE, 0 };
    if (!gy_building(graph))
        return none;
    if (!formulas) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, "a %s node without formulas; write \"%s\"", sort,
                         reduces ? "s = sum(x)" : "y = sqrt(x)");
        return none;
    }
    gantry_error err;
    gy_maths *maths = gy_arena_calloc(&graph->arena, 1, sizeof *maths);
    if (maths)
        maths->reduces = reduces;
    gantry_status status =
        maths ? gy_maths_add_all(maths, &graph->arena, formulas, GANTRY_E_GRAPH, NULL, &err) : gy_fail_nomem(&err);
    if (status) {
        gy_graph_mistake(graph, status, "node \"%s\": %s", id ? id : sort, err.text);
        return none;
    }
    return gy_graph_map_with(graph, id, maths);
}

gantry_node gantry_graph_map(gantry_graph *graph, const char *id, const char *formulas)
{
    return add_formulas(graph, id, formulas, false);
}

gantry_node gantry_graph_reduce(gantry_graph *graph, const char *id, const char *formulas)
{
    return add_formulas(graph, id, formulas, true);
}

/* ---- when all arguments are given ---- */

/* Accesses and scalars are sorted by argument, and each is given once. */
static gantry_status find_kinds(const gantry_graph *g, const gy_node *n, const gy_maths *m, gy_maths_kind *kind,
                                gantry_error *err)
{
    bool is_given[GY_MATHS_ARGS] = { false };
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_access *a = &g->access.at[n->access + i];
        if (a->arg >= m->args)
            return gy_graph_fail(g, n->origin, err, GANTRY_E_GRAPH,
                                 "node \"%s\" accesses \"%s\" beside its arguments: name it in a formula", n->id,
                                 g->buffers.at[a->buffer].name);
        is_given[a->arg] = true;
        kind[a->arg] = (gy_maths_kind){ .dtype = g->buffers.at[a->buffer].dtype };
    }
    for (uint32_t i = 0; i < n->scalars; i++) {
        uint32_t arg = g->scalar.at[n->scalar + i].arg;
        is_given[arg] = true;
        kind[arg] = (gy_maths_kind){ .is_number = true, .dtype = GANTRY_F64 };
    }
    for (uint32_t i = 0; i < m->args; i++) {
        if (!is_given[i]) {
            return gy_graph_fail_in(g, n->origin, "/args", err, GANTRY_E_GRAPH,
                                    "node \"%s\": argument \"%s\" of its formulas is missing; give it %s", n->id,
                                    m->arg[i], m->is_written[i] ? "a region of a buffer" : "a region or a number");
        }
    }
    return GANTRY_OK;
}

/* "y = sqrt(x) * s (y f32, x f32, s number)" */
static bool make_key(gy_text *key, const gy_maths *m, const gy_maths_kind *kind)
{
    gy_maths_print(key, m);
    for (uint32_t i = 0; i < m->args; i++)
        gy_text_printf(key, "%s%s %s", i ? ", " : " (", m->arg[i],
                       kind[i].is_number ? "number" : gantry_dtype_name(kind[i].dtype));
    gy_text_add(key, ")");
    return !key->failed;
}

static gantry_status make_typed(gantry_graph *g, const gy_node *n, const char *key, const gy_maths *m,
                                const gy_maths_kind *kind, uint32_t *index, gantry_error *err)
{
    const gy_maths_program *program;
    gantry_error inner;
    gantry_status status = gy_maths_make_program(&program, &g->arena, m, kind, GANTRY_E_GRAPH, NULL, &inner);
    if (status)
        return gy_graph_fail_in(g, n->origin, m->reduces ? "/reduce" : "/map", err, status, "node \"%s\": %s", n->id,
                                inner.text);
    *index = make_kernel(g, key, m, program->kind, program);
    return g->error.status;
}

static gantry_status resolve(gantry_graph *g, uint32_t node, gantry_error *err)
{
    gy_node *n = &g->nodes.at[node];
    const gy_maths *m = g->kernels.at[n->kernel].maths;
    gy_maths_kind kind[GY_MATHS_ARGS];
    gy_text key = { 0 };
    GY_TRY(find_kinds(g, n, m, kind, err));
    bool made = make_key(&key, m, kind);
    gantry_status status = made ? GANTRY_OK : gy_fail_nomem(err);
    uint32_t index = made ? find_kernel(g, key.at) : GY_NONE;
    status = status ? status : g->error.status;
    if (!status && index == GY_NONE)
        status = make_typed(g, n, key.at, m, kind, &index, err);
    gy_text_free(&key);
    n->kernel = status ? n->kernel : index;
    return status;
}

gantry_status gy_build_maps(gantry_graph *graph, gantry_error *err)
{
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        uint32_t kernel = graph->nodes.at[i].kernel;
        if (kernel != GY_NONE && graph->kernels.at[kernel].maths && !graph->kernels.at[kernel].program)
            GY_TRY(resolve(graph, i, err));
    }
    return GANTRY_OK;
}
