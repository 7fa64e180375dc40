/* SPDX-License-Identifier: Apache-2.0 */
/* The moves of ring, tree and recursive: the steps of steps.c, with the bytes that go. */
#include "schedule/traffic/traffic.h"

enum { PIECE = 256 << 10, MOST_PIECES = 256, GRAIN = 256 };

typedef struct moves {
    const gy_group *g;
    const uint32_t *order; /* of a ring */
    uint32_t n, root;      /* root: the place, on the ring or counted from rank 0, of the rank that has what is moved */
    int64_t bytes;
    const gy_move_walk *walk;
} moves;

static int64_t bound_of(const moves *w, uint32_t part)
{
    return part < w->n ? gy_part_bound(w->bytes / GRAIN, w->n, part) * GRAIN : w->bytes;
}

static void tell(const moves *w, gy_step_move move)
{
    if (move.first < move.last)
        w->walk->move(w->walk->context, &move);
}

static void end_round(const moves *w)
{
    w->walk->end(w->walk->context, 1);
}

static uint32_t rank_at(const moves *w, uint32_t place)
{
    return w->order[place % w->n];
}

/* ---- ring ---- */

/* Every rank sends a part to the next: the one `back` places before its own. */
static void pass_parts(const moves *w, uint32_t back, bool combines, bool given)
{
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t part = (i + 2 * w->n - back) % w->n;
        tell(w, (gy_step_move){ rank_at(w, i), rank_at(w, i + 1), bound_of(w, part), bound_of(w, part + 1), combines,
                                given, combines });
    }
    end_round(w);
}

static void ring_all_reduce(const moves *w)
{
    for (uint32_t t = 0; t + 1 < w->n; t++)
        pass_parts(w, t, true, t == 0);
    for (uint32_t t = 0; t + 1 < w->n; t++)
        pass_parts(w, t + w->n - 1, false, false);
}

static void ring_all_gather(const moves *w)
{
    for (uint32_t t = 0; t + 1 < w->n; t++) {
        tell(w,
             (gy_step_move){ rank_at(w, w->root + t), rank_at(w, w->root + t + 1), 0, w->bytes, false, t == 0, false });
        end_round(w);
    }
}

int64_t gy_chain_pieces(int64_t bytes)
{
    int64_t pieces = bytes / PIECE;
    return pieces < 1 ? 1 : pieces > MOST_PIECES ? MOST_PIECES : pieces;
}

/* A chain: each rank passes on a piece in the round after it came. */
static void ring_broadcast(const moves *w)
{
    int64_t pieces = gy_chain_pieces(w->bytes), grains = w->bytes / GRAIN;
    for (int64_t round = 0; round < pieces + w->n - 2; round++) {
        for (uint32_t hop = 0; hop + 1 < w->n && hop <= round; hop++) {
            int64_t k = round - hop, first = gy_part_bound(grains, pieces, k) * GRAIN;
            int64_t last = k + 1 < pieces ? gy_part_bound(grains, pieces, k + 1) * GRAIN : w->bytes;
            if (k < pieces)
                tell(w, (gy_step_move){ rank_at(w, w->root + hop), rank_at(w, w->root + hop + 1), first, last, false,
                                        hop == 0, false });
        }
        end_round(w);
    }
}

static void ring_moves(const moves *w)
{
    if (w->g->kind == GANTRY_ALL_REDUCE)
        ring_all_reduce(w);
    else if (w->g->kind == GANTRY_ALL_GATHER)
        ring_all_gather(w);
    else
        ring_broadcast(w);
}

/* ---- tree ---- */

/* Up to place 0: each pair of neighbouring subtrees of `width` becomes one. */
static void tree_sum(const moves *w)
{
    for (uint32_t width = 1; width < w->n; width *= 2) {
        for (uint32_t near = 0; near + width < w->n; near += 2 * width) {
            uint32_t far = near + width;
            bool leaf = width == 1 || far + 1 == w->n;
            tell(w, (gy_step_move){ far, near, 0, w->bytes, true, leaf, width == 1 });
        }
        end_round(w);
    }
}

/* Up to place 0: the bytes of the root alone, when it is their turn. */
static void tree_up(const moves *w)
{
    uint32_t holder = w->root;
    for (uint32_t width = 1; width < w->n; width *= 2) {
        if (holder % (2 * width)) {
            tell(w, (gy_step_move){ holder, holder - width, 0, w->bytes, false, holder == w->root, false });
            holder -= width;
        }
        end_round(w);
    }
}

/* True if the place had the root's bytes on the way up. */
static bool was_on_the_way(const moves *w, uint32_t place)
{
    uint32_t holder = w->root;
    for (uint32_t width = 1; holder != place && width < w->n; width *= 2)
        holder -= holder % (2 * width);
    return holder == place;
}

/* Down from place 0, which is rank `shift`; `gathered`: places on the way up have the bytes. */
static void tree_down(const moves *w, uint32_t shift, bool gathered)
{
    uint32_t top = 1;
    while (2 * top < w->n)
        top *= 2;
    for (uint32_t width = top; width; width /= 2) {
        for (uint32_t near = 0; near + width < w->n; near += 2 * width) {
            uint32_t far = near + width;
            bool given = near == w->root && w->g->kind != GANTRY_ALL_REDUCE;
            if (!(gathered && was_on_the_way(w, far)))
                tell(w,
                     (gy_step_move){ (near + shift) % w->n, (far + shift) % w->n, 0, w->bytes, false, given, false });
        }
        end_round(w);
    }
}

static void tree_moves(const moves *w)
{
    moves from_root = *w;
    from_root.root = 0;
    if (w->g->kind == GANTRY_ALL_REDUCE)
        tree_sum(w);
    if (w->g->kind == GANTRY_ALL_GATHER)
        tree_up(w);
    if (w->g->kind == GANTRY_BROADCAST)
        tree_down(&from_root, w->root, false);
    else
        tree_down(w, 0, w->g->kind == GANTRY_ALL_GATHER);
}

/* ---- recursive ---- */

/* Parts of the block of `width` ranks that `of` is in go from i to its partner. */
static void exchange(const moves *w, uint32_t width, bool halving)
{
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t of = halving ? i ^ width : i, first = of / width * width;
        bool given = halving && 2 * width == w->n;
        tell(w, (gy_step_move){ i, i ^ width, bound_of(w, first), bound_of(w, first + width), halving, given, given });
    }
    end_round(w);
}

static void recursive_moves(const moves *w)
{
    for (uint32_t width = w->n / 2; width && w->g->kind == GANTRY_ALL_REDUCE; width /= 2)
        exchange(w, width, true);
    for (uint32_t width = 1; width < w->n; width *= 2) {
        if (w->g->kind == GANTRY_ALL_REDUCE) {
            exchange(w, width, false);
            continue;
        }
        for (uint32_t i = w->root / width * width; i < w->root / width * width + width; i++)
            tell(w, (gy_step_move){ i, i ^ width, 0, w->bytes, false, i == w->root, false });
        end_round(w);
    }
}

/* ---- all ---- */

bool gy_algorithm_moves(const gy_group *g, gy_algorithm algorithm, const uint32_t *order, const gy_islands *islands,
                        uint32_t root, int64_t bytes, const gy_move_walk *walk)
{
    moves w = { g, order, g->ranks, root, bytes, walk };
    bool knows = g->kind == GANTRY_ALL_REDUCE || g->kind == GANTRY_BROADCAST || g->kind == GANTRY_ALL_GATHER;
    if (!knows)
        return false;
    switch (algorithm) {
    case GY_ALGORITHM_ISLANDS:
        gy_islands_moves(islands, g->kind, root, &bytes, walk);
        return true;
    case GY_ALGORITHM_RING:
        for (w.root = 0; order[w.root] != root;)
            w.root++;
        ring_moves(&w);
        return true;
    case GY_ALGORITHM_TREE:
        tree_moves(&w);
        return true;
    case GY_ALGORITHM_RECURSIVE:
        if ((g->ranks & (g->ranks - 1)) == 0 && g->kind != GANTRY_BROADCAST)
            recursive_moves(&w);
        return (g->ranks & (g->ranks - 1)) == 0 && g->kind != GANTRY_BROADCAST;
    default:
        return false;
    }
}
