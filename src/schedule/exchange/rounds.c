/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/exchange/rounds.h"

#include "schedule/traffic/traffic.h"
#include <stdlib.h>

#define NO_END UINT32_MAX

/* The rounds of one piece. Of each rank: the end that it gives, that it takes; NO_END: none. */
typedef struct rounds {
    const gantry_schedule *s;
    const gy_op *op;
    const gy_group *g;
    const gy_exchange_end *end; /* of the piece's exchange */
    const gy_exchange_piece *piece;
    uint32_t *gives, *takes;
    uint32_t root; /* the rank that has what is moved; GY_NONE: all have some */
    uint32_t *order;
    gy_islands islands;
    uint32_t round;
    gy_step_move last; /* the move that the last piece was begun for */
    bool open;         /* other moves may go into that piece */
    gy_pieces *to;
    bool failed;
} rounds;

void gy_pieces_free(gy_pieces *pieces)
{
    gy_vec_free(&pieces->piece);
    gy_vec_free(&pieces->end);
}

static uint32_t rank_of(const rounds *r, uint32_t end)
{
    const gy_use *u = &r->s->use.at[r->op->use + r->end[end].use];
    return gy_group_rank(r->g, r->s->instances.at[u->instance].memory);
}

static bool note_end(const rounds *r, uint32_t end, uint32_t *of)
{
    uint32_t rank = rank_of(r, end);
    bool first = of[rank] == NO_END;
    of[rank] = end;
    return first;
}

/* All that the steps need: every rank gives, where sums are made, and takes at one end; of what is moved, one gives. */
static bool find_ends(rounds *r, const gy_exchange_piece *piece)
{
    bool all = piece->sources > 0, combines = r->g->reduce != 0;
    r->piece = piece;
    for (uint32_t i = 0; i < r->g->ranks; i++)
        r->gives[i] = r->takes[i] = NO_END;
    for (uint32_t k = 0; k < piece->sources; k++)
        all = (note_end(r, piece->source + k, r->gives) || combines) && all;
    for (uint32_t k = 0; k < piece->targets; k++)
        all = note_end(r, piece->target + k, r->takes) && all;
    r->root = GY_NONE;
    for (uint32_t i = 0; i < r->g->ranks; i++) {
        r->root = !combines && r->gives[i] != NO_END ? i : r->root;
        all = all && (r->takes[i] != NO_END || i == r->root) && (!combines || r->gives[i] != NO_END);
    }
    return all;
}

/* ---- pieces ---- */

static void add_end(rounds *r, uint32_t end, int64_t offset)
{
    gy_exchange_end e = r->end[end];
    e.offset += (uint64_t)offset;
    r->failed |= !gy_vec_push(&r->to->end, e);
}

/* The ends at which the rank gives, or the one where it takes: what came there. */
static void add_sources(rounds *r, uint32_t rank, bool given, int64_t offset)
{
    if (!given)
        add_end(r, r->takes[rank], offset);
    for (uint32_t k = 0; given && k < r->piece->sources; k++)
        if (rank_of(r, r->piece->source + k) == rank)
            add_end(r, r->piece->source + k, offset);
}

static void close_piece(rounds *r)
{
    if (!r->open || r->failed)
        return;
    gy_exchange_piece *piece = gy_vec_last(&r->to->piece);
    if (r->last.combines) {
        piece->target = (uint32_t)r->to->end.count;
        piece->sources = piece->target - piece->source;
        add_end(r, r->takes[r->last.to], r->last.first);
    }
    piece->targets = (uint32_t)r->to->end.count - piece->target;
    r->open = false;
}

static void open_piece(rounds *r, const gy_step_move *move)
{
    gy_exchange_piece piece = { .source = (uint32_t)r->to->end.count, .round = r->round };
    piece.bytes = (uint64_t)(move->last - move->first);
    r->failed |= !gy_vec_push(&r->to->piece, piece);
    if (move->combines)
        add_sources(r, move->to, move->to_given, move->first);
    else
        add_sources(r, move->from, move->given, move->first);
    if (r->failed)
        return;
    gy_exchange_piece *made = gy_vec_last(&r->to->piece);
    made->target = (uint32_t)r->to->end.count;
    made->sources = made->target - made->source;
    r->last = *move;
    r->open = true;
}

static bool goes_on(const rounds *r, const gy_step_move *move)
{
    bool same =
        r->open && r->last.combines == move->combines && r->last.first == move->first && r->last.last == move->last;
    return same && (move->combines ? r->last.to == move->to : r->last.from == move->from);
}

static void note_move(void *context, const gy_step_move *move)
{
    rounds *r = context;
    if (!goes_on(r, move)) {
        close_piece(r);
        open_piece(r, move);
    }
    if (move->combines)
        add_sources(r, move->from, move->given, move->first);
    else
        add_end(r, r->takes[move->to], move->first);
}

static void note_round(void *context, int64_t times)
{
    rounds *r = context;
    (void)times; /* 1: the walk leaves no step out */
    close_piece(r);
    r->round++;
}

/* The root's own goes to where it takes it, too. */
static void keep_own(rounds *r, int64_t bytes)
{
    gy_step_move move = { r->root, r->root, 0, bytes, false, true, false };
    if (r->root != GY_NONE && r->takes[r->root] != NO_END)
        note_move(r, &move);
    close_piece(r);
}

static void add_whole(rounds *r, const gy_exchange_piece *piece)
{
    gy_exchange_piece copy = *piece;
    copy.source = (uint32_t)r->to->end.count;
    copy.target = copy.source + piece->sources;
    for (uint32_t k = 0; k < piece->sources + piece->targets; k++)
        add_end(r, k < piece->sources ? piece->source + k : piece->target + k - piece->sources, 0);
    r->failed |= !gy_vec_push(&r->to->piece, copy);
}

/* Between two ranks: in the step in which the one is so many places behind the other. */
static void add_pair(rounds *r, const gy_exchange_piece *piece)
{
    uint32_t from = 0, to = 0;
    for (uint32_t i = 0; i < r->g->ranks; i++) {
        from = piece->sources && r->order[i] == rank_of(r, piece->source) ? i : from;
        to = piece->targets && r->order[i] == rank_of(r, piece->target) ? i : to;
    }
    add_whole(r, piece);
    if (!r->failed && from != to)
        gy_vec_last(&r->to->piece)->round = (to + r->g->ranks - from) % r->g->ranks - 1;
}

static void add_rounds(rounds *r, const gy_exchange_piece *piece)
{
    int64_t bytes = (int64_t)piece->bytes;
    gy_move_walk walk = { note_move, note_round, r, false };
    r->round = 0;
    if (r->g->kind == GANTRY_ALL_TO_ALL) {
        add_pair(r, piece);
        return;
    }
    if (!find_ends(r, piece)) {
        add_whole(r, piece);
        return;
    }
    keep_own(r, bytes);
    uint32_t root = r->root == GY_NONE ? 0 : r->root;
    if (!gy_algorithm_moves(r->g, (gy_algorithm)r->op->algorithm, r->order, &r->islands, root, bytes, &walk))
        r->failed = true; /* of kinds that has_rounds() knows there is no other */
}

/* ---- all of an op ---- */

static int by_round(const void *a, const void *b)
{
    const gy_exchange_piece *x = a, *y = b;
    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    return (x->source > y->source) - (x->source < y->source);
}

static bool make(rounds *r, const gy_pieces *pieces)
{
    uint32_t n = r->g->ranks, *room = gy_calloc(3 * (size_t)n, sizeof *room);
    r->end = pieces->end.at;
    r->gives = room;
    r->takes = room ? room + n : NULL;
    r->order = room ? room + 2 * (size_t)n : NULL;
    bool done = room && gy_islands_find(&r->islands, r->s->machine, r->g);
    if (done)
        gy_ring_order(r->s->machine, r->g, r->order);
    for (size_t i = 0; done && i < pieces->piece.count; i++)
        add_rounds(r, &pieces->piece.at[i]);
    gy_free(room);
    gy_islands_free(&r->islands);
    return done && !r->failed;
}

/* True if the algorithm has several steps for the op. */
static bool has_rounds(const gy_op *op, const gy_group *g)
{
    gy_algorithm a = (gy_algorithm)op->algorithm;
    bool power = (g->ranks & (g->ranks - 1)) == 0;
    switch (g->kind) {
    case GANTRY_ALL_REDUCE:
    case GANTRY_ALL_GATHER:
        return a == GY_ALGORITHM_RING || a == GY_ALGORITHM_TREE || a == GY_ALGORITHM_ISLANDS ||
               (a == GY_ALGORITHM_RECURSIVE && power);
    case GANTRY_BROADCAST:
        return a == GY_ALGORITHM_RING || a == GY_ALGORITHM_TREE || a == GY_ALGORITHM_ISLANDS;
    case GANTRY_ALL_TO_ALL:
        return a == GY_ALGORITHM_RING;
    default:
        return false;
    }
}

bool gy_exchange_rounds(const gantry_schedule *schedule, const gy_op *op, gy_pieces *pieces)
{
    gy_group g;
    gy_pieces made = { 0 };
    rounds r = { .s = schedule, .op = op, .g = &g, .to = &made };
    if (op->algorithm == GY_ALGORITHM_NONE || !op->uses)
        return true;
    if (!gy_group_of_op(&g, schedule, op))
        return false;
    bool steps = g.ranks > 1 && has_rounds(op, &g), done = !steps || make(&r, pieces);
    gy_group_free(&g);
    if (!steps)
        return true;
    if (!done) {
        gy_pieces_free(&made);
        return false;
    }
    gy_pieces_free(pieces);
    *pieces = made;
    if (made.piece.count)
        qsort(made.piece.at, made.piece.count, sizeof *made.piece.at, by_round);
    return true;
}
