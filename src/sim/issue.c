/* SPDX-License-Identifier: Apache-2.0 */
/* What it takes the host to give work out where GPUs wait for each other (sim.h). */
#include "sim/internal.h"

#include "base/error.h"

static const gy_device *lead_device(const gy_sim *sim, uint32_t op)
{
    const gy_op *o = &sim->s->ops.at[op];
    return o->lanes ? &sim->m->device[sim->s->lanes.at[sim->s->op_lane.at[o->lane]].device] : NULL;
}

static const gy_device *device_of_lane(const gy_sim *sim, const gy_op *op, uint32_t k)
{
    return &sim->m->device[sim->s->lanes.at[sim->s->op_lane.at[op->lane + k]].device];
}

/* Between memories of two GPUs. */
static bool is_peer_copy(const gy_sim *sim, const gy_op *op)
{
    if (!gy_op_is_copy(op))
        return false;
    uint32_t from = sim->s->instances.at[sim->s->use.at[op->use].instance].memory;
    uint32_t to = sim->s->instances.at[sim->s->use.at[op->use + 1].instance].memory;
    return from != to && !sim->m->memory[from].host && !sim->m->memory[to].host;
}

static bool crosses(const gy_sim *sim, const gy_sync *row)
{
    const gy_device *a = lead_device(sim, row->from), *b = lead_device(sim, row->to);
    return a && b && a != b && a->gpu && b->gpu;
}

/* Bits that the host gives out: of each op. False: no GPU waits for another, and all goes out at once. */
static bool count_bits(const gy_sim *sim, uint32_t *bits)
{
    const gantry_schedule *s = sim->s;
    bool any = false;
    for (size_t i = 0; i < s->sync.count; i++) {
        bits[s->sync.at[i].to] += s->sync.at[i].carrier != GY_CARRIER_LANE;
        any = any || crosses(sim, &s->sync.at[i]);
    }
    for (uint32_t op = 0; op < sim->ops; op++) {
        const gy_op *o = &s->ops.at[op];
        bits[op] += is_peer_copy(sim, o);
        for (uint32_t k = 1; k < o->lanes; k++) {
            bits[op] += 2;
            any = any || (device_of_lane(sim, o, k) != device_of_lane(sim, o, 0) && device_of_lane(sim, o, k)->gpu);
        }
    }
    return any;
}

gantry_status gy_sim_issue(gy_sim *sim, gantry_error *err)
{
    if (!sim->m->issue)
        return GANTRY_OK;
    uint32_t *bits = gy_calloc((size_t)sim->ops + 1, sizeof *bits);
    gy_ticks at = 0;
    if (!bits)
        return gy_fail_nomem(err);
    if (count_bits(sim, bits)) {
        for (size_t i = 0; i < (size_t)sim->ops * sim->starts; i++) {
            for (uint32_t k = 0; k < bits[i % sim->ops]; k++)
                at = gy_sim_after(at, sim->m->issue);
            sim->due[i] = at;
        }
    }
    gy_free(bits);
    return GANTRY_OK;
}
