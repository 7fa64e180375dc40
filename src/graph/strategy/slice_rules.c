/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a node is cut into slices, along an axis of each of its arguments: columns of a first weight and of what comes of
 * it, rows of a second one, heads. One row a kernel. Formulas need none: arguments are cut where they have the extent
 * of their model along its axis. What a rule says holds for any number of slices that divides the extents. The pair of
 * products is that of Shoeybi et al., Megatron-LM, 2019.
 */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"
#include "graph/strategy/slices.h"

#include <string.h>

/* A node, and the axes of its arguments as far as they are known. */
typedef struct slicing {
    const gantry_graph *g;
    const gy_node *n;
    const gantry_kernel *k;
    int8_t *axis; /* by access */
} slicing;

typedef struct row {
    const char *kernel;
    const char *opens; /* the weight that can be the first of a pair; NULL: none */
    bool (*find)(const slicing *c);
    const char *args; /* of those with one shape */
    bool is_lenient;  /* what would be cut for it alone is whole where it cannot be divided */
} row;

/* ---- arguments ---- */

/* The access of that name; GY_NONE: the node has none. */
static uint32_t find_arg(const slicing *c, const char *name)
{
    for (uint32_t i = 0; i < gy_node_regions(c->n); i++)
        if (strcmp(c->k->arg[c->g->access.at[c->n->access + i].arg].name, name) == 0)
            return i;
    return GY_NONE;
}

static gy_maths_shape shape_at(const slicing *c, uint32_t i)
{
    return gy_access_shape(c->g, &c->g->access.at[c->n->access + i]);
}

static gy_maths_shape shape_of(const slicing *c, const char *name)
{
    return shape_at(c, find_arg(c, name));
}

static int8_t axis_of(const slicing *c, const char *name)
{
    uint32_t i = find_arg(c, name);
    return i == GY_NONE ? GY_SLICE_WHOLE : c->axis[i];
}

/* False: it is known to be cut otherwise. */
static bool set(const slicing *c, const char *name, int8_t axis)
{
    uint32_t i = find_arg(c, name);
    if (i == GY_NONE)
        return true;
    bool fits = c->axis[i] == GY_SLICE_WHOLE || c->axis[i] == axis;
    c->axis[i] = axis;
    return fits;
}

/* A number of the node. False: it is not known yet. */
static bool number(const slicing *c, const char *name, double fallback, double *out)
{
    *out = fallback;
    for (uint32_t i = c->n->scalar; i < c->n->scalar + c->n->scalars; i++) {
        const gy_scalar *x = &c->g->scalar.at[i];
        if (strcmp(c->k->arg[x->arg].name, name) != 0)
            continue;
        *out = x->number.real;
        return !x->dynamic && !x->expr;
    }
    return true;
}

/* ---- products ---- */

static bool find_gemm(const slicing *c)
{
    double ta, tb, beta;
    if (!number(c, "ta", 0, &ta) || !number(c, "tb", 0, &tb) || !number(c, "beta", 0, &beta) || beta != 0)
        return false;
    int8_t inner_a = ta != 0 ? 0 : 1, inner_b = tb != 0 ? 1 : 0, columns = tb != 0 ? 0 : 1;
    if (axis_of(c, "a") == GY_SLICE_WHOLE)
        return axis_of(c, "b") == columns && set(c, "c", 1);
    return axis_of(c, "a") == inner_a && set(c, "b", inner_b) && set(c, "c", GY_SLICE_SUMMED);
}

/* The first of a pair alone, with a number of the bias for each column: summands of a second one would each have it. */
static bool find_gemm_bias(const slicing *c)
{
    gy_maths_shape bias = shape_of(c, "bias"), columns = shape_of(c, "c");
    int8_t last = (int8_t)(bias.rank - 1);
    return axis_of(c, "a") == GY_SLICE_WHOLE && bias.extent[last] == columns.extent[columns.rank - 1] && find_gemm(c) &&
           set(c, "bias", last);
}

static bool find_gemm_batched(const slicing *c)
{
    double beta;
    int64_t stack = shape_of(c, "c").extent[0];
    bool same = shape_of(c, "a").extent[0] == stack && shape_of(c, "b").extent[0] == stack;
    return same && number(c, "beta", 0, &beta) && beta == 0 && set(c, "a", 0) && set(c, "b", 0) && set(c, "c", 0);
}

static bool find_conv2d(const slicing *c)
{
    if (axis_of(c, "x") == GY_SLICE_WHOLE)
        return axis_of(c, "w") == 0 && set(c, "y", 1);
    return axis_of(c, "x") == 1 && set(c, "w", 1) && set(c, "y", GY_SLICE_SUMMED);
}

/* ---- tables and classes ---- */

/* Slices have rows of the table, and give those of y that they have; the others are zeros. */
static bool find_embedding(const slicing *c)
{
    double first, of;
    bool is_whole = number(c, "first", 0, &first) && number(c, "of", 0, &of) && first == 0 && of == 0;
    return is_whole && axis_of(c, "table") == 0 && axis_of(c, "ids") == GY_SLICE_WHOLE && set(c, "y", GY_SLICE_SUMMED);
}

/* Classes: not that slices of them give summands of the loss, but it is written as formulas of which they do
 * (classes.c). */
static bool find_softmax_xent(const slicing *c)
{
    double scale;
    bool is_plain = number(c, "scale", 1, &scale) && axis_of(c, "labels") == GY_SLICE_WHOLE;
    return is_plain && axis_of(c, "logits") == 1 && set(c, "loss", GY_SLICE_SUMMED);
}

/* ---- kernels whose arguments are cut alike ---- */

static const row *find(const char *kernel);

/* Arguments of one shape are cut along the same axis. */
static bool find_same(const slicing *c)
{
    int8_t axis = GY_SLICE_WHOLE;
    gy_maths_shape all = { 0 };
    const char *args = find(c->k->name)->args;
    for (uint32_t i = 0; i < gy_node_regions(c->n); i++) {
        const char *name = c->k->arg[c->g->access.at[c->n->access + i].arg].name;
        gy_maths_shape one = shape_at(c, i);
        if (!gy_adjoint_has_word(args, name))
            continue;
        if (all.rank && !gy_maths_same_shape(&all, &one))
            return false;
        all = one;
        axis = c->axis[i] == GY_SLICE_WHOLE ? axis : c->axis[i];
    }
    for (uint32_t i = 0; i < gy_node_regions(c->n); i++)
        if (gy_adjoint_has_word(args, c->k->arg[c->g->access.at[c->n->access + i].arg].name) &&
            !set(c, c->k->arg[c->g->access.at[c->n->access + i].arg].name, axis))
            return false;
    return axis != GY_SLICE_WHOLE;
}

static bool is_last(const slicing *c, const char *name)
{
    return axis_of(c, name) == (int8_t)(shape_of(c, name).rank - 1);
}

/* Rows are taken one by one, and each is whole: those of a norm may have several axes. */
static bool find_norm(const slicing *c)
{
    bool has_whole = axis_of(c, "gain") == GY_SLICE_WHOLE && axis_of(c, "bias") == GY_SLICE_WHOLE;
    return has_whole && find_same(c) && axis_of(c, "x") == 0 && !is_last(c, "x");
}

/* With a mask the number of a row counts, as a remainder by the number of columns: slices have whole masks. */
static bool find_softmax(const slicing *c)
{
    double causal;
    int64_t rows = 1;
    if (!number(c, "causal", 0, &causal) || !find_same(c) || is_last(c, "x"))
        return false;
    gy_maths_shape x = shape_of(c, "x");
    for (uint32_t k = (uint32_t)axis_of(c, "x") + 1; k + 1 < x.rank; k++)
        rows *= x.extent[k];
    int64_t columns = x.extent[x.rank - 1];
    return causal == 0 || (columns > 0 && rows % columns == 0);
}

/* Positions are whole, and so are heads, see gy_slice_divides. */
static bool find_rope(const slicing *c)
{
    double axis;
    if (!number(c, "axis", 0, &axis) || !find_same(c))
        return false;
    axis += axis < 0 ? shape_of(c, "x").rank : 0;
    return axis_of(c, "x") != (int8_t)axis;
}

/* Elements keep the numbers that they have in the whole, see gy_slice_numbers. */
static bool find_dropout(const slicing *c)
{
    double first, run;
    return number(c, "first", 0, &first) && number(c, "run", 0, &run) && run == 0 && find_same(c);
}

/* Heads, behind the axis of sequences where there is one, or side by side in rows, see gy_slice_divides. */
static bool find_attention(const slicing *c)
{
    int8_t heads = shape_of(c, "q").rank != 3;
    return set(c, "q", heads) && set(c, "k", heads) && set(c, "v", heads) && set(c, "y", heads) && set(c, "lse", heads);
}

/* The first two axes change places; or columns of a matrix are heads of each array, or become it. */
static bool find_transpose(const slicing *c)
{
    double first;
    int8_t axis = axis_of(c, "x");
    if (!number(c, "axis", 0, &first))
        return false;
    if (axis == GY_SLICE_WHOLE)
        return axis_of(c, "y") == GY_SLICE_WHOLE;
    if (first == 0)
        return set(c, "y", axis < 2 ? (int8_t)(1 - axis) : axis);
    if (shape_of(c, "x").rank == 2 || shape_of(c, "y").rank == 2)
        return axis == 1 && set(c, "y", 1);
    return set(c, "y", axis == 1 || axis == 2 ? (int8_t)(3 - axis) : axis);
}

static const row table[] = {
    { "attention", NULL, find_attention, NULL, false },
    { "conv2d", "w", find_conv2d, NULL, false },
    { "dropout", NULL, find_dropout, "x y", false },
    { "embedding", "table", find_embedding, NULL, true },
    { "gemm", "b", find_gemm, NULL, false },
    { "gemm_batched", NULL, find_gemm_batched, NULL, false },
    { "gemm_bias", "b", find_gemm_bias, NULL, false },
    { "layernorm", NULL, find_norm, "x y", false },
    { "rmsnorm", NULL, find_norm, "x y", false },
    { "rope", NULL, find_rope, "x y", false },
    { "softmax", NULL, find_softmax, "x y", false },
    { "softmax_xent", NULL, find_softmax_xent, NULL, true },
    { "transpose", NULL, find_transpose, NULL, false },
};

static const row *find(const char *kernel)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].kernel, kernel) == 0)
            return &table[i];
    return NULL;
}

/* ---- copies ---- */

/* The same elements in another shape: the axis with as many elements before it, and more than one along it. */
static bool find_copy(const slicing *c)
{
    gy_maths_shape from = shape_at(c, 0), to = shape_at(c, 1);
    int64_t before = 1, at = 1;
    if (c->axis[0] == GY_SLICE_WHOLE)
        return c->axis[1] == GY_SLICE_WHOLE;
    for (int8_t k = 0; k < c->axis[0]; k++)
        before *= from.extent[k];
    for (uint32_t k = 0; k < to.rank; at *= to.extent[k++]) {
        if (at != before || to.extent[k] == 1)
            continue;
        bool fits = c->axis[1] == GY_SLICE_WHOLE || c->axis[1] == (int8_t)k;
        c->axis[1] = (int8_t)k;
        return fits;
    }
    return false;
}

/* ---- formulas ---- */

/* The axis of the model that a known one is. */
static int32_t axis_of_model(const slicing *c, const gy_maths *m, uint32_t rank)
{
    for (uint32_t i = 0; i < gy_node_regions(c->n); i++) {
        const gy_maths_result *r = gy_maths_result_of(m, c->g->access.at[c->n->access + i].arg);
        if (c->axis[i] >= 0 && (!r || !r->reduction))
            return c->axis[i] + (int32_t)rank - (int32_t)shape_at(c, i).rank;
    }
    return GY_SLICE_WHOLE;
}

/* By reduction: how summands of all of a result are put together; 0: they cannot be. */
static gantry_access mode_of(const gy_maths_result *r)
{
    static const gantry_access modes[GY_MATHS_REDUCTIONS] = {
        [GY_MATHS_TOTAL] = GANTRY_SUM,
        [GY_MATHS_LEAST] = GANTRY_MIN,
        [GY_MATHS_MOST] = GANTRY_MAX,
    };
    return modes[r->reduction];
}

/* Where the axis of the model is in a result, of which other axes are reduced and are there with extent 1 or are not.
 * GY_SLICE_WHOLE: it is nowhere. */
static int8_t axis_of_reduced(const gy_maths_kind *kind, const gy_maths_result *r, int32_t axis, uint32_t rank)
{
    int32_t left_out = 0, before = 0;
    for (uint32_t i = 0; i < kind->rank; i++) {
        bool is_reduced = gy_maths_is_along(&kind->along, i);
        left_out += is_reduced;
        before += is_reduced && (int32_t)i < axis;
    }
    if (gy_maths_is_along(&kind->along, (uint32_t)axis))
        return mode_of(r) ? GY_SLICE_SUMMED : GY_SLICE_WHOLE;
    if (rank == kind->rank)
        return (int8_t)axis;
    return rank + (uint32_t)left_out == kind->rank ? (int8_t)(axis - before) : GY_SLICE_WHOLE;
}

static bool find_formulas(const slicing *c, const gy_maths *m)
{
    gy_maths_shape model = gy_spread_model(c->g, c->n, m);
    gy_maths_kind kind[GY_MATHS_ARGS];
    int32_t axis = axis_of_model(c, m, model.rank);
    if (axis < 0 || gy_build_kinds(c->g, c->n, m, kind, NULL))
        return false;
    for (uint32_t i = 0; i < gy_node_regions(c->n); i++) {
        const gy_maths_result *r = gy_maths_result_of(m, c->g->access.at[c->n->access + i].arg);
        gy_maths_shape shape = shape_at(c, i);
        int32_t own = axis - (int32_t)model.rank + (int32_t)shape.rank;
        int8_t wanted = own >= 0 && shape.extent[own] == model.extent[axis] ? (int8_t)own : GY_SLICE_WHOLE;
        if (r && r->reduction)
            wanted = axis_of_reduced(&kind[r->arg], r, axis, shape.rank);
        if ((r && wanted == GY_SLICE_WHOLE) || (c->axis[i] != GY_SLICE_WHOLE && c->axis[i] != wanted))
            return false;
        c->axis[i] = wanted;
    }
    return true;
}

/* ---- all nodes ---- */

static bool is_plain(const gantry_graph *g, const gy_node *n)
{
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        if (g->access.at[i].before || g->access.at[i].after || g->access.at[i].is_list ||
            g->access.at[i].mode == GANTRY_READWRITE)
            return false;
    return n->loop == GY_NONE && !n->has_when;
}

static const row *row_of(const gantry_graph *g, const gy_node *n)
{
    bool is_ours = n->kind == GY_NODE_KERNEL && n->kernel != GY_NONE && !g->kernels.at[n->kernel].code &&
                   !g->kernels.at[n->kernel].maths;
    return is_ours ? find(g->kernels.at[n->kernel].manifest->name) : NULL;
}

bool gy_slice_rule(const gantry_graph *g, uint32_t node, int8_t *axis)
{
    const gy_node *n = &g->nodes.at[node];
    slicing c = { .g = g, .n = n, .axis = axis };
    if (!is_plain(g, n))
        return false;
    if (n->kind == GY_NODE_COPY)
        return find_copy(&c);
    if (n->kind != GY_NODE_KERNEL || n->kernel == GY_NONE)
        return false;
    c.k = g->kernels.at[n->kernel].manifest;
    const char *unfit;
    const gy_maths *formulas = gy_node_formulas(g, n, &unfit);
    if (formulas)
        return find_formulas(&c, formulas);
    const row *r = row_of(g, n);
    return r && r->find(&c);
}

uint32_t gy_slice_opens(const gantry_graph *g, uint32_t node, int8_t *axis)
{
    const gy_node *n = &g->nodes.at[node];
    const row *r = row_of(g, n);
    if (!r || !r->opens || !is_plain(g, n))
        return GY_NONE;
    slicing c = { g, n, g->kernels.at[n->kernel].manifest, axis };
    double tb;
    uint32_t i = find_arg(&c, r->opens);
    if (i == GY_NONE || !number(&c, "tb", 0, &tb)) /* 0 of kernels that have no such number */
        return GY_NONE;
    axis[i] = find_arg(&c, "a") != GY_NONE && tb == 0 ? 1 : 0; /* columns of a product */
    return i;
}

bool gy_slice_may_stay_whole(const gantry_graph *g, uint32_t node)
{
    const row *r = row_of(g, &g->nodes.at[node]);
    return !r || r->is_lenient;
}

bool gy_slice_is_xent(const gantry_graph *g, uint32_t node)
{
    const row *r = row_of(g, &g->nodes.at[node]);
    return r && r->find == find_softmax_xent;
}

bool gy_slice_divides(const gantry_graph *g, uint32_t node, int8_t *axis, int32_t slices)
{
    const gy_node *n = &g->nodes.at[node];
    const row *r = row_of(g, n);
    double dim;
    if (!r || (r->find != find_rope && r->find != find_attention))
        return true;
    slicing c = { g, n, g->kernels.at[n->kernel].manifest, axis };
    if (r->find == find_attention) {
        gy_maths_shape k = shape_of(&c, "k"); /* has as many heads as q, or fewer */
        int64_t width = k.extent[k.rank - 1];
        return number(&c, "dim", 0, &dim) && (dim < 1 || width / slices % (int64_t)dim == 0);
    }
    gy_maths_shape x = shape_of(&c, "x");
    int64_t elements = 1;
    for (uint32_t k = (uint32_t)axis_of(&c, "x"); k < x.rank; k++)
        elements *= x.extent[k];
    return number(&c, "dim", 2, &dim) && (dim < 1 || elements / slices % (int64_t)dim == 0);
}

uint32_t gy_slice_numbers(const gantry_graph *g, uint32_t node, int8_t *axis, int32_t slices,
                          gy_slice_number out[GY_SLICE_NUMBERS])
{
    const gy_node *n = &g->nodes.at[node];
    const row *r = row_of(g, n);
    slicing c = { .g = g, .n = n, .axis = axis };
    if (!r || (r->find != find_dropout && r->find != find_embedding))
        return 0;
    c.k = g->kernels.at[n->kernel].manifest;
    if (r->find == find_embedding) {
        int64_t rows = shape_of(&c, "table").extent[0];
        out[0] = (gy_slice_number){ "first", 0, rows / slices };
        out[1] = (gy_slice_number){ "of", rows, 0 };
        return 2;
    }
    gy_maths_shape x = shape_of(&c, "x");
    int64_t pitch = 1;
    for (uint32_t k = (uint32_t)axis_of(&c, "x"); k < x.rank; k++)
        pitch *= x.extent[k];
    int64_t run = pitch / slices;
    out[0] = (gy_slice_number){ "first", 0, run };
    out[1] = (gy_slice_number){ "run", run, 0 };
    out[2] = (gy_slice_number){ "pitch", pitch, 0 };
    return axis_of(&c, "x") ? 3 : 1; /* along axis 0 they follow each other */
}

gantry_access gy_slice_mode(const gantry_graph *g, const gy_node *n, const gy_access *x)
{
    const char *unfit;
    const gy_maths *m = gy_node_formulas(g, n, &unfit);
    const gy_maths_result *r = m ? gy_maths_result_of(m, x->arg) : NULL;
    return r ? mode_of(r) : GANTRY_SUM;
}
