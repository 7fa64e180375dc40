/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that the end waits for: those on a chain of dependent ops that is as long as the longest, or nearly. Behind
 * others on a busy GPU they would hold up all that comes after them, while the others only have to be done some time.
 */
#include "scheduler/order/order.h"

#include "base/memory.h"

#define NEARLY 32 /* a chain that is shorter by less than one part in so many may turn out to be the longest */

static gy_ticks duration_of(const gy_plan *p, uint32_t position)
{
    return p->schedule->ops.at[position].duration;
}

static gy_ticks longer(gy_ticks a, gy_ticks b)
{
    return a > b ? a : b;
}

/* The longest chains that end with the beginning of each op, and that begin with it, as if nothing else were in the
 * way. Returns the longest of all. */
static gy_ticks find_chains(const gy_plan *p, uint32_t ops, gy_ticks *before, gy_ticks *from)
{
    const gy_sequence *s = &p->sequence;
    gy_ticks longest = 0;
    for (uint32_t i = 0; i < ops; i++)
        for (size_t e = s->need_first[i]; e < s->need_first[i + 1]; e++) {
            uint32_t earlier = s->need.at[e].from;
            before[i] = longer(before[i], gy_ticks_both(before[earlier], duration_of(p, earlier)));
        }
    for (uint32_t i = ops; i-- > 0;) {
        from[i] = gy_ticks_both(from[i], duration_of(p, i));
        longest = longer(longest, from[i]);
        for (size_t e = s->need_first[i]; e < s->need_first[i + 1]; e++)
            from[s->need.at[e].from] = longer(from[s->need.at[e].from], from[i]);
    }
    return longest;
}

bool gy_plan_urgent(const gy_plan *p, bool *urgent)
{
    uint32_t ops = (uint32_t)p->schedule->ops.count;
    gy_ticks *before = gy_calloc((size_t)2 * ops + 1, sizeof *before);
    if (!before)
        return false;
    gy_ticks *from = before + ops, longest = find_chains(p, ops, before, from);
    for (uint32_t i = 0; i < ops; i++)
        urgent[i] = gy_ticks_both(before[i], from[i]) >= longest - longest / NEARLY;
    gy_free(before);
    return true;
}
