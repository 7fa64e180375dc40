/* SPDX-License-Identifier: Apache-2.0 */
/** Groups: what gives what to whom in a collective. Made from a node, from rows, or from an op of a schedule. */
#ifndef GY_SCHEDULE_TRAFFIC_GROUP_H
#define GY_SCHEDULE_TRAFFIC_GROUP_H

#include "schedule/schedule.h"

/* The ranks of one collective are memories, each once; what devices in one memory give and take is added up. */
typedef struct gy_group {
    gantry_collective kind;
    uint8_t reduce;   /* gantry_access; 0: moves rows only */
    bool in_place;    /* something is written where it is read, beyond what the kind leaves where it is */
    uint32_t ranks;   /* at least 1 */
    uint32_t root;    /* broadcast, scatter: who gives; gather, reduce: who takes */
    uint32_t *memory; /* of each rank; rising for groups from rows */
    int64_t *part;    /* of each rank: all_gather, gather: bytes it gives; scatter, reduce_scatter: bytes it takes */
    int64_t *block;   /* all_to_all: ranks x ranks bytes, row = who gives; others: NULL */
    uint8_t *gives;   /* of each rank: it has a share of the input */
    uint8_t *takes;   /* of each rank: it gets (a share of) the result */
    bool twice;       /* a rank has two values of one row, such as two contributions to a sum */
    bool with_nan;    /* min or max of floating-point numbers: gy_group_type */
    int64_t bytes;    /* the whole, as in gy_collective_table */
    int64_t pieces;   /* all_to_all: blocks that lie apart, each of which goes by itself; others: 0 */
    int64_t align;    /* largest power of two, at most 256, that divides where parts begin and end */
} gy_group;
void gy_group_free(gy_group *g);
/* Sets the element type, which only matters to reductions. */
void gy_group_type(gy_group *g, gantry_dtype dtype);
/* The rank of a memory that is one of the group's. */
uint32_t gy_group_rank(const gy_group *g, uint32_t memory);

/* One region of a collective node: its memory and its size. */
typedef struct gy_group_end {
    uint32_t memory;
    int64_t bytes;
    uint32_t buffer; /* with rows: what is written where it is read is in place */
    int64_t first, last;
} gy_group_end;
/* From the regions of a node, `ins` reads first, in rank order. false: out of memory. */
bool gy_group_of_node(gy_group *g, gantry_collective kind, uint8_t reduce, const gy_group_end *end, uint32_t ins,
                      uint32_t outs);

/* Bytes of one value in an instance. */
typedef struct gy_group_span {
    uint32_t memory, instance;
    int64_t first, last;
} gy_group_span;
/* From what an inserted collective reads and writes: gy_op in schedule.h says what that means. false: out of memory. */
bool gy_group_of_rows(gy_group *g, gantry_collective kind, uint8_t reduce, const gy_group_span *span, uint32_t ins,
                      uint32_t outs);
/* From an op of a schedule. */
bool gy_group_of_op(gy_group *g, const gantry_schedule *s, const gy_op *op);
/* The same of the batch that an op begins, which is one collective of all their bytes; of the op alone where it begins
 * none. */
bool gy_group_of_batch(gy_group *g, const gantry_schedule *s, const gy_op *op);
/* Adds what another collective of the same kind and ranks gives and takes. */
void gy_group_add(gy_group *g, const gy_group *more);

/* Bytes that `to` needs from `from` if all goes straight. */
int64_t gy_group_need(const gy_group *g, uint32_t from, uint32_t to);
bool gy_group_is_full(const gy_group *g); /* all ranks give and take */
bool gy_group_is_even(const gy_group *g);
int64_t gy_group_largest(const gy_group *g); /* of its parts */

#endif
