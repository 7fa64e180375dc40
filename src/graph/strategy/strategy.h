/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A model is spread over devices before it is differentiated: see gantry_graph_parallelize. The batch is cut into
 * *pieces*, dp x micro of them; piece p is micro-batch p % micro of replica p / micro. Which rows of which buffers
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

typedef struct gy_spreading {
    gantry_graph *graph;
    const gantry_train_options *options;
    gantry_strategy strategy;
    uint32_t pieces;
    size_t buffers;
    gy_rows_of_pieces *rows; /* by buffer */
    uint8_t *is_weight;      /* by buffer */
    uint32_t *writer;        /* by buffer: one more than the first node that writes it; 0: none does */
    uint8_t *is_named;       /* by node: others name it, by "after" and the like */
    gy_piece_range *of;      /* by node */
    gantry_error *err;
} gy_spreading;

/* parse.c: the numbers are in range. */
gantry_status gy_strategy_check(const gantry_strategy *strategy, gantry_error *err);

/* ---- rules.c: what of a node's arguments is cut with the batch ---- */

typedef enum gy_cut_role {
    GY_CUT_WHOLE,  /* each piece has all of it */
    GY_CUT_ROWS,   /* each piece has its rows */
    GY_CUT_SUMMED, /* each piece gives something to all of it, by a reduction */
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
    const gy_maths *mean; /* formulas in which each mean became a sum; NULL: the node has none */
} gy_cut_rule;

/* Finds the rule of a node; `role` has room for its accesses. Without one, can_cut is false. */
gantry_status gy_spread_rule(gy_spreading *s, uint32_t node, gy_cut_role *role, gy_cut_rule *out);
/* Names of the kernels that have a rule, with commas. */
void gy_spread_rules_text(gy_text *to);

/* ---- the steps, in their order ---- */

/* pieces.c: which pieces each node computes. */
gantry_status gy_spread_pieces(gy_spreading *s);
/* cut.c: nodes of several pieces become one node a piece. */
gantry_status gy_spread_cut(gy_spreading *s);
/* place.c: `on` and `priority` of nodes. */
gantry_status gy_spread_place(gy_spreading *s);
/* shards.c: weights are cut into shards. */
gantry_status gy_spread_shards(gy_spreading *s);

#endif
