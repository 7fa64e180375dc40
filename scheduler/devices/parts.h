/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Plans of one graph for some of the devices, made side by side. Each is made alone, from the graph, its part of the
 * machine and the options, so that what comes out does not depend on how many threads there are.
 */
#ifndef GY_SCHEDULER_DEVICES_PARTS_H
#define GY_SCHEDULER_DEVICES_PARTS_H

#include "base/error.h"
#include "base/thread.h"
#include "scheduler/plan/options.h"
#include "scheduler/plan/plan.h"

typedef struct gy_fewer_part {
    gantry_graph *graph;     /* borrowed */
    gantry_machine *machine; /* the part; owned; NULL: it cannot have the graph, or is not wanted */
    gy_options options;
    gy_text limits;       /* `max_memory` of these options: of the part's memories */
    gy_known_plans known; /* of the graph, on so many devices; freed by who made the part */
    uint32_t devices;
    gy_ticks hope;  /* a plan that is to be searched on from what takes so long; 0: a first one */
    gy_ticks limit; /* what cannot end before is not planned; GY_TICKS_MAX: all is */

    gy_bound bound;            /* {0}: there is none */
    gantry_schedule *schedule; /* owned; NULL: `status` and `why` say why, or its bound does */
    gantry_status status;
    gantry_error why;

    gy_ticks made; /* its makespan, GY_TICKS_MAX: there is none, or it cannot be better; set by who takes the plan */
    bool better;   /* it was the best when it was taken */

    pthread_t thread; /* that plans it, if it is planned apart from who asked */
    bool apart;
} gy_fewer_part;

/* Plans those that have a machine, each in a thread of its own; of a single one, and without threads, here. */
void gy_fewer_plan(gy_fewer_part *part, uint32_t count);
void gy_fewer_free(gy_fewer_part *part);

#endif
