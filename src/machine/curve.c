/* SPDX-License-Identifier: Apache-2.0 */
/* Curves of measured times: made monotone, old ones changed in proportion to new figures, or joined with them. */
#include "machine/calibrate_build.h"
#include <stdlib.h>

static int by_work(const void *a, const void *b)
{
    const gy_point *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

#define MOST_TIME (INT64_C(1000000000) * GY_TICKS_PER_US) /* that a file may say */

/* Rising work, the shortest time of each; then no time is longer than that of more work. */
static void settle(gy_curve *c)
{
    size_t kept = 0;
    qsort(c->at, c->count, sizeof *c->at, by_work);
    for (size_t i = 0; i < c->count; i++)
        if (c->at[i].time <= MOST_TIME && (!kept || c->at[i].bytes > c->at[kept - 1].bytes))
            c->at[kept++] = c->at[i];
    c->count = kept;
    for (size_t i = kept; i-- > 1;)
        if (c->at[i - 1].time > c->at[i].time)
            c->at[i - 1].time = c->at[i].time;
}

bool gy_curve_of(gy_curve *to, const gy_measured_points *points)
{
    to->count = 0;
    for (size_t i = 0; i < points->count; i++) {
        const gy_measured_point *p = &points->at[i];
        bool sound = p->time.samples > 0 && p->time.us > 0 && p->work >= 0 && p->work < (double)(INT64_MAX / 2);
        if (sound && !gy_vec_push(to, ((gy_point){ (int64_t)(p->work + 0.5), gy_ticks_from_us(p->time.us) })))
            return false;
    }
    if (to->count)
        settle(to);
    return true;
}

/* How many times as long as `old` says, at a point of the new figures. */
static double pace_at(const gy_route *old, const gy_point *p)
{
    double was = (double)gy_points_time(old->point, old->points, p->bytes);
    return was > 0 ? (double)p->time / was : 1;
}

/* The same for any work: `seen` are the `count` new figures. */
static double pace_of(const gy_route *old, const gy_point *seen, size_t count, int64_t work)
{
    size_t i = 0;
    while (i < count && seen[i].bytes < work)
        i++;
    if (i == 0 || i == count)
        return pace_at(old, &seen[i == 0 ? 0 : count - 1]);
    double low = pace_at(old, &seen[i - 1]), high = pace_at(old, &seen[i]);
    double part = (double)(work - seen[i - 1].bytes) / (double)(seen[i].bytes - seen[i - 1].bytes);
    return low + (high - low) * part;
}

bool gy_curve_follow(gy_curve *to, const gy_route *old)
{
    size_t seen = to->count;
    for (uint32_t i = 0; i < old->points; i++) {
        gy_point p = old->point[i];
        bool known = false;
        for (size_t k = 0; k < seen; k++)
            known = known || to->at[k].bytes == p.bytes;
        p.time = gy_ticks_from_us(gy_ticks_to_us(p.time) * pace_of(old, to->at, seen, p.bytes));
        if (!known && !gy_vec_push(to, p))
            return false;
    }
    settle(to);
    return true;
}

#define ALIKE 0.05 /* work that differs by less is one point */

static bool is_near_one(const gy_point *list, size_t count, int64_t work)
{
    for (size_t i = 0; i < count; i++)
        if (llabs(list[i].bytes - work) <= (int64_t)(ALIKE * (double)work))
            return true;
    return false;
}

bool gy_curve_join(gy_curve *to, const gy_kernel_table *old)
{
    size_t seen = to->count;
    for (uint32_t i = 0; i < old->points; i++)
        if (!is_near_one(to->at, seen, old->point[i].bytes) && !gy_vec_push(to, old->point[i]))
            return false;
    settle(to);
    return true;
}

bool gy_curve_end(gy_curve *c)
{
    while (c->count >= 2 && c->at[c->count - 1].time == c->at[c->count - 2].time) {
        c->at[c->count - 2] = c->at[c->count - 1];
        c->count--;
    }
    return c->count >= 2;
}
