/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/decode.h"

#include "base/error.h"
#include "scheduler/cost/cost.h"
#include "scheduler/place/place.h"
#include <string.h>

gantry_status gy_decode_init(gy_decode *d, const gy_model *m, gantry_error *err)
{
    size_t n = (size_t)m->tasks + 1, devices = (size_t)m->devices + 1;
    *d = (gy_decode){ .m = m, .end = GY_NONE };
    d->device = gy_calloc(n, sizeof *d->device);
    d->finish = gy_calloc(n, sizeof *d->finish);
    d->before = gy_calloc(n, sizeof *d->before);
    d->free_at = gy_calloc(devices, sizeof *d->free_at);
    d->latest = gy_calloc(devices, sizeof *d->latest);
    d->rank = gy_calloc((size_t)m->ranks + 1, sizeof *d->rank);
    d->timed = gy_calloc((size_t)m->ranks + 1, sizeof *d->timed);
    d->team_time = gy_calloc(m->plan->inputs.teams.count + 1, sizeof *d->team_time);
    if (!d->device || !d->finish || !d->before || !d->free_at || !d->latest || !d->rank || !d->timed || !d->team_time)
        return gy_fail_nomem(err);
    GY_TRY(gy_trail_init(&d->trail, m, err));
    return gy_traffic_init(&d->traffic, m, err);
}

void gy_decode_free(gy_decode *d)
{
    gy_free(d->device);
    gy_free(d->finish);
    gy_free(d->before);
    gy_free(d->free_at);
    gy_free(d->latest);
    gy_free(d->rank);
    gy_free(d->timed);
    gy_free(d->team_time);
    gy_traffic_free(&d->traffic);
    gy_trail_free(&d->trail);
    *d = (gy_decode){ 0 };
}

/* From the nearest of the devices that a collective ends on. */
static gy_ticks arrival_of_team(const gy_decode *d, const gy_arc *arc, uint32_t device)
{
    const gy_model *m = d->m;
    uint32_t team = m->team[arc->task];
    gy_ticks best = GY_TICKS_MAX;
    for (uint32_t i = m->first_rank[team]; i < m->first_rank[team + 1]; i++) {
        gy_ticks t = gy_model_move(m, arc->size, d->rank[i], device);
        best = t < best ? t : best;
    }
    return d->finish[arc->task] + best;
}

/* When rows that a task of the arc reads may be overwritten from the device. */
static gy_ticks overwritten(const gy_decode *d, const gy_arc *arc, uint32_t device)
{
    const gy_model *m = d->m;
    uint32_t reader = d->device[arc->task], i = m->copied[arc - m->pred];
    if (gy_model_is_near(m, reader, device))
        return d->finish[arc->task];
    if (i == GY_NONE || gy_model_is_team(m, m->pred[i].task) ||
        !gy_model_is_near(m, d->device[m->pred[i].task], device))
        return 0;
    return m->roads ? d->traffic.arrived[m->roads->wanted[i]] : gy_decode_arrival(d, &m->pred[i], reader);
}

gy_ticks gy_decode_arrival(const gy_decode *d, const gy_arc *arc, uint32_t device)
{
    const gy_model *m = d->m;
    if (!arc->size)
        return d->finish[arc->task];
    if (arc->size == GY_SIZE_HERE)
        return overwritten(d, arc, device);
    if (gy_model_is_team(m, arc->task))
        return arrival_of_team(d, arc, device);
    return d->finish[arc->task] + gy_model_move(m, arc->size, d->device[arc->task], device);
}

static gy_ticks ready_on(const gy_decode *d, uint32_t task, uint32_t device)
{
    const gy_model *m = d->m;
    gy_ticks ready = gy_model_upload(m, task, device);
    for (size_t i = m->pred_first[task]; i < m->pred_first[task + 1]; i++) {
        gy_ticks t = gy_decode_arrival(d, &m->pred[i], device);
        ready = t > ready ? t : ready;
    }
    return ready;
}

/* ---- collectives ---- */

/* Placements change little from one to the next: the last answer of each team is kept. A placement that cannot do what
 * the node asks for (or finds no room to think) is one that never ends. */
static gy_ticks team_time(gy_decode *d, uint32_t task, const uint32_t *device)
{
    const gy_model *m = d->m;
    uint32_t team = m->team[task], ranks = m->plan->inputs.teams.at[team].ranks, *last = &d->timed[m->first_rank[team]];
    gy_way choice;
    if (d->team_time[team] && !memcmp(last, device, ranks * sizeof *last))
        return d->team_time[team];
    if (gy_place_team_time(m->plan, task, device, &choice, NULL))
        return GY_TICKS_MAX;
    memcpy(last, device, ranks * sizeof *last);
    return d->team_time[team] = choice.time;
}

/* As gy_plan_rank_home, of the placement at hand. */
static uint32_t home_of(const gy_decode *d, const gy_team *team, uint32_t i)
{
    uint32_t writer = team->writer[i];
    if (team->fixed || writer == GY_NONE)
        return team->fixed ? team->fixed[i] : GY_NONE;
    return gy_model_is_team(d->m, writer) ? d->rank[d->m->first_rank[d->m->team[writer]] + team->writer_rank[i]]
                                          : d->device[writer];
}

static void run_team(gy_decode *d, uint32_t task)
{
    const gy_model *m = d->m;
    const gy_team *team = &m->plan->inputs.teams.at[m->team[task]];
    uint32_t *device = &d->rank[m->first_rank[m->team[task]]];
    for (uint32_t i = 0; i < team->ranks; i++)
        device[i] = home_of(d, team, i);
    if (gy_plan_is_tied(m->plan, m->plan->flow->task[task].node))
        device[0] = d->device[task];
    gy_place_ranks(m->plan, task, device, team->ranks);
    gy_ticks start = 0;
    for (uint32_t i = 0; i < team->ranks; i++) {
        gy_ticks t = ready_on(d, task, device[i]);
        start = t > start ? t : start;
    }
    d->device[task] = device[0];
    d->before[task] = GY_NONE;
    d->finish[task] = gy_ticks_sum(start, team_time(d, task, device));
}

/* ---- pools ---- */

/* Any device that may run the first task may run all, and a time is the same on all of them. */
static gy_ticks run_pool(gy_decode *d, const uint32_t *order, gy_ticks limit)
{
    const gy_model *m = d->m;
    gy_ticks makespan = 0;
    for (uint32_t k = 0; k < m->tasks; k++) {
        uint32_t task = order[k], fit = GY_NONE, first = GY_NONE;
        gy_ticks ready = 0;
        for (size_t i = m->pred_first[task]; i < m->pred_first[task + 1]; i++)
            if (d->finish[m->pred[i].task] > ready)
                ready = d->finish[m->pred[i].task];
        for (uint32_t e = 0; e < m->devices; e++) {
            if (gy_model_time(m, task, e) >= GY_TICKS_MAX)
                continue;
            if (first == GY_NONE || d->free_at[e] < d->free_at[first])
                first = e;
            if (d->free_at[e] <= ready && (fit == GY_NONE || d->free_at[e] > d->free_at[fit]))
                fit = e;
        }
        uint32_t e = fit == GY_NONE ? first : fit;
        gy_ticks time = gy_model_time(m, task, e), start = d->free_at[e] > ready && time ? d->free_at[e] : ready;
        gy_ticks end = start + time, least = end + m->tail[(size_t)task * m->devices];
        if (least > limit)
            return least;
        d->device[task] = e;
        d->finish[task] = end;
        d->before[task] = time ? d->latest[e] : GY_NONE;
        if (time) {
            d->free_at[e] = start + gy_model_hold(m, task, e);
            d->latest[e] = task;
        }
        if (end >= makespan) {
            makespan = end;
            d->end = task;
        }
    }
    return makespan;
}

/* ---- traffic ---- */

/* Parcel `number` of those that are being sent, in that memory: sent once, whoever reads it there. */
static gy_ticks send(gy_decode *d, uint32_t number, uint32_t size, uint32_t from, uint32_t to, gy_ticks ready)
{
    struct gy_there *there = &d->traffic.there[(size_t)number * d->m->roads->memories + to];
    if (from == to || !size) /* what has no size is everywhere at once */
        return ready;
    if (there->stamp != d->traffic.stamp) {
        there->stamp = d->traffic.stamp;
        there->time = gy_traffic_send(&d->traffic, d->m, size, from, to, ready);
    }
    return there->time;
}

/* Inputs are in host memory from the beginning. */
static void send_uploads(gy_decode *d, const uint32_t *order)
{
    const gy_roads *r = d->m->roads;
    uint32_t first = r->parcels - r->inputs;
    gy_traffic_begin(&d->traffic, d->m);
    d->traffic.stamp++;
    for (uint32_t k = 0; k < d->m->tasks && r->inputs; k++)
        for (size_t i = r->upload_first[order[k]]; i < r->upload_first[order[k] + 1]; i++) {
            uint32_t to = r->memory[d->device[order[k]]], from = d->m->plan->machine->memory[to].arrays;
            d->traffic.uploaded[i] = send(d, r->upload[i] - first, r->size[r->upload[i]], from, to, 0);
        }
}

/* Every rank of a collective has the result. */
static void spread_over_team(gy_decode *d, uint32_t task)
{
    const gy_roads *r = d->m->roads;
    uint32_t team = d->m->team[task], parcels = r->first_parcel[task + 1] - r->first_parcel[task];
    for (uint32_t p = 0; p < parcels; p++)
        for (uint32_t i = d->m->first_rank[team]; i < d->m->first_rank[team + 1]; i++)
            d->traffic.there[(size_t)p * r->memories + r->memory[d->rank[i]]] =
                (struct gy_there){ d->traffic.stamp, d->finish[task] };
}

/* To each memory that has a reader; returns when what is fetched has arrived. */
static gy_ticks send_results(gy_decode *d, uint32_t task)
{
    const gy_model *m = d->m;
    const gy_roads *r = m->roads;
    uint32_t here = r->memory[d->device[task]], first = r->first_parcel[task];
    gy_ticks end = d->finish[task];
    d->traffic.stamp++;
    if (gy_model_is_team(m, task))
        spread_over_team(d, task);
    for (size_t i = m->succ_first[task]; i < m->succ_first[task + 1]; i++) {
        const gy_send *s = &r->send[i];
        if (m->succ[i].size != GY_SIZE_HERE && !gy_model_is_team(m, s->task)) /* which has no devices yet */
            d->traffic.arrived[i] =
                send(d, s->parcel - first, r->size[s->parcel], here, r->memory[d->device[s->task]], end);
    }
    return m->fetch[task] ? gy_traffic_send(&d->traffic, m, m->fetch[task], here, 0, end) : end;
}

static gy_ticks ready_with_traffic(const gy_decode *d, uint32_t task)
{
    const gy_model *m = d->m;
    const gy_roads *r = m->roads;
    gy_ticks ready = 0;
    for (size_t i = r->upload_first[task]; i < r->upload_first[task + 1]; i++) {
        gy_ticks t = d->traffic.uploaded[i];
        ready = t > ready ? t : ready;
    }
    for (size_t i = m->pred_first[task]; i < m->pred_first[task + 1]; i++) {
        gy_ticks t = m->pred[i].size == GY_SIZE_HERE ? overwritten(d, &m->pred[i], d->device[task])
                                                     : d->traffic.arrived[r->wanted[i]];
        ready = t > ready ? t : ready;
    }
    return ready;
}

/* ---- given devices ---- */

/* Of the devices that are alike, the one that has waited least of those that are free when the data are there, else the
 * first to become free. */
static uint32_t choose_alike(const gy_decode *d, uint32_t first, gy_ticks ready)
{
    const gy_model *m = d->m;
    uint32_t fit = GY_NONE, soon = first;
    for (uint32_t e = first; e < m->devices; e++) {
        if (m->like[e] != first)
            continue;
        if (d->free_at[e] < d->free_at[soon])
            soon = e;
        if (d->free_at[e] <= ready && (fit == GY_NONE || d->free_at[e] > d->free_at[fit]))
            fit = e;
    }
    return fit == GY_NONE ? soon : fit;
}

static void run_task(gy_decode *d, uint32_t task)
{
    const gy_model *m = d->m;
    uint32_t e = d->device[task];
    gy_ticks ready = m->roads ? ready_with_traffic(d, task) : ready_on(d, task, e);
    if (m->like)
        e = d->device[task] = choose_alike(d, m->like[e], ready);
    gy_ticks time = gy_model_time(m, task, e);
    gy_ticks start = d->free_at[e] > ready && time ? d->free_at[e] : ready;
    d->finish[task] = start + time;
    d->before[task] = time ? d->latest[e] : GY_NONE;
    if (time) {
        d->free_at[e] = start + gy_model_hold(m, task, e);
        d->latest[e] = task;
    }
}

/* From the position on, with all that is before it as it is. */
static gy_ticks run_on(gy_decode *d, const uint32_t *order, gy_ticks limit, bool trail)
{
    const gy_model *m = d->m;
    for (uint32_t k = d->from; k < m->tasks && d->worst <= limit; k++) {
        uint32_t task = order[k];
        if (trail)
            gy_trail_note(d, k);
        d->reached = k + 1;
        if (gy_model_is_team(m, task))
            run_team(d, task);
        else
            run_task(d, task);
        gy_ticks least = d->finish[task] + m->tail[(size_t)task * m->devices + d->device[task]];
        d->worst = least > d->worst ? least : d->worst;
        if (least > limit)
            break;
        gy_ticks end = m->roads ? send_results(d, task) : d->finish[task] + gy_model_fetch(m, task, d->device[task]);
        d->worst = end > d->worst ? end : d->worst;
        if (end >= d->makespan) {
            d->makespan = end;
            d->end = task;
        }
    }
    return d->worst > limit ? d->worst : d->makespan;
}

static void begin(gy_decode *d)
{
    for (uint32_t e = 0; e < d->m->devices; e++) {
        d->free_at[e] = 0;
        d->latest[e] = GY_NONE;
    }
    d->end = GY_NONE;
    d->makespan = d->worst = 0;
    d->from = d->reached = 0;
}

static gy_ticks run_given(gy_decode *d, const uint32_t *order, gy_ticks limit)
{
    d->sent = d->m->roads;
    if (d->sent)
        send_uploads(d, order);
    return run_on(d, order, limit, gy_decode_has_trail(d));
}

gy_ticks gy_decode_run(gy_decode *d, const uint32_t *order, gy_ticks limit)
{
    begin(d);
    return d->m->pool ? run_pool(d, order, limit) : run_given(d, order, limit);
}

/* ---- neighbours ---- */

bool gy_decode_has_trail(const gy_decode *d)
{
    return !d->m->pool && !d->m->ranks && d->trail.stride < d->m->tasks;
}

gy_ticks gy_decode_again(gy_decode *d, const uint32_t *order, uint32_t position, bool uploads, gy_ticks limit)
{
    if (!gy_decode_has_trail(d) || (uploads && d->m->roads))
        return gy_decode_run(d, order, limit);
    d->from = d->reached = gy_trail_return(d, position);
    d->sent = false;
    return run_on(d, order, limit, true);
}

void gy_decode_keep(gy_decode *d, const uint32_t *order)
{
    if (gy_decode_has_trail(d))
        gy_trail_keep(d, order, d->from, d->sent);
}

void gy_decode_drop(gy_decode *d, const uint32_t *order)
{
    if (gy_decode_has_trail(d))
        gy_trail_drop(d, order, d->from, d->sent);
}

/* ---- the critical chain ---- */

/* Whoever ended, or sent its data, just when the task began. */
static uint32_t cause_of(const gy_decode *d, uint32_t task)
{
    const gy_model *m = d->m;
    if (gy_model_is_team(m, task)) { /* the last of its predecessors, transfers aside */
        uint32_t last = GY_NONE;
        for (size_t i = m->pred_first[task]; i < m->pred_first[task + 1]; i++)
            if (last == GY_NONE || d->finish[m->pred[i].task] > d->finish[last])
                last = m->pred[i].task;
        return last;
    }
    gy_ticks start = d->finish[task] - gy_model_time(m, task, d->device[task]);
    if (d->before[task] != GY_NONE && d->finish[d->before[task]] == start)
        return d->before[task];
    uint32_t last = GY_NONE; /* with traffic, data may have been under way for longer than alone: the latest to start */
    gy_ticks latest = -1;
    for (size_t i = m->pred_first[task]; i < m->pred_first[task + 1]; i++) {
        gy_ticks t = gy_decode_arrival(d, &m->pred[i], d->device[task]);
        if (t > latest && (t == start || m->roads)) {
            latest = t;
            last = m->pred[i].task;
        }
    }
    return last;
}

uint32_t gy_decode_critical(const gy_decode *d, uint32_t *chain)
{
    uint32_t count = 0;
    for (uint32_t t = d->end; t != GY_NONE; t = cause_of(d, t))
        chain[count++] = t;
    return count;
}
