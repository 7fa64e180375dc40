/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that sort, or choose: elements of the result are elements of the argument, which get their adjoints. Where a
 * sorted element came from is what argsort says; sorted by that, adjoints are where they belong.
 */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <stdint.h>

static gantry_buffer make(gy_adjoint *a, const gy_access *like, const char *name, gantry_dtype dtype, int rank,
                          const int64_t *shape)
{
    return gy_build_beside(a->graph, like->buffer, name, dtype, rank, shape);
}

/* ---- sorted arrays ---- */

/* sort_pairs moves elements of 4 and 8 bytes. */
static gantry_status check_movable(gy_adjoint *a, const gy_primal *p, const char *arg)
{
    gantry_dtype dtype = a->graph->buffers.at[gy_primal_access(a, p, arg)->buffer].dtype;
    if (dtype == GANTRY_F32 || dtype == GANTRY_F64 || !gy_rule_wants(a, p, arg))
        return GANTRY_OK;
    return gy_node_fail(a->graph, a->err, p->node,
                        "sorts \"%s\" of %s, which has no adjoint; convert it to f32 or f64 by a map before", arg,
                        gantry_dtype_name(dtype));
}

/* Wide enough for places of so many elements; narrow ones are sorted in half as many steps. */
static gantry_dtype place_dtype(int64_t count)
{
    return count <= INT32_MAX ? GANTRY_I32 : GANTRY_I64;
}

/* Where each element of the sorted array came from. */
static gantry_buffer places_of(gy_adjoint *a, const gy_primal *p, const char *keys)
{
    gy_access x = gy_rule_access(a, p, keys);
    gy_maths_shape shape = gy_adjoint_shape(a, &x);
    const int64_t count = gy_maths_shape_elements(&shape);
    gantry_buffer places = make(a, &x, "places", place_dtype(count), 1, &count);
    gantry_node node = gy_rule_begin(a, p, "argsort", "places");
    gantry_node_scalar(a->graph, node, "descending", gy_rule_number(a, p, "descending", 0));
    gy_rule_give(a, p, node, "x", keys);
    gantry_node_arg(a->graph, node, "index", gantry_all(places));
    return places;
}

/* The adjoint of `arg`, which became `to`. Where the loss does not follow from that, its adjoint is zeros, which come
 * before the node that reads them. */
static gantry_status go_back_moved(gy_adjoint *a, const gy_primal *p, gantry_buffer places, const char *arg,
                                   const char *to)
{
    gy_access x = gy_rule_access(a, p, arg), y = gy_rule_access(a, p, to);
    gy_maths_shape shape = gy_adjoint_shape(a, &x);
    const int64_t count = gy_maths_shape_elements(&shape);
    gantry_region from, given = gy_adjoint_of(a, &y);
    gy_destination target;
    gantry_node node = gy_rule_begin(a, p, "sort_pairs", arg);
    gantry_node_arg(a->graph, node, "keys", gantry_all(places));
    gantry_node_arg(a->graph, node, "values", given);
    gantry_node_arg(a->graph, node, "sorted", gantry_all(make(a, &x, "unused", place_dtype(count), 1, &count)));
    gy_rule_take_rows(a, p, node, "moved", arg, &from, &target);
    gy_adjoint_add_rows(a, p, arg, from, &target);
    return gy_adjoint_built(a);
}

gantry_status gy_sort_go_back(gy_adjoint *a, const gy_primal *p)
{
    GY_TRY(check_movable(a, p, "x"));
    return go_back_moved(a, p, places_of(a, p, "x"), "x", "y");
}

gantry_status gy_sort_pairs_go_back(gy_adjoint *a, const gy_primal *p)
{
    GY_TRY(check_movable(a, p, "keys"));
    gantry_buffer places = places_of(a, p, "keys");
    if (gy_rule_wants(a, p, "keys"))
        GY_TRY(go_back_moved(a, p, places, "keys", "sorted"));
    return gy_rule_wants(a, p, "values") ? go_back_moved(a, p, places, "values", "moved") : gy_adjoint_built(a);
}

/* ---- the best of each row ---- */

/* A copy of [rows, k] as [rows, 1, k]. */
static gantry_region turned(gy_adjoint *a, const gy_primal *p, const char *name, gantry_region from, const char *like)
{
    gy_access x = gy_rule_access(a, p, like);
    gy_maths_shape shape = gy_adjoint_shape(a, &x);
    const int64_t three[] = { shape.extent[0], 1, shape.extent[1] };
    gantry_region made = gantry_all(make(a, &x, name, a->graph->buffers.at[x.buffer].dtype, 3, three));
    gantry_node node = gantry_graph_copy(a->graph, gy_adjoint_id(a, p, name), from, made);
    gy_adjoint_place(a, node, p->node);
    return made;
}

/* Element i of a row has the adjoint of the value that came from place i, if there is one. */
gantry_status gy_top_k_go_back(gy_adjoint *a, const gy_primal *p)
{
    gy_access x = gy_rule_access(a, p, "x"), values = gy_rule_access(a, p, "values");
    gy_access indices = gy_rule_access(a, p, "indices");
    gy_maths_shape shape = gy_adjoint_shape(a, &x), best = gy_adjoint_shape(a, &values);
    gy_maths_shape places = gy_adjoint_shape(a, &indices);
    if (shape.rank != 2 || best.rank != 2 || places.rank != 2)
        return gy_node_fail(a->graph, a->err, p->node,
                            "chooses from rows of \"x\" of %d axes into \"values\" of %d and \"indices\" of %d, which "
                            "has no adjoint; give each two axes",
                            (int)shape.rank, (int)best.rank, (int)places.rank);
    const int64_t column[] = { shape.extent[1], 1 };
    gantry_dtype dtype = a->graph->buffers.at[indices.buffer].dtype;
    gantry_buffer number = gy_rule_numbers(a, x.buffer, "number", dtype, 2, column, 0, 1);
    gantry_region at = turned(a, p, "grad.places", gy_adjoint_primal_rows(a, &indices), "indices");
    gantry_region given = turned(a, p, "grad.given", gy_adjoint_of(a, &values), "values");
    gy_destination target = gy_adjoint_target(a, &x);
    gantry_node node =
        gantry_graph_reduce(a->graph, gy_adjoint_id(a, p, "x"), "to = sum(select(place == number, d, 0), 2)");
    gantry_node_arg_as(a->graph, node, "to", target.region, gy_destination_access(&target));
    gantry_node_arg(a->graph, node, "place", at);
    gantry_node_arg(a->graph, node, "number", gantry_all(number));
    gantry_node_arg(a->graph, node, "d", given);
    gy_adjoint_place(a, node, p->node);
    return gy_adjoint_built(a);
}
