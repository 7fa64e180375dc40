/* SPDX-License-Identifier: Apache-2.0 */
/* The finest of the levels, from the flow. */
#include "scheduler/policies/partition/levels.h"

#include "scheduler/cost/cost.h"

__extension__ typedef unsigned __int128 wide;

#define BINS  4096 /* ranks are sorted into so many */
#define KINDS 64   /* further ones may go anywhere here; who places them asks again */

/* Mean over the devices that may run it. */
static gy_ticks typical_time(const gy_plan *p, uint32_t task)
{
    gy_ticks sum = 0;
    uint32_t count = 0;
    for (uint32_t d = 0; d < p->devices && !gy_plan_team(p, task); d++) {
        gy_ticks t = gy_plan_time(p, p->flow->task[task].node, d);
        if (t >= GY_TICKS_MAX)
            continue;
        sum += t / p->devices;
        count++;
    }
    return count ? (gy_ticks)((wide)(uint64_t)sum * p->devices / count) : 0;
}

static gy_ticks typical_move(const gy_plan *p, int64_t bytes)
{
    wide sum = 0;
    uint32_t pairs = 0;
    for (uint32_t a = 0; a < p->workers; a++)
        for (uint32_t b = 0; b < p->workers; b++) {
            uint32_t from = p->machine->device[a].memory, to = p->machine->device[b].memory;
            if (from == to)
                continue;
            sum += (uint64_t)gy_transfer_time(p, from, to, bytes);
            pairs++;
        }
    return pairs ? (gy_ticks)(sum / pairs) : 0;
}

static bool is_of_kind(const gy_levels *l, const gy_plan *p, uint32_t task, uint32_t kind)
{
    const uint8_t *allowed = &l->allowed.at[(size_t)kind * p->devices];
    for (uint32_t d = 0; d < p->devices; d++)
        if (allowed[d] != (gy_plan_time(p, p->flow->task[task].node, d) < GY_TICKS_MAX))
            return false;
    return true;
}

static bool find_kind(gy_levels *l, const gy_plan *p, uint32_t task, uint32_t *kind)
{
    for (*kind = 0; *kind < l->kinds && *kind < KINDS; ++*kind)
        if (is_of_kind(l, p, task, *kind))
            return true;
    if (*kind < l->kinds)
        return true;
    l->kinds++;
    for (uint32_t d = 0; d < p->devices; d++) {
        bool may = *kind < KINDS ? gy_plan_time(p, p->flow->task[task].node, d) < GY_TICKS_MAX : d < p->workers;
        if (!gy_vec_push(&l->allowed, may))
            return false;
    }
    return true;
}

/* Uploads, and what is written: as if nothing were ever given back. */
static int64_t bytes_of(const gy_plan *p, uint32_t task)
{
    const gy_node *n = gy_plan_node(p, task);
    int64_t bytes = p->inputs.upload[task];
    for (uint32_t k = 0; k < n->accesses; k++) {
        const gy_access *a = &p->graph->access.at[n->access + k];
        if (a->mode != GANTRY_READ)
            bytes += gy_access_bytes(p->graph, a);
    }
    return bytes;
}

static bool fill_nodes(gy_levels *l, const gy_plan *p)
{
    gy_level *v = &l->at.at[0];
    for (uint32_t t = 0; t < v->nodes; t++) {
        v->work[t] = typical_time(p, t);
        v->bytes[t] = bytes_of(p, t);
        if (!find_kind(l, p, t, &v->kind[t]))
            return false;
    }
    return true;
}

/* ---- ties ---- */

/* Room for the ties of each task; `next`: where its ties to successors begin; `readers`: those that depend on it. */
static void lay_out(const gy_levels *l, const gy_flow *f, size_t *next, size_t *readers)
{
    gy_level *v = &l->at.at[0];
    size_t at = 0, s = 0;
    for (uint32_t t = 0; t < f->tasks; t++)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++)
            readers[d->from]++;
    for (uint32_t t = 0; t < f->tasks; t++)
        next[t] = readers[t];
    for (size_t i = 0; i < l->shared.count; i++)
        next[l->shared.at[i].from]++;
    for (uint32_t t = 0; t < f->tasks; t++) {
        size_t successors = next[t];
        v->first[t] = at;
        at += (size_t)(gy_deps_end(f, t) - gy_deps_begin(f, t));
        for (; s < l->shared.count && l->shared.at[s].to == t; s++)
            at++;
        v->after[t] = next[t] = at;
        at = v->after[t] + successors;
    }
    v->first[f->tasks] = at;
}

/* Behind those from the dependencies of a task. */
static void fill_shared(gy_levels *l, size_t *next)
{
    gy_level *v = &l->at.at[0];
    for (size_t i = l->shared.count, left = 0; i-- > 0;) { /* from the last of a task on, backwards */
        const gy_shared_tie *s = &l->shared.at[i];
        left = i + 1 < l->shared.count && s[1].to == s->to ? left + 1 : 1;
        v->tie.at[v->after[s->to] - left] = (gy_tie){ s->from, s->cost };
        v->tie.at[next[s->from]++] = (gy_tie){ s->to, s->cost };
    }
}

static bool fill_ties(gy_levels *l, const gy_plan *p, size_t *next, size_t *readers)
{
    const gy_flow *f = p->flow;
    gy_level *v = &l->at.at[0];
    gy_map known = { 0 };
    bool done = true;
    lay_out(l, f, next, readers);
    fill_shared(l, next);
    for (uint32_t t = 0; t < f->tasks && done; t++)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t) && done; d++) {
            uint64_t cost = 0, many = readers[d->from];
            if (d->kinds & GY_DEP_DATA && !gy_map_get(&known, (uint64_t)d->bytes, &cost)) {
                cost = (uint64_t)typical_move(p, d->bytes);
                done = gy_map_put(&known, (uint64_t)d->bytes, cost);
            }
            gy_ticks each = (gy_ticks)(many > p->workers ? (wide)cost * p->workers / many : cost);
            v->tie.at[v->first[t] + (size_t)(d - gy_deps_begin(f, t))] = (gy_tie){ d->from, each };
            v->tie.at[next[d->from]++] = (gy_tie){ t, each };
        }
    gy_map_free(&known);
    return done;
}

/* ---- units ---- */

/* All work and all ties together are less than 2^50 units. */
static void choose_unit(gy_levels *l)
{
    gy_level *v = &l->at.at[0];
    wide sum = 0;
    for (uint32_t t = 0; t < v->nodes; t++)
        sum += (uint64_t)v->work[t];
    for (size_t i = 0; i < v->tie.count; i++)
        sum += (uint64_t)v->tie.at[i].cost;
    while (sum >> l->shift >> 50)
        l->shift++;
    for (uint32_t t = 0; t < v->nodes && l->shift; t++)
        v->work[t] >>= l->shift;
    for (size_t i = 0; i < v->tie.count && l->shift; i++)
        v->tie.at[i].cost >>= l->shift;
}

/* ---- bands ---- */

static uint32_t bin_of(gy_rank rank, gy_rank most)
{
    return (uint32_t)((most - rank) * (BINS - 1) / most);
}

static void fill_bands(gy_levels *l, const gy_rank *rank)
{
    gy_level *v = &l->at.at[0];
    gy_ticks work[BINS] = { 0 }, total = 1, sum = 0;
    uint32_t band[BINS];
    gy_rank most = 1;
    for (uint32_t t = 0; t < v->nodes; t++)
        most = rank[t] > most ? rank[t] : most;
    for (uint32_t t = 0; t < v->nodes; t++) {
        work[bin_of(rank[t], most)] += v->work[t];
        total += v->work[t];
    }
    for (uint32_t b = 0; b < BINS; b++) {
        band[b] = (uint32_t)((wide)(uint64_t)sum * l->bands / (uint64_t)total);
        sum += work[b];
    }
    for (uint32_t t = 0; t < v->nodes; t++) {
        v->slice_first[t] = t;
        v->slice.at[t] = (gy_slice){ band[bin_of(rank[t], most)], v->work[t] };
    }
    v->slice_first[v->nodes] = v->nodes;
}

bool gy_levels_begin(gy_levels *l, const gy_plan *p, const gy_rank *rank, uint32_t bands)
{
    const gy_flow *f = p->flow;
    size_t *next = gy_calloc((size_t)f->tasks + 1, sizeof *next);
    size_t *readers = gy_calloc((size_t)f->tasks + 1, sizeof *readers);
    gy_level *v = gy_levels_add(l, f->tasks);
    l->bands = bands;
    l->devices = p->devices;
    bool done = next && readers && v && gy_vec_add(&v->tie, 2 * (f->deps + l->shared.count) + 1) &&
                gy_vec_add(&v->slice, f->tasks + 1);
    done = done && fill_nodes(l, p) && fill_ties(l, p, next, readers);
    gy_free(next);
    gy_free(readers);
    if (!done)
        return false;
    v->tie.count--; /* that was so that there is an array */
    v->slice.count--;
    choose_unit(l);
    fill_bands(l, rank);
    return true;
}
