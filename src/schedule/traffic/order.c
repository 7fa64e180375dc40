/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/traffic/traffic.h"

void gy_ring_order(const gantry_machine *m, const gy_group *g, uint32_t *order)
{
    int64_t bytes = g->bytes / g->ranks + 1;
    for (uint32_t i = 0; i < g->ranks; i++)
        order[i] = i;
    for (uint32_t i = 1; i + 1 < g->ranks; i++) {
        gy_ticks least = GY_TICKS_MAX;
        uint32_t best = i;
        for (uint32_t k = i; k < g->ranks; k++) {
            const gy_route *r = gy_machine_route(m, g->memory[order[i - 1]], g->memory[order[k]]);
            gy_ticks t = gy_route_time(m, r, bytes);
            if (t < least || (t == least && order[k] < order[best])) {
                least = t;
                best = k;
            }
        }
        uint32_t next = order[best];
        order[best] = order[i];
        order[i] = next;
    }
}
