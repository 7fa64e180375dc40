/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A model is spread over devices before it is differentiated: see gantry_graph_parallelize. The batch is cut into
 * *pieces*, dp x micro x tp of them; tp in a row belong to one micro-batch of a replica, and one each to the devices
 * that have slices of weights (slices.h). Which rows of which buffers
 * belong to which pieces follows from the batch, node by node. Nothing that is computed depends on it: nodes may be cut
 * into any number of pieces by the rules of their kernels; who reads what and which collectives that takes is found
 * later, from the accesses, as for any graph.
 */
#ifndef GY_GRAPH_STRATEGY_STRATEGY_H
#define GY_GRAPH_STRATEGY_STRATEGY_H

#include "base/vec.h"
#include "graph/graph.h"
#include "maths/maths.h"
#include <gantry/train.h>

/* Pieces [from, to); none: from == to. */
typedef struct gy_piece_range {
    uint32_t from, to;
} gy_piece_range;

/* Rows [first, last) of a buffer hold pieces, each as many rows. */
typedef struct gy_piece_rows {
    int64_t first, last;
    gy_piece_range pieces;
} gy_piece_rows;
typedef GY_VEC(gy_piece_rows) gy_rows_of_pieces; /* in order of rows */

/* The node that it was a part of before the cut, and the slice of that; GY_NONE: all of it. */
typedef struct gy_origin_of_node {
    uint32_t node, slice;
} gy_origin_of_node;

typedef struct gy_spreading {
    gantry_graph *graph;
    const gantry_train_options *options;
    gantry_strategy strategy;
    uint32_t pieces;
    size_t buffers;
    gy_rows_of_pieces *rows; /* by buffer */
    uint8_t *is_weight;      /* by buffer */
    uint32_t *writer;        /* by buffer: one more than the first node that writes it; 0: none does */
    int8_t *slice;           /* by buffer: the axis along which it is in slices; GY_SLICE_WHOLE: it is in none */
    uint8_t *is_named;       /* by node: others name it, by "after" and the like */
    uint8_t *is_sliced;      /* by node, before the cut: its arguments are in slices */
    gy_piece_range *of;      /* by node */
    gy_origin_of_node *from; /* by node, after the cut */
    gantry_error *err;
} gy_spreading;

/* parse.c: the numbers are in range. */
gantry_status gy_strategy_check(const gantry_strategy *strategy, gantry_error *err);

/* ---- rules.c: what of a node's arguments is cut with the batch ---- */

typedef enum gy_cut_role {
    GY_CUT_WHOLE,  /* each piece has all of it */
    GY_CUT_ROWS,   /* each piece has its rows */
    GY_CUT_SUMMED, /* each piece gives something to all of it, by a reduction */
    GY_CUT_ALL,    /* each piece has all of it, and it has rows of all pieces */
    GY_CUT_BOUNDS, /* each piece has its rows and the next: where each row of something begins, and the last one ends */
} gy_cut_role;

/* A number of the node that says where its rows begin: how much of it is before row 1. */
typedef enum gy_cut_first {
    GY_FIRST_NONE,
    GY_FIRST_ROWS,     /* rows of axis 0 */
    GY_FIRST_ELEMENTS, /* elements */
    GY_FIRST_LAST,     /* rows of the last axis */
} gy_cut_first;

typedef struct gy_cut_rule {
    bool can_cut;
    gy_cut_role *role;  /* by access of the node */
    gantry_access mode; /* of those that are summed, where the node writes them alone */
    gy_cut_first first;
    int64_t whole;        /* rows of the first argument of which each piece has a multiple; 0: any number */
    const gy_maths *mean; /* formulas in which each mean became a sum; NULL: the node has none */
} gy_cut_rule;

/* Finds the rule of a node; `role` has room for its accesses. Without one, can_cut is false. */
gantry_status gy_spread_rule(gy_spreading *s, uint32_t node, gy_cut_role *role, gy_cut_rule *out);
/* The shape that all regions that a formula takes have together: its model. */
gy_maths_shape gy_spread_model(const gantry_graph *graph, const gy_node *node, const gy_maths *maths);
/* Can nodes of that kernel be cut? */
bool gy_spread_can_cut(const gantry_kernel *kernel);

/* ---- the steps, in their order ---- */

/* slices.c: which weights, and which buffers with them, are in slices. */
gantry_status gy_spread_slices(gy_spreading *s);
/* classes.c: losses over classes in slices become formulas. True in *has_changed: the graph has, and what was found of
 * it is no longer so. */
gantry_status gy_spread_classes(gy_spreading *s, bool *has_changed);
/* pieces.c: which pieces each node computes. */
gantry_status gy_spread_pieces(gy_spreading *s);
/* moving.c: whether pieces may be cut elsewhere, and which buffers are in them. */
gantry_status gy_spread_find_moving(gy_spreading *s);
/* How many nodes a node becomes along the batch: one that is in slices has all pieces of a micro-batch in each. */
static inline uint32_t gy_spread_count(const gy_spreading *s, uint32_t node)
{
    uint32_t pieces = s->of[node].to - s->of[node].from, slices = (uint32_t)s->strategy.tp;
    return !s->is_sliced[node] ? pieces : pieces / slices ? pieces / slices : 1;
}
/* cut.c: nodes of several pieces become one node a piece, those in slices one a slice. */
gantry_status gy_spread_cut(gy_spreading *s);
/* Of which micro-batch a node is; those of all replicas have one row of numbers. */
static inline uint32_t gy_spread_micro(const gy_spreading *s, uint32_t node)
{
    return s->of[node].from / (uint32_t)s->strategy.tp;
}
/* stages.c: of which stage each node is that computes pieces. */
gantry_status gy_spread_stages(gy_spreading *s, uint32_t *stage);
/* place.c: `on` and `priority` of nodes. */
gantry_status gy_spread_place(gy_spreading *s);
/* shards.c: weights are cut into shards. */
gantry_status gy_spread_shards(gy_spreading *s);

#endif
