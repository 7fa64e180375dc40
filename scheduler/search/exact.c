/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/exact.h"

#include "base/error.h"
#include "scheduler/cost/cost.h"
#include "scheduler/plan/planning.h"
#include <string.h>

#define SEEN_BITS 18 /* slots of the table of states; a newer state takes the place of an older one */

typedef struct child {
    gy_ticks least, start, finish;
    uint32_t task, device;
} child;

typedef struct seen {
    uint64_t key[2];
    gy_ticks makespan;
} seen;

typedef struct exact {
    const gy_model *m;
    gy_candidate *best;
    uint64_t budget, states;
    bool stopped;
    uint64_t need[GY_EXACT_TASKS];  /* predecessors */
    uint64_t waits[GY_EXACT_TASKS]; /* successors */
    uint64_t twins[GY_EXACT_TASKS]; /* those of lower numbers that are as good as it, while they have no place */
    gy_ticks fastest[GY_EXACT_TASKS];
    uint32_t *alike; /* per device: the first one that it could change places with */
    uint32_t useful; /* devices that can run something */
    child *children; /* tasks x tasks x devices: one row a depth */
    seen *table;

    /* the state */
    uint64_t done;
    uint32_t depth, order[GY_EXACT_TASKS], device[GY_EXACT_TASKS];
    gy_ticks finish[GY_EXACT_TASKS], *free_at, last_start, makespan, left; /* left: work not yet placed */
    uint64_t *placed;                                                      /* per device: its tasks */
} exact;

bool gy_exact_can(const gy_model *m)
{
    return m->tasks && m->tasks <= GY_EXACT_TASKS && !m->team && !m->bound_units && !m->shares && !m->overlong &&
           !gy_plan_may_batch(m->plan);
}

/* ---- devices that are alike ---- */

static bool could_swap(const gy_model *m, uint32_t a, uint32_t b)
{
    const uint32_t *kind = m->kind;
    size_t n = m->devices;
    if (kind[a * n + b] != kind[b * n + a] || !gy_model_alike_alone(m, a, b))
        return false;
    for (uint32_t d = 0; d < n; d++)
        if (d != a && d != b && (kind[a * n + d] != kind[b * n + d] || kind[d * n + a] != kind[d * n + b]))
            return false;
    return true;
}

static void find_alike(exact *x)
{
    for (uint32_t d = 0; d < x->m->devices; d++) {
        uint32_t first = 0;
        while (first < d && !(x->alike[first] == first && could_swap(x->m, first, d)))
            first++;
        x->alike[d] = first;
    }
}

/* ---- states ---- */

/* As in a decode. */
static gy_ticks arrival(const exact *x, const gy_arc *a, uint32_t device)
{
    const gy_model *m = x->m;
    if (a->size == GY_SIZE_HERE && !gy_model_is_near(m, x->device[a->task], device)) {
        uint32_t i = m->copied[a - m->pred];
        bool here = i != GY_NONE && gy_model_is_near(m, x->device[m->pred[i].task], device);
        return here ? arrival(x, &m->pred[i], x->device[a->task]) : 0;
    }
    return x->finish[a->task] + gy_model_move(x->m, a->size, x->device[a->task], device);
}

static gy_ticks ready_on(const exact *x, uint32_t task, uint32_t device)
{
    const gy_model *m = x->m;
    gy_ticks ready = gy_model_upload(m, task, device);
    for (size_t i = m->pred_first[task]; i < m->pred_first[task + 1]; i++) {
        gy_ticks t = arrival(x, &m->pred[i], device);
        ready = t > ready ? t : ready;
    }
    return ready;
}

/* Can it still matter when and where the task ended? */
static bool is_felt(const exact *x, uint32_t task)
{
    const gy_model *m = x->m;
    for (size_t i = m->succ_first[task]; i < m->succ_first[task + 1] && !m->copied; i++) {
        const gy_arc *a = &m->succ[i];
        for (uint32_t d = 0; d < m->devices && !(x->done >> a->task & 1); d++)
            if (x->finish[task] + gy_model_move(m, a->size, x->device[task], d) >= x->last_start)
                return true;
    }
    return m->copied;
}

/* Equal for states with the same future, whichever of the devices that are alike are used. No later task begins before
 * `last_start`, so what was free or arrived before that is all the same. Where rows are overwritten, a task may begin
 * before one that it has to come behind in the order; then `last_start` is 0 and says nothing. */
static void make_key(const exact *x, uint64_t key[2])
{
    uint64_t sum[2] = { 0, 0 };
    for (uint32_t d = 0; d < x->m->devices; d++) {
        gy_ticks free_at = x->free_at[d] < x->last_start ? -1 : x->free_at[d];
        uint64_t sign = gy_hash64((uint64_t)free_at * 31 + x->alike[d]), tasks = 0;
        for (uint64_t rest = x->placed[d]; rest; rest &= rest - 1) {
            uint32_t t = (uint32_t)__builtin_ctzll(rest);
            if (x->waits[t] & ~x->done && is_felt(x, t))
                tasks += gy_hash64(gy_hash64((uint64_t)x->finish[t]) + t);
        }
        sum[0] += gy_hash64(sign ^ tasks);
        sum[1] += gy_hash64(sign + tasks * 3 + 1);
    }
    uint64_t head = gy_hash64(x->done) + (uint64_t)x->last_start;
    key[0] = gy_hash64(sum[0] ^ gy_hash64(head));
    key[1] = gy_hash64(sum[1] + gy_hash64(head + 1));
}

static bool was_seen(exact *x)
{
    uint64_t key[2];
    make_key(x, key);
    seen *s = &x->table[key[0] >> (64 - SEEN_BITS)];
    if (s->key[0] == key[0] && s->key[1] == key[1] && s->makespan <= x->makespan)
        return true;
    *s = (seen){ { key[0], key[1] }, x->makespan };
    return false;
}

/* ---- bounds ---- */

static bool is_ready(const exact *x, uint32_t task)
{
    return !(x->done >> task & 1) && !(x->need[task] & ~x->done);
}

/* Is there one that is ready, too, and as good in every way? */
static bool has_twin(const exact *x, uint32_t task)
{
    for (uint64_t rest = x->twins[task] & ~x->done; rest; rest &= rest - 1)
        if (is_ready(x, (uint32_t)__builtin_ctzll(rest)))
            return true;
    return false;
}

/* No completion of the state ends earlier. */
static gy_ticks least_end(const exact *x)
{
    const gy_model *m = x->m;
    gy_ticks least = x->makespan, busy = x->left;
    for (uint32_t t = 0; t < m->tasks; t++) {
        gy_ticks best = GY_TICKS_MAX;
        for (uint32_t d = 0; d < m->devices && is_ready(x, t); d++) {
            gy_ticks time = gy_model_time(m, t, d), start = time < GY_TICKS_MAX ? ready_on(x, t, d) : 0;
            start = time && x->free_at[d] > start ? x->free_at[d] : start;
            start = x->last_start > start ? x->last_start : start;
            if (time < GY_TICKS_MAX && start + time + m->tail[(size_t)t * m->devices + d] < best)
                best = start + time + m->tail[(size_t)t * m->devices + d];
        }
        least = best < GY_TICKS_MAX && best > least ? best : least;
    }
    uint32_t idle = m->devices - x->useful; /* a device that can run nothing would be idle for ever */
    for (uint32_t d = 0; d < m->devices; d++)
        busy += x->free_at[d] > x->last_start ? x->free_at[d] : x->last_start;
    busy -= x->last_start * idle;
    gy_ticks spread = busy / x->useful + (busy % x->useful != 0);
    return gy_model_round(m, spread > least ? spread : least);
}

/* ---- the tree ---- */

static bool goes_before(const exact *x, const child *a, const child *b)
{
    const gy_model *m = x->m;
    if (a->least != b->least)
        return a->least < b->least;
    gy_ticks rest_a = m->tail[(size_t)a->task * m->devices + a->device] + a->finish - a->start;
    gy_ticks rest_b = m->tail[(size_t)b->task * m->devices + b->device] + b->finish - b->start;
    return rest_a > rest_b;
}

static void add_child(const exact *x, child *list, uint32_t *count, const child *c)
{
    uint32_t i = (*count)++;
    for (; i && goes_before(x, c, &list[i - 1]); i--)
        list[i] = list[i - 1];
    list[i] = *c;
}

/* An unused device is as good as any other unused one that is like it. */
static bool is_spare(const exact *x, uint32_t device)
{
    for (uint32_t d = x->alike[device]; d < device; d++)
        if (x->alike[d] == x->alike[device] && !x->placed[d] && !x->placed[device])
            return true;
    return false;
}

static uint32_t list_children(const exact *x, child *list)
{
    const gy_model *m = x->m;
    uint32_t count = 0;
    for (uint32_t t = 0; t < m->tasks; t++) {
        bool tried = is_ready(x, t) && !has_twin(x, t);
        for (uint32_t d = 0; d < m->devices && tried; d++) {
            gy_ticks time = gy_model_time(m, t, d);
            if (time >= GY_TICKS_MAX || is_spare(x, d))
                continue;
            child c = { .task = t, .device = d, .start = ready_on(x, t, d) };
            if (time && x->free_at[d] > c.start)
                c.start = x->free_at[d];
            c.finish = c.start + time;
            c.least = gy_model_round(m, c.finish + m->tail[(size_t)t * m->devices + d]);
            if (c.start >= x->last_start && c.least < x->best->model)
                add_child(x, list, &count, &c);
        }
    }
    return count;
}

static void save(exact *x)
{
    memcpy(x->best->order, x->order, x->m->tasks * sizeof *x->order);
    memcpy(x->best->device, x->device, x->m->tasks * sizeof *x->device);
    x->best->model = x->makespan;
}

static void visit(exact *x);

static void enter(exact *x, const child *c)
{
    gy_ticks free_at = x->free_at[c->device], last_start = x->last_start, makespan = x->makespan;
    gy_ticks end = c->finish + gy_model_fetch(x->m, c->task, c->device);
    x->order[x->depth++] = c->task;
    x->device[c->task] = c->device;
    x->finish[c->task] = c->finish;
    x->free_at[c->device] = c->finish > c->start ? c->finish : free_at;
    x->placed[c->device] |= UINT64_C(1) << c->task;
    x->done |= UINT64_C(1) << c->task;
    x->left -= x->fastest[c->task];
    x->last_start = x->m->copied ? 0 : c->start;
    x->makespan = end > makespan ? end : makespan;
    visit(x);
    x->makespan = makespan;
    x->last_start = last_start;
    x->left += x->fastest[c->task];
    x->done &= ~(UINT64_C(1) << c->task);
    x->placed[c->device] &= ~(UINT64_C(1) << c->task);
    x->free_at[c->device] = free_at;
    x->depth--;
}

static void visit(exact *x)
{
    const gy_model *m = x->m;
    if (x->depth == m->tasks) {
        if (x->makespan < x->best->model)
            save(x);
        return;
    }
    x->stopped = x->stopped || x->states >= x->budget || !gy_planning_step(x->m->plan->planning);
    if (x->stopped)
        return;
    x->states++;
    if (least_end(x) >= x->best->model || was_seen(x))
        return;
    child *list = &x->children[(size_t)x->depth * m->tasks * m->devices];
    uint32_t count = list_children(x, list);
    for (uint32_t i = 0; i < count && !x->stopped && x->best->model > m->bound; i++)
        if (list[i].least < x->best->model)
            enter(x, &list[i]);
}

/* ---- the whole ---- */

static void describe(exact *x)
{
    const gy_model *m = x->m;
    for (uint32_t t = 0; t < m->tasks; t++) {
        for (size_t i = m->pred_first[t]; i < m->pred_first[t + 1]; i++) {
            x->need[t] |= UINT64_C(1) << m->pred[i].task;
            x->waits[m->pred[i].task] |= UINT64_C(1) << t;
            if (m->copied && m->copied[i] != GY_NONE)
                x->waits[m->pred[m->copied[i]].task] |= UINT64_C(1) << t;
        }
        x->fastest[t] = GY_TICKS_MAX;
        for (uint32_t d = 0; d < m->devices; d++)
            if (gy_model_time(m, t, d) < x->fastest[t])
                x->fastest[t] = gy_model_time(m, t, d);
        x->left += x->fastest[t];
    }
    for (uint32_t d = 0; d < m->devices; d++) {
        bool useful = false;
        for (uint32_t t = 0; t < m->tasks; t++)
            useful = useful || gy_model_time(m, t, d) < GY_TICKS_MAX;
        x->useful += useful;
    }
    find_alike(x);
    gy_exact_find_twins(m, x->twins);
}

gantry_status gy_exact_run(const gy_model *m, gy_candidate *c, uint64_t budget, uint64_t *states, bool *proved,
                           gantry_error *err)
{
    exact *x = gy_calloc(1, sizeof *x);
    gantry_status status = GANTRY_OK;
    if (!x)
        return gy_fail_nomem(err);
    x->m = m;
    x->best = c;
    x->budget = budget;
    x->alike = gy_calloc(m->devices, sizeof *x->alike);
    x->free_at = gy_calloc(m->devices, sizeof *x->free_at);
    x->placed = gy_calloc(m->devices, sizeof *x->placed);
    x->children = gy_calloc((size_t)m->tasks * m->tasks * m->devices, sizeof *x->children);
    x->table = gy_calloc((size_t)1 << SEEN_BITS, sizeof *x->table);
    if (x->alike && x->free_at && x->placed && x->children && x->table) {
        describe(x);
        if (c->model > m->bound)
            visit(x);
        *states = x->states;
        *proved = !x->stopped;
    } else {
        status = gy_fail_nomem(err);
    }
    gy_free(x->alike);
    gy_free(x->free_at);
    gy_free(x->placed);
    gy_free(x->children);
    gy_free(x->table);
    gy_free(x);
    return status;
}

gantry_status gy_exact_refuse(uint32_t tasks, uint64_t states, gy_ticks found, gy_ticks bound, gantry_error *err)
{
    double over = bound ? 100.0 * (double)(found - bound) / (double)bound : 0;
    return gy_fail(
        err, GANTRY_E_UNSUPPORTED, NULL,
        "the optimum of %u tasks was not proved within %llu states: the best that was found takes %.3f us, and "
        "no schedule takes less than %.3f us, so it is at most %.1f %% over the optimum; leave \"optimal\" off to have "
        "a schedule, which is searched for in more ways",
        tasks, (unsigned long long)states, gy_ticks_to_us(found), gy_ticks_to_us(bound), over);
}
