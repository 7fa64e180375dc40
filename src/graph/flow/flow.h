/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The flow: a graph with its loops unrolled, names of carried buffers resolved, and dependencies inferred. This is what
 * schedulers read. A *task* is a node in one iteration; a *value* is a buffer, or the buffer that `next` of a carried
 * pair stands for in one iteration (so that carrying copies nothing: `prev` of iteration k+1 is the value that was
 * `next` in iteration k).
 *
 * Order. Accesses mean what they would mean if tasks ran in adding order (iterations one after the other). Tasks are
 * *listed* in a topological order of the dependencies: adding order, unless `after` names a node that was added later;
 * then the topological order that takes, of the tasks that are ready, the one added first. A circle is an error that
 * names its nodes. `after` between nodes of one loop joins equal iterations, else all iterations of both.
 *
 * Many readers of what many wrote have the same predecessors. Long lists that are equal are kept once, so that n
 * readers of n parts take room for n dependencies, not for n * n; what follows from a list can be worked out once, too.
 *
 * For a loop of N iterations with carry {prev: next}:  prev in iteration 0 is prev's value before the loop, in
 * iteration k > 0 it is next's value of iteration k-1; next in iteration 0 is next's value before the loop (a fresh
 * unwritten one if both names already mean the same value), in iteration k > 0 a fresh unwritten value. After the loop
 * both names mean the last next.
 */
#ifndef GY_GRAPH_FLOW_FLOW_H
#define GY_GRAPH_FLOW_FLOW_H

#include "graph/graph.h"

typedef struct gy_value {
    uint32_t buffer;     /* shape, dtype, rows: those of this buffer */
    uint32_t generation; /* 0: the buffer itself; k: its k-th fresh value */
} gy_value;

typedef struct gy_flow_access {
    uint32_t value;
    uint32_t access; /* index into graph->access: rows, mode, arg */
} gy_flow_access;

typedef struct gy_task {
    uint32_t node, iteration;
    uint32_t access; /* first of node.accesses entries of flow->access */
} gy_task;

typedef enum gy_dep_kind {
    GY_DEP_DATA = 1, /* reads what `from` wrote or contributed */
    GY_DEP_ORDER = 2 /* write after read or write, contribution after either, `after` */
} gy_dep_kind;

/* One per pair (from, to), kinds or-ed, `bytes` those that flow. */
typedef struct gy_dep {
    uint32_t from;
    uint32_t kinds;
    int64_t bytes;
} gy_dep;

struct gy_flow {
    gy_value *value;
    uint32_t values; /* value i < buffers is buffer i, generation 0 */
    gy_task *task;
    uint32_t tasks;
    gy_flow_access *access;
    size_t accesses;
    uint32_t *list; /* per task: the list of its predecessors */
    uint32_t lists;
    size_t *dep_first; /* lists + 1: list l is dep[dep_first[l] .. dep_first[l + 1]), by `from` */
    gy_dep *dep;
    size_t deps;            /* of all tasks: a list counts as often as tasks have it */
    uint32_t *entry, *exit; /* per buffer: the value its name means at the start and at the end of a start */
};
typedef struct gy_flow gy_flow;

/* Infers tasks, values and dependencies. Contributions to one reduction do not depend on each other; a task that reads
 * or writes the result depends on all of them, and each of them on the write or read before. Data flows to a reader
 * from the last writer and from the contributions since then. Once a sum was read, later contributions begin a new sum,
 * and only these are kept (they follow the readers, which follow the older ones). Refused, with the rows: reading rows
 * that nothing has written or initialised, and contributions of two kinds without a read or write between them.
 * O(accesses log n) by interval maps. */
gantry_status gy_flow_make(gy_flow **flow, const gantry_graph *graph, gantry_error *err);
void gy_flow_free(gy_flow *flow);

/* Does a start of a sealed graph find in the buffer what that begins with? Not if rows are written before they are
 * read, added to or handed over. Of a loop that is not unrolled the flow has as many iterations as that takes. */
gantry_status gy_flow_finds_beginning(const gantry_graph *graph, uint32_t buffer, bool *found, gantry_error *err);

/* The predecessors of a task, by `from`. */
static inline const gy_dep *gy_deps_begin(const gy_flow *f, uint32_t task)
{
    return f->dep + f->dep_first[f->list[task]];
}
static inline const gy_dep *gy_deps_end(const gy_flow *f, uint32_t task)
{
    return f->dep + f->dep_first[f->list[task] + 1];
}

/* The other direction: which lists a task is in, and which tasks have a list; numbers rise. */
typedef struct gy_followers {
    size_t *list_first; /* tasks + 1: task t is in list[list_first[t] .. list_first[t + 1]) */
    uint32_t *list;
    size_t *member_first; /* lists + 1: list l is that of member[member_first[l] .. member_first[l + 1]) */
    uint32_t *member;
} gy_followers;

/* false: out of memory; to be freed all the same. */
bool gy_followers_make(gy_followers *followers, const gy_flow *flow);
void gy_followers_free(gy_followers *followers);

static inline const gy_access *gy_flow_access_of(const gantry_graph *g, const gy_flow *f, size_t i)
{
    return &g->access.at[f->access[i].access];
}
static inline const gy_buffer *gy_value_buffer(const gantry_graph *g, const gy_flow *f, uint32_t value)
{
    return &g->buffers.at[f->value[value].buffer];
}

#endif
