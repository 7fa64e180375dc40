/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that may change places in every schedule, each with what follows it: the graph with the two branches exchanged
 * is the same graph. What is exchanged is followed from the two tasks, successors paired by a colour that tells tasks
 * apart by all that lies before and behind them; then each exchanged task is compared with the one that it changes
 * places with, so that a wrong pair costs a symmetry and never an optimum.
 */
#include "scheduler/search/exact.h"

#include <string.h>

#define NOBODY UINT32_MAX

typedef struct twins {
    const gy_model *m;
    uint64_t colour[GY_EXACT_TASKS];
    uint32_t with[GY_EXACT_TASKS];  /* the task that it changes places with, or NOBODY */
    uint32_t moved[GY_EXACT_TASKS]; /* those that change places, in the order in which they were found */
    uint32_t count;
} twins;

static bool take_as_long(const gy_model *m, uint32_t a, uint32_t b)
{
    bool same = m->upload[a] == m->upload[b] && m->fetch[a] == m->fetch[b];
    for (uint32_t d = 0; d < m->devices && same; d++)
        same = gy_model_time(m, a, d) == gy_model_time(m, b, d);
    return same;
}

/* ---- colours ---- */

/* Of arcs in any order. */
static uint64_t mix(const uint64_t *colour, const gy_arc *arc, const gy_arc *end, uint64_t salt)
{
    uint64_t sum = 0;
    for (; arc < end; arc++)
        sum += gy_hash64(colour[arc->task] + gy_hash64(arc->size + salt));
    return sum;
}

static void find_colours(twins *w)
{
    const gy_model *m = w->m;
    uint64_t next[GY_EXACT_TASKS];
    for (uint32_t t = 0; t < m->tasks; t++) {
        w->colour[t] = gy_hash64(m->upload[t]) + gy_hash64(m->fetch[t] + (UINT64_C(1) << 32));
        for (uint32_t d = 0; d < m->devices; d++)
            w->colour[t] = gy_hash64(w->colour[t] + (uint64_t)gy_model_time(m, t, d));
    }
    for (uint32_t round = 0; round < m->tasks; round++) {
        for (uint32_t t = 0; t < m->tasks; t++)
            next[t] = gy_hash64(w->colour[t]) +
                      mix(w->colour, m->pred + m->pred_first[t], m->pred + m->pred_first[t + 1], 1) +
                      gy_hash64(mix(w->colour, m->succ + m->succ_first[t], m->succ + m->succ_first[t + 1], 2));
        memcpy(w->colour, next, m->tasks * sizeof *next);
    }
}

/* ---- pairs ---- */

static bool has_arc(const gy_arc *arc, const gy_arc *end, uint32_t task, uint32_t size)
{
    while (arc < end && !(arc->task == task && arc->size == size))
        arc++;
    return arc < end;
}

static bool pair(twins *w, uint32_t a, uint32_t b)
{
    if (w->with[a] != NOBODY || w->with[b] != NOBODY)
        return w->with[a] == b && w->with[b] == a;
    w->with[a] = b;
    w->with[b] = a;
    w->moved[w->count++] = a;
    w->moved[w->count++] = b;
    return true;
}

/* Pairs what follows only one of the two with what follows only the other. */
static bool pair_followers(twins *w, uint32_t a, uint32_t b)
{
    const gy_model *m = w->m;
    const gy_arc *first = m->succ + m->succ_first[a], *end = m->succ + m->succ_first[a + 1];
    const gy_arc *other = m->succ + m->succ_first[b], *last = m->succ + m->succ_first[b + 1];
    uint64_t taken[GY_EXACT_TASKS] = { 0 };
    for (; first < end; first++) {
        const gy_arc *k = other;
        if (has_arc(other, last, first->task, first->size) && w->with[first->task] == NOBODY)
            continue;
        while (k < last && (taken[k - other] || k->size != first->size ||
                            w->colour[k->task] != w->colour[first->task] || has_arc(first, end, k->task, k->size)))
            k++;
        if (k == last || k - other >= GY_EXACT_TASKS || !pair(w, first->task, k->task))
            return false;
        taken[k - other] = 1;
    }
    return true;
}

static uint32_t place_of(const twins *w, uint32_t task)
{
    return w->with[task] == NOBODY ? task : w->with[task];
}

static bool arcs_match(const twins *w, const gy_arc *arc, const gy_arc *end, const gy_arc *to, const gy_arc *to_end)
{
    if (end - arc != to_end - to)
        return false;
    for (; arc < end; arc++)
        if (!has_arc(to, to_end, place_of(w, arc->task), arc->size))
            return false;
    return true;
}

/* Is the graph the same with all pairs exchanged? */
static bool is_symmetry(const twins *w)
{
    const gy_model *m = w->m;
    for (uint32_t i = 0; i < w->count; i++) {
        uint32_t t = w->moved[i], u = w->with[t];
        if (!take_as_long(m, t, u) ||
            !arcs_match(w, m->pred + m->pred_first[t], m->pred + m->pred_first[t + 1], m->pred + m->pred_first[u],
                        m->pred + m->pred_first[u + 1]) ||
            !arcs_match(w, m->succ + m->succ_first[t], m->succ + m->succ_first[t + 1], m->succ + m->succ_first[u],
                        m->succ + m->succ_first[u + 1]))
            return false;
    }
    return true;
}

static bool are_twins(twins *w, uint32_t a, uint32_t b)
{
    if (w->colour[a] != w->colour[b])
        return false;
    for (uint32_t t = 0; t < w->m->tasks; t++)
        w->with[t] = NOBODY;
    w->count = 0;
    bool paired = pair(w, a, b);
    for (uint32_t i = 0; i < w->count && paired; i += 2)
        paired = pair_followers(w, w->moved[i], w->moved[i + 1]);
    return paired && is_symmetry(w);
}

void gy_exact_find_twins(const gy_model *m, uint64_t *before)
{
    twins w = { .m = m };
    memset(before, 0, m->tasks * sizeof *before);
    if (m->copied)
        return;
    find_colours(&w);
    for (uint32_t t = 1; t < m->tasks; t++)
        for (uint32_t u = 0; u < t; u++)
            before[t] |= (uint64_t)are_twins(&w, u, t) << u;
}
