/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of collectives, of all GPUs or some of them, among copies from GPU to GPU: what comes behind a
 * collective on one of its GPUs may do so by way of another one. */
#ifndef TESTS_UNIT_CUDA_COUNTED_MIXED_H
#define TESTS_UNIT_CUDA_COUNTED_MIXED_H

#include "../suite.h"

gantry_graph *mixed_graph(uint64_t seed, int gpus); /* up to 4 */
/* All collectives of the schedule meet by counters where they can. */
void mixed_by_counters(gantry_schedule *s);

#endif
