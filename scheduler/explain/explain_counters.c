/* SPDX-License-Identifier: Apache-2.0 */
/* From the schedule alone: the counters by which an op waits, and those that it signals. */
#include "scheduler/explain/explain.h"

static void add_lanes(gy_text *to, const gantry_schedule *s, size_t counter)
{
    const gy_counter *c = &s->counters.at.at[counter];
    gy_text_printf(to, "counter %zu, from lane %u of %s to lane %u of %s", counter, c->from,
                   s->machine->device[s->lanes.at[c->from].device].id, c->to,
                   s->machine->device[s->lanes.at[c->to].device].id);
}

static void add_wait(gy_text *to, const gantry_schedule *s, size_t counter, const gy_counter_wait *w)
{
    const gy_counter *c = &s->counters.at.at[counter];
    gy_text_add(to, "  waits until ");
    gy_op_text(to, s, s->counters.signal.at[c->signal + w->value - 1]);
    if (w->distance > 1)
        gy_text_printf(to, " of %u starts before", w->distance);
    gy_text_printf(to, "%s has ended: value %u of %u of ", w->distance == 1 ? " of the start before" : "", w->value,
                   c->signals);
    add_lanes(to, s, counter);
    gy_text_add(to, "\n");
}

static void add_signal(gy_text *to, const gantry_schedule *s, size_t counter, uint32_t value)
{
    gy_text_printf(to, "  signals, when it has ended, value %u of %u of ", value, s->counters.at.at[counter].signals);
    add_lanes(to, s, counter);
    gy_text_add(to, "\n");
}

void gy_explain_counters(gy_text *to, const gantry_schedule *s, uint32_t op)
{
    bool any = false;
    for (size_t i = 0; i < s->counters.at.count; i++) {
        const gy_counter *c = &s->counters.at.at[i];
        for (uint32_t k = 0; k < c->waits + c->signals; k++) {
            const gy_counter_wait *w = k < c->waits ? &s->counters.wait.at[c->wait + k] : NULL;
            uint32_t who = w ? w->op : s->counters.signal.at[c->signal + k - c->waits];
            if (who != op)
                continue;
            gy_text_add(to, any ? "" : "\nby counters, without the host, it\n");
            any = true;
            if (w)
                add_wait(to, s, i, w);
            else
                add_signal(to, s, i, k - c->waits + 1);
        }
    }
}
