/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The best placement once more, in other ways to spill: from the way that made it, one thing at a time is changed, and
 * what is better is kept, until nothing is. With less that persists, there is more room for the rest to come ahead of
 * its use; with more, less comes. Making again and copying go side by side: what is made again is more or less of what
 * has to leave. Rows that come wait for those that were at their address, so it may be better to leave holes. And
 * sending rows away early means sending away more.
 */
#include "scheduler/search/portfolio.h"

#include "base/error.h"
#include "scheduler/policies/policy.h"
#include <string.h>

#define MOST  160 /* ways that are tried */
#define LEAST 24  /* and in graphs of as many tasks as are tried so */

typedef struct ways {
    gy_portfolio *f;
    const gy_policy *policy;
    gy_tried *entry;
    gy_spill_way tried[2 * MOST];
    size_t count, most;
    gy_spill_way from; /* what is changed */
} ways;

/* The entry of the report that the best schedule is of. */
static gy_tried *find_best(gy_portfolio *f)
{
    for (size_t i = 0; f->t.best && i < f->t.tried.count; i++)
        if (!strcmp(f->t.tried.at[i].policy, f->t.best->policy))
            return &f->t.tried.at[i];
    return NULL;
}

static bool is_same(const gy_spill_way *a, const gy_spill_way *b)
{
    return a->spilling == b->spilling && a->persisting == b->persisting && a->queued == b->queued &&
           a->late == b->late && a->onward == b->onward && a->weigh == b->weigh && a->walk == b->walk &&
           a->gather_again == b->gather_again && a->ends == b->ends && a->relayed == b->relayed;
}

static gantry_status try_way(ways *w, const gy_spill_way *way, gantry_error *err)
{
    for (size_t i = 0; i < w->count; i++)
        if (is_same(&w->tried[i], way))
            return GANTRY_OK;
    if (w->count >= w->most)
        return GANTRY_OK;
    w->tried[w->count++] = *way;
    return gy_portfolio_spill(w->f, w->policy, NULL, way, &w->entry->makespan, err);
}

static gantry_status try_persisting(ways *w, gantry_error *err)
{
    for (int i = 8 * GY_PERSIST_ALL + 7; i > 8 * GY_PERSIST_ANY + 7 && w->f->persistent; i--) {
        gy_spill_way way = w->from;
        way.persisting = (gy_persisting)(i / 8);
        way.ends = i % 2;
        way.onward ^= i % 8 / 2 == 1;
        way.late ^= i % 8 / 2 == 2;
        way.weigh ^= i % 8 / 2 == 3;
        GY_TRY(try_way(w, &way, err));
    }
    return GANTRY_OK;
}

static gantry_status try_queued(ways *w, gantry_error *err)
{
    for (uint32_t queued = 0; queued <= GY_QUEUED && w->from.spilling == GY_SPILL_REMAKE; queued++) {
        gy_spill_way way = w->from;
        way.queued = queued;
        GY_TRY(try_way(w, &way, err));
    }
    return GANTRY_OK;
}

static gantry_status try_switches(ways *w, gantry_error *err)
{
    for (int i = 0; i < 6; i++) {
        gy_spill_way way = w->from;
        way.onward ^= i == 0;
        way.late ^= i == 1;
        way.weigh ^= i == 2;
        way.walk ^= i == 3;
        way.ends ^= i == 4;
        way.gather_again ^= i == 5;
        way.relayed = way.relayed && way.gather_again;
        if (i < 5 || w->f->t.machine->memories > 2)
            GY_TRY(try_way(w, &way, err));
    }
    return GANTRY_OK;
}

/* As many as take about equally long. */
static size_t most_of(const gy_portfolio *f)
{
    size_t most = 20000 / ((size_t)f->t.graph->flow->tasks + 1);
    return most > MOST ? MOST : most < LEAST ? LEAST : most;
}

/* As long as the best way is another one than before. */
static gantry_status try_around(ways *w, const gy_spill_way *from, gantry_error *err)
{
    w->from = *from;
    do {
        GY_TRY(try_switches(w, err));
        GY_TRY(try_persisting(w, err));
        GY_TRY(try_queued(w, err));
        if (is_same(&w->from, &w->f->best_way))
            break;
        w->from = w->f->best_way;
    } while (w->count < w->most);
    return GANTRY_OK;
}

/* Rows that are gathered again, and rows that are not, have little in common: both are tried. */
gantry_status gy_portfolio_spill_ways(gy_portfolio *f, gantry_error *err)
{
    bool spilled = f->moved || f->best_way.walk;
    ways w = { .f = f, .entry = spilled && f->t.options->effort > 0 ? find_best(f) : NULL };
    if (!w.entry || gy_policy_find(&w.policy, w.entry->policy, NULL))
        return GANTRY_OK;
    gy_spill_way other = { .spilling = f->t.options->spilling };
    const gy_policy *plain = f->best_way.gather_again ? f->plain : w.policy;
    if (!f->best_way.gather_again)
        other.gather_again = other.walk = other.weigh = true;
    w.most = most_of(f);
    GY_TRY(try_around(&w, &f->best_way, err));
    w.most *= 2;
    w.count = plain == w.policy ? w.count : 0;
    w.policy = plain;
    if (f->t.machine->memories > 2 && plain)
        GY_TRY(try_around(&w, &other, err));
    f->way = f->best_way;
    return GANTRY_OK;
}
