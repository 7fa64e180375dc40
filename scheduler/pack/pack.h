/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: an address for every instance (packing.h). */
#ifndef GY_SCHEDULER_PACK_PACK_H
#define GY_SCHEDULER_PACK_PACK_H

#include "scheduler/plan/plan.h"

/* The pass: addresses, and the dependencies that reuse of bytes needs. E_CAPACITY. */
gantry_status gy_plan_pack(gy_plan *p, const gy_arrangement *how, gantry_error *err);

#endif
