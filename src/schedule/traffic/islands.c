/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Islands: ranks that are near to each other and far from others, as the routes say, level by level; and collectives
 * that heed them. Each island adds up what it has, each of its ranks a part; ranks with one part on all islands
 * exchange it; then each island shares out its parts. So every byte crosses between islands as seldom as can be, over
 * the ways of all ranks, where a ring has it cross at the pace of its slowest hop. (J. Cho et al., BlueConnect, IBM J.
 * Res. Dev. 63(6), 2019, with a reduce_scatter and an all_gather on each level.)
 */
#include "schedule/traffic/traffic.h"

#include <string.h>

enum { LARGE = 16 << 20 /* bytes: what is near is a matter of the machine, not of the collective */, GRAIN = 256 };

void gy_islands_free(gy_islands *islands)
{
    gy_free(islands->rank);
    gy_free(islands->key);
    *islands = (gy_islands){ 0 };
}

/* ---- finding ---- */

/* How long LARGE takes at least, also where resources on the way are slower than the route. */
static gy_ticks pace(const gantry_machine *m, const gy_group *g, uint32_t from, uint32_t to)
{
    const gy_route *r = gy_machine_route(m, g->memory[from], g->memory[to]);
    gy_ticks time = gy_route_time(m, r, LARGE);
    for (uint32_t i = 0; m->contention && i < r->resources; i++) {
        gy_ticks t = gy_ticks_of(LARGE, m->resource[r->resource[i]].rate);
        time = t > time ? t : time;
    }
    return time;
}

typedef struct search {
    const gantry_machine *m;
    const gy_group *g;
    const uint32_t *rank; /* those that are divided: so many */
    uint32_t ranks;
    uint32_t *island; /* of each: 1 + the number of its island; 0: of none yet */
    uint32_t *member; /* room for the ranks of one island */
    gy_ticks far;
    uint32_t size, count;
} search;

static bool is_near(const search *s, uint32_t a, uint32_t b)
{
    return a == b || 2 * pace(s->m, s->g, s->rank[a], s->rank[b]) <= s->far;
}

/* The ranks near to the first that has no island are one, and near to each other. */
static bool take_island(search *s, uint32_t first)
{
    uint32_t size = 0;
    s->count++;
    for (uint32_t k = 0; k < s->ranks; k++) {
        if (!is_near(s, first, k))
            continue;
        if (s->island[k])
            return false;
        s->island[k] = s->count;
        s->member[size++] = k;
    }
    s->size = s->count == 1 ? size : s->size;
    for (uint32_t i = 0; i < size; i++)
        for (uint32_t k = 0; k < size; k++)
            if (!is_near(s, s->member[i], s->member[k]))
                return false;
    return size == s->size && size > 1 && size < s->ranks;
}

/* Islands of one size, each of two ranks or more. */
static bool divide(search *s)
{
    s->far = 0;
    s->count = s->size = 0;
    for (uint32_t k = 1; k < s->ranks; k++) {
        gy_ticks t = pace(s->m, s->g, s->rank[0], s->rank[k]);
        s->far = t > s->far ? t : s->far;
    }
    memset(s->island, 0, s->ranks * sizeof *s->island);
    for (uint32_t k = 0; k < s->ranks; k++)
        if (!s->island[k] && !take_island(s, k))
            return false;
    return s->count > 1 && s->far < GY_TICKS_MAX / 2;
}

/* The ranks of island i, each where that of the first island is that it is nearest to. */
static void place_island(const search *s, uint32_t i, uint32_t *to)
{
    uint32_t placed = 0;
    for (uint32_t k = 0; k < s->ranks; k++)
        if (s->island[k] == i + 1)
            to[i * s->size + placed++] = s->rank[k];
    for (uint32_t j = 0; i && j < s->size; j++) {
        uint32_t best = j, *mine = to + i * s->size;
        gy_ticks least = pace(s->m, s->g, to[j], mine[j]);
        for (uint32_t k = j + 1; k < s->size; k++) {
            gy_ticks t = pace(s->m, s->g, to[j], mine[k]);
            best = t < least ? k : best;
            least = t < least ? t : least;
        }
        uint32_t near = mine[best];
        memmove(mine + j + 1, mine + j, (best - j) * sizeof *mine);
        mine[j] = near;
    }
}

/* Divides all that have been found to be one island each, `size` ranks one behind the other, alike; false: it cannot be
 * done. `room` is for three numbers a rank; the first are the ranks divided. */
static bool divide_all(const gy_islands *to, const gantry_machine *m, const gy_group *g, uint32_t size, uint32_t *room,
                       uint32_t *within)
{
    *within = 0;
    for (uint32_t first = 0; first < to->ranks; first += size) {
        search s = { .m = m, .g = g, .rank = to->rank + first, .ranks = size };
        s.island = room + to->ranks;
        s.member = s.island + to->ranks;
        if (!divide(&s) || (*within && *within != s.size))
            return false;
        *within = s.size;
        for (uint32_t i = 0; i < s.count; i++)
            place_island(&s, i, room + first);
    }
    return true;
}

/* From the outermost level inwards; sizes are turned round at the end. */
static void find_levels(gy_islands *to, const gantry_machine *m, const gy_group *g, uint32_t *room)
{
    uint32_t outer[GY_ISLAND_LEVELS] = { 0 }, size = to->ranks, within;
    to->levels = 0;
    while (to->levels + 1 < GY_ISLAND_LEVELS && divide_all(to, m, g, size, room, &within)) {
        memcpy(to->rank, room, to->ranks * sizeof *room);
        outer[to->levels++] = size / within;
        size = within;
    }
    to->size[0] = size;
    for (uint32_t i = 0; i < to->levels; i++)
        to->size[to->levels - i] = outer[i];
    to->levels++;
}

static bool is_known(const gy_islands *islands, const gy_group *g)
{
    return islands->rank && islands->ranks == g->ranks &&
           memcmp(islands->key, g->memory, g->ranks * sizeof *g->memory) == 0;
}

bool gy_islands_find(gy_islands *islands, const gantry_machine *m, const gy_group *g)
{
    if (is_known(islands, g))
        return true;
    gy_islands_free(islands);
    uint32_t *room = gy_calloc(3 * (size_t)g->ranks + 1, sizeof *room);
    islands->ranks = g->ranks;
    islands->rank = gy_calloc((size_t)g->ranks + 1, sizeof *islands->rank);
    islands->key = gy_calloc((size_t)g->ranks + 1, sizeof *islands->key);
    bool done = room && islands->rank && islands->key;
    for (uint32_t i = 0; done && i < g->ranks; i++) {
        islands->rank[i] = i;
        islands->key[i] = g->memory[i];
    }
    if (done)
        find_levels(islands, m, g, room);
    else
        gy_islands_free(islands);
    gy_free(room);
    return done;
}

/* ---- moves ---- */

typedef struct moves {
    const gy_islands *at;
    const gy_move_walk *walk;
    const int64_t *bytes; /* all_gather of what all have: of each rank; else of the piece at hand */
    int64_t first;        /* where the piece begins */
    uint32_t root;        /* its place; GY_NONE: all are */
} moves;

static uint32_t stride_of(const gy_islands *at, uint32_t level)
{
    uint32_t stride = 1;
    for (uint32_t k = 0; k < level; k++)
        stride *= at->size[k];
    return stride;
}

static uint32_t digit_of(const gy_islands *at, uint32_t place, uint32_t level)
{
    return place / stride_of(at, level) % at->size[level];
}

/* The place at `digit` of the level, else as `place`. */
static uint32_t peer_of(const gy_islands *at, uint32_t place, uint32_t level, uint32_t digit)
{
    return place + (digit - digit_of(at, place, level)) * stride_of(at, level);
}

/* The digits of both agree from the level on. */
static bool is_same_from(const gy_islands *at, uint32_t a, uint32_t b, uint32_t level)
{
    return a / stride_of(at, level) == b / stride_of(at, level);
}

/* The part that the place has of all bytes once they are scattered on the levels up to this one. */
static void cut(const moves *w, uint32_t place, uint32_t level, gy_step_move *to)
{
    to->first = 0;
    to->last = *w->bytes;
    for (uint32_t k = 0; k <= level; k++) {
        uint32_t count = w->at->size[k], i = digit_of(w->at, place, k);
        int64_t grains = (to->last - to->first) / GRAIN, first = to->first;
        to->last = i + 1 < count ? first + gy_part_bound(grains, count, i + 1) * GRAIN : to->last;
        to->first = first + gy_part_bound(grains, count, i) * GRAIN;
    }
}

static void tell(const moves *w, uint32_t from, uint32_t to, gy_step_move move)
{
    move.from = w->at->rank[from];
    move.to = w->at->rank[to];
    move.first += w->first;
    move.last += w->first;
    if (move.first < move.last)
        w->walk->move(w->walk->context, &move);
}

/* Every place gets its part from all of its peers. */
static void add_up(const moves *w, uint32_t level)
{
    for (uint32_t to = 0; to < w->at->ranks; to++) {
        gy_step_move move = { .combines = true, .given = level == 0, .to_given = level == 0 };
        cut(w, to, level, &move);
        for (uint32_t d = 0; d < w->at->size[level]; d++)
            if (d != digit_of(w->at, to, level))
                tell(w, peer_of(w->at, to, level, d), to, move);
    }
}

/* Places of the root's island on this level each give their peers parts of what they have. */
static void give_parts(const moves *w, uint32_t level)
{
    for (uint32_t from = 0; from < w->at->ranks; from++)
        for (uint32_t d = 0; d < w->at->size[level] && is_same_from(w->at, from, w->root, level); d++) {
            uint32_t to = peer_of(w->at, from, level, d);
            gy_step_move move = { .given = from == w->root };
            cut(w, to, level, &move);
            if (to != from)
                tell(w, from, to, move);
        }
}

/* Every place sends its peers the part that it has; `rooted`: but not to those that parts came from. */
static void gather_parts(const moves *w, uint32_t level, bool rooted)
{
    for (uint32_t from = 0; from < w->at->ranks; from++)
        for (uint32_t d = 0; d < w->at->size[level]; d++) {
            uint32_t to = peer_of(w->at, from, level, d);
            gy_step_move move = { .given = rooted && from == w->root };
            cut(w, from, level, &move);
            if (to != from && !(rooted && is_same_from(w->at, to, w->root, level)))
                tell(w, from, to, move);
        }
}

/* The bytes that the place has once all outer levels were gathered: what it had, and what those had that differ from it
 * on outer levels only. Of the root alone: all that it gives, or nothing. */
static int64_t gathered(const moves *w, uint32_t place, uint32_t level)
{
    uint32_t step = stride_of(w->at, level + 1);
    int64_t sum = 0;
    if (w->root != GY_NONE)
        return place % step == w->root % step ? *w->bytes : 0;
    for (uint32_t owner = place % step; owner < w->at->ranks; owner += step)
        sum += w->bytes[w->at->rank[owner]];
    return sum;
}

/* Every place sends its peers what it has. */
static void gather_blocks(const moves *w, uint32_t level)
{
    for (uint32_t from = 0; from < w->at->ranks; from++) {
        gy_step_move move = { .last = gathered(w, from, level), .given = from == w->root };
        for (uint32_t d = 0; d < w->at->size[level] && move.last; d++)
            if (d != digit_of(w->at, from, level))
                tell(w, from, peer_of(w->at, from, level, d), move);
    }
}

/* ---- pieces ---- */

/* A level of an island and one of the islands of it seldom use the same links. So large amounts go in pieces, each one
 * step behind the one before: while pieces cross between islands, the next are added up within, and others gathered. A
 * step costs a launch and a signal, which take as long as some hundred kilobytes; a rank sends an eighth of a piece or
 * so. */
enum { PIECE = 32 << 20, MOST_PIECES = 64 };

static int64_t pieces_of(int64_t bytes)
{
    int64_t pieces = bytes / PIECE;
    return pieces < 1 ? 1 : pieces > MOST_PIECES ? MOST_PIECES : pieces;
}

/* Inwards to the outermost level and back; a broadcast is scattered on the way out. */
static void make_step(const moves *w, gantry_collective kind, uint32_t step)
{
    uint32_t levels = w->at->levels;
    if (step >= levels)
        gather_parts(w, 2 * levels - 1 - step, kind == GANTRY_BROADCAST);
    else if (kind == GANTRY_BROADCAST)
        give_parts(w, step);
    else
        add_up(w, step);
}

/* The moves of the round: of each piece that is under way, one step. Pieces have one size, but the last has what is
 * left. */
static void make_round(const moves *all, gantry_collective kind, int64_t round, int64_t size)
{
    for (int64_t step = 0; step < 2 * (int64_t)all->at->levels && step <= round; step++) {
        moves w = *all;
        w.first = (round - step) * size;
        int64_t bytes = *all->bytes - w.first < size ? *all->bytes - w.first : size;
        w.bytes = &bytes;
        if (bytes > 0 || w.first == 0)
            make_step(&w, kind, (uint32_t)step);
    }
}

static void move_pieces(const moves *all, gantry_collective kind)
{
    int64_t bytes = *all->bytes, most = pieces_of(bytes), steps = 2 * (int64_t)all->at->levels;
    int64_t grains = (bytes + GRAIN - 1) / GRAIN, size = (grains + most - 1) / most * GRAIN;
    int64_t pieces = size ? (bytes + size - 1) / size : 1, round = 0;
    pieces = pieces < 1 ? 1 : pieces;
    while (round < pieces + steps - 1) {
        bool full = round == steps - 1 && pieces > steps; /* all steps are under way, and will be */
        int64_t times = full && all->walk->brief ? pieces - steps : 1;
        make_round(all, kind, round, size);
        all->walk->end(all->walk->context, times);
        round += times;
    }
}

void gy_islands_moves(const gy_islands *islands, gantry_collective kind, uint32_t root, const int64_t *bytes,
                      const gy_move_walk *walk)
{
    moves w = { .at = islands, .walk = walk, .bytes = bytes, .root = root == GY_NONE ? GY_NONE : 0 };
    while (root != GY_NONE && islands->rank[w.root] != root)
        w.root++;
    if (kind != GANTRY_ALL_GATHER) {
        move_pieces(&w, kind);
        return;
    }
    for (uint32_t k = islands->levels; k--;) {
        gather_blocks(&w, k);
        walk->end(walk->context, 1);
    }
}
