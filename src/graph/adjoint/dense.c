/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense linear algebra that changes a matrix in place. What it was before has an adjoint that only nodes before this
 * one read, what it becomes one that only nodes behind it have added to: so the adjoint is changed in place, too.
 * Formulas for trsm and potrf are those of Giles, Collected Matrix Derivative Results for Forward and Reverse Mode
 * Algorithmic Differentiation, 2008, and Murray, Differentiation of the Cholesky decomposition, 2016. Kernels read and
 * write lower triangles; what lies above the diagonal stays as it is, and so does its adjoint.
 *
 * Both multiply by the inverse of a lower factor, which getrs does with its transpose: an upper factor, beside which
 * the lower one is 1, and no rows are exchanged.
 */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <string.h>

typedef struct dense {
    gy_adjoint *a;
    const gy_primal *p;
    const char *arg; /* that is changed in place */
    int64_t rows;    /* of it */
    int64_t order;   /* of the triangle */
    gantry_dtype dtype;
    gantry_buffer row, column; /* numbers of the rows and columns of the triangle */
} dense;

static const gy_access *access_to(const dense *d, const char *arg)
{
    return gy_primal_access(d->a, d->p, arg);
}

/* ---- pieces of new nodes ---- */

static gantry_buffer make(const dense *d, const char *name, int64_t rows, int64_t columns)
{
    const int64_t shape[] = { rows, columns };
    return gy_build_beside(d->a->graph, access_to(d, d->arg)->buffer, name, d->dtype, 2, shape);
}

static gantry_buffer make_square(const dense *d, const char *name)
{
    return make(d, name, d->order, d->order);
}

/* first, first + 1, ..., as a row or as a column. */
static gantry_buffer make_numbers(const dense *d, const char *name, int rank, double first)
{
    const int64_t shape[] = { d->order, 1 };
    return gy_rule_numbers(d->a, access_to(d, d->arg)->buffer, name, GANTRY_I32, rank, shape, first, 1);
}

/* `arg` is changed in place, and `square` has the order of the triangle. */
static dense describe(gy_adjoint *a, const gy_primal *p, const char *arg, const char *square)
{
    dense d = { .a = a, .p = p, .arg = arg };
    d.rows = gy_adjoint_shape(a, access_to(&d, arg)).extent[0];
    d.order = gy_adjoint_shape(a, access_to(&d, square)).extent[0];
    d.dtype = a->graph->buffers.at[access_to(&d, arg)->buffer].dtype;
    d.row = make_numbers(&d, "grad.row", 2, 0);
    d.column = make_numbers(&d, "grad.column", 1, 0);
    return d;
}

static gantry_region adjoint_of(const dense *d)
{
    return gy_adjoint_of(d->a, access_to(d, d->arg));
}

/* A map of matrices of the triangle's order, whose formula asks for the place of an element. */
static gantry_node begin_triangle(const dense *d, const char *name, const char *formulas)
{
    gantry_node node = gy_rule_map(d->a, d->p, name, formulas);
    gantry_node_arg(d->a->graph, node, "row", gantry_all(d->row));
    gantry_node_arg(d->a->graph, node, "column", gantry_all(d->column));
    return node;
}

static gantry_region transpose(const dense *d, const char *name, gantry_region x, gantry_region y)
{
    gantry_node node = gy_rule_begin(d->a, d->p, "transpose", name);
    gantry_node_arg(d->a->graph, node, "x", x);
    gantry_node_arg(d->a->graph, node, "y", y);
    return y;
}

/* ---- products ---- */

/* The lower triangle of c = alpha a a^T + beta c: an element of it is of two rows of a. */
gantry_status gy_syrk_go_back(gy_adjoint *a, const gy_primal *p)
{
    dense d = describe(a, p, "c", "c");
    if (gy_rule_wants(a, p, "a")) {
        gantry_region turned = transpose(&d, "a.turned", adjoint_of(&d), gantry_all(make_square(&d, "grad.turned")));
        gantry_region both = gantry_all(make_square(&d, "grad.both"));
        gantry_node node =
            begin_triangle(&d, "a.both", "both = select(column < row, d, turned) + select(column == row, d, 0)");
        gantry_node_arg(a->graph, node, "d", adjoint_of(&d));
        gantry_node_arg(a->graph, node, "turned", turned);
        gantry_node_arg(a->graph, node, "both", both);
        gy_access x = gy_rule_access(a, p, "a");
        gy_destination target = gy_adjoint_target(a, &x);
        node = gy_rule_begin(a, p, "gemm", "a");
        gantry_node_scalar(a->graph, node, "alpha", gy_rule_number(a, p, "alpha", -1));
        gantry_node_arg(a->graph, node, "a", both);
        gy_rule_give(a, p, node, "b", "a");
        gantry_node_arg_as(a->graph, node, "c", target.region, gy_destination_access(&target));
    }
    if (gy_rule_number(a, p, "beta", 1) != 1) {
        gantry_node node = begin_triangle(&d, "c", "to = select(column <= row, beta * to, to)");
        gantry_node_arg(a->graph, node, "to", adjoint_of(&d));
        gantry_node_scalar(a->graph, node, "beta", gy_rule_number(a, p, "beta", 1));
    }
    return gy_adjoint_built(a);
}

/* ---- triangular factors ---- */

/* The transpose of the lower triangle of `arg`. */
static gantry_region upper_of(const dense *d, const char *arg)
{
    gantry_region turned = transpose(d, "turned", gy_adjoint_primal_rows(d->a, access_to(d, arg)),
                                     gantry_all(make_square(d, "grad.turned")));
    gantry_region upper = gantry_all(make_square(d, "grad.upper"));
    gantry_node node = begin_triangle(d, "upper", "upper = select(column >= row, turned, 0)");
    gantry_node_arg(d->a->graph, node, "turned", turned);
    gantry_node_arg(d->a->graph, node, "upper", upper);
    return upper;
}

/* b becomes upper^-1 b. */
static void solve(const dense *d, const char *name, gantry_region upper, gantry_region b)
{
    gantry_node node = gy_rule_begin(d->a, d->p, "getrs", name);
    gantry_node_arg(d->a->graph, node, "a", upper);
    gantry_node_arg(d->a->graph, node, "pivots", gantry_all(make_numbers(d, "grad.pivots", 1, 1)));
    gantry_node_arg(d->a->graph, node, "b", b);
}

/* b' = b a^-T. With H the adjoint of b' times a^-1, that of b is H and that of a the lower triangle of -H^T b'. */
gantry_status gy_trsm_go_back(gy_adjoint *a, const gy_primal *p)
{
    dense d = describe(a, p, "b", "a");
    gantry_region turned = gantry_all(make(&d, "grad.solved", d.order, d.rows));
    transpose(&d, "b.turned", adjoint_of(&d), turned);
    solve(&d, "b.solved", upper_of(&d, "a"), turned);
    if (gy_rule_wants(a, p, "a")) {
        gantry_region product = gantry_all(make_square(&d, "grad.product")), from;
        gy_destination target;
        gantry_node node = gy_rule_begin(a, p, "gemm", "a.product");
        gantry_node_scalar(a->graph, node, "alpha", -1);
        gantry_node_arg(a->graph, node, "a", turned);
        gy_rule_give(a, p, node, "b", "b");
        gantry_node_arg(a->graph, node, "c", product);
        node = begin_triangle(&d, "a", "to = select(column <= row, product, 0)");
        gantry_node_arg(a->graph, node, "product", product);
        gy_rule_take_rows(a, p, node, "to", "a", &from, &target);
        gy_adjoint_add_rows(a, p, "a", from, &target);
    }
    transpose(&d, "b", turned, adjoint_of(&d));
    return gy_adjoint_built(a);
}

/* a = L L^T. With P the lower triangle of L^T times the adjoint of L, whose diagonal is halved, and S = L^-T P L^-1,
 * the adjoint of a is S + S^T below the diagonal, and half of that on it. */
gantry_status gy_potrf_go_back(gy_adjoint *a, const gy_primal *p)
{
    dense d = describe(a, p, "a", "a");
    gantry_region upper = upper_of(&d, "a"), lower = gantry_all(make_square(&d, "grad.lower"));
    gantry_region product = gantry_all(make_square(&d, "grad.product")),
                  half = gantry_all(make_square(&d, "grad.half"));
    gantry_region sides = gantry_all(make_square(&d, "grad.sides"));
    gantry_node node = begin_triangle(&d, "a.lower", "lower = select(column <= row, d, 0)");
    gantry_node_arg(a->graph, node, "d", adjoint_of(&d));
    gantry_node_arg(a->graph, node, "lower", lower);
    node = gy_rule_begin(a, p, "gemm", "a.product"); /* transposed */
    gantry_node_scalar(a->graph, node, "ta", 1);
    gantry_node_scalar(a->graph, node, "tb", 1);
    gantry_node_arg(a->graph, node, "a", lower);
    gantry_node_arg(a->graph, node, "b", upper);
    gantry_node_arg(a->graph, node, "c", product);
    node = begin_triangle(&d, "a.half", "half = select(column < row, 0, select(column == row, 0.5, 1) * product)");
    gantry_node_arg(a->graph, node, "product", product);
    gantry_node_arg(a->graph, node, "half", half);
    solve(&d, "a.one_side", upper, half);
    transpose(&d, "a.sides", half, sides);
    solve(&d, "a.both_sides", upper, sides);
    transpose(&d, "a.other", sides, half);
    node = begin_triangle(&d, "a", "to = select(column < row, s + turned, select(column == row, s, to))");
    gantry_node_arg(a->graph, node, "s", sides);
    gantry_node_arg(a->graph, node, "turned", half);
    gantry_node_arg(a->graph, node, "to", adjoint_of(&d));
    return gy_adjoint_built(a);
}
