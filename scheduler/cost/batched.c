/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/cost/cost.h"

bool gy_plan_may_batch(const gy_plan *p)
{
    bool known = false, any = false;
    for (uint32_t i = 0; i < p->machine->kernels; i++)
        known = known || p->machine->kernel[i].batched_points > 0;
    for (uint32_t n = 0; n < p->graph->nodes.count && known && !any; n++)
        for (uint32_t d = 0; d < p->devices; d++)
            any = any || gy_plan_batched(p, n, d) < GY_TICKS_MAX;
    return any;
}

gy_ticks gy_plan_batched(const gy_plan *p, uint32_t node, uint32_t device)
{
    const gy_kernel_table *t = gy_plan_table_of_kernel(p, node, device);
    return t ? gy_kernel_batched(t, gy_plan_work(&p->graph->nodes.at[node], t)) : GY_TICKS_MAX;
}
