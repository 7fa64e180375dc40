/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/better.h"

#include "schedule/usage.h"

#define EQUAL_WITHIN 1000 /* one part of so many */

static bool takes_less(const gantry_schedule *a, const gantry_schedule *b)
{
    uint64_t x = gy_schedule_bytes_moved(a), y = gy_schedule_bytes_moved(b);
    if (x == y) {
        x = gy_schedule_devices_used(a);
        y = gy_schedule_devices_used(b);
    }
    if (x == y) {
        x = gy_schedule_memory(a);
        y = gy_schedule_memory(b);
    }
    return x == y ? a->makespan < b->makespan : x < y;
}

bool gy_is_preferred(const gantry_schedule *a, const gantry_schedule *b, gy_ticks least)
{
    least = a->makespan < least ? a->makespan : least;
    gy_ticks most = least + gy_machine_after_start(a->machine, least) / EQUAL_WITHIN;
    if (a->makespan > most || b->makespan > most)
        return a->makespan <= most;
    return takes_less(a, b);
}
