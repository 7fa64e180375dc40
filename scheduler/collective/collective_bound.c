/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Lower bounds of every algorithm. Bandwidth: bytes that must cross a cut of the ranks, over what can cross it in a
 * second. Latency: some bytes have to get from one rank to another, however quick each hop (Z. Cai et al., Synthesizing
 * optimal collective algorithms, PPoPP 2021, has both for the DGX-1: 7/6 rounds a chunk, 2 steps).
 *
 * A cut has ranks inside and outside; all sets of up to 8 ranks are looked at, of more ranks each one alone, all but
 * it, and neighbouring halves. What can cross is bounded from above by any cover of the hops that cross, by resources
 * and by hops themselves (the easy half of max-flow min-cut); a greedy cover is good enough, as it is exact where each
 * hop has a resource of its own, and where each rank has a port.
 *
 * Reductions, per byte of the result: before any rank has it, all others must have sent once (p-1 transfers), and after
 * that all others that want it must receive once more (P. Patarasuk and X. Yuan, J. Parallel Distrib. Comput. 69,
 * 2009). So the bytes that all ranks receive together are bounded too, and with them their ports added up.
 */
#include "scheduler/collective/collective.h"

#define MOST_RANKS 64 /* a set is 64 bits; beyond that only the sum over all ranks and latency are looked at */

typedef struct hop {
    const gy_route *route;
    int64_t rate; /* bytes a second at the very best, without resources */
    bool covered;
} hop;

typedef struct cuts {
    const gantry_machine *m;
    const gy_group *g;
    GY_VEC(hop) hop;
    uint8_t *inside; /* per memory, of the cut at hand */
    double *gain;    /* per resource: what taking it into the cover saves */
    gy_collective_limit *limit;
} cuts;

/* ---- hops ---- */

/* The best of bytes over time; that is at a point, or far beyond the last. */
static int64_t best_rate(const gy_route *r)
{
    double best = 0;
    for (uint32_t i = 0; i < r->points; i++) {
        double last =
            i ? (double)(r->point[i].bytes - r->point[i - 1].bytes) /
                    (double)(r->point[i].time - r->point[i - 1].time > 0 ? r->point[i].time - r->point[i - 1].time : 1)
              : 0;
        double here = r->point[i].time > 0 ? (double)r->point[i].bytes / (double)r->point[i].time : 0;
        if (r->point[i].time <= 0 && r->point[i].bytes > 0)
            return GY_RATE_MAX;
        best = here > best ? here : best;
        best = i + 1 == r->points && last > best ? last : best;
    }
    best *= 1e12; /* per second */
    return best < (double)GY_RATE_MAX ? (int64_t)best + 1 : GY_RATE_MAX;
}

/* Each two ranks send one thing at a time, over their route: a hop that several relays share carries that many. */
static bool add_hop(cuts *c, const gy_route *r)
{
    hop new = { r, best_rate(r), false };
    for (size_t i = 0; i < c->hop.count; i++)
        if (c->hop.at[i].route == r) {
            c->hop.at[i].rate += new.rate;
            return true;
        }
    return gy_vec_push(&c->hop, new);
}

static bool find_hops(cuts *c)
{
    bool done = true;
    for (uint32_t i = 0; i < c->g->ranks && done; i++)
        for (uint32_t k = 0; k < c->g->ranks && done; k++) {
            const gy_route *r = gy_machine_route(c->m, c->g->memory[i], c->g->memory[k]);
            if (i == k || r->kind == GY_ROUTE_NONE)
                continue;
            done = r->kind == GY_ROUTE_DIRECT ? add_hop(c, r) : add_hop(c, r->hop[0]) && add_hop(c, r->hop[1]);
        }
    return done;
}

/* ---- what can cross ---- */

static bool crosses(const cuts *c, const hop *h, bool in, bool out)
{
    bool from = c->inside[h->route->from], to = c->inside[h->route->to];
    return (in && !from && to) || (out && from && !to);
}

static double take_best(cuts *c, bool in, bool out, double rate)
{
    uint32_t best = GY_MACHINE_NONE;
    for (uint32_t k = 0; k < c->m->resources; k++)
        c->gain[k] = -(double)c->m->resource[k].rate;
    for (size_t i = 0; i < c->hop.count; i++) {
        const hop *h = &c->hop.at[i];
        for (uint32_t k = 0; k < h->route->resources && !h->covered && crosses(c, h, in, out); k++)
            c->gain[h->route->resource[k]] += (double)h->rate;
    }
    for (uint32_t k = 0; k < c->m->resources; k++)
        if (c->gain[k] > 0 && (best == GY_MACHINE_NONE || c->gain[k] > c->gain[best]))
            best = k;
    if (best == GY_MACHINE_NONE)
        return rate;
    for (size_t i = 0; i < c->hop.count; i++)
        for (uint32_t k = 0; k < c->hop.at[i].route->resources; k++)
            c->hop.at[i].covered = c->hop.at[i].covered || c->hop.at[i].route->resource[k] == best;
    return rate - c->gain[best];
}

/* Bytes a second into the inner side, out of it, or both ways together. */
static double capacity(cuts *c, bool in, bool out)
{
    double rate = 0, before;
    for (size_t i = 0; i < c->hop.count; i++) {
        c->hop.at[i].covered = false;
        rate += crosses(c, &c->hop.at[i], in, out) ? (double)c->hop.at[i].rate : 0;
    }
    do {
        before = rate;
        rate = c->m->contention ? take_best(c, in, out, rate) : rate;
    } while (rate < before);
    return rate;
}

/* ---- what must cross ---- */

static bool has(uint64_t set, uint32_t rank)
{
    return set >> rank & 1;
}

/* Bytes that must get to the ranks of the set from others. */
static int64_t demand(const gy_group *g, uint64_t set)
{
    int64_t sum = 0, outside = 0;
    bool takes = false, gives = false;
    for (uint32_t i = 0; i < g->ranks; i++) {
        takes = takes || (has(set, i) && g->takes[i] && !(g->kind == GANTRY_BROADCAST && i == g->root));
        gives = gives || (!has(set, i) && g->gives[i]);
        outside += has(set, i) ? 0 : g->part[i];
    }
    switch (g->kind) {
    case GANTRY_BROADCAST:
    case GANTRY_REDUCE:
    case GANTRY_ALL_REDUCE:
        return takes && gives ? g->bytes : 0; /* once is enough */
    case GANTRY_ALL_GATHER:
        return takes ? outside : 0;
    case GANTRY_REDUCE_SCATTER:
        for (uint32_t i = 0; i < g->ranks; i++)
            sum += has(set, i) && gives ? g->part[i] : 0;
        return sum;
    default:
        break;
    }
    for (uint32_t from = 0; from < g->ranks; from++)
        for (uint32_t to = 0; to < g->ranks; to++)
            sum += !has(set, from) && has(set, to) ? gy_group_need(g, from, to) : 0;
    return sum;
}

/* Bytes that all ranks together must receive. */
static int64_t receive_in_all(const gy_group *g)
{
    int64_t gives = 0, takes = 0, sum = 0;
    for (uint32_t i = 0; i < g->ranks; i++) {
        gives += g->gives[i];
        takes += g->takes[i];
    }
    if (g->reduce && gives)
        return g->bytes * (gives - 1 + (g->kind == GANTRY_ALL_REDUCE && takes > 1 ? takes - 1 : 0));
    for (uint32_t from = 0; from < g->ranks; from++)
        for (uint32_t to = 0; to < g->ranks; to++)
            sum += gy_group_need(g, from, to);
    return sum;
}

/* ---- cuts ---- */

static void offer(cuts *c, int64_t bytes, double rate, uint64_t set)
{
    gy_ticks time;
    if (bytes <= 0 || rate <= 0 || rate >= (double)GY_RATE_MAX) /* so fast is no time at all */
        return;
    int64_t whole = (int64_t)rate + 1;
    time = gy_ticks_of((uint64_t)bytes, whole);
    if (time <= c->limit->bandwidth)
        return;
    c->limit->bandwidth = time;
    c->limit->bytes = bytes;
    c->limit->rate = whole;
    c->limit->inside = set;
}

static void look_at(cuts *c, uint64_t set)
{
    uint64_t all = c->g->ranks == 64 ? UINT64_MAX : (UINT64_C(1) << c->g->ranks) - 1;
    int64_t in = demand(c->g, set), out = demand(c->g, all & ~set);
    for (uint32_t i = 0; i < c->m->memories; i++)
        c->inside[i] = 0;
    for (uint32_t i = 0; i < c->g->ranks; i++)
        c->inside[c->g->memory[i]] = has(set, i);
    if (in)
        offer(c, in, capacity(c, true, false), set);
    if (in && out)
        offer(c, in + out, capacity(c, true, true), set);
}

static void look_at_sets(cuts *c)
{
    uint32_t ranks = c->g->ranks;
    uint64_t all = ranks == 64 ? UINT64_MAX : (UINT64_C(1) << ranks) - 1;
    for (uint64_t set = 1; ranks <= 8 && set < all; set++)
        look_at(c, set);
    for (uint32_t i = 0; ranks > 8 && i < ranks; i++) {
        look_at(c, UINT64_C(1) << i);
        look_at(c, all & ~(UINT64_C(1) << i));
        uint64_t half = 0;
        for (uint32_t k = 0; k < ranks / 2; k++)
            half |= UINT64_C(1) << (i + k) % ranks;
        look_at(c, half);
    }
}

/* Each rank's own way in, all added up. */
static void look_at_sum(cuts *c)
{
    double rate = 0;
    for (uint32_t i = 0; i < c->g->ranks; i++) {
        for (uint32_t k = 0; k < c->m->memories; k++)
            c->inside[k] = 0;
        c->inside[c->g->memory[i]] = 1;
        rate += capacity(c, true, false);
    }
    offer(c, receive_in_all(c->g), rate, 0);
}

/* ---- latency ---- */

/* The quickest ways among the ranks by any number of hops, for every two; Floyd and Warshall's. */
static bool find_latency(cuts *c)
{
    const gy_group *g = c->g;
    uint32_t n = c->m->memories;
    gy_ticks *time = gy_calloc((size_t)n * n, sizeof *time);
    uint32_t *steps = gy_calloc((size_t)n * n, sizeof *steps);
    for (size_t i = 0; time && steps && i < (size_t)n * n; i++) {
        time[i] = GY_TICKS_MAX;
        steps[i] = UINT32_MAX / 4;
    }
    for (size_t i = 0; time && steps && i < c->hop.count; i++) {
        size_t at = (size_t)c->hop.at[i].route->from * n + c->hop.at[i].route->to;
        time[at] = gy_route_latency(c->hop.at[i].route);
        steps[at] = 1;
    }
    for (uint32_t k = 0; time && steps && k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) {
                gy_ticks t = gy_ticks_sum(time[(size_t)i * n + k], time[(size_t)k * n + j]);
                uint32_t s = steps[(size_t)i * n + k] + steps[(size_t)k * n + j];
                time[(size_t)i * n + j] = t < time[(size_t)i * n + j] ? t : time[(size_t)i * n + j];
                steps[(size_t)i * n + j] = s < steps[(size_t)i * n + j] ? s : steps[(size_t)i * n + j];
            }
    for (uint32_t i = 0; time && steps && i < g->ranks; i++)
        for (uint32_t k = 0; k < g->ranks; k++) {
            size_t at = (size_t)g->memory[i] * n + g->memory[k];
            if (!gy_group_need(g, i, k))
                continue;
            c->limit->latency = time[at] > c->limit->latency ? time[at] : c->limit->latency;
            c->limit->steps = steps[at] > c->limit->steps ? steps[at] : c->limit->steps;
        }
    bool done = time && steps;
    gy_free(time);
    gy_free(steps);
    return done;
}

bool gy_collective_bound(gy_collective_limit *limit, const gantry_machine *m, const gy_group *g)
{
    *limit = (gy_collective_limit){ 0 };
    cuts c = { .m = m, .g = g, .limit = limit };
    c.inside = gy_calloc(m->memories, 1);
    c.gain = gy_calloc((size_t)m->resources + 1, sizeof *c.gain);
    bool done = c.inside && c.gain && find_hops(&c) && find_latency(&c);
    if (done && g->ranks > 1) {
        look_at_sum(&c);
        if (g->ranks <= MOST_RANKS)
            look_at_sets(&c);
    }
    limit->time = limit->latency > limit->bandwidth ? limit->latency : limit->bandwidth;
    gy_free(c.inside);
    gy_free(c.gain);
    gy_vec_free(&c.hop);
    return done;
}
