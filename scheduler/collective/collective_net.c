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
    net->engine = gy_calloc(m->devices, sizeof *net->engine);
    return net->load && net->begin && net->engine && gy_vec_reserve(&net->used, (size_t)m->resources + 1);
}

void gy_net_free(gy_net *net)
{
    gy_free(net->load);
    gy_free(net->begin);
    gy_free(net->engine);
    gy_vec_free(&net->used);
    gy_vec_free(&net->order);
    gy_islands_free(&net->islands);
}

uint32_t gy_net_device(const gantry_machine *m, uint32_t memory)
{
    for (uint32_t d = 0; d < m->devices; d++) /* those that are no workers come last */
        if (m->device[d].memory == memory)
            return d;
    return GY_MACHINE_NONE;
}

bool gy_net_begin(gy_net *net, const gy_group *g)
{
    net->slow = true;
    net->launch = 0;
    net->order.count = 0;
    if (!gy_vec_add(&net->order, g->ranks))
        return false;
    for (uint32_t i = 0; i < g->ranks; i++) {
        uint32_t d = gy_net_device(net->m, g->memory[i]);
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
    }
}

void gy_net_add(gy_net *net, const gy_group *g, uint32_t from, uint32_t to, int64_t bytes)
{
    if (from == to || bytes <= 0)
        return;
    const gy_route *r = gy_machine_route(net->m, g->memory[from], g->memory[to]);
    gy_ticks alone = gy_route_time(net->m, r, bytes), latency = gy_route_latency(r);
    uint32_t sender = g->memory[from] ? gy_net_device(net->m, g->memory[from]) : GY_MACHINE_NONE;
    uint32_t device = sender != GY_MACHINE_NONE ? sender : gy_net_device(net->m, g->memory[to]);
    net->staged = net->staged || r->kind != GY_ROUTE_DIRECT;
    net->solo = alone > net->solo ? alone : net->solo;
    net->latency = latency > net->latency ? latency : net->latency;
    if (device != GY_MACHINE_NONE)
        net->engine[device] = gy_ticks_sum(net->engine[device], alone);
    if (net->lenient && alone <= latency)
        return;
    if (r->kind == GY_ROUTE_DIRECT)
        add_load(net, r, bytes, latency);
    for (int i = 0; i < 2 && r->kind != GY_ROUTE_DIRECT && r->hop[0]; i++)
        add_load(net, r->hop[i], bytes, gy_route_latency(r->hop[0]));
}

/* The slowest transfer alone, or what the busiest resource has to do once the first bytes are there. */
static gy_ticks end_step(gy_net *net, gy_ticks *latency)
{
    gy_ticks time = net->solo;
    for (size_t i = 0; i < net->used.count; i++) {
        uint32_t k = net->used.at[i];
        gy_ticks t = gy_ticks_sum(net->begin[k], gy_ticks_of((uint64_t)net->load[k], net->m->resource[k].rate));
        time = net->m->contention && t > time ? t : time;
        net->load[k] = 0;
    }
    for (uint32_t d = 0; d < net->m->devices; d++)
        net->engine[d] = 0;
    *latency = net->latency;
    net->used.count = 0;
    net->solo = net->latency = 0;
    net->staged = false;
    return time;
}

gy_ticks gy_net_flow(gy_net *net)
{
    bool kernels = net->slow && !net->staged;
    gy_ticks latency, time = end_step(net, &latency);
    return kernels ? gy_ticks_sum(latency, gy_ticks_times(time - latency, 5) / 4) : time;
}

/* Through a third memory copy engines take it, and who waits for them needs no flag of a peer. */
gy_ticks gy_net_step(gy_net *net)
{
    gy_ticks signal = net->staged ? 0 : net->latency;
    return gy_ticks_sum(signal, gy_net_flow(net));
}

/* Each copy keeps an engine of the device that sends it (gy_plan_copier) busy for as long as it takes alone, or longer.
 */
gy_ticks gy_net_copies(gy_net *net)
{
    gy_ticks latency, least = 0;
    for (uint32_t d = 0; d < net->m->devices && net->m->contention; d++) {
        gy_ticks t = net->engine[d] / (gy_ticks)net->m->device[d].copy_engines;
        least = t > least ? t : least;
    }
    gy_ticks time = end_step(net, &latency);
    return time > least ? time : least;
}
