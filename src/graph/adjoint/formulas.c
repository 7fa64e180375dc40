/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adjoints of maps and reductions. For y = f(x, ...) the adjoint of x is that of y times the derivative of f by x,
 * by the tree of the formula (maths/adjoint.c). Where one element of x is for several, these are added up: a reduction
 * to the shape of x. The adjoint of a sum goes to all of its elements, that of a mean by their number; that of a least
 * or largest element to it, to each of several that are equal.
 */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"
#include "graph/fuse/fuse.h"

#include <string.h>

/* A name of the new formula stands for a number or a region. */
typedef struct meaning {
    const char *name;
    bool is_number;
    gy_constant number;
    gantry_region region;
    gy_maths_shape shape;
} meaning;

enum { MEANINGS = GY_MATHS_ARGS + 2 * GY_MATHS_RESULTS };

typedef struct deriving {
    gy_adjoint *a;
    const gy_primal *p;
    const gy_maths *maths;
    gy_maths_shape model;
    gy_maths_runs along; /* axes of the model that are reduced */
    meaning meaning[MEANINGS];
    uint32_t meanings, own; /* `own`: those of the node's own arguments */
    gy_maths_seed seed[GY_MATHS_RESULTS];
    uint32_t seeds;
} deriving;

static gantry_status nomem(const deriving *d)
{
    gy_build_nomem(d->a->graph);
    return gy_fail_nomem(d->a->err);
}

static const meaning *find_meaning(const deriving *d, const char *name)
{
    for (uint32_t i = 0; i < d->meanings; i++)
        if (strcmp(d->meaning[i].name, name) == 0)
            return &d->meaning[i];
    return NULL;
}

/* prefix_name, which is no argument; NULL: out of memory. */
static const char *new_name(const deriving *d, const char *prefix, const char *name)
{
    const char *made = gy_arena_printf(&d->a->scratch, "%s_%s", prefix, name);
    while (made && find_meaning(d, made))
        made = gy_arena_printf(&d->a->scratch, "%s_", made);
    return made;
}

/* ---- what the node's own names mean ---- */

static void take_arguments(deriving *d)
{
    for (uint32_t i = 0; i < d->maths->args; i++) {
        meaning *m = &d->meaning[d->meanings++];
        const gy_access *x = gy_primal_access(d->a, d->p, d->maths->arg[i]);
        const gy_scalar *s = x ? NULL : gy_primal_scalar(d->a, d->p, d->maths->arg[i]);
        *m = (meaning){ .name = d->maths->arg[i], .is_number = !x };
        if (x) {
            m->region = gy_adjoint_primal_rows(d->a, x);
            m->shape = gy_adjoint_shape(d->a, x);
        } else if (s) {
            m->number = s->number;
        }
    }
    d->own = d->meanings;
}

/* ---- shapes ---- */

void gy_shape_join(gy_maths_shape *all, const gy_maths_shape *one)
{
    gy_maths_shape made = all->rank >= one->rank ? *all : *one;
    const gy_maths_shape *other = all->rank >= one->rank ? one : all;
    for (uint32_t k = 0; k < other->rank; k++) {
        int64_t *extent = &made.extent[made.rank - 1 - k];
        *extent = *extent == 1 ? other->extent[other->rank - 1 - k] : *extent;
    }
    *all = made;
}

static void find_model(deriving *d)
{
    const gy_node *n = &d->a->graph->nodes.at[d->p->node];
    const gy_kernel *kernel = &d->a->graph->kernels.at[n->kernel];
    if (kernel->program) {
        d->model = gy_fuse_model(d->a->graph, n);
        d->along = kernel->program->along;
        return;
    }
    for (uint32_t i = 0; i < d->own; i++)
        if (!d->meaning[i].is_number && d->maths->is_read[i])
            gy_shape_join(&d->model, &d->meaning[i].shape);
    d->along = (gy_maths_runs){ .count = 1, .at = { { 0, (uint8_t)d->model.rank } } }; /* as those of manifests are */
}

/* ---- results whose axes were reduced ---- */

/* The axes of the model that a formula names, by bit. */
static uint32_t named_axes(const deriving *d, const gy_maths_result *r)
{
    uint32_t named = 0;
    for (uint32_t i = 0; i < r->axes; i++)
        named |= UINT32_C(1) << (r->axis[i] < 0 ? r->axis[i] + (int32_t)d->model.rank : r->axis[i]);
    return named;
}

/* Does a result of this shape stand for elements of the model as broadcasting aligns them? Where no axis is named, its
 * shape says which are reduced; else it may lack them, and those before all others may be missing. */
static bool is_aligned(const deriving *d, const gy_maths_result *r, const gy_maths_shape *shape)
{
    bool are_before = named_axes(d, r) == (UINT32_C(1) << r->axes) - 1;
    return shape->rank == d->model.rank || are_before || gy_maths_shape_elements(shape) == 1;
}

/* The rows of a reduced result, or of its adjoint, with an extent of 1 where axes were reduced: as they are, or as a
 * copy, which lacks those before all others still. `access` is that of the result. */
static gantry_region kept_rows(deriving *d, const gy_maths_result *r, const gy_access *access, gantry_region rows,
                               gy_maths_shape *shape, const char *what)
{
    gantry_graph *g = d->a->graph;
    if (is_aligned(d, r, shape))
        return rows;
    const gy_buffer *b = &g->buffers.at[access->buffer];
    int64_t extent[GY_MATHS_AXES];
    uint32_t rank = 0, named = named_axes(d, r);
    for (uint32_t i = 0, k = 0; i < d->model.rank; i++)
        if (!(named >> i & 1))
            extent[rank++] = b->shape[k++];
        else if (rank)
            extent[rank++] = 1;
    gantry_buffer made = gy_adjoint_named(d->a, access->buffer, what, (int)rank, extent, b->dtype);
    gantry_region to = rows;
    to.buffer = made;
    if (b->tiles[0])
        to = gy_adjoint_rows(d->a, access, made);
    gantry_node node = gantry_graph_copy(g, gy_adjoint_id(d->a, d->p, what), rows, to);
    gy_adjoint_place(d->a, node, d->p->node);
    extent[0] = shape->extent[0];
    shape->rank = rank;
    memcpy(shape->extent, extent, rank * sizeof *extent);
    return to;
}

/* ---- seeds ---- */

static gantry_status add_meaning(deriving *d, const char *name, gantry_region region, gy_maths_shape shape)
{
    if (!name)
        return nomem(d);
    d->meaning[d->meanings++] = (meaning){ .name = name, .region = region, .shape = shape };
    return GANTRY_OK;
}

/* The adjoint of the elements of a reduction, of which it has that of the result. */
static gantry_status seed_reduction(deriving *d, uint32_t result, const char *grad, const char **text)
{
    const gy_maths_result *r = &d->maths->result[result];
    gy_adjoint *a = d->a;
    const gy_access result_access = *gy_primal_access(a, d->p, d->maths->arg[r->arg]);
    gantry_dtype dtype = a->graph->buffers.at[result_access.buffer].dtype;
    if (r->reduction == GY_MATHS_TOTAL) {
        *text = grad;
    } else if (r->reduction == GY_MATHS_MEAN) {
        int64_t count = gy_maths_reduced(&d->model, &d->along).mid;
        *text = gy_arena_printf(&a->scratch, "(%s / %lld)", grad, (long long)(count ? count : 1));
    } else if (r->reduction == GY_MATHS_LEAST || r->reduction == GY_MATHS_MOST) {
        gy_maths_shape shape = gy_adjoint_shape(a, &result_access);
        gantry_region rows = kept_rows(d, r, &result_access, gy_adjoint_primal_rows(a, &result_access), &shape, "kept");
        const char *name = new_name(d, "value", d->maths->arg[r->arg]);
        const char *value = gy_maths_text_of(&a->scratch, d->maths, r->root);
        GY_TRY(add_meaning(d, name, rows, shape));
        *text = value ? gy_arena_printf(&a->scratch, "select(%s(%s) == %s, %s, 0)", gantry_dtype_name(dtype), value,
                                        name, grad)
                      : NULL;
    } else {
        return gy_node_fail(a->graph, a->err, d->p->node,
                            "reduces to \"%s\" by what has no adjoint (formula \"%.60s\"): sum, mean, min and max have "
                            "one",
                            a->graph->buffers.at[result_access.buffer].name, r->text);
    }
    return *text ? GANTRY_OK : nomem(d);
}

static bool is_split_by_the_scheduler(const deriving *d)
{
    const gantry_graph *g = d->a->graph;
    const gy_node *n = &g->nodes.at[d->p->node];
    for (uint32_t i = 0; i < gy_node_regions(n); i++)
        if (g->buffers.at[g->access.at[n->access + i].buffer].split_auto && g->access.at[n->access + i].part >= 0)
            return true;
    return false;
}

static gantry_status seed_result(deriving *d, uint32_t result)
{
    const gy_maths_result *r = &d->maths->result[result];
    const char *name = d->maths->arg[r->arg];
    const gy_access *found = gy_primal_access(d->a, d->p, name);
    if (!found || !gy_adjoint_is_given(d->a, found->buffer))
        return GANTRY_OK;
    gy_access access = *found;
    if (r->reduction == GY_MATHS_MEAN && is_split_by_the_scheduler(d))
        return gy_node_fail(d->a->graph, d->a->err, d->p->node,
                            "takes the mean of an automatic part, whose number of elements is not known yet; take the "
                            "sum, and divide in a map");
    const char *grad = new_name(d, "grad", name), *text = grad;
    gy_maths_shape shape = gy_adjoint_shape(d->a, &access);
    gantry_region rows = gy_adjoint_of(d->a, &access);
    if (r->reduction)
        rows = kept_rows(d, r, &access, rows, &shape, "grad.kept");
    GY_TRY(add_meaning(d, grad, rows, shape));
    if (r->reduction)
        GY_TRY(seed_reduction(d, result, grad, &text));
    d->seed[d->seeds++] = (gy_maths_seed){ r->root, text };
    return GANTRY_OK;
}

/* ---- the new nodes ---- */

static gantry_status fail_long(const deriving *d, const char *arg, const char *why)
{
    return gy_node_fail(d->a->graph, d->a->err, d->p->node,
                        "the derivative of its formulas by \"%s\" is too long (%s); make two nodes of it", arg, why);
}

static gantry_status read_formula(const deriving *d, const char *arg, const char *out, const char *text, bool reduces,
                                  const gy_maths **made)
{
    gantry_error inner;
    gantry_graph *g = d->a->graph;
    gy_maths *m = gy_arena_calloc(&g->arena, 1, sizeof *m);
    if (!m || !text || !out)
        return nomem(d);
    m->reduces = reduces;
    gantry_status status = gy_maths_add(m, &g->arena, out, text, GANTRY_E_GRAPH, NULL, &inner);
    *made = m;
    return status == GANTRY_E_NOMEM ? nomem(d) : status ? fail_long(d, arg, inner.text) : GANTRY_OK;
}

/* A reduction goes over the shape that its regions have together: where the derivative names too few of them, it is
 * chosen from itself by what others are, which changes nothing but the shape. */
static const char *span(const deriving *d, const gy_maths *read, const char *text)
{
    gy_maths_shape all = { 0 };
    for (uint32_t i = 0; i < read->args; i++) {
        const meaning *m = find_meaning(d, read->arg[i]);
        if (m && !m->is_number)
            gy_shape_join(&all, &m->shape);
    }
    for (uint32_t i = 0; i < d->own && text && !gy_maths_same_shape(&all, &d->model); i++) {
        const meaning *m = &d->meaning[i];
        gy_maths_shape more = all;
        if (m->is_number || !d->maths->is_read[i])
            continue;
        gy_shape_join(&more, &m->shape);
        if (gy_maths_same_shape(&more, &all))
            continue;
        text = gy_arena_printf(&d->a->scratch, "select(%s == %s, %s, %s)", m->name, m->name, text, text);
        all = more;
    }
    return text;
}

static void give_arguments(const deriving *d, gantry_node node, const gy_maths *m)
{
    gantry_graph *g = d->a->graph;
    for (uint32_t i = 0; i < m->args; i++) {
        const meaning *known = find_meaning(d, m->arg[i]);
        if (known && known->is_number)
            gy_node_scalar_constant(g, node, known->name, known->number, false);
        else if (known)
            gantry_node_arg(g, node, known->name, known->region);
    }
    gy_adjoint_place(d->a, node, d->p->node);
}

static gantry_status go_back_map(const deriving *d, const gy_access *x, const char *arg, const char *text)
{
    gy_adjoint *a = d->a;
    const gy_maths *m = NULL;
    gy_destination target = gy_adjoint_target(a, x);
    const char *out = new_name(d, "to", arg);
    GY_TRY(
        read_formula(d, arg, out, target.adds ? gy_arena_printf(&a->scratch, "%s + %s", out, text) : text, false, &m));
    gantry_node node = gy_graph_map_with(a->graph, gy_adjoint_id(a, d->p, arg), m);
    gantry_node_arg(a->graph, node, out, target.region);
    give_arguments(d, node, m);
    return gy_adjoint_built(a);
}

/* Where one element of the argument is for several of the model, these are summed. */
static gantry_status go_back_sum(const deriving *d, const gy_access *x, const char *arg, const char *text)
{
    gy_adjoint *a = d->a;
    const gy_maths *m = NULL;
    gy_destination target = gy_adjoint_target(a, x);
    const char *out = new_name(d, "to", arg);
    GY_TRY(read_formula(d, arg, out, text, false, &m));
    text = span(d, m, text);
    GY_TRY(read_formula(d, arg, out, text ? gy_arena_printf(&a->scratch, "sum(%s)", text) : NULL, true, &m));
    gantry_node node = gy_graph_map_with(a->graph, gy_adjoint_id(a, d->p, arg), m);
    gantry_node_arg_as(a->graph, node, out, target.region, gy_destination_access(&target));
    give_arguments(d, node, m);
    return gy_adjoint_built(a);
}

static gantry_status go_back_to(const deriving *d, uint32_t arg)
{
    const char *name = d->maths->arg[arg], *text;
    const gy_access *found = gy_primal_access(d->a, d->p, name);
    if (!found || !d->maths->is_read[arg] || !gy_adjoint_is_active(d->a, found->buffer))
        return GANTRY_OK;
    gy_access x = *found;
    gantry_status status = gy_maths_differentiate(&text, &d->a->scratch, d->maths, arg, d->seed, d->seeds);
    if (status == GANTRY_E_GRAPH)
        return fail_long(d, name, "more than 4096 characters");
    if (status)
        return nomem(d);
    if (!text)
        return GANTRY_OK;
    bool is_spread = !gy_maths_same_shape(&d->meaning[arg].shape, &d->model);
    return is_spread ? go_back_sum(d, &x, name, text) : go_back_map(d, &x, name, text);
}

gantry_status gy_adjoint_formulas(gy_adjoint *a, const gy_primal *p)
{
    deriving d = { .a = a, .p = p, .maths = p->maths };
    take_arguments(&d);
    find_model(&d);
    for (uint32_t i = 0; i < p->maths->results; i++)
        GY_TRY(seed_result(&d, i));
    for (uint32_t i = 0; i < p->maths->args; i++)
        GY_TRY(go_back_to(&d, i));
    return gy_adjoint_built(a);
}
