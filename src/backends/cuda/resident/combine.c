/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives that workers carry out: each GPU its shares of a round, as its kernels would (collective/share.h), in the
 * lane that it has of the op. Its lanes meet before each round, and behind the last (packets.c).
 */
#include "backends/cuda/resident/resident.h"

#include "backends/cuda/collective/share.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

enum {
    MOST_ENDS = GY_RESIDENT_ENDS,
    MOST_BYTES = 1 << 20, /* of a share: kernels of streams have more blocks for larger ones */
    ELEMENTS = 1024       /* that a block combines */
};

/* The lane of the op on the device; GY_NONE: there is none. */
static uint32_t lane_on(const gy_cuda *h, const gy_op *op, uint32_t device)
{
    for (uint32_t k = 0; k < op->lanes; k++)
        if (h->lane[h->job->schedule->op_lane.at[op->lane + k]].queue.device == device)
            return k;
    return GY_NONE;
}

static bool all_reach(const gy_cuda *h, const gy_op *op)
{
    bool all = true;
    for (uint32_t a = 0; a < op->lanes; a++)
        for (uint32_t b = 0; b < op->lanes; b++)
            all = all && gy_cuda_reaches(h, h->lane[h->job->schedule->op_lane.at[op->lane + a]].queue.device,
                                         h->lane[h->job->schedule->op_lane.at[op->lane + b]].queue.device);
    return all;
}

/* The GPU that has it sends what a copy engine would bring. */
uint32_t gy_resident_share_device(const gy_cuda *h, uint32_t id, const gy_share *s)
{
    return s->way == GY_SHARE_COPY ? gy_collective_end(h, id, 0, s->source, 0).device : s->device;
}

static bool is_on_gpus(const gy_cuda *h, uint32_t id, const gy_share *s)
{
    bool all = true;
    for (uint32_t k = 0; k < s->sources + s->targets; k++)
        all =
            all && gy_collective_end(h, id, 0, k < s->sources ? s->source + k : s->target + k - s->sources, 0).device !=
                       GY_NONE;
    return all;
}

static bool can_share(const gy_cuda *h, uint32_t id, const gy_share *s)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    return s->way != GY_SHARE_HOST && is_on_gpus(h, id, s) && s->sources + s->targets <= MOST_ENDS &&
           s->bytes <= MOST_BYTES && lane_on(h, op, gy_resident_share_device(h, id, s)) != GY_NONE;
}

/* NULL: workers can. */
static const char *obstacle(const gy_cuda *h, uint32_t id)
{
    const gy_cuda_op *o = &h->op[id];
    const gy_op *op = &h->job->schedule->ops.at[id];
    if (o->nccl)
        return "NCCL carries it out";
    if (o->called || o->joint)
        return "workers carry no batches of collectives out";
    if (o->exchange && o->exchange->staged)
        return "it overwrites what other ranks read: give what it writes memory of its own";
    if (!o->exchange || !o->shares || !all_reach(h, op))
        return "its GPUs do not reach all ends of the collective: \"gantry doctor\" says why";
    for (uint32_t i = 0; i < o->shares; i++)
        if (!can_share(h, id, &o->share[i]))
            return "workers combine and move what kernels can, of up to 10 ends and 1 MiB each";
    return NULL;
}

static uint32_t function_of(const gy_exchange *exchange)
{
    static const char *const names[] = { "sum", "min", "max", "prod" };
    char name[40];
    snprintf(name, sizeof name, "resident_%s_%s", names[exchange->reduce - GANTRY_SUM],
             gantry_dtype_name(exchange->dtype));
    return gy_resident_function_of(name);
}

static uint64_t address(const gy_cuda *h, uint32_t id, uint32_t turn, const gy_share *s, uint32_t end)
{
    return gy_collective_end(h, id, turn, end, s->offset).at;
}

/* Ends that are not there are the first one again, which the function does not look at. */
static gantry_status combine(const gy_cuda *h, uint32_t id, uint32_t turn, const gy_share *s, gy_resident_call *call,
                             const char **why)
{
    const gy_exchange *exchange = h->op[id].exchange;
    uint64_t n = s->bytes / gantry_dtype_size(exchange->dtype);
    uint32_t ends = s->sources + s->targets;
    call->function = function_of(exchange);
    call->grid[0] = (unsigned)((n + ELEMENTS - 1) / ELEMENTS);
    call->word[call->words++] = n;
    call->word[call->words++] = s->sources;
    call->word[call->words++] = ends;
    for (uint32_t k = 0; k < MOST_ENDS; k++)
        call->word[call->words++] = address(h, id, turn, s,
                                            k < s->sources ? s->source + k
                                            : k < ends     ? s->target + k - s->sources
                                                           : s->source);
    if (!call->function)
        *why = "workers do not combine elements of this type";
    return GANTRY_OK;
}

static gantry_status push(gy_resident_calls *to, const gy_resident_call *call, gantry_error *err)
{
    return gy_vec_push(to, *call) ? GANTRY_OK : gy_fail_nomem(err);
}

/* One source: a copy to each target that is another place. */
static gantry_status spread(const gy_cuda *h, uint32_t id, uint32_t turn, const gy_share *s, gy_resident_call call,
                            gy_resident_calls *to, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    call.function = GY_RESIDENT_resident_copy;
    call.words = 3;
    call.grid[0] = (unsigned)((s->bytes + GY_RESIDENT_CHUNK - 1) / GY_RESIDENT_CHUNK);
    call.word[0] = address(h, id, turn, s, s->source);
    call.word[2] = s->bytes;
    for (uint32_t k = 0; k < s->targets && !status; k++) {
        call.word[1] = address(h, id, turn, s, s->target + (s->distance + k) % s->targets);
        status = call.word[1] == call.word[0] ? GANTRY_OK : push(to, &call, err);
    }
    return status;
}

gantry_status gy_resident_combine_calls(gy_cuda *h, uint32_t id, uint32_t turn, gy_resident_calls *to, const char **why,
                                        gantry_error *err)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    gantry_status status = GANTRY_OK;
    *why = obstacle(h, id);
    for (uint32_t i = 0; i < h->op[id].shares && !*why && !status; i++) {
        const gy_share *s = &h->op[id].share[i];
        gy_resident_call call = { .lane = lane_on(h, op, gy_resident_share_device(h, id, s)),
                                  .round = s->round,
                                  .grid = { 1, 1 } };
        call.block[0] = GY_RESIDENT_THREADS;
        call.block[1] = 1;
        if (s->bytes && s->sources > 1) {
            status = combine(h, id, turn, s, &call, why);
            status = status || *why ? status : push(to, &call, err);
        } else if (s->bytes) {
            status = spread(h, id, turn, s, call, to, err);
        }
    }
    return status;
}
