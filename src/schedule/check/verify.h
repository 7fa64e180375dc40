/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of the checker. */
#ifndef GY_SCHEDULE_CHECK_VERIFY_H
#define GY_SCHEDULE_CHECK_VERIFY_H

#include "schedule/schedule.h"

/* All rules against the sealed graph, cut as the schedule says; E_SCHEDULE with the rule's name
 * first in the text: "rule race: ...". The names are the list in docs/design/schedule.md. */
gantry_status gy_schedule_verify(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err);

#endif
