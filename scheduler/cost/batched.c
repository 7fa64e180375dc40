/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/cost/cost.h"

bool gy_plan_may_batch(const gy_plan *p)
{
    return p->cost.batched != NULL;
}

gy_ticks gy_plan_batched(const gy_plan *p, uint32_t node, uint32_t device)
{
    return p->cost.batched ? p->cost.batched[(size_t)node * p->devices + device] : GY_TICKS_MAX;
}
