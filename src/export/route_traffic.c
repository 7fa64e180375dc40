/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, and the bytes that they move, by route. */
#include "export/export.h"
#include "schedule/traffic/traffic.h"

static void add_ops(gy_route_traffic *traffic, const gantry_schedule *s, uint64_t times)
{
    size_t n = s->machine->memories;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (!gy_op_is_copy(op))
            continue;
        const gy_use *use = gy_vec_from(&s->use, op->use);
        gy_route_traffic *t =
            &traffic[s->instances.at[use[0].instance].memory * n + s->instances.at[use[1].instance].memory];
        t->copies += times;
        t->bytes += gy_use_bytes(s, use) * times;
        t->busy = gy_ticks_both(t->busy, gy_ticks_repeated(op->end - op->start, (int64_t)times));
    }
}

gy_route_traffic *gy_route_traffic_make(const gantry_schedule *s)
{
    size_t n = s->machine->memories;
    gy_route_traffic *traffic = gy_calloc(n * n, sizeof *traffic);
    if (traffic)
        add_ops(traffic, s, 1);
    for (size_t i = 0; traffic && i < s->phases.count; i++)
        add_ops(traffic, s->phases.at[i].schedule, (uint64_t)s->phases.at[i].phase.starts);
    return traffic;
}

/* ---- the network ---- */

typedef struct network {
    gy_link_traffic links;
    gy_crossings crossing;
    uint64_t *load; /* per resource */
    bool *carries;  /* per resource: messages go over it */
    gy_network_traffic *to;
} network;

static bool begin_network(network *n, const gantry_machine *m)
{
    n->load = gy_calloc((size_t)m->resources + 1, sizeof *n->load);
    n->carries = gy_calloc((size_t)m->resources + 1, sizeof *n->carries);
    if (!gy_link_traffic_init(&n->links, m) || !n->load || !n->carries)
        return false;
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++)
        for (uint32_t k = 0; k < m->route[i].resources && m->route[i].network; k++)
            n->carries[m->route[i].resource[k]] = true;
    return true;
}

static void add_copy(network *n, const gantry_schedule *s, const gy_op *op, uint64_t times)
{
    const gy_use *use = gy_vec_from(&s->use, op->use);
    const gy_route *r =
        gy_machine_route(s->machine, s->instances.at[use[0].instance].memory, s->instances.at[use[1].instance].memory);
    uint64_t bytes = gy_use_bytes(s, use) * times;
    n->to->bytes += r->network ? bytes : 0;
    for (uint32_t k = 0; k < r->resources; k++)
        n->load[r->resource[k]] += bytes;
}

static bool add_collective(network *n, const gantry_schedule *s, const gy_op *op, uint64_t times)
{
    n->crossing.count = 0;
    if (!gy_link_traffic_of_op(&n->links, s, op, &n->crossing))
        return false;
    n->to->bytes += (uint64_t)n->links.messages * times;
    for (size_t i = 0; i < n->crossing.count; i++)
        n->load[n->crossing.at[i].resource] += (uint64_t)n->crossing.at[i].bytes * times;
    return true;
}

static bool add_schedule(network *n, const gantry_schedule *s, uint64_t times)
{
    bool done = true;
    for (size_t i = 0; i < s->ops.count && done; i++) {
        const gy_op *op = &s->ops.at[i];
        if (gy_op_is_copy(op))
            add_copy(n, s, op, times);
        else if (op->kind == GY_OP_COLLECTIVE && op->duration > 0) /* of a batch, the first */
            done = add_collective(n, s, op, times);
    }
    return done;
}

static void find_busiest(network *n, const gantry_machine *m)
{
    for (uint32_t k = 0; k < m->resources; k++) {
        gy_ticks busy = n->carries[k] ? gy_ticks_of(n->load[k], m->resource[k].rate) : 0;
        if (busy <= n->to->busy)
            continue;
        n->to->busy = busy;
        n->to->busiest = k;
    }
}

bool gy_network_traffic_make(gy_network_traffic *to, const gantry_schedule *s)
{
    network n = { .to = to };
    *to = (gy_network_traffic){ 0 };
    bool done = begin_network(&n, s->machine) && add_schedule(&n, s, 1);
    for (size_t i = 0; i < s->phases.count && done; i++)
        done = add_schedule(&n, s->phases.at[i].schedule, (uint64_t)s->phases.at[i].phase.starts);
    if (done)
        find_busiest(&n, s->machine);
    gy_link_traffic_free(&n.links);
    gy_vec_free(&n.crossing);
    gy_free(n.load);
    gy_free(n.carries);
    return done;
}
