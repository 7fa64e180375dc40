/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Inside the simulator. An *item* is an op in one start: start * ops + op. A *job* is an item that is being carried
 * out, or that waits for a signal: it has exactly one event ahead. Jobs are few, items are many.
 */
#ifndef GY_SIM_INTERNAL_H
#define GY_SIM_INTERNAL_H

#include "sim/sim.h"

__extension__ typedef __int128 gy_int128;

#define GY_TICKS_PER_S (GY_TICKS_PER_US * 1000000)

typedef enum gy_sim_phase { GY_SIM_WORK, GY_SIM_LATENCY, GY_SIM_FLOW, GY_SIM_LAUNCH, GY_SIM_SIGNAL } gy_sim_phase;

typedef struct gy_sim_job {
    uint32_t item;
    uint8_t phase;          /* gy_sim_phase: what ends at `time` */
    bool unhindered;        /* flow: at its cap ever since it began, so it ends after `alone` */
    bool open;              /* flow, while rates are computed: not fixed yet */
    bool sent;              /* a message that is on its way: its lane and its engine go on */
    uint32_t heap_index;    /* in gy_sim.queue */
    gy_ticks time;          /* of its next event */
    uint32_t taken, wanted; /* of its engine, in thousandths */
    /* Flows, and computing ops that have less of their device than they can use. */
    gy_ticks late;     /* of a message: from when it is sent until it comes */
    gy_ticks alone;    /* how long it takes when nothing slows it down */
    gy_ticks since;    /* when `left` was true */
    gy_int128 left;    /* bytes x ticks per second still to move: falls by `rate` each tick; computing: by `taken` */
    int64_t cap, rate; /* bytes per second; rate 0: not begun */
    int64_t next_rate; /* while rates are computed */
    const uint32_t *resource;
    const uint64_t *weight; /* per resource: how much of it a rate takes, GY_SIM_ONE: as much as it is; NULL: all are */
    uint32_t resources;
    uint64_t seen;
} gy_sim_job;

/* A collective as a flow: it takes its duration where nothing slows it down, and then the bytes that it puts on the
 * resource that it uses most go at `cap`. */
#define GY_SIM_ONE_BITS 20
#define GY_SIM_ONE      (UINT64_C(1) << GY_SIM_ONE_BITS)
typedef struct gy_sim_team {
    size_t first; /* of team_resource, team_weight */
    uint32_t resources;
    int64_t bytes, cap;
} gy_sim_team;

/* A resource of the machine that flows share. */
typedef struct gy_sim_link {
    GY_VEC(uint32_t) flows; /* jobs; one that passes twice is here twice */
    int64_t rest;           /* while rates are computed: bytes per second not given away yet */
    uint64_t open;          /* weights of flows that are not fixed yet */
    uint32_t teams;         /* flows that are collectives */
    bool full, dirty;
    uint64_t seen;
} gy_sim_link;

typedef struct gy_sim_wait {
    gy_ticks since;
    uint32_t item;
} gy_sim_wait;

/* The copy engines of a device, or what it computes with, in thousandths of one. A copy takes a whole one; a computing
 * op what it can use, or what those before it left: at most the last that began has less than it can use. */
typedef struct gy_sim_engines {
    uint32_t idle;
    uint32_t hindered; /* the job that has less than it can use, or GY_NONE */
    GY_VEC(gy_sim_wait) waiting;
} gy_sim_engines;

/* `to` of start i + distance waits for `from` of start i, until that has ended, or is sent (gy_sim_is_message). */
typedef struct gy_sim_edge {
    uint32_t to, distance;
    bool sent;
} gy_sim_edge;

typedef struct gy_sim {
    const gantry_schedule *s;
    const gantry_machine *m;
    uint32_t ops, starts;
    bool unset;     /* no flag of a `when` is set */
    bool gates;     /* a start is one graph for each GPU (schedule/gates) */
    uint32_t *told; /* then, per op: as gy_gate_told has it */
    gy_ticks now;
    /* Order. */
    size_t *edge_first; /* ops + 1 */
    gy_sim_edge *edge;
    uint32_t *waits; /* per item: how many ends it still waits for */
    gy_ticks *due;   /* per item: the earliest time that a signal, or the host, can reach it; NULL: at once */
    gy_ticks *given; /* per op: time of the host to come to it, from when the start may begin; NULL: no start waits */
    uint32_t *todo;  /* per start: ops that have not ended */
    GY_VEC(uint32_t) ready;
    size_t finished;
    /* Jobs that are being carried out, and what they use. */
    GY_VEC(gy_sim_job) jobs;
    GY_VEC(uint32_t) spare;  /* jobs free for use */
    GY_VEC(uint32_t) queue;  /* binary heap of jobs by (time, item) */
    gy_sim_link *link;       /* per resource */
    gy_sim_engines *engines; /* per device the copy engines, then per device the compute engine */
    bool engines_dirty;
    uint32_t *team_of; /* per op: 1 + its place among the teams, 0: it puts nothing on resources; NULL: no op does */
    GY_VEC(gy_sim_team) team;
    GY_VEC(uint32_t) team_resource;
    GY_VEC(uint64_t) team_weight;
    /* Scratch of sharing. */
    GY_VEC(uint32_t) dirty, links; /* room for all resources */
    GY_VEC(uint32_t) flows;        /* room for all jobs */
    uint64_t round;
    /* Results. */
    gy_ticks *begin, *end; /* per op of the first start */
    gy_sim_start *out;     /* per start */
} gy_sim;

/* A copy that hosts send over a network: it puts its bytes on the resources, and comes a latency after that. What waits
 * for it and stays where it came from begins when it is sent, as do messages behind it that go the same way. */
bool gy_sim_is_message(const gy_sim *sim, const gy_op *op);
const gy_route *gy_sim_route(const gy_sim *sim, const gy_op *op); /* of a copy */

/* meets.c: a collective whose GPUs meet by counters (docs/design/collectives.md): a kernel in each of its lanes waits
 * for its peers by itself. No event orders these lanes, and who waits for such an op waits for its lane on the GPU that
 * both have, as the op does for what comes before it. */
bool gy_sim_meets(const gy_sim *sim, const gy_op *op);
/* The lanes between which `to` waits for `from`; false: one of the two has none. */
bool gy_sim_between(const gy_sim *sim, uint32_t from, uint32_t to, const gy_lane **a, const gy_lane **b);

/* deps.c: lane order and sync table as one list of edges. */
gantry_status gy_sim_order(gy_sim *sim, gantry_error *err);
/* Why items are left over when nothing happens any more: names the ops of a cycle of waits. */
gantry_status gy_sim_stuck(const gy_sim *sim, gantry_error *err);

/* issue.c: when the host has come to each item, were no start to wait for another; and `given`. */
gantry_status gy_sim_issue(gy_sim *sim, gantry_error *err);

/* teams.c: collectives as flows. */
gantry_status gy_sim_teams(gy_sim *sim, gantry_error *err);
const gy_sim_team *gy_sim_team_of(const gy_sim *sim, uint32_t op); /* NULL: it shares nothing */

/* queue.c. Room for one more entry was reserved when the job was made. */
void gy_sim_queue_push(gy_sim *sim, uint32_t job);
uint32_t gy_sim_queue_pop(gy_sim *sim);
void gy_sim_queue_update(gy_sim *sim, uint32_t job); /* after its time changed */

/* fair_rates.c */
bool gy_sim_flow_begin(gy_sim *sim, uint32_t job); /* false: out of memory */
void gy_sim_flow_end(gy_sim *sim, uint32_t job);
/* Sets the rates and times of the flows whose resources have seen a begin or an end. */
void gy_sim_set_rates(gy_sim *sim);

/* The k-th lane of an op. */
static inline const gy_lane *gy_sim_lane(const gy_sim *sim, const gy_op *op, uint32_t k)
{
    return &sim->s->lanes.at[sim->s->op_lane.at[op->lane + k]];
}
/* Its first one; NULL: it has none. */
static inline const gy_lane *gy_sim_lead(const gy_sim *sim, uint32_t op)
{
    const gy_op *o = &sim->s->ops.at[op];
    return o->lanes ? gy_sim_lane(sim, o, 0) : NULL;
}

#endif
