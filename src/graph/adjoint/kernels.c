/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels have adjoints beside those whose manifests say in formulas what they compute, and which nodes these
 * are: one row a kernel, with the function that adds the nodes. */
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_LIFTED 40 /* bits: a batch of a million of a million */

/* ---- pieces of new nodes ---- */

gy_access gy_rule_access(const gy_adjoint *a, const gy_primal *p, const char *arg)
{
    return *gy_primal_access(a, p, arg);
}

bool gy_rule_wants(const gy_adjoint *a, const gy_primal *p, const char *arg)
{
    return gy_adjoint_is_active(a, gy_primal_access(a, p, arg)->buffer);
}

gantry_node gy_rule_begin(gy_adjoint *a, const gy_primal *p, const char *kernel, const char *arg)
{
    gantry_node node = gantry_graph_kernel(a->graph, gy_adjoint_id(a, p, arg), kernel);
    gy_adjoint_place(a, node, p->node);
    return node;
}

/* A scalar that the node was not given is the same by default in its gradient's kernel. */
gantry_node gy_rule_map(gy_adjoint *a, const gy_primal *p, const char *name, const char *formulas)
{
    gantry_node node = gantry_graph_map(a->graph, gy_adjoint_id(a, p, name), formulas);
    gy_adjoint_place(a, node, p->node);
    return node;
}

gantry_buffer gy_rule_numbers(gy_adjoint *a, uint32_t beside, const char *name, gantry_dtype dtype, int rank,
                              const int64_t *shape, double first, double step)
{
    gantry_contents contents = GANTRY_CONTENTS_INIT;
    gantry_buffer made = gy_build_beside(a->graph, beside, name, dtype, rank, shape);
    contents.kind = GANTRY_IOTA;
    contents.first = first;
    contents.second = step;
    gantry_buffer_set_class(a->graph, made, GANTRY_CONST);
    gantry_buffer_init_with(a->graph, made, &contents);
    return made;
}

static void copy_scalar(gy_adjoint *a, const gy_primal *p, gantry_node node, const char *name)
{
    const gy_scalar *s = gy_primal_scalar(a, p, name);
    if (s)
        gy_node_scalar_constant(a->graph, node, name, s->number, false);
}

double gy_rule_number(const gy_adjoint *a, const gy_primal *p, const char *name, double fallback)
{
    const gy_scalar *s = gy_primal_scalar(a, p, name);
    return s ? s->number.real : fallback;
}

void gy_rule_give(gy_adjoint *a, const gy_primal *p, gantry_node node, const char *as, const char *arg)
{
    gantry_node_arg(a->graph, node, as, gy_adjoint_primal_rows(a, gy_primal_access(a, p, arg)));
}

void gy_rule_give_adjoint(gy_adjoint *a, const gy_primal *p, gantry_node node, const char *as, const char *arg)
{
    gy_access x = gy_rule_access(a, p, arg);
    gantry_node_arg(a->graph, node, as, gy_adjoint_of(a, &x));
}

/* Argument `as`, a sum, goes to the adjoint of `arg`; nobody reads it where that is wanted by nobody. */
static void take_sum(gy_adjoint *a, const gy_primal *p, gantry_node node, const char *as, const char *arg,
                     bool sums_only)
{
    gy_access x = gy_rule_access(a, p, arg);
    if (!gy_adjoint_is_active(a, x.buffer)) {
        gantry_node_arg_as(a->graph, node, as, gy_adjoint_rows(a, &x, gy_adjoint_clone(a, x.buffer, "unused")),
                           GANTRY_SUM);
        return;
    }
    gy_destination target = gy_adjoint_target(a, &x);
    gantry_node_arg_as(a->graph, node, as, target.region, sums_only ? GANTRY_SUM : gy_destination_access(&target));
}

void gy_rule_take_rows(gy_adjoint *a, const gy_primal *p, gantry_node node, const char *as, const char *arg,
                       gantry_region *from, gy_destination *target)
{
    gy_access x = gy_rule_access(a, p, arg);
    *target = (gy_destination){ .adds = false };
    *from = gy_adjoint_is_active(a, x.buffer) ? gy_adjoint_written(a, &x, target)
                                              : gy_adjoint_rows(a, &x, gy_adjoint_clone(a, x.buffer, "unused"));
    gantry_node_arg(a->graph, node, as, *from);
}

void gy_rule_scale(gy_adjoint *a, const gy_primal *p, const char *arg, double factor)
{
    gy_access x = gy_rule_access(a, p, arg);
    if (factor == 1)
        return;
    gantry_node node = gy_rule_map(a, p, arg, "to = factor * to");
    gantry_node_arg(a->graph, node, "to", gy_adjoint_of(a, &x));
    gantry_node_scalar(a->graph, node, "factor", factor);
}

/* ---- products ---- */

/* c = alpha op(a) op(b). One factor's adjoint is a product of that of c, which is `product`, and the other factor;
 * where the factor is transposed, so is its adjoint, and both change places. */
static void go_back_factor(gy_adjoint *a, const gy_primal *p, const char *kernel, const char *arg,
                           gantry_region product)
{
    bool ta = gy_rule_number(a, p, "ta", 0) != 0, tb = gy_rule_number(a, p, "tb", 0) != 0, is_a = arg[0] == 'a';
    bool transposed = is_a ? ta : tb, other_transposed = is_a ? tb : ta;
    const char *other = is_a ? "b" : "a";
    bool adjoint_first = is_a != transposed; /* c is the left factor of a's adjoint, the right one of b's */
    gantry_node node = gy_rule_begin(a, p, kernel, arg);
    copy_scalar(a, p, node, "alpha");
    gantry_node_arg(a->graph, node, adjoint_first ? "a" : "b", product);
    gy_rule_give(a, p, node, adjoint_first ? "b" : "a", other);
    gantry_node_scalar(a->graph, node, adjoint_first ? "ta" : "tb", transposed);
    bool turn = transposed ? other_transposed : !other_transposed;
    gantry_node_scalar(a->graph, node, adjoint_first ? "tb" : "ta", turn);
    take_sum(a, p, node, "c", arg, false);
}

static void go_back_factors(gy_adjoint *a, const gy_primal *p, const char *kernel, gantry_region product)
{
    if (gy_rule_wants(a, p, "a"))
        go_back_factor(a, p, kernel, "a", product);
    if (gy_rule_wants(a, p, "b"))
        go_back_factor(a, p, kernel, "b", product);
}

/* The adjoint of c as a factor: in the dtype of the others, to which it is rounded where c is wider. */
static gantry_region factor_of_adjoint(gy_adjoint *a, const gy_primal *p)
{
    gy_access c = gy_rule_access(a, p, "c");
    gantry_region grad = gy_adjoint_of(a, &c);
    const gy_buffer *b = &a->graph->buffers.at[c.buffer];
    gantry_dtype dtype = a->graph->buffers.at[gy_primal_access(a, p, "a")->buffer].dtype;
    if (dtype == b->dtype)
        return grad;
    gantry_region narrow =
        gy_adjoint_rows(a, &c, gy_adjoint_named(a, c.buffer, "grad.narrow", b->rank, b->shape, dtype));
    gantry_node node = gantry_graph_map(a->graph, gy_adjoint_id(a, p, "narrow"), "d = grad");
    gantry_node_arg(a->graph, node, "d", narrow);
    gantry_node_arg(a->graph, node, "grad", grad);
    gy_adjoint_place(a, node, p->node);
    return narrow;
}

static gantry_status go_back_gemm(gy_adjoint *a, const gy_primal *p)
{
    go_back_factors(a, p, p->manifest->name, factor_of_adjoint(a, p));
    if (gy_primal_access(a, p, "c")->mode == GANTRY_READWRITE)
        gy_rule_scale(a, p, "c", gy_rule_number(a, p, "beta", 0));
    return gy_adjoint_built(a);
}

static gantry_status go_back_gemm_batched(gy_adjoint *a, const gy_primal *p)
{
    int64_t stack = gy_adjoint_shape(a, gy_primal_access(a, p, "c")).extent[0];
    static const char *const factors[] = { "a", "b" };
    for (size_t i = 0; i < 2; i++)
        if (gy_rule_wants(a, p, factors[i]) &&
            gy_adjoint_shape(a, gy_primal_access(a, p, factors[i])).extent[0] != stack)
            return gy_node_fail(a->graph, a->err, p->node,
                                "has one matrix \"%s\" for all %lld products, which has no adjoint; use gemm, or a "
                                "stack of as many",
                                factors[i], (long long)stack);
    return go_back_gemm(a, p);
}

/* ---- a product with a bias ---- */

enum { NONE, RELU, GELU, GELU_ERF }; /* as the kernel numbers activations */

/* The adjoint of what the activation is taken of: the derivative of relu follows from its result, those of gelu from
 * its argument, which is computed again. */
static gantry_region inner_adjoint(gy_adjoint *a, const gy_primal *p, int activation)
{
    bool is_gelu = activation == GELU || activation == GELU_ERF;
    static const char *const with_erf = "d = grad * (0.5 + 0.5 * erf(0.70710678118654752440 * z) + "
                                        "0.39894228040143267794 * z * exp(-0.5 * square(z)))";
    static const char *const gelu = "d = grad * (0.5 + 0.5 * tanh(0.79788456080286535588 * (z + 0.044715 * z * z * z)) "
                                    "+ 0.39894228040143267794 * z * (1 + 0.134145 * z * z) * (1 - "
                                    "square(tanh(0.79788456080286535588 * (z + 0.044715 * z * z * z)))))";
    gy_access c = gy_rule_access(a, p, "c");
    gantry_region z = gy_adjoint_primal_rows(a, &c);
    gantry_region made = gy_adjoint_rows(a, &c, gy_adjoint_clone(a, c.buffer, "inner.grad"));
    if (is_gelu) {
        z = gy_adjoint_rows(a, &c, gy_adjoint_clone(a, c.buffer, "inner"));
        gantry_node again = gy_rule_begin(a, p, "gemm_bias", "inner");
        copy_scalar(a, p, again, "ta");
        copy_scalar(a, p, again, "tb");
        gy_rule_give(a, p, again, "a", "a");
        gy_rule_give(a, p, again, "b", "b");
        gy_rule_give(a, p, again, "bias", "bias");
        gantry_node_arg(a->graph, again, "c", z);
    }
    gantry_region grad = gy_adjoint_of(a, &c);
    gantry_node node = gantry_graph_map(a->graph, gy_adjoint_id(a, p, "activation"),
                                        activation == GELU       ? gelu
                                        : activation == GELU_ERF ? with_erf
                                                                 : "d = select(z > 0, grad, 0)");
    gantry_node_arg(a->graph, node, "d", made);
    gantry_node_arg(a->graph, node, "grad", grad);
    gantry_node_arg(a->graph, node, "z", z);
    gy_adjoint_place(a, node, p->node);
    return made;
}

static gantry_status go_back_gemm_bias(gy_adjoint *a, const gy_primal *p)
{
    int activation = (int)gy_rule_number(a, p, "activation", NONE);
    gy_access c = gy_rule_access(a, p, "c"), bias = gy_rule_access(a, p, "bias");
    gantry_region inner = activation == NONE ? gy_adjoint_of(a, &c) : inner_adjoint(a, p, activation);
    if (gy_rule_wants(a, p, "bias")) {
        gy_destination target = gy_adjoint_target(a, &bias);
        gantry_node node = gantry_graph_reduce(a->graph, gy_adjoint_id(a, p, "bias"), "to = sum(d)");
        gantry_node_arg_as(a->graph, node, "to", target.region, gy_destination_access(&target));
        gantry_node_arg(a->graph, node, "d", inner);
        gy_adjoint_place(a, node, p->node);
    }
    go_back_factors(a, p, "gemm", inner);
    return gy_adjoint_built(a);
}

/* ---- kernels with one written result ---- */

typedef struct written {
    const char *kernel;       /* the gradient's */
    const char *adjoint, *as; /* the result of the old node, whose adjoint is argument `as` of the new one */
    const char *to, *arg;     /* argument `to` of the new node goes to the adjoint of `arg` */
    const char *scalars[6];   /* copied, up to NULL */
    const char *same[4];      /* arguments of one name in both, up to NULL */
} written;

static void go_back_written(gy_adjoint *a, const gy_primal *p, const written *w, gantry_node *made)
{
    gantry_region from;
    gy_destination target;
    gantry_node node = *made = gy_rule_begin(a, p, w->kernel, w->arg);
    for (size_t i = 0; w->scalars[i]; i++)
        copy_scalar(a, p, node, w->scalars[i]);
    for (size_t i = 0; w->same[i]; i++)
        gy_rule_give(a, p, node, w->same[i], w->same[i]);
    gy_rule_give_adjoint(a, p, node, w->as, w->adjoint);
    gy_rule_take_rows(a, p, node, w->to, w->arg, &from, &target);
    gy_adjoint_add_rows(a, p, w->arg, from, &target);
}

static gantry_status go_back_softmax(gy_adjoint *a, const gy_primal *p)
{
    static const written w = { "softmax_grad", "y", "dy", "dx", "x", { "scale" }, { "y" } };
    gantry_node node;
    go_back_written(a, p, &w, &node);
    return gy_adjoint_built(a);
}

static gantry_status go_back_transpose(gy_adjoint *a, const gy_primal *p)
{
    static const written w = { "transpose", "y", "x", "y", "x", { "axis" }, { NULL } };
    gantry_node node;
    go_back_written(a, p, &w, &node);
    return gy_adjoint_built(a);
}

/* An element is part of its own sum and of all behind it. */
static gantry_status go_back_scan(gy_adjoint *a, const gy_primal *p)
{
    static const written w = { "scan", "y", "x", "y", "x", { "exclusive" }, { NULL } };
    gantry_node node;
    go_back_written(a, p, &w, &node);
    gantry_node_scalar(a->graph, node, "reverse", gy_rule_number(a, p, "reverse", 0) == 0);
    return gy_adjoint_built(a);
}

static gantry_status go_back_dropout(gy_adjoint *a, const gy_primal *p)
{
    static const written w = { "dropout", "y", "x", "y", "x", { "p", "seed", "first", "run", "pitch" }, { NULL } };
    gantry_node node;
    go_back_written(a, p, &w, &node);
    return gy_adjoint_built(a);
}

static gantry_status go_back_rope(gy_adjoint *a, const gy_primal *p)
{
    static const written w = { "rope", "y", "x", "y", "x", { "dim", "first", "length", "base", "axis" }, { NULL } };
    gantry_node node;
    go_back_written(a, p, &w, &node);
    gantry_node_scalar(a->graph, node, "sign", -gy_rule_number(a, p, "sign", 1));
    return gy_adjoint_built(a);
}

/* The matrix of a transform of n numbers, with pairs of reals for complex ones, is n times that of the inverse,
 * transposed. */
static gantry_status go_back_fft(gy_adjoint *a, const gy_primal *p)
{
    static const written w = { "fft", "y", "x", "y", "x", { "axis", "axes" }, { NULL } };
    gy_maths_shape shape = gy_adjoint_shape(a, gy_primal_access(a, p, "x"));
    int64_t axis = (int64_t)gy_rule_number(a, p, "axis", -2), axes = (int64_t)gy_rule_number(a, p, "axes", 1);
    bool is_inverse = gy_rule_number(a, p, "inverse", 0) != 0;
    double count = 1, scale = gy_rule_number(a, p, "scale", 1);
    axis += axis < 0 ? (int64_t)shape.rank : 0;
    for (int64_t k = axis; k >= 0 && k < axis + axes && k < (int64_t)shape.rank; k++)
        count *= (double)shape.extent[k];
    gantry_node node;
    go_back_written(a, p, &w, &node);
    gantry_node_scalar(a->graph, node, "inverse", !is_inverse);
    gantry_node_scalar(a->graph, node, "scale", is_inverse ? scale / count : scale * count);
    return gy_adjoint_built(a);
}

/* ---- losses ---- */

/* A power of two that brings the scale of a loss, 1 / batch mostly, near to 1. Gradients of logits in f16 are this many
 * times what they are until the factor of the loss comes to them, as a share of a class may be less than f16 has. */
static int64_t lift_of(const gy_adjoint *a, const gy_primal *p, uint32_t logits)
{
    int exponent = 0;
    double scale = fabs(gy_rule_number(a, p, "scale", 1));
    if (a->graph->buffers.at[logits].dtype != GANTRY_F16 || !(scale > 0) || !isfinite(scale))
        return 1;
    frexp(scale, &exponent);
    return exponent >= 0 ? 1 : INT64_C(1) << (exponent > -MOST_LIFTED ? -exponent : MOST_LIFTED);
}

/* The kernel gives the gradient of its own loss; that of the graph may follow from it by more. */
static gantry_status go_back_xent(gy_adjoint *a, const gy_primal *p)
{
    gy_access x = gy_rule_access(a, p, "logits"), loss = gy_rule_access(a, p, "loss");
    gy_destination target;
    gantry_region to = gy_adjoint_written(a, &x, &target);
    bool is_loss = loss.buffer == a->loss && !target.adds && a->options->loss_scale == 1;
    gantry_region from = is_loss || target.adds ? to : gy_adjoint_rows(a, &x, gy_adjoint_clone(a, x.buffer, "inflow"));
    gantry_node node = gy_rule_begin(a, p, "softmax_xent_grad", "logits");
    int64_t lift = is_loss ? 1 : lift_of(a, p, x.buffer);
    if (lift > 1)
        gantry_node_scalar(a->graph, node, "scale", gy_rule_number(a, p, "scale", 1) * (double)lift);
    else
        copy_scalar(a, p, node, "scale");
    gy_rule_give(a, p, node, "logits", "logits");
    gy_rule_give(a, p, node, "labels", "labels");
    gantry_node_arg(a->graph, node, "grad", from);
    if (is_loss)
        return gy_adjoint_built(a);
    const char *id = gy_arena_printf(&a->scratch, "%s.grad.logits.factor", p->id);
    char formula[64], factor[32] = "loss";
    if (lift > 1)
        snprintf(factor, sizeof factor, "(loss / %" PRId64 ")", lift);
    snprintf(formula, sizeof formula, "to = %sfrom * %s", target.adds ? "to + " : "", factor);
    gantry_node map = gantry_graph_map(a->graph, id, formula);
    gantry_node_arg(a->graph, map, "to", target.region);
    gantry_node_arg(a->graph, map, "from", from);
    gy_rule_give_adjoint(a, p, map, "loss", "loss");
    gy_adjoint_place(a, map, p->node);
    return gy_adjoint_built(a);
}

/* ---- norms ---- */

/* Does `arg` read rows that an argument before it reads, too? One node cannot give both to the same adjoint. */
static bool is_read_before(const gy_adjoint *a, const gy_primal *p, const char *const *before, const char *arg)
{
    const gy_access *x = gy_primal_access(a, p, arg);
    bool is_before = false;
    for (size_t i = 0; before[i] && strcmp(before[i], arg) != 0; i++) {
        const gy_access *y = gy_primal_access(a, p, before[i]);
        is_before = is_before || (x->buffer == y->buffer && x->first < y->last && y->first < x->last);
    }
    return is_before && gy_adjoint_is_active(a, x->buffer);
}

static gantry_status go_back_norm(gy_adjoint *a, const gy_primal *p)
{
    static const char *const args[] = { "x", "gain", "bias", NULL }, *const to[] = { "dx", "dgain", "dbias" };
    gantry_region from[3];
    gy_destination target[3] = { { .adds = false } };
    bool has_bias = strcmp(p->manifest->name, "layernorm") == 0;
    size_t count = has_bias ? 3 : 2;
    gantry_node node = gy_rule_begin(a, p, has_bias ? "layernorm_grad" : "rmsnorm_grad", "x");
    copy_scalar(a, p, node, "eps");
    gy_rule_give(a, p, node, "x", "x");
    gy_rule_give(a, p, node, "gain", "gain");
    gy_rule_give_adjoint(a, p, node, "dy", "y");
    gy_rule_take_rows(a, p, node, to[0], args[0], &from[0], &target[0]);
    for (size_t i = 1; i < count; i++) {
        gy_access x = gy_rule_access(a, p, args[i]);
        if (!is_read_before(a, p, args, args[i])) {
            take_sum(a, p, node, to[i], args[i], true);
            continue;
        }
        target[i] = gy_adjoint_target(a, &x);
        from[i] = gy_adjoint_rows(a, &x, gy_adjoint_clone(a, x.buffer, "inflow"));
        gantry_node_arg_as(a->graph, node, to[i], from[i], GANTRY_SUM);
    }
    for (size_t i = 0; i < count; i++)
        gy_adjoint_add_rows(a, p, args[i], from[i], &target[i]);
    return gy_adjoint_built(a);
}

/* ---- attention ---- */

static gantry_status go_back_attention(gy_adjoint *a, const gy_primal *p)
{
    static const char *const args[] = { "q", "k", "v" }, *const to[] = { "dq", "dk", "dv" };
    gantry_region from[3];
    gy_destination target[3];
    const gy_access *lse = gy_primal_access(a, p, "lse");
    if (lse && gy_adjoint_is_active(a, lse->buffer))
        return gy_node_fail(a->graph, a->err, p->node,
                            "gives \"lse\", which the loss follows from, and attention has no adjoint by it; compute "
                            "what the loss wants of it with gemm_batched and reductions");
    gantry_node node = gy_rule_begin(a, p, "attention_grad", "q");
    copy_scalar(a, p, node, "scale");
    copy_scalar(a, p, node, "causal");
    copy_scalar(a, p, node, "dim");
    copy_scalar(a, p, node, "length");
    for (int i = 0; i < 3; i++)
        gy_rule_give(a, p, node, args[i], args[i]);
    gy_rule_give(a, p, node, "y", "y");
    if (gy_adjoint_kept(a, p, "lse"))
        gy_rule_give(a, p, node, "lse", "lse");
    gy_rule_give_adjoint(a, p, node, "dy", "y");
    for (int i = 0; i < 3; i++)
        gy_rule_take_rows(a, p, node, to[i], args[i], &from[i], &target[i]);
    for (int i = 0; i < 3; i++)
        gy_adjoint_add_rows(a, p, args[i], from[i], &target[i]);
    return gy_adjoint_built(a);
}

/* ---- tables and windows ---- */

static gantry_status go_back_embedding(gy_adjoint *a, const gy_primal *p)
{
    gantry_node node = gy_rule_begin(a, p, "embedding_grad", "table");
    copy_scalar(a, p, node, "first");
    copy_scalar(a, p, node, "of");
    gy_rule_give(a, p, node, "ids", "ids");
    gy_rule_give_adjoint(a, p, node, "dy", "y");
    take_sum(a, p, node, "dtable", "table", true);
    return gy_adjoint_built(a);
}

static gantry_status go_back_conv2d(gy_adjoint *a, const gy_primal *p)
{
    static const written w = { "conv2d_grad_x", "y", "dy", "dx", "x", { "stride", "pad" }, { "w" } };
    gantry_node node;
    if (gy_rule_wants(a, p, "x"))
        go_back_written(a, p, &w, &node);
    if (!gy_rule_wants(a, p, "w"))
        return gy_adjoint_built(a);
    node = gy_rule_begin(a, p, "conv2d_grad_w", "w");
    copy_scalar(a, p, node, "stride");
    copy_scalar(a, p, node, "pad");
    gy_rule_give(a, p, node, "x", "x");
    gy_rule_give_adjoint(a, p, node, "dy", "y");
    take_sum(a, p, node, "dw", "w", true);
    return gy_adjoint_built(a);
}

/* ---- other tiles ---- */

/* The accesses of an argument, one for each tile of a list, lie side by side. */
static const gy_access *end_of(const gy_adjoint *a, const gy_primal *p, const gy_access *first)
{
    const gy_node *n = &a->graph->nodes.at[p->node];
    const gy_access *end = a->graph->access.at + n->access + gy_node_regions(n), *x = first;
    while (x < end && x->arg == first->arg)
        x++;
    return x;
}

/* The region that an argument of a node names, of a buffer that is cut alike. Tiles of a list are a box, whose corners
 * come first and last. */
static gantry_region pieces_of(gy_adjoint *a, const gy_primal *p, const char *arg, gantry_buffer in)
{
    const gy_access *one = gy_primal_access(a, p, arg), *end = end_of(a, p, one);
    const gy_buffer *b = &a->graph->buffers.at[one->buffer];
    int64_t low[GANTRY_TILE_AXES], high[GANTRY_TILE_AXES];
    if (!b->tiles[0])
        return gy_adjoint_rows(a, one, in);
    gy_tile_index(b, one->first, low);
    gy_tile_index(b, end[-1].first, high);
    for (int k = 0; k < GANTRY_TILE_AXES; k++)
        high[k]++;
    return gantry_tiles_by_axis(in, b->rank, low, high);
}

static int64_t elements_of(const gy_adjoint *a, const gy_primal *p, const char *arg)
{
    const gy_access *one = gy_primal_access(a, p, arg), *end = end_of(a, p, one);
    int64_t count = 0;
    for (const gy_access *x = one; x < end; x++) {
        gy_maths_shape shape = gy_access_shape(a->graph, x);
        count += x->first < x->last ? gy_maths_shape_elements(&shape) : 0;
    }
    return count;
}

/* Pieces of y have the elements of all pieces of x, so what a piece of x gave is found among the adjoints of y. */
static gantry_status go_back_retile(gy_adjoint *a, const gy_primal *p)
{
    gy_access y = gy_rule_access(a, p, "y");
    const gy_access *one = gy_primal_access(a, p, "x");
    size_t first = (size_t)(one - a->graph->access.at), end = (size_t)(end_of(a, p, one) - a->graph->access.at);
    long long given = elements_of(a, p, "y"), there = elements_of(a, p, "x");
    if (given != there)
        return gy_node_fail(a->graph, a->err, p->node,
                            "takes %lld of the %lld elements of \"x\", which has no adjoint; give it pieces that \"y\" "
                            "has all elements of",
                            given, there);
    for (size_t i = first; i < end; i++) {
        gy_access x = a->graph->access.at[i]; /* nodes that are added move it */
        if (x.first == x.last)
            continue;
        gy_destination target;
        gantry_region to = gy_adjoint_written(a, &x, &target);
        gantry_node node = gy_rule_begin(a, p, "retile", "x");
        gantry_node_arg(a->graph, node, "x", pieces_of(a, p, "y", gy_adjoint_buffer(a, y.buffer)));
        gantry_node_arg(a->graph, node, "y", to);
        gy_adjoint_add_rows(a, p, "x", to, &target);
    }
    return gy_adjoint_built(a);
}

/* ---- the table ---- */

static const gy_rule rules[] = {
    { .kernel = "attention", .args = "q k v", .go_back = go_back_attention, .kept = "y" },
    { .kernel = "conv2d", .args = "x w", .go_back = go_back_conv2d },
    { .kernel = "dropout", .args = "x", .go_back = go_back_dropout },
    { .kernel = "embedding", .args = "table", .go_back = go_back_embedding },
    { .kernel = "fft", .args = "x", .go_back = go_back_fft },
    { .kernel = "filter2d", .args = "image", .go_back = gy_stencil_go_back, .to = "out" },
    { .kernel = "gaussian_blur", .args = "image", .go_back = gy_stencil_go_back, .to = "out" },
    { .kernel = "gemm", .args = "a b", .go_back = go_back_gemm, .changed = "c" },
    { .kernel = "gemm_batched", .args = "a b", .go_back = go_back_gemm_batched, .changed = "c" },
    { .kernel = "gemm_bias", .args = "a b bias", .go_back = go_back_gemm_bias, .kept = "c", .kept_with = "activation" },
    { .kernel = "getrf", .args = "", .go_back = gy_getrf_go_back, .kept = "a pivots", .changed = "a" },
    { .kernel = "getrs", .args = "a", .go_back = gy_getrs_go_back, .kept = "b", .changed = "b" },
    { .kernel = "jacobi2d", .args = "x", .go_back = gy_stencil_go_back, .to = "y" },
    { .kernel = "jacobi3d", .args = "x", .go_back = gy_stencil_go_back, .to = "y" },
    { .kernel = "layernorm", .args = "x gain bias", .go_back = go_back_norm },
    { .kernel = "potrf", .args = "", .go_back = gy_potrf_go_back, .kept = "a", .changed = "a" },
    { .kernel = "qr", .args = "a", .go_back = gy_qr_go_back, .kept = "q r" },
    { .kernel = "resize", .args = "image", .go_back = gy_resize_go_back },
    { .kernel = "retile", .args = "x", .go_back = go_back_retile, .takes_lists = true },
    { .kernel = "rmsnorm", .args = "x gain", .go_back = go_back_norm },
    { .kernel = "rope", .args = "x", .go_back = go_back_rope },
    { .kernel = "scan", .args = "x", .go_back = go_back_scan },
    { .kernel = "softmax", .args = "x", .go_back = go_back_softmax, .kept = "y" },
    { .kernel = "softmax_xent", .args = "logits", .go_back = go_back_xent },
    { .kernel = "sort", .args = "x", .go_back = gy_sort_go_back },
    { .kernel = "sort_pairs", .args = "keys values", .go_back = gy_sort_pairs_go_back },
    { .kernel = "spmm_csr", .args = "val x", .go_back = gy_sparse_go_back },
    { .kernel = "spmv_csr", .args = "val x", .go_back = gy_sparse_go_back },
    { .kernel = "syrk", .args = "a", .go_back = gy_syrk_go_back, .changed = "c" },
    { .kernel = "top_k", .args = "x", .go_back = gy_top_k_go_back, .kept = "indices" },
    { .kernel = "transpose", .args = "x", .go_back = go_back_transpose },
    { .kernel = "trsm", .args = "a", .go_back = gy_trsm_go_back, .kept = "b", .changed = "b" },
};
enum { RULES = sizeof rules / sizeof *rules };

const gy_rule *gy_adjoint_rule(const char *kernel)
{
    for (size_t i = 0; i < RULES; i++)
        if (strcmp(rules[i].kernel, kernel) == 0)
            return &rules[i];
    return NULL;
}
