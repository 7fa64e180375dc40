/* SPDX-License-Identifier: Apache-2.0 */
/**
 * For graphs that do not fit the memories as others place them, and for pipelines, whose nodes have their devices:
 * lists tasks in the order of time, and of those that a device could begin next takes the one that leaves least in its
 * memory. A task that makes more than there is room for waits until something has ended. In a training pipeline that is
 * one forward, one backward ("1F1B"; D. Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters
 * Using Megatron-LM, SC 2021): a backward pass, which lets go of activations, goes before a forward pass, which makes
 * some, and no more batches are under way than fit.
 *
 * A gradient of weights, which nobody waits for, frees nothing and comes when there is nothing else to do, as in
 * zero-bubble pipelines (P. Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024). So this order is worth trying
 * where there is room for everything, too.
 *
 * Tasks that leave more in a memory than they found have to leave room for what the others bring along, or everything
 * would wait for what nothing has room to free.
 *
 * The account is coarse: runs of rows as accesses name them. A run is in a memory from the first task there that uses
 * it, until nobody will, or until it is elsewhere too and no task that must run there will use it. States and constants
 * stay. Whether it fits in the end is for the packer to say.
 *
 * Cost: tasks x (ready tasks x devices).
 */
#include "scheduler/policies/frugal.h"

#include "base/error.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"
#include <stdlib.h>

/* Rows of a value, as some access names them. */
typedef struct run {
    uint64_t bytes;
    uint32_t value;
    bool stays;
} run;

/* Memory that comes free when a task ends. */
typedef struct ending {
    gy_ticks time;
    uint32_t task;
} ending;

typedef struct frugal {
    gy_plan *p;
    gy_ready ready;
    uint32_t memories;
    uint32_t *run_of; /* per flow access */
    GY_VEC(run) runs;
    uint32_t *left;         /* per run: tasks that use it and have not ended */
    uint32_t *tied;         /* runs x memories: those of them that must run there */
    bool *held;             /* runs x memories */
    int64_t *room;          /* per memory: bytes left, below 0 where it was too much */
    int64_t *spare;         /* per memory: most that a task that must run there is the first to bring */
    gy_ticks *end;          /* per device: of its last task */
    gy_ticks *after;        /* per task: not before, for lack of room */
    GY_VEC(uint32_t) open;  /* tasks that are ready */
    GY_VEC(ending) endings; /* of tasks under way */
} frugal;

/* A ready task where it would end first. */
typedef struct choice {
    size_t place; /* in `open` */
    gy_try at;
    int64_t grows; /* bytes that are more when it has ended than before it began */
    int priority;
    bool fits;
} choice;

/* ---- runs of rows ---- */

static const gy_access *access_at(const frugal *f, size_t k)
{
    return gy_flow_access_of(f->p->graph, f->p->flow, k);
}

static int by_rows(const void *x, const void *y, void *context)
{
    const frugal *f = context;
    size_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    const gy_access *a = access_at(f, i), *b = access_at(f, k);
    uint32_t v = f->p->flow->access[i].value, w = f->p->flow->access[k].value;
    if (v != w)
        return v < w ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    if (a->last != b->last)
        return a->last < b->last ? -1 : 1;
    return i < k ? -1 : i > k;
}

static bool add_run(frugal *f, size_t access)
{
    const gy_access *a = access_at(f, access);
    uint32_t value = f->p->flow->access[access].value;
    const gy_buffer *b = gy_value_buffer(f->p->graph, f->p->flow, value);
    run new = { .value = value, .stays = b->cls == GANTRY_STATE || b->cls == GANTRY_CONST };
    new.bytes = a->first < a->last ? (uint64_t)gy_buffer_span(b, a->first, a->last) : 0;
    return gy_vec_push(&f->runs, new);
}

static bool find_runs(frugal *f)
{
    size_t count = f->p->flow->accesses;
    uint32_t *sorted = gy_calloc(count + 1, sizeof *sorted);
    f->run_of = gy_calloc(count + 1, sizeof *f->run_of);
    bool done = sorted && f->run_of;
    for (uint32_t i = 0; i < count && done; i++)
        sorted[i] = i;
    if (done)
        qsort_r(sorted, count, sizeof *sorted, by_rows, f);
    for (size_t i = 0; i < count && done; i++) {
        const gy_access *a = access_at(f, sorted[i]), *b = i ? access_at(f, sorted[i - 1]) : NULL;
        bool same = b && a->first == b->first && a->last == b->last &&
                    f->p->flow->access[sorted[i]].value == f->p->flow->access[sorted[i - 1]].value;
        done = same || add_run(f, sorted[i]);
        f->run_of[sorted[i]] = (uint32_t)f->runs.count - 1;
    }
    gy_free(sorted);
    return done;
}

/* The memory in which the task must run; GY_NONE: there are several. */
static uint32_t only_memory(const frugal *f, uint32_t task)
{
    uint32_t only = GY_NONE;
    for (uint32_t d = 0; d < f->p->devices; d++) {
        uint32_t memory = f->p->machine->device[d].memory;
        if (gy_plan_time(f->p, f->p->flow->task[task].node, d) >= GY_TICKS_MAX || memory == only)
            continue;
        if (only != GY_NONE)
            return GY_NONE;
        only = memory;
    }
    return only;
}

static uint32_t run_at(const frugal *f, uint32_t task, uint32_t k)
{
    return f->run_of[f->p->flow->task[task].access + k];
}

static void count_users(frugal *f)
{
    for (uint32_t t = 0; t < f->p->flow->tasks; t++) {
        uint32_t memory = only_memory(f, t);
        int64_t brings = 0;
        for (uint32_t k = 0; k < gy_plan_node(f->p, t)->accesses; k++) {
            uint32_t r = run_at(f, t, k);
            f->left[r]++;
            if (memory != GY_NONE && f->tied[r * f->memories + memory]++ == 0 && !f->runs.at[r].stays)
                brings += (int64_t)f->runs.at[r].bytes;
        }
        if (memory != GY_NONE && brings > f->spare[memory])
            f->spare[memory] = brings;
    }
}

/* ---- the account ---- */

static void set_held(frugal *f, uint32_t r, uint32_t memory, bool held)
{
    bool *now = &f->held[r * f->memories + memory];
    if (*now != held)
        f->room[memory] += held ? -(int64_t)f->runs.at[r].bytes : (int64_t)f->runs.at[r].bytes;
    *now = held;
}

/* Others need not keep what this memory has from now on, unless somebody has to use it there. */
static void begin_task(frugal *f, uint32_t task, uint32_t memory)
{
    for (uint32_t k = 0; k < gy_plan_node(f->p, task)->accesses; k++) {
        uint32_t r = run_at(f, task, k);
        set_held(f, r, memory, true);
        for (uint32_t m = 0; m < f->memories && !f->runs.at[r].stays; m++)
            if (m != memory && !f->tied[r * f->memories + m])
                set_held(f, r, m, false);
    }
}

static void end_task(frugal *f, uint32_t task)
{
    uint32_t memory = only_memory(f, task);
    for (uint32_t k = 0; k < gy_plan_node(f->p, task)->accesses; k++) {
        uint32_t r = run_at(f, task, k);
        f->left[r]--;
        if (memory != GY_NONE)
            f->tied[r * f->memories + memory]--;
        for (uint32_t m = 0; m < f->memories && !f->left[r] && !f->runs.at[r].stays; m++)
            set_held(f, r, m, false);
    }
}

static void end_until(frugal *f, gy_ticks time)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->endings.count; i++)
        if (f->endings.at[i].time <= time)
            end_task(f, f->endings.at[i].task);
        else
            f->endings.at[kept++] = f->endings.at[i];
    f->endings.count = kept;
}

/* When something ends next; GY_TICKS_MAX: nothing is under way. */
static gy_ticks next_ending(const frugal *f)
{
    gy_ticks next = GY_TICKS_MAX;
    for (size_t i = 0; i < f->endings.count; i++)
        next = f->endings.at[i].time < next ? f->endings.at[i].time : next;
    return next;
}

/* Bytes it takes to begin with; *grows: less what it lets go of in the end. */
static int64_t bytes_of(const frugal *f, uint32_t task, uint32_t memory, int64_t *grows)
{
    int64_t needs = 0, lets_go = 0;
    for (uint32_t k = 0; k < gy_plan_node(f->p, task)->accesses; k++) {
        uint32_t r = run_at(f, task, k);
        bool again = false; /* an access before this one names the same rows */
        for (uint32_t j = 0; j < k && !again; j++)
            again = run_at(f, task, j) == r;
        if (again)
            continue;
        needs += f->held[r * f->memories + memory] ? 0 : (int64_t)f->runs.at[r].bytes;
        lets_go += f->left[r] == 1 && !f->runs.at[r].stays ? (int64_t)f->runs.at[r].bytes : 0;
    }
    *grows = needs - lets_go;
    return needs;
}

/* ---- choosing ---- */

/* Behind what the device has, so that time goes one way. */
static choice look(frugal *f, size_t place)
{
    uint32_t task = f->open.at[place];
    choice best = { .place = place, .at = { .device = GY_NONE, .finish = GY_TICKS_MAX } };
    for (uint32_t d = 0; d < f->p->devices && !gy_plan_team(f->p, task); d++) {
        if (!gy_place_allowed(f->p, task, d))
            continue;
        gy_try t = gy_place_try(f->p, task, d);
        gy_ticks start = t.ready > f->end[d] ? t.ready : f->end[d];
        start = f->after[task] > start ? f->after[task] : start;
        t.finish = start + (t.finish - t.start);
        t.start = start;
        if (best.at.device == GY_NONE || t.finish < best.at.finish)
            best.at = t;
    }
    if (best.at.device ==
        GY_NONE) { /* a collective goes where its ranks are; else placing says that there is no place */
        best.at.start = best.at.finish = 0;
        best.fits = true;
    } else {
        uint32_t memory = f->p->machine->device[best.at.device].memory;
        int64_t needs = bytes_of(f, task, memory, &best.grows);
        best.fits = needs + (best.grows > 0 ? f->spare[memory] : 0) <= f->room[memory];
    }
    best.priority = gy_priority(f->p, task);
    return best;
}

static bool is_better(const frugal *f, const choice *a, const choice *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->grows != b->grows)
        return a->grows < b->grows;
    if (a->at.start != b->at.start)
        return a->at.start < b->at.start;
    return f->open.at[a->place] < f->open.at[b->place];
}

static bool is_sooner(const frugal *f, const choice *a, const choice *b)
{
    return a->at.start != b->at.start ? a->at.start < b->at.start : is_better(f, a, b);
}

/* The task that can begin first, if there is room (or `anyway`); or another that its device could begin then or a
 * little later. *found: there is one. */
static choice choose(const frugal *f, const choice *all, bool anyway, bool *found)
{
    choice first = { .at = { .start = GY_TICKS_MAX } };
    *found = false;
    for (size_t i = 0; i < f->open.count; i++)
        if ((all[i].fits || anyway) && (!*found || is_sooner(f, &all[i], &first))) {
            first = all[i];
            *found = true;
        }
    choice best = first;
    gy_ticks late = first.at.start + (first.at.finish - first.at.start) / 8;
    for (size_t i = 0; *found && i < f->open.count; i++)
        if (all[i].at.device == first.at.device && all[i].fits == first.fits && all[i].at.start <= late &&
            is_better(f, &all[i], &best))
            best = all[i];
    return best;
}

static gantry_status place_task(frugal *f, const choice *c, gantry_error *err)
{
    uint32_t task = f->open.at[c->place];
    gy_plan *p = f->p;
    gantry_status status =
        c->at.device == GY_NONE ? gy_place_earliest(p, task, err) : gy_place_at(p, task, &c->at, err);
    if (status)
        return status;
    ending e = { p->placed.finish[task], task };
    uint32_t device = p->placed.device[task];
    gy_ticks end = p->placed.start[task] + gy_plan_hold(p, p->flow->task[task].node, device);
    f->end[device] = end > f->end[device] ? end : f->end[device];
    begin_task(f, task, p->machine->device[device].memory);
    f->open.at[c->place] = *gy_vec_last(&f->open);
    f->open.count--;
    bool done = gy_vec_push(&f->endings, e);
    gy_ready_placed(&f->ready, task);
    for (size_t i = 0; i < f->ready.count && done; i++)
        done = gy_vec_push(&f->open, f->ready.now[i]);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

/* Something ends: what had no room may have it from then on. */
static void go_on(frugal *f, const choice *all, gy_ticks next)
{
    for (size_t i = 0; i < f->open.count; i++)
        if (!all[i].fits && all[i].at.start < next)
            f->after[f->open.at[i]] = next;
    end_until(f, next);
}

static gantry_status place_all(frugal *f, gantry_error *err)
{
    choice *all = gy_calloc((size_t)f->p->flow->tasks + 1, sizeof *all);
    gantry_status status = all ? GANTRY_OK : gy_fail_nomem(err);
    while (!status && f->open.count) {
        bool found;
        for (size_t i = 0; i < f->open.count; i++)
            all[i] = look(f, i);
        gy_ticks next = next_ending(f);
        choice c = choose(f, all, false, &found);
        if (next < GY_TICKS_MAX && (!found || next <= c.at.start)) {
            go_on(f, all, next);
            continue;
        }
        if (!found)
            c = choose(f, all, true, &found);
        status = place_task(f, &c, err);
    }
    gy_free(all);
    return status;
}

static bool set_up(frugal *f)
{
    gy_plan *p = f->p;
    size_t tasks = (size_t)p->flow->tasks + 1;
    if (!gy_ready_init(&f->ready, p) || !find_runs(f))
        return false;
    size_t runs = f->runs.count + 1;
    f->left = gy_calloc(runs, sizeof *f->left);
    f->tied = gy_calloc(runs * f->memories, sizeof *f->tied);
    f->held = gy_calloc(runs * f->memories, sizeof *f->held);
    f->room = gy_calloc(f->memories, sizeof *f->room);
    f->spare = gy_calloc(f->memories, sizeof *f->spare);
    f->end = gy_calloc(p->devices, sizeof *f->end);
    f->after = gy_calloc(tasks, sizeof *f->after);
    bool done = f->left && f->tied && f->held && f->room && f->spare && f->end && f->after;
    for (uint32_t m = 0; m < f->memories && done; m++)
        f->room[m] = p->capacity[m] < INT64_MAX ? (int64_t)p->capacity[m] : INT64_MAX;
    if (done)
        count_users(f);
    for (uint32_t t = 0; t < p->flow->tasks && done; t++)
        done = !gy_ready_is(&f->ready, t) || gy_vec_push(&f->open, t);
    return done;
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    frugal f = { .p = p, .memories = p->machine->memories };
    gantry_status status = set_up(&f) ? place_all(&f, err) : gy_fail_nomem(err);
    gy_ready_free(&f.ready);
    gy_free(f.run_of);
    gy_vec_free(&f.runs);
    gy_free(f.left);
    gy_free(f.tied);
    gy_free(f.held);
    gy_free(f.room);
    gy_free(f.spare);
    gy_free(f.end);
    gy_free(f.after);
    gy_vec_free(&f.open);
    gy_vec_free(&f.endings);
    return status;
}

const gy_policy gy_policy_frugal = {
    .name = "frugal",
    .summary = "what frees memory first; what has no room waits",
    .place = place,
    .largest = GY_MIDDLE_GRAPHS,
};
