/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/anneal.h"

#include "base/error.h"
#include "scheduler/plan/planning.h"
#include <string.h>

#define HALVINGS  8  /* of the temperature in a run */
#define CHAIN_AGE 16 /* accepted steps after which the critical chain is looked for again */
#define PICKS     8  /* tasks looked at for a step before this one is given up */

gantry_status gy_anneal_init(gy_anneal *a, const gy_model *m, uint64_t seed, gantry_error *err)
{
    size_t n = (size_t)m->tasks + 1;
    *a = (gy_anneal){ .m = m, .random = { seed } };
    gy_anneal_unfold(a);
    GY_TRY(gy_decode_init(&a->decode, m, err));
    a->order = gy_calloc(n, sizeof *a->order);
    a->position = gy_calloc(n, sizeof *a->position);
    a->chain = gy_calloc(n, sizeof *a->chain);
    return a->order && a->position && a->chain ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_anneal_unfold(gy_anneal *a)
{
    a->unit = a->m->unit;
    a->member = a->m->member;
    a->first_member = a->m->first_member;
    a->folded = false;
}

void gy_anneal_fold(gy_anneal *a, const gy_folding *f)
{
    a->unit = f->unit;
    a->member = f->member;
    a->first_member = f->first_member;
    a->folded = true;
}

void gy_anneal_free(gy_anneal *a)
{
    gy_decode_free(&a->decode);
    gy_free(a->order);
    gy_free(a->position);
    gy_free(a->chain);
}

/* ---- steps ---- */

typedef struct step {
    uint32_t task, from, to;  /* positions; from == to: stays */
    uint32_t unit[2], old[2]; /* units that change their device, or GY_NONE; the devices they had */
} step;

static void shift(gy_anneal *a, uint32_t from, uint32_t to)
{
    uint32_t task = a->order[from];
    for (; from < to; from++) {
        a->order[from] = a->order[from + 1];
        a->position[a->order[from]] = from;
    }
    for (; from > to; from--) {
        a->order[from] = a->order[from - 1];
        a->position[a->order[from]] = from;
    }
    a->order[to] = task;
    a->position[task] = to;
}

static void set_device(gy_anneal *a, uint32_t unit, uint32_t device)
{
    for (size_t i = a->first_member[unit]; i < a->first_member[unit + 1]; i++)
        a->decode.device[a->member[i]] = device;
}

/* Another place between its predecessors and its successors. */
static bool propose_place(gy_anneal *a, step *s)
{
    const gy_model *m = a->m;
    uint32_t low = 0, high = m->tasks - 1;
    for (size_t i = m->pred_first[s->task]; i < m->pred_first[s->task + 1]; i++)
        if (a->position[m->pred[i].task] >= low)
            low = a->position[m->pred[i].task] + 1;
    for (size_t i = m->succ_first[s->task]; i < m->succ_first[s->task + 1]; i++)
        if (a->position[m->succ[i].task] <= high)
            high = a->position[m->succ[i].task] - 1;
    if (low >= high)
        return false;
    s->to = low + gy_random_below(&a->random, high - low);
    s->to += s->to >= s->from;
    return true;
}

/* A task that it exchanges data with, or GY_NONE; `random` is below 2^32. */
static uint32_t partner(const gy_anneal *a, uint32_t task, uint64_t random)
{
    const gy_model *m = a->m;
    size_t preds = m->pred_first[task + 1] - m->pred_first[task];
    size_t succs = m->succ_first[task + 1] - m->succ_first[task];
    if (preds + succs == 0)
        return GY_NONE;
    size_t i = (size_t)(random * (preds + succs) >> 32);
    return i < preds ? m->pred[m->pred_first[task] + i].task : m->succ[m->succ_first[task] + i - preds].task;
}

/* The device of a task that it exchanges data with, or any. */
static uint32_t propose_device(gy_anneal *a, uint32_t task)
{
    uint64_t random = gy_random_next(&a->random);
    uint32_t other = random & 1 ? GY_NONE : partner(a, task, random >> 32);
    if (other != GY_NONE)
        return a->decode.device[other];
    if (a->m->like)
        return a->m->first_like[(random >> 32) * a->m->kinds_of_device >> 32];
    return (uint32_t)((random >> 32) * a->m->devices >> 32);
}

/* Is some task of a group that the unit is kept away from on the device? */
static bool is_kept_apart(const gy_anneal *a, uint32_t unit, uint32_t device)
{
    const gy_model *m = a->m;
    const gy_plan *p = m->plan;
    uint32_t task = m->member[m->first_member[unit]], node = p->flow->task[task].node;
    const uint32_t *list = p->cost.pinned[node] ? p->cost.apart[p->cost.group[node]] : NULL;
    for (uint32_t i = 0; list && i < list[0]; i++)
        for (uint32_t t = 0; t < m->tasks; t++)
            if (p->cost.group[p->flow->task[t].node] == list[i + 1] && a->decode.device[t] == device)
                return true;
    return false;
}

/* Moves the unit of a task, as the first or second of the step; false: it cannot go there. */
static bool move_unit(gy_anneal *a, step *s, int which, uint32_t task, uint32_t device)
{
    const gy_model *m = a->m;
    uint32_t unit = a->unit[task];
    if (gy_model_is_team(m, task) || gy_model_is_like(m, device, a->decode.device[task]))
        return false;
    if (gy_model_time(m, task, device) >= GY_TICKS_MAX || (m->bound_units && is_kept_apart(a, unit, device)))
        return false;
    s->unit[which] = unit;
    s->old[which] = a->decode.device[task];
    set_device(a, unit, device);
    return true;
}

/* Half of the time somebody that it exchanges data with comes along. */
static bool propose_unit(gy_anneal *a, step *s)
{
    uint32_t device = propose_device(a, s->task);
    if (!move_unit(a, s, 0, s->task, device))
        return false;
    uint64_t random = gy_random_next(&a->random);
    uint32_t other = random & 1 ? partner(a, s->task, random >> 32) : GY_NONE;
    if (other != GY_NONE)
        (void)move_unit(a, s, 1, other, device);
    return true;
}

/* Two units change places. */
static bool propose_exchange(gy_anneal *a, step *s)
{
    uint32_t other = gy_random_below(&a->random, a->m->tasks);
    uint32_t here = a->decode.device[s->task], there = a->decode.device[other];
    if (here == there || !move_unit(a, s, 0, s->task, there))
        return false;
    (void)move_unit(a, s, 1, other, here);
    return true;
}

/* Makes a step; false: none was found. */
static bool make_step(gy_anneal *a, step *s)
{
    for (int i = 0; i < PICKS; i++) {
        uint64_t random = gy_random_next(&a->random);
        bool critical = random & 1 && a->chained;
        uint32_t pick = (uint32_t)((random >> 32) * (critical ? a->chained : a->m->tasks) >> 32);
        s->task = critical ? a->chain[pick] : pick;
        s->from = s->to = a->position[s->task];
        s->unit[0] = s->unit[1] = GY_NONE;
        bool exchanges = a->folded && !(random & 96);
        bool moved = !a->m->pool && random & 6 && (exchanges ? propose_exchange(a, s) : propose_unit(a, s));
        bool shifted = (a->m->pool || !moved || !(random & 24)) && propose_place(a, s);
        if (shifted)
            shift(a, s->from, s->to);
        if (moved || shifted)
            return true;
    }
    return false;
}

static void take_back(gy_anneal *a, const step *s)
{
    if (s->from != s->to)
        shift(a, s->to, s->from);
    for (int i = 1; i >= 0; i--)
        if (s->unit[i] != GY_NONE)
            set_device(a, s->unit[i], s->old[i]);
}

/* ---- what of a step a decode has to look at ---- */

typedef struct changed {
    uint32_t position; /* the first that is decoded otherwise */
    bool uploads;      /* are they sent otherwise? */
} changed;

static bool has_uploads(const gy_model *m, uint32_t task)
{
    return m->roads && m->roads->upload_first[task] < m->roads->upload_first[task + 1];
}

static void look_from(changed *c, uint32_t position)
{
    c->position = position < c->position ? position : c->position;
}

/* Uploads go in the order of tasks. */
static void look_at_order(const gy_anneal *a, const step *s, changed *c)
{
    uint32_t first = s->from < s->to ? s->from : s->to, last = s->from < s->to ? s->to : s->from;
    look_from(c, first);
    for (uint32_t k = first; k <= last && !c->uploads && has_uploads(a->m, s->task); k++)
        c->uploads = a->order[k] != s->task && has_uploads(a->m, a->order[k]);
}

/* Where contention counts, what its predecessors send to a task goes elsewhere with it. */
static void look_at_device(const gy_anneal *a, uint32_t task, changed *c)
{
    const gy_model *m = a->m;
    look_from(c, a->position[task]);
    for (size_t i = m->pred_first[task]; m->roads && i < m->pred_first[task + 1]; i++)
        look_from(c, a->position[m->pred[i].task]);
    c->uploads = c->uploads || has_uploads(m, task);
}

/* The makespan, and what lacks room added to it; where the makespan alone is above the limit, that does. */
static gy_ticks with_lack(gy_anneal *a, gy_ticks makespan, gy_ticks limit)
{
    if (!a->room || makespan > limit)
        return makespan;
    return gy_ticks_both(makespan, gy_room_lack(a->room, a->order, a->decode.device));
}

static gy_ticks decode(gy_anneal *a, const step *s, gy_ticks limit)
{
    const gy_model *m = a->m;
    changed c = { .position = m->tasks - 1 };
    if (s->from != s->to)
        look_at_order(a, s, &c);
    for (int i = 0; i < 2; i++)
        for (size_t k = s->unit[i] == GY_NONE ? 0 : a->first_member[s->unit[i]];
             s->unit[i] != GY_NONE && k < a->first_member[s->unit[i] + 1]; k++)
            look_at_device(a, a->member[k], &c);
    a->evaluations++;
    return with_lack(a, gy_decode_again(&a->decode, a->order, c.position, c.uploads, limit), limit);
}

/* Decodes what was loaded: steps are decoded from where they differ from it. */
static gy_ticks decode_all(gy_anneal *a)
{
    gy_ticks makespan = gy_decode_run(&a->decode, a->order, GY_TICKS_MAX);
    gy_decode_keep(&a->decode, a->order);
    a->chained = gy_decode_critical(&a->decode, a->chain);
    a->evaluations++;
    return with_lack(a, makespan, GY_TICKS_MAX);
}

/* ---- a run ---- */

static void load(gy_anneal *a, const gy_candidate *c)
{
    memcpy(a->order, c->order, a->m->tasks * sizeof *a->order);
    memcpy(a->decode.device, c->device, a->m->tasks * sizeof *c->device);
    for (uint32_t i = 0; i < a->m->tasks; i++)
        a->position[a->order[i]] = i;
    a->chained = 0;
}

static void save(const gy_anneal *a, gy_candidate *c, gy_ticks makespan)
{
    memcpy(c->order, a->order, a->m->tasks * sizeof *a->order);
    memcpy(c->device, a->decode.device, a->m->tasks * sizeof *c->device);
    c->model = makespan;
}

/* heat / 2^(HALVINGS i / budget), straight lines between powers. */
static gy_ticks cool(gy_ticks heat, uint64_t i, uint64_t budget)
{
    uint64_t x = (i << 16) / budget * HALVINGS;
    gy_ticks power = heat >> (x >> 16);
    return power - (gy_ticks)(((uint64_t)power >> 16) * (x & 0xffff) >> 1);
}

void gy_anneal_run(gy_anneal *a, gy_candidate *c, uint64_t budget, gy_ticks heat)
{
    step s;
    uint32_t age = 0;
    load(a, c);
    gy_ticks now = decode_all(a);
    if (now < c->model)
        save(a, c, now);
    for (uint64_t i = 0;
         i < budget && c->model > a->m->bound && gy_planning_step(a->m->plan->planning) && make_step(a, &s); i++) {
        gy_ticks limit = now + gy_random_exponential(&a->random, cool(heat, i, budget));
        gy_ticks next = decode(a, &s, limit);
        if (next > limit) {
            gy_decode_drop(&a->decode, a->order);
            take_back(a, &s);
            continue;
        }
        gy_decode_keep(&a->decode, a->order);
        now = next;
        if (now < c->model)
            save(a, c, now);
        if (age++ % CHAIN_AGE == 0)
            a->chained = gy_decode_critical(&a->decode, a->chain);
    }
}

bool gy_anneal_neighbour(gy_anneal *a, const gy_candidate *c, uint32_t tries, gy_candidate *to)
{
    step s;
    load(a, c);
    (void)decode_all(a);
    to->model = to->simulated = GY_TICKS_MAX;
    for (uint32_t i = 0; i < tries && make_step(a, &s); i++) {
        gy_ticks makespan = decode(a, &s, to->model);
        if (makespan < to->model)
            save(a, to, makespan);
        gy_decode_drop(&a->decode, a->order);
        take_back(a, &s);
    }
    return to->model < GY_TICKS_MAX;
}
