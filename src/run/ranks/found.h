/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that processes have together: found.c says which computers there are, links.c how fast they reach each
 * other. */
#ifndef GY_RUN_RANKS_FOUND_H
#define GY_RUN_RANKS_FOUND_H

#include "machine/machine.h"
#include "run/network/network.h"

/* Computers, each with ranks that follow each other: those of number i begin at first[i], and end before first[i + 1].
 */
typedef struct gy_computers {
    uint32_t count;
    const uint32_t *first, *of; /* of: per rank, its computer */
} gy_computers;

/* How late a message is and how fast its bytes go, by messages from host memory to host memory: `between` per computer
 * and computer, by pairs alone; `port` per computer, what all of its ranks send at once. All processes call it and find
 * the same. */
gantry_status gy_links_measure(gantry_network *n, const gy_computers *c, gy_uplink *port, gy_uplink *between,
                               gantry_error *err);
/* The nearest of twelve steps of a power of ten, so that two measurements mostly agree. */
double gy_links_round(double x);

#endif
