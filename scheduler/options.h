/* SPDX-License-Identifier: Apache-2.0 */
/* From the options of a caller to those of the scheduler. */
#ifndef GY_SCHEDULER_OPTIONS_H
#define GY_SCHEDULER_OPTIONS_H

#include "scheduler/plan/options.h"

/* Reads what the caller's version of the struct has; NULL: all defaults. E_INVALID, E_UNSUPPORTED. */
gantry_status gy_options_read(gy_options *to, const gantry_schedule_options *from, gantry_error *err);

#endif
