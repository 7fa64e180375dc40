/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Phases: a graph whose loops are not unrolled wholly, as a list of graphs that are carried out one after the other.
 *
 * A phase is some nodes that are next to each other, once each, or so many iterations of one loop (the *body*), started
 * so many times. Each is a graph of its own, derived from the sealed one: same buffers, nodes and ids, but its flow has
 * only its own tasks, and a buffer has the class that it has for *this* phase:
 *
 *   starts == 1   input: its contents come from before; output: a later phase, or the caller, wants what it is then
 *   starts > 1    state: goes from start to start (and to later phases, if `kept`); const: only read
 *   both          temp: what it held before does not matter; const: a constant of the user
 *
 * In a derived graph the iteration of a task counts from 0; the task means iteration `first` + (start number) *
 * `iterations` + that. After a loop both names of a carried pair mean one value, so in a derived graph a name may mean
 * another buffer's value from the beginning: `entry`.
 *
 * What an iteration sees is the same in all of them, but perhaps for the first one or two (they may find values that
 * later ones do not). Those become phases of their own, so that the starts of one phase are alike.
 */
#ifndef GY_GRAPH_PHASE_H
#define GY_GRAPH_PHASE_H

#include "graph/graph.h"

typedef struct gy_phase {
    uint32_t first_node, last_node; /* [first, last) */
    uint32_t loop; /* the phase is iterations of this loop; GY_NONE: its nodes once, loops inside are unrolled */
    uint32_t first_loop, last_loop; /* loops inside, [first, last): gy_phases_derive sets them from the list */
    int64_t first, iterations;      /* the first iteration, and the iterations of every start. Without a loop: 0, 1 */
    int64_t starts;
    int64_t every; /* `until` is looked at after iterations that are a multiple of it; 0: never */
} gy_phase;
typedef GY_VEC(gy_phase) gy_phases;

/* Rows that hold something when a phase begins. */
typedef struct gy_rows {
    int64_t first, last;
} gy_rows;

/* A name takes over contents: of the phase's output (or state) `from`, or of what the name `from` meant before. */
typedef struct gy_move {
    uint32_t name, from;
    bool made; /* by this phase */
} gy_move;

/* The context of a phase: how it is connected to the phases before and after it. A derived graph has one, beside a flow
 * and classes of its own. Arrays are per buffer. */
typedef struct gy_phase_context {
    gy_phase phase;
    uint32_t until;     /* the buffer that is looked at, an output of the phase; GY_NONE */
    uint32_t *entry;    /* the buffer whose value the name means at first */
    uint32_t *source;   /* of inputs, states, consts: the name whose contents they begin with */
    gy_rows **defined;  /* the rows of a buffer that hold something, in order; NULL: all */
    uint32_t *defineds; /* how many of them */
    uint8_t *kept;      /* states: later phases need the value. Outputs are marked in the buffer */
    gy_move *move; /* names that mean another value after the phase. Other names mean the same, or are not used again */
    uint32_t moves;
} gy_phase_context;

/* How many iterations of a loop a phase carries out: at most, if it has an `until`. */
static inline int64_t gy_phase_turns(const gy_phase *p)
{
    return p->iterations * p->starts;
}
/* True if the loop may end after start number `start` (from 0) of the phase: `until` is looked at. */
static inline bool gy_phase_looks_after(const gy_phase *p, int64_t start)
{
    return p->every > 0 && (p->first + (start + 1) * p->iterations) % p->every == 0;
}
/* True if that is so after some start. */
static inline bool gy_phase_looks(const gy_phase *p)
{
    return p->every > 0 && p->every - p->first % p->every <= gy_phase_turns(p);
}

/* The nodes that a graph carries out: all but for a phase. */
static inline uint32_t gy_graph_first_node(const gantry_graph *g)
{
    return g->phase ? g->phase->phase.first_node : 0;
}
static inline uint32_t gy_graph_last_node(const gantry_graph *g)
{
    return g->phase ? g->phase->phase.last_node : (uint32_t)g->nodes.count;
}
static inline bool gy_graph_has_node(const gantry_graph *g, uint32_t node)
{
    return node >= gy_graph_first_node(g) && node < gy_graph_last_node(g);
}
/* The rows of buffer `id` that hold something at first, one run after the other: false past the last. A temp has none.
 */
bool gy_graph_entry_rows(const gantry_graph *graph, uint32_t id, uint32_t run, gy_rows *rows);

#endif
