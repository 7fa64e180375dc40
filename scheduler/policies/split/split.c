/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Pipeline split: cuts the graph into consecutive parts, one on each device, so that the busiest device has least to do
 * (J. Tarnawski, A. Phanishayee, N. Devanur, D. Mahajan, F. Nina Paravecino, Efficient Algorithms for Device Placement
 * of DNN Graph Operators, NeurIPS 2020, section 5.1). With f(I, k) the least load of ideal I on k devices,
 *
 *   f(I, k) = min over ideals I' in I of max(f(I', k - 1), load of I \ I')
 *
 * where devices of one kind are interchangeable, so k counts them by kind. A part's load is asked of load.h, with all
 * other units on a device of another memory: in a machine of accelerators round a host it makes no difference on which.
 * Parts that alone take as long as the best split so far are not looked into. Where there are too many ideals, those
 * along one line.
 *
 * Cost: O(ideals^2) steps at most, each a unit's transfers, times the numbers of devices used.
 */
#include "scheduler/policies/split/split.h"

#include "base/error.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"
#include <stdlib.h>
#include <string.h>

#define MOST_CELLS  (UINT32_C(1) << 23) /* ideals x states */
#define MOST_STATES 256
#define SMALL       2    /* so many times the ideals for which steps are enough, as small ones have few */
#define STRETCH     4096 /* ideals, after which it is seen whether the steps are enough for the rest */
#define MOST_MOVED  (UINT32_C(1) << 24) /* units, for the cuts of one line: each part moves all that are in it */

/* Interchangeable devices. */
typedef struct kind {
    uint32_t device, count;
    uint32_t elsewhere; /* where the other units are while a part is looked at */
    uint32_t step;      /* of the state, for one device more */
    gy_assignment part; /* what is looked at is on `device` */
} kind;

typedef struct cell {
    gy_ticks load;
    uint32_t from; /* ideal; the same one: a device more that does nothing */
    uint32_t kind;
} cell;

/* One ideal on the way down from another. */
typedef struct frame {
    uint32_t ideal, next, unit, units; /* its next step to look at; the units whose loss led here */
} frame;

typedef struct split {
    const gy_load *l;
    const gy_ideals *ideals;
    kind *kinds;
    uint32_t *kind_of; /* per worker */
    uint32_t kind_count, states;
    cell *cells; /* ideals x states */
    frame *stack;
    uint32_t *mark, marks; /* per ideal */
    gy_ticks most;         /* parts that take as long are of no use */
    uint64_t steps, limit;
} split;

/* ---- kinds ---- */

static bool is_alike(const gy_load *l, uint32_t a, uint32_t b)
{
    const gantry_machine *m = l->p->machine;
    const gy_memory *x = &m->memory[m->device[a].memory], *y = &m->memory[m->device[b].memory];
    uint64_t to = m->device[a].memory, too = m->device[b].memory, n = l->memories;
    bool same = x->host == y->host && x->capacity == y->capacity && x->reserved == y->reserved &&
                (!l->p->capacity || l->p->capacity[to] == l->p->capacity[too]) && (x->host || to != too);
    for (uint32_t u = 0; u < l->units && same; u++)
        same = l->time[(size_t)u * l->devices + a] == l->time[(size_t)u * l->devices + b];
    for (size_t i = 0; i < l->sizes.count && same; i++) {
        const gy_load_pay *pay = &l->pay[i * n * n];
        same = pay[to].receive == pay[too].receive && pay[to * n].send == pay[too * n].send;
    }
    return same;
}

/* A device in another memory, one that is not the host's if there is one. */
static uint32_t find_elsewhere(const gy_load *l, uint32_t device)
{
    const gantry_machine *m = l->p->machine;
    uint32_t found = device;
    for (uint32_t d = 0; d < l->devices; d++) {
        bool other = m->device[d].memory != m->device[device].memory;
        if (other && (found == device || (m->device[found].memory == 0 && m->device[d].memory != 0)))
            found = d;
    }
    return found;
}

/* Devices beyond what the table of states has room for are left to the search that follows. */
static void find_kinds(split *s)
{
    const gy_load *l = s->l;
    s->states = 1;
    for (uint32_t d = 0; d < l->p->workers; d++) {
        uint32_t k = 0;
        while (k < s->kind_count && !is_alike(l, s->kinds[k].device, d))
            k++;
        if (k == s->kind_count)
            s->kinds[s->kind_count++] = (kind){ .device = d, .elsewhere = find_elsewhere(l, d) };
        s->kinds[k].count++;
        s->kind_of[d] = k;
    }
    for (uint32_t k = 0; k < s->kind_count; k++) {
        uint32_t room = MOST_STATES / s->states;
        s->kinds[k].count = s->kinds[k].count < room ? s->kinds[k].count : room - 1;
        s->kinds[k].step = s->states;
        s->states *= s->kinds[k].count + 1;
    }
}

static uint32_t used_of(const kind *k, uint32_t state)
{
    return state / k->step % (k->count + 1);
}

/* ---- the table ---- */

static bool fits(const kind *k)
{
    const gy_plan *p = k->part.l->p;
    uint32_t m = p->machine->device[k->device].memory;
    uint64_t room = p->capacity ? p->capacity[m] : p->machine->memory[m].capacity - p->machine->memory[m].reserved;
    return k->part.used[m] <= room;
}

/* The part that is on the kind's device now goes behind ideal `low`. */
static void offer(split *s, uint32_t ideal, uint32_t low, const kind *k)
{
    gy_ticks load = k->part.load[k->device];
    const cell *below = &s->cells[(size_t)low * s->states];
    cell *at = &s->cells[(size_t)ideal * s->states];
    if (load >= s->most)
        return;
    for (uint32_t i = 0; i + k->step < s->states; i++) {
        gy_ticks most = below[i].load > load ? below[i].load : load;
        if (used_of(k, i) < k->count && most < at[i + k->step].load)
            at[i + k->step] = (cell){ most, low, (uint32_t)(k - s->kinds) };
    }
}

static void move_units(const split *s, kind *k, const frame *f, uint32_t device)
{
    for (uint32_t i = 0; i < f->units; i++)
        gy_assignment_move(&k->part, s->ideals->unit.at[f->unit + i], device);
}

/* May go deeper: the part can still be of use. The time of a part only grows on the way down; its transfers may not. */
static bool is_worth(const split *s, const frame *f, const kind *k, gy_ticks *time)
{
    for (uint32_t i = 0; i < f->units; i++) {
        gy_ticks t = s->l->time[(size_t)s->ideals->unit.at[f->unit + i] * s->l->devices + k->device];
        if (t >= s->most || *time + t >= s->most)
            return false;
        *time += t;
    }
    return true;
}

static gy_ticks time_of(const split *s, const frame *f, const kind *k)
{
    gy_ticks sum = 0;
    for (uint32_t i = 0; i < f->units; i++)
        sum += s->l->time[(size_t)s->ideals->unit.at[f->unit + i] * s->l->devices + k->device];
    return sum;
}

/* All parts that end where `ideal` ends, on one kind of device. */
static void fill_ideal(split *s, uint32_t ideal, kind *k)
{
    const gy_ideals *all = s->ideals;
    uint32_t depth = 1;
    gy_ticks time = 0;
    s->stack[0] = (frame){ .ideal = ideal, .next = all->first.at[ideal] };
    s->marks++;
    while (depth && s->steps <= s->limit) {
        frame *f = &s->stack[depth - 1];
        if (f->next == all->first.at[f->ideal + 1]) {
            move_units(s, k, f, k->elsewhere);
            time -= time_of(s, f, k);
            depth--;
            continue;
        }
        const gy_ideal_step *step = &all->step.at[f->next++];
        frame down = { step->ideal, all->first.at[step->ideal], step->unit, step->units };
        gy_ticks longer = time;
        if (s->mark[step->ideal] == s->marks || !is_worth(s, &down, k, &longer))
            continue;
        s->mark[step->ideal] = s->marks;
        s->steps++;
        move_units(s, k, &down, k->device);
        if (!fits(k)) { /* nor does anything larger */
            move_units(s, k, &down, k->elsewhere);
            continue;
        }
        time = longer;
        s->stack[depth++] = down;
        offer(s, ideal, step->ideal, k);
    }
    while (depth)
        move_units(s, k, &s->stack[--depth], k->elsewhere);
}

/* Devices that do nothing. */
static void pad_states(split *s, uint32_t ideal)
{
    cell *at = &s->cells[(size_t)ideal * s->states];
    for (uint32_t i = 0; i < s->states; i++)
        for (uint32_t k = 0; k < s->kind_count; k++)
            if (used_of(&s->kinds[k], i) && at[i - s->kinds[k].step].load < at[i].load)
                at[i] = (cell){ at[i - s->kinds[k].step].load, ideal, k };
}

/* Larger ideals have more below them. Where the rest, at the pace of the last ideals, takes more steps than are left,
 * it is not begun: what is not finished is of no use. */
static void give_up_early(split *s, uint32_t ideal, uint64_t *before)
{
    double pace = (double)(s->steps - *before) / STRETCH, left = (double)(s->ideals->count - ideal);
    *before = s->steps;
    if ((double)s->steps + pace * left > (double)s->limit)
        s->steps = s->limit + 1;
}

static void fill_table(split *s)
{
    size_t cells = (size_t)s->ideals->count * s->states;
    for (size_t i = 0; i < cells; i++)
        s->cells[i] = (cell){ .load = i ? GY_TICKS_MAX : 0 };
    pad_states(s, 0);
    uint64_t before = 0;
    for (uint32_t i = 1; i < s->ideals->count && s->steps <= s->limit; i++) {
        for (uint32_t k = 0; k < s->kind_count; k++)
            fill_ideal(s, i, &s->kinds[k]);
        pad_states(s, i);
        if (i % STRETCH == 0)
            give_up_early(s, i, &before);
    }
}

/* ---- the answer ---- */

/* The device that is number `nth` of its kind. */
static uint32_t find_device(const split *s, uint32_t k, uint32_t nth)
{
    uint32_t d = 0;
    while (s->kind_of[d] != k || nth--)
        d++;
    return d;
}

/* From the top: each part gets all that is in its ideal, and what is below takes its own from it again. */
static void read_answer(const split *s, uint32_t *device)
{
    uint32_t ideal = s->ideals->count - 1, state = s->states - 1;
    while (ideal != 0) {
        const cell *c = &s->cells[(size_t)ideal * s->states + state];
        const kind *k = &s->kinds[c->kind];
        uint32_t on = find_device(s, c->kind, used_of(k, state) - 1);
        for (uint32_t at = ideal; at != 0 && c->from != ideal;) {
            const gy_ideal_step *step = &s->ideals->step.at[s->ideals->first.at[at]];
            for (uint32_t i = 0; i < step->units; i++)
                device[s->ideals->unit.at[step->unit + i]] = on;
            at = step->ideal;
        }
        ideal = c->from;
        state -= k->step;
    }
}

/* Looks at cuts along `ideals`; *device and s->most change if one is better. false: out of memory. */
static bool try_ideals(split *s, const gy_ideals *ideals, uint32_t *device, bool *found)
{
    s->ideals = ideals;
    s->steps = 0;
    s->marks = 0;
    s->cells = gy_alloc((size_t)ideals->count * s->states * sizeof *s->cells + 1);
    s->stack = gy_alloc(((size_t)s->l->units + 2) * sizeof *s->stack);
    s->mark = gy_calloc(ideals->count, sizeof *s->mark);
    bool done = s->cells && s->stack && s->mark;
    if (done) {
        fill_table(s);
        gy_ticks load = s->cells[(size_t)ideals->count * s->states - 1].load;
        if (s->steps <= s->limit && load < s->most) {
            s->most = load;
            *found = true;
            read_answer(s, device);
        }
    }
    gy_free(s->cells);
    gy_free(s->stack);
    gy_free(s->mark);
    return done;
}

static bool prepare(split *s)
{
    s->kinds = gy_calloc((size_t)s->l->p->workers + 1, sizeof *s->kinds);
    s->kind_of = gy_calloc((size_t)s->l->p->workers + 1, sizeof *s->kind_of);
    if (!s->kinds || !s->kind_of)
        return false;
    find_kinds(s);
    for (uint32_t k = 0; k < s->kind_count; k++) {
        if (!gy_assignment_init(&s->kinds[k].part, s->l))
            return false;
        for (uint32_t u = 0; u < s->l->units; u++)
            gy_assignment_move(&s->kinds[k].part, u, s->kinds[k].elsewhere);
    }
    return true;
}

static bool try_line(split *s, const gy_precedence *line, uint32_t most, uint32_t *device, bool *found)
{
    gy_ideals ideals;
    bool done = gy_ideals_line(&ideals, line, most) && try_ideals(s, &ideals, device, found);
    gy_ideals_free(&ideals);
    return done;
}

/* Cuts of lines: those that follow each branch to its end, that of the positions and that of the numbers. Of lines that
 * are the same, one. */
static bool try_lines(split *s, const gy_split_orders *orders, uint32_t most, uint32_t *device, bool *found)
{
    gy_precedence numbers = { .units = orders->all.units };
    const gy_precedence *lines[] = { &orders->tied, &orders->all, &orders->line, &numbers, &orders->numbered };
    size_t count = orders->circles ? 5 : 4, bytes = numbers.units * sizeof *numbers.order;
    uint32_t room = MOST_MOVED / (numbers.units + 1) + 2;
    numbers.order = gy_alloc(bytes + 1);
    for (uint32_t u = 0; numbers.order && u < numbers.units; u++)
        numbers.order[u] = u;
    bool done = numbers.order != NULL;
    for (size_t k = 0; k < count && done; k++) {
        bool again = false;
        for (size_t i = 0; i < k && bytes; i++)
            again = again || !memcmp(lines[i]->order, lines[k]->order, bytes);
        done = again || try_line(s, lines[k], most < room ? most : room, device, found);
    }
    gy_free(numbers.order);
    return done;
}

static int by_falling_time(const void *a, const void *b)
{
    const gy_ticks *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* Units that a part on such a device has at least before it takes as long as the best split that is known, or has all
 * there are: a step down for each. */
static bool count_least(const split *s, const kind *k, uint64_t *least)
{
    uint32_t n = s->l->units;
    gy_ticks *time = gy_alloc((size_t)n * sizeof *time + 1), sum = 0;
    for (uint32_t u = 0; time && u < n; u++)
        time[u] = s->l->time[(size_t)u * s->l->devices + k->device];
    if (time && n)
        qsort(time, n, sizeof *time, by_falling_time);
    for (*least = 0; time && *least < n && (sum = gy_ticks_both(sum, time[*least])) < s->most;)
        ++*least;
    bool done = time != NULL;
    gy_free(time);
    return done;
}

/* Of more ideals, steps would be too many: but for small ideals, each has so many below it on each kind of device. */
static bool limit_ideals(const split *s, const gy_split_limits *limits, uint32_t *most)
{
    uint64_t steps = 1, least = 0;
    bool done = true;
    for (uint32_t k = 0; k < s->kind_count && done; k++) {
        done = count_least(s, &s->kinds[k], &least);
        steps += least;
    }
    uint64_t ideals = SMALL * limits->steps / steps + s->l->units + 1;
    *most = MOST_CELLS / s->states;
    *most = *most < limits->ideals ? *most : limits->ideals;
    *most = *most < ideals ? *most : (uint32_t)ideals;
    return done;
}

/* *all: they were not too many. false: out of memory. */
static bool try_all(split *s, const gy_precedence *order, const gy_split_limits *limits, uint32_t *device, bool *found,
                    bool *all)
{
    gy_ideals ideals;
    uint32_t most;
    s->limit = limits->steps;
    if (!limit_ideals(s, limits, &most))
        return false;
    gy_ideals_result result = gy_ideals_all(&ideals, order, most);
    bool done = result != GY_IDEALS_NOMEM && (result != GY_IDEALS_ALL || try_ideals(s, &ideals, device, found));
    gy_ideals_free(&ideals);
    *all = result == GY_IDEALS_ALL && s->steps <= s->limit;
    return done;
}

/* The lines first: what they find cuts the search among all. */
static gantry_status search(split *s, const gy_split_orders *orders, const gy_split_limits *limits, uint32_t *device,
                            bool *found, bool *all, gantry_error *err)
{
    bool other = false;
    s->limit = UINT64_MAX;
    bool done = try_lines(s, orders, limits->line, device, found) &&
                try_all(s, &orders->all, limits, device, found, all) &&
                (*all || try_all(s, &orders->tied, limits, device, found, &other)) &&
                (!orders->circles || try_all(s, &orders->numbered, limits, device, found, &other));
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_split_best(const gy_load *l, const gy_split_limits *limits, uint32_t **device, gy_ticks *load,
                            bool *all, gantry_error *err)
{
    split s = { .l = l, .most = GY_TICKS_MAX };
    gy_split_orders orders;
    bool found = l->units == 0;
    uint32_t *answer = gy_calloc((size_t)l->units + 1, sizeof *answer);
    gantry_status status = gy_split_orders_make(&orders, l, err);
    if (!status && !(answer && prepare(&s)))
        status = gy_fail_nomem(err);
    if (!status)
        status = search(&s, &orders, limits, answer, &found, all, err);
    for (uint32_t k = 0; k < s.kind_count; k++)
        gy_assignment_free(&s.kinds[k].part);
    gy_free(s.kinds);
    gy_free(s.kind_of);
    gy_split_orders_free(&orders);
    if (status || !found) {
        gy_free(answer);
        answer = NULL;
    }
    if (status)
        return status;
    *device = answer;
    *load = s.most;
    return GANTRY_OK;
}

/* ---- what a split does not look at ---- */

static uint32_t count_allowed(const gy_load *l, uint32_t unit)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < l->devices; d++)
        count += l->time[(size_t)unit * l->devices + d] < GY_TICKS_MAX;
    return count;
}

/* To the device it was given, or the next that it may be on; left where it was if there is none. */
static void settle(gy_assignment *a, uint32_t unit, uint32_t *device)
{
    for (uint32_t i = 0; i < a->l->devices; i++) {
        uint32_t d = (device[unit] + i) % a->l->devices;
        if (!gy_assignment_allows(a, unit, d))
            continue;
        gy_assignment_move(a, unit, d);
        device[unit] = d;
        return;
    }
}

/* Those that are kept apart from others, the least free first. */
static bool move_apart(const gy_load *l, uint32_t *device)
{
    const gy_plan *p = l->p;
    gy_assignment a;
    bool done = gy_assignment_init(&a, l);
    for (uint32_t free = 1; done && free <= l->devices; free++)
        for (uint32_t u = 0; u < l->units; u++) {
            uint32_t node = p->flow->task[l->task_of[u]].node;
            if (p->cost.pinned[node] && p->cost.apart[p->cost.group[node]] && count_allowed(l, u) == free)
                settle(&a, u, device);
        }
    gy_assignment_free(&a);
    return done;
}

gantry_status gy_split_assign(const gy_load *l, const gy_split_limits *limits, uint32_t **device, gantry_error *err)
{
    uint32_t *made = NULL;
    gy_ticks load;
    bool all;
    GY_TRY(gy_split_best(l, limits, &made, &load, &all, err));
    if (!made && !(made = gy_calloc((size_t)l->units + 1, sizeof *made)))
        return gy_fail_nomem(err);
    for (uint32_t u = 0; u < l->units; u++) /* only those that no split was found for */
        while (l->time[(size_t)u * l->devices + made[u]] >= GY_TICKS_MAX && made[u] + 1 < l->devices)
            made[u]++;
    if (!move_apart(l, made)) {
        gy_free(made);
        return gy_fail_nomem(err);
    }
    *device = made;
    return GANTRY_OK;
}

/* ---- the policy ---- */

typedef struct follow {
    const gy_load *l;
    const uint32_t *device;
} follow;

static gantry_status place_one(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    const follow *f = context;
    uint32_t unit = f->l->unit_of[task];
    return gy_place_on(p, task, unit == GY_NONE ? 0 : f->device[unit], err);
}

gantry_status gy_split_place(gy_plan *p, const gy_load *l, const uint32_t *device, gantry_error *err)
{
    follow f = { l, device };
    gy_rank *rank = gy_upward_ranks(p, GY_BY_MEAN);
    gantry_status status = rank ? gy_place_by_rank(p, rank, place_one, &f, err) : gy_fail_nomem(err);
    gy_free(rank);
    return status;
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    gy_load l;
    uint32_t *device = NULL;
    gantry_status status = gy_load_make(&l, p, err);
    if (!status)
        status = gy_split_assign(&l, &GY_SPLIT_QUICK, &device, err);
    if (!status)
        status = gy_split_place(p, &l, device, err);
    gy_free(device);
    gy_load_free(&l);
    return status;
}

const gy_policy gy_policy_split = {
    .name = "split",
    .summary = "cuts the graph into consecutive parts, so that the busiest device has least to do",
    .place = place,
    .largest = GY_MIDDLE_GRAPHS,
    .objective = GY_OBJECTIVE_MAX_LOAD,
    .last_resort = GY_MIDDLE_GRAPHS,
};
