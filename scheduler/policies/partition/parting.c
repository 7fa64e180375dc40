/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/partition/parting.h"

#include "scheduler/plan/planning.h"
#include <string.h>

__extension__ typedef unsigned __int128 wide;

#define PASSES   6
#define CLIMBED  128  /* nodes of a level, at most, for which all moves are looked at for each, */
#define LOOKS    2048 /* and nodes x devices */
#define PATIENCE 32   /* moves for the worse in a row */
#define SEEDS    4
#define FIRM     4  /* work beyond a share holds up all devices, a transfer two; and transfers go on beside work */
#define FULL     16 /* log2 of the units that a byte beyond the room of a memory costs */
#define GROWN    64 /* nodes a device that growing, which is quadratic, is good for */

bool gy_parting_init(gy_parting *x, const gy_levels *levels, uint32_t memories)
{
    size_t n = levels->devices, bands = levels->bands;
    *x = (gy_parting){ .levels = levels, .devices = levels->devices, .memories = memories };
    x->memory = gy_calloc(n, sizeof *x->memory);
    x->share = gy_calloc(n, sizeof *x->share);
    x->distance = gy_calloc(n * n, sizeof *x->distance);
    x->limit = gy_calloc(n * bands, sizeof *x->limit);
    x->room = gy_calloc(memories, sizeof *x->room);
    x->device = gy_calloc((size_t)levels->at.at[0].nodes + 1, sizeof *x->device);
    x->load = gy_calloc(n * bands, sizeof *x->load);
    x->held = gy_calloc(memories, sizeof *x->held);
    x->cut = gy_calloc(n, sizeof *x->cut);
    x->cut_to = gy_calloc(n, sizeof *x->cut_to);
    for (uint32_t m = 0; x->room && m < memories; m++)
        x->room[m] = INT64_MAX;
    return x->memory && x->share && x->distance && x->limit && x->room && x->device && x->load && x->held && x->cut &&
           x->cut_to;
}

void gy_parting_free(gy_parting *x)
{
    gy_free(x->memory);
    gy_free(x->share);
    gy_free(x->distance);
    gy_free(x->limit);
    gy_free(x->room);
    gy_free(x->device);
    gy_free(x->load);
    gy_free(x->held);
    gy_free(x->cut);
    gy_free(x->cut_to);
}

void gy_parting_set_limits(gy_parting *x)
{
    const gy_level *l = &x->levels->at.at[0];
    uint32_t bands = x->levels->bands;
    memset(x->limit, 0, (size_t)x->devices * bands * sizeof *x->limit);
    for (size_t i = 0; i < l->slice.count; i++)
        x->limit[l->slice.at[i].band] += l->slice.at[i].work;
    for (uint32_t d = x->devices; d-- > 0;) /* the first row holds all work until it is its turn */
        for (uint32_t b = 0; b < bands; b++)
            x->limit[(size_t)d * bands + b] =
                (gy_ticks)((wide)(uint64_t)x->limit[b] * x->share[d] / GY_SHARES * 101 / 100);
}

static bool is_allowed(const gy_parting *x, const gy_level *l, uint32_t node, uint32_t d)
{
    return x->levels->allowed.at[(size_t)l->kind[node] * x->devices + d];
}

static bool may_go(const gy_parting *x, const gy_level *l, uint32_t node, uint32_t d)
{
    return x->share[d] && is_allowed(x, l, node, d);
}

/* ---- loads ---- */

static void add_load(gy_parting *x, const gy_level *l, uint32_t node, uint32_t d, gy_ticks sign)
{
    uint32_t bands = x->levels->bands;
    for (size_t i = l->slice_first[node]; i < l->slice_first[node + 1]; i++)
        x->load[(size_t)d * bands + l->slice.at[i].band] += sign * l->slice.at[i].work;
    x->held[x->memory[d]] += sign * l->bytes[node];
}

static void count_loads(gy_parting *x, const gy_level *l, const uint32_t *device)
{
    memset(x->load, 0, (size_t)x->devices * x->levels->bands * sizeof *x->load);
    memset(x->held, 0, x->memories * sizeof *x->held);
    for (uint32_t u = 0; u < l->nodes; u++)
        add_load(x, l, u, device[u], 1);
}

static gy_ticks above(gy_ticks load, gy_ticks limit)
{
    return load > limit ? load - limit : 0;
}

static gy_ticks cost_of_bytes(int64_t bytes)
{
    return bytes < GY_TICKS_MAX >> (FULL + 4) ? bytes << FULL : GY_TICKS_MAX >> 4;
}

/* The cost of the excess that the node adds to a device that does not have it yet. */
static gy_ticks excess_with(const gy_parting *x, const gy_level *l, uint32_t node, uint32_t d)
{
    uint32_t bands = x->levels->bands;
    gy_ticks sum = 0;
    for (size_t i = l->slice_first[node]; i < l->slice_first[node + 1]; i++) {
        size_t at = (size_t)d * bands + l->slice.at[i].band;
        sum += above(x->load[at] + l->slice.at[i].work, x->limit[at]) - above(x->load[at], x->limit[at]);
    }
    int64_t held = x->held[x->memory[d]], room = x->room[x->memory[d]];
    return sum * FIRM * x->devices + cost_of_bytes(above(held + l->bytes[node], room) - above(held, room));
}

/* ---- ties ---- */

/* Per device: ties of the node to what is there. A node is tied to few devices of many. */
static void gather(gy_parting *x, const gy_level *l, uint32_t node, const uint32_t *device)
{
    for (uint32_t i = 0; i < x->cuts; i++)
        x->cut[x->cut_to[i]] = 0;
    x->cuts = 0;
    for (size_t i = l->first[node]; i < l->first[node + 1]; i++) {
        uint32_t d = device[l->tie.at[i].to];
        if (d == GY_NONE || !l->tie.at[i].cost)
            continue;
        if (!x->cut[d])
            x->cut_to[x->cuts++] = d;
        x->cut[d] += l->tie.at[i].cost;
    }
}

static gy_ticks cut_at(const gy_parting *x, uint32_t d)
{
    const uint32_t *distance = &x->distance[(size_t)d * x->devices];
    gy_ticks sum = 0;
    for (uint32_t i = 0; i < x->cuts; i++)
        sum += x->cut[x->cut_to[i]] / 256 * distance[x->cut_to[i]];
    return sum;
}

gy_ticks gy_parting_cost(gy_parting *x, const gy_level *l, const uint32_t *device)
{
    gy_ticks sum = 0;
    count_loads(x, l, device);
    for (uint32_t u = 0; u < l->nodes; u++) {
        gather(x, l, u, device);
        sum += cut_at(x, device[u]);
    }
    sum /= 2;
    for (size_t i = 0; i < (size_t)x->devices * x->levels->bands; i++)
        sum += above(x->load[i], x->limit[i]) * FIRM * x->devices;
    for (uint32_t m = 0; m < x->memories; m++)
        sum += cost_of_bytes(above(x->held[m], x->room[m]));
    return sum;
}

/* ---- moving ---- */

/* The other device where the node costs least, or GY_NONE; *gain: how much less than here. Unless it `must` go, only
 * where that is less. */
static uint32_t look_around(gy_parting *x, const gy_level *l, uint32_t node, const uint32_t *device, bool must,
                            gy_ticks *gain)
{
    uint32_t best = GY_NONE, at = device[node];
    gather(x, l, node, device);
    add_load(x, l, node, at, -1);
    gy_ticks here = cut_at(x, at) + excess_with(x, l, node, at), least = must ? INT64_MAX : here;
    for (uint32_t d = 0; d < x->devices; d++) {
        if (d == at || !may_go(x, l, node, d))
            continue;
        gy_ticks cost = cut_at(x, d);
        cost += cost < least ? excess_with(x, l, node, d) : 0;
        if (cost < least) {
            least = cost;
            best = d;
        }
    }
    add_load(x, l, node, at, 1);
    *gain = here - least;
    return best;
}

static void put(gy_parting *x, const gy_level *l, uint32_t node, uint32_t *device, uint32_t to)
{
    add_load(x, l, node, device[node], -1);
    add_load(x, l, node, to, 1);
    device[node] = to;
}

static bool move(gy_parting *x, const gy_level *l, uint32_t node, uint32_t *device)
{
    gy_ticks gain;
    uint32_t to = look_around(x, l, node, device, false, &gain);
    if (to != GY_NONE)
        put(x, l, node, device, to);
    return to != GY_NONE;
}

static void slide(gy_parting *x, const gy_level *l, uint32_t *device)
{
    count_loads(x, l, device);
    for (int pass = 0; pass < PASSES; pass++) {
        uint32_t moved = 0;
        for (uint32_t u = 0; u < l->nodes; u++)
            moved += move(x, l, u, device);
        if (moved <= l->nodes / 256)
            break;
    }
}

/* ---- climbing out of holes ---- */

typedef struct step {
    uint32_t node, from;
} step;

/* The best of all moves of nodes that have not moved yet, even if it is for the worse. */
static bool best_step(gy_parting *x, const gy_level *l, const uint8_t *moved, const uint32_t *device, step *best,
                      uint32_t *to, gy_ticks *gain)
{
    best->node = GY_NONE;
    for (uint32_t u = 0; u < l->nodes; u++) {
        gy_ticks g = 0;
        uint32_t d = moved[u] ? GY_NONE : look_around(x, l, u, device, true, &g);
        if (d == GY_NONE || (best->node != GY_NONE && g <= *gain))
            continue;
        *best = (step){ u, device[u] };
        *to = d;
        *gain = g;
    }
    return best->node != GY_NONE;
}

/* Moves every node at most once, then takes back all moves after the best state on the way. Was it a better one? */
static bool climb_once(gy_parting *x, const gy_level *l, uint32_t *device, uint8_t *moved, step *steps)
{
    uint32_t count = 0, kept = 0, to = 0;
    gy_ticks sum = 0, most = 0, gain = 0;
    memset(moved, 0, l->nodes);
    while (count < kept + PATIENCE && best_step(x, l, moved, device, &steps[count], &to, &gain)) {
        uint32_t node = steps[count++].node;
        put(x, l, node, device, to);
        moved[node] = 1;
        sum += gain;
        if (sum > most) {
            most = sum;
            kept = count;
        }
    }
    while (count-- > kept)
        put(x, l, steps[count].node, device, steps[count].from);
    return kept;
}

/* C. M. Fiduccia, R. M. Mattheyses, A Linear-Time Heuristic for Improving Network Partitions, DAC 1982; with a look at
 * all moves for each, since there are few. */
static bool refine(gy_parting *x, const gy_level *l, uint32_t *device)
{
    slide(x, l, device);
    if (l->nodes > CLIMBED || (uint64_t)l->nodes * x->devices > LOOKS)
        return true;
    uint8_t *moved = gy_calloc((size_t)l->nodes + 1, 1);
    step *steps = gy_calloc((size_t)l->nodes + 1, sizeof *steps);
    bool done = moved && steps;
    for (int pass = 0; done && pass < PASSES && gy_planning_step(x->planning) && climb_once(x, l, device, moved, steps);
         pass++)
        continue;
    gy_free(moved);
    gy_free(steps);
    return done;
}

/* ---- the first division ---- */

/* The node that is most tied to what has begun, the lowest one of equals; `tied` -1: it is taken. */
static uint32_t next_node(const gy_parting *x, const gy_level *l, const gy_ticks *tied, uint32_t d)
{
    uint32_t best = GY_NONE;
    for (uint32_t u = 0; u < l->nodes; u++)
        if (tied[u] >= 0 && may_go(x, l, u, d) && (best == GY_NONE || tied[u] > tied[best]))
            best = u;
    return best;
}

static void take(const gy_level *l, uint32_t node, gy_ticks *tied)
{
    tied[node] = -1;
    for (size_t i = l->first[node]; i < l->first[node + 1]; i++)
        if (tied[l->tie.at[i].to] >= 0)
            tied[l->tie.at[i].to] += l->tie.at[i].cost;
}

static void forget_ties(const gy_level *l, gy_ticks *tied)
{
    for (uint32_t u = 0; u < l->nodes; u++)
        tied[u] = tied[u] < 0 ? -1 : 0;
}

/* Gives each node that is left the first device that it may go to: one with a share, if there is one. */
static void place_rest(const gy_parting *x, const gy_level *l, uint32_t *device)
{
    for (uint32_t u = 0; u < l->nodes; u++)
        for (uint32_t d = 0; d < x->devices; d++)
            if (device[u] == GY_NONE ? is_allowed(x, l, u, d) : !x->share[device[u]] && may_go(x, l, u, d))
                device[u] = d;
}

static void grow(const gy_parting *x, const gy_level *l, uint32_t seed, gy_ticks *tied, uint32_t *device)
{
    gy_ticks total = 0;
    for (uint32_t u = 0; u < l->nodes; u++) {
        total += l->work[u];
        tied[u] = 0;
        device[u] = GY_NONE;
    }
    for (uint32_t d = 0; d < x->devices; d++) {
        gy_ticks share = total / GY_SHARES * x->share[d], has = 0;
        forget_ties(l, tied);
        while (x->share[d] && has < share) {
            uint32_t u = seed != GY_NONE && may_go(x, l, seed, d) ? seed : next_node(x, l, tied, d);
            seed = GY_NONE;
            if (u == GY_NONE || (has && has + l->work[u] / 2 > share))
                break;
            take(l, u, tied);
            device[u] = d;
            has += l->work[u];
        }
    }
    place_rest(x, l, device);
}

/* Too many nodes to grow from: each, by its number, where it costs least beside those before it. */
static void spread(gy_parting *x, const gy_level *l, uint32_t *device)
{
    memset(x->load, 0, (size_t)x->devices * x->levels->bands * sizeof *x->load);
    memset(x->held, 0, x->memories * sizeof *x->held);
    memset(device, 0xff, l->nodes * sizeof *device);
    place_rest(x, l, device);
    for (uint32_t u = 0; u < l->nodes && gy_planning_step(x->planning); u++) {
        add_load(x, l, u, device[u], 1);
        (void)move(x, l, u, device);
    }
}

/* ---- who is who ---- */

/* Ties between each pair of devices, and with which others each has any. */
typedef struct between {
    uint32_t devices;
    gy_ticks *tied;   /* devices x devices */
    uint32_t *to;     /* devices x devices; of each row, the first `others` count */
    uint32_t *others; /* per device */
} between;

static void list_others(between *b, uint32_t d)
{
    b->others[d] = 0;
    for (uint32_t e = 0; e < b->devices; e++)
        if (b->tied[(size_t)d * b->devices + e])
            b->to[(size_t)d * b->devices + b->others[d]++] = e;
}

/* The cost of the ties of device `of` if it stood in the place of `at`, but for those to `other`. */
static gy_ticks cost_at(const gy_parting *x, const between *b, uint32_t of, uint32_t at, uint32_t other)
{
    size_t n = x->devices;
    gy_ticks sum = 0;
    for (uint32_t i = 0; i < b->others[of]; i++) {
        uint32_t e = b->to[of * n + i];
        if (e != of && e != other)
            sum += b->tied[of * n + e] / 512 * (x->distance[at * n + e] + x->distance[e * n + at]);
    }
    return sum;
}

static bool is_better_swapped(const gy_parting *x, const between *b, uint32_t d, uint32_t e)
{
    return (b->others[d] || b->others[e]) &&
           cost_at(x, b, d, e, e) + cost_at(x, b, e, d, d) < cost_at(x, b, d, d, e) + cost_at(x, b, e, e, d);
}

static void swap(gy_ticks *a, gy_ticks *b)
{
    gy_ticks t = *a;
    *a = *b;
    *b = t;
}

static void swap_rows(between *b, uint32_t d, uint32_t e)
{
    size_t n = b->devices;
    for (size_t k = 0; k < n; k++)
        swap(&b->tied[d * n + k], &b->tied[e * n + k]);
    for (size_t k = 0; k < n; k++)
        swap(&b->tied[k * n + d], &b->tied[k * n + e]);
    for (uint32_t k = 0; k < n; k++)
        if (k == d || k == e || b->tied[k * n + d] || b->tied[k * n + e])
            list_others(b, k);
}

/* Devices of one speed change places while that helps; only where every node may go everywhere. `now`: what stands for
 * device d. */
static void change_places(const gy_parting *x, between *ties, uint32_t *now)
{
    for (uint32_t d = 0; d < x->devices; d++)
        list_others(ties, d);
    for (bool better = true; better;) {
        better = false;
        for (uint32_t a = 0; a < x->devices && gy_planning_step(x->planning); a++)
            for (uint32_t b = a + 1; b < x->devices; b++) {
                if (!x->share[a] || x->share[a] != x->share[b] || !is_better_swapped(x, ties, a, b))
                    continue;
                swap_rows(ties, a, b);
                uint32_t t = now[a];
                now[a] = now[b];
                now[b] = t;
                better = true;
            }
    }
}

static bool use_fast_routes(gy_parting *x, const gy_level *l, uint32_t *device)
{
    uint32_t n = x->devices;
    between ties = { .devices = n, .tied = gy_calloc((size_t)n * n, sizeof *ties.tied) };
    ties.to = gy_calloc((size_t)n * n, sizeof *ties.to);
    ties.others = gy_calloc(n, sizeof *ties.others);
    uint32_t *now = gy_calloc(2 * (size_t)n, sizeof *now);
    bool done = ties.tied && ties.to && ties.others && now;
    if (done && x->levels->kinds == 1) {
        uint32_t *place = now + n;
        for (uint32_t u = 0; u < l->nodes; u++)
            for (size_t i = l->first[u]; i < l->first[u + 1]; i++)
                ties.tied[(size_t)device[u] * n + device[l->tie.at[i].to]] += l->tie.at[i].cost;
        for (uint32_t d = 0; d < n; d++)
            now[d] = d;
        change_places(x, &ties, now);
        for (uint32_t d = 0; d < n; d++)
            place[now[d]] = d;
        for (uint32_t u = 0; u < l->nodes; u++)
            device[u] = place[device[u]];
    }
    gy_free(ties.tied);
    gy_free(ties.to);
    gy_free(ties.others);
    gy_free(now);
    return done;
}

/* ---- all levels ---- */

static bool begin(gy_parting *x, const gy_level *l, uint32_t *device)
{
    size_t n = (size_t)l->nodes + 1;
    gy_ticks *tied = gy_calloc(n, sizeof *tied), least = 0;
    uint32_t *now = gy_calloc(n, sizeof *now), seeds = l->nodes / GROWN > x->devices ? 1 : SEEDS;
    bool done = tied && now;
    for (uint32_t i = 0; i < seeds && done; i++) {
        if (seeds == 1)
            spread(x, l, now);
        else
            grow(x, l, (uint32_t)((uint64_t)l->nodes * i / seeds), tied, now);
        done = refine(x, l, now) && use_fast_routes(x, l, now);
        gy_ticks cost = gy_parting_cost(x, l, now);
        if (i == 0 || cost < least) {
            least = cost;
            memcpy(device, now, l->nodes * sizeof *device);
        }
    }
    gy_free(tied);
    gy_free(now);
    return done;
}

bool gy_parting_run(gy_parting *x)
{
    size_t i = x->levels->at.count - 1;
    uint32_t nodes = x->levels->at.at[0].nodes, *coarse = gy_calloc((size_t)nodes + 1, sizeof *coarse);
    bool done = coarse && begin(x, &x->levels->at.at[i], x->device);
    while (done && i-- > 0) {
        const gy_level *l = &x->levels->at.at[i];
        memcpy(coarse, x->device, l[1].nodes * sizeof *coarse);
        for (uint32_t u = 0; u < l->nodes; u++)
            x->device[u] = coarse[l->up[u]];
        done = i < x->finest || refine(x, l, x->device);
    }
    gy_free(coarse);
    return done;
}
