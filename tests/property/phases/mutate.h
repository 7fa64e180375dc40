/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules with phases, made wrong between the phases. */
#ifndef TESTS_PHASES_MUTATE_H
#define TESTS_PHASES_MUTATE_H

#include "program.h"
#include "schedule/schedule.h"

/* Both: false if there is nothing of that kind to change. */
bool move_bound(gantry_schedule *s, uint64_t *state);
/* A row that a phase leaves for later phases is not handed over. `like`: the same schedule with its graphs. */
bool drop_rows(gantry_schedule *s, const gantry_schedule *like, uint64_t *state);

#endif
