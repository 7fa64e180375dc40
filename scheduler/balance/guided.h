/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Balance by what was measured: where the parts of automatic splits are cut for the starts to come, once some have run.
 *
 * Each group of splits has a pace on each device: what its nodes took there, over what the model says. A device that no
 * part of the group was on has the pace of what else it did, or 1. With all times of the model taken so many times as
 * long, parts are cut by speed (balance.h) and the graph is placed again. The schedule at hand, simulated with the same
 * times, says what would be gained; what persists has to go from the one to the other by host memory.
 */
#ifndef GY_SCHEDULER_BALANCE_GUIDED_H
#define GY_SCHEDULER_BALANCE_GUIDED_H

#include "scheduler/plan/options.h"

typedef struct gy_guided {
    gy_ticks now, then;     /* of a start with the schedule at hand, with the new one: both at the measured paces */
    gy_ticks hand_over;     /* what persists, out of the one and into the other */
    uint64_t moved, handed; /* bytes of states that are in another memory then; that go through host memory */
} gy_guided;

/*
 * `took`: per op of the schedule, which has its graph, how long it was at work; of ops in compute lanes only. *next is
 * NULL where the parts stay as they are. The new schedule is verified. E_UNSUPPORTED for schedules with phases.
 */
gantry_status gy_guided_schedule(gantry_schedule **next, const gantry_schedule *at_hand, const gy_ticks *took,
                                 const gy_options *options, gy_guided *result, gantry_error *err);

#endif
