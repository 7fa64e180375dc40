/* SPDX-License-Identifier: Apache-2.0 */
/* The number of iterations that the flow of a graph shows of each loop. */
#ifndef GY_GRAPH_FLOW_UNROLL_H
#define GY_GRAPH_FLOW_UNROLL_H

#include "graph/graph.h"

enum {
    GY_UNROLL_MOST = 200000, /* tasks: a graph that unrolls to more is not unrolled wholly */
    GY_ITERATIONS_SHOWN = 3  /* iterations in the flow of a loop that is not unrolled: what they see is all there is to
                           see, so later ones make no mistakes of their own */
};

/* True if the loop has tasks, so that it can be a phase. */
static inline bool gy_loop_has_tasks(const gy_loop *l)
{
    return l->count > 0 && l->tasks > 0;
}
/* The tasks of a loop that is unrolled wholly: a double, since there may be very many. */
static inline double gy_loop_tasks(const gy_loop *l)
{
    return (double)l->count * (double)l->tasks;
}

/* True of a sealed graph that no single schedule carries out: its flow shows only the first iterations of a loop, or
 * `until` may end a loop before its last iteration, so that unrolling would do too much. */
bool gy_graph_needs_phases(const gantry_graph *graph);
/* Sets `unrolled` of all loops, when the graph is sealed. */
void gy_graph_fold(gantry_graph *graph);

#endif
