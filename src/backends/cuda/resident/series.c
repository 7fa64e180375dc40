/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series: several starts by one launch (docs/design/counters.md). Between them there is no host, which could give the
 * devices other programs, carry out ops of its own, or look at a condition. So all of a start has to be the workers',
 * and the same each time; and where a condition ends the series a worker must find it in the memory of its GPU.
 */
#include "backends/cuda/resident/resident.h"

#include <stdio.h>
#include <string.h>

const gy_resident_series gy_resident_alone = { .starts = 1 };

CUdeviceptr gy_resident_verdict(const gy_cuda *h, uint32_t device)
{
    const gy_resident *r = h->resident;
    if (device == h->devices)
        return (CUdeviceptr)(uintptr_t)r->told;
    const gy_resident_gpu *g = &r->gpu[device];
    return g->block + (uint64_t)(g->counters - GY_RESIDENT_SERIES_WORDS) * GY_COUNTER_BYTES;
}

gy_resident_series gy_resident_series_on(const gy_cuda *h, uint32_t device)
{
    gy_resident_series series = h->resident->series;
    CUdeviceptr verdict = gy_resident_verdict(h, device);
    series.verdict = (const uint64_t *)(uintptr_t)verdict;
    series.halt = (const uint64_t *)(uintptr_t)(verdict + GY_COUNTER_BYTES);
    return series;
}

/* ---- the condition ---- */

/* The op, a copy, brings the buffer to the host, and finds it in the memory of a GPU. */
static bool brings(const gy_cuda *h, uint32_t id, uint32_t turn, gy_location *from)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    uint32_t pairs = op->uses / 2;
    for (uint32_t k = 0; k < pairs; k++) {
        const gy_instance *to = &s->instances.at[s->use.at[op->use + pairs + k].instance];
        if (to->space != GY_SPACE_OUTPUT || to->value != h->resident->until)
            continue;
        *from = gy_cuda_location(h, &s->use.at[op->use + k], turn);
        return from->device != GY_NONE;
    }
    return false;
}

/* The verdict goes to each GPU with workers, whatever else there is between these and the one that has it. */
static bool reaches_all(gy_cuda *h, uint32_t from)
{
    const gy_resident *r = h->resident;
    bool all = true;
    for (uint32_t i = 0; i < h->devices; i++)
        if (r->gpu[i].workers && i != from)
            all = gy_cuda_peers_enable(h, from, i) && all;
    return all;
}

void gy_resident_find_ask(gy_cuda *h, uint32_t turn)
{
    const gantry_schedule *s = h->job->schedule;
    gy_resident *r = h->resident;
    gy_location from;
    r->ask_op = GY_NONE;
    r->ask_far = false;
    for (uint32_t i = 0; i < s->ops.count && r->until != GY_NONE; i++) {
        const gy_op *op = &s->ops.at[i];
        if (!r->has[i] || op->lanes != 1 || !gy_op_is_copy(op) || !brings(h, i, turn, &from))
            continue;
        r->ask_far = !reaches_all(h, gy_cuda_lane_of(h, i, 0)->queue.device);
        r->ask_op = r->ask_far ? GY_NONE : i;
        r->ask = gy_resident_asked_of(from.at, h->job->graph->buffers.at[r->until].dtype);
    }
}

/* ---- one start or several ---- */

/* NULL: nothing is in the way. */
static const char *obstacle(const gy_cuda *h, bool varies)
{
    const gy_resident *r = h->resident;
    bool asks = r->wanted->look > 0 && r->wanted->look < r->wanted->starts;
    if (r->detours.count)
        return "GPUs that do not reach each other's memory wait for each other";
    if (r->lefts > 0)
        return "streams carry out a part of it";
    if (varies)
        return "arguments depend on the iteration";
    if (h->turns > 1 && !gy_resident_turns_alike(h))
        return "starts that can be in flight together have arrays of which not all lie at multiples of 16 bytes";
    if (asks && r->ask_far)
        return "the GPU that has what ends the loop does not reach another one's memory";
    return asks && r->ask_op == GY_NONE ? "no worker copies what ends the loop from a GPU to the host" : NULL;
}

void gy_resident_series_want(gy_cuda *h, const gy_series *wanted)
{
    gy_resident *r = h->resident;
    if (!gy_resident_on(h))
        return;
    for (uint32_t t = 0; t < h->turns && r->until != wanted->until; t++)
        gy_resident_stale(h, t);
    r->until = wanted->until;
    r->wanted = wanted;
    r->counts = false;
}

bool gy_resident_may_take_turns(const gy_cuda *h)
{
    return gy_resident_on(h) && h->turns > 1 && h->resident->wanted && h->resident->wanted->starts > 1;
}

bool gy_resident_takes_turns(const gy_cuda *h)
{
    return gy_resident_on(h) && h->turns > 1 && h->resident->series.starts > 1;
}

gantry_status gy_resident_series_choose(gy_cuda *h, bool varies, gantry_error *err)
{
    gy_resident *r = h->resident;
    if (!gy_resident_on(h))
        return GANTRY_OK;
    r->series = gy_resident_alone;
    if (!r->wanted || r->wanted->starts < 2)
        return GANTRY_OK;
    r->in_series = true;
    r->series_why = obstacle(h, varies);
    if (r->series_why)
        return GANTRY_OK;
    if (h->turns > 1)
        GY_TRY(gy_resident_ring_make(h, err));
    r->series.starts = r->wanted->starts;
    r->series.look = r->wanted->look;
    r->series.every = r->wanted->every;
    return GANTRY_OK;
}

/* The epoch of the last verdict is that of the last start. */
static uint64_t starts_of(const gy_resident *r)
{
    const volatile uint64_t *told = r->told; /* by a GPU */
    bool asked = r->series.look > 0 && r->series.look < r->series.starts;
    return asked ? (*told - 1) / 2 - r->first + 1 : r->series.starts;
}

/* Counters go on behind the starts that there were. */
uint64_t gy_resident_series_end(gy_cuda *h)
{
    gy_resident *r = h->resident;
    uint64_t starts = 1;
    if (!r || r->rests)
        return starts;
    if (r->counts && r->begun) {
        starts = starts_of(r);
        r->epoch = r->first + starts;
    }
    r->wanted = NULL;
    r->counts = false;
    r->series = gy_resident_alone;
    return starts;
}

void gy_resident_tell_series(const gy_cuda *h, char *to, size_t size)
{
    const gy_resident *r = h->resident;
    size_t at = strlen(to);
    if (r->off || !r->in_series)
        return;
    if (r->series_why)
        snprintf(to + at, size - at, "; one start a launch: %s", r->series_why);
    else
        snprintf(to + at, size - at, "; series of starts by one launch");
}
