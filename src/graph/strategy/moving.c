/* SPDX-License-Identifier: Apache-2.0 */
/* Does it matter where the batch is cut into pieces? Not where each node has a rule, by which it does the same to each
 * row, or adds rows up, and where those that a file has for its parts are alike, as many for each. A number that says
 * where the rows of a node begin follows them, and rows of a sequence stay together. A buffer that a file has for one
 * part alone has as many rows as that. */
#include "base/divisor.h"
#include "base/error.h"
#include "base/map.h"
#include "graph/adjoint/adjoint.h"
#include "graph/alike.h"
#include "graph/strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

/* A node that belongs to pieces; those of a family access the same buffers in one order, or such as one piece has for
 * itself and another has alike. */
typedef struct member {
    uint64_t family;
    uint32_t node;
    gy_piece_range of;
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

typedef struct finder {
    gy_spreading *s;
    gy_cut_role *role;  /* by access of the node at hand */
    uint64_t *likeness; /* by buffer that one piece has for itself: of the node that writes it */
    member *at;
    size_t count;
    bool moves;
} finder;

static bool can_be_own(const gy_spreading *s, uint32_t buffer)
{
    const gy_buffer *b = &s->graph->buffers.at[buffer];
    const gy_rows_of_pieces *rows = &s->rows[buffer];
    bool is_one = rows->count == 1 && rows->at[0].first == 0 && rows->at[0].last == b->rows &&
                  rows->at[0].pieces.to - rows->at[0].pieces.from < s->pieces;
    return is_one && b->cls == GANTRY_TEMP && !b->parts && !b->tiles[0] && !b->halo && !b->output && !b->external &&
           !s->is_weight[buffer];
}

/* Where rows lie that do not go with the batch, as those of a weight or of what is summed, and in which of the arrays
 * that lie behind each other those that do. */
static uint64_t place_of(const finder *f, const gy_access *x, gy_cut_role role)
{
    const gy_buffer *b = &f->s->graph->buffers.at[x->buffer];
    bool goes = role == GY_CUT_ROWS && f->s->rows[x->buffer].count && b->turns;
    if (goes)
        return (uint64_t)(x->first / (b->rows / b->turns));
    return gy_hash64((uint64_t)x->first) ^ (uint64_t)x->last;
}

/* By what the node does, to which buffers, and to which of their rows. */
static uint64_t family_of(const finder *f, const gy_node *n)
{
    uint64_t hash = gy_hash64(n->kernel) ^ ((uint64_t)n->kind << 32 | n->accesses);
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_access *x = &f->s->graph->access.at[n->access + i];
        uint64_t own = f->likeness[x->buffer], name = x->buffer + UINT64_C(1);
        name = can_be_own(f->s, x->buffer) ? UINT64_MAX : name; /* nobody has written it yet */
        hash = gy_hash64(hash ^ gy_hash64(own ? own : name));
        hash = gy_hash64(hash ^ place_of(f, x, f->role[i]));
    }
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

/* ---- buffers that one piece has for itself ---- */

/* A node of one piece that reads all rows of that for each of its rows, or reduces them to what it alone writes, gives
 * something else where the piece has others. */
static bool mixes_rows(const gy_spreading *s, const gy_access *x, gy_cut_role role)
{
    bool is_batch = s->rows[x->buffer].count && !s->is_weight[x->buffer];
    return x->mode == GANTRY_READ ? is_batch && role == GY_CUT_WHOLE : x->mode == GANTRY_WRITE && role == GY_CUT_SUMMED;
}

static void note_own(finder *f, uint32_t node)
{
    gy_spreading *s = f->s;
    const gy_node *n = &s->graph->nodes.at[node];
    uint64_t family = family_of(f, n);
    bool is_cut = gy_spread_count(s, node) > 1;
    for (uint32_t i = 0; i < gy_node_regions(n); i++) {
        const gy_access *x = &s->graph->access.at[n->access + i];
        gy_buffer *b = &s->graph->buffers.at[x->buffer];
        bool goes = f->role[i] == GY_CUT_ROWS;
        if (!b->piece && x->mode != GANTRY_READ && goes && can_be_own(s, x->buffer)) {
            b->piece = s->rows[x->buffer].at[0].pieces.from + 1;
            f->likeness[x->buffer] = gy_hash64(family + i) | 1;
        }
        f->moves = f->moves && (!b->piece || goes) && (is_cut || !mixes_rows(s, x, f->role[i]));
    }
}

/* ---- nodes ---- */

/* How many rows of the batch lie before those of the access. */
static int64_t rows_before(const gy_spreading *s, const gy_access *x)
{
    const gy_buffer *b = &s->graph->buffers.at[x->buffer];
    int64_t before = x->first % (b->rows / (b->turns ? b->turns : 1));
    if (!b->piece)
        return before;
    gy_piece_range of = s->rows[x->buffer].at[0].pieces;
    return before + b->rows / (of.to - of.from) * of.from;
}

static bool find_number(const gy_spreading *s, uint32_t node, member *out)
{
    const gantry_graph *g = s->graph;
    const gy_access *x = &g->access.at[g->nodes.at[node].access];
    if (!gy_first_number_of(g, node, &out->number))
        return false;
    const gy_first_number *number = &out->number;
    if (number->arg == GY_NONE)
        return true;
    out->origin = number->at - number->per_row * rows_before(s, x);
    if (number->period)
        out->origin = (out->origin % number->period + number->period) % number->period;
    return g->buffers.at[x->buffer].turns && out->origin >= 0;
}

/* The mean over a part of a file is that of so many rows, whatever the part becomes. */
static gantry_status look(finder *f, uint32_t node)
{
    gy_spreading *s = f->s;
    gantry_graph *g = s->graph;
    const gy_node *n = &g->nodes.at[node];
    gy_cut_rule rule;
    GY_TRY(gy_spread_rule(s, node, f->role, &rule));
    member made = { .node = node, .of = s->of[node] };
    bool is_cut = gy_spread_count(s, node) > 1;
    note_own(f, node);
    made.family = family_of(f, n);
    f->moves = f->moves && rule.can_cut && n->accesses && (is_cut || !rule.mean) && find_number(s, node, &made) &&
               note_grain(g, n, rule.whole);
    f->at[f->count++] = made;
    return GANTRY_OK;
}

/* Copies of one family are alike. */
static bool are_alike(const gantry_graph *g, const member *a, const member *b)
{
    bool is_copy = g->nodes.at[a->node].kind == GY_NODE_COPY;
    return a->origin == b->origin && (is_copy || gy_nodes_are_alike_but(g, a->node, b->node, b->number.arg));
}

/* Does a family of `count` nodes have as many for each piece? `seen`: by piece. */
static bool are_even(const finder *f, const member *at, size_t count, uint32_t *seen)
{
    uint32_t pieces = f->s->pieces;
    memset(seen, 0, pieces * sizeof *seen);
    for (size_t i = 0; i < count; i++)
        for (uint32_t p = at[i].of.from; p < at[i].of.to; p++)
            seen[p]++;
    for (uint32_t p = 1; p < pieces; p++)
        if (seen[p] != seen[0])
            return false;
    return true;
}

static bool are_families(const finder *f, uint32_t *seen)
{
    for (size_t i = 0, first = 0; i < f->count; i++) {
        bool is_last = i + 1 == f->count || f->at[i + 1].family != f->at[i].family;
        if (!is_last && !are_alike(f->s->graph, &f->at[i], &f->at[i + 1]))
            return false;
        if (is_last && !are_even(f, &f->at[first], i + 1 - first, seen))
            return false;
        first = is_last ? i + 1 : first;
    }
    return true;
}

static gantry_status look_at_all(finder *f, uint32_t *seen)
{
    const gantry_graph *g = f->s->graph;
    for (uint32_t i = 0; i < g->nodes.count && f->moves; i++)
        if (f->s->of[i].from != f->s->of[i].to)
            GY_TRY(look(f, i));
    if (f->count)
        qsort(f->at, f->count, sizeof *f->at, compare_members);
    f->moves = f->moves && are_families(f, seen);
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
    gantry_graph *g = s->graph;
    finder f = { .s = s, .moves = how->dp > 1 && how->pp == 1 && how->tp == 1 && !how->ordered };
    if (!f.moves)
        return GANTRY_OK;
    f.role = gy_calloc(g->access.count + 1, sizeof *f.role);
    f.likeness = gy_calloc(g->buffers.count + 1, sizeof *f.likeness);
    f.at = gy_calloc(g->nodes.count + 1, sizeof *f.at);
    uint32_t *seen = gy_calloc(s->pieces, sizeof *seen);
    note_turns(s);
    gantry_status status = f.role && f.likeness && f.at && seen ? look_at_all(&f, seen) : gy_fail_nomem(s->err);
    g->moves_parts = !status && f.moves ? s->pieces : 0;
    if (g->moves_parts)
        note_parts(s);
    gy_free(f.role);
    gy_free(f.likeness);
    gy_free(f.at);
    gy_free(seen);
    return status;
}
