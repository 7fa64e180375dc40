/* SPDX-License-Identifier: Apache-2.0 */
/** Packets while a program is made: the calls of all ops, and what of an op goes into which packet of which lane. */
#ifndef GY_CUDA_RESIDENT_PACKETS_H
#define GY_CUDA_RESIDENT_PACKETS_H

#include "backends/cuda/resident/resident.h"

/* A call of fewer blocks is carried out by one worker: meeting others takes longer than these blocks. */
enum { GY_RESIDENT_LEAST_SHARED = 4 };

/* Calls of all ops: those of op i are [first[i], first[i + 1]). */
typedef struct gy_resident_plan {
    gy_resident_calls calls;
    size_t *first;
    gy_resident_sent *sent; /* per op */
    uint32_t *met;          /* per pair of lanes that meet: how often the one has told the other so far */
} gy_resident_plan;

/* Counts how often lanes meet in a start, ahead of all packets. False: out of memory. */
bool gy_resident_count_meetings(gy_cuda *h, const gy_resident_plan *plan);
/* Appends the packets of an op that workers carry out to its lanes. False: out of memory. */
bool gy_resident_add_op(gy_cuda *h, uint32_t op, const gy_resident_plan *plan);

#endif
