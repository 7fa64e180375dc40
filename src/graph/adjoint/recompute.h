/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Activations that are computed again in the backward pass in place of kept, as a strategy says (`recompute`). The
 * model is cut into *segments*: its layers, or what lies between two places where little has to be kept. What only
 * nodes of one segment use is not kept: the backward pass reads, in buffers "NAME.again", what copies of these nodes,
 * "ID.again", make of what is kept. The copies come when the adjoints of what the segment gives are there, and those of
 * one segment when the backward pass of the one behind it has read what it wants, so that one at a time is in memory.
 */
#ifndef GY_GRAPH_ADJOINT_RECOMPUTE_H
#define GY_GRAPH_ADJOINT_RECOMPUTE_H

#include "graph/adjoint/adjoint.h"

/* Rows of a temporary buffer of the model: no access to it is to some of them and to others. */
typedef struct gy_rows_used {
    uint32_t buffer;
    int64_t first, last;
    uint32_t segment; /* all nodes that use them are of it, and can make them again; GY_NONE: they are kept */
    bool joins;       /* who writes them and who reads them is of one piece of the batch */
    bool is_wanted;   /* the backward pass reads them, made again */
    uint32_t giver;   /* the last node so far of those that give to their adjoint; GY_NONE: none does */
} gy_rows_used;

/* Nodes of a layer, of one piece of the batch and one stage. */
typedef struct gy_segment {
    uint32_t first, last; /* range of gy_recompute.order */
    uint32_t piece, stage;
    bool is_kept;            /* nothing of it is computed again */
    uint32_t before;         /* the node that its copies are put in front of; GY_NONE: nobody has read of it so far */
    uint32_t behind;         /* the segment of its piece that is gone back through before; GY_NONE: none */
    GY_VEC(uint32_t) reader; /* nodes of the backward pass that read of it */
    GY_VEC(uint32_t) giver;  /* those that gave last to the adjoints of what it gives */
} gy_segment;

typedef struct gy_recompute {
    gy_adjoint *a;
    GY_VEC(gy_rows_used) rows; /* by buffer, in order */
    uint32_t *rows_of;         /* by buffer of the model, and one more: where its entries begin */
    uint32_t *piece;           /* by node of the model: the first node that is of the same piece */
    uint32_t *stage, *label;   /* by node; label GY_NONE: it is in no segment */
    uint32_t *segment_of;      /* by node; GY_NONE: none */
    GY_VEC(uint32_t) order;    /* nodes, segment by segment, in the order in which they are computed */
    GY_VEC(gy_segment) segment;
} gy_recompute;

/* The entry that has the rows of an access; NULL: the buffer is not temporary. */
gy_rows_used *gy_recompute_rows(const gy_recompute *c, const gy_access *access);

/* segments.c: finds segments, and the rows that can be made again. */
gantry_status gy_recompute_segments(gy_recompute *c);
/* between.c: labels the nodes in `order` where the graph has no layers: segments that together keep little. */
gantry_status gy_recompute_between(gy_recompute *c);
/* The end of the nodes from entry `first` of `order` on that are of one piece and stage. */
size_t gy_recompute_stage_end(const gy_recompute *c, size_t first);

#endif
