/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Cutting automatic splits. By speed: parts are given to devices once, then rows move between devices until these take
 * equally long. A device's speed is what it does now, rows / time at the sizes it has, so that launch costs, whole
 * operands and kernels that are not linear in their rows are seen: the next sizes are in proportion to the speeds, and
 * the graph is costed again at them. (Lastovetsky and Reddy, "Distributed Data Partitioning for Heterogeneous
 * Processors Based on Partial Estimation of Their Functional Performance Models", 2009; here the estimates come from
 * the cost model.)
 */
#include "scheduler/balance/balance.h"

#include "base/error.h"
#include "graph/derive/specialise.h"
#include "graph/nest.h"
#include "scheduler/cost/cost.h"
#include "scheduler/pipeline/pipeline.h"
#include <math.h>
#include <string.h>

#define ROUNDS     12
#define EVEN_NOW   1.02 /* equal parts that are so close are left equal: halos at the ends alone make some difference */
#define EVEN_AGAIN 1.001 /* close enough to stop */

/* ---- costs at the present cut ---- */

static void add_node(gy_splits *s, const gy_plan *p, uint32_t node)
{
    gy_split_group *x = &s->group[s->owner[node]];
    const gy_node *n = &p->graph->nodes.at[node];
    /* All iterations, also where the flow shows only the first of them and the others are phases. */
    double iterations = n->loop == GY_NONE ? 1 : (double)p->graph->loops.at[n->loop].count;
    iterations *= (double)gy_node_turns(p->graph, n);
    bool anywhere = false;
    for (uint32_t d = 0; d < s->workers; d++)
        anywhere = anywhere || gy_plan_time(p, node, d) < GY_TICKS_MAX;
    for (uint32_t d = 0; d < s->workers && anywhere; d++) {
        gy_ticks time = gy_plan_time(p, node, d);
        x->time[(size_t)s->part[node] * s->workers + d] +=
            time < GY_TICKS_MAX ? (double)time * iterations : (double)INFINITY;
    }
}

static gantry_status measure(gy_splits *s, gantry_graph *cut, uint64_t *room, gantry_error *err)
{
    gy_plan p;
    gantry_status status = gy_plan_init(&p, cut, s->machine, NULL, NULL, err);
    if (!status)
        status = gy_plan_capacity(&p, s->options->max_memory, err);
    if (!status)
        status = gy_plan_cost(&p, err);
    for (uint32_t i = 0; i < s->groups && !status; i++)
        memset(s->group[i].time, 0, (size_t)s->group[i].parts * s->workers * sizeof *s->group[i].time);
    for (uint32_t n = 0; n < cut->nodes.count && !status; n++)
        if (s->owner[n] != GY_NONE && cut->nodes.at[n].kind != GY_NODE_COLLECTIVE)
            add_node(s, &p, n);
    for (uint32_t d = 0; d < s->workers && !status && room; d++)
        room[d] = p.capacity[s->machine->device[d].memory];
    gy_plan_free(&p);
    return status;
}

/* ---- parts to devices ---- */

static double time_of(const gy_splits *s, const gy_split_group *x, int64_t part, uint32_t device)
{
    return x->time[(size_t)part * s->workers + device];
}

/* Where one more part would be ready first, of devices with `most` parts at most; GY_NONE: nowhere. */
static uint32_t next_device(const gy_splits *s, const gy_split_group *x, int64_t part, int64_t most)
{
    uint32_t best = GY_NONE;
    double least = INFINITY;
    for (uint32_t d = 0; d < s->workers; d++) {
        double end = time_of(s, x, part, d) * (double)(x->count[d] + 1);
        if (x->count[d] <= most && end < least) {
            least = end;
            best = d;
        }
    }
    return best;
}

static bool same_devices(const gy_splits *s, const gy_split_group *x)
{
    for (int64_t i = 1; i < x->parts; i++)
        for (uint32_t d = 0; d < s->workers; d++)
            if (!isinf(time_of(s, x, i, d)) != !isinf(time_of(s, x, 0, d)))
                return false;
    return true;
}

/* Every device gets a part before one gets a second; neighbours stay together, which saves halos. */
static bool share_out(const gy_splits *s, gy_split_group *x)
{
    for (int64_t i = 0; i < x->parts; i++) {
        uint32_t d = next_device(s, x, 0, 0);
        d = d == GY_NONE ? next_device(s, x, 0, INT64_MAX) : d;
        if (d == GY_NONE)
            return false;
        x->count[d]++;
    }
    int64_t part = 0;
    for (uint32_t d = 0; d < s->workers; d++)
        for (int64_t i = 0; i < x->count[d]; i++)
            x->device[part++] = d;
    return true;
}

/* `on` binds parts to devices: each goes where it may. */
static bool follow_places(const gy_splits *s, gy_split_group *x)
{
    for (int64_t i = 0; i < x->parts; i++) {
        x->device[i] = next_device(s, x, i, INT64_MAX);
        if (x->device[i] == GY_NONE)
            return false;
        x->count[x->device[i]]++;
    }
    return true;
}

static void give_parts(gy_splits *s)
{
    for (uint32_t i = 0; i < s->groups; i++) {
        gy_split_group *x = &s->group[i];
        if (!(same_devices(s, x) ? share_out(s, x) : follow_places(s, x)))
            x->fixed = true;
        for (int64_t k = 0; k <= x->parts; k++)
            x->bound[k] = x->best[k] = gy_part_bound(x->unit, x->parts, k);
        x->load = INFINITY;
    }
}

/* ---- bounds ---- */

/* Parts in proportion to `weight` of their device, which its parts share; no part is empty. */
static void set_bounds(const gy_splits *s, gy_split_group *x, const double *weight)
{
    double sum = 0, part_sum = 0;
    for (uint32_t d = 0; d < s->workers; d++)
        sum += weight[d];
    for (int64_t i = 0; i < x->parts; i++) {
        int64_t left = x->parts - 1 - i;
        part_sum += weight[x->device[i]] / (double)x->count[x->device[i]];
        int64_t bound = left ? (int64_t)floor((double)x->unit * (part_sum / sum) + 0.5) : x->unit;
        bound = bound > x->bound[i] ? bound : x->bound[i] + 1;
        x->bound[i + 1] = bound < x->unit - left ? bound : x->unit - left;
    }
    x->moved = true;
}

static void sum_devices(const gy_splits *s, const gy_split_group *x, double *rows, double *time)
{
    for (uint32_t d = 0; d < s->workers; d++)
        rows[d] = time[d] = 0;
    for (int64_t i = 0; i < x->parts; i++) {
        rows[x->device[i]] += (double)(x->bound[i + 1] - x->bound[i]);
        time[x->device[i]] += time_of(s, x, i, x->device[i]);
    }
}

/* The longest time of a device that has parts, and how much longer it is than the shortest. */
static double spread_of(const gy_splits *s, const double *rows, const double *time, double *most)
{
    double least = INFINITY;
    *most = 0;
    for (uint32_t d = 0; d < s->workers; d++) {
        if (!(rows[d] > 0))
            continue;
        least = time[d] < least ? time[d] : least;
        *most = time[d] > *most ? time[d] : *most;
    }
    return *most > 0 ? *most / least : 1;
}

/* One step for one group; false if it stays where it is. */
static bool step(const gy_splits *s, gy_split_group *x, double *rows, double *time)
{
    double most;
    sum_devices(s, x, rows, time);
    double spread = spread_of(s, rows, time, &most);
    if (most < x->load) {
        x->load = most;
        x->best_moved = x->moved;
        memcpy(x->best, x->bound, ((size_t)x->parts + 1) * sizeof *x->best);
    }
    if (spread <= (x->moved ? EVEN_AGAIN : EVEN_NOW))
        return false;
    for (uint32_t d = 0; d < s->workers; d++) /* a device that takes no time takes as good as none */
        rows[d] = rows[d] > 0 ? rows[d] / (time[d] > most * 1e-9 ? time[d] : most * 1e-9) : 0;
    set_bounds(s, x, rows);
    return true;
}

/* ---- cutting ---- */

static gantry_status add_cuts(gy_splits *s, gy_cut *cut, size_t *cuts, uint32_t group, gantry_error *err)
{
    const gy_split_group *x = &s->group[group];
    for (uint32_t b = 0; b < s->graph->buffers.count; b++) {
        if (s->group_of[b] != group)
            continue;
        const gy_buffer *of = &s->graph->buffers.at[b];
        int64_t turns = gy_buffer_turns(of), rows = of->rows / turns;
        int64_t *first = gy_arena_alloc(&s->arena, ((size_t)of->parts + 1) * sizeof *first);
        if (!first)
            return gy_fail_nomem(err);
        for (int64_t i = 0; i <= of->parts; i++)
            first[i] = i / x->parts * rows + gy_part_bound(rows, x->unit, x->bound[i % x->parts]);
        cut[(*cuts)++] = (gy_cut){ b, first };
    }
    return GANTRY_OK;
}

/* At the present bounds of one group, or of all (GY_NONE). */
static gantry_status cut_at(gy_splits *s, gantry_graph **out, uint32_t only, gantry_error *err)
{
    gy_cut *cut = gy_calloc(s->graph->buffers.count + 1, sizeof *cut);
    size_t cuts = 0;
    gantry_status status = cut ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t i = 0; i < s->groups && !status; i++)
        if (s->group[i].moved && !s->group[i].fixed && (only == GY_NONE || only == i))
            status = add_cuts(s, cut, &cuts, i, err);
    if (!status)
        status = gy_graph_specialise(out, s->graph, cut, cuts, err);
    gy_free(cut);
    return status;
}

/* Some node cannot do with the present bounds: the groups that it is about keep equal parts. */
static gantry_status fix_refused(gy_splits *s, gantry_error *err)
{
    bool found = false;
    for (uint32_t i = 0; i < s->groups; i++) {
        gantry_graph *alone;
        gantry_error inner;
        gantry_status status = cut_at(s, &alone, i, &inner);
        if (status == GANTRY_E_NOMEM)
            return gy_fail_nomem(err);
        if (status)
            found = s->group[i].fixed = true;
        else
            gantry_graph_free(alone);
    }
    for (uint32_t i = 0; i < s->groups && !found; i++)
        s->group[i].fixed = true;
    return GANTRY_OK;
}

static gantry_status cut_or_fix(gy_splits *s, gantry_graph **out, gantry_error *err)
{
    gantry_status status = cut_at(s, out, GY_NONE, err);
    while (status == GANTRY_E_GRAPH) { /* each turn fixes a group, and with none left the graph is as it was */
        status = fix_refused(s, err);
        if (!status)
            status = cut_at(s, out, GY_NONE, err);
    }
    return status;
}

/* ---- the methods ---- */

static gantry_status by_speed(gy_splits *s, gantry_graph **out, gantry_error *err)
{
    double *rows = gy_arena_calloc(&s->arena, s->workers, sizeof *rows);
    double *time = gy_arena_calloc(&s->arena, s->workers, sizeof *time);
    gantry_status status = rows && time ? GANTRY_OK : gy_fail_nomem(err);
    for (int round = 0; round < ROUNDS && !status; round++) {
        bool moves = false;
        gantry_graph *cut;
        for (uint32_t i = 0; i < s->groups; i++)
            moves = (!s->group[i].fixed && step(s, &s->group[i], rows, time)) || moves;
        if (!moves)
            break;
        status = cut_or_fix(s, &cut, err);
        if (status)
            return status;
        status = measure(s, cut, NULL, err);
        gantry_graph_free(cut);
    }
    for (uint32_t i = 0; i < s->groups; i++) {
        gy_split_group *x = &s->group[i];
        memcpy(x->bound, x->best, ((size_t)x->parts + 1) * sizeof *x->best);
        x->moved = x->best_moved;
    }
    return status ? status : cut_or_fix(s, out, err);
}

/* Devices of one memory share it. */
static double room_of(const gy_splits *s, const gy_split_group *x, const uint64_t *room, uint32_t device)
{
    const gy_device *at = s->machine->device;
    uint32_t sharers = 0;
    for (uint32_t d = 0; d < s->workers; d++)
        sharers += x->count[d] && at[d].memory == at[device].memory;
    return x->count[device] ? (double)room[device] / sharers : 0;
}

static gantry_status by_memory(gy_splits *s, gantry_graph **out, const uint64_t *room, gantry_error *err)
{
    double *weight = gy_arena_calloc(&s->arena, s->workers, sizeof *weight);
    if (!weight)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < s->groups; i++) {
        gy_split_group *x = &s->group[i];
        if (x->fixed)
            continue;
        double sum = 0;
        for (uint32_t d = 0; d < s->workers; d++)
            sum += weight[d] = room_of(s, x, room, d);
        if (sum > 0)
            set_bounds(s, x, weight);
    }
    return cut_or_fix(s, out, err);
}

/* For giving out parts by room: a device takes as long as its room is small. */
static void time_by_room(gy_splits *s, const uint64_t *room)
{
    for (uint32_t i = 0; i < s->groups; i++)
        for (size_t k = 0; k < (size_t)s->group[i].parts * s->workers; k++) {
            uint64_t bytes = room[k % s->workers];
            if (!isinf(s->group[i].time[k]))
                s->group[i].time[k] = bytes ? 1 / (double)bytes : 1;
        }
}

static gantry_status cut_by(gy_splits *s, gantry_graph **out, gy_balance method, gantry_error *err)
{
    uint64_t *room = gy_arena_calloc(&s->arena, s->workers, sizeof *room);
    gantry_status status = room ? measure(s, s->graph, room, err) : gy_fail_nomem(err);
    if (!status && method == GY_BALANCE_MEMORY)
        time_by_room(s, room);
    if (status)
        return status;
    give_parts(s);
    return method == GY_BALANCE_MEMORY ? by_memory(s, out, room, err) : by_speed(s, out, err);
}

gantry_status gy_balance_cut(gantry_graph **out, gantry_graph *graph, const gantry_machine *machine,
                             const gy_options *options, gy_balance method, gantry_error *err)
{
    gy_splits s;
    if (method == GY_BALANCE_STATIC) {
        *out = gy_graph_ref(graph);
        return GANTRY_OK;
    }
    gantry_status status = gy_splits_make(&s, graph, machine, options, err);
    if (!status)
        status = cut_by(&s, out, method, err);
    gy_splits_free(&s);
    return status;
}
