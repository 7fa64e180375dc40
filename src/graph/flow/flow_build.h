/* SPDX-License-Identifier: Apache-2.0 */
/* Making a flow: flow.c unrolls, flow_track.c follows what happens to rows, flow_order.c puts tasks into order. */
#ifndef GY_GRAPH_FLOW_FLOW_BUILD_H
#define GY_GRAPH_FLOW_FLOW_BUILD_H

#include "base/imap.h"
#include "graph/flow/flow.h"

/* ---- dependencies of one task, merged by `from` ---- */

typedef struct gy_dep_set {
    GY_VEC(gy_dep) found;
    uint32_t *seen; /* by task: 1 + where it is in `found`, valid if found[..].from is that task */
    uint32_t task;  /* the task that the predecessors are gathered for */
    bool failed;
} gy_dep_set;

void gy_dep_set_begin(gy_dep_set *set, uint32_t task);
/* A task does not depend on itself: that is ignored. */
void gy_dep_set_add(gy_dep_set *set, uint32_t from, gy_dep_kind kind, int64_t bytes);
void gy_dep_set_sort(gy_dep_set *set); /* by `from` */

/* ---- what happened to rows ---- */

#define GY_NO_CELL UINT32_MAX

/* Tasks in an immutable list; tails are shared between intervals that were one when they were made. */
typedef struct gy_track_cell {
    uint32_t task, next, walked;
} gy_track_cell;

/*
 * The history of a row. Rows with the same history share one state, and a state never changes: `writer` wrote the row
 * last; `before` read that; then `parts` contributed to it with `op`; then `after` read it. Without contributions all
 * readers are in `before`.
 */
typedef struct gy_track_state {
    uint32_t writer, before, parts, after, op;
} gy_track_state;

/* Writers that are no tasks. */
#define GY_TRACK_UNWRITTEN UINT32_MAX
#define GY_TRACK_DEFINED   (UINT32_MAX - 1)

typedef struct gy_track_value {
    gy_imap map; /* payload: index of a state */
    bool constant;
} gy_track_value;

typedef struct gy_track {
    const gantry_graph *graph;
    gy_dep_set deps;
    GY_VEC(gy_track_value) values;
    GY_VEC(gy_track_state) states;
    GY_VEC(gy_track_cell) cells;
    int64_t steps, most_steps; /* over intervals and lists, and how many are allowed */
} gy_track;

/* The next value: rows of `buffer`, defined or unwritten. false: out of memory. */
bool gy_track_add_value(gy_track *track, const gy_buffer *buffer, bool defined);
/* Some rows of a value that nothing has touched hold something. false: out of memory. */
bool gy_track_define(gy_track *track, uint32_t value, int64_t first, int64_t last);
/* A value that is defined and that nothing writes: reading it means nothing to anybody. */
void gy_track_set_constant(gy_track *track, uint32_t value);
/* No name means this value any more. */
void gy_track_drop_value(gy_track *track, uint32_t value);
/* Task `deps.task` does what `access` says to a value; `iteration` is for messages. */
gantry_status gy_track_access(gy_track *track, uint32_t node, uint32_t iteration, uint32_t value,
                              const gy_access *access, gantry_error *err);
/* The first run of rows that are unwritten, within [first, last); false: there are none. */
bool gy_track_unwritten(const gy_track *track, uint32_t value, int64_t *first, int64_t *last);
void gy_track_free(gy_track *track);

/* ---- order ---- */

/* Refuses graphs whose tasks cannot be counted in 32 bits. */
gantry_status gy_flow_count(const gantry_graph *graph, uint32_t *tasks, uint32_t *accesses, gantry_error *err);

/* Lists the tasks in the order that flow.h promises; an error names the nodes of a circle. */
gantry_status gy_flow_sort(gy_flow *flow, const gantry_graph *graph, gantry_error *err);

#endif
