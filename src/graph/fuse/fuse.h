/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fusing maps: a map whose result another map, or a reduction, reads element by element becomes a part of that. What
 * lay between is neither written nor read again, unless something else reads it. The new node is one that a user could
 * have written, with the formulas of the first in place of its result, cast to the elements that the result has, so
 * that all bits stay.
 *
 * Nodes of the library's kernels whose manifests say what they compute in formulas (gantry_kernel.formula) stand as
 * maps meanwhile, so that they become parts of maps beside them. Two of them do not become one, and those that stay
 * alone are as they were: a graph that gets along without formulas needs no compiler.
 *
 * A and B become one where
 * - B reads whole regions that A gives, both in the same iteration of the same loop, with one `on` and no other
 *   attribute, no `after`, no costs of their own;
 * - every other region of both is the same one element by element, or apart, or is only read;
 * - A could as well stand just before B, or B just behind A, by what the nodes between them access; if something else
 *   reads what A gives, only the latter, so that nobody waits longer for it.
 */
#ifndef GY_GRAPH_FUSE_FUSE_H
#define GY_GRAPH_FUSE_FUSE_H

#include "base/map.h"
#include "graph/graph.h"
#include "maths/maths.h"

enum {
    GY_FUSE_APART = 1024, /* nodes between two that become one, at most: what is looked at for each */
    GY_FUSE_ID = 255      /* characters of "a+b", the id of the new node, at most */
};

/* Of a graph whose nodes are checked and which is not sealed yet; `fused`: how many nodes went into others. Flow and
 * costs have to be made again if there are any. */
gantry_status gy_graph_fuse(gantry_graph *graph, uint32_t *fused, gantry_error *err);

/* ---- between the files of the room ---- */

typedef struct gy_fuser {
    gantry_graph *graph;
    uint8_t *fixed, *gone; /* by node: it stays as it is; it went into another */
    uint8_t *stands_in;    /* by node: it is a map in place of a library's kernel, which is in `original` */
    gy_node *original;     /* by node */
    uint8_t *kept;         /* by buffer: whatever is written into it may be read by others */
    uint8_t *carried;      /* by buffer: outside of its loop its name may mean what another means */
    gy_map writer;         /* by region: 1 + the node that wrote it last */
    gy_map uses;           /* by region: accesses */
} gy_fuser;

uint64_t gy_fuse_key(const gy_access *region);
static inline bool gy_fuse_equal(const gy_access *a, const gy_access *b)
{
    return a->buffer == b->buffer && a->first == b->first && a->last == b->last && a->before == b->before &&
           a->after == b->after && a->part == b->part && a->part_last == b->part_last &&
           a->cut_before == b->cut_before && a->cut_after == b->cut_after;
}
/* May two accesses, in nodes of that loop, not be swapped? */
bool gy_fuse_clash(const gy_fuser *f, const gy_node *node, const gy_access *a, const gy_access *b);

/* Is it a map or a reduction, whose types are known? */
static inline bool gy_fuse_is_map(const gantry_graph *graph, const gy_node *node)
{
    return node->kind == GY_NODE_KERNEL && node->kernel != GY_NONE && graph->kernels.at[node->kernel].program;
}
/* stand_in.c: puts maps in place of nodes that share a region with a map. False: out of memory. */
bool gy_fuse_stand_in(gy_fuser *f);
/* The same the other way round, for those that are in no other node. */
void gy_fuse_step_back(gy_fuser *f);
/* Of all attributes a node may have `on` alone to become one with another; and lists are no regions. */
bool gy_fuse_is_plain(const gantry_graph *graph, uint32_t node);

/* pair.c: makes *made of nodes a and b, whose accesses and scalars are appended to the graph's, with `keeps` if it
 * gives something else beside that A gave. False: they cannot become one. *err is set only when out of memory. */
bool gy_fuse_pair(gy_fuser *f, uint32_t a, uint32_t b, gy_node *made, bool *keeps, gantry_error *err);
/* pair.c: the shape that says how many elements the formulas of a node have. A reduction whose only region of that
 * shape lay between could have another. */
gy_maths_shape gy_fuse_model(const gantry_graph *graph, const gy_node *node);
/* compact.c: takes away the nodes that are gone. False: out of memory. */
bool gy_fuse_compact(gy_fuser *f);

#endif
