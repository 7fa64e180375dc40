/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts: how much can leave and enter a memory, by a greedy cover of its routes with resources. */
#include "scheduler/bound/bound.h"

#include "base/error.h"

typedef struct cut {
    const gantry_machine *m;
    const gy_route **route; /* that no chosen resource is on yet */
    uint32_t routes;
    uint32_t *count; /* per resource: how many of these it is on */
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

static void add_route(cut *c, const gy_route *r)
{
    c->route[c->routes++] = r;
    for (uint32_t i = 0; i < r->resources; i++)
        c->count[r->resource[i]]++;
}

/* The resource with the least rate per route that it covers; GY_MACHINE_NONE: none covers any. */
static uint32_t cheapest(const cut *c)
{
    uint32_t best = GY_MACHINE_NONE, most = 0;
    for (uint32_t r = 0; r < c->m->resources; r++) {
        uint32_t count = c->count[r];
        if (count && (!most || c->m->resource[r].rate / count < c->m->resource[best].rate / most)) {
            best = r;
            most = count;
        }
    }
    return best;
}

static void drop_covered(cut *c, uint32_t resource)
{
    uint32_t routes = c->routes;
    c->routes = 0;
    for (uint32_t i = 0; i < routes; i++)
        for (uint32_t k = 0; k < c->route[i]->resources; k++)
            c->count[c->route[i]->resource[k]] = 0;
    for (uint32_t i = 0; i < routes; i++)
        if (!is_on(c->route[i], resource))
            add_route(c, c->route[i]);
}

/* Are arrays of the program there, for devices of the same computer? Inputs leave any of these, and outputs go there.
 */
static bool has_arrays(const gantry_machine *m, uint32_t memory)
{
    bool found = memory == 0;
    for (uint32_t i = 0; i < m->memories && !found; i++)
        found = m->memory[i].arrays == memory;
    return found;
}

/* Routes to or from the memory, of memory 0 those of all that have arrays. */
static bool add_routes(cut *c, uint32_t memory, gy_direction which)
{
    uint32_t *side = gy_calloc((size_t)c->m->memories + 1, sizeof *side), count = 0;
    for (uint32_t i = 0; i < c->m->memories && side; i++)
        if (i == memory || (memory == 0 && has_arrays(c->m, i)))
            side[count++] = i;
    c->route = gy_calloc(2 * (size_t)count * c->m->memories + 1, sizeof *c->route);
    for (uint32_t i = 0; i < count && c->route; i++)
        for (uint32_t other = 0; other < c->m->memories; other++) {
            const gy_route *both[] = { gy_machine_route(c->m, side[i], other), gy_machine_route(c->m, other, side[i]) };
            for (int k = 0; k < 2; k++)
                if (crosses(both[k], side[i], which))
                    add_route(c, both[k]);
        }
    gy_free(side);
    return c->route && side;
}

gantry_status gy_cut_rate(int64_t *rate, const gantry_machine *m, uint32_t memory, gy_direction which,
                          gantry_error *err)
{
    cut c = { .m = m };
    c.count = gy_calloc((size_t)m->resources + 1, sizeof *c.count);
    bool done = c.count && add_routes(&c, memory, which);
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
    gy_free(c.count);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

gy_ticks gy_cut_latency(const gantry_machine *m, uint32_t memory, gy_direction which)
{
    gy_ticks least = GY_TICKS_MAX;
    for (uint32_t other = 0; other < m->memories; other++) {
        const gy_route *both[] = { gy_machine_route(m, memory, other), gy_machine_route(m, other, memory) };
        for (int i = 0; i < 2; i++)
            if (crosses(both[i], memory, which) && gy_route_latency(both[i]) < least)
                least = gy_route_latency(both[i]);
    }
    return least < GY_TICKS_MAX ? least : 0;
}
