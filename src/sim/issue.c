/* SPDX-License-Identifier: Apache-2.0 */
/* The time that the host needs to give work out: as streams, or where GPUs wait for each other (sim.h). */
#include "sim/internal.h"

#include "base/error.h"
#include <string.h>

/* Of another GPU than the first. */
static bool is_other_gpu(const gy_sim *sim, const gy_lane *first, const gy_lane *lane)
{
    return first->device != lane->device && sim->m->device[lane->device].gpu;
}

/* Between memories of two GPUs. */
static bool is_peer_copy(const gy_sim *sim, const gy_op *op)
{
    if (!gy_op_is_copy(op) || op->joined)
        return false;
    uint32_t from = sim->s->instances.at[sim->s->use.at[op->use].instance].memory;
    uint32_t to = sim->s->instances.at[sim->s->use.at[op->use + 1].instance].memory;
    return from != to && !sim->m->memory[from].host && !sim->m->memory[to].host;
}

static bool crosses(const gy_sim *sim, const gy_sync *row)
{
    const gy_lane *a = gy_sim_lead(sim, row->from), *b = gy_sim_lead(sim, row->to);
    return a && b && is_other_gpu(sim, a, b) && sim->m->device[a->device].gpu;
}

/* A wait of one lane for another of the same GPU is an edge that this GPU knows of by itself: by 16 lists on each of
 * two H200s a step of a stencil, with 60 such waits more than by one, takes 9.6 us in place of 7.2. The host gives out
 * what leads from GPU to GPU: copies, what they wait for, and what waits for them. */
static bool is_given_out(const gy_sim *sim, const gy_sync *row)
{
    return row->carrier != GY_CARRIER_LANE && (crosses(sim, row) || is_peer_copy(sim, &sim->s->ops.at[row->to]));
}

/* Bits that the host gives out: of each op. False: no GPU waits for another, and all goes out at once. */
static bool count_bits(const gy_sim *sim, uint32_t *bits)
{
    const gantry_schedule *s = sim->s;
    bool any = false;
    for (size_t i = 0; i < s->sync.count; i++) {
        bits[s->sync.at[i].to] += is_given_out(sim, &s->sync.at[i]);
        any = any || crosses(sim, &s->sync.at[i]);
    }
    for (uint32_t op = 0; op < sim->ops; op++) {
        const gy_op *o = &s->ops.at[op];
        bits[op] += is_peer_copy(sim, o);
        for (uint32_t k = 1; k < o->lanes && !o->joined; k++) {
            bits[op] += 2;
            any = any || is_other_gpu(sim, gy_sim_lane(sim, o, 0), gy_sim_lane(sim, o, k));
        }
    }
    return any;
}

/* A start that waits for another to end is given out like the first: each op so much later than the start may begin. */
static bool keep_given(gy_sim *sim)
{
    if (sim->starts <= sim->s->in_flight || sim->ops == 0)
        return true;
    sim->given = gy_calloc(sim->ops, sizeof *sim->given);
    if (sim->given)
        memcpy(sim->given, sim->due, sim->ops * sizeof *sim->given);
    return sim->given != NULL;
}

static uint32_t count_gpus(const gy_sim *sim)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sim->m->devices; i++) {
        bool used = false;
        for (size_t k = 0; k < sim->s->lanes.count && !used; k++)
            used = sim->m->device[i].gpu && sim->s->lanes.at[k].device == i;
        count += used;
    }
    return count;
}

/* Where each GPU has a graph of its own, none leads from GPU to GPU: each is given out as a whole, by a call for each
 * beyond the first. */
static gy_ticks graphs_given_out(const gy_sim *sim)
{
    uint32_t gpus = sim->gates ? count_gpus(sim) : 0;
    return gpus > 1 ? gy_ticks_repeated(sim->m->submit, gpus - 1) : 0;
}

gantry_status gy_sim_issue(gy_sim *sim, gantry_error *err)
{
    gy_ticks each = sim->s->replay == GY_REPLAY_STREAM ? sim->m->submit : 0;
    gy_ticks at = gy_ticks_both(sim->m->start, graphs_given_out(sim));
    if (!sim->m->issue && !each && !at)
        return GANTRY_OK;
    uint32_t *bits = gy_calloc((size_t)sim->ops + 1, sizeof *bits);
    if (!bits)
        return gy_fail_nomem(err);
    gy_ticks bit = count_bits(sim, bits) && !sim->gates ? sim->m->issue : 0;
    for (size_t i = 0; (bit || each || at) && i < (size_t)sim->ops * sim->starts; i++) {
        gy_ticks call = sim->s->ops.at[i % sim->ops].joined ? 0 : each;
        at = gy_ticks_both(at, gy_ticks_both(call, gy_ticks_repeated(bit, bits[i % sim->ops])));
        sim->due[i] = at;
    }
    gy_free(bits);
    return keep_given(sim) ? GANTRY_OK : gy_fail_nomem(err);
}
