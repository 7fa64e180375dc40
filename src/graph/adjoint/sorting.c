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
