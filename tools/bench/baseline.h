/* SPDX-License-Identifier: Apache-2.0 */
/* The same work by hand, straight on the driver and in the same program: what `gantry bench` compares Gantry with.
 * Samples are taken in turn, one of Gantry's and one of these, so that what disturbs one disturbs both. */
#ifndef GANTRY_COMMAND_BENCH_BASELINE_H
#define GANTRY_COMMAND_BENCH_BASELINE_H

#include "bench_dag.h"
#include <gantry/gantry.h>

typedef struct baseline baseline;

typedef struct baseline_options {
    const char *shape; /* replay, build: "chain", "wide", "stencil"; nccl: "all_reduce", "broadcast", ... */
    uint64_t bytes;    /* copies: of each; nccl: as in machine files, a multiple of 16 times the square of GPUs */
    int64_t nodes;     /* replay, build: tiny kernels in all */
    int copies;        /* on each stream, one after another; nccl: collectives; at least 1 */
    int devices;       /* the first so many GPUs of the machine; 0: all */
    /* upload, fetch, both: an array for each of these GPUs, to be copied from and to; borrowed until baseline_close,
     * and page-locked by the owner. `bytes` go up from its beginning, and as many come back `apart` bytes behind. NULL:
     * page-locked memory of its own. Where memory lies may count for more than who copies. */
    void *const *host;
    uint64_t apart; /* with `host`; 0: `bytes` */
    bench_dag dag;  /* replay, build: tasks in place of a shape; width 0: none */
} baseline_options;
#define BASELINE_OPTIONS_INIT                                                                                          \
    {                                                                                                                  \
        "chain", 0, 1, 1, 0, NULL, 0,                                                                                  \
        {                                                                                                              \
            false, 0, 0, 0                                                                                             \
        }                                                                                                              \
    }

/* Prepares `what`:
 *   "peer"     copies from the first GPU to the second
 *   "upload"   copies from page-locked host memory to the GPUs, all at once; "fetch" the other way; "both" both at once
 *   "within"   copies within the memory of the first GPU
 *   "nccl"     collectives of NCCL one after another, in a graph that was captured by hand; f32, sums
 *   "replay"   launching a graph of tiny kernels that was captured by hand
 *   "build"    capturing and instantiating that graph
 * The machine may go. E_DEVICE: no such device here. E_UNSUPPORTED: the devices, or this build, cannot do this.
 * E_INVALID: no such work. */
gantry_status baseline_open(baseline **made, const char *what, const gantry_machine *machine,
                            const baseline_options *wanted, gantry_error *err);
/* Does it once and waits. *us: from before the first call until the end is seen, as of a start that is waited for; of
 * "within" the device's time alone. *bytes: moved, over links or within memory (read and written); 0 where that is not
 * the point. Either may be NULL. */
gantry_status baseline_time(baseline *b, double *us, double *bytes, gantry_error *err);
void baseline_close(baseline *b); /* NULL is fine */

#endif
