/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers that go at the same time. */
#include "scheduler/collective/collective.h"

gy_ticks gy_ticks_sum(gy_ticks a, gy_ticks b)
{
    return a > GY_TICKS_MAX - b ? GY_TICKS_MAX : a + b;
}

gy_ticks gy_ticks_times(gy_ticks time, int64_t count)
{
    return count && time > GY_TICKS_MAX / count ? GY_TICKS_MAX : time * count;
}

bool gy_net_init(gy_net *net, const gantry_machine *m)
{
    *net = (gy_net){ .m = m };
    net->load = gy_calloc((size_t)m->resources + 1, sizeof *net->load);
    net->begin = gy_calloc((size_t)m->resources + 1, sizeof *net->begin);
    net->wire = gy_calloc((size_t)m->resources + 1, sizeof *net->wire);
    net->engine = gy_calloc(m->devices, sizeof *net->engine);
    net->device = gy_calloc(m->memories, sizeof *net->device);
    for (uint32_t i = 0; i < m->memories && net->device; i++)
        net->device[i] = GY_MACHINE_NONE;
    for (uint32_t d = m->devices; d-- > 0 && net->device;) /* those that are no workers come last */
        net->device[m->device[d].memory] = d;
    return net->load && net->begin && net->wire && net->engine && net->device &&
           gy_vec_reserve(&net->used, (size_t)m->resources + 1);
}

void gy_net_free(gy_net *net)
{
    gy_free(net->load);
    gy_free(net->begin);
    gy_free(net->wire);
    gy_free(net->engine);
    gy_free(net->device);
    gy_vec_free(&net->used);
    gy_vec_free(&net->order);
    gy_islands_free(&net->islands);
}

bool gy_net_begin(gy_net *net, const gy_group *g)
{
    net->slow = true;
    net->launch = 0;
    net->order.count = 0;
    if (!gy_vec_add(&net->order, g->ranks))
        return false;
    for (uint32_t i = 0; i < g->ranks; i++) {
        uint32_t d = net->device[g->memory[i]];
        if (d == GY_MACHINE_NONE)
            continue;
        net->slow = net->slow && net->m->device[d].gpu;
        net->launch = net->m->device[d].launch > net->launch ? net->m->device[d].launch : net->launch;
    }
    gy_ring_order(net->m, g, net->order.at);
    return gy_islands_find(&net->islands, net->m, g);
}

static void add_load(gy_net *net, const gy_route *r, int64_t bytes, gy_ticks latency)
{
    for (uint32_t i = 0; i < r->resources; i++) {
        uint32_t k = r->resource[i];
        if (!net->load[k]) {
            net->used.at[net->used.count++] = k;
            net->begin[k] = latency;
        }
        net->begin[k] = latency < net->begin[k] ? latency : net->begin[k];
        net->load[k] += bytes;
        net->wire[k] = net->wire[k] || r->network;
    }
}

void gy_net_add(gy_net *net, const gy_group *g, uint32_t from, uint32_t to, int64_t bytes)
{
    if (from == to || bytes <= 0)
        return;
    const gy_route *r = gy_machine_route(net->m, g->memory[from], g->memory[to]);
    gy_ticks alone = gy_route_time(net->m, r, bytes), latency = gy_route_latency(r);
    uint32_t sender = g->memory[from] ? net->device[g->memory[from]] : GY_MACHINE_NONE;
    uint32_t device = sender != GY_MACHINE_NONE ? sender : net->device[g->memory[to]];
    gy_net_part *part = r->network ? &net->far : &net->near;
    net->staged = net->staged || r->kind != GY_ROUTE_DIRECT;
    part->solo = alone > part->solo ? alone : part->solo;
    part->latency = latency > part->latency ? latency : part->latency;
    if (device != GY_MACHINE_NONE)
        net->engine[device] = gy_ticks_sum(net->engine[device], alone);
    if (net->lenient && alone <= latency)
        return;
    if (r->kind == GY_ROUTE_DIRECT)
        add_load(net, r, bytes, latency);
    for (int i = 0; i < 2 && r->kind != GY_ROUTE_DIRECT && r->hop[0]; i++)
        add_load(net, r->hop[i], bytes, gy_route_latency(r->hop[0]));
}

/* Of both parts, the slowest transfer alone, or what the busiest resource has to do once the first bytes are there. */
static void end_step(gy_net *net, gy_net_part *near, gy_net_part *far)
{
    *near = net->near;
    *far = net->far;
    for (size_t i = 0; i < net->used.count; i++) {
        uint32_t k = net->used.at[i];
        gy_net_part *part = net->wire[k] ? far : near;
        gy_ticks t = gy_ticks_sum(net->begin[k], gy_ticks_of((uint64_t)net->load[k], net->m->resource[k].rate));
        part->solo = net->m->contention && t > part->solo ? t : part->solo;
        net->load[k] = 0;
        net->wire[k] = false;
    }
    for (uint32_t d = 0; d < net->m->devices; d++)
        net->engine[d] = 0;
    net->used.count = 0;
    net->near = net->far = (gy_net_part){ 0 };
    net->staged = false;
}

static gy_ticks flow(gy_net *net, bool signal)
{
    bool staged = net->staged, kernels = net->slow && !staged;
    gy_net_part near, far;
    end_step(net, &near, &far);
    gy_ticks time = kernels ? gy_ticks_sum(near.latency, gy_ticks_times(near.solo - near.latency, 5) / 4) : near.solo;
    time = signal && !staged ? gy_ticks_sum(near.latency, time) : time;
    return time > far.solo ? time : far.solo;
}

gy_ticks gy_net_flow(gy_net *net)
{
    return flow(net, false);
}

/* Through a third memory copy engines take it, and who waits for them needs no flag of a peer. */
gy_ticks gy_net_step(gy_net *net)
{
    return flow(net, true);
}

/* Each copy keeps an engine of the device that sends it (gy_plan_copier) busy for as long as it takes alone, or longer.
 */
gy_ticks gy_net_copies(gy_net *net)
{
    gy_net_part near, far;
    gy_ticks least = 0;
    for (uint32_t d = 0; d < net->m->devices && net->m->contention; d++) {
        gy_ticks t = net->engine[d] / (gy_ticks)net->m->device[d].copy_engines;
        least = t > least ? t : least;
    }
    end_step(net, &near, &far);
    least = near.solo > least ? near.solo : least;
    return far.solo > least ? far.solo : least;
}
