/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a node is cut along the batch, which is axis 0 of what it is cut along: one row a kernel, which names the
 * arguments whose rows go with the batch and those that are summed. Formulas, those of manifests too, need none: what
 * has the extent of their model along its first axis is cut, and a reduction along that axis is summed. Whatever a rule
 * says holds for any number of pieces. A product by a sparse matrix reads rows of all pieces and gives rows of one.
 */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"
#include "graph/strategy/strategy.h"

#include <string.h>

typedef struct row {
    const char *kernel;
    const char *rows;   /* arguments, blanks between them */
    const char *summed; /* the argument that is summed already; NULL: none */
    const char *deep;   /* the argument that has to have two axes: its rows are not those of axis 0 else */
    gy_cut_first first;
    const char *number; /* that has to be `value`, and is 0 if the node does not say it; NULL: none */
    double value;
    const char *zero;   /* another number, which has to be 0; NULL: none */
    uint32_t axes;      /* of `deep`, where it has to have more than two */
    const char *shared; /* arguments that are for all pieces where they have one row; NULL: none */
    const char *all;    /* GY_CUT_ALL */
    const char *bounds; /* GY_CUT_BOUNDS */
    bool keeps_first;   /* `axis`, which is -2 if the node does not say it, is not the first */
} row;

static const row table[] = {
    { .kernel = "attention", .rows = "q k v y lse", .deep = "q" },
    { .kernel = "conv2d", .rows = "x y" },
    { .kernel = "dropout", .rows = "x y", .first = GY_FIRST_ELEMENTS, .number = "run" },
    { .kernel = "embedding", .rows = "ids y" },
    { .kernel = "fft", .rows = "x y", .keeps_first = true },
    { .kernel = "filter2d", .rows = "image out", .deep = "image", .axes = 3 },
    { .kernel = "gaussian_blur", .rows = "image out", .deep = "image", .axes = 3 },
    { .kernel = "gemm", .rows = "a c", .number = "ta" },
    { .kernel = "gemm", .rows = "a b", .summed = "c", .number = "ta", .value = 1, .zero = "tb" },
    { .kernel = "gemm_batched", .rows = "a b c", .shared = "a b" },
    { .kernel = "gemm_bias", .rows = "a c", .number = "ta" },
    { .kernel = "layernorm", .rows = "x y", .deep = "x" },
    { .kernel = "resize", .rows = "image out" },
    { .kernel = "rmsnorm", .rows = "x y", .deep = "x" },
    { .kernel = "rope", .rows = "x y", .first = GY_FIRST_ROWS },
    { .kernel = "softmax", .rows = "x y", .deep = "x", .first = GY_FIRST_LAST },
    { .kernel = "softmax_xent", .rows = "logits labels", .summed = "loss", .deep = "logits" },
    { .kernel = "spmm_csr", .rows = "y", .all = "x", .bounds = "row_ptr" },
    { .kernel = "spmv_csr", .rows = "y", .all = "x", .bounds = "row_ptr" },
    { .kernel = "top_k", .rows = "x values indices", .deep = "x" },
    { .kernel = "transpose", .rows = "x y", .number = "axis", .value = 1 },
    { .kernel = "trsm", .rows = "b" },
};
enum { ROWS = sizeof table / sizeof *table };

/* The first row of a kernel, behind `last` where that is not NULL. */
static const row *find(const char *kernel, const row *last)
{
    for (const row *r = last ? last + 1 : table; r < table + ROWS; r++)
        if (strcmp(r->kernel, kernel) == 0)
            return r;
    return NULL;
}

bool gy_spread_can_cut(const gantry_kernel *kernel)
{
    return kernel->formula || find(kernel->name, NULL);
}

/* ---- kernels of the table ---- */

static bool has_number(const gantry_graph *g, const gy_node *n, const gantry_kernel *k, const char *name, double wanted)
{
    double value = 0;
    for (uint32_t i = n->scalar; name && i < n->scalar + n->scalars; i++) {
        const gy_scalar *x = &g->scalar.at[i];
        if (strcmp(k->arg[x->arg].name, name) != 0)
            continue;
        if (x->dynamic || x->expr)
            return false;
        value = x->number.real;
    }
    return !name || value == wanted;
}

/* The row whose numbers the node has. */
static const row *row_of(const gantry_graph *g, const gy_node *n)
{
    const gantry_kernel *k = g->kernels.at[n->kernel].manifest;
    const row *r = g->kernels.at[n->kernel].code ? NULL : find(k->name, NULL);
    while (r && !(has_number(g, n, k, r->number, r->value) && has_number(g, n, k, r->zero, 0)))
        r = find(k->name, r);
    return r;
}

/* Rows of attention where heads lie side by side: those of a sequence stay together. */
static int64_t sequence_of(const gantry_graph *g, const gy_node *n, const gantry_kernel *k)
{
    double dim = 0, length = 0;
    for (uint32_t i = n->scalar; i < n->scalar + n->scalars; i++) {
        const gy_scalar *x = &g->scalar.at[i];
        dim = strcmp(k->arg[x->arg].name, "dim") == 0 ? x->number.real : dim;
        length = strcmp(k->arg[x->arg].name, "length") == 0 ? x->number.real : length;
    }
    return dim == 0 ? 0 : length > 0 ? (int64_t)length : INT64_MAX;
}

static bool is_word(const char *words, const char *name)
{
    return words && gy_adjoint_has_word(words, name);
}

static gy_cut_role role_of(const row *r, const char *name, const gy_access *x)
{
    if (is_word(r->summed, name))
        return GY_CUT_SUMMED;
    if (is_word(r->all, name))
        return GY_CUT_ALL;
    if (is_word(r->bounds, name))
        return GY_CUT_BOUNDS;
    bool is_shared = is_word(r->shared, name) && x->last - x->first == 1;
    return is_word(r->rows, name) && !is_shared ? GY_CUT_ROWS : GY_CUT_WHOLE;
}

/* Does a transform along some axes leave the first one as it is? */
static bool keeps_first(const gantry_graph *g, const gy_node *n, const gantry_kernel *k)
{
    int64_t axis = -2, rank = gy_access_shape(g, &g->access.at[n->access]).rank;
    for (uint32_t i = n->scalar; i < n->scalar + n->scalars; i++)
        if (strcmp(k->arg[g->scalar.at[i].arg].name, "axis") == 0)
            axis = (int64_t)g->scalar.at[i].number.real;
    return axis > 0 || (axis < 0 && axis + rank > 0);
}

/* A result that a node alone writes becomes a sum of what its pieces give; one that holds something already does not.
 */
static bool can_sum(const gy_spreading *s, uint32_t node, const gy_access *x, gy_cut_rule *out)
{
    const gy_buffer *b = &s->graph->buffers.at[x->buffer];
    out->mode = GANTRY_SUM;
    return x->mode == GANTRY_SUM ||
           (x->mode == GANTRY_WRITE && b->cls == GANTRY_TEMP && s->writer[x->buffer] == node + 1);
}

static void rule_of_kernel(const gy_spreading *s, uint32_t node, gy_cut_rule *out)
{
    const gantry_graph *g = s->graph;
    const gy_node *n = &g->nodes.at[node];
    const gantry_kernel *k = g->kernels.at[n->kernel].manifest;
    const row *r = row_of(g, n);
    out->can_cut = r && (!r->keeps_first || keeps_first(g, n, k));
    for (uint32_t i = 0; i < gy_node_regions(n) && out->can_cut; i++) {
        const gy_access *x = &g->access.at[n->access + i];
        const char *name = k->arg[x->arg].name;
        out->role[i] = role_of(r, name, x);
        if (out->role[i] == GY_CUT_SUMMED && !can_sum(s, node, x, out))
            out->can_cut = false;
        if (r->deep && strcmp(r->deep, name) == 0 && gy_access_shape(g, x).rank < (r->axes ? r->axes : 2))
            out->can_cut = false;
    }
    gy_first_number number; /* positions along another axis do not depend on the batch */
    bool counts = out->can_cut && (!gy_first_number_of(g, node, &number) || number.arg != GY_NONE);
    out->first = counts ? r->first : GY_FIRST_NONE;
    out->whole = r && strcmp(r->kernel, "attention") == 0 ? sequence_of(g, n, k) : 0;
}

/* ---- formulas ---- */

typedef struct cutting {
    gy_spreading *s;
    uint32_t number;
    const gy_node *node;
    const gy_maths *maths;
    gy_maths_shape model;
    bool is_reduced; /* along the first axis of the model */
    int64_t count;   /* elements that a mean is of */
} cutting;

gy_maths_shape gy_spread_model(const gantry_graph *g, const gy_node *node, const gy_maths *maths)
{
    gy_maths_shape model = { 0 };
    for (uint32_t i = 0; i < gy_node_regions(node); i++) {
        const gy_access *x = &g->access.at[node->access + i];
        gy_maths_shape one = gy_access_shape(g, x);
        if (x->arg < maths->args && (!maths->reduces || maths->is_read[x->arg]))
            gy_shape_join(&model, &one);
    }
    return model;
}

/* Which axes are reduced, and how many elements each result is of: the shapes of results say so where no axis is named.
 */
static gantry_status find_model(cutting *c)
{
    gy_maths_kind kind[GY_MATHS_ARGS];
    c->model = gy_spread_model(c->s->graph, c->node, c->maths);
    GY_TRY(gy_build_kinds(c->s->graph, c->node, c->maths, kind, c->s->err));
    for (uint32_t i = 0; i < c->maths->results; i++) {
        const gy_maths_kind *k = &kind[c->maths->result[i].arg];
        if (!gy_maths_is_reduced(c->maths, i))
            continue;
        c->is_reduced = gy_maths_is_along(&k->along, 0);
        c->count = gy_maths_reduced(&c->model, &k->along).mid;
    }
    return GANTRY_OK;
}

/* The role of a result that is reduced along the batch. False: pieces of it cannot be put together. */
static bool take_summed(cutting *c, const gy_access *x, const gy_maths_result *r, gy_cut_rule *out, uint32_t i)
{
    static const gantry_access modes[GY_MATHS_REDUCTIONS] = {
        [GY_MATHS_TOTAL] = GANTRY_SUM, [GY_MATHS_MEAN] = GANTRY_SUM, [GY_MATHS_LEAST] = GANTRY_MIN,
        [GY_MATHS_MOST] = GANTRY_MAX,  [GY_MATHS_ANY] = GANTRY_MAX,  [GY_MATHS_ALL] = GANTRY_MIN,
    };
    const gy_buffer *b = &c->s->graph->buffers.at[x->buffer];
    gantry_access mode = modes[r->reduction];
    bool begins = b->cls == GANTRY_TEMP && c->s->writer[x->buffer] == c->number + 1;
    out->role[i] = GY_CUT_SUMMED;
    bool is_same = !out->mode || out->mode == mode || x->mode == mode;
    out->mode = x->mode == mode ? out->mode : mode;
    return mode && is_same && (x->mode == mode || (x->mode == GANTRY_WRITE && begins));
}

/* The sum of so many-th parts. NULL: out of memory. */
static const char *sum_for_mean(const cutting *c, const gy_maths_result *r)
{
    gy_arena *arena = &c->s->graph->arena;
    const char *inner = gy_maths_text_of(arena, c->maths, r->root);
    const char *text =
        inner ? gy_arena_printf(arena, "sum((%s) / %lld.0", inner, (long long)(c->count ? c->count : 1)) : NULL;
    for (uint32_t i = 0; i < r->axes && text; i++)
        text = gy_arena_printf(arena, "%s, %d", text, (int)r->axis[i]);
    return text ? gy_arena_printf(arena, "%s)", text) : NULL;
}

/* Each mean over the batch becomes a sum over so many elements. NULL: it is the same formulas. */
static gantry_status without_means(const cutting *c, gy_cut_rule *rule)
{
    gy_arena *arena = &c->s->graph->arena;
    bool has_mean = false;
    for (uint32_t i = 0; i < c->maths->results; i++)
        has_mean = has_mean || c->maths->result[i].reduction == GY_MATHS_MEAN;
    if (!has_mean || !c->is_reduced)
        return GANTRY_OK;
    if (!c->s->graph->kernels.at[c->node->kernel].maths) {
        rule->can_cut = false; /* code takes means as they are */
        return GANTRY_OK;
    }
    gy_maths *made = gy_arena_calloc(arena, 1, sizeof *made);
    if (!made)
        return gy_fail_nomem(c->s->err);
    made->reduces = true;
    for (uint32_t i = 0; i < c->maths->results; i++) {
        const gy_maths_result *r = &c->maths->result[i];
        const char *text = r->reduction == GY_MATHS_MEAN ? sum_for_mean(c, r) : r->text;
        if (!text)
            return gy_fail_nomem(c->s->err);
        GY_TRY(gy_maths_add(made, arena, c->maths->arg[r->arg], text, GANTRY_E_GRAPH, NULL, c->s->err));
    }
    rule->mean = made;
    return GANTRY_OK;
}

static gantry_status rule_of_formulas(cutting *c, gy_cut_rule *out)
{
    const gantry_graph *g = c->s->graph;
    GY_TRY(find_model(c));
    out->can_cut = c->model.rank > 0;
    for (uint32_t i = 0; i < gy_node_regions(c->node) && out->can_cut; i++) {
        const gy_access *x = &g->access.at[c->node->access + i];
        gy_maths_shape shape = gy_access_shape(g, x);
        const gy_maths_result *r = gy_maths_result_of(c->maths, x->arg);
        bool has_rows = shape.rank == c->model.rank && shape.extent[0] == c->model.extent[0];
        if (r && r->reduction && c->is_reduced)
            out->can_cut = take_summed(c, x, r, out, i);
        else
            out->role[i] = has_rows || (r && r->reduction) ? GY_CUT_ROWS : GY_CUT_WHOLE;
    }
    return out->can_cut ? without_means(c, out) : GANTRY_OK;
}

/* ---- all nodes ---- */

gantry_status gy_spread_rule(gy_spreading *s, uint32_t node, gy_cut_role *role, gy_cut_rule *out)
{
    const gantry_graph *g = s->graph;
    const gy_node *n = &g->nodes.at[node];
    *out = (gy_cut_rule){ .role = role };
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_access *x = &g->access.at[n->access + i];
        role[i] = GY_CUT_WHOLE;
        if (x->before || x->after || x->is_list || g->buffers.at[x->buffer].tiles[0] ||
            g->buffers.at[x->buffer].split_auto)
            return GANTRY_OK;
    }
    if (n->loop != GY_NONE || n->has_when)
        return GANTRY_OK;
    if (n->kind == GY_NODE_COPY) {
        role[0] = role[1] = GY_CUT_ROWS;
        out->can_cut = true;
        return GANTRY_OK;
    }
    if (n->kind != GY_NODE_KERNEL || n->kernel == GY_NONE)
        return GANTRY_OK;
    const char *unfit;
    cutting c = { .s = s, .number = node, .node = n, .maths = gy_node_formulas(g, n, &unfit) };
    if (c.maths)
        return rule_of_formulas(&c, out);
    rule_of_kernel(s, node, out);
    return GANTRY_OK;
}
