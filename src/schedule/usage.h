/* SPDX-License-Identifier: Apache-2.0 */
/* The means that a schedule takes: by them, schedules that end at the same time differ. */
#ifndef GY_SCHEDULE_USAGE_H
#define GY_SCHEDULE_USAGE_H

#include "schedule/schedule.h"

uint64_t gy_schedule_bytes_moved(const gantry_schedule *s); /* between memories, in all starts of its phases */
uint32_t gy_schedule_devices_used(const gantry_schedule *s);
uint64_t gy_schedule_memory(const gantry_schedule *s); /* bytes of all memories */

#endif
