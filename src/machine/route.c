/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: how long a copy takes alone, and relays composed from direct routes. */
#include "base/memory.h"
#include "machine/build.h"
#include <string.h>

#define TICKS_PER_SECOND INT64_C(1000000000000)
#define RELAY_BYTES      (INT64_C(1) << 20) /* relays are compared at this size */

__extension__ typedef unsigned __int128 wide;

int64_t gy_scale_up(int64_t a, int64_t b, int64_t c)
{
    uint64_t product; /* most fit, and then a division takes a tenth of the time */
    if (a >= 0 && b >= 0 && c > 0 && !__builtin_mul_overflow((uint64_t)a, (uint64_t)b, &product) &&
        product <= UINT64_MAX - (uint64_t)c) {
        uint64_t small = (product + (uint64_t)c - 1) / (uint64_t)c;
        return small > (uint64_t)GY_TICKS_MAX ? GY_TICKS_MAX : (int64_t)small;
    }
    wide q = ((wide)a * (wide)b + (wide)c - 1) / (wide)c;
    return q > (wide)GY_TICKS_MAX ? GY_TICKS_MAX : (int64_t)q;
}

static gy_route *route_at(const gantry_machine *m, uint32_t from, uint32_t to)
{
    return &m->route[(size_t)from * m->memories + to];
}

const gy_route *gy_machine_route(const gantry_machine *m, uint32_t from, uint32_t to)
{
    static const gy_route none = { .via = GY_MACHINE_NONE };
    return from < m->memories && to < m->memories ? route_at(m, from, to) : &none;
}

gy_ticks gy_route_latency(const gy_route *r)
{
    if (r->kind == GY_ROUTE_DIRECT)
        return r->point[0].time;
    return r->hop[0] ? gy_ticks_both(gy_route_latency(r->hop[0]), gy_route_latency(r->hop[1])) : GY_TICKS_MAX;
}

gy_ticks gy_machine_signals(const gantry_machine *m, uint32_t from, uint32_t to)
{
    return from == to ? 0 : gy_ticks_both(m->memory[from].signal, m->memory[to].signal);
}

/* The point that the segment of `bytes` begins at: the last that is not above `bytes`, but not the very last one, since
 * the last segment goes on beyond the end. */
static uint32_t segment_of(const gy_point *point, uint32_t points, int64_t bytes)
{
    uint32_t low = 0, high = points - 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (point[middle].bytes <= bytes)
            low = middle;
        else
            high = middle;
    }
    return low;
}

gy_ticks gy_points_time(const gy_point *point, uint32_t points, int64_t bytes)
{
    if (bytes <= point[0].bytes)
        return point[0].time;
    const gy_point *p = &point[segment_of(point, points, bytes)];
    return gy_ticks_both(p->time, gy_scale_up(bytes - p[0].bytes, p[1].time - p[0].time, p[1].bytes - p[0].bytes));
}

static gy_ticks direct_time(const gy_route *r, int64_t bytes)
{
    return gy_points_time(r->point, r->points, bytes);
}

static gy_ticks solo_time(const gy_route *r, int64_t bytes)
{
    if (r->kind == GY_ROUTE_DIRECT)
        return direct_time(r, bytes);
    return r->hop[0] ? gy_ticks_both(direct_time(r->hop[0], bytes), direct_time(r->hop[1], bytes)) : GY_TICKS_MAX;
}

gy_ticks gy_route_time(const gantry_machine *m, const gy_route *r, int64_t bytes)
{
    (void)m; /* for routes that will depend on more than their own points */
    return solo_time(r, bytes < 0 ? 0 : bytes);
}

gy_ticks gy_copies_launch(const gantry_machine *m, const gy_route *r, uint32_t device, uint32_t copies)
{
    const gy_device *d = &m->device[device];
    if (r->network && r->kind == GY_ROUTE_DIRECT)
        return 0;
    bool reaches = (!m->memory[r->from].host && !m->memory[r->to].host) || m->memory[0].pinned;
    if (!d->gpu || r->kind != GY_ROUTE_DIRECT || r->from == r->to || !reaches)
        return GY_TICKS_MAX;
    return gy_ticks_repeated(d->launch, copies / GY_COPIES_AT_ONCE + (copies % GY_COPIES_AT_ONCE > 0));
}

gy_ticks gy_copies_time(const gantry_machine *m, const gy_route *r, uint32_t device, uint32_t copies, int64_t bytes)
{
    return gy_ticks_both(gy_copies_launch(m, r, device, copies), gy_route_time(m, r, bytes));
}

int64_t gy_route_rate(const gy_route *r, int64_t bytes)
{
    if (r->kind == GY_ROUTE_NONE)
        return 0;
    gy_ticks flow = solo_time(r, bytes < 0 ? 0 : bytes) - gy_route_latency(r);
    if (bytes <= 0 || flow <= 0)
        return GY_RATE_MAX;
    int64_t rate = gy_scale_up(bytes, TICKS_PER_SECOND, flow);
    return rate > GY_RATE_MAX ? GY_RATE_MAX : rate;
}

/* ---- declaring ---- */

bool gy_machine_points(gantry_machine *m, uint32_t from, uint32_t to, const gy_point *point, uint32_t points,
                       gy_via via)
{
    gy_point *p = gy_arena_alloc(&m->arena, points * sizeof *p);
    uint32_t *resource = gy_arena_alloc(&m->arena, via.count * sizeof *resource);
    if (!p || !resource)
        return false;
    memcpy(p, point, points * sizeof *p);
    if (via.count)
        memcpy(resource, via.resource, via.count * sizeof *resource);
    gy_route *r = route_at(m, from, to);
    r->kind = GY_ROUTE_DIRECT;
    r->given = true;
    r->point = p;
    r->points = points;
    r->resource = resource;
    r->resources = via.count;
    return true;
}

void gy_machine_by_kernels(gantry_machine *m, uint32_t from, uint32_t to, int64_t bytes)
{
    route_at(m, from, to)->kernel_bytes = bytes;
}

void gy_machine_by_network(gantry_machine *m, uint32_t from, uint32_t to, bool network)
{
    route_at(m, from, to)->network = network;
}

/* `rate` bytes take exactly a second: the slope is the exact fraction, whatever the rate. */
bool gy_machine_link(gantry_machine *m, uint32_t from, uint32_t to, gy_ticks latency, int64_t rate, gy_via via)
{
    gy_point p[2] = { { 0, latency }, { rate, latency + TICKS_PER_SECOND } };
    return gy_machine_points(m, from, to, p, 2, via);
}

bool gy_route_is_link(const gy_route *r, gy_ticks *latency, int64_t *rate)
{
    const gy_point *p = r->point;
    if (r->points != 2 || p[0].bytes != 0 || p[1].bytes > GY_RATE_MAX || p[1].time - p[0].time != TICKS_PER_SECOND)
        return false;
    *latency = p[0].time;
    *rate = p[1].bytes;
    return true;
}

/* ---- composing ---- */

/* A copy within a memory reads and writes it: two bytes move for one copied. The fastest device does it. */
static bool default_local(gantry_machine *m, uint32_t memory)
{
    const gy_device *best = NULL;
    for (uint32_t i = 0; i < m->devices; i++)
        if (m->device[i].memory == memory && (!best || m->device[i].bandwidth_gbs > best->bandwidth_gbs))
            best = &m->device[i];
    double rate = best ? best->bandwidth_gbs * 1e9 / 2 : 0;
    int64_t whole = rate >= 1 ? (int64_t)(rate + 0.5) : GY_RATE_MAX;
    if (!gy_machine_link(m, memory, memory, best ? best->launch : 0, whole, (gy_via){ 0 }))
        return false;
    route_at(m, memory, memory)->given = false;
    return true;
}

static bool is_hop(const gy_route *r)
{
    return r->kind == GY_ROUTE_DIRECT && r->from != r->to;
}

/* Where `from` gets to in one hop, in index order. Most machines have few, so looking only there keeps large ones fast.
 */
static uint32_t list_hops(const gantry_machine *m, uint32_t from, uint32_t *hop)
{
    uint32_t count = 0;
    for (uint32_t to = 0; to < m->memories; to++)
        if (is_hop(route_at(m, from, to)))
            hop[count++] = to;
    return count;
}

static void compose_pair(gantry_machine *m, gy_route *r, const uint32_t *hop, uint32_t hops)
{
    gy_ticks best = GY_TICKS_MAX;
    for (uint32_t i = 0; i < hops; i++) {
        const gy_route *in = route_at(m, r->from, hop[i]), *out = route_at(m, hop[i], r->to);
        if (!is_hop(out))
            continue;
        gy_ticks time = gy_ticks_both(direct_time(in, RELAY_BYTES), direct_time(out, RELAY_BYTES));
        if (r->hop[0] && time >= best)
            continue;
        best = time;
        r->kind = m->memory[hop[i]].host ? GY_ROUTE_STAGED : GY_ROUTE_RELAY;
        r->via = hop[i];
        r->hop[0] = in;
        r->hop[1] = out;
    }
}

/* Policies ask for every task and device, so no question may look through all devices. */
static void find_signals(gantry_machine *m)
{
    for (uint32_t i = 0; i < m->memories; i++)
        m->memory[i].signal = 0;
    for (uint32_t i = 0; i < m->devices; i++) {
        gy_memory *at = &m->memory[m->device[i].memory];
        at->signal = m->device[i].signal > at->signal ? m->device[i].signal : at->signal;
    }
}

/* The lowest memory that `memory` was joined with so far. */
static uint32_t lowest_joined(gantry_machine *m, uint32_t memory)
{
    while (m->memory[memory].computer != memory)
        memory = m->memory[memory].computer = m->memory[m->memory[memory].computer].computer;
    return memory;
}

/* Memories that direct routes without a network join, however many. A composed route may lead over a network, too. */
static void find_computers(gantry_machine *m)
{
    for (uint32_t i = 0; i < m->memories; i++)
        m->memory[i].computer = i;
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++) {
        const gy_route *r = &m->route[i];
        if (!is_hop(r) || r->network)
            continue;
        uint32_t a = lowest_joined(m, r->from), b = lowest_joined(m, r->to);
        m->memory[a > b ? a : b].computer = a > b ? b : a;
    }
    for (uint32_t i = 0; i < m->memories; i++)
        m->memory[i].computer = lowest_joined(m, i);
}

/* Of a computer, host memory comes first, unless devices were chosen and it was left out. */
static void find_arrays(gantry_machine *m)
{
    for (uint32_t i = 0; i < m->memories; i++) {
        uint32_t host = m->memory[i].computer;
        bool found = host != m->memory[0].computer && host < i;
        for (uint32_t d = 0; d < m->devices && found; d++)
            found = !m->device[d].gpu || m->device[d].memory != host;
        m->memory[i].arrays = found ? host : 0;
    }
}

bool gy_machine_compose(gantry_machine *m)
{
    find_signals(m);
    uint32_t *hop = gy_alloc(m->memories * sizeof *hop);
    bool ok = hop != NULL;
    for (uint32_t from = 0; from < m->memories && ok; from++) {
        uint32_t hops = list_hops(m, from, hop);
        if (route_at(m, from, from)->kind == GY_ROUTE_NONE)
            ok = default_local(m, from);
        for (uint32_t to = 0; to < m->memories && ok; to++)
            if (from != to && route_at(m, from, to)->kind == GY_ROUTE_NONE)
                compose_pair(m, route_at(m, from, to), hop, hops);
    }
    gy_free(hop);
    find_computers(m);
    find_arrays(m);
    return ok;
}

bool gy_machine_unreached(const gantry_machine *m, uint32_t *from, uint32_t *to)
{
    for (uint32_t a = 0; a < m->memories; a++)
        for (uint32_t b = 0; b < m->memories; b++)
            if (route_at(m, a, b)->kind == GY_ROUTE_NONE) {
                *from = a;
                *to = b;
                return true;
            }
    return false;
}
