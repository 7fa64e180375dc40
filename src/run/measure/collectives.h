/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Measuring collectives that GPUs carry out without NCCL: a graph of one kind and one algorithm after another is
 * scheduled and run as a user's would be. What one takes is how much longer a start with more of them takes, so that
 * what a start costs is not in it. Ahead of each and behind it every rank has work of its own, as it mostly has in
 * users' graphs: then how GPUs wait for each other is in it.
 */
#ifndef GY_RUN_MEASURE_COLLECTIVES_H
#define GY_RUN_MEASURE_COLLECTIVES_H

#include "run/backend.h"

/* A graph of `steps`, each a few elements that ranks take from their results to their contributions; ahead of that the
 * first `calls` steps have a collective. f32; ranks are devices 0, 1, ... `bytes` as in gy_collective_table, a multiple
 * of 16 ranks * ranks. */
gantry_status gy_collective_graph(gantry_graph **graph, gantry_collective kind, gy_algorithm algorithm, uint32_t ranks,
                                  uint64_t bytes, uint32_t calls, uint32_t steps, gantry_error *err);

/* The first so many GPUs, *first of which comes first; NULL: they are not of one kind, or one is there twice. */
gantry_machine *gy_select_gpus(const gantry_machine *m, uint32_t gpus, uint32_t *first);
uint32_t gy_count_gpus(const gantry_machine *m);

/* Adds tables to what->collectives: for the first 2, 4, 8, ... and all GPUs, if they are of one kind. `machine`: with
 * what was measured so far. Names are borrowed from `names`, which has the same devices. What cannot be measured, or
 * not within `seconds`, becomes a note. E_NOMEM. */
gantry_status gy_measure_collectives(gy_measured *what, const gantry_machine *machine, const gantry_machine *names,
                                     double seconds, gantry_error *err);

#endif
