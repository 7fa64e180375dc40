/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of a run's checkpoints, who also goes on from one. Arrays of a start amid phases: phases_keep.c. */
#ifndef GY_RUN_KEEPER_H
#define GY_RUN_KEEPER_H

#include "run/checkpoint/manifest.h"
#include "run/checkpoint/store.h"
#include <gantry/run.h>

typedef struct gy_keeper {
    char *folder; /* of the options; NULL: nobody asked for any */
    uint64_t every;
    gy_store store;  /* of rank 0, once it is wanted */
    uint64_t starts; /* complete before this run was made: those of the checkpoint that it was resumed from */
    uint64_t kept;   /* complete when the last one was written, or resumed from */
    char *from;      /* the folder that was resumed from, and the number; NULL: none */
    uint64_t number;
    bool forgot;           /* a start has failed since, and states began anew */
    gy_checkpoint writing; /* what the one at hand has so far */
} gy_keeper;

void gy_keeper_free(gy_keeper *k);
/* Before a start: writes one between the last start and this, if it is time, which waits for those in flight. */
gantry_status gy_keeper_look(gantry_run *run, gantry_error *err);

/* One checkpoint: begin, add array after array, end; `status` of what came between, and of the whole. All ranks call
 * them alike; the arrays are those of rank 0. */
gantry_status gy_keeper_begin(gantry_run *run, const char *folder, gantry_error *err);
gantry_status gy_keeper_add(gantry_run *run, gy_kept_role role, uint32_t buffer, const void *packed, gantry_error *err);
gantry_status gy_keeper_end(gantry_run *run, const gy_moment *moment, gantry_status status, gantry_error *err);

#endif
