/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of joining machines share these: join.c (what there is) and join_links.c (how bytes move). */
#ifndef GY_MACHINE_JOIN_H
#define GY_MACHINE_JOIN_H

#include "machine/build.h"

/* Where the memories, resources and ranks of a node begin in the joined machine. */
typedef struct gy_join_place {
    uint32_t memory, resource, rank;
    uint32_t port;     /* the first of its ports' resources: of each what it sends, then what it gets */
    gy_uplink network; /* of one node alone: zeroed */
} gy_join_place;

typedef struct gy_joining {
    gantry_machine *m;                 /* being made */
    const gantry_machine *const *node; /* `nodes` of them, each with its place */
    const gy_join_place *place;
    const gy_uplink *between; /* per node and node: how late and how fast a message is, where that was measured; NULL:
                                 as the ports of both say */
    uint32_t nodes;
} gy_joining;

/* gantry_machine_join where the network was measured: `port` per node, and `between` of a gy_joining. */
gantry_status gy_machine_join_measured(gantry_machine **machine, const gantry_machine *const *node, uint32_t nodes,
                                       const gy_uplink *port, const gy_uplink *between, gantry_error *err);

/* Routes within nodes, and between them. false: out of memory. */
bool gy_join_routes(const gy_joining *j);

#endif
