/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts: how much can leave and enter a memory, by a greedy cover of its routes with resources. */
#include "scheduler/bound/bound.h"

#include "base/error.h"

typedef struct cut {
    const gantry_machine *m;
    const gy_route **route; /* that no chosen resource is on yet */
    uint32_t routes;
} cut;

static bool crosses(const gy_route *r, uint32_t memory, gy_direction which)
{
    if (r->kind != GY_ROUTE_DIRECT || r->from == r->to)
        return false;
    return (which & GY_GO_OUT && r->from == memory) || (which & GY_GO_IN && r->to == memory);
}

static bool is_on(const gy_route *r, uint32_t resource)
{
    for (uint32_t i = 0; i < r->resources; i++)
        if (r->resource[i] == resource)
            return true;
    return false;
}

static uint32_t count_on(const cut *c, uint32_t resource)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->routes; i++)
        count += is_on(c->route[i], resource);
    return count;
}

/* The resource with the least rate per route that it covers; GY_MACHINE_NONE: none covers any. */
static uint32_t cheapest(const cut *c)
{
    uint32_t best = GY_MACHINE_NONE, most = 0;
    for (uint32_t r = 0; r < c->m->resources; r++) {
        uint32_t count = count_on(c, r);
        if (count && (!most || c->m->resource[r].rate / count < c->m->resource[best].rate / most)) {
            best = r;
            most = count;
        }
    }
    return best;
}

static void drop_covered(cut *c, uint32_t resource)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < c->routes; i++)
        if (!is_on(c->route[i], resource))
            c->route[left++] = c->route[i];
    c->routes = left;
}

gantry_status gy_cut_rate(int64_t *rate, const gantry_machine *m, uint32_t memory, gy_direction which,
                          gantry_error *err)
{
    cut c = { .m = m, .route = gy_calloc(2 * (size_t)m->memories + 1, sizeof *c.route) };
    if (!c.route)
        return gy_fail_nomem(err);
    for (uint32_t other = 0; other < m->memories; other++) {
        const gy_route *both[] = { gy_machine_route(m, memory, other), gy_machine_route(m, other, memory) };
        for (int i = 0; i < 2; i++)
            if (crosses(both[i], memory, which))
                c.route[c.routes++] = both[i];
    }
    int64_t sum = 0;
    while (c.routes && m->contention && sum < GY_RATE_MAX) {
        uint32_t r = cheapest(&c);
        if (r == GY_MACHINE_NONE)
            break;
        sum += m->resource[r].rate;
        drop_covered(&c, r);
    }
    *rate = c.routes ? 0 : sum;
    gy_free(c.route);
    return GANTRY_OK;
}

gy_ticks gy_cut_latency(const gantry_machine *m, uint32_t memory, gy_direction which)
{
    gy_ticks least = GY_TICKS_MAX;
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++)
        if (crosses(&m->route[i], memory, which) && gy_route_latency(&m->route[i]) < least)
            least = gy_route_latency(&m->route[i]);
    return least < GY_TICKS_MAX ? least : 0;
}
