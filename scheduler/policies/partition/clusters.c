/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of a level become one: see levels.h. Visits go by number and ties to the lower one, so that regular
 * graphs get regular clusters. */
#include "scheduler/policies/partition/levels.h"

#define CROWD 16 /* neighbours of a node that has more are not compared with each other */

/* ---- trees ---- */

/* Follows the chain of representatives, and shortens it. */
static uint32_t root_of(uint32_t *up, uint32_t u)
{
    while (up[u] != u)
        u = up[u] = up[up[u]];
    return u;
}

static bool trees(const gy_level *l, const gy_grain *grain, uint32_t *up, bool in)
{
    gy_ticks *work = gy_calloc((size_t)l->nodes + 1, sizeof *work);
    if (!work)
        return false;
    for (uint32_t u = 0; u < l->nodes; u++) {
        up[u] = u;
        work[u] = l->work[u];
    }
    for (uint32_t u = 0; u < l->nodes; u++) {
        size_t first = in ? l->after[u] : l->first[u], last = in ? l->first[u + 1] : l->after[u];
        if (last - first != 1 || l->kind[l->tie.at[first].to] != l->kind[u])
            continue;
        uint32_t root = root_of(up, l->tie.at[first].to);
        if (work[u] + work[root] > grain->most)
            continue;
        work[root] += work[u];
        up[u] = root;
    }
    for (uint32_t u = 0; u < l->nodes; u++)
        up[u] = root_of(up, u);
    gy_free(work);
    return true;
}

bool gy_cluster_in_trees(const gy_level *l, const gy_grain *grain, uint32_t *up)
{
    return trees(l, grain, up, true);
}

bool gy_cluster_out_trees(const gy_level *l, const gy_grain *grain, uint32_t *up)
{
    return trees(l, grain, up, false);
}

/* ---- siblings ---- */

typedef struct siblings {
    const gy_level *l;
    const gy_grain *grain;
    uint32_t *up, *depth;
    gy_ticks *score;    /* per node: what it shares with the current one */
    gy_ticks *at_depth; /* work */
    GY_VEC(uint32_t) met;
} siblings;

static bool find_depths(siblings *s)
{
    const gy_level *l = s->l;
    uint32_t count, *order = gy_calloc((size_t)l->nodes + 1, sizeof *order);
    bool done = order && gy_level_sort(l, order, &count);
    for (uint32_t k = 0; done && k < count; k++) {
        uint32_t u = order[k];
        for (size_t i = l->first[u]; i < l->after[u]; i++)
            if (s->depth[l->tie.at[i].to] >= s->depth[u])
                s->depth[u] = s->depth[l->tie.at[i].to] + 1;
        s->at_depth[s->depth[u]] += l->work[u];
    }
    gy_free(order);
    return done;
}

/* Nodes that hang on `x` by a tie of the same direction as `u` does. */
static bool meet(siblings *s, uint32_t u, const gy_tie *by, bool successors)
{
    const gy_level *l = s->l;
    uint32_t x = by->to;
    size_t first = successors ? l->after[x] : l->first[x], last = successors ? l->first[x + 1] : l->after[x];
    if (last - first > CROWD)
        return true;
    for (size_t i = first; i < last; i++) {
        const gy_tie *t = &l->tie.at[i];
        if (t->to == u || s->depth[t->to] != s->depth[u] || s->up[t->to] != t->to || l->kind[t->to] != l->kind[u])
            continue;
        if (!s->score[t->to] && !gy_vec_push(&s->met, t->to))
            return false;
        s->score[t->to] += 1 + (t->cost < by->cost ? t->cost : by->cost);
    }
    return true;
}

/* The one to join, or GY_NONE; forgets the scores. */
static uint32_t best_met(siblings *s, uint32_t u, const uint8_t *taken, gy_ticks most)
{
    uint32_t best = GY_NONE;
    for (size_t i = 0; i < s->met.count; i++) {
        uint32_t v = s->met.at[i];
        bool fits = !taken[v] && s->l->work[u] + s->l->work[v] <= most;
        if (fits && (best == GY_NONE || s->score[v] > s->score[best] || (v < best && s->score[v] == s->score[best])))
            best = v;
    }
    for (size_t i = 0; i < s->met.count; i++)
        s->score[s->met.at[i]] = 0;
    s->met.count = 0;
    return best;
}

static bool pair_up(siblings *s, uint8_t *taken)
{
    const gy_level *l = s->l;
    for (uint32_t u = 0; u < l->nodes; u++) {
        if (taken[u])
            continue;
        for (size_t i = l->first[u]; i < l->first[u + 1]; i++)
            if (!meet(s, u, &l->tie.at[i], i < l->after[u]))
                return false;
        /* A depth must still give every device something to do. */
        gy_ticks share = s->at_depth[s->depth[u]] / s->grain->per_depth;
        gy_ticks most = share < s->grain->most ? share : s->grain->most;
        uint32_t v = best_met(s, u, taken, most);
        if (v == GY_NONE)
            continue;
        taken[u] = taken[v] = 1;
        s->up[v] = u;
    }
    return true;
}

bool gy_cluster_siblings(const gy_level *l, const gy_grain *grain, uint32_t *up)
{
    size_t n = (size_t)l->nodes + 1;
    siblings s = { .l = l, .grain = grain, .up = up };
    uint8_t *taken = gy_calloc(n, sizeof *taken);
    s.depth = gy_calloc(n, sizeof *s.depth);
    s.score = gy_calloc(n, sizeof *s.score);
    s.at_depth = gy_calloc(n, sizeof *s.at_depth);
    for (uint32_t u = 0; u < l->nodes; u++)
        up[u] = u;
    bool done = taken && s.depth && s.score && s.at_depth && find_depths(&s) && pair_up(&s, taken);
    gy_free(taken);
    gy_free(s.depth);
    gy_free(s.score);
    gy_free(s.at_depth);
    gy_vec_free(&s.met);
    return done;
}

/* ---- neighbours ---- */

/* Heavy-edge matching: G. Karypis, V. Kumar, A Fast and High Quality Multilevel Scheme for Partitioning Irregular
 * Graphs, SIAM J. Sci. Comput. 20(1), 1998. */
bool gy_cluster_neighbours(const gy_level *l, const gy_grain *grain, uint32_t *up)
{
    uint8_t *taken = gy_calloc((size_t)l->nodes + 1, sizeof *taken);
    if (!taken)
        return false;
    for (uint32_t u = 0; u < l->nodes; u++)
        up[u] = u;
    for (uint32_t u = 0; u < l->nodes; u++) {
        const gy_tie *best = NULL;
        for (size_t i = l->first[u]; i < l->first[u + 1] && !taken[u]; i++) {
            const gy_tie *t = &l->tie.at[i];
            if (t->cost && !taken[t->to] && l->kind[t->to] == l->kind[u] &&
                l->work[t->to] + l->work[u] <= grain->most &&
                (!best || t->cost > best->cost || (t->cost == best->cost && t->to < best->to)))
                best = t;
        }
        if (!best)
            continue;
        taken[u] = taken[best->to] = 1;
        up[best->to] = u;
    }
    gy_free(taken);
    return true;
}
