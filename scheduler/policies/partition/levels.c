/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/partition/levels.h"

#include <string.h>

static void free_level(gy_level *l)
{
    gy_free(l->first);
    gy_free(l->after);
    gy_vec_free(&l->tie);
    gy_free(l->work);
    gy_free(l->bytes);
    gy_free(l->kind);
    gy_free(l->slice_first);
    gy_vec_free(&l->slice);
    gy_free(l->up);
}

void gy_levels_free(gy_levels *l)
{
    for (size_t i = 0; i < l->at.count; i++)
        free_level(&l->at.at[i]);
    gy_vec_free(&l->at);
    gy_vec_free(&l->allowed);
    gy_vec_free(&l->shared);
}

bool gy_level_sort(const gy_level *l, uint32_t *order, uint32_t *count)
{
    uint32_t *waits = gy_calloc((size_t)l->nodes + 1, sizeof *waits), done = 0;
    *count = 0;
    if (!waits)
        return false;
    for (uint32_t u = 0; u < l->nodes; u++) {
        waits[u] = (uint32_t)(l->after[u] - l->first[u]);
        if (!waits[u])
            order[(*count)++] = u;
    }
    while (done < *count) {
        uint32_t u = order[done++];
        for (size_t i = l->after[u]; i < l->first[u + 1]; i++)
            if (--waits[l->tie.at[i].to] == 0)
                order[(*count)++] = l->tie.at[i].to;
    }
    gy_free(waits);
    return true;
}

/* ---- contraction ---- */

typedef struct merger {
    const gy_level *from;
    gy_level *to;
    uint32_t *member;     /* nodes of `from`, cluster after cluster */
    size_t *first_member; /* per cluster, one more */
    uint32_t *stamp;      /* per cluster: who has a tie to it */
    size_t *where;        /* that tie */
    size_t *band_where;   /* per band: the slice of the current cluster + 1, or 0 */
} merger;

/* From representatives to numbers, in the order of the lowest members. */
static uint32_t number(gy_level *l, uint32_t *number_of)
{
    uint32_t count = 0;
    memset(number_of, 0xff, l->nodes * sizeof *number_of);
    for (uint32_t u = 0; u < l->nodes; u++) {
        uint32_t *n = &number_of[l->up[u]];
        if (*n == GY_NONE)
            *n = count++;
    }
    for (uint32_t u = 0; u < l->nodes; u++)
        l->up[u] = number_of[l->up[u]];
    return count;
}

static void list_members(merger *m)
{
    const gy_level *l = m->from;
    for (uint32_t u = 0; u < l->nodes; u++)
        m->first_member[l->up[u] + 2]++;
    for (uint32_t c = 0; c < m->to->nodes; c++)
        m->first_member[c + 2] += m->first_member[c + 1];
    for (uint32_t u = 0; u < l->nodes; u++)
        m->member[m->first_member[l->up[u] + 1]++] = u;
}

static bool join_ties(merger *m, uint32_t cluster, bool successors)
{
    const gy_level *l = m->from;
    uint32_t stamp = 2 * cluster + successors + 1;
    for (size_t k = m->first_member[cluster]; k < m->first_member[cluster + 1]; k++) {
        uint32_t u = m->member[k];
        size_t first = successors ? l->after[u] : l->first[u], last = successors ? l->first[u + 1] : l->after[u];
        for (size_t i = first; i < last; i++) {
            gy_tie t = { l->up[l->tie.at[i].to], l->tie.at[i].cost };
            if (t.to == cluster)
                continue;
            if (m->stamp[t.to] == stamp) {
                m->to->tie.at[m->where[t.to]].cost += t.cost;
                continue;
            }
            m->stamp[t.to] = stamp;
            m->where[t.to] = m->to->tie.count;
            if (!gy_vec_push(&m->to->tie, t))
                return false;
        }
    }
    return true;
}

static bool join_slices(merger *m, uint32_t cluster)
{
    const gy_level *l = m->from;
    gy_level *to = m->to;
    size_t first = to->slice.count;
    for (size_t k = m->first_member[cluster]; k < m->first_member[cluster + 1]; k++) {
        uint32_t u = m->member[k];
        for (size_t i = l->slice_first[u]; i < l->slice_first[u + 1]; i++) {
            size_t *where = &m->band_where[l->slice.at[i].band];
            if (*where) {
                to->slice.at[*where - 1].work += l->slice.at[i].work;
                continue;
            }
            if (!gy_vec_push(&to->slice, l->slice.at[i]))
                return false;
            *where = to->slice.count;
        }
        to->work[cluster] += l->work[u];
        to->bytes[cluster] += l->bytes[u];
        to->kind[cluster] = l->kind[u];
    }
    for (size_t i = first; i < to->slice.count; i++)
        m->band_where[to->slice.at[i].band] = 0;
    return true;
}

static bool merge(merger *m)
{
    gy_level *to = m->to;
    bool done = gy_vec_reserve(&to->slice, m->from->slice_first[m->from->nodes]);
    for (uint32_t c = 0; c < to->nodes && done; c++) {
        to->first[c] = to->tie.count;
        done = join_ties(m, c, false);
        to->after[c] = to->tie.count;
        to->slice_first[c] = to->slice.count;
        done = done && join_ties(m, c, true) && join_slices(m, c);
    }
    to->first[to->nodes] = to->tie.count;
    to->slice_first[to->nodes] = to->slice.count;
    return done;
}

gy_level *gy_levels_add(gy_levels *levels, uint32_t nodes)
{
    size_t n = (size_t)nodes + 1;
    gy_level empty = { .nodes = nodes };
    if (!gy_vec_push(&levels->at, empty))
        return NULL;
    gy_level *l = gy_vec_last(&levels->at);
    l->first = gy_calloc(n, sizeof *l->first);
    l->after = gy_calloc(n, sizeof *l->after);
    l->work = gy_calloc(n, sizeof *l->work);
    l->bytes = gy_calloc(n, sizeof *l->bytes);
    l->kind = gy_calloc(n, sizeof *l->kind);
    l->slice_first = gy_calloc(n, sizeof *l->slice_first);
    l->up = gy_calloc(n, sizeof *l->up);
    bool done = l->first && l->after && l->work && l->bytes && l->kind && l->slice_first && l->up;
    return done ? l : NULL;
}

bool gy_levels_contract(gy_levels *l)
{
    merger m = { 0 };
    size_t n = (size_t)gy_vec_last(&l->at)->nodes + 2;
    m.member = gy_calloc(n, sizeof *m.member);
    m.first_member = gy_calloc(n, sizeof *m.first_member);
    m.stamp = gy_calloc(n, sizeof *m.stamp);
    m.where = gy_calloc(n, sizeof *m.where);
    m.band_where = gy_calloc((size_t)l->bands + 1, sizeof *m.band_where);
    bool done = m.member && m.first_member && m.stamp && m.where && m.band_where;
    if (done && (done = (m.to = gy_levels_add(l, number(gy_vec_last(&l->at), m.stamp))))) {
        m.from = m.to - 1; /* adding may have moved it */
        memset(m.stamp, 0, n * sizeof *m.stamp);
        list_members(&m);
        done = merge(&m);
    }
    gy_free(m.member);
    gy_free(m.first_member);
    gy_free(m.stamp);
    gy_free(m.where);
    gy_free(m.band_where);
    return done;
}

/* ---- rounds ---- */

/* One round; *fewer: it took a sixteenth of the nodes away, so that another may be worth while. What takes next to
 * nothing away is not worth a level. */
static bool round_of(gy_levels *l, gy_clustering cluster, bool *fewer)
{
    gy_level *last = gy_vec_last(&l->at);
    uint32_t left = 0;
    if (!cluster(last, &l->grain, last->up))
        return false;
    for (uint32_t u = 0; u < last->nodes; u++)
        left += last->up[u] == u;
    if (left > last->nodes - last->nodes / 64 || left == last->nodes)
        return true;
    *fewer = *fewer || left <= last->nodes - last->nodes / 16;
    return gy_levels_contract(l);
}

bool gy_levels_coarsen(gy_levels *l, uint32_t parts, uint32_t groups)
{
    static const gy_clustering rounds[] = { gy_cluster_in_trees, gy_cluster_out_trees, gy_cluster_siblings };
    bool fewer = true;
    while (fewer && gy_vec_last(&l->at)->nodes > parts) {
        fewer = false;
        for (size_t i = 0; i < 3 && gy_vec_last(&l->at)->nodes > parts; i++)
            if (!round_of(l, rounds[i], &fewer))
                return false;
    }
    l->acyclic = l->at.count - 1;
    for (fewer = true; fewer && gy_vec_last(&l->at)->nodes > groups;) {
        fewer = false;
        if (!round_of(l, gy_cluster_neighbours, &fewer))
            return false;
    }
    return true;
}
