/* SPDX-License-Identifier: Apache-2.0 */
/** Counters, as far as host and GPU both know them. */
#ifndef GY_KERNELS_RESIDENT_COUNTERS_H
#define GY_KERNELS_RESIDENT_COUNTERS_H

#include <stdint.h>

/* A counter of this value or more ends a start that failed: who finds one carries nothing out any more. */
#define GY_COUNTER_STOP UINT64_C(0x7F7F7F7F7F7F7F7F)

#endif
