/* SPDX-License-Identifier: Apache-2.0 */
/* ETF as other policies use it. */
#ifndef GY_SCHEDULER_POLICIES_ETF_H
#define GY_SCHEDULER_POLICIES_ETF_H

#include "scheduler/policies/list/pairs.h"

/* Earliest start first, ties by static level; `how` has room and favourites or not, its level and unit are ours. */
gantry_status gy_etf(gy_plan *p, gy_pairing *how, gantry_error *err);

#endif
