/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/better.h"

#include "schedule/usage.h"

#define EQUAL_WITHIN 1000 /* one part of so many */
#define NEAR         9    /* likewise */

static gy_plan_end end_of(const gantry_schedule *s)
{
    return (gy_plan_end){ .makespan = s->makespan,
                          .moved = gy_schedule_bytes_moved(s),
                          .devices = gy_schedule_devices_used(s),
                          .memory = gy_schedule_memory(s) };
}

static bool takes_less(const gy_plan_end *a, const gantry_schedule *b)
{
    gy_plan_end e = end_of(b);
    uint64_t x = a->moved, y = e.moved;
    if (x == y) {
        x = a->devices;
        y = e.devices;
    }
    if (x == y) {
        x = a->memory;
        y = e.memory;
    }
    return x == y ? a->makespan < b->makespan : x < y;
}

bool gy_is_preferred(const gantry_schedule *a, const gantry_schedule *b, gy_ticks least)
{
    gy_plan_end end = end_of(a);
    return gy_is_end_preferred(&end, b, least);
}

bool gy_is_end_preferred(const gy_plan_end *a, const gantry_schedule *b, gy_ticks least)
{
    least = a->makespan < least ? a->makespan : least;
    gy_ticks most = least + gy_machine_after_start(b->machine, least) / EQUAL_WITHIN;
    if (a->makespan > most || b->makespan > most)
        return a->makespan <= most;
    return takes_less(a, b);
}

bool gy_is_near_bound(const gantry_schedule *s)
{
    return s->makespan <= s->bound + s->bound / NEAR;
}
