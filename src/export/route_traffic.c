/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, and the bytes that they move, by route. */
#include "export/export.h"

static void add_ops(gy_route_traffic *traffic, const gantry_schedule *s, uint64_t times)
{
    size_t n = s->machine->memories;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (!gy_op_is_copy(op))
            continue;
        const gy_use *use = gy_vec_from(&s->use, op->use);
        gy_route_traffic *t =
            &traffic[s->instances.at[use[0].instance].memory * n + s->instances.at[use[1].instance].memory];
        t->copies += times;
        t->bytes += gy_use_bytes(s, use) * times;
        t->busy = gy_ticks_both(t->busy, gy_ticks_repeated(op->end - op->start, (int64_t)times));
    }
}

gy_route_traffic *gy_route_traffic_make(const gantry_schedule *s)
{
    size_t n = s->machine->memories;
    gy_route_traffic *traffic = gy_calloc(n * n, sizeof *traffic);
    if (traffic)
        add_ops(traffic, s, 1);
    for (size_t i = 0; traffic && i < s->phases.count; i++)
        add_ops(traffic, s->phases.at[i].schedule, (uint64_t)s->phases.at[i].phase.starts);
    return traffic;
}
