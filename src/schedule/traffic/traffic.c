/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/traffic/traffic.h"

bool gy_link_traffic_init(gy_link_traffic *t, const gantry_machine *m)
{
    size_t n = (size_t)m->resources + 1;
    *t = (gy_link_traffic){ .m = m };
    t->step = gy_calloc(n, sizeof *t->step);
    t->all = gy_calloc(n, sizeof *t->all);
    return t->step && t->all && gy_vec_reserve(&t->used, n);
}

void gy_link_traffic_free(gy_link_traffic *t)
{
    gy_free(t->step);
    gy_free(t->all);
    gy_vec_free(&t->used);
    gy_vec_free(&t->order);
    gy_vec_free(&t->ranks);
    gy_islands_free(&t->islands);
}

static void add_route(gy_link_traffic *t, const gy_route *r, int64_t bytes)
{
    for (uint32_t i = 0; i < r->resources; i++) {
        uint32_t k = r->resource[i];
        if (!t->step[k] && !t->all[k])
            t->used.at[t->used.count++] = k;
        t->step[k] += bytes;
    }
}

static void note_send(void *context, uint32_t from, uint32_t to, int64_t bytes)
{
    gy_link_traffic *t = context;
    if (from == to || bytes <= 0)
        return;
    const gy_route *r = gy_machine_route(t->m, t->g->memory[from], t->g->memory[to]);
    t->step_messages += r->network ? bytes : 0;
    if (r->kind == GY_ROUTE_DIRECT)
        add_route(t, r, bytes);
    for (int i = 0; i < 2 && r->kind != GY_ROUTE_DIRECT && r->hop[0]; i++)
        add_route(t, r->hop[i], bytes);
}

static void note_end(void *context, int64_t times)
{
    gy_link_traffic *t = context;
    t->messages += t->step_messages * times;
    t->step_messages = 0;
    for (size_t i = 0; i < t->used.count; i++) {
        uint32_t k = t->used.at[i];
        t->all[k] += t->step[k] * times;
        t->step[k] = 0;
    }
}

/* Ops of a graph mostly have the same ranks: their order is found once. */
static bool find_order(gy_link_traffic *t, const gy_group *g)
{
    bool same = t->ranks.count == g->ranks;
    for (uint32_t i = 0; same && i < g->ranks; i++)
        same = t->ranks.at[i] == g->memory[i];
    if (same)
        return true;
    t->ranks.count = t->order.count = 0;
    if (!gy_vec_add(&t->ranks, g->ranks) || !gy_vec_add(&t->order, g->ranks))
        return false;
    for (uint32_t i = 0; i < g->ranks; i++)
        t->ranks.at[i] = g->memory[i];
    gy_ring_order(t->m, g, t->order.at);
    return true;
}

bool gy_link_traffic_of_op(gy_link_traffic *t, const gantry_schedule *s, const gy_op *op, gy_crossings *to)
{
    gy_group g;
    t->messages = 0;
    if (!op->uses)
        return true;
    if (!gy_group_of_batch(&g, s, op))
        return false;
    gy_step_walk walk = { note_send, note_end, t };
    t->g = &g;
    bool done = find_order(t, &g);
    if (done && op->algorithm == GY_ALGORITHM_ISLANDS)
        done = gy_islands_find(&t->islands, t->m, &g);
    if (done && g.ranks > 1)
        gy_algorithm_steps(&g, (gy_algorithm)op->algorithm, t->order.at, &t->islands, 0, &walk);
    for (size_t i = 0; i < t->used.count; i++) {
        uint32_t k = t->used.at[i];
        done = done && gy_vec_push(to, ((gy_crossing){ k, t->all[k] }));
        t->all[k] = 0;
    }
    t->used.count = 0;
    gy_group_free(&g);
    return done;
}
