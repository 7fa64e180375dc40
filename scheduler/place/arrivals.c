/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/place/arrivals.h"

#include "scheduler/cost/cost.h"
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = -1 };

/* ---- one list, one memory ---- */

/* Times of transfers to one memory that were worked out last: a reader of many parts asks for the same few again and
 * again, and each takes a division of 128 bits. */
enum { KEPT = 16 };
typedef struct transfers {
    uint32_t memory;
    uint32_t from[KEPT]; /* 1 + the memory; 0: none yet, and then the other two are not set */
    int64_t bytes[KEPT];
    gy_ticks time[KEPT];
} transfers;

static gy_ticks transfer_time(const gy_plan *p, transfers *a, uint32_t from, int64_t bytes)
{
    uint32_t i = from % KEPT;
    if (a->from[i] != from + 1 || a->bytes[i] != bytes) {
        a->time[i] = gy_transfer_time(p, from, a->memory, bytes);
        a->from[i] = from + 1;
        a->bytes[i] = bytes;
    }
    return a->time[i];
}

/* ---- collectives: each rank has what it takes ---- */

static int64_t bytes_read(const gy_plan *p, uint32_t task, uint32_t value, const gy_access *given)
{
    const gy_task *t = &p->flow->task[task];
    int64_t sum = 0;
    for (size_t i = t->access; i < t->access + gy_plan_node(p, task)->accesses; i++) {
        const gy_access *a = gy_flow_access_of(p->graph, p->flow, i);
        int64_t first = a->first > given->first ? a->first : given->first;
        int64_t last = a->last < given->last ? a->last : given->last;
        if (a->mode != GANTRY_WRITE && p->flow->access[i].value == value && first < last)
            sum += gy_buffer_span(gy_value_buffer(p->graph, p->flow, value), first, last);
    }
    return sum;
}

/* The parts of what `from` gives to its ranks that the task reads. */
static void find_parts(const gy_plan *p, gy_arrivals *x, uint32_t task, uint32_t from)
{
    const gy_task *t = &p->flow->task[from];
    const gy_node_extra *extra = gy_plan_extra(p, t->node);
    x->parts = 0;
    x->task = task;
    x->from = from;
    for (uint32_t k = extra->ins; k < gy_plan_node(p, from)->accesses; k++) {
        size_t i = t->access + k;
        gy_arrival_part part = { .rank = gy_access_rank(extra, k) };
        part.bytes = bytes_read(p, task, p->flow->access[i].value, gy_flow_access_of(p->graph, p->flow, i));
        if (part.bytes)
            x->part[x->parts++] = part;
    }
}

static gy_ticks arrival_of_parts(const gy_plan *p, uint32_t task, uint32_t from, const gy_team *team, transfers *a)
{
    gy_arrivals *x = p->placed.arrivals;
    gy_ticks last = 0;
    if (x->task != task || x->from != from)
        find_parts(p, x, task, from);
    for (uint32_t i = 0; i < x->parts; i++) {
        uint32_t memory = p->machine->device[team->device[x->part[i].rank]].memory;
        gy_ticks t = transfer_time(p, a, memory, x->part[i].bytes);
        last = t > last ? t : last;
    }
    return p->placed.finish[from] + last;
}

/* ---- one list, for one task ---- */

static bool is_only_here(const gy_plan *p, uint32_t task, const gy_dep *dep)
{
    return !p->attempt->wait_everywhere && gy_plan_holds_within(p, dep, task) &&
           !(p->placed.anywhere && p->placed.anywhere[p->flow->task[dep->from].node]);
}

static uint32_t memory_of(const gy_plan *p, uint32_t task)
{
    return p->machine->device[p->placed.device[task]].memory;
}

/* When what `from` made can be in the memory. */
static gy_ticks arrival(const gy_plan *p, uint32_t task, const gy_dep *dep, transfers *a)
{
    if (p->placed.device[dep->from] == GY_NONE)
        return 0;
    if (is_only_here(p, task, dep) && memory_of(p, dep->from) != a->memory)
        return 0;
    if (!(dep->kinds & GY_DEP_DATA))
        return p->placed.finish[dep->from];
    if (p->placed.anywhere && p->placed.anywhere[p->flow->task[dep->from].node])
        return p->placed.finish[dep->from];
    const gy_team *team = gy_plan_team(p, dep->from);
    if (team)
        return arrival_of_parts(p, task, dep->from, team, a);
    return p->placed.finish[dep->from] + transfer_time(p, a, memory_of(p, dep->from), dep->bytes);
}

static gy_ticks last_arrival(const gy_plan *p, uint32_t task, uint32_t memory)
{
    transfers a; /* tasks with few predecessors are asked for most: only what tells the rest apart is cleared */
    gy_ticks last = 0;
    a.memory = memory;
    memset(a.from, 0, sizeof a.from);
    for (const gy_dep *d = gy_deps_begin(p->flow, task); d < gy_deps_end(p->flow, task); d++) {
        gy_ticks t = arrival(p, task, d, &a);
        last = t > last ? t : last;
    }
    return last;
}

/* ---- one list, one task, many memories ---- */

/*
 * A policy asks for one task with each memory there is. What may come last is looked at first then, and what cannot
 * come later than what is known already is not looked at: of many parts that were made at about the same time, few are.
 */

static bool find_slowest(const gy_plan *p, gy_arrivals *x, gy_source *s)
{
    uint64_t key = gy_hash64((uint64_t)s->bytes) + s->memory, known;
    if (!gy_map_get(&x->slowest, key, &known)) {
        gy_ticks most = 0;
        for (uint32_t m = 0; m < p->machine->memories; m++) {
            gy_ticks t = x->worker[m] ? gy_transfer_time(p, s->memory, m, s->bytes) : 0;
            most = t > most ? t : most;
        }
        known = (uint64_t)most;
        if (!gy_map_put(&x->slowest, key, known))
            return false;
    }
    s->latest = s->ready + (gy_ticks)known;
    return true;
}

static bool add_source(const gy_plan *p, gy_arrivals *x, gy_ticks ready, uint32_t memory, int64_t bytes)
{
    gy_source s = { .ready = ready, .bytes = bytes, .memory = memory };
    return !bytes || (find_slowest(p, x, &s) && gy_vec_push(&x->source, s));
}

static bool add_team(const gy_plan *p, gy_arrivals *x, uint32_t task, uint32_t from, const gy_team *team)
{
    bool done = true;
    find_parts(p, x, task, from);
    for (uint32_t i = 0; i < x->parts && done; i++)
        done = add_source(p, x, p->placed.finish[from], p->machine->device[team->device[x->part[i].rank]].memory,
                          x->part[i].bytes);
    return done;
}

static bool add_dep(const gy_plan *p, gy_arrivals *x, uint32_t task, const gy_dep *dep)
{
    gy_ticks made = p->placed.finish[dep->from];
    if (p->placed.device[dep->from] == GY_NONE)
        return true;
    gy_source here = { .ready = made, .latest = made, .memory = memory_of(p, dep->from) };
    if (is_only_here(p, task, dep))
        return gy_vec_push(&x->source, here);
    x->made = made > x->made ? made : x->made;
    if (!(dep->kinds & GY_DEP_DATA) || (p->placed.anywhere && p->placed.anywhere[p->flow->task[dep->from].node]))
        return true;
    const gy_team *team = gy_plan_team(p, dep->from);
    return team ? add_team(p, x, task, dep->from, team) : add_source(p, x, made, memory_of(p, dep->from), dep->bytes);
}

static int by_latest(const void *a, const void *b)
{
    const gy_source *x = a, *y = b;
    return x->latest > y->latest ? -1 : x->latest < y->latest;
}

static bool list_sources(const gy_plan *p, gy_arrivals *x, uint32_t task)
{
    size_t count = 0;
    x->source.count = 0;
    x->made = 0;
    for (const gy_dep *d = gy_deps_begin(p->flow, task); d < gy_deps_end(p->flow, task); d++)
        if (!add_dep(p, x, task, d))
            return false;
    for (size_t i = 0; i < x->source.count; i++)
        if (x->source.at[i].latest > x->made)
            x->source.at[count++] = x->source.at[i];
    x->source.count = count;
    if (count > 1)
        qsort(x->source.at, count, sizeof *x->source.at, by_latest);
    x->listed = task;
    return true;
}

static gy_ticks last_of_sources(const gy_plan *p, const gy_arrivals *x, uint32_t memory)
{
    gy_ticks last = x->made;
    for (size_t i = 0; i < x->source.count && x->source.at[i].latest > last; i++) {
        const gy_source *s = &x->source.at[i];
        gy_ticks t = s->ready;
        if (s->bytes)
            t += gy_transfer_time(p, s->memory, memory, s->bytes);
        else if (s->memory != memory)
            continue;
        last = t > last ? t : last;
    }
    return last;
}

/* A task that is asked for once is not worth a list. */
static gy_ticks ready_of(const gy_plan *p, gy_arrivals *x, uint32_t task, uint32_t memory)
{
    bool again = x->asked == task && x->worker[memory];
    x->asked = task;
    if (again && x->listed != task)
        x->failed = !list_sources(p, x, task) || x->failed;
    if (again && x->listed == task)
        return last_of_sources(p, x, memory);
    return last_arrival(p, task, memory);
}

/* ---- lists that tasks share ---- */

/* A task that says `after` waits where others with the same predecessors do not. */
static bool says_after(const gy_plan *p, const gy_followers *f, uint32_t list)
{
    for (size_t i = f->member_first[list]; i < f->member_first[list + 1]; i++)
        if (gy_plan_node(p, f->member[i])->afters)
            return true;
    return false;
}

static bool has_team(const gy_plan *p, uint32_t list)
{
    const gy_flow *f = p->flow;
    for (size_t d = f->dep_first[list]; d < f->dep_first[list + 1]; d++)
        if (gy_plan_team(p, f->dep[d].from))
            return true;
    return false;
}

static uint32_t number_rows(gy_arrivals *x, const gy_plan *p)
{
    const gy_flow *f = p->flow;
    uint32_t rows = 0;
    for (uint32_t l = 0; l < f->lists; l++) {
        size_t members = x->follower.member_first[l + 1] - x->follower.member_first[l];
        x->row[l] = members > 1 && !has_team(p, l) && !says_after(p, &x->follower, l) ? rows++ : GY_NONE;
    }
    return rows;
}

static bool make_parts(gy_arrivals *x, const gy_plan *p)
{
    uint32_t most = 0;
    for (uint32_t t = 0; t < p->flow->tasks; t++) {
        uint32_t count = gy_plan_team(p, t) ? gy_plan_node(p, t)->accesses : 0;
        most = count > most ? count : most;
    }
    x->task = x->from = GY_NONE;
    x->part = most ? gy_calloc(most, sizeof *x->part) : NULL;
    return !most || x->part;
}

bool gy_arrivals_init(gy_arrivals *arrivals, const gy_plan *p)
{
    gy_arrivals *x = arrivals;
    x->asked = x->listed = GY_NONE;
    x->worker = gy_calloc((size_t)p->machine->memories + 1, sizeof *x->worker);
    if (!x->worker || !make_parts(x, p))
        return false;
    for (uint32_t d = 0; d < p->workers; d++)
        x->worker[p->machine->device[d].memory] = 1;
    if (p->flow->lists == p->flow->tasks)
        return true; /* no list is shared */
    x->row = gy_calloc((size_t)p->flow->lists + 1, sizeof *x->row);
    if (!gy_followers_make(&x->follower, p->flow) || !x->row)
        return false;
    size_t entries = (size_t)number_rows(x, p) * p->machine->memories;
    x->at = gy_calloc(entries + 1, sizeof *x->at);
    for (size_t i = 0; x->at && i < entries; i++)
        x->at[i] = UNKNOWN;
    return x->at;
}

void gy_arrivals_free(gy_arrivals *arrivals)
{
    gy_free(arrivals->row);
    gy_free(arrivals->at);
    gy_free(arrivals->part);
    gy_free(arrivals->worker);
    gy_vec_free(&arrivals->source);
    gy_map_free(&arrivals->slowest);
    gy_followers_free(&arrivals->follower);
    *arrivals = (gy_arrivals){ 0 };
}

void gy_arrivals_changed(gy_plan *p, uint32_t task)
{
    gy_arrivals *x = p->placed.arrivals;
    x->asked = x->listed = GY_NONE;
    if (!x->row)
        return;
    for (size_t i = x->follower.list_first[task]; i < x->follower.list_first[task + 1]; i++) {
        uint32_t row = x->row[x->follower.list[i]], memories = p->machine->memories;
        for (uint32_t m = 0; row != GY_NONE && m < memories; m++)
            x->at[(size_t)row * memories + m] = UNKNOWN;
    }
}

gy_ticks gy_arrivals_ready(const gy_plan *p, uint32_t task, uint32_t memory)
{
    gy_arrivals *x = p->placed.arrivals;
    uint32_t row = x->row ? x->row[p->flow->list[task]] : GY_NONE;
    if (row == GY_NONE)
        return ready_of(p, x, task, memory);
    gy_ticks *known = &x->at[(size_t)row * p->machine->memories + memory];
    if (*known == UNKNOWN)
        *known = ready_of(p, x, task, memory);
    return *known;
}
