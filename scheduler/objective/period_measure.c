/* SPDX-License-Identifier: Apache-2.0 */
/* The period of a schedule, from a simulation of many starts. */
#include "scheduler/objective/period.h"

#include "base/error.h"
#include "sim/sim.h"
#include <string.h>

#define MEASURED 48                /* starts at most that the period is taken over */
#define ITEMS    UINT64_C(4000000) /* ops of all starts that are simulated, about */

static bool is_near(gy_ticks a, gy_ticks b)
{
    gy_ticks slack = (a >> 20) + 2; /* rates are rounded */
    return a - b <= slack && b - a <= slack;
}

/* Distances of ends repeat after some starts, if the simulation was long enough: the fewest that do so twice. */
static uint32_t find_pattern(const gy_sim_start *start, uint32_t last)
{
    for (uint32_t n = 1; n <= last / 3; n++) {
        bool same = true;
        for (uint32_t i = last; i > last - n && same; i--)
            same = is_near(start[i].end - start[i - 1].end, start[i - n].end - start[i - n - 1].end);
        if (same)
            return n;
    }
    return last / 2 + 1;
}

/* The first starts fill the pipeline; the last ones have nobody behind them to share links with, and are left out. A
 * captured graph does not overlap itself, whatever is queued. */
gantry_status gy_period_measure(const gantry_schedule *s, gy_ticks *period, gantry_error *err)
{
    uint32_t k = s->in_flight, starts = 3 * k + MEASURED;
    if (strcmp(s->replay, "graph") == 0) {
        *period = s->makespan;
        return GANTRY_OK;
    }
    if ((uint64_t)starts * s->ops.count > ITEMS)
        starts = 5 * k;
    gy_sim_start *start = gy_calloc(starts, sizeof *start);
    if (!start)
        return gy_fail_nomem(err);
    gantry_status status = gy_sim_run_starts(s, starts, start, err);
    uint32_t last = starts - 1 - k, n = status ? 1 : find_pattern(start, last);
    if (!status)
        *period = (start[last].end - start[last - n].end + n - 1) / n;
    gy_free(start);
    return status;
}
