/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a problem into independent stretches of time, and these into sections; greedy, then search, for each. */
#include "scheduler/pack/offsets.h"

#include "base/error.h"
#include "base/memory.h"
#include "scheduler/pack/offsets_parts.h"
#include <stdlib.h>

#define SUM_MAX (UINT64_C(1) << 62)

/* A box begins or ends. */
typedef struct event {
    int64_t time;
    uint32_t item;
    bool begins;
} event;

typedef struct finder {
    const gy_offset_item *item;
    uint64_t capacity, budget;
    uint64_t *offset; /* the caller's */
    gy_offset_answer answer;
    event *events;
    uint32_t count;            /* of events */
    gy_offset_box *box;        /* of all problems, one after the other */
    uint32_t *box_of;          /* item -> box */
    uint64_t *load, *at, *at2; /* of a problem: per section; offsets per box, and those of the search */
} finder;

/* At one time, what ends makes room for what begins. */
static int by_time(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->begins != y->begins)
        return x->begins ? 1 : -1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static gantry_status list_events(finder *f, size_t count, gantry_error *err)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const gy_offset_item *it = &f->item[i];
        f->offset[i] = 0;
        sum = it->size >= SUM_MAX || it->align >= SUM_MAX ? SUM_MAX : sum + it->size;
        if (sum >= SUM_MAX)
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "sizes up to item %u add up to 2^62 bytes or more; at most 2^62 - 1 can be placed", i);
        if (it->first >= it->last || !it->size)
            continue;
        f->events[f->count++] = (event){ it->first, i, true };
        f->events[f->count++] = (event){ it->last, i, false };
    }
    qsort(f->events, f->count, sizeof *f->events, by_time);
    return GANTRY_OK;
}

static gy_offset_box new_box(const finder *f, uint32_t item, uint32_t section)
{
    const gy_offset_item *it = &f->item[item];
    return (gy_offset_box){ .size = it->size, .align = it->align ? it->align : 1, .first = section, .item = item };
}

/* The boxes and sections of the problem that begins with event *i. */
static void read_problem(finder *f, uint32_t *i, gy_offset_problem *p)
{
    uint32_t alive = 0;
    bool began = false; /* since something ended */
    do {
        const event *e = &f->events[(*i)++];
        if (e->begins) {
            f->box_of[e->item] = p->boxes;
            p->box[p->boxes++] = new_box(f, e->item, p->sections);
            alive++;
            began = true;
            continue;
        }
        p->sections += began;
        began = false;
        p->box[f->box_of[e->item]].last = p->sections;
        alive--;
    } while (alive);
    p->load = f->load;
    for (uint32_t s = 0; s < p->sections; s++)
        p->load[s] = 0;
    for (uint32_t b = 0; b < p->boxes; b++)
        for (uint32_t s = p->box[b].first; s < p->box[b].last; s++)
            p->load[s] += p->box[b].size;
}

static gantry_status search(finder *f, gy_offset_problem *p, bool *found, gantry_error *err)
{
    uint64_t before = f->budget;
    gy_offset_end end = gy_offsets_search(p, &f->budget, f->at2);
    f->answer.steps += before - f->budget;
    f->answer.proved = f->answer.proved || end == GY_OFFSETS_NONE;
    *found = end == GY_OFFSETS_FOUND;
    return end == GY_OFFSETS_NOMEM ? gy_fail_nomem(err) : GANTRY_OK;
}

static gantry_status solve(finder *f, gy_offset_problem *p, gantry_error *err)
{
    uint64_t peak, load = 0;
    bool found = false;
    for (uint32_t s = 0; s < p->sections; s++)
        load = p->load[s] > load ? p->load[s] : load;
    f->answer.load = load > f->answer.load ? load : f->answer.load;
    f->answer.proved = f->answer.proved || load > f->capacity;
    if (!gy_offsets_greedy(p, f->at, &peak))
        return gy_fail_nomem(err);
    if (peak > f->capacity && !f->answer.proved && f->budget && p->boxes <= GY_OFFSETS_ITEMS) {
        gantry_status status = search(f, p, &found, err);
        if (status)
            return status;
    }
    for (uint32_t b = 0; b < p->boxes; b++) {
        uint64_t at = found ? f->at2[b] : f->at[b], top = at + p->box[b].size;
        f->offset[p->box[b].item] = at;
        f->answer.peak = top > f->answer.peak ? top : f->answer.peak;
    }
    return GANTRY_OK;
}

static gantry_status solve_all(finder *f, size_t count, gantry_error *err)
{
    gantry_status status = list_events(f, count, err);
    for (uint32_t i = 0; i < f->count && !status;) {
        gy_offset_problem p = { .box = f->box, .capacity = f->capacity };
        read_problem(f, &i, &p);
        status = solve(f, &p, err);
    }
    for (size_t i = 0; i < count; i++) /* what is never there is at 0, and must not pass the capacity either */
        if (f->item[i].first >= f->item[i].last && f->item[i].size > f->answer.peak)
            f->answer.peak = f->item[i].size;
    f->answer.fits = f->answer.peak <= f->capacity;
    return status;
}

gantry_status gy_offsets_find(const gy_offset_item *item, size_t count, uint64_t capacity, uint64_t budget,
                              uint64_t *offset, gy_offset_answer *answer, gantry_error *err)
{
    finder f = { .item = item, .capacity = capacity, .budget = budget, .offset = offset };
    gantry_status status;
    if (count > UINT32_MAX / 4)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "%zu items are more than 2^30", count);
    f.events = gy_calloc(2 * count + 1, sizeof *f.events);
    f.box = gy_calloc(count + 1, sizeof *f.box);
    f.box_of = gy_calloc(count + 1, sizeof *f.box_of);
    f.load = gy_calloc(count + 1, sizeof *f.load);
    f.at = gy_calloc(count + 1, sizeof *f.at);
    f.at2 = gy_calloc(count + 1, sizeof *f.at2);
    if (!f.events || !f.box || !f.box_of || !f.load || !f.at || !f.at2)
        status = gy_fail_nomem(err);
    else
        status = solve_all(&f, count, err);
    if (!status)
        *answer = f.answer;
    gy_free(f.events);
    gy_free(f.box);
    gy_free(f.box_of);
    gy_free(f.load);
    gy_free(f.at);
    gy_free(f.at2);
    return status;
}
