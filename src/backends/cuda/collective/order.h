/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The order of work that waits for its peers: kernels of one op on several GPUs, each of which ends only when the
 * others have begun. Those are NCCL's, those of collectives that meet by counters (counted.h), and resident ones. On
 * every GPU such work is in one order, that of positions, start after start and run after run, so no two of them hold
 * each other.
 */
#ifndef GY_CUDA_COLLECTIVE_ORDER_H
#define GY_CUDA_COLLECTIVE_ORDER_H

#include "backends/cuda/collective/collective.h"

typedef struct gy_peer_order {
    gy_cuda *h;
    uint8_t *waits; /* per device: such work of the run is there */
    uint32_t *last; /* per device: the lane of the last such op there; GY_NONE */
    bool locked;
    CUevent end;     /* of the last start that was submitted; NULL: none yet */
    CUevent *kernel; /* per device: the end of its kernel of that start, which `end` may not wait for; NULL */
    struct gy_peer_order *next; /* of all runs of the process that have such work */
} gy_peer_order;

/* Work of the run that waits for its peers is, or will be, on that device. */
gantry_status gy_order_add(gy_cuda *h, uint32_t device, gantry_error *err);
/* Ties ops that follow each other in all their lanes, of which all `are` such work. A batch is tied as a whole. */
gantry_status gy_order_tie(gy_cuda *h, bool (*are)(const gy_cuda *h, uint32_t op), gantry_error *err);
/* x->op comes after such work that the GPUs of its lanes have, and is the last of it from now on. */
gantry_status gy_order_lanes(gy_submit *x);
/* All lanes begin when the first one does (`before`), or the first one waits until all have ended; not between ops that
 * are tied. */
gantry_status gy_order_join(gy_submit *x, bool before);

#endif
