/* SPDX-License-Identifier: Apache-2.0 */
/* Things that are learned from runs of a graph for the plans to come, beside the times of kernels (calibrate.c): what a
 * run whose ops overlapped tells of the portions of GPUs that they take (shares.h), and how often that was done. */
#ifndef GY_RUN_LEARN_H
#define GY_RUN_LEARN_H

#include "run/samples.h"

/* Appends the kernels of the last start that was sampled to `to`, each with the time for its very arguments that
 * `known` has and the portion of the GPU that was found; those whose time it does not have, or which never ran beside
 * others, are left out. Names are borrowed from `known`, which `to` must not outlive. E_NOMEM. */
gantry_status gy_learn_shares(gy_measured *to, const gantry_run *run, const gantry_machine *known, gantry_error *err);

/* Notes in `known` that the graph was measured on so many devices, once more. false: out of memory. */
bool gy_learn_mark(gantry_machine *known, const gantry_run *run);
/* How often it was: GY_LEARN_ROUNDS at most. */
uint32_t gy_learn_rounds(const gantry_machine *known, const gantry_run *run);

/* Once: the plan that these figures lead to overlaps other ops. Measured again, on H200, it was predicted no better. */
enum { GY_LEARN_ROUNDS = 1 };

#endif
