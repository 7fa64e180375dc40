/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Makespans that are refuted. A schedule that ends by T has no task on a kind where the longest chains to it and from
 * it leave it too little time. So these kinds are closed to it; chains become longer by that, which closes more. Where
 * a task is left without a kind, or the bound of what is left (bound_kinds.c) is above T, there is no schedule that
 * ends by T. That is the destructive bound of R. Klein, A. Scholl, Computing lower bounds by destructive improvement,
 * EJOR 112(2), 1999, with kinds in place of windows of time.
 *
 * It says more than shares of work do, which may put a tenth of each task on a kind that is a hundred times slower.
 */
#include "scheduler/bound/bound_kinds.h"

#include "base/error.h"
#include <math.h>
#include <string.h>

#define LEAST_RAISE 1.004 /* that is looked for */
#define MOST_RAISE  2.0
#define HALVINGS    6
#define PASSES      8          /* of closing kinds, for one makespan */
#define TASKS       4096       /* of larger graphs nothing is refuted */
#define ROUNDED     (1 + 1e-9) /* sums are of floating point */

typedef struct refuter {
    const gy_kind_work *work;
    gy_kind_work left; /* the same with fewer kinds open */
    double *head, *tail, *least;
} refuter;

static bool init(refuter *r, const gy_kind_work *w)
{
    size_t room = (size_t)w->tasks + 1;
    *r = (refuter){ .work = w, .left = *w };
    r->left.time = gy_calloc(room, w->kinds * sizeof *r->left.time);
    r->head = gy_calloc(room, sizeof *r->head);
    r->tail = gy_calloc(room, sizeof *r->tail);
    r->least = gy_calloc(room, sizeof *r->least);
    return r->left.time && r->head && r->tail && r->least;
}

static void free_refuter(refuter *r)
{
    gy_free(r->left.time);
    gy_free(r->head);
    gy_free(r->tail);
    gy_free(r->least);
}

/* Least times on open kinds, and the longest chains of these. */
static void find_chains(refuter *r)
{
    const gy_kind_work *w = &r->left;
    for (uint32_t t = 0; t < w->tasks; t++) {
        double least = HUGE_VAL;
        for (uint32_t k = 0; k < w->kinds; k++) {
            double time = w->time[(size_t)t * w->kinds + k].time;
            least = time < least ? time : least;
        }
        r->least[t] = least;
        r->head[t] = r->tail[t] = 0;
        for (uint32_t i = w->first[t]; i < w->first[t + 1]; i++) {
            double end = r->head[w->before[i]] + r->least[w->before[i]];
            r->head[t] = end > r->head[t] ? end : r->head[t];
        }
    }
    for (uint32_t t = w->tasks; t-- > 0;)
        for (uint32_t i = w->first[t]; i < w->first[t + 1]; i++) {
            double *tail = &r->tail[w->before[i]], after = r->least[t] + r->tail[t];
            *tail = after > *tail ? after : *tail;
        }
}

/* Closes kinds to tasks that would be too long there; returns to how many. */
static uint32_t close_kinds(refuter *r, double makespan)
{
    const gy_kind_work *w = &r->left;
    uint32_t closed = 0;
    for (uint32_t t = 0; t < w->tasks; t++)
        for (uint32_t k = 0; k < w->kinds; k++) {
            gy_kind_time *x = &w->time[(size_t)t * w->kinds + k];
            if (x->time >= HUGE_VAL || r->head[t] + x->time + r->tail[t] <= makespan * ROUNDED)
                continue;
            *x = (gy_kind_time){ HUGE_VAL, HUGE_VAL };
            closed++;
        }
    return closed;
}

/* Has a task that may run somewhere no kind that is open? */
static bool has_stranded(const refuter *r)
{
    const gy_kind_work *w = r->work;
    for (uint32_t t = 0; t < w->tasks; t++) {
        bool before = false, now = false;
        for (uint32_t k = 0; k < w->kinds; k++) {
            before = before || w->time[(size_t)t * w->kinds + k].time < HUGE_VAL;
            now = now || r->left.time[(size_t)t * w->kinds + k].time < HUGE_VAL;
        }
        if (before && !now)
            return true;
    }
    return false;
}

static gantry_status try_makespan(refuter *r, double makespan, bool *refuted, gantry_error *err)
{
    const gy_kind_work *w = r->work;
    uint32_t all = 0, closed = 1;
    double least = 0;
    memcpy(r->left.time, w->time, (size_t)w->tasks * w->kinds * sizeof *w->time);
    *refuted = false;
    for (int i = 0; i < PASSES && closed && !*refuted; i++) {
        find_chains(r);
        closed = close_kinds(r, makespan);
        all += closed;
        *refuted = closed && has_stranded(r);
    }
    if (!all || *refuted)
        return GANTRY_OK;
    GY_TRY(gy_kind_work_bound(&r->left, true, &least, err));
    *refuted = least > makespan;
    return GANTRY_OK;
}

static gantry_status refute(refuter *r, double *most, gantry_error *err)
{
    double low = *most, high = *most * MOST_RAISE;
    bool refuted;
    GY_TRY(try_makespan(r, low * LEAST_RAISE, &refuted, err));
    if (!refuted)
        return GANTRY_OK;
    low *= LEAST_RAISE;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        GY_TRY(try_makespan(r, middle, &refuted, err));
        if (refuted)
            low = middle;
        else
            high = middle;
    }
    *most = low;
    return GANTRY_OK;
}

gantry_status gy_kind_work_refute(const gy_kind_work *w, double *most, gantry_error *err)
{
    refuter r;
    uint32_t worked = 0;
    for (uint32_t k = 0; k < w->kinds; k++)
        worked += w->count[k] > 0;
    if (worked < 2 || w->tasks > TASKS || !(*most > 0) || *most >= HUGE_VAL)
        return GANTRY_OK;
    gantry_status status = init(&r, w) ? refute(&r, most, err) : gy_fail_nomem(err);
    free_refuter(&r);
    return status;
}
