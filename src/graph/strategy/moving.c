/* SPDX-License-Identifier: Apache-2.0 */
/* Does it matter where the batch is cut into pieces? Not where each node has a rule, by which it does the same to each
 * row, or adds rows up, and where those that a file has for its parts are alike. */
#include "base/error.h"
#include "base/map.h"
#include "graph/alike.h"
#include "graph/strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

/* A node that belongs to pieces; those of a family access the same buffers in one order. */
typedef struct member {
    uint64_t family;
    uint32_t node;
} member;

static int compare_members(const void *one, const void *other)
{
    const member *a = one, *b = other;
    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

static uint64_t family_of(const gantry_graph *g, const gy_node *n)
{
    uint64_t hash = n->accesses;
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        hash = gy_hash64(hash ^ gy_hash64(g->access.at[i].buffer + UINT64_C(1)));
    return hash;
}

/* Does it matter where rows of such a node begin? Not to softmax, unless it is causal. */
static bool tells_rows_apart(const gantry_graph *g, const gy_node *n)
{
    const gantry_kernel *k = g->kernels.at[n->kernel].manifest;
    for (int32_t arg = 0; arg < k->args; arg++) {
        if (strcmp(k->arg[arg].name, "causal") != 0)
            continue;
        for (uint32_t i = n->scalar; i < n->scalar + n->scalars; i++)
            if (g->scalar.at[i].arg == (uint32_t)arg)
                return g->scalar.at[i].number.real != 0;
        return false;
    }
    return true;
}

/* The mean over a part of a file is that of so many rows, whatever the part becomes. */
static gantry_status look(gy_spreading *s, uint32_t node, gy_cut_role *role, bool *moves)
{
    const gantry_graph *g = s->graph;
    gy_cut_rule rule;
    GY_TRY(gy_spread_rule(s, node, role, &rule));
    bool is_cut = gy_spread_count(s, node) > 1;
    bool counts = rule.first != GY_FIRST_NONE && tells_rows_apart(g, &g->nodes.at[node]);
    *moves = *moves && rule.can_cut && !counts && (is_cut || !rule.mean);
    return GANTRY_OK;
}

static bool are_alike(const gantry_graph *g, const member *at, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (at[i].family == at[i - 1].family && !gy_nodes_are_alike(g, at[i - 1].node, at[i].node))
            return false;
    return true;
}

static gantry_status look_at_all(gy_spreading *s, gy_cut_role *role, member *at, bool *moves)
{
    const gantry_graph *g = s->graph;
    size_t count = 0;
    for (uint32_t i = 0; i < g->nodes.count && *moves; i++) {
        if (s->of[i].from == s->of[i].to)
            continue;
        GY_TRY(look(s, i, role, moves));
        if (g->nodes.at[i].kind == GY_NODE_KERNEL)
            at[count++] = (member){ family_of(g, &g->nodes.at[i]), i };
    }
    if (count)
        qsort(at, count, sizeof *at, compare_members);
    *moves = *moves && are_alike(g, at, count);
    return GANTRY_OK;
}

/* Parts of the file are pieces, too, or several are one. */
static void note_parts(gy_spreading *s)
{
    for (uint32_t i = 0; i < s->graph->buffers.count; i++) {
        gy_buffer *b = &s->graph->buffers.at[i];
        b->in_pieces = b->parts && !b->split_auto && !s->is_weight[i] && s->rows[i].count;
    }
}

/* Stages and slices have several devices for one piece, and sums in one order are those of equal parts. */
gantry_status gy_spread_find_moving(gy_spreading *s)
{
    const gantry_strategy *how = &s->strategy;
    bool moves = how->dp > 1 && how->pp == 1 && how->tp == 1 && !how->ordered;
    if (!moves)
        return GANTRY_OK;
    gy_cut_role *role = gy_calloc(s->graph->access.count + 1, sizeof *role);
    member *at = gy_calloc(s->graph->nodes.count + 1, sizeof *at);
    gantry_status status = role && at ? look_at_all(s, role, at, &moves) : gy_fail_nomem(s->err);
    s->graph->moves_parts = !status && moves;
    if (s->graph->moves_parts)
        note_parts(s);
    gy_free(role);
    gy_free(at);
    return status;
}
