/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse matrices in CSR form times a vector or a matrix. The adjoint of x is the product of the transposed matrix,
 * whose entries are those of the matrix, sorted by their columns; entries of one column keep their order, so sums have
 * one order. That of an entry is the product of two rows: of the adjoint of y, and of x.
 *
 * Both want the row of each entry: so many row pointers are at most its number. And where a row of the transposed
 * matrix begins is how many of the sorted columns are below its number. Two sorted arrays that are merged say so: an
 * element of one has all those of the other in front of it that are at most as large.
 */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <string.h>

typedef struct sparse {
    gy_adjoint *a;
    const gy_primal *p;
    int64_t entries, rows, columns, width; /* rows of y, columns of the matrix and of x */
    gantry_dtype index, value;
    gantry_buffer row; /* i64: the number of each entry's row, from 1; 0, or rows + 1: it belongs to others */
} sparse;

static const gy_access *access_to(const sparse *s, const char *arg)
{
    return gy_primal_access(s->a, s->p, arg);
}

static gantry_dtype dtype_of(const sparse *s, const char *arg)
{
    return s->a->graph->buffers.at[access_to(s, arg)->buffer].dtype;
}

static sparse describe(gy_adjoint *a, const gy_primal *p)
{
    sparse s = { .a = a, .p = p };
    gy_maths_shape x = gy_adjoint_shape(a, access_to(&s, "x")), col = gy_adjoint_shape(a, access_to(&s, "col"));
    gy_maths_shape y = gy_adjoint_shape(a, access_to(&s, "y"));
    s.entries = gy_maths_shape_elements(&col);
    s.rows = y.extent[0];
    s.columns = x.extent[0];
    s.width = s.columns ? gy_maths_shape_elements(&x) / s.columns : 0;
    s.index = dtype_of(&s, "col");
    s.value = dtype_of(&s, "val");
    return s;
}

/* ---- pieces of new nodes ---- */

static gantry_buffer make_array(const sparse *s, const char *name, gantry_dtype dtype, int64_t count)
{
    return gy_build_beside(s->a->graph, access_to(s, "y")->buffer, name, dtype, 1, &count);
}

static gantry_buffer make_rows(const sparse *s, const char *name)
{
    const int64_t shape[] = { s->entries, s->width };
    return gy_build_beside(s->a->graph, access_to(s, "y")->buffer, name, s->value, 2, shape);
}

static void give(const sparse *s, gantry_node node, const char *as, gantry_buffer whole)
{
    gantry_node_arg(s->a->graph, node, as, gantry_all(whole));
}

static gantry_node begin_kernel(const sparse *s, const char *name, const char *kernel)
{
    return gy_rule_begin(s->a, s->p, kernel, name);
}

/* first, first + 2, ... */
static gantry_buffer make_odd(const sparse *s, const char *name, int64_t count, double first)
{
    return gy_rule_numbers(s->a, access_to(s, "y")->buffer, name, GANTRY_I64, 1, &count, first, 2);
}

/* ---- counts ---- */

/* An array of i64 that says for each of `count` numbers, first, first + 1, ..., how many of the sorted elements are at
 * most as large. Elements are doubled, and numbers are odd, so that those are told apart once they are merged. */
static gantry_buffer count_upto(const sparse *s, const char *name, gantry_region sorted, int64_t elements,
                                int64_t count, int64_t first)
{
    gantry_buffer twice = make_array(s, "grad.twice", GANTRY_I64, elements);
    gantry_buffer odd = make_odd(s, "grad.odd", count, (double)(2 * first + 1));
    gantry_buffer merged = make_array(s, "grad.merged", GANTRY_I64, elements + count);
    gantry_buffer is_element = make_array(s, "grad.is_element", GANTRY_I64, elements + count);
    gantry_buffer is_number = make_array(s, "grad.is_number", GANTRY_U8, elements + count);
    gantry_buffer upto = make_array(s, "grad.upto", GANTRY_I64, elements + count);
    gantry_buffer found = make_array(s, name, GANTRY_I64, count), unused = make_array(s, "grad.count", GANTRY_I64, 1);
    gantry_node node = gy_rule_map(s->a, s->p, "twice", "twice = 2 * i64(x)");
    gantry_node_arg(s->a->graph, node, "x", sorted);
    give(s, node, "twice", twice);
    node = begin_kernel(s, "merge", "merge");
    give(s, node, "x", twice);
    give(s, node, "y", odd);
    give(s, node, "z", merged);
    node = gy_rule_map(s->a, s->p, "is", "element = z == 2 * i64(z / 2); number = z != 2 * i64(z / 2)");
    give(s, node, "z", merged);
    give(s, node, "element", is_element);
    give(s, node, "number", is_number);
    node = begin_kernel(s, "upto", "scan");
    give(s, node, "x", is_element);
    give(s, node, "y", upto);
    node = begin_kernel(s, "found", "select");
    give(s, node, "x", upto);
    give(s, node, "mask", is_number);
    give(s, node, "y", found);
    give(s, node, "count", unused);
    return found;
}

/* ---- x ---- */

static gantry_buffer sort_by_column(const sparse *s, const char *name, gantry_buffer values, gantry_dtype dtype,
                                    gantry_buffer *columns)
{
    gantry_buffer moved = make_array(s, name, dtype, s->entries);
    *columns = make_array(s, "grad.sorted", s->index, s->entries);
    gantry_node node = begin_kernel(s, "sort", "sort_pairs");
    gy_rule_give(s->a, s->p, node, "keys", "col");
    give(s, node, "values", values);
    give(s, node, "sorted", *columns);
    give(s, node, "moved", moved);
    return moved;
}

/* Entries that belong to other rows than those of y are zeros here. */
static void go_back_x(const sparse *s)
{
    gy_adjoint *a = s->a;
    gantry_region from;
    gy_destination target;
    gantry_buffer row = make_array(s, "grad.row", s->index, s->entries), columns;
    gantry_buffer val = make_array(s, "grad.val", s->value, s->entries);
    gantry_node node =
        gy_rule_map(s->a, s->p, "own",
                    "to = max(min(row, i64(rows)), 1) - 1; value = select((row >= 1) * (row <= i64(rows)), val, 0)");
    give(s, node, "row", s->row);
    gy_rule_give(a, s->p, node, "val", "val");
    gantry_node_scalar(a->graph, node, "rows", (double)s->rows);
    give(s, node, "to", row);
    give(s, node, "value", val);
    gantry_buffer sorted_row = sort_by_column(s, "grad.col", row, s->index, &columns);
    gantry_buffer sorted_val = sort_by_column(s, "grad.sorted_val", val, s->value, &columns);
    gantry_buffer begins =
        count_upto(s, "grad.begins", gantry_all(columns), s->entries, s->columns + 1, -1); /* below 0, 1, ... */
    gantry_buffer pointers = make_array(s, "grad.row_ptr", s->index, s->columns + 1);
    node = gy_rule_map(s->a, s->p, "row_ptr", "row_ptr = select(rows > 0, begins, 0)"); /* without rows none is there */
    gantry_node_scalar(a->graph, node, "rows", (double)s->rows);
    give(s, node, "begins", begins);
    give(s, node, "row_ptr", pointers);
    node = begin_kernel(s, "x", s->p->manifest->name);
    give(s, node, "row_ptr", pointers);
    give(s, node, "col", sorted_row);
    give(s, node, "val", sorted_val);
    gy_rule_give_adjoint(a, s->p, node, "x", "y");
    gy_rule_take_rows(a, s->p, node, "y", "x", &from, &target);
    gy_adjoint_add_rows(a, s->p, "x", from, &target);
}

/* ---- val ---- */

/* Rows that are not there are zeros. */
static void go_back_val(const sparse *s)
{
    gy_adjoint *a = s->a;
    gantry_buffer dy = make_rows(s, "grad.of_row"), x = make_rows(s, "grad.of_column");
    gantry_node node = begin_kernel(s, "val.y", "embedding");
    gantry_node_scalar(a->graph, node, "first", 1);
    gantry_node_scalar(a->graph, node, "of", (double)(s->rows + 2));
    gy_rule_give_adjoint(a, s->p, node, "table", "y");
    give(s, node, "ids", s->row);
    give(s, node, "y", dy);
    node = begin_kernel(s, "val.x", "embedding");
    gy_rule_give(a, s->p, node, "table", "x");
    gy_rule_give(a, s->p, node, "ids", "col");
    give(s, node, "y", x);
    gy_access val = gy_rule_access(a, s->p, "val");
    gy_destination target = gy_adjoint_target(a, &val);
    node = gantry_graph_reduce(a->graph, gy_adjoint_id(a, s->p, "val"), "to = sum(d * x, 1)");
    gantry_node_arg_as(a->graph, node, "to", target.region, gy_destination_access(&target));
    give(s, node, "d", dy);
    give(s, node, "x", x);
    gy_adjoint_place(a, node, s->p->node);
}

/* ---- both ---- */

static gantry_status check(const sparse *s)
{
    const gantry_graph *g = s->a->graph;
    gy_maths_shape val = gy_adjoint_shape(s->a, access_to(s, "val"));
    if (s->width != 1 && strcmp(s->p->manifest->name, "spmv_csr") == 0)
        return gy_node_fail(g, s->a->err, s->p->node,
                            "multiplies a vector \"x\" of %lld rows of %lld elements, which has no adjoint; give it "
                            "one of a row for each column of the matrix, or use spmm_csr",
                            (long long)s->columns, (long long)s->width);
    if (val.extent[0] != s->entries && gy_rule_wants(s->a, s->p, "val"))
        return gy_node_fail(g, s->a->err, s->p->node,
                            "has values \"val\" in %lld rows, which have no adjoint; give it one axis of all %lld",
                            (long long)val.extent[0], (long long)s->entries);
    return GANTRY_OK;
}

gantry_status gy_sparse_go_back(gy_adjoint *a, const gy_primal *p)
{
    sparse s = describe(a, p);
    GY_TRY(check(&s));
    gy_access pointers = gy_rule_access(a, p, "row_ptr");
    s.row = count_upto(&s, "grad.rows", gy_adjoint_primal_rows(a, &pointers), s.rows + 1, s.entries, 0);
    if (gy_rule_wants(a, p, "x"))
        go_back_x(&s);
    if (gy_rule_wants(a, p, "val"))
        go_back_val(&s);
    return gy_adjoint_built(a);
}
