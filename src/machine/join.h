/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of joining machines share these: join.c (what there is) and join_links.c (how bytes move). */
#ifndef GY_MACHINE_JOIN_H
#define GY_MACHINE_JOIN_H

#include "machine/build.h"

/* Where the memories and resources of a node begin in the joined machine. */
typedef struct gy_join_place {
    uint32_t memory, resource;
    uint32_t port;     /* the first of its ports' resources: of each what it sends, then what it gets */
    gy_uplink network; /* of one node alone: zeroed */
} gy_join_place;

typedef struct gy_joining {
    gantry_machine *m;                 /* being made */
    const gantry_machine *const *node; /* `nodes` of them, each with its place */
    const gy_join_place *place;
    uint32_t nodes;
} gy_joining;

/* Routes within nodes, and between them. false: out of memory. */
bool gy_join_routes(const gy_joining *j);

#endif
