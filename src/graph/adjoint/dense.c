/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense linear algebra that changes a matrix in place. What it was before has an adjoint that only nodes before this
 * one read, what it becomes one that only nodes behind it have added to: so the adjoint is changed in place, too.
 * Formulas for trsm and potrf are those of Giles, Collected Matrix Derivative Results for Forward and Reverse Mode
 * Algorithmic Differentiation, 2008, and Murray, Differentiation of the Cholesky decomposition, 2016. Kernels read and
 * write lower triangles; what lies above the diagonal stays as it is, and so does its adjoint. That of getrf is by de
 * Hoog, Anderssen and Lukas, Differentiation of matrix functionals using triangular factorization, Mathematics of
 * Computation 80, 2011; that of qr by Walter and Lehmann, Algorithmic differentiation of linear algebra functions,
 * 2010.
 *
 * They multiply by the inverse of a lower factor, which getrs does with its transpose: an upper factor, beside which
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

/* A matrix of a product, as it is or with rows as columns. */
typedef struct operand {
    gantry_region of;
    bool turned;
} operand;

/* to = alpha a b. */
static void multiply(const dense *d, const char *name, double alpha, operand a, operand b, gantry_region to)
{
    gantry_graph *g = d->a->graph;
    gantry_node node = gy_rule_begin(d->a, d->p, "gemm", name);
    if (alpha != 1)
        gantry_node_scalar(g, node, "alpha", alpha);
    if (a.turned)
        gantry_node_scalar(g, node, "ta", 1);
    if (b.turned)
        gantry_node_scalar(g, node, "tb", 1);
    gantry_node_arg(g, node, "a", a.of);
    gantry_node_arg(g, node, "b", b.of);
    gantry_node_arg(g, node, "c", to);
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
    multiply(&d, "a.product", 1, (operand){ lower, true }, (operand){ upper, true }, product); /* transposed */
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

/* ---- factors with rows exchanged ---- */

/* The transpose of the matrix that the node has as that argument. */
static gantry_region turned_of(const dense *d, const char *arg)
{
    return transpose(d, "turned", gy_adjoint_primal_rows(d->a, access_to(d, arg)),
                     gantry_all(make_square(d, "grad.turned")));
}

/* The transpose of the lower factor, whose diagonal of ones is not stored. */
static gantry_region unit_of(const dense *d, gantry_region turned)
{
    gantry_region unit = gantry_all(make_square(d, "grad.unit"));
    gantry_node node = begin_triangle(d, "unit", "unit = select(column > row, turned, select(column == row, 1, 0))");
    gantry_node_arg(d->a->graph, node, "turned", turned);
    gantry_node_arg(d->a->graph, node, "unit", unit);
    return unit;
}

/* The upper triangle of the factors, or of their adjoint. */
static gantry_region above(const dense *d, const char *name, gantry_region from)
{
    gantry_region upper = gantry_all(make_square(d, "grad.above"));
    gantry_node node = begin_triangle(d, name, "upper = select(column >= row, from, 0)");
    gantry_node_arg(d->a->graph, node, "from", from);
    gantry_node_arg(d->a->graph, node, "upper", upper);
    return upper;
}

/* Rows go back to where they were exchanged from. As getrs exchanges the numbers of rows, too, it says where that is,
 * and their order where each row is now. */
static void exchange_back(const dense *d, const char *name, gantry_region rows, gantry_region to)
{
    gantry_graph *g = d->a->graph;
    gantry_region one = gantry_all(make_square(d, "grad.one")),
                  number = gantry_all(make(d, "grad.number", d->order, 1));
    gantry_region place = gantry_all(
        gy_build_beside(g, access_to(d, d->arg)->buffer, "grad.place", GANTRY_I32, 1, &(int64_t){ d->order }));
    gantry_node node = begin_triangle(d, "one", "one = select(column == row, 1, 0)");
    gantry_node_arg(g, node, "one", one);
    node = gy_rule_map(d->a, d->p, "number", "number = row");
    gantry_node_arg(g, node, "row", gantry_all(d->row));
    gantry_node_arg(g, node, "number", number);
    node = gy_rule_begin(d->a, d->p, "getrs", "exchanged");
    gantry_node_arg(g, node, "a", one);
    gy_rule_give(d->a, d->p, node, "pivots", "pivots");
    gantry_node_arg(g, node, "b", number);
    node = gy_rule_begin(d->a, d->p, "argsort", "place");
    gantry_node_arg(g, node, "x", number);
    gantry_node_arg(g, node, "index", place);
    node = gy_rule_begin(d->a, d->p, "embedding", name);
    gantry_node_arg(g, node, "table", rows);
    gantry_node_arg(g, node, "ids", place);
    gantry_node_arg(g, node, "y", to);
}

/* P a = L U. With M what L^T times the adjoint of L has below the diagonal, and what the adjoint of U times U^T has on
 * it and above, that of a is P^T L^-T M U^-T. */
gantry_status gy_getrf_go_back(gy_adjoint *a, const gy_primal *p)
{
    dense d = describe(a, p, "a", "a");
    gantry_region unit = unit_of(&d, turned_of(&d, "a"));
    gantry_region upper = above(&d, "upper", gy_adjoint_primal_rows(a, access_to(&d, "a")));
    gantry_region low = gantry_all(make_square(&d, "grad.low")), both = gantry_all(make_square(&d, "grad.both"));
    gantry_region of_lower = gantry_all(make_square(&d, "grad.product")),
                  of_upper = gantry_all(make_square(&d, "grad.product"));
    gantry_node node = begin_triangle(&d, "a.low", "low = select(column < row, d, 0)");
    gantry_node_arg(a->graph, node, "d", adjoint_of(&d));
    gantry_node_arg(a->graph, node, "low", low);
    multiply(&d, "a.of_lower", 1, (operand){ unit, false }, (operand){ low, false }, of_lower);
    gantry_region high = above(&d, "a.high", adjoint_of(&d));
    multiply(&d, "a.of_upper", 1, (operand){ high, false }, (operand){ upper, true }, of_upper);
    node = begin_triangle(&d, "a.both", "both = select(column < row, lower, upper)");
    gantry_node_arg(a->graph, node, "lower", of_lower);
    gantry_node_arg(a->graph, node, "upper", of_upper);
    gantry_node_arg(a->graph, node, "both", both);
    solve(&d, "a.one_side", unit, both);
    gantry_region sides = transpose(&d, "a.sides", both, gantry_all(make_square(&d, "grad.sides")));
    solve(&d, "a.both_sides", upper, sides);
    exchange_back(&d, "a", transpose(&d, "a.other", sides, both), adjoint_of(&d));
    return gy_adjoint_built(a);
}

/* Columns as rows, or rows as columns: a vector lies in memory as it did. */
static gantry_region turn(const dense *d, const char *name, gantry_region from, int64_t rows, int64_t columns)
{
    gantry_region to = gantry_all(make(d, "grad.turned", rows, columns));
    if (rows > 1 && columns > 1)
        return transpose(d, name, from, to);
    gantry_node node = gantry_graph_copy(d->a->graph, gy_adjoint_id(d->a, d->p, name), from, to);
    gy_adjoint_place(d->a, node, d->p->node);
    return to;
}

/* The share of getrs in the adjoint of its factors: y and z are those of gy_getrs_go_back, y with columns as rows. */
static void give_to_factors(const dense *d, gantry_region turned_y, gantry_region z, int64_t columns)
{
    gy_adjoint *a = d->a;
    gantry_region x = turn(d, "b.was", gy_adjoint_primal_rows(a, access_to(d, "b")), columns, d->order), from;
    gantry_region upper = above(d, "upper", gy_adjoint_primal_rows(a, access_to(d, "a")));
    gantry_region between = gantry_all(make(d, "grad.between", columns, d->order));
    gantry_region of_lower = gantry_all(make_square(d, "grad.product")),
                  of_upper = gantry_all(make_square(d, "grad.product"));
    gy_destination target;
    multiply(d, "a.between", 1, (operand){ x, false }, (operand){ upper, true }, between);
    multiply(d, "a.of_lower", -1, (operand){ z, false }, (operand){ between, false }, of_lower);
    multiply(d, "a.of_upper", -1, (operand){ turned_y, true }, (operand){ x, false }, of_upper);
    gantry_node node = begin_triangle(d, "a", "to = select(column < row, lower, upper)");
    gantry_node_arg(a->graph, node, "lower", of_lower);
    gantry_node_arg(a->graph, node, "upper", of_upper);
    gy_rule_take_rows(a, d->p, node, "to", "a", &from, &target);
    gy_adjoint_add_rows(a, d->p, "a", from, &target);
}

/* b' = U^-1 L^-1 P b. With y = U^-T times the adjoint of b' and z = L^-T y, the adjoint of b is P^T z, that of U the
 * upper triangle of -y b'^T, and that of L what -z (U b')^T has below the diagonal. */
gantry_status gy_getrs_go_back(gy_adjoint *a, const gy_primal *p)
{
    dense d = describe(a, p, "b", "a");
    gy_maths_shape shape = gy_adjoint_shape(a, access_to(&d, "b"));
    int64_t columns = d.rows ? gy_maths_shape_elements(&shape) / d.rows : 0;
    gantry_region turned = turned_of(&d, "a"), unit = unit_of(&d, turned);
    gantry_region y = turn(&d, "b.turned", adjoint_of(&d), columns, d.order);
    gantry_node node = gy_rule_begin(a, p, "trsm", "b.upper"); /* reads what is on the diagonal and below: U^T */
    gantry_node_arg(a->graph, node, "a", turned);
    gantry_node_arg(a->graph, node, "b", y);
    gantry_region z = turn(&d, "b.back", y, d.order, columns);
    solve(&d, "b.lower", unit, z);
    if (gy_rule_wants(a, p, "a"))
        give_to_factors(&d, y, z, columns);
    if (shape.rank == 2) {
        exchange_back(&d, "b", z, adjoint_of(&d));
        return gy_adjoint_built(a);
    }
    gantry_region column = gantry_all(make(&d, "grad.column", d.order, columns));
    exchange_back(&d, "b.rows", z, column);
    node = gantry_graph_copy(a->graph, gy_adjoint_id(a, p, "b"), column, adjoint_of(&d));
    gy_adjoint_place(a, node, p->node);
    return gy_adjoint_built(a);
}

/* ---- orthogonal factors ---- */

/* Is something but zeros given to the adjoint of that factor? One of them stands for zeros where both have these. */
static bool is_given(const dense *d, const char *factor)
{
    bool has_r = gy_adjoint_is_given(d->a, access_to(d, "r")->buffer);
    return *factor == 'r' ? has_r : !has_r || gy_adjoint_is_given(d->a, access_to(d, "q")->buffer);
}

/* r times the adjoint of r, transposed, less the adjoint of q, transposed, times q. */
static gantry_region product_of_factors(const dense *d)
{
    gy_adjoint *a = d->a;
    gantry_region product = gantry_all(make_square(d, "grad.product"));
    bool has_r = is_given(d, "r"), has_q = is_given(d, "q");
    if (has_r) {
        gantry_node node = gy_rule_begin(a, d->p, "gemm", "a.of_r");
        gantry_node_scalar(a->graph, node, "tb", 1);
        gy_rule_give(a, d->p, node, "a", "r");
        gy_rule_give_adjoint(a, d->p, node, "b", "r");
        gantry_node_arg(a->graph, node, "c", product);
    }
    if (has_q) {
        gantry_node node = gy_rule_begin(a, d->p, "gemm", "a.of_q");
        gantry_node_scalar(a->graph, node, "alpha", -1);
        gantry_node_scalar(a->graph, node, "beta", has_r);
        gantry_node_scalar(a->graph, node, "ta", 1);
        gy_rule_give_adjoint(a, d->p, node, "a", "q");
        gy_rule_give(a, d->p, node, "b", "q");
        gantry_node_arg_as(a->graph, node, "c", product, has_r ? GANTRY_READWRITE : GANTRY_WRITE);
    }
    return product;
}

/* a = q r. With S symmetric, and the product above on its diagonal and below, the adjoint of a is that of q and q S,
 * times r^-T: here all of it with columns as rows. */
gantry_status gy_qr_go_back(gy_adjoint *a, const gy_primal *p)
{
    dense d = describe(a, p, "q", "r");
    gantry_region product = product_of_factors(&d), both = gantry_all(make_square(&d, "grad.both"));
    gantry_region turned = transpose(&d, "a.turned", product, gantry_all(make_square(&d, "grad.turned")));
    gantry_region solved = gantry_all(make(&d, "grad.solved", d.order, d.rows)), from;
    bool has_q = is_given(&d, "q");
    gy_destination target;
    gantry_node node = begin_triangle(&d, "a.both", "both = select(column > row, turned, product)");
    gantry_node_arg(a->graph, node, "turned", turned);
    gantry_node_arg(a->graph, node, "product", product);
    gantry_node_arg(a->graph, node, "both", both);
    if (has_q)
        transpose(&d, "a.q", adjoint_of(&d), solved);
    node = gy_rule_begin(a, p, "gemm", "a.rows");
    gantry_node_scalar(a->graph, node, "beta", has_q);
    gantry_node_scalar(a->graph, node, "tb", 1);
    gantry_node_arg(a->graph, node, "a", both);
    gy_rule_give(a, p, node, "b", "q");
    gantry_node_arg_as(a->graph, node, "c", solved, has_q ? GANTRY_READWRITE : GANTRY_WRITE);
    solve(&d, "a.solved", gy_adjoint_primal_rows(a, access_to(&d, "r")), solved); /* zeros are below its diagonal */
    node = gy_rule_begin(a, p, "transpose", "a");
    gantry_node_arg(a->graph, node, "x", solved);
    gy_rule_take_rows(a, p, node, "y", "a", &from, &target);
    gy_adjoint_add_rows(a, p, "a", from, &target);
    return gy_adjoint_built(a);
}
