/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule for some of the devices of a machine as one for the whole machine. */
#ifndef GY_SCHEDULE_RELOCATE_H
#define GY_SCHEDULE_RELOCATE_H

#include "schedule/schedule.h"

/* `machine` has all devices and memories of the schedule's, by id, and direct routes between them: that one is a
 * selection of it. Predicted times stay as they are. On failure (E_NOMEM) the schedule can only be freed. */
gantry_status gy_schedule_relocate(gantry_schedule *s, const gantry_machine *machine, gantry_error *err);

#endif
