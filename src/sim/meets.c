/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that meet by counters, as back ends carry them out: what they wait for is on their own GPUs. */
#include "sim/internal.h"

#include "machine/gpus.h"

static uint32_t device_of(const gy_sim *sim, const gy_op *op, uint32_t k)
{
    return gy_sim_lane(sim, op, k)->device;
}

/* Each is a GPU of its own, and reaches those before it without the host, or a network, between them. */
static bool reaches_others(const gy_sim *sim, const gy_op *op, uint32_t k)
{
    uint32_t mine = device_of(sim, op, k);
    bool reaches = sim->m->device[mine].gpu;
    for (uint32_t i = 0; i < k && reaches; i++) {
        uint32_t other = device_of(sim, op, i);
        const gy_route *route = gy_machine_route(sim->m, sim->m->device[mine].memory, sim->m->device[other].memory);
        reaches = !gy_device_same_gpu(sim->m, mine, other) && route->kind == GY_ROUTE_DIRECT && !route->network;
    }
    return reaches;
}

bool gy_sim_meets(const gy_sim *sim, const gy_op *op)
{
    bool meets = op->kind == GY_OP_COLLECTIVE && op->algorithm == GY_ALGORITHM_COUNTERS && op->lanes > 1;
    for (uint32_t k = 0; k < op->lanes && meets; k++)
        meets = reaches_others(sim, op, k);
    return meets;
}

/* Its lane on the device, else the first. */
static const gy_lane *lane_on(const gy_sim *sim, const gy_op *op, uint32_t device)
{
    uint32_t k = 0;
    while (k < op->lanes && device_of(sim, op, k) != device)
        k++;
    return gy_sim_lane(sim, op, k < op->lanes ? k : 0);
}

bool gy_sim_between(const gy_sim *sim, uint32_t from, uint32_t to, const gy_lane **a, const gy_lane **b)
{
    *a = gy_sim_lead(sim, from);
    *b = gy_sim_lead(sim, to);
    if (!*a || !*b)
        return false;
    if (gy_sim_meets(sim, &sim->s->ops.at[to]))
        *b = lane_on(sim, &sim->s->ops.at[to], (*a)->device);
    if (gy_sim_meets(sim, &sim->s->ops.at[from]))
        *a = lane_on(sim, &sim->s->ops.at[from], (*b)->device);
    return true;
}
