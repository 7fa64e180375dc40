/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rates of the resources that copies share, from times of several copies at once. calibrate.h says which
 * resources there are. */
#include "base/memory.h"
#include "machine/calibrate_build.h"
#include <string.h>

#define TICKS_PER_SECOND 1e12
#define SAME             0.99 /* nearer to a sum than that is the sum */
#define OTHER_WIRES      1.25 /* faster than the host's link by that: not the same wires */

typedef enum port { OUT, IN, BOTH, TO_HOST, FROM_HOST, LINK_OUT, LINK_IN, PORTS } port;

static const char *const SUFFIX[PORTS] = { "out", "in", "both", "to_host", "from_host", "link_out", "link_in" };

typedef enum common { HOST_OUT, HOST_IN, HOST_BOTH, PEERS, COMMONS } common;

typedef struct ports {
    gantry_machine *m;
    const gy_measured *what;
    double *rate;     /* memories x PORTS: bytes per second; 0: there is none */
    uint32_t *number; /* the same: of the resource */
    double all[COMMONS];
    uint32_t all_number[COMMONS];
} ports;

static bool is_peer(const gy_route *r)
{
    return r->kind == GY_ROUTE_DIRECT && r->from && r->to && r->from != r->to;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}
static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* ---- copies alone ---- */

/* Bytes per second of a copy alone, at the sizes where latency is no longer most of it. */
static double solo(const gy_route *r)
{
    double best = 0;
    for (uint32_t i = 1; r->kind == GY_ROUTE_DIRECT && i < r->points; i++) {
        double flow = (double)(r->point[i].time - r->point[0].time), bytes = (double)r->point[i].bytes;
        bool counts = i + 1 == r->points || flow > (double)r->point[0].time;
        if (counts && flow > 0)
            best = larger(best, bytes * TICKS_PER_SECOND / flow);
    }
    return smaller(best, (double)GY_RATE_MAX);
}

static double solo_between(const ports *p, uint32_t from, uint32_t to)
{
    return solo(gy_machine_route(p->m, from, to));
}

/* ---- traffic ---- */

static double *port_of(const ports *p, uint32_t memory, port which)
{
    return &p->rate[(size_t)memory * PORTS + which];
}

static uint32_t next_memory(const gantry_machine *m, uint32_t memory)
{
    return memory + 1 < m->memories ? memory + 1 : 1;
}

/* True if the traffic has a copy along the route. */
static bool has_copy(const gantry_machine *m, const gy_measured_traffic *t, const gy_route *r)
{
    uint32_t next = t->memory < m->memories ? next_memory(m, t->memory) : 0;
    switch (t->what) {
    case GY_TRAFFIC_OUT:
        return is_peer(r) && r->from == t->memory;
    case GY_TRAFFIC_IN:
        return is_peer(r) && r->to == t->memory;
    case GY_TRAFFIC_BOTH:
        return is_peer(r) && ((r->from == t->memory && r->to == next) || (r->from == next && r->to == t->memory));
    case GY_TRAFFIC_PAIRS:
        return is_peer(r) && r->to == next_memory(m, r->from);
    case GY_TRAFFIC_HOST_OUT:
        return r->kind == GY_ROUTE_DIRECT && !r->from && r->to;
    case GY_TRAFFIC_HOST_IN:
        return r->kind == GY_ROUTE_DIRECT && r->from && !r->to;
    case GY_TRAFFIC_HOST_BOTH:
        return r->kind == GY_ROUTE_DIRECT && !r->from != !r->to;
    }
    return false;
}

/* Bytes per second of all copies together once their latency is over; 0: not measured. */
static double total(const ports *p, gy_traffic_pattern what, uint32_t memory)
{
    const gantry_machine *m = p->m;
    for (size_t i = 0; i < p->what->traffic.count; i++) {
        const gy_measured_traffic *t = &p->what->traffic.at[i];
        gy_ticks latency = 0, time = gy_ticks_from_us(t->time.us);
        if (t->what != what || (memory && t->memory != memory) || !t->time.samples)
            continue;
        for (size_t k = 0; k < (size_t)m->memories * m->memories; k++)
            if (has_copy(m, t, &m->route[k]) && gy_route_latency(&m->route[k]) > latency)
                latency = gy_route_latency(&m->route[k]);
        if (time > latency && t->bytes > 0)
            return smaller(t->bytes * TICKS_PER_SECOND / (double)(time - latency), (double)GY_RATE_MAX);
    }
    return 0;
}

/* ---- rates ---- */

static void rate_peers(ports *p, uint32_t memory)
{
    double out = 0, in = 0;
    for (uint32_t other = 1; other < p->m->memories; other++) {
        if (other == memory)
            continue;
        out = larger(out, solo_between(p, memory, other));
        in = larger(in, solo_between(p, other, memory));
    }
    *port_of(p, memory, OUT) = out > 0 ? larger(out, total(p, GY_TRAFFIC_OUT, memory)) : 0;
    *port_of(p, memory, IN) = in > 0 ? larger(in, total(p, GY_TRAFFIC_IN, memory)) : 0;
}

/* Gives a memory a port for both directions together where copies that meet are slower than the two alone. */
static void rate_both(ports *p, uint32_t memory)
{
    uint32_t next = next_memory(p->m, memory);
    double seen = total(p, GY_TRAFFIC_BOTH, memory);
    double apart = solo_between(p, memory, next) + solo_between(p, next, memory);
    if (seen > 0 && seen < SAME * apart)
        *port_of(p, memory, BOTH) = larger(seen, larger(*port_of(p, memory, OUT), *port_of(p, memory, IN)));
}

/* Copies to others and to the host over one link: the slower kind keeps a resource of its own. */
static void join(ports *p, uint32_t memory, port peers, port host, port link)
{
    double *a = port_of(p, memory, peers), *b = port_of(p, memory, host), *both = port_of(p, memory, link);
    if (*a <= 0 || *b <= 0 || *a > OTHER_WIRES * *b)
        return;
    *both = larger(*a, *b);
    *a = *a > 0.995 * *both ? 0 : *a;
    *b = *b > 0.995 * *both ? 0 : *b;
}

static bool sends_to_next(const ports *p, uint32_t memory)
{
    return is_peer(gy_machine_route(p->m, memory, next_memory(p->m, memory)));
}

/* The rate that a memory leaves to each of its copies while every memory sends to the next. */
static double both_share(const ports *p, uint32_t memory)
{
    uint32_t before = memory > 1 ? memory - 1 : p->m->memories - 1;
    double both = *port_of(p, memory, BOTH);
    return both > 0 ? both / (sends_to_next(p, memory) + sends_to_next(p, before)) : (double)GY_RATE_MAX;
}

/* All pairs at once, if they met in no more than the ports. */
static double pairs_apart(const ports *p)
{
    double sum = 0;
    for (uint32_t i = 1; i < p->m->memories; i++) {
        uint32_t next = next_memory(p->m, i);
        if (sends_to_next(p, i))
            sum += smaller(solo_between(p, i, next), smaller(both_share(p, i), both_share(p, next)));
    }
    return sum;
}

static void rate_all_pairs(ports *p)
{
    double most = 0, seen = total(p, GY_TRAFFIC_PAIRS, 0);
    for (uint32_t i = 1; i < p->m->memories; i++)
        for (int k = OUT; k <= BOTH; k++)
            most = larger(most, *port_of(p, i, (port)k));
    if (seen > 0 && seen < SAME * pairs_apart(p))
        p->all[PEERS] = larger(seen, most);
}

static void rate_host(ports *p)
{
    double out = 0, in = 0;
    for (uint32_t i = 1; i < p->m->memories; i++) {
        *port_of(p, i, FROM_HOST) = solo_between(p, 0, i);
        *port_of(p, i, TO_HOST) = solo_between(p, i, 0);
        out = larger(out, *port_of(p, i, FROM_HOST));
        in = larger(in, *port_of(p, i, TO_HOST));
    }
    double all_out = total(p, GY_TRAFFIC_HOST_OUT, 0), all_in = total(p, GY_TRAFFIC_HOST_IN, 0);
    double both = total(p, GY_TRAFFIC_HOST_BOTH, 0);
    p->all[HOST_OUT] = all_out > 0 ? larger(all_out, out) : 0;
    p->all[HOST_IN] = all_in > 0 ? larger(all_in, in) : 0;
    if (both > 0 && (all_out <= 0 || all_in <= 0 || both < SAME * (all_out + all_in)))
        p->all[HOST_BOTH] = larger(both, larger(larger(all_out, all_in), larger(out, in)));
}

static void find_rates(ports *p)
{
    for (uint32_t i = 1; i < p->m->memories; i++)
        rate_peers(p, i);
    for (uint32_t i = 1; i < p->m->memories; i++)
        rate_both(p, i);
    rate_all_pairs(p);
    rate_host(p);
    for (uint32_t i = 1; i < p->m->memories; i++) {
        join(p, i, OUT, TO_HOST, LINK_OUT);
        join(p, i, IN, FROM_HOST, LINK_IN);
    }
}

/* ---- resources ---- */

/* As a file can say it; a little more, so that rounding holds up no copy that is alone. */
static int64_t whole_rate(double rate)
{
    return rate < 1 ? 1 : rate < (double)GY_RATE_MAX - 2 ? (int64_t)rate + 2 : GY_RATE_MAX;
}

static bool add_resource(gantry_machine *m, const char *memory, const char *suffix, double rate, uint32_t *number)
{
    const char *id = memory ? gy_arena_printf(&m->arena, "%s.%s", memory, suffix) : gy_machine_text(m, suffix);
    m->resource[m->resources] = (gy_resource){ id, whole_rate(rate) };
    *number = m->resources++;
    return id != NULL;
}

static bool make_resources(ports *p)
{
    static const char *const common_suffix[COMMONS] = { "out", "in", "both", "peers" };
    gantry_machine *m = p->m;
    m->resource = gy_arena_calloc(&m->arena, (size_t)m->memories * PORTS + COMMONS, sizeof *m->resource);
    m->resources = 0;
    bool ok = m->resource != NULL;
    for (int k = 0; k < COMMONS && ok; k++)
        if (p->all[k] > 0)
            ok = add_resource(m, k == PEERS ? NULL : m->memory[0].id, common_suffix[k], p->all[k], &p->all_number[k]);
    for (size_t i = PORTS; i < (size_t)m->memories * PORTS && ok; i++)
        if (p->rate[i] > 0)
            ok = add_resource(m, m->memory[i / PORTS].id, SUFFIX[i % PORTS], p->rate[i], &p->number[i]);
    return ok;
}

/* The resources of a route, while they are listed. */
typedef struct via {
    const ports *p;
    uint32_t at[COMMONS + 2 * PORTS], count;
} via;

static void pass(via *v, uint32_t memory, port which)
{
    size_t i = (size_t)memory * PORTS + which;
    if (v->p->rate[i] > 0)
        v->at[v->count++] = v->p->number[i];
}

static void pass_common(via *v, common which)
{
    if (v->p->all[which] > 0)
        v->at[v->count++] = v->p->all_number[which];
}

static void list_via(via *v, const gy_route *r)
{
    if (is_peer(r)) {
        pass(v, r->from, OUT);
        pass(v, r->from, BOTH);
        pass(v, r->from, LINK_OUT);
        pass_common(v, PEERS);
        pass(v, r->to, LINK_IN);
        pass(v, r->to, BOTH);
        pass(v, r->to, IN);
    } else if (r->from != r->to) {
        pass_common(v, r->from ? HOST_IN : HOST_OUT);
        pass_common(v, HOST_BOTH);
        pass(v, r->from ? r->from : r->to, r->from ? TO_HOST : FROM_HOST);
        pass(v, r->from ? r->from : r->to, r->from ? LINK_OUT : LINK_IN);
    }
}

static bool set_vias(const ports *p)
{
    gantry_machine *m = p->m;
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++) {
        gy_route *r = &m->route[i];
        via v = { .p = p };
        if (r->kind != GY_ROUTE_DIRECT)
            continue;
        list_via(&v, r);
        uint32_t *resource = gy_arena_alloc(&m->arena, (v.count + 1) * sizeof *resource);
        if (!resource)
            return false;
        memcpy(resource, v.at, v.count * sizeof *resource);
        r->resource = resource;
        r->resources = v.count;
    }
    return true;
}

bool gy_calibrate_ports(gantry_machine *m, const gy_measured *what)
{
    ports p = { .m = m, .what = what };
    p.rate = gy_calloc((size_t)m->memories * PORTS, sizeof *p.rate);
    p.number = gy_calloc((size_t)m->memories * PORTS, sizeof *p.number);
    bool ok = p.rate && p.number;
    if (ok) {
        find_rates(&p);
        ok = make_resources(&p) && set_vias(&p);
    }
    gy_free(p.rate);
    gy_free(p.number);
    return ok;
}

/* How many times as fast as before copies through it are: the most of all routes. */
static double gain_of(const gantry_machine *m, const gantry_machine *old, uint32_t resource, double *fastest)
{
    double gain = 0;
    *fastest = 0;
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++) {
        const gy_route *r = &m->route[i];
        for (uint32_t k = 0; k < r->resources; k++) {
            if (r->resource[k] != resource)
                continue;
            double now = solo(r), then = solo(&old->route[i]);
            gain = larger(gain, then > 0 ? now / then : 1);
            *fastest = larger(*fastest, now);
        }
    }
    return gain;
}

void gy_calibrate_shared(gantry_machine *m, const gantry_machine *old)
{
    for (uint32_t i = 0; i < m->resources; i++) {
        double fastest, gain = gain_of(m, old, i, &fastest);
        if (gain > 0 && (gain < 1 || gain > 1))
            m->resource[i].rate = whole_rate(larger((double)m->resource[i].rate * gain, fastest));
    }
}
