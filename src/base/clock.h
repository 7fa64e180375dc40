/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_BASE_CLOCK_H
#define GY_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that only goes forward, from a beginning of its own. Not for planning, which must give the
 * same every time. */
int64_t gy_now_ns(void);

#endif
