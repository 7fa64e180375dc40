/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The position of each unit in the pipeline. A task's level is the longest chain to it; what is made of sources alone
 * comes just before its first reader. A unit of several tasks is where its first one is: a layer with its backward pass
 * where its forward pass is. Once a chain has come back to such a unit from one that is no earlier, it is on its way
 * back (the backward pass): a task there that shares no device with others lies between those that it reads and those
 * that read it, whose positions fall. So does one in a forward pass that goes through the same units several times.
 */
#include "base/error.h"
#include "scheduler/policies/split/split.h"
#include <math.h>

/* Positions of the nearest units of several tasks; NAN: there are none. */
typedef struct near {
    double up;   /* the highest before it, forwards */
    double back; /* the lowest before it, on the way back */
    double next; /* behind it: the lowest, and on the way back the highest */
} near;

typedef struct finder {
    const gy_load *l;
    gy_split_position *at;
    double *level;   /* per task */
    near *near;      /* per task */
    uint8_t *back;   /* per task: on the way back */
    uint32_t *tasks; /* per unit */
} finder;

static double low(double a, double b)
{
    return isnan(a) || b < a ? b : a;
}

static double high(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

static void find_levels(finder *x)
{
    const gy_flow *f = x->l->p->flow;
    for (uint32_t t = 0; t < f->tasks; t++) {
        x->level[t] = x->l->loose[t] ? (double)NAN : 0;
        for (const gy_dep *d = gy_deps_begin(f, t); !x->l->loose[t] && d < gy_deps_end(f, t); d++)
            if (!x->l->loose[d->from] && x->level[d->from] + 1 > x->level[t])
                x->level[t] = x->level[d->from] + 1;
    }
    for (uint32_t t = f->tasks; t-- > 0;)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++)
            if (x->l->loose[d->from])
                x->level[d->from] = low(x->level[d->from], x->level[t] - 1);
}

static bool is_anchor(const finder *x, uint32_t unit)
{
    return x->tasks[unit] > 1;
}

/* Loose tasks count only where a unit has nothing else. */
static void find_anchors(finder *x)
{
    const gy_load *l = x->l;
    for (uint32_t u = 0; u < l->units; u++)
        x->at[u] = (gy_split_position){ (double)NAN, 0, l->loose[l->task_of[u]] && !is_anchor(x, u) };
    for (uint32_t t = 0; t < l->p->flow->tasks; t++)
        if (l->unit_of[t] != GY_NONE && !l->loose[t])
            x->at[l->unit_of[t]].at = low(x->at[l->unit_of[t]].at, x->level[t]);
    for (uint32_t u = 0; u < l->units; u++)
        if (isnan(x->at[u].at))
            x->at[u].at = isnan(x->level[l->task_of[u]]) ? 0 : x->level[l->task_of[u]];
}

static void look_before(finder *x, uint32_t t, uint32_t from)
{
    const gy_load *l = x->l;
    uint32_t unit = l->unit_of[from];
    if (l->loose[from] || unit == GY_NONE)
        return;
    x->back[t] |= x->back[from];
    if (unit == l->unit_of[t])
        return;
    const near *n = &x->near[from];
    double up = is_anchor(x, unit) ? x->at[unit].at : n->up, back = is_anchor(x, unit) ? x->at[unit].at : n->back;
    if (!isnan(up))
        x->near[t].up = high(x->near[t].up, up);
    if (!isnan(back) && x->back[from])
        x->near[t].back = low(x->near[t].back, back);
}

static void look_behind(finder *x, uint32_t from, uint32_t t)
{
    const gy_load *l = x->l;
    uint32_t unit = l->unit_of[t];
    if (unit == GY_NONE || unit == l->unit_of[from] || x->back[t] != x->back[from])
        return;
    double next = is_anchor(x, unit) ? x->at[unit].at : x->near[t].next;
    if (!isnan(next))
        x->near[from].next = x->back[t] ? high(x->near[from].next, next) : low(x->near[from].next, next);
}

static void look_around(finder *x)
{
    const gy_flow *f = x->l->p->flow;
    for (uint32_t t = 0; t < f->tasks; t++) {
        uint32_t unit = x->l->unit_of[t];
        x->near[t] = (near){ (double)NAN, (double)NAN, (double)NAN };
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++)
            look_before(x, t, d->from);
        if (unit != GY_NONE && is_anchor(x, unit) && x->near[t].up >= x->at[unit].at)
            x->back[t] = 1;
    }
    for (uint32_t t = f->tasks; t-- > 0;)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++)
            look_behind(x, d->from, t);
}

/* A unit of one task that is not loose. */
static gy_split_position between(const finder *x, uint32_t t)
{
    const near *n = &x->near[t];
    double before = isnan(n->back) ? n->up : n->back, level = x->level[t];
    if (isnan(before) || (!x->back[t] && !(n->next < level)))
        return (gy_split_position){ level, 0, false };
    double next = isnan(n->next) ? before : n->next;
    return (gy_split_position){ (before + next) / 2, x->back[t] ? -level : level, false };
}

/* Just before its first reader. */
static void put_before(finder *x, uint32_t from, uint32_t t)
{
    const gy_load *l = x->l;
    uint32_t u = l->unit_of[from], v = l->unit_of[t];
    if (u == GY_NONE || v == GY_NONE || !x->at[u].loose)
        return;
    gy_split_position before = { x->at[v].at, x->at[v].tie - 1, true };
    if (isnan(x->at[u].at) || gy_split_is_before(before, x->at[u]))
        x->at[u] = before;
}

static void place_others(finder *x)
{
    const gy_load *l = x->l;
    const gy_flow *f = l->p->flow;
    for (uint32_t u = 0; u < l->units; u++)
        if (x->at[u].loose)
            x->at[u].at = (double)NAN;
        else if (!is_anchor(x, u))
            x->at[u] = between(x, l->task_of[u]);
    for (uint32_t t = f->tasks; t-- > 0;)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++)
            put_before(x, d->from, t);
    for (uint32_t u = 0; u < l->units; u++)
        x->at[u].at = isnan(x->at[u].at) ? 0 : x->at[u].at;
}

gantry_status gy_split_positions(gy_split_position *at, const gy_load *l, gantry_error *err)
{
    size_t room = (size_t)l->p->flow->tasks + 1;
    finder x = { .l = l, .at = at };
    x.level = gy_calloc(room, sizeof *x.level);
    x.near = gy_calloc(room, sizeof *x.near);
    x.back = gy_calloc(room, sizeof *x.back);
    x.tasks = gy_calloc((size_t)l->units + 1, sizeof *x.tasks);
    bool done = x.level && x.near && x.back && x.tasks;
    for (uint32_t t = 0; done && t < l->p->flow->tasks; t++)
        if (l->unit_of[t] != GY_NONE)
            x.tasks[l->unit_of[t]]++;
    if (done) {
        find_levels(&x);
        find_anchors(&x);
        look_around(&x);
        place_others(&x);
    }
    gy_free(x.level);
    gy_free(x.near);
    gy_free(x.back);
    gy_free(x.tasks);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
