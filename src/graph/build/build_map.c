/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building: map nodes. A graph makes a kernel of its own for the formulas of a node. While the node is built nobody
 * knows which names are numbers and which types elements have, so its first kernel takes a region for each name; when
 * the graph is checked, the node gets the kernel for the arguments that it was given. Nodes with equal formulas and
 * types share one.
 */
#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "graph/build/build_state.h"

#include <inttypes.h>
#include <string.h>

/* ---- manifests ---- */

static gantry_access access_of(const gy_maths *m, uint32_t arg)
{
    return m->is_written[arg] ? m->is_read[arg] ? GANTRY_READWRITE : GANTRY_WRITE : GANTRY_READ;
}

/* A reduction may also be added to what other nodes give; a mean and the number of an element may not. */
static uint32_t accesses_of(const gy_maths *m, uint32_t arg)
{
    static const gantry_access also[GY_MATHS_REDUCTIONS] = {
        [GY_MATHS_TOTAL] = GANTRY_SUM, [GY_MATHS_LEAST] = GANTRY_MIN, [GY_MATHS_MOST] = GANTRY_MAX,
        [GY_MATHS_ANY] = GANTRY_MAX,   [GY_MATHS_ALL] = GANTRY_MIN,
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
    bool is_total = m->reduces && m->is_written[arg];
    return (gantry_kernel_arg){ .name = m->arg[arg],
                                .access = access_of(m, arg),
                                .accesses = accesses_of(m, arg),
                                .dtypes = kind       ? GANTRY_DTYPE_BIT(kind[arg].dtype)
                                          : is_total ? 0
                                                     : GY_USUAL_DTYPES | GY_F8_DTYPES };
}

/* Two kernels have one name only if their formulas and types are the same, so measured times are for all graphs. */
static const char *name_of(gantry_graph *g, const char *key)
{
    return gy_arena_printf(&g->arena, "map_%016" PRIx64, gy_hash_bytes(key, strlen(key), 0));
}

/* ---- what CUDA code is given beside the arguments ---- */

/* A kernel while its code is described: scalars that nodes do not give are added to its manifest one by one. */
typedef struct coding {
    gantry_graph *graph;
    const gy_kernel *kernel;
    gantry_kernel_arg *arg;
    const gy_expr **value;
    uint32_t next;
    bool failed;
} coding;

/* Names of formulas do not begin with '_'. */
static void add_hidden(coding *c, const char *name, const char *formula)
{
    gantry_kernel_arg *arg = &c->arg[c->next];
    arg->name = name;
    c->failed = c->failed || !name || !formula ||
                gy_kernel_formula(&c->value[c->next], &c->graph->arena, c->kernel->manifest, "the default", formula,
                                  NULL) != GANTRY_OK;
    c->next++;
}

/* "x.rows * x.shape1": the extents of the model along some axes, "1" for none. */
static const char *extents_in(gantry_graph *g, const gy_maths_program *p, uint32_t first, uint32_t last)
{
    gy_text text = { 0 };
    for (uint32_t i = first; i < last; i++) {
        uint32_t arg = p->is_joint ? p->axis[i].arg : p->model, axis = p->is_joint ? p->axis[i].axis : i;
        gy_text_printf(&text, "%s%s", i > first ? " * " : "", p->maths->arg[arg]);
        if (axis)
            gy_text_printf(&text, ".shape%u", axis);
        else
            gy_text_add(&text, ".rows");
    }
    const char *made = text.failed ? NULL : gy_arena_strdup(&g->arena, text.at ? text.at : "1");
    gy_text_free(&text);
    return made;
}

/* The same for those of the axes up to the last reduced one that are reduced, or are not. */
static const char *extents_among(const coding *c, bool is_reduced)
{
    gy_arena *arena = &c->graph->arena;
    const gy_maths_runs *along = &c->kernel->program->along;
    const char *text = NULL;
    for (uint32_t i = 0; i < gy_maths_end_of(along); i++) {
        if (gy_maths_is_along(along, i) != is_reduced)
            continue;
        const char *one = extents_in(c->graph, c->kernel->program, i, i + 1);
        text = !one || !text ? one : gy_arena_printf(arena, "%s * %s", text, one);
        if (!text)
            return NULL;
    }
    return text ? text : "1";
}

static const char *extents_of(const coding *c, uint32_t first, uint32_t last)
{
    return extents_in(c->graph, c->kernel->program, first, last);
}

/* The end of the axes that are numbered together with this one: of a map all, of a reduction those before the reduced
 * ones, these, or those behind. */
static uint32_t end_of_group(const gy_maths_program *p, uint32_t axis)
{
    uint32_t first = gy_maths_begin_of(&p->along), last = gy_maths_end_of(&p->along);
    if (!p->maths->reduces || gy_maths_is_apart(p))
        return p->rank;
    return axis < first ? first : axis < last ? last : p->rank;
}

/* The factor that stands for a divisor in quotients; see maths.h. */
static void add_reciprocal(coding *c, const char *divisor)
{
    gy_arena *arena = &c->graph->arena;
    add_hidden(c, divisor ? gy_arena_printf(arena, "_by%s", divisor) : NULL,
               divisor ? gy_arena_printf(arena, "ceil_div(4611686018427387904, max(1, %s))", divisor) : NULL);
}

/* The product of the extents from an axis on to the end of its group, as a divisor, and its factor. */
static void add_divisor(coding *c, const char *kind, uint32_t arg, uint32_t run, uint32_t axis)
{
    gy_arena *arena = &c->graph->arena;
    const gy_maths_program *p = c->kernel->program;
    const char *name = p->maths->arg[arg];
    const char *key = run ? gy_arena_printf(arena, "%s%u", kind, run) : kind;
    const char *hidden = key ? gy_arena_printf(arena, "_%s_%s", key, name) : NULL;
    add_hidden(c, hidden, extents_of(c, axis, end_of_group(p, axis)));
    add_reciprocal(c, hidden);
}

/* How far apart elements of the regions that are read are. */
static void add_steps(coding *c)
{
    const gy_maths_program *p = c->kernel->program;
    gy_arena *arena = &c->graph->arena;
    for (uint32_t i = 0; i < p->maths->args; i++) {
        const char *name = p->maths->arg[i];
        const gy_maths_kind *kind = &p->kind[i];
        for (uint32_t run = 0; run < kind->runs; run++) {
            if (gy_maths_has_period(p, i, run))
                add_divisor(c, "period", i, run, kind->run[run].first);
            if (gy_maths_has_inner(p, i, run))
                add_divisor(c, "inner", i, run, kind->run[run].last);
        }
        if (!kind->is_spread && gy_maths_has_step(p, i))
            add_hidden(c, gy_arena_printf(arena, "_step_%s", name),
                       gy_arena_printf(arena, "min(1, %s.size - 1)", name));
    }
}

static uint32_t hidden_args(const gy_maths_program *p)
{
    uint32_t count = p->maths->reduces ? 5 : 1;
    count += gy_maths_is_apart(p) ? 4 * p->along.count - 3 : 0;
    for (uint32_t i = 0; i < p->maths->args; i++) {
        for (uint32_t run = 0; run < p->kind[i].runs; run++)
            count += 2 * (uint32_t)gy_maths_has_period(p, i, run) + 2 * (uint32_t)gy_maths_has_inner(p, i, run);
        count += !p->kind[i].is_spread && gy_maths_has_step(p, i);
    }
    return count;
}

/* Elements of a result that are one segment. */
static int segment_of(const gy_maths_program *p)
{
    return p->is_columns ? GY_MATHS_COLUMN : GY_MATHS_SEGMENT;
}

/* Neighbouring segments that a block has, so that less is left for the launch that ends it: as many as leave blocks for
 * all of the GPU, twice. */
static const char *run_of(const coding *c)
{
    enum { BLOCKS = 1024 };
    gy_text text = { 0 };
    gy_text_add(&text, "1");
    for (int run = 2; run <= gy_maths_most_run(c->kernel->program->maths); run *= 2)
        gy_text_printf(&text, " + (ceil_div(_inner, 32) * _outer * ceil_div(_mid, %d) >= %d) * %d",
                       segment_of(c->kernel->program), run * BLOCKS, run / 2);
    const char *made = text.failed ? NULL : gy_arena_strdup(&c->graph->arena, text.at);
    gy_text_free(&text);
    return made;
}

/* The numbers of gy_maths_places, where axes that are reduced lie apart. */
static void add_cuts(coding *c)
{
    gy_arena *arena = &c->graph->arena;
    const gy_maths_runs *along = &c->kernel->program->along;
    for (uint32_t i = 0; i < 2 * along->count - 1; i++) {
        uint32_t axis = i % 2 ? along->at[i / 2].last : along->at[i / 2].first;
        const char *name = gy_arena_printf(arena, "_behind%" PRIu32, i);
        add_hidden(c, name, extents_of(c, axis, gy_maths_end_of(along)));
        if (i)
            add_reciprocal(c, name);
    }
}

static void add_reduction(coding *c)
{
    const gy_maths_program *p = c->kernel->program;
    const char *mid = extents_among(c, true);
    add_hidden(c, "_outer", extents_among(c, false));
    add_hidden(c, "_mid", mid);
    add_hidden(c, "_inner", extents_of(c, gy_maths_end_of(&p->along), p->rank));
    add_hidden(c, "_run", run_of(c));
    add_hidden(c, "_segments",
               mid ? gy_arena_printf(&c->graph->arena, "max(1, ceil_div(%s, %d * _run))", mid, segment_of(p)) : NULL);
    if (gy_maths_is_apart(p))
        add_cuts(c);
}

static bool set_grid(const coding *c, const gy_expr **grid, const char *text)
{
    return text && gy_kernel_formula(grid, &c->graph->arena, c->kernel->manifest, "grid", text, NULL) == GANTRY_OK;
}

/* 1 where the second kernel has results of few elements, else 0. NULL: out of memory. */
static const char *is_tiny(gy_arena *arena, const gy_maths_program *p)
{
    return gy_arena_printf(arena, "(_mid >= 1 and _mid <= %d and _outer > %d and _outer <= 1073741824)",
                           gy_maths_tiny(p), GY_MATHS_TINY_MANY);
}

/* How many results or segments a block takes is written in src/maths/cuda_reduce.c. NULL: out of memory. */
static const char *grid_of(gy_arena *arena, const gy_maths_program *p)
{
    static const char columns[] =
        "(_mid <= %d and _outer * _inner > %d) * ceil_div(_outer * _inner, %d) + "
        "(_mid > %d or _outer * _inner <= %d) * ceil_div(_inner, 32) * "
        "ceil_div(_outer * _segments, 1 + (_inner <= 16) + 2 * (_inner <= 8) + 4 * (_inner <= 4) + 8 * (_inner <= 2))";
    static const char lanes[] =
        "ceil_div(_outer * _segments, (1 + (_mid >= 1 and _mid <= %d and _outer > %d) * %d) * "
        "(1 + (_mid <= %d and (_mid <= %d or 4 * (_outer - %d) > _mid)) * (7 + 8 * (_mid <= 128) + "
        "16 * (_mid <= 64) + 32 * (_mid <= 32) + 64 * (_mid <= 16) + 128 * (_mid <= 8))))";
    if (!p->maths->reduces)
        return gy_arena_printf(arena, "ceil_div(_n, %" PRId64 ")", gy_maths_block_elements(p));
    if (p->is_columns)
        return gy_arena_printf(arena, columns, GY_MATHS_LOW, GY_MATHS_MANY, GY_MATHS_BLOCK, GY_MATHS_LOW,
                               GY_MATHS_MANY);
    const char *made = gy_arena_printf(arena, lanes, GY_MATHS_BLOCK, GY_MATHS_TINY_MANY, gy_maths_turns(p) - 1,
                                       GY_MATHS_SEGMENT, GY_MATHS_BLOCK, GY_MATHS_FEW);
    const char *tiny = is_tiny(arena, p);
    return made && tiny ? gy_arena_printf(arena, "(1 - %s) * %s", tiny, made) : NULL;
}

/* Lanes of a segment wait for elements once they have added up those before, and the launch that ends it, behind the
 * other, takes as long as six such waits (measured on an H100). */
static bool add_waits(const coding *c, gy_kernel_code *code)
{
    const gy_maths_program *p = c->kernel->program;
    gy_arena *arena = &c->graph->arena;
    int at_once = (int)gy_maths_ahead(p) * (p->is_columns ? GY_MATHS_COLUMN_LANES : GY_MATHS_LANES);
    return !p->maths->reduces ||
           set_grid(c, &code->waits,
                    gy_arena_printf(arena, "ceil_div(min(_mid, %d * _run), %d) + 6 * (_segments > 1)", segment_of(p),
                                    at_once));
}

static const char *elements_of(gantry_graph *g, const gy_maths_program *p)
{
    return p->is_joint ? extents_in(g, p, 0, p->rank) : gy_arena_printf(&g->arena, "%s.size", p->maths->arg[p->model]);
}

/* Threads of a result have eight lanes each. */
static bool add_overhead(const coding *c, gy_kernel_code *code)
{
    const gy_maths_program *p = c->kernel->program;
    gy_arena *arena = &c->graph->arena;
    char number[GY_DOUBLE_TEXT], thread[GY_DOUBLE_TEXT];
    const char *elements = elements_of(c->graph, p);
    const char *text =
        elements ? gy_arena_printf(arena, "%s * %s", gy_double_text(number, sizeof number, p->overhead), elements)
                 : NULL;
    if (text && p->maths->reduces)
        text = gy_arena_printf(arena, "%s + %s * _outer * _inner * min(%d, ceil_div(_mid, 8))", text,
                               gy_double_text(thread, sizeof thread, p->thread_overhead), GY_MATHS_LANES / 8);
    return set_grid(c, &code->overhead, text);
}

static bool add_grids(coding *c, gy_kernel_code *code)
{
    const gy_maths_program *p = c->kernel->program;
    gy_arena *arena = &c->graph->arena;
    bool made = set_grid(c, &code->grid[0], grid_of(arena, p)) &&
                set_grid(c, &code->block[0], gy_arena_printf(arena, "%d", GY_MATHS_BLOCK));
    const char *tiny = p->maths->reduces ? is_tiny(arena, p) : NULL;
    const char *ends = tiny ? gy_arena_printf(arena, "(_segments > 1) * _outer * _inner + %s * ceil_div(_outer, %d)",
                                              tiny, GY_MATHS_BLOCK * GY_MATHS_TINY_EACH)
                            : NULL;
    return made && (!p->maths->reduces || set_grid(c, &code->finish, ends));
}

/* The launch of the code that gy_maths_print_cuda makes, in the order of its parameters. False: out of memory. */
static bool make_code(gantry_graph *g, gy_kernel *kernel, gantry_kernel_arg *arg)
{
    const gy_maths_program *p = kernel->program;
    size_t count = (size_t)kernel->manifest->args;
    gy_kernel_code *code = gy_arena_calloc(&g->arena, 1, sizeof *code);
    gantry_dtype *types = gy_arena_calloc(&g->arena, count, sizeof *types);
    const gy_expr **value = gy_arena_calloc(&g->arena, count, sizeof *value);
    if (!code || !types || !value)
        return false;
    for (uint32_t i = 0; i < count; i++)
        types[i] = i < p->maths->args ? GANTRY_F64 : GANTRY_I64;
    coding c = { .graph = g, .kernel = kernel, .arg = arg, .value = value, .next = p->maths->args };
    if (p->maths->reduces)
        add_reduction(&c);
    else
        add_hidden(&c, "_n", gy_arena_printf(&g->arena, "%s.size", p->maths->arg[p->model]));
    add_steps(&c);
    code->types = types;
    code->fallback = value;
    kernel->code = code;
    return !c.failed && add_grids(&c, code) && add_waits(&c, code) && add_overhead(&c, code);
}

/* ---- the manifest ---- */

static const char *flops_of(gantry_graph *g, const gy_maths_program *program)
{
    char number[GY_DOUBLE_TEXT];
    const char *elements = elements_of(g, program);
    return elements
               ? gy_arena_printf(&g->arena, "%s * %s", gy_double_text(number, sizeof number, program->flops), elements)
               : NULL;
}

/* Totals of segments, where results have more than one. */
static const char *scratch_of(gantry_graph *g, const gy_maths *m)
{
    return gy_arena_printf(&g->arena, "(_segments > 1) * %zu * _outer * _inner * (_segments + ceil_div(_segments, 2))",
                           gy_maths_total_bytes(m));
}

/* NULL: out of memory. `kind` and `program` are NULL where types are not known. */
static const gantry_kernel *make_manifest(gantry_graph *g, const char *key, const gy_maths *m,
                                          const gy_maths_kind *kind, const gy_maths_program *program,
                                          gantry_kernel_arg **args)
{
    uint32_t count = m->args + (program ? hidden_args(program) : 0);
    gantry_kernel *manifest = gy_arena_calloc(&g->arena, 1, sizeof *manifest);
    gantry_kernel_arg *arg = *args = gy_arena_calloc(&g->arena, count, sizeof *arg);
    const char *name = name_of(g, key), *summary = gy_arena_strdup(&g->arena, key);
    const char *flops = program ? flops_of(g, program) : "";
    const char *scratch = program && m->reduces ? scratch_of(g, m) : NULL;
    if (!manifest || !arg || !name || !summary || !flops || (program && m->reduces && !scratch))
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
                                 .flags = GANTRY_KERNEL_PURE,
                                 .flops = program ? flops : NULL,
                                 .scratch = scratch,
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
    bool made = kernel.manifest && (!program || make_code(g, &kernel, args));
    const gy_kernel_code *code = kernel.code;
    gantry_status status = made ? gy_kernel_compile(&kernel, &g->arena, kernel.manifest, &err) : gy_fail_nomem(&err);
    if (status) {
        gy_graph_mistake(g, status, "%s", err.text);
        return GY_NONE;
    }
    kernel.maths = kernel.formula = m;
    kernel.program = program;
    kernel.code = code;
    kernel.like = "axpby";
    return gy_build_use_kernel(g, &kernel);
}

/* A graph has formulas once, however many nodes have them. */
static uint32_t keep_formulas(gantry_graph *g, const char *key, const gy_maths *maths)
{
    gy_maths *own = gy_arena_alloc(&g->arena, sizeof *own);
    if (!own) {
        gy_build_nomem(g);
        return GY_NONE;
    }
    *own = *maths;
    return make_kernel(g, key, own, NULL, NULL);
}

/* ---- nodes ---- */

uint32_t gy_build_formulas(gantry_graph *graph, const gy_maths *maths)
{
    gy_text key = { 0 };
    gy_maths_print(&key, maths);
    if (key.failed) {
        gy_text_free(&key);
        gy_build_nomem(graph);
        return GY_NONE;
    }
    uint32_t index = find_kernel(graph, key.at);
    if (index == GY_NONE && !graph->error.status)
        index = keep_formulas(graph, key.at, maths);
    gy_text_free(&key);
    return index;
}

gantry_node gy_graph_map_with(gantry_graph *graph, const char *id, const gy_maths *maths)
{
    gantry_node none = { GANTRY_NONE, 0 };
    if (!gy_building(graph))
        return none;
    uint32_t index = gy_build_formulas(graph, maths);
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
    gy_maths *maths = gy_calloc(1, sizeof *maths);
    if (maths)
        maths->reduces = reduces;
    gantry_status status =
        maths ? gy_maths_add_all(maths, &graph->arena, formulas, GANTRY_E_GRAPH, NULL, &err) : gy_fail_nomem(&err);
    if (status)
        gy_graph_mistake(graph, status, "node \"%s\": %s", id ? id : sort, err.text);
    gantry_node made = status ? none : gy_graph_map_with(graph, id, maths);
    gy_free(maths);
    return made;
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
gantry_status gy_build_kinds(const gantry_graph *g, const gy_node *n, const gy_maths *m, gy_maths_kind *kind,
                             gantry_error *err)
{
    bool is_given[GY_MATHS_ARGS] = { false }, varies[GY_MATHS_ARGS] = { false };
    gantry_arg region[GY_MATHS_ARGS];
    char said[400];
    for (uint32_t i = 0; i < gy_node_regions(n); i++) {
        const gy_access *a = &g->access.at[n->access + i];
        if (a->arg >= m->args)
            return gy_graph_fail(g, n->origin, err, GANTRY_E_GRAPH,
                                 "node \"%s\" accesses \"%s\" beside its arguments: name it in a formula", n->id,
                                 g->buffers.at[a->buffer].name);
        is_given[a->arg] = true;
        kind[a->arg] = (gy_maths_kind){ .dtype = g->buffers.at[a->buffer].dtype };
        varies[a->arg] = g->buffers.at[a->buffer].split_auto || g->buffers.at[a->buffer].along;
        gy_arg_describe(&region[a->arg], g, a);
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
    if (gy_maths_fit(m, kind, region, varies, said, sizeof said))
        return gy_graph_fail_in(g, n->origin, "/args", err, GANTRY_E_GRAPH, "node \"%s\": %s", n->id, said);
    return GANTRY_OK;
}

static gantry_status check_reduces(const gantry_graph *g, const gy_node *n, const gy_maths *m, gantry_error *err)
{
    for (uint32_t i = 0; i < m->results; i++)
        if (!m->reduces || gy_maths_is_reduced(m, i))
            return GANTRY_OK;
    return gy_graph_fail_in(g, n->origin, "/reduce", err, GANTRY_E_GRAPH,
                            "node \"%s\": formula \"%.80s\" reduces nothing; write sum(x) or sum(x, 1) around it (or "
                            "mean, min, max, any, all, argmin, argmax), or make a map node of it",
                            n->id, m->result[0].text);
}

/* " along 0:1,2:4 of 4" */
static void add_runs(gy_text *key, const gy_maths_axes *run, uint32_t runs, uint8_t rank)
{
    for (uint32_t i = 0; i < runs; i++)
        gy_text_printf(key, "%s%u:%u", i ? "," : " along ", run[i].first, run[i].last);
    gy_text_printf(key, " of %d", rank);
}

/* "y = sqrt(x) * s + b (y f32, x f32, s number, b f32 along 0:1 of 2)" */
static bool make_key(gy_text *key, const gy_maths *m, const gy_maths_kind *kind)
{
    gy_maths_print(key, m);
    for (uint32_t i = 0; i < m->args; i++) {
        bool is_reduced = m->reduces && m->is_written[i] && !kind[i].is_beside;
        gy_text_printf(key, "%s%s %s", i ? ", " : " (", m->arg[i],
                       kind[i].is_number ? "number" : gantry_dtype_name(kind[i].dtype));
        if (is_reduced)
            add_runs(key, kind[i].along.at, kind[i].along.count, kind[i].rank);
        else if (kind[i].is_spread)
            add_runs(key, kind[i].run, kind[i].runs, kind[i].rank);
        gy_text_add(key, kind[i].is_added ? " added" : kind[i].is_model ? " whole" : "");
        if (kind[i].gives)
            gy_text_printf(key, " gives %x behind %d", kind[i].gives, kind[i].missing);
    }
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

gantry_status gy_build_map(gantry_graph *g, uint32_t node, gantry_error *err)
{
    gy_node *n = &g->nodes.at[node];
    const gy_maths *m = g->kernels.at[n->kernel].maths;
    gy_maths_kind kind[GY_MATHS_ARGS];
    gy_text key = { 0 };
    GY_TRY(check_reduces(g, n, m, err));
    GY_TRY(gy_build_kinds(g, n, m, kind, err));
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
            GY_TRY(gy_build_map(graph, i, err));
    }
    return GANTRY_OK;
}
