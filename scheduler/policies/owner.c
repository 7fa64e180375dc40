/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Data owner: every task goes to the memory where most of its input bytes were made (bound inputs: host memory), so
 * that least is moved; "owner computes" of the data-parallel compilers (D. Callahan, K. Kennedy, Compiling Programs for
 * Distributed-Memory Multiprocessors, J. Supercomputing 2, 1988). Of the devices of that memory, of memories with
 * equally many bytes, and for tasks that read nothing: where it ends first. Tasks by falling upward rank. It never
 * spreads what one device began: work that hangs together stays together.
 *
 * Cost: O(e p + n p log n).
 */
#include "base/error.h"

#include "scheduler/place/inputs.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/policy.h"

/* Per memory: the bytes of the task's inputs that were made there. */
static void count_bytes(const gy_plan *p, uint32_t task, int64_t *bytes)
{
    const gy_flow *f = p->flow;
    for (uint32_t m = 0; m < p->machine->memories; m++)
        bytes[m] = 0;
    bytes[0] = p->inputs.upload[task];
    for (size_t i = gy_outside_first(p, task); i < p->inputs.outside.count && p->inputs.outside.at[i].task == task; i++)
        bytes[p->inputs.outside.at[i].memory] += p->inputs.outside.at[i].bytes;
    for (const gy_dep *d = gy_deps_begin(f, task); d < gy_deps_end(f, task); d++)
        if (d->kinds & GY_DEP_DATA)
            bytes[p->machine->device[p->placed.device[d->from]].memory] += d->bytes;
}

static gantry_status place_one(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    int64_t *bytes = context, most = 0;
    gy_try best = { .device = GY_NONE };
    count_bytes(p, task, bytes);
    for (uint32_t d = 0; d < p->devices && !gy_plan_team(p, task); d++) {
        int64_t here = bytes[p->machine->device[d].memory];
        if (!gy_place_allowed(p, task, d) || (best.device != GY_NONE && here < most))
            continue;
        gy_try t = gy_place_try(p, task, d);
        if (best.device == GY_NONE || here > most || t.finish < best.finish)
            best = t;
        most = here;
    }
    return best.device == GY_NONE ? gy_place_earliest(p, task, err) : gy_place_at(p, task, &best, err);
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    gy_rank *rank = gy_upward_ranks(p, GY_BY_MEAN);
    int64_t *bytes = gy_calloc(p->machine->memories, sizeof *bytes);
    gantry_status status = rank && bytes ? gy_place_by_rank(p, rank, place_one, bytes, err) : gy_fail_nomem(err);
    gy_free(rank);
    gy_free(bytes);
    return status;
}

const gy_policy gy_policy_owner = {
    .name = "owner",
    .summary = "puts each node where most of its input bytes are",
    .place = place,
    .largest = GY_ANY_SIZE,
};
