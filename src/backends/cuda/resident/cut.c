/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where something comes between workers that streams order, the start is cut. Where NCCL carries an op out that is its
 * group call: a kernel of NCCL needs multiprocessors, which workers may have all of, and waits for its peers, which may
 * stand behind workers. So the resident kernel of each GPU ends with the ops ahead of the cut, the group call comes
 * behind it on the GPUs of its ranks, and the kernels of the next segment come behind that. Where two GPUs that do not
 * reach each other's memory wait for each other it is an event (detour.c). Counters go on from segment to segment,
 * since they know of starts alone.
 *
 * A cut is a place in the order of positions, for all GPUs. Whatever an op waits for comes before it in that order, or
 * in an earlier start (docs/design/counters.md), so no segment waits for a later one. And the host gives segments and
 * groups to the GPUs in that order: while it makes a call of NCCL, which may wait for GPUs (it connects its ranks and
 * loads code when they are first used), all that was given to them ends by itself.
 */
#include "backends/cuda/resident/resident.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

/* Where it was not measured: a kernel of fewer ops takes longer to launch than these would. */
enum { LEAST_OPS = 4 };

bool gy_resident_ends_ahead(const gy_resident *r, uint32_t op)
{
    return r->cut[op] == GY_CUT_HERE || r->cut[op] == GY_CUT_AHEAD;
}

void gy_resident_find_cuts(gy_cuda *h)
{
    gy_resident *r = h->resident;
    r->segments = 1;
    for (uint32_t i = 0; i < h->job->schedule->ops.count; i++) {
        r->cut[i] = !h->op[i].nccl ? GY_CUT_NOWHERE : h->op[i].called ? GY_CUT_JOINED : GY_CUT_HERE;
        r->segments += r->cut[i] == GY_CUT_HERE;
        r->cuts += r->cut[i] != GY_CUT_NOWHERE;
        r->can[i] = r->cut[i] == GY_CUT_NOWHERE;
    }
}

void gy_resident_tell_cuts(const gy_cuda *h, const char *replay, char *to, size_t size)
{
    const gy_resident *r = h->resident;
    const char *nccl = strchr(replay, ';'); /* behind what starts would be without workers */
    size_t at = strlen(to);
    if (r->segments > 1)
        snprintf(to + at, size - at, "; up to %u kernels of workers a GPU%s%s", r->segments,
                 r->cuts ? ", with collectives between them" : "", r->cuts && nccl ? nccl : "");
}

static gy_resident_gpu *gpu_of(const gy_submit *x, uint32_t lane)
{
    return &x->h->resident->gpu[gy_submit_lane(x, lane).device];
}

/* Ops of the segment that do not wait for this one come ahead of it as well. */
gantry_status gy_resident_cut_begin(gy_submit *x)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < x->h->job->schedule->ops.at[x->op].lanes && status == GANTRY_OK; i++)
        status = gy_submit_order(x, gpu_of(x, i)->queue, gy_submit_lane(x, i));
    return status;
}

/* Also where a GPU has nothing in the next segment, its kernel of a later one comes behind the op. */
gantry_status gy_resident_cut_end(gy_submit *x)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < x->h->job->schedule->ops.at[x->op].lanes && status == GANTRY_OK; i++)
        status = gy_submit_order(x, gy_submit_lane(x, i), gpu_of(x, i)->queue);
    x->segment++;
    return status ? status : gy_resident_launch(x);
}

/* ---- short ones ---- */

/* Ops [first, end) are a segment. `of`: how many of them the workers of each device have. */
static void leave(gy_cuda *h, uint32_t first, uint32_t end, uint32_t *of)
{
    const gantry_schedule *s = h->job->schedule;
    gy_resident *r = h->resident;
    memset(of, 0, h->devices * sizeof *of);
    for (uint32_t i = first; i < end; i++)
        for (uint32_t k = 0; k < s->ops.at[i].lanes; k++)
            of[gy_op_device(s, &s->ops.at[i], k)] += r->has[i];
    for (uint32_t i = first; i < end; i++)
        for (uint32_t k = 0; k < s->ops.at[i].lanes; k++)
            if (of[gy_op_device(s, &s->ops.at[i], k)] < LEAST_OPS)
                r->has[i] = 0;
}

gantry_status gy_resident_leave_short(gy_cuda *h, gantry_error *err)
{
    uint32_t ops = (uint32_t)h->job->schedule->ops.count, first = 0;
    if (h->resident->segments == 1)
        return GANTRY_OK;
    uint32_t *of = gy_calloc(h->devices + (size_t)1, sizeof *of);
    if (!of)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i <= ops; i++) {
        if (i < ops && !gy_resident_ends_ahead(h->resident, i))
            continue;
        leave(h, first, i, of);
        first = i;
    }
    gy_free(of);
    return GANTRY_OK;
}
