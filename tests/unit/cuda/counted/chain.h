/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that follow each other on rows that are cut in another way each time, so that a GPU which goes ahead of
 * the others reads what is not there yet, or writes over what others still read. Some have kernels between them. For
 * the fake driver and for real GPUs.
 */
#ifndef TESTS_UNIT_CUDA_COUNTED_CHAIN_H
#define TESTS_UNIT_CUDA_COUNTED_CHAIN_H

#include "../suite.h"

typedef struct chain {
    gantry_dtype dtype;
    int ranks, ops, chains; /* ops: of each chain; chains have nothing to do with each other */
    int64_t rows;           /* of a rank */
    bool in_place, apart;   /* apart: GPUs copy what each has given, so none follows another right away */
    bool by_nccl;
} chain;

/* A schedule with the algorithm "counters", or with NCCL, and what the host makes of it. */
typedef struct chain_problem {
    gantry_graph *graph;
    gantry_machine *machine;
    gantry_schedule *schedule;
    results want;
} chain_problem;
chain_problem chain_pose(const chain *c, const char *replay);
void chain_put_away(chain_problem *p);
/* Starts a run so often. `meets`: its kernels meet, as its report says. */
void chain_try(const chain *c, const chain_problem *p, const char *replay, int starts, bool meets);
const char *chain_name(const chain *c, const char *replay); /* valid until the next call */

enum { CHAIN_TYPES = 5 };
extern const gantry_dtype chain_types[CHAIN_TYPES];

#endif
