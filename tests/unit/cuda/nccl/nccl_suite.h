/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of one collective and machines on which NCCL is chosen for it: for the fake driver and for real GPUs. */
#ifndef TESTS_UNIT_CUDA_NCCL_SUITE_H
#define TESTS_UNIT_CUDA_NCCL_SUITE_H

#include "../suite.h"

typedef struct nccl_case {
    gantry_collective kind;
    gantry_dtype dtype;
    gantry_access op; /* of those that reduce */
    int ranks;
    int64_t rows;  /* of a part; all_to_all: a multiple of `ranks` */
    bool in_place; /* all_reduce, reduce, broadcast, all_to_all */
    int uneven;    /* scatter, gather, all_gather, reduce_scatter: part i has (i + 1) times the rows; 2: i times */
} nccl_case;

enum { NCCL_COLUMNS = 3 };

extern const gantry_collective nccl_kinds[8];
bool nccl_reduces(gantry_collective kind);
/* x -> parts on the GPUs -> the collective -> y. Rank i is on "gpu<i>". */
gantry_graph *nccl_graph(const nccl_case *c);
/* Binds x: all sorts of bytes where they are moved, 1 and 2 where they are combined. The array lives until the next
 * call. */
void nccl_bind(gantry_run *run, gantry_graph *g, const nccl_case *c);
/* The same, but what is combined is any numbers, so that order and rounding show. */
void nccl_bind_any(gantry_run *run, gantry_graph *g, const nccl_case *c);
/* open_run, and nccl_bind. */
gantry_run *nccl_open(gantry_schedule *s, gantry_graph *g, const nccl_case *c, const char *backend);
/* gpu_machine with measured times of NCCL for `gpus` ranks, which no other algorithm beats. */
gantry_machine *nccl_machine(int gpus);
const char *nccl_name(const nccl_case *c); /* valid until the next call */

#endif
