/* SPDX-License-Identifier: Apache-2.0 */
/* The period of a schedule, from a simulation of many starts. */
#include "scheduler/objective/period.h"

#include "base/error.h"
#include "sim/sim.h"

#define MEASURED 48                /* starts at most that the period is taken over */
#define ITEMS    UINT64_C(4000000) /* ops of all starts that are simulated, about */

static bool is_near(gy_ticks a, gy_ticks b)
{
    gy_ticks slack = (a >> 20) + 2; /* rates are rounded */
    return a - b <= slack && b - a <= slack;
}

static gy_ticks distance(const gy_sim_start *start, uint32_t i)
{
    return start[i].end - start[i - 1].end;
}

/* Distances of ends repeat after some starts, if the simulation was long enough: the fewest that do so for as long as
 * the second half lasts, and twice at least. Some that are alike among others that are not are no pattern. */
static uint32_t find_pattern(const gy_sim_start *start, uint32_t last)
{
    for (uint32_t n = 1; n <= last / 3; n++) {
        uint32_t span = n < last / 2 - n ? last / 2 - n : n;
        bool same = true;
        for (uint32_t i = last; i > last - span && same; i--)
            same = is_near(distance(start, i), distance(start, i - n));
        if (same)
            return n;
    }
    return last / 2 + 1;
}

gantry_status gy_period_least(const gantry_schedule *s, gy_ticks *least, gantry_error *err)
{
    gy_ticks *work = gy_calloc(s->lanes.count + 1, sizeof *work);
    if (!work)
        return gy_fail_nomem(err);
    *least = 1;
    for (size_t i = 0; i < s->ops.count; i++)
        for (uint32_t k = 0; k < s->ops.at[i].lanes; k++) {
            gy_ticks *lane = &work[s->op_lane.at[s->ops.at[i].lane + k]];
            *lane += s->ops.at[i].duration < GY_TICKS_MAX - *lane ? s->ops.at[i].duration : 0;
            *least = *lane > *least ? *lane : *least;
        }
    gy_free(work);
    return GANTRY_OK;
}

/* The first starts fill the pipeline; the last ones have nobody behind them to share links with, and are left out. */
static gantry_status simulate(const gantry_schedule *s, gy_ticks *period, gantry_error *err)
{
    uint32_t k = s->in_flight, starts = 3 * k + MEASURED;
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

/* A captured graph does not overlap itself, whatever is queued. A lane that is a little busier than the rest falls
 * behind so slowly that no start that is simulated waits for it yet. */
gantry_status gy_period_measure(const gantry_schedule *s, gy_ticks *period, gantry_error *err)
{
    gy_ticks least = 0;
    if (s->replay == GY_REPLAY_GRAPH) {
        *period = s->makespan;
        return GANTRY_OK;
    }
    gantry_status status = simulate(s, period, err);
    if (!status)
        status = gy_period_least(s, &least, err);
    if (!status && *period < least)
        *period = least;
    return status;
}
