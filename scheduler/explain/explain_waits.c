/* SPDX-License-Identifier: Apache-2.0 */
/* From the schedule alone: the ops before and after an op by lane order and by the sync table. */
#include "scheduler/explain/explain.h"

#include <stdlib.h>

#define SHOWN 12 /* rows of a list */

typedef struct wait {
    uint32_t op;
    gy_ticks when; /* it ended, or begins */
    const char *why;
} wait;
typedef GY_VEC(wait) waits;

static bool shares_lane(const gantry_schedule *s, const gy_op *a, const gy_op *b)
{
    for (uint32_t i = 0; i < a->lanes; i++)
        for (uint32_t k = 0; k < b->lanes; k++)
            if (s->op_lane.at[a->lane + i] == s->op_lane.at[b->lane + k])
                return true;
    return false;
}

/* The nearest op in each lane of `op`, going by `step` (1 or -1): as long as some lane has not been met. */
static bool add_neighbours(waits *w, const gantry_schedule *s, uint32_t op, int step)
{
    const gy_op *self = &s->ops.at[op];
    for (uint32_t k = 0; k < self->lanes; k++) {
        gy_op one = { .lane = self->lane + k, .lanes = 1 };
        for (size_t i = op + (size_t)step; i < s->ops.count; i += (size_t)step) { /* below 0 it is very large */
            if (!shares_lane(s, &one, &s->ops.at[i]))
                continue;
            wait found = { (uint32_t)i, step < 0 ? s->ops.at[i].end : s->ops.at[i].start, "same lane" };
            bool known = false;
            for (size_t n = 0; n < w->count; n++)
                known = known || w->at[n].op == i;
            if (!known && !gy_vec_push(w, found))
                return false;
            break;
        }
    }
    return true;
}

static bool add_rows(waits *w, const gantry_schedule *s, uint32_t op, bool before)
{
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        uint32_t other = before ? row->from : row->to;
        wait found = { other, before ? s->ops.at[other].end : s->ops.at[other].start, "order" };
        if ((before ? row->to : row->from) != op || row->distance || row->carrier == GY_CARRIER_LANE)
            continue;
        found.why = row->reason == GY_WHY_DATA    ? "data"
                    : row->reason == GY_WHY_REUSE ? "takes over its memory"
                                                  : "order";
        if (!gy_vec_push(w, found))
            return false;
    }
    return true;
}

static int latest_first(const void *a, const void *b)
{
    const wait *x = a, *y = b;
    if (x->when != y->when)
        return x->when > y->when ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static int earliest_first(const void *a, const void *b)
{
    const wait *x = a, *y = b;
    if (x->when != y->when)
        return x->when < y->when ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static void add_list(gy_text *to, const gantry_schedule *s, const waits *w, const char *verb, const char *mark,
                     gy_ticks moment)
{
    gy_table t = { .align = "lllrll" };
    for (size_t i = 0; i < w->count && i < SHOWN; i++) {
        gy_text name = { 0 };
        gy_op_text(&name, s, w->at[i].op);
        to->failed = to->failed || name.failed;
        gy_table_cell(&t, "%s", name.failed ? "" : name.at);
        gy_table_cell(&t, "on %s", s->machine->device[gy_op_device(s, &s->ops.at[w->at[i].op], 0)].id);
        gy_table_cell(&t, "%s", verb);
        gy_table_cell(&t, "%.3f us", gy_ticks_to_us(w->at[i].when));
        gy_table_cell(&t, "%s", w->at[i].why);
        gy_table_cell(&t, "%s", w->at[i].when == moment ? mark : "");
        gy_text_free(&name);
    }
    gy_table_print(&t, to);
    if (w->count > SHOWN)
        gy_text_printf(to, "  and %zu more\n", w->count - SHOWN);
}

static void add_before(gy_text *to, const gantry_schedule *s, uint32_t op)
{
    waits w = { 0 };
    gy_ticks start = s->ops.at[op].start;
    if (!add_neighbours(&w, s, op, -1) || !add_rows(&w, s, op, true))
        to->failed = true;
    if (w.count > 1)
        qsort(w.at, w.count, sizeof *w.at, latest_first);
    gy_text_add(to, w.count ? "\nwaits, in the simulated schedule, for\n" : "\nwaits for nothing\n");
    add_list(to, s, &w, "ended", "determined the start", start);
    if (w.count ? w.at[0].when < start : start > 0)
        gy_text_printf(to, "  and for %.3f us more until a copy engine was free\n",
                       gy_ticks_to_us(w.count ? start - w.at[0].when : start));
    gy_vec_free(&w);
}

static void add_after(gy_text *to, const gantry_schedule *s, uint32_t op)
{
    waits w = { 0 };
    if (!add_neighbours(&w, s, op, 1) || !add_rows(&w, s, op, false))
        to->failed = true;
    if (w.count > 1)
        qsort(w.at, w.count, sizeof *w.at, earliest_first);
    gy_text_add(to, w.count ? "\nwaiting for it\n" : "\nnothing waits for it\n");
    add_list(to, s, &w, "starts", "at once", s->ops.at[op].end);
    gy_vec_free(&w);
}

void gy_explain_waits(gy_text *to, const gantry_schedule *s, uint32_t op)
{
    add_before(to, s, op);
    add_after(to, s, op);
}
