/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The knowledge that this user's cache (base/cache.h) has of computers with GPUs: for each a machine file, under a name
 * made from what the computer is like (driver, CUDA, GPUs, ECC, which pairs of memories have a route). It has what a
 * calibration measured, or what detection said, with the times that kernels took in runs. Whoever writes last is right:
 * what two processes measured at one time is measured again by the next that lacks it.
 */
#ifndef GY_MACHINE_RECALL_H
#define GY_MACHINE_RECALL_H

#include "base/cache.h"
#include "machine/machine.h"

#define GY_RECALL_CASES 1024               /* times for exact arguments that are kept, the newest */
#define GY_RECALL_MARKS 256                /* marks of graphs */
#define GY_RECALL_BYTES (INT64_C(1) << 26) /* a file that has more is none of ours */

/* True if there is anything to keep of a computer like `here`: it has GPUs, and the cache is not switched off. */
bool gy_recall_is_on(const gantry_machine *here);
/* E_UNSUPPORTED where there is not. */
gantry_status gy_recall_need(const gantry_machine *here, gantry_error *err);
/* Could something be kept now? */
bool gy_recall_is_writable(const gantry_machine *here);
/* As gantry_machine_recall, with the marks of graphs. */
gantry_status gy_recall_read(gantry_machine **machine, const gantry_machine *here, char **text, gantry_error *err);
/* Keeps `m`, which is like `here`. */
gantry_status gy_recall_keep(const gantry_machine *m, const gantry_machine *here, gantry_error *err);
/* Forgets the oldest of the times for exact arguments, and of the marks, that are too many. */
void gy_recall_trim(gantry_machine *m);

/* A mark says that the kernels of a graph were measured once: those of whose times none counted, since there was always
 * something beside them, would else be measured again and again. It is a note. */
bool gy_recall_has_mark(const gantry_machine *m, uint64_t graph_hash);
bool gy_recall_mark(gantry_machine *m, uint64_t graph_hash); /* false: out of memory */

#endif
