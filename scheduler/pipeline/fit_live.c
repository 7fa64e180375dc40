/* SPDX-License-Identifier: Apache-2.0 */
/* An early test if a draft can fit in its own order, before anything is arranged: one pass, no addresses. */
#include "scheduler/pack/packing.h"

#include "base/align.h"
#include "base/error.h"
#include "scheduler/pipeline/fit.h"

static bool takes_room(const gy_instance *in)
{
    return in->space == GY_SPACE_SLAB || in->space == GY_SPACE_STAGING;
}

/* Could a memory not hold everything at once? Most graphs fit. */
static bool may_be_full(const gy_plan *p, uint64_t *sum)
{
    bool full = false;
    for (size_t x = 0; x < p->draft.instance.count; x++)
        if (takes_room(&p->draft.instance.at[x]))
            sum[p->draft.instance.at[x].memory] += gy_aligned(p->draft.instance.at[x].bytes);
    for (uint32_t m = 0; m < p->machine->memories; m++) {
        full = full || sum[m] > p->capacity[m];
        sum[m] = 0;
    }
    return full;
}

#define THERE (UINT32_C(1) << 31)

/* Finds the last use of each instance, and puts what persists where it is. */
static void begin(const gy_plan *p, uint64_t *now, uint32_t *last)
{
    for (uint32_t i = 0; i < p->draft.use.count; i++)
        last[p->draft.use.at[i].instance] = i + 1;
    for (size_t x = 0; x < p->draft.instance.count; x++) {
        const gy_instance *in = &p->draft.instance.at[x];
        if (!takes_room(in))
            last[x] = THERE; /* and never ends */
        if (!last[x] || !takes_room(in) || in->role != GY_ROLE_PERSIST)
            continue;
        now[in->memory] += gy_aligned(in->bytes);
        last[x] = THERE;
    }
}

/* The first memory that is too small for what is there at one op; GY_NONE. */
static uint32_t find_overfull(const gy_plan *p, uint64_t *now, uint32_t *last)
{
    begin(p, now, last);
    for (uint32_t m = 0; m < p->machine->memories; m++)
        if (now[m] > p->capacity[m])
            return m;
    for (uint32_t i = 0; i < p->draft.op.count; i++) {
        const gy_op *op = &p->draft.op.at[i].op;
        for (uint32_t u = op->use; u < op->use + op->uses; u++) {
            const gy_instance *in = &p->draft.instance.at[p->draft.use.at[u].instance];
            if (last[p->draft.use.at[u].instance] & THERE)
                continue;
            last[p->draft.use.at[u].instance] |= THERE;
            now[in->memory] += gy_aligned(in->bytes);
            if (now[in->memory] > p->capacity[in->memory])
                return in->memory;
        }
        for (uint32_t u = op->use; u < op->use + op->uses; u++) {
            const gy_instance *in = &p->draft.instance.at[p->draft.use.at[u].instance];
            if (last[p->draft.use.at[u].instance] == ((u + 1) | THERE))
                now[in->memory] -= gy_aligned(in->bytes);
        }
    }
    return GY_NONE;
}

static gantry_status refuse(const gy_plan *p, uint32_t memory, gantry_error *err)
{
    char has[32];
    return gy_fail(err, GANTRY_E_CAPACITY, NULL,
                   "what is in use at one time does not fit in the %s of \"%s\"; %s more parts, or more devices",
                   gy_bytes_text(has, sizeof has, p->capacity[memory]), p->machine->memory[memory].id,
                   gy_plan_room_remedy(p, memory));
}

gantry_status gy_plan_check_live_bytes(const gy_plan *p, gantry_error *err)
{
    uint64_t *now = gy_calloc(p->machine->memories, sizeof *now);
    uint32_t *last = gy_calloc(p->draft.instance.count + 1, sizeof *last), memory = GY_NONE;
    gantry_status status = now && last ? GANTRY_OK : gy_fail_nomem(err);
    if (!status && p->draft.use.count < THERE - 1 && may_be_full(p, now))
        memory = find_overfull(p, now, last);
    gy_free(now);
    gy_free(last);
    return memory == GY_NONE ? status : refuse(p, memory, err);
}
