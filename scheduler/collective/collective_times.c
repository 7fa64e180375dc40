/* SPDX-License-Identifier: Apache-2.0 */
/* The times of the algorithms' steps (schedule/traffic/steps.c), and of what comes before and behind them. */
#include "scheduler/collective/collective.h"

typedef struct clock {
    gy_net *net;
    const gy_group *g;
    gy_ticks (*step)(gy_net *net);
    gy_ticks time;
    bool kernels; /* islands: in the step at hand, some move is a kernel's */
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
    gy_algorithm_steps(g, algorithm, net->order.at, &net->islands, pieces, &walk);
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

/* Each GPU combines a share of an all_reduce for all; of other kinds it brings what is wanted where it is wanted. */
gy_ticks gy_time_counters(gy_net *net, const gy_group *g)
{
    return g->kind == GANTRY_ALL_REDUCE ? gy_time_two_shot(net, g) : gy_time_one_shot(net, g);
}

/* ---- islands ---- */

/* From so many bytes on, a part that is only moved is copied: the back end for CUDA leaves that to copy engines
 * (GY_SHARE_ENGINE). */
enum { COPIED_FROM = 32 << 20 };

static void note_move(void *context, const gy_step_move *move)
{
    clock *c = context;
    c->kernels = c->kernels || move->combines || move->last - move->first < COPIED_FROM;
    gy_net_add(c->net, c->g, move->from, move->to, move->last - move->first);
}

/* Each step begins when the one before has ended: a launch and a signal. */
static void note_moves_end(void *context, int64_t times)
{
    clock *c = context;
    gy_ticks time = (c->kernels ? gy_net_step : gy_net_copies)(c->net);
    c->kernels = false;
    c->time = gy_ticks_sum(c->time, gy_ticks_times(gy_ticks_sum(c->net->launch, time), times));
}

gy_ticks gy_time_islands(gy_net *net, const gy_group *g)
{
    bool gathers = g->kind == GANTRY_ALL_GATHER;
    clock c = { .net = net, .g = g };
    gy_move_walk walk = { note_move, note_moves_end, &c, true };
    gy_islands_moves(&net->islands, g->kind, gathers ? GY_NONE : g->root, gathers ? g->part : &g->bytes, &walk);
    return c.time;
}

/* ---- ring, tree, recursive ---- */

/* Where both back ends make the steps one after the other (schedule/exchange/rounds.c), each is a launch. */
static bool has_rounds(const gy_group *g)
{
    return g->kind == GANTRY_ALL_REDUCE || g->kind == GANTRY_ALL_GATHER || g->kind == GANTRY_BROADCAST ||
           g->kind == GANTRY_ALL_TO_ALL;
}

static gy_ticks launched_step(gy_net *net)
{
    return gy_ticks_sum(net->launch, gy_net_step(net));
}

static gy_ticks time_rounds(gy_net *net, const gy_group *g, gy_algorithm algorithm)
{
    if (has_rounds(g))
        return time_steps(net, g, algorithm, gy_chain_pieces(g->bytes), launched_step);
    return gy_ticks_sum(net->launch, time_steps(net, g, algorithm, 1, gy_net_step));
}

/* To the root: in as many pieces as is best. */
static gy_ticks chain(gy_net *net, const gy_group *g)
{
    gy_ticks best = GY_TICKS_MAX;
    for (int64_t pieces = 1; pieces <= 1024 && pieces <= g->bytes; pieces *= 2) {
        gy_ticks time = time_steps(net, g, GY_ALGORITHM_RING, pieces, gy_net_step);
        best = time < best ? time : best;
    }
    return gy_ticks_sum(net->launch, g->bytes ? best : 0);
}

gy_ticks gy_time_ring(gy_net *net, const gy_group *g)
{
    return g->kind == GANTRY_REDUCE ? chain(net, g) : time_rounds(net, g, GY_ALGORITHM_RING);
}

gy_ticks gy_time_tree(gy_net *net, const gy_group *g)
{
    return time_rounds(net, g, GY_ALGORITHM_TREE);
}

gy_ticks gy_time_recursive(gy_net *net, const gy_group *g)
{
    return time_rounds(net, g, GY_ALGORITHM_RECURSIVE);
}
