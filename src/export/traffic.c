/* SPDX-License-Identifier: Apache-2.0 */
/* What copies move over each route. */
#include "export/export.h"

gy_traffic *gy_traffic_make(const gantry_schedule *s)
{
    size_t n = s->machine->memories;
    gy_traffic *traffic = gy_calloc(n * n, sizeof *traffic);
    for (size_t i = 0; traffic && i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (!gy_is_copy(op))
            continue;
        const gy_use *use = &s->use.at[op->use];
        gy_traffic *t = &traffic[s->instances.at[use[0].instance].memory * n + s->instances.at[use[1].instance].memory];
        t->copies++;
        t->bytes += gy_use_bytes(s, use);
        t->busy += op->end - op->start;
    }
    return traffic;
}
