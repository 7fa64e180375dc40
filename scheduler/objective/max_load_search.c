/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Simulated annealing over assignments (S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Optimization by Simulated
 * Annealing, Science 220, 1983): a unit goes to another device, or two units change places. The load of the busiest
 * device alone says nothing about most moves, so what falls is a sum of powers of all loads, which is led by the
 * largest. Cooled down from several temperatures; the best assignment seen is kept, and each round begins there.
 */
#include "scheduler/objective/max_load_search.h"

#include "scheduler/search/random.h"
#include <string.h>

#define ROUNDS 8
#define ONE    1048576.0 /* energy of a device that has as much load as the busiest of the best assignment */

typedef struct search {
    gy_assignment at;
    gy_random random;
    uint32_t *best;
    gy_ticks best_load;
    uint64_t best_excess;
    double scale; /* 1 / best load */
} search;

/* Plain multiplications only: the same everywhere. */
static double energy_of(const search *s)
{
    double sum = 0;
    for (uint32_t d = 0; d < s->at.l->devices; d++) {
        double x = (double)s->at.load[d] * s->scale, x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
        sum += x8 * x4;
    }
    uint64_t excess = gy_assignment_excess(&s->at);
    if (excess)
        sum += 4 + (double)excess * 1e-6;
    return sum * ONE;
}

static void keep_best(search *s)
{
    uint64_t excess = gy_assignment_excess(&s->at);
    gy_ticks load = gy_assignment_load(&s->at);
    if (excess > s->best_excess || (excess == s->best_excess && load >= s->best_load))
        return;
    memcpy(s->best, s->at.device, s->at.l->units * sizeof *s->best);
    s->best_excess = excess;
    s->best_load = load;
}

static uint32_t any_unit(search *s)
{
    return gy_random_below(&s->random, s->at.l->units);
}

/* A unit that shares an item with this one, or any. */
static uint32_t find_neighbour(search *s, uint32_t unit)
{
    const gy_load *l = s->at.l;
    uint32_t items = l->item_first[unit + 1] - l->item_first[unit];
    if (!items)
        return any_unit(s);
    const gy_load_item *item = &l->items.at[l->item_of[l->item_first[unit] + gy_random_below(&s->random, items)]];
    uint32_t k = gy_random_below(&s->random, item->readers + 1);
    uint32_t other = k < item->readers ? l->reader.at[item->reader + k] : item->maker;
    return other == GY_NONE || other == unit ? any_unit(s) : other;
}

/* Up to a few units to new devices; what they were on. */
typedef struct change {
    uint32_t unit[8], old[8], count;
} change;

static bool put(search *s, change *c, uint32_t unit, uint32_t device)
{
    uint32_t old = s->at.device[unit];
    if (device == old)
        return false;
    gy_assignment_move(&s->at, unit, GY_NONE); /* so that it is not kept apart from itself */
    if (!gy_assignment_allows(&s->at, unit, device)) {
        gy_assignment_move(&s->at, unit, old);
        return false;
    }
    gy_assignment_move(&s->at, unit, device);
    c->unit[c->count] = unit;
    c->old[c->count++] = old;
    return true;
}

static void take_back(search *s, const change *c)
{
    for (uint32_t i = c->count; i-- > 0;)
        gy_assignment_move(&s->at, c->unit[i], c->old[i]);
}

/* One unit, to where a neighbour is or anywhere; two that change places; or some that hang together, to one device. */
static void propose(search *s, change *c)
{
    uint32_t what = gy_random_below(&s->random, 8), unit = any_unit(s), from = s->at.device[unit];
    c->count = 0;
    if (what < 2) {
        uint32_t other = any_unit(s), to = s->at.device[other];
        if (put(s, c, unit, to) && !put(s, c, other, from)) {
            take_back(s, c);
            c->count = 0;
        }
        return;
    }
    uint32_t to = what < 6 ? s->at.device[find_neighbour(s, unit)] : gy_random_below(&s->random, s->at.l->devices);
    put(s, c, unit, to);
    if (what != 5 && what != 7)
        return;
    for (uint32_t more = 1 + gy_random_below(&s->random, 6); more && c->count; more--) {
        unit = find_neighbour(s, unit);
        if (s->at.device[unit] == from && c->count < 8)
            put(s, c, unit, to);
    }
}

static void cool(search *s, uint64_t moves, double heat)
{
    s->scale = s->best_load > 0 ? 1 / (double)s->best_load : 1;
    double now = energy_of(s);
    for (uint64_t i = 0; i < moves; i++) {
        change c;
        double left = (double)(moves - i) / (double)moves;
        propose(s, &c);
        if (!c.count)
            continue;
        double then = energy_of(s), allowed = heat * left * left * left;
        if (then > now && then - now > (double)gy_random_exponential(&s->random, (gy_ticks)allowed + 1)) {
            take_back(s, &c);
            continue;
        }
        now = then;
        keep_best(s);
    }
}

bool gy_load_improve(const gy_load *l, uint32_t *device, uint64_t moves, uint64_t seed)
{
    static const double heats[] = { 0.05, 1, 0.3, 0.1, 3, 0.5, 0.2, 0.05 };
    search s = { .random = { seed }, .best = device };
    bool done = gy_assignment_init(&s.at, l);
    if (done && l->units && l->devices > 1) {
        gy_assignment_set(&s.at, device);
        s.best_load = gy_assignment_load(&s.at);
        s.best_excess = gy_assignment_excess(&s.at);
        for (uint32_t r = 0; r < ROUNDS; r++) {
            cool(&s, moves / ROUNDS, heats[r % (sizeof heats / sizeof *heats)] * ONE);
            gy_assignment_set(&s.at, s.best);
        }
    }
    gy_assignment_free(&s.at);
    return done;
}
