/* SPDX-License-Identifier: Apache-2.0 */
/* Does it matter where the batch is cut into pieces? Not where each node has a rule, by which it does the same to each
 * row, or adds rows up, and where those that a file has for its parts are alike. A number that says where the rows of a
 * node begin follows them, and rows of a sequence stay together. */
#include "base/divisor.h"
#include "base/error.h"
#include "base/map.h"
#include "graph/adjoint/adjoint.h"
#include "graph/alike.h"
#include "graph/strategy/strategy.h"

#include <stdlib.h>

/* A node that belongs to pieces; those of a family access the same buffers in one order. */
typedef struct member {
    uint64_t family;
    uint32_t node;
    gy_first_number number;
    int64_t origin; /* that number, had the node begun with the first row of the batch */
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

/* ---- rows ---- */

/* Does an entry go on where the one before ended, with the next piece or with more rows of one that has several parts?
 */
static bool goes_on(const gy_rows_of_pieces *rows, size_t i)
{
    if (i == 0)
        return false;
    gy_piece_range one = rows->at[i].pieces, before = rows->at[i - 1].pieces;
    bool is_same = one.to - one.from == 1 && before.to - before.from == 1 && one.from == before.from;
    return one.from == before.to || is_same;
}

/* Arrays of the batch behind each other, as in a buffer that has what each layer gives: each is as many rows, in as
 * many parts. 0: it is something else. */
static int64_t turns_of(const gy_spreading *s, uint32_t buffer)
{
    const gy_buffer *b = &s->graph->buffers.at[buffer];
    const gy_rows_of_pieces *rows = &s->rows[buffer];
    int64_t turns = 0, parts = b->parts ? b->parts : 1, turn = 0;
    for (size_t i = 0; i < rows->count; i++)
        turns += !goes_on(rows, i);
    if (turns == 0 || b->rows % turns || parts % turns)
        return 0;
    for (size_t i = 0; i < rows->count; i++)
        if (!goes_on(rows, i) && rows->at[i].first != b->rows / turns * turn++)
            return 0;
    return turns;
}

static void note_turns(gy_spreading *s)
{
    for (uint32_t i = 0; i < s->graph->buffers.count; i++)
        if (!s->is_weight[i] && s->rows[i].count)
            s->graph->buffers.at[i].turns = turns_of(s, i);
}

/* Rows of a sequence stay in one part. False: there are no parts of whole ones. */
static bool note_grain(gantry_graph *g, const gy_node *n, int64_t whole)
{
    gy_buffer *b = &g->buffers.at[g->access.at[n->access].buffer];
    int64_t grain = b->grain ? b->grain / gy_common_divisor(b->grain, whole) : 1;
    if (!whole)
        return true;
    if (whole > b->rows / grain)
        return false;
    b->grain = grain * whole;
    return true;
}

/* ---- nodes ---- */

static bool find_number(const gantry_graph *g, uint32_t node, member *out)
{
    const gy_access *x = &g->access.at[g->nodes.at[node].access];
    const gy_buffer *b = &g->buffers.at[x->buffer];
    if (!gy_first_number_of(g, node, &out->number))
        return false;
    const gy_first_number *number = &out->number;
    if (number->arg == GY_NONE)
        return true;
    out->origin = number->at - number->per_row * (x->first % (b->rows / (b->turns ? b->turns : 1)));
    if (number->period)
        out->origin = (out->origin % number->period + number->period) % number->period;
    return b->turns && out->origin >= 0;
}

/* The mean over a part of a file is that of so many rows, whatever the part becomes. */
static gantry_status look(gy_spreading *s, uint32_t node, gy_cut_role *role, member *out, bool *moves)
{
    gantry_graph *g = s->graph;
    const gy_node *n = &g->nodes.at[node];
    gy_cut_rule rule;
    GY_TRY(gy_spread_rule(s, node, role, &rule));
    *out = (member){ .family = family_of(g, n), .node = node };
    bool is_cut = gy_spread_count(s, node) > 1;
    *moves = *moves && rule.can_cut && n->accesses && (is_cut || !rule.mean) && find_number(g, node, out) &&
             note_grain(g, n, rule.whole);
    return GANTRY_OK;
}

static bool are_alike(const gantry_graph *g, const member *at, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (at[i].family == at[i - 1].family &&
            (at[i].origin != at[i - 1].origin ||
             !gy_nodes_are_alike_but(g, at[i - 1].node, at[i].node, at[i].number.arg)))
            return false;
    return true;
}

static gantry_status look_at_all(gy_spreading *s, gy_cut_role *role, member *at, bool *moves)
{
    const gantry_graph *g = s->graph;
    size_t count = 0;
    for (uint32_t i = 0; i < g->nodes.count && *moves; i++) {
        member one;
        if (s->of[i].from == s->of[i].to)
            continue;
        GY_TRY(look(s, i, role, &one, moves));
        if (g->nodes.at[i].kind == GY_NODE_KERNEL)
            at[count++] = one;
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
    note_turns(s);
    gantry_status status = role && at ? look_at_all(s, role, at, &moves) : gy_fail_nomem(s->err);
    s->graph->moves_parts = !status && moves;
    if (s->graph->moves_parts)
        note_parts(s);
    gy_free(role);
    gy_free(at);
    return status;
}
