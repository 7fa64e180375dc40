/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/model.h"

#include "base/error.h"
#include "scheduler/cost/cost.h"
#include <string.h>

/* ---- transfers ---- */

/* Do bytes take as long on both? */
static bool is_alike(const gy_route *a, const gy_route *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == GY_ROUTE_RELAY || a->kind == GY_ROUTE_STAGED)
        return is_alike(a->hop[0], b->hop[0]) && is_alike(a->hop[1], b->hop[1]);
    return a->points == b->points &&
           (a->point == b->point || !memcmp(a->point, b->point, a->points * sizeof *a->point));
}

uint32_t gy_model_kind(gy_model *m, uint32_t from, uint32_t to)
{
    const gy_route *r = gy_machine_route(m->plan->machine, from, to);
    uint32_t kind = 1;
    if (from == to)
        return 0;
    while (kind < m->kinds && !is_alike(m->way[kind], r))
        kind++;
    if (kind == m->kinds)
        m->way[m->kinds++] = r;
    return kind;
}

static gantry_status find_kinds(gy_model *m, gantry_error *err)
{
    const gantry_machine *machine = m->plan->machine;
    size_t pairs = (size_t)m->devices * m->devices;
    m->way = gy_calloc((size_t)machine->memories * machine->memories + 2, sizeof *m->way);
    m->kind = gy_calloc(pairs + 1, sizeof *m->kind);
    m->from_host = gy_calloc((size_t)m->devices + 1, sizeof *m->from_host);
    m->to_host = gy_calloc((size_t)m->devices + 1, sizeof *m->to_host);
    if (!m->way || !m->kind || !m->from_host || !m->to_host)
        return gy_fail_nomem(err);
    m->kinds = 1;
    for (uint32_t a = 0; a < m->devices; a++) {
        m->from_host[a] =
            gy_model_kind(m, machine->memory[machine->device[a].memory].arrays, machine->device[a].memory);
        m->to_host[a] = gy_model_kind(m, machine->device[a].memory, 0);
        for (uint32_t b = 0; b < m->devices; b++)
            m->kind[(size_t)a * m->devices + b] =
                gy_model_kind(m, machine->device[a].memory, machine->device[b].memory);
    }
    return GANTRY_OK;
}

bool gy_model_size(gy_model *m, int64_t bytes, uint32_t *size)
{
    uint64_t at = m->bytes.count;
    if (!gy_map_get(&m->size_of, (uint64_t)bytes, &at)) {
        if (!gy_map_put(&m->size_of, (uint64_t)bytes, at) || !gy_vec_push(&m->bytes, bytes))
            return false;
        m->sizes++;
    }
    *size = (uint32_t)at;
    return true;
}

static gantry_status make_table(gy_model *m, gantry_error *err)
{
    m->move = gy_calloc((size_t)m->sizes * m->kinds, sizeof *m->move);
    if (!m->move)
        return gy_fail_nomem(err);
    for (size_t s = GY_SIZE_HERE + 1; s < m->sizes; s++)
        for (uint32_t k = 1; k < m->kinds; k++)
            m->move[s * m->kinds + k] = gy_transfer_time(m->plan, m->way[k]->from, m->way[k]->to, m->bytes.at[s]);
    return GANTRY_OK;
}

/* ---- dependencies ---- */

#define LOOKED_AT 16 /* dependencies of a reader, for the one whose rows are overwritten */

static bool waits_for(const gy_model *m, uint32_t task, uint32_t other)
{
    size_t low = m->pred_first[task], high = m->pred_first[task + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->pred[middle].task < other)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->pred_first[task + 1] && m->pred[low].task == other;
}

/* Where a reader has the rows from that the task overwrites: the task waits for whoever made them, too; one that does
 * not read them waits for readers alone, of which most have but one source. */
static uint32_t source_of(const gy_model *m, uint32_t reader, uint32_t task)
{
    size_t first = m->pred_first[reader], last = m->pred_first[reader + 1];
    uint32_t only = GY_NONE, sources = 0;
    for (size_t i = first; i < last && i < first + LOOKED_AT; i++) {
        if (m->pred[i].size <= GY_SIZE_HERE)
            continue;
        if (waits_for(m, task, m->pred[i].task))
            return (uint32_t)i;
        only = (uint32_t)i;
        sources++;
    }
    return sources == 1 ? only : GY_NONE;
}

static bool find_sources(gy_model *m)
{
    bool any = false;
    for (size_t i = 0; i < m->pred_first[m->tasks] && !any; i++)
        any = m->pred[i].size == GY_SIZE_HERE;
    if (!any)
        return true;
    m->copied = gy_calloc(m->pred_first[m->tasks], sizeof *m->copied);
    for (uint32_t t = 0; t < m->tasks && m->copied; t++)
        for (size_t i = m->pred_first[t]; i < m->pred_first[t + 1]; i++)
            m->copied[i] = m->pred[i].size == GY_SIZE_HERE ? source_of(m, m->pred[i].task, t) : GY_NONE;
    return m->copied;
}

static bool fill_arcs(gy_model *m)
{
    const gy_flow *f = m->plan->flow;
    size_t at = 0;
    for (uint32_t t = 0; t < m->tasks; t++) {
        m->row[t] = (size_t)f->task[t].node * m->devices;
        if (!gy_model_size(m, m->plan->inputs.upload[t], &m->upload[t]))
            return false;
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++) {
            m->pred[at].task = d->from;
            int64_t bytes = d->kinds & GY_DEP_DATA ? d->bytes : gy_plan_holds_within(m->plan, d, t) ? -1 : 0;
            if (!gy_model_size(m, bytes, &m->pred[at++].size))
                return false;
            m->succ_first[d->from + 1]++;
        }
        m->pred_first[t + 1] = at;
    }
    return true;
}

static void turn_round(gy_model *m, size_t *next)
{
    for (uint32_t t = 0; t < m->tasks; t++) {
        m->succ_first[t + 1] += m->succ_first[t];
        next[t] = m->succ_first[t];
    }
    for (uint32_t t = 0; t < m->tasks; t++)
        for (size_t i = m->pred_first[t]; i < m->pred_first[t + 1]; i++)
            m->succ[next[m->pred[i].task]++] = (gy_arc){ t, m->pred[i].size };
}

static gantry_status make_arcs(gy_model *m, gantry_error *err)
{
    size_t n = m->tasks, arcs = m->plan->flow->deps;
    uint32_t none;
    m->pred_first = gy_calloc(n + 1, sizeof *m->pred_first);
    m->succ_first = gy_calloc(n + 1, sizeof *m->succ_first);
    m->pred = gy_calloc(arcs + 1, sizeof *m->pred);
    m->succ = gy_calloc(arcs + 1, sizeof *m->succ);
    m->row = gy_calloc(n + 1, sizeof *m->row);
    m->upload = gy_calloc(n + 1, sizeof *m->upload);
    size_t *next = gy_calloc(n + 1, sizeof *next);
    bool done = m->pred_first && m->succ_first && m->pred && m->succ && m->row && m->upload && next;
    done = done && gy_model_size(m, 0, &none) && gy_model_size(m, -1, &none) && fill_arcs(m) && find_sources(m);
    if (done)
        turn_round(m, next);
    gy_free(next);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

/* ---- units ---- */

static bool is_bound(const gy_plan *p, uint32_t task)
{
    return p->cost.pinned[p->flow->task[task].node];
}

/* All tasks of a group are one unit, in every iteration; other tasks are units by themselves. */
static gantry_status make_units(gy_model *m, gantry_error *err)
{
    const gy_plan *p = m->plan;
    uint32_t *of_group = gy_calloc(p->graph->nodes.count + 1, sizeof *of_group);
    m->unit = gy_calloc((size_t)m->tasks + 1, sizeof *m->unit);
    m->member = gy_calloc((size_t)m->tasks + 1, sizeof *m->member);
    m->first_member = gy_calloc((size_t)m->tasks + 2, sizeof *m->first_member);
    bool done = of_group && m->unit && m->member && m->first_member;
    for (uint32_t t = 0; t < m->tasks && done; t++) {
        uint32_t *known = is_bound(p, t) ? &of_group[p->cost.group[p->flow->task[t].node]] : NULL;
        m->bound_units = m->bound_units || known;
        m->unit[t] = known && *known ? *known - 1 : m->units++;
        if (known)
            *known = m->unit[t] + 1;
        m->first_member[m->unit[t] + 2]++; /* two up: filling moves each begin one down */
    }
    for (uint32_t u = 0; u < m->units && done; u++)
        m->first_member[u + 2] += m->first_member[u + 1];
    for (uint32_t t = 0; t < m->tasks && done; t++)
        m->member[m->first_member[m->unit[t] + 1]++] = t;
    gy_free(of_group);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

/* ---- collectives ---- */

static gantry_status find_teams(gy_model *m, gantry_error *err)
{
    const gy_plan *p = m->plan;
    if (!p->inputs.teams.count)
        return GANTRY_OK;
    m->team = gy_calloc((size_t)m->tasks + 1, sizeof *m->team);
    m->first_rank = gy_calloc(p->inputs.teams.count + 1, sizeof *m->first_rank);
    if (!m->team || !m->first_rank)
        return gy_fail_nomem(err);
    for (uint32_t t = 0; t < m->tasks; t++) {
        const gy_team *team = gy_plan_team(p, t);
        m->team[t] = team ? (uint32_t)(team - p->inputs.teams.at) : GY_NONE;
    }
    for (size_t i = 0; i < p->inputs.teams.count; i++)
        m->first_rank[i + 1] = m->first_rank[i] + p->inputs.teams.at[i].ranks;
    m->ranks = m->first_rank[p->inputs.teams.count];
    return GANTRY_OK;
}

/* ---- pools ---- */

static bool moves_are_free(const gy_model *m)
{
    for (size_t i = 0; i < (size_t)m->sizes * m->kinds; i++)
        if (m->move[i])
            return false;
    return true;
}

/* The same time wherever it may run, and it may run where the first task may. */
static bool is_like_the_first(const gy_model *m, uint32_t task)
{
    gy_ticks time = GY_TICKS_MAX;
    for (uint32_t d = 0; d < m->devices; d++) {
        gy_ticks t = gy_model_time(m, task, d);
        if ((t < GY_TICKS_MAX) != (gy_model_time(m, 0, d) < GY_TICKS_MAX))
            return false;
        if (t < GY_TICKS_MAX && time < GY_TICKS_MAX && t != time)
            return false;
        time = t < GY_TICKS_MAX ? t : time;
    }
    return true;
}

static bool is_pool(const gy_model *m)
{
    bool pool = m->tasks && !m->team && !m->bound_units && moves_are_free(m);
    for (uint32_t t = 0; t < m->tasks && pool; t++)
        pool = is_like_the_first(m, t);
    return pool;
}

/* ---- devices that are alike ---- */

#define ALIKE_UP_TO UINT64_C(2000000) /* tasks x devices: of more, none are looked for */

static bool is_in_same_memory(const gy_model *m, uint32_t a, uint32_t b)
{
    return m->plan->machine->device[a].memory == m->plan->machine->device[b].memory;
}

static bool takes_as_long(const gy_model *m, uint32_t a, uint32_t b)
{
    for (uint32_t t = 0; t < m->tasks; t++)
        if (gy_model_time(m, t, a) != gy_model_time(m, t, b) || gy_model_hold(m, t, a) != gy_model_hold(m, t, b))
            return false;
    return true;
}

/* Which of the cores of a processor a task is on is no matter to others, so a decode may choose: there is less to
 * search through. */
static gantry_status find_alike(gy_model *m, gantry_error *err)
{
    bool some = false, apart = m->roads || !moves_are_free(m);
    if (m->pool || m->team || m->bound_units || (uint64_t)m->tasks * m->devices > ALIKE_UP_TO)
        return GANTRY_OK;
    m->like = gy_calloc((size_t)m->devices + 1, sizeof *m->like);
    m->first_like = gy_calloc((size_t)m->devices + 1, sizeof *m->first_like);
    if (!m->like || !m->first_like)
        return gy_fail_nomem(err);
    for (uint32_t d = 0; d < m->devices; d++) {
        m->like[d] = d;
        for (uint32_t i = 0; i < m->kinds_of_device && m->like[d] == d; i++) {
            uint32_t e = m->first_like[i];
            if ((!apart || is_in_same_memory(m, d, e)) && takes_as_long(m, d, e))
                m->like[d] = e;
        }
        if (m->like[d] == d)
            m->first_like[m->kinds_of_device++] = d;
        some = some || m->like[d] != d;
    }
    if (!some) {
        gy_free(m->like);
        m->like = NULL;
    }
    return GANTRY_OK;
}

/* ---- the whole ---- */

gantry_status gy_model_make(gy_model *m, gy_plan *plan, bool contention, gantry_error *err)
{
    *m = (gy_model){ .plan = plan, .tasks = plan->flow->tasks, .devices = plan->devices, .time = plan->cost.time };
    m->shares = plan->cost.spare != NULL;
    GY_TRY(find_kinds(m, err));
    GY_TRY(make_arcs(m, err));
    GY_TRY(gy_model_fetches(m, err));
    GY_TRY(find_teams(m, err));
    GY_TRY(make_units(m, err));
    if (contention && plan->machine->contention)
        GY_TRY(gy_roads_make(m, err));
    GY_TRY(make_table(m, err));
    m->pool = is_pool(m);
    GY_TRY(find_alike(m, err));
    return gy_model_bounds(m, err);
}

void gy_model_free(gy_model *m)
{
    gy_free(m->pred_first);
    gy_free(m->succ_first);
    gy_free(m->pred);
    gy_free(m->succ);
    gy_free(m->copied);
    gy_free(m->row);
    gy_free(m->upload);
    gy_free(m->fetch);
    gy_free(m->move);
    gy_free(m->kind);
    gy_free(m->from_host);
    gy_free(m->to_host);
    gy_vec_free(&m->bytes);
    gy_map_free(&m->size_of);
    gy_roads_free(m->roads);
    gy_free((void *)m->way);
    gy_free(m->unit);
    gy_free(m->member);
    gy_free(m->first_member);
    gy_free(m->team);
    gy_free(m->first_rank);
    gy_free(m->tail);
    gy_free(m->head);
    gy_free(m->like);
    gy_free(m->first_like);
    *m = (gy_model){ 0 };
}
