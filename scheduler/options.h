/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_schedule_options, checked and with defaults filled in. */
#ifndef GY_SCHEDULER_OPTIONS_H
#define GY_SCHEDULER_OPTIONS_H

#include "scheduler/plan/attempt.h"
#include <gantry/schedule.h>

/* Copies what the caller's version of the struct has. E_INVALID, E_UNSUPPORTED. */
gantry_status gy_options_read(gantry_schedule_options *to, const gantry_schedule_options *from, gantry_error *err);

/* What `spill` says, of options that were read. */
gy_spilling gy_options_spill(const gantry_schedule_options *o);

#endif
