/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loss by softmax_xent over classes in slices, in formulas: the largest logit of a row is the largest that slices
 * have, the sum of exponentials and the right logit are sums over slices, and two numbers a row are all that is
 * exchanged (Shoeybi et al., Megatron-LM, 2019). What is taken off a logit before its exponential cancels out, so it is
 * the whole part of the largest, which has no adjoint: nothing goes back through it. A label that is no class has no
 * logit; where the kernel would end the run, the loss is infinite.
 */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"
#include "graph/strategy/slices.h"

#include <stdio.h>
#include <string.h>

/* Buffers beside one of logits: one element a row, and the numbers of the classes. */
typedef struct beside {
    gantry_buffer label, top, total, right, number;
    int64_t end; /* of the rows that nodes have written; 0: none is made */
} beside;

typedef struct writer {
    gy_adjoint a; /* the graph, and texts of one node */
    uint32_t nodes;
    beside *of;       /* by buffer of logits */
    uint32_t *number; /* by node: the first of those that are there in its place */
} writer;

/* ---- buffers ---- */

static void make_beside(writer *w, uint32_t logits)
{
    gantry_graph *g = w->a.graph;
    const gy_buffer *b = &g->buffers.at[logits];
    int64_t rows[] = { b->shape[0], 1 }, classes = b->shape[1];
    gantry_dtype dtype = b->dtype == GANTRY_F64 ? GANTRY_F64 : GANTRY_F32; /* sums of 16 bits are of f32 */
    beside *made = &w->of[logits];
    made->label = gy_adjoint_named(&w->a, logits, "label", 2, rows, GANTRY_I32);
    made->top = gy_adjoint_named(&w->a, logits, "top", 2, rows, dtype);
    made->total = gy_adjoint_named(&w->a, logits, "total", 2, rows, dtype);
    made->right = gy_adjoint_named(&w->a, logits, "right", 2, rows, dtype);
    const char *name = gy_arena_printf(&w->a.scratch, "%s.number", g->buffers.at[logits].name);
    while (name && gy_names_find(&g->buffer_names, name) != GY_NO_NAME)
        name = gy_arena_printf(&w->a.scratch, "%s_", name);
    if (!name)
        gy_build_nomem(g);
    made->number = gantry_graph_buffer(g, name ? name : "", GANTRY_I32, 1, &classes);
    gantry_buffer_set_class(g, made->number, GANTRY_CONST);
    gantry_buffer_init_iota(g, made->number);
}

/* ---- nodes ---- */

static gy_access access_of(const writer *w, const gy_primal *p, const char *arg)
{
    return *gy_primal_access(&w->a, p, arg);
}

static const char *id_of(writer *w, const gy_primal *p, const char *what)
{
    const char *id = gy_arena_printf(&w->a.scratch, "%s.%s", p->id, what);
    if (!id)
        gy_build_nomem(w->a.graph);
    return id ? id : "";
}

static void give(writer *w, gantry_node node, const char *name, const gy_access *rows, gantry_buffer buffer)
{
    gantry_node_arg(w->a.graph, node, name, gy_adjoint_rows(&w->a, rows, buffer));
}

static void add_label(writer *w, const gy_primal *p, const gy_access *rows, const beside *of)
{
    gy_access labels = access_of(w, p, "labels");
    gantry_node node = gantry_graph_copy(w->a.graph, id_of(w, p, "label"), gy_adjoint_primal_rows(&w->a, &labels),
                                         gy_adjoint_rows(&w->a, rows, of->label));
    gy_adjoint_place(&w->a, node, p->node);
}

static void add_top(writer *w, const gy_primal *p, const gy_access *rows, const beside *of)
{
    gantry_node node = gantry_graph_reduce(w->a.graph, id_of(w, p, "top"), "top = max(y, 1)");
    give(w, node, "top", rows, of->top);
    gantry_node_arg(w->a.graph, node, "y", gy_adjoint_primal_rows(&w->a, rows));
    gy_adjoint_place(&w->a, node, p->node);
}

static void add_sums(writer *w, const gy_primal *p, const gy_access *rows, const beside *of)
{
    gantry_node node =
        gantry_graph_reduce(w->a.graph, id_of(w, p, "sums"),
                            "total = sum(exp(y - floor(top)), 1); right = sum(select(number == label, y, 0), 1)");
    give(w, node, "total", rows, of->total);
    give(w, node, "right", rows, of->right);
    gantry_node_arg(w->a.graph, node, "y", gy_adjoint_primal_rows(&w->a, rows));
    give(w, node, "top", rows, of->top);
    give(w, node, "label", rows, of->label);
    gantry_node_arg(w->a.graph, node, "number", gantry_all(of->number));
    gy_adjoint_place(&w->a, node, p->node);
}

static void add_loss(writer *w, const gy_primal *p, const gy_access *rows, const beside *of)
{
    gantry_graph *g = w->a.graph;
    char formula[160];
    gy_access loss = access_of(w, p, "loss");
    const gy_scalar *scale = gy_primal_scalar(&w->a, p, "scale");
    gy_constant factor = scale ? scale->number : gy_constant_whole(1);
    snprintf(formula, sizeof formula,
             "loss = sum(scale * (log(total) + (floor(top) - right)) / ((label >= 0) * (label < %lld)))",
             (long long)g->buffers.at[rows->buffer].shape[1]);
    gantry_node node = gantry_graph_reduce(g, id_of(w, p, "loss"), formula);
    gantry_node_arg_as(g, node, "loss", gy_adjoint_primal_rows(&w->a, &loss), (gantry_access)loss.mode);
    gy_node_scalar_constant(g, node, "scale", factor, false);
    give(w, node, "total", rows, of->total);
    give(w, node, "top", rows, of->top);
    give(w, node, "right", rows, of->right);
    give(w, node, "label", rows, of->label);
    gy_adjoint_place(&w->a, node, p->node);
}

static gantry_status write_formulas(writer *w, uint32_t node)
{
    gantry_graph *g = w->a.graph;
    const gy_node *n = &g->nodes.at[node];
    gy_primal p = { .node = node, .id = n->id, .manifest = g->kernels.at[n->kernel].manifest };
    gy_access rows = access_of(w, &p, "logits");
    gy_adjoint_come_from(g, node);
    beside *of = &w->of[rows.buffer];
    if (!of->end || rows.first < of->end) /* another loss of the same logits has its own */
        make_beside(w, rows.buffer);
    of->end = rows.last;
    add_label(w, &p, &rows, of);
    add_top(w, &p, &rows, of);
    add_sums(w, &p, &rows, of);
    add_loss(w, &p, &rows, of);
    gy_arena_free(&w->a.scratch);
    return gy_adjoint_built(&w->a);
}

/* ---- the order of nodes ---- */

enum { WRITTEN = 4 }; /* nodes for one, which are at the end, in the order of those */

static gantry_status reorder(writer *w, const gy_spreading *s)
{
    gantry_graph *g = w->a.graph;
    gy_nodes nodes = { 0 };
    uint32_t next = w->nodes;
    bool ok = true;
    for (uint32_t i = 0; i < w->nodes; i++) {
        bool is_written = s->is_sliced[i] && gy_slice_is_xent(g, i);
        w->number[i] = (uint32_t)nodes.count;
        for (uint32_t k = 0; k < WRITTEN && is_written; k++, next++)
            ok = gy_vec_push(&nodes, g->nodes.at[next]) && ok;
        ok = (is_written || gy_vec_push(&nodes, g->nodes.at[i])) && ok;
    }
    w->number[w->nodes] = (uint32_t)nodes.count;
    if (!ok) {
        gy_vec_free(&nodes);
        return gy_fail_nomem(w->a.err);
    }
    return gy_build_replace_nodes(g, &nodes, w->number) ? GANTRY_OK : gy_fail_nomem(w->a.err);
}

static gantry_status write_all(writer *w, const gy_spreading *s)
{
    gantry_graph *g = w->a.graph;
    bool unique = g->build_->unique_ids;
    gantry_status status = GANTRY_OK;
    g->build_->unique_ids = false; /* ids that come give way to those that are there */
    for (uint32_t i = 0; i < w->nodes && !status; i++)
        if (s->is_sliced[i] && gy_slice_is_xent(g, i))
            status = write_formulas(w, i);
    g->build_->unique_ids = unique;
    if (!status && !gy_build_merge(g))
        status = gy_fail_nomem(w->a.err);
    return status ? status : reorder(w, s);
}

gantry_status gy_spread_classes(gy_spreading *s, bool *has_changed)
{
    gantry_graph *g = s->graph;
    *has_changed = false;
    for (uint32_t i = 0; i < g->nodes.count && !*has_changed; i++)
        *has_changed = s->is_sliced[i] && gy_slice_is_xent(g, i);
    if (!*has_changed)
        return GANTRY_OK;
    GY_TRY(gy_train_spell_weights(g, s->err));
    s->options = g->train;
    writer w = { .a = { .graph = g, .options = s->options, .err = s->err }, .nodes = (uint32_t)g->nodes.count };
    w.of = gy_calloc(g->buffers.count + 1, sizeof *w.of);
    w.number = gy_calloc(g->nodes.count + 1, sizeof *w.number);
    gantry_status status = w.of && w.number ? write_all(&w, s) : gy_fail_nomem(s->err);
    gy_arena_free(&w.a.scratch);
    gy_free(w.of);
    gy_free(w.number);
    return status;
}
