/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts what was given to nodes late where it belongs: each array is written once more, node by node, what was given
 * first before what was given late. Then orders a kernel's accesses and scalars by argument; the flag of `when` comes
 * last.
 */
#include "graph/build/build_state.h"
#include <string.h>

/* One of the three arrays, without its type. */
typedef struct merge_job {
    void *at; /* the address of the pointer to its items, which are node by node */
    size_t *count, *capacity;
    const void *late; /* entries: a node's index first, an item at `payload` */
    size_t *late_count;
    size_t item, entry, payload;
    size_t start, length; /* offsets in gy_node of the node's range */
} merge_job;

static uint32_t *range_of(gy_node *node, size_t offset)
{
    return (uint32_t *)(void *)((char *)node + offset);
}

static uint32_t late_node(const merge_job *job, size_t i)
{
    uint32_t node;
    memcpy(&node, (const char *)job->late + i * job->entry, sizeof node);
    return node;
}

/* The late items, sorted by node and stable. Afterwards those of node n are [first[n], first[n + 1]). */
static char *sort_late(const merge_job *job, size_t *first, size_t nodes)
{
    char *sorted = gy_calloc(*job->late_count, job->item);
    if (!sorted)
        return NULL;
    for (size_t i = 0; i < *job->late_count; i++)
        first[late_node(job, i) + 2]++;
    for (size_t i = 1; i < nodes + 2; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < *job->late_count; i++) {
        size_t to = first[late_node(job, i) + 1]++;
        memcpy(sorted + to * job->item, (const char *)job->late + i * job->entry + job->payload, job->item);
    }
    return sorted;
}

static void append(char *to, size_t *count, const char *from, size_t items, size_t item)
{
    if (items) {
        memcpy(to + *count * item, from, items * item);
        *count += items;
    }
}

static void replace(const merge_job *job, void *merged, size_t count)
{
    void *old;
    memcpy(&old, job->at, sizeof old);
    gy_free(old);
    memcpy(job->at, &merged, sizeof merged);
    *job->count = *job->capacity = count;
    *job->late_count = 0; /* nothing is merged twice, even if another array cannot be */
}

/* False: out of memory. */
static bool merge(gantry_graph *g, merge_job job)
{
    if (!*job.late_count)
        return true;
    size_t nodes = g->nodes.count, at = 0, most = *job.count + *job.late_count;
    size_t *first = gy_calloc(nodes + 2, sizeof *first);
    char *merged = gy_calloc(most, job.item), *old;
    char *sorted = first ? sort_late(&job, first, nodes) : NULL;
    bool ok = merged && sorted && most < UINT32_MAX;
    memcpy(&old, job.at, sizeof old);
    for (size_t n = 0; n < nodes && ok; n++) {
        uint32_t *start = range_of(&g->nodes.at[n], job.start), *length = range_of(&g->nodes.at[n], job.length);
        size_t begin = at;
        append(merged, &at, old + *start * job.item, *length, job.item);
        append(merged, &at, sorted + first[n] * job.item, first[n + 1] - first[n], job.item);
        *start = (uint32_t)begin;
        *length = (uint32_t)(at - begin);
    }
    if (ok)
        replace(&job, merged, at);
    else
        gy_free(merged);
    gy_free(sorted);
    gy_free(first);
    return ok;
}

/* The job for an array of the graph, the array of what came late, and the member of its entries that is the item. */
#define JOB(array, late, type, member, start, length)                                                                  \
    (merge_job)                                                                                                        \
    {                                                                                                                  \
        &(array)->at, &(array)->count, &(array)->capacity, (late)->at, &(late)->count, sizeof *(array)->at,            \
            sizeof *(late)->at, offsetof(type, member), offsetof(gy_node, start), offsetof(gy_node, length)            \
    }

static bool merge_all(gantry_graph *g)
{
    gy_build *b = g->build_;
    if (!merge(g, JOB(&g->access, &b->late_access, gy_late_access, access, access, accesses)) ||
        !merge(g, JOB(&g->scalar, &b->late_scalar, gy_late_scalar, scalar, scalar, scalars)) ||
        !merge(g, JOB(&g->after, &b->late_after, gy_late_after, after, after, afters)))
        return false;
    gy_vec_free(&b->late_access);
    gy_vec_free(&b->late_scalar);
    gy_vec_free(&b->late_after);
    return true;
}

/* ---- order within a node ---- */

/* Stable, and quick where little is out of order, which is the rule. */
static void sort_accesses(gy_access *at, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        gy_access moved = at[i];
        uint32_t to = i;
        for (; to > 0 && at[to - 1].arg > moved.arg; to--)
            at[to] = at[to - 1];
        at[to] = moved;
    }
}

static void sort_scalars(gy_scalar *at, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        gy_scalar moved = at[i];
        uint32_t to = i;
        for (; to > 0 && at[to - 1].arg > moved.arg; to--)
            at[to] = at[to - 1];
        at[to] = moved;
    }
}

/* Regions given by order were numbered as they came; from `named` on they are counted through. */
static void number_args(gy_access *at, uint32_t count, uint32_t named)
{
    uint32_t next = named, last = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (at[i].arg < named || at[i].arg == GY_ARG_WHEN)
            continue;
        next += last != UINT32_MAX && at[i].arg != last;
        last = at[i].arg;
        at[i].arg = next;
    }
}

bool gy_build_merge(gantry_graph *graph)
{
    if (!merge_all(graph))
        return false;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        gy_node *n = &graph->nodes.at[i];
        gy_access *access = gy_vec_from(&graph->access, n->access);
        uint32_t named = n->kernel == GY_NONE ? 0 : (uint32_t)graph->kernels.at[n->kernel].manifest->args;
        if (n->kernel != GY_NONE || n->has_when)
            sort_accesses(access, n->accesses);
        if (n->kernel != GY_NONE)
            sort_scalars(gy_vec_from(&graph->scalar, n->scalar), n->scalars);
        number_args(access, n->accesses, named);
    }
    return true;
}

/* ---- nodes that came or went ---- */

static void renumber_list(const uint32_t *number, uint32_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        at[i] = number[at[i]];
}

void gy_build_renumber(gantry_graph *graph, const uint32_t *number)
{
    renumber_list(number, graph->after.at, graph->after.count);
    for (size_t i = 0; i < graph->extra.count; i++) {
        renumber_list(number, graph->extra.at[i].with.at, graph->extra.at[i].with.count);
        renumber_list(number, graph->extra.at[i].apart.at, graph->extra.at[i].apart.count);
    }
    for (size_t i = 0; i < graph->loops.count + graph->inner.count; i++) {
        gy_loop *l = i < graph->loops.count ? &graph->loops.at[i] : &graph->inner.at[i - graph->loops.count];
        l->first_node = number[l->first_node];
        l->last_node = number[l->last_node];
    }
    for (size_t i = 0; i < graph->build_->uses.count; i++) {
        gy_used_nodes *u = &graph->build_->uses.at[i];
        u->first = number[u->first];
        u->last = number[u->last];
    }
}

/* Accesses and scalars of nodes that are there, node by node. */
static bool move_operands(gantry_graph *g)
{
    GY_VEC(gy_access) access = { 0 };
    GY_VEC(gy_scalar) scalar = { 0 };
    bool ok = true;
    for (size_t i = 0; i < g->nodes.count; i++) {
        gy_node *n = &g->nodes.at[i];
        uint32_t from = n->access, first = n->scalar;
        n->access = (uint32_t)access.count;
        n->scalar = (uint32_t)scalar.count;
        for (uint32_t k = 0; k < n->accesses; k++)
            ok = gy_vec_push(&access, g->access.at[from + k]) && ok;
        for (uint32_t k = 0; k < n->scalars; k++)
            ok = gy_vec_push(&scalar, g->scalar.at[first + k]) && ok;
    }
    gy_vec_free(&g->access);
    gy_vec_free(&g->scalar);
    g->access.at = access.at;
    g->access.count = access.count;
    g->access.capacity = access.capacity;
    g->scalar.at = scalar.at;
    g->scalar.count = scalar.count;
    g->scalar.capacity = scalar.capacity;
    return ok;
}

/* Ids were held by the table of names. */
static bool rename_nodes(gantry_graph *g)
{
    gy_names names = { 0 };
    bool ok = true;
    for (size_t i = 0; i < g->nodes.count && ok; i++) {
        uint32_t name = gy_names_add(&names, g->nodes.at[i].id, NULL);
        ok = name != GY_NO_NAME;
        if (ok)
            g->nodes.at[i].id = gy_names_at(&names, name);
    }
    if (!ok) {
        gy_names_free(&names);
        return false;
    }
    gy_names_free(&g->node_names);
    g->node_names = names;
    return true;
}

bool gy_build_regroup(gantry_graph *graph)
{
    return move_operands(graph) && rename_nodes(graph);
}

bool gy_build_replace_nodes(gantry_graph *graph, gy_nodes *nodes, const uint32_t *number)
{
    gy_build_renumber(graph, number);
    gy_vec_free(&graph->nodes);
    graph->nodes = *nodes;
    *nodes = (gy_nodes){ 0 };
    gy_map_free(&graph->build_->late_args);
    return gy_build_regroup(graph);
}
