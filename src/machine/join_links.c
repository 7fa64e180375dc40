/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The routes of joined machines. Between two ranks each pair of memories has a direct route, since it is one message:
 * the network alone, where ports of both reach these memories. Where the one port of a rank is in its host memory, that
 * of a GPU is reached through it, so that such a route takes what the copies take, too, and uses what they use.
 */
#include "base/memory.h"
#include "base/vec.h"
#include "machine/join.h"
#include <stddef.h>
#include <stdlib.h>

typedef GY_VEC(int64_t) sizes;
typedef GY_VEC(uint32_t) resources;

/* A memory of the joined machine, as its node knows it. */
typedef struct end {
    const gantry_machine *node;
    const gy_join_place *place;
    uint32_t memory;
} end;

/* The route of a pair while it is made; the vectors are reused from pair to pair. */
typedef struct pair {
    const gy_route *leg[2]; /* of the nodes: to the host memory of the sender, from that of the receiver; or NULL */
    const end *of[2];
    sizes size;
    resources via;
    GY_VEC(gy_point) point;
} pair;

static bool has_gpu(const end *e)
{
    for (uint32_t i = 0; i < e->node->devices; i++)
        if (e->node->device[i].gpu && e->node->device[i].memory == e->memory)
            return true;
    return false;
}

static bool add_resource(pair *p, uint32_t resource)
{
    for (size_t i = 0; i < p->via.count; i++)
        if (p->via.at[i] == resource)
            return true;
    return gy_vec_push(&p->via, resource);
}

/* The sizes at which the time of a leg bends, and what it uses. */
static bool add_leg(pair *p, const gy_route *r, const gy_join_place *place)
{
    bool ok = true;
    for (int i = 0; i < 2 && r->kind != GY_ROUTE_DIRECT && r->hop[i] && ok; i++)
        ok = add_leg(p, r->hop[i], place);
    for (uint32_t i = 0; i < r->points && ok; i++)
        ok = gy_vec_push(&p->size, r->point[i].bytes);
    for (uint32_t i = 0; i < r->resources && ok; i++)
        ok = add_resource(p, place->resource + r->resource[i]);
    return ok;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A message goes from port to port: as late as the slower of both, and as fast. */
static gy_uplink network_of(const end *from, const end *to)
{
    gy_uplink a = from->place->network;
    const gy_uplink *b = &to->place->network;
    a.latency = a.latency > b->latency ? a.latency : b->latency;
    a.rate = a.rate < b->rate ? a.rate : b->rate;
    return a;
}

/* The resource: what the memory sends, the next: what it gets. */
static uint32_t port_of(const end *e)
{
    return e->place->port + (e->place->network.ports == GANTRY_PORTS_EACH ? 2 * e->memory : 0);
}

static gy_ticks time_of(const gy_uplink *network, const pair *p, int64_t bytes)
{
    gy_ticks time = gy_ticks_both(network->latency, gy_ticks_of((uint64_t)bytes, network->rate));
    for (int i = 0; i < 2; i++)
        if (p->leg[i])
            time = gy_ticks_both(time, gy_route_time(p->of[i]->node, p->leg[i], bytes));
    return time;
}

/* One copy after the other: the sum of their times, which bends where one of them does. */
static bool add_up(const gy_uplink *network, pair *p)
{
    bool ok = gy_vec_push(&p->size, 0) && gy_vec_push(&p->size, network->rate);
    for (int i = 0; i < 2 && ok; i++)
        ok = !p->leg[i] || add_leg(p, p->leg[i], p->of[i]->place);
    if (!ok)
        return false;
    qsort(p->size.at, p->size.count, sizeof *p->size.at, by_size);
    for (size_t i = 0; i < p->size.count && ok; i++)
        if (!i || p->size.at[i] != p->size.at[i - 1]) {
            gy_point point = { p->size.at[i], time_of(network, p, p->size.at[i]) };
            ok = gy_vec_push(&p->point, point);
        }
    return ok;
}

static const gy_route *leg_of(const end *e, bool out)
{
    if (e->place->network.ports != GANTRY_PORTS_HOST || !has_gpu(e))
        return NULL;
    return gy_machine_route(e->node, out ? e->memory : 0, out ? 0 : e->memory);
}

static bool add_pair(const gy_joining *j, pair *p, const end *from, const end *to)
{
    uint32_t a = from->place->memory + from->memory, b = to->place->memory + to->memory;
    gy_uplink network = j->between ? j->between[(from->place - j->place) * (ptrdiff_t)j->nodes + (to->place - j->place)]
                                   : network_of(from, to);
    p->size.count = p->via.count = p->point.count = 0;
    p->of[0] = from;
    p->of[1] = to;
    p->leg[0] = leg_of(from, true);
    p->leg[1] = leg_of(to, false);
    if (!add_resource(p, port_of(from)) || !add_resource(p, port_of(to) + 1))
        return false;
    bool alone = !p->leg[0] && !p->leg[1], ok = alone || add_up(&network, p);
    gy_via via = { p->via.at, (uint32_t)p->via.count };
    ok = ok && (alone ? gy_machine_link(j->m, a, b, network.latency, network.rate, via)
                      : gy_machine_points(j->m, a, b, p->point.at, (uint32_t)p->point.count, via));
    gy_machine_by_network(j->m, a, b, true);
    return ok;
}

static bool add_pairs(const gy_joining *j, pair *p, uint32_t a, uint32_t b)
{
    bool ok = true;
    for (uint32_t x = 0; x < j->node[a]->memories && ok; x++)
        for (uint32_t y = 0; y < j->node[b]->memories && ok; y++)
            ok = add_pair(j, p, &(end){ j->node[a], &j->place[a], x }, &(end){ j->node[b], &j->place[b], y });
    return ok;
}

static bool copy_within(const gy_joining *j, uint32_t n)
{
    const gantry_machine *node = j->node[n];
    uint32_t first = j->place[n].memory, *via = gy_calloc((size_t)node->resources + 1, sizeof *via);
    bool ok = via != NULL;
    for (size_t i = 0; i < (size_t)node->memories * node->memories && ok; i++) {
        const gy_route *r = &node->route[i];
        for (uint32_t k = 0; k < r->resources; k++)
            via[k] = j->place[n].resource + r->resource[k];
        if (!r->given)
            continue;
        ok =
            gy_machine_points(j->m, first + r->from, first + r->to, r->point, r->points, (gy_via){ via, r->resources });
        gy_machine_by_kernels(j->m, first + r->from, first + r->to, r->kernel_bytes);
        gy_machine_by_network(j->m, first + r->from, first + r->to, r->network);
    }
    gy_free(via);
    return ok;
}

bool gy_join_routes(const gy_joining *j)
{
    pair p = { 0 };
    bool ok = true;
    for (uint32_t a = 0; a < j->nodes && ok; a++)
        for (uint32_t b = 0; b < j->nodes && ok; b++)
            ok = a == b ? copy_within(j, a) : add_pairs(j, &p, a, b);
    gy_vec_free(&p.size);
    gy_vec_free(&p.via);
    gy_vec_free(&p.point);
    return ok && gy_machine_compose(j->m);
}
