/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Collectives: how long each algorithm takes for a group (schedule/traffic/group.h), and which is best. Needs a machine
 * and nothing of the plan, so that placing, lowering, recognising copies and explaining all ask the same functions.
 *
 *   collective_net.c     one step: transfers that go at the same time
 *   collective_cost.c    the table of algorithms: what each can do, what it takes
 *   collective_times.c   the time of their steps; the steps are those of schedule/traffic/steps.c
 *   collective_choose.c  the cheapest that can
 *   collective_bound.c   what none can beat
 *
 * Cost is alpha-beta over the machine's own routes: a step takes the slowest of its transfers when alone, and at least
 * what its busiest resource (link, port, bus) needs for all bytes that cross it in that step. Kernels that load and
 * store peer memory take a launch, a latency for each signal between ranks, and move 4 bytes in the time that a copy
 * engine takes for 5 (measured: one_shot on 8 H200 reaches 0.80 of what its ports carry, two_shot 0.76). Where ranks
 * have no direct route, copies through a third memory take the place of kernels: at full speed, without signals. So do
 * messages over a network, whose ports move the bytes and tell of their end; they go beside what kernels move.
 */
#ifndef GY_SCHEDULER_COLLECTIVE_COLLECTIVE_H
#define GY_SCHEDULER_COLLECTIVE_COLLECTIVE_H

#include "base/vec.h"
#include "schedule/traffic/group.h"
#include "schedule/traffic/traffic.h"

/* ---- collective_net.c ---- */

/* The transfers of a step that go the same way. */
typedef struct gy_net_part {
    gy_ticks solo, latency; /* slowest transfer alone, longest latency */
} gy_net_part;

/* Room to add up steps in; one may serve many collectives of the machine. */
typedef struct gy_net {
    const gantry_machine *m;
    int64_t *load;          /* per resource: bytes of the step at hand */
    gy_ticks *begin;        /* per resource with a load: when the first of them can come */
    GY_VEC(uint32_t) used;  /* resources with a load */
    bool *wire;             /* per resource with a load: messages are part of it */
    uint32_t *device;       /* per memory: the one whose launches and engines count, or GY_MACHINE_NONE */
    gy_ticks *engine;       /* per device: time that copies of the step keep its engines busy */
    GY_VEC(uint32_t) order; /* ranks along a ring */
    gy_islands islands;     /* of the group at hand */
    gy_net_part near, far;  /* of the step: all transfers but messages, messages */
    bool staged;            /* some transfer of the step goes through a third memory */
    bool lenient;           /* copies below the first point of their route are in nobody's way, as in the simulator */
    bool slow;              /* kernels of GPUs: see above */
    gy_ticks launch;
} gy_net;
bool gy_net_init(gy_net *net, const gantry_machine *m);
void gy_net_free(gy_net *net);

/* Gets ready for the group's devices. false: out of memory. */
bool gy_net_begin(gy_net *net, const gy_group *g);
void gy_net_add(gy_net *net, const gy_group *g, uint32_t from, uint32_t to, int64_t bytes);
/* The time of the transfers added since the last end, by kernels with one signal, by kernels without, by copies. */
gy_ticks gy_net_step(gy_net *net);
gy_ticks gy_net_flow(gy_net *net);
gy_ticks gy_net_copies(gy_net *net);
gy_ticks gy_ticks_sum(gy_ticks a, gy_ticks b);
gy_ticks gy_ticks_times(gy_ticks time, int64_t count);

/* ---- collective_times.c: times of algorithms that can do the group ---- */
gy_ticks gy_time_copy(gy_net *net, const gy_group *g);
gy_ticks gy_time_ring(gy_net *net, const gy_group *g);
gy_ticks gy_time_tree(gy_net *net, const gy_group *g);
gy_ticks gy_time_recursive(gy_net *net, const gy_group *g);
gy_ticks gy_time_one_shot(gy_net *net, const gy_group *g);
gy_ticks gy_time_two_shot(gy_net *net, const gy_group *g);
gy_ticks gy_time_counters(gy_net *net, const gy_group *g);
gy_ticks gy_time_islands(gy_net *net, const gy_group *g);

/* ---- collective_cost.c ---- */

/* One algorithm looked at. */
typedef struct gy_way {
    gy_algorithm algorithm;
    const char *refused; /* why it cannot do it; NULL: it can */
    gy_ticks time;       /* refused: GY_TICKS_MAX */
    uint8_t provenance;  /* gy_provenance */
} gy_way;
/* The algorithm has a way to do that kind, somewhere. */
bool gy_collective_knows(gy_algorithm algorithm, gantry_collective kind);
/* Nobody measured it, and its model would say what another's says: whoever wants it has to ask for it. */
bool gy_collective_is_unproven(const gy_way *way);
/* After gy_net_begin for the group. A measured time wins over the model's. */
gy_way gy_collective_look(gy_net *net, const gy_group *g, gy_algorithm algorithm);

/* ---- collective_choose.c ---- */

/* The cheapest of those that can, of equals the first of GY_ALGORITHM_MAP. Where the machine has measured times of some
 * of them (for this collective, kind of devices and number of ranks), it is the cheapest of these, unless another's
 * model says less than half: models are right within some 15 %, and where not there the little that they say of one
 * algorithm is no reason against what was seen of another. A node may ask for any. false: out of memory. */
bool gy_collective_choose(gy_net *net, const gy_group *g, gy_way *best);
/* `name`: what a node asks for; NULL: choose. E_GRAPH, with the algorithms that can do it, if it is none of those:
 * `node` and `place` (may be NULL) are for the message. */
gantry_status gy_collective_obey(gy_net *net, const gy_group *g, const char *name, const char *node, gy_way *best,
                                 gantry_error *err);

/* ---- collective_bound.c ---- */

typedef struct gy_collective_limit {
    gy_ticks time;      /* no algorithm of the table is faster: the larger of the next two */
    gy_ticks bandwidth; /* of the narrowest cut */
    gy_ticks latency;   /* of the longest of the quickest ways that some bytes must go */
    uint32_t steps;     /* hops of that way counted: the diameter */
    int64_t bytes;      /* that must cross the narrowest cut */
    int64_t rate;       /* bytes a second that can */
    uint64_t inside;    /* ranks on its inner side, bit by bit; 0: the sum over all ranks decided */
} gy_collective_limit;
/* false: out of memory */
bool gy_collective_bound(gy_collective_limit *limit, const gantry_machine *m, const gy_group *g);

#endif
