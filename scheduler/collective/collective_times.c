/* SPDX-License-Identifier: Apache-2.0 */
/* The times of the algorithms' steps (schedule/traffic/steps.c), and of what comes before and behind them. */
#include "scheduler/collective/collective.h"

typedef struct clock {
    gy_net *net;
    const gy_group *g;
    gy_ticks (*step)(gy_net *net);
    gy_ticks time;
} clock;

static void note_send(void *context, uint32_t from, uint32_t to, int64_t bytes)
{
    clock *c = context;
    gy_net_add(c->net, c->g, from, to, bytes);
}

static void note_end(void *context, int64_t times)
{
    clock *c = context;
    c->time = gy_ticks_sum(c->time, gy_ticks_times(c->step(c->net), times));
}

static gy_ticks time_steps(gy_net *net, const gy_group *g, gy_algorithm algorithm, int64_t pieces,
                           gy_ticks (*step)(gy_net *net))
{
    clock c = { .net = net, .g = g, .step = step };
    gy_step_walk walk = { note_send, note_end, &c };
    gy_algorithm_steps(g, algorithm, net->order.at, pieces, &walk);
    return c.time;
}

/* A signal before and one behind: all have come, all are done. */
static gy_ticks both_signals(const gy_net *net, const gy_group *g)
{
    gy_ticks most = 0;
    for (uint32_t i = 0; i < g->ranks; i++)
        for (uint32_t k = 0; k < g->ranks; k++) {
            gy_ticks t = i == k ? 0 : gy_route_latency(gy_machine_route(net->m, g->memory[i], g->memory[k]));
            most = t > most ? t : most;
        }
    return gy_ticks_times(most, 2);
}

gy_ticks gy_time_copy(gy_net *net, const gy_group *g)
{
    return time_steps(net, g, GY_ALGORITHM_COPY, 1, gy_net_copies);
}

gy_ticks gy_time_one_shot(gy_net *net, const gy_group *g)
{
    gy_ticks time = gy_ticks_sum(net->launch, both_signals(net, g));
    return gy_ticks_sum(time, time_steps(net, g, GY_ALGORITHM_ONE_SHOT, 1, gy_net_flow));
}

gy_ticks gy_time_two_shot(gy_net *net, const gy_group *g)
{
    gy_ticks time = gy_ticks_sum(net->launch, both_signals(net, g));
    return gy_ticks_sum(time, time_steps(net, g, GY_ALGORITHM_TWO_SHOT, 1, gy_net_flow));
}

/* From or to the root: in as many pieces as is best. */
static gy_ticks chain(gy_net *net, const gy_group *g)
{
    gy_ticks best = GY_TICKS_MAX;
    for (int64_t pieces = 1; pieces <= 1024 && pieces <= g->bytes; pieces *= 2) {
        gy_ticks time = time_steps(net, g, GY_ALGORITHM_RING, pieces, gy_net_step);
        best = time < best ? time : best;
    }
    return g->bytes ? best : 0;
}

gy_ticks gy_time_ring(gy_net *net, const gy_group *g)
{
    bool chained = g->kind == GANTRY_BROADCAST || g->kind == GANTRY_REDUCE;
    return gy_ticks_sum(net->launch, chained ? chain(net, g) : time_steps(net, g, GY_ALGORITHM_RING, 1, gy_net_step));
}

gy_ticks gy_time_tree(gy_net *net, const gy_group *g)
{
    return gy_ticks_sum(net->launch, time_steps(net, g, GY_ALGORITHM_TREE, 1, gy_net_step));
}

gy_ticks gy_time_recursive(gy_net *net, const gy_group *g)
{
    return gy_ticks_sum(net->launch, time_steps(net, g, GY_ALGORITHM_RECURSIVE, 1, gy_net_step));
}
