/* SPDX-License-Identifier: Apache-2.0 */
/* Counters from waits: one for each pair of lanes, its signals in the order of their ops. */
#include "schedule/counters/counters.h"

#include <stdlib.h>

typedef struct joint {
    uint32_t lane[2]; /* from, to */
    uint32_t from, to, distance;
} joint;
typedef GY_VEC(joint) joints;

/* An op of several lanes signals and waits in one of them: of the same device where there is one, else the first. */
static void choose_lanes(const gantry_schedule *s, joint *j)
{
    const gy_op *from = &s->ops.at[j->from], *to = &s->ops.at[j->to];
    const uint32_t *a = &s->op_lane.at[from->lane], *b = &s->op_lane.at[to->lane];
    j->lane[0] = a[0];
    j->lane[1] = b[0];
    for (uint32_t i = 0; i < from->lanes; i++) {
        for (uint32_t k = 0; k < to->lanes; k++) {
            if (s->lanes.at[a[i]].device != s->lanes.at[b[k]].device)
                continue;
            j->lane[0] = a[i];
            j->lane[1] = b[k];
            return;
        }
    }
}

static int compare(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_lanes(const void *a, const void *b)
{
    const joint *x = a, *y = b;
    int order = compare(x->lane[0], y->lane[0]);
    order = order ? order : compare(x->lane[1], y->lane[1]);
    order = order ? order : compare(x->from, y->from);
    return order ? order : compare(x->to, y->to);
}

static int by_waiter(const void *a, const void *b)
{
    return compare(((const gy_counter_wait *)a)->op, ((const gy_counter_wait *)b)->op);
}

/* Joins [first, last) have the same lanes. */
static bool add_counter(gy_counters *to, const joint *first, const joint *last)
{
    gy_counter c = { .from = first->lane[0],
                     .to = first->lane[1],
                     .signal = (uint32_t)to->signal.count,
                     .wait = (uint32_t)to->wait.count,
                     .waits = (uint32_t)(last - first) };
    for (const joint *j = first; j < last; j++) {
        bool again = j > first && j[-1].from == j->from;
        c.signals += !again;
        gy_counter_wait w = { j->to, c.signals, j->distance };
        if ((!again && !gy_vec_push(&to->signal, j->from)) || !gy_vec_push(&to->wait, w))
            return false;
    }
    qsort(to->wait.at + c.wait, c.waits, sizeof *to->wait.at, by_waiter);
    return gy_vec_push(&to->at, c);
}

bool gy_counters_build(gantry_schedule *s, const gy_counted_needs *needs)
{
    joints all = { 0 };
    bool done = true;
    s->counters.at.count = s->counters.signal.count = s->counters.wait.count = 0;
    for (size_t i = 0; i < needs->count && done; i++) {
        const gy_counted_need *n = &needs->at[i];
        joint j = { .from = n->from, .to = n->to, .distance = n->distance };
        if (!n->kept)
            continue;
        choose_lanes(s, &j);
        done = gy_vec_push(&all, j);
    }
    if (all.count > 1)
        qsort(all.at, all.count, sizeof *all.at, by_lanes);
    for (size_t first = 0, last = 0; first < all.count && done; first = last) {
        const uint32_t *lane = all.at[first].lane;
        while (last < all.count && all.at[last].lane[0] == lane[0] && all.at[last].lane[1] == lane[1])
            last++;
        done = add_counter(&s->counters, all.at + first, all.at + last);
    }
    gy_vec_free(&all);
    return done;
}
