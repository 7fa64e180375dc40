/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and machines for replay by the device, on emulated GPUs as on real ones. */
#ifndef TESTS_UNIT_CUDA_RESIDENT_RINGS_H
#define TESTS_UNIT_CUDA_RESIDENT_RINGS_H

#include "unit/cuda/suite.h"

/* Lists in a ring: in each step a list takes in what its neighbours had, so that rows go from GPU to GPU; what it has
 * stays from start to start, and is an output if `fetched`. List i is on GPU i * gpus / lists; 0 GPUs: the policy
 * decides. */
gantry_graph *ring_of(int gpus, int lists, int steps, int length, bool fetched);
/* Stages, of which number k is on GPU k modulo `gpus`: the first adds the input "x" to "n", which counts starts, and
 * "sum" adds up what leaves the last. */
gantry_graph *pipeline_of(int gpus, int stages, int rows);
/* Two lists, each of which in turn takes in what the other had, in FLAGGED steps, where a flag is not 0. It changes
 * ahead of most steps, on the same GPU or another one; the next start has the other flags. */
enum { FLAGGED = 12 };
gantry_graph *flagged_of(int gpus, int length);
/* GPUs that reach each other, with so many lanes each, and a CPU. */
gantry_machine *ring_machine(int gpus, int lanes);
/* The same with so many multiprocessors, 0: it is not said. Where workers do all of a graph, each has a lane of its
 * own. */
gantry_machine *small_machine(int gpus, int lanes, int processors);
/* Starts of a run of the back end "cuda" and of the host, whose results are the same, bit for bit; `replay` of the run.
 */
void compare_with_host(gantry_graph *g, gantry_schedule *s, int starts, char *replay, size_t size);
/* A wait that workers make, or the last that a stream does, is for more than is ever signalled, so that starts hang,
 * until it is mended. Streams copy outputs that are large. */
enum { SPOILED_WORDS = 4 };
typedef struct spoiled_wait {
    void *wait;
    uint32_t value, distance;
    char words[SPOILED_WORDS][80]; /* that an error has of the first start: its op, lane and counter, who signals that,
                                      how often that is done, and what is awaited */
} spoiled_wait;
spoiled_wait spoil_wait(gantry_schedule *s, bool stream);
void mend_wait(spoiled_wait spoiled);
/* The first of the words that the text lacks; NULL: it has all. */
const char *lacks(const spoiled_wait *spoiled, const char *text);

#endif
