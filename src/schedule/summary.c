/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a schedule. */
#include "base/error.h"
#include "base/versioned.h"
#include "schedule/usage.h"
#include <string.h>

static uint32_t memory_of(const gantry_schedule *s, const gy_use *use)
{
    return s->instances.at[use->instance].memory;
}

/* Bytes of the rows that both uses name. */
static uint64_t shared_bytes(const gantry_schedule *s, const gy_use *a, const gy_use *b)
{
    gy_use both = *a;
    both.first = a->first > b->first ? a->first : b->first;
    both.last = a->last < b->last ? a->last : b->last;
    return both.first < both.last ? gy_use_bytes(s, &both) : 0;
}

/* Reduced rows travel to one place, here the memory of the first write, and from there to the other writes. */
static uint64_t reduced_bytes(const gantry_schedule *s, const gy_op *op, const gy_use *use)
{
    uint64_t bytes = 0;
    uint32_t home = memory_of(s, &use[op->ins]);
    for (uint32_t i = 0; i < op->uses; i++)
        bytes += memory_of(s, &use[i]) != home ? gy_use_bytes(s, &use[i]) : 0;
    return bytes;
}

/* Rows that a write takes from another memory. */
static uint64_t spread_bytes(const gantry_schedule *s, const gy_op *op, const gy_use *use)
{
    uint64_t bytes = 0;
    for (uint32_t w = op->ins; w < op->uses; w++)
        for (uint32_t r = 0; r < op->ins; r++)
            bytes += memory_of(s, &use[r]) != memory_of(s, &use[w]) ? shared_bytes(s, &use[w], &use[r]) : 0;
    return bytes;
}

/* Bytes that leave a memory for another one. Collectives of the graph name other rows in than out: each counts where
 * it is not in the memory of the first write. */
static uint64_t moved_bytes(const gantry_schedule *s, const gy_op *op)
{
    const gy_use *use = gy_vec_from(&s->use, op->use);
    switch (op->kind) {
    case GY_OP_COPY:
    case GY_OP_EVICT:
    case GY_OP_FETCH:
        return memory_of(s, &use[0]) != memory_of(s, &use[1]) ? gy_use_bytes(s, &use[0]) : 0;
    case GY_OP_COLLECTIVE:
        if (op->ins == op->uses)
            return 0;
        return op->reduce || op->node != GY_NONE ? reduced_bytes(s, op, use) : spread_bytes(s, op, use);
    default:
        return 0;
    }
}

uint64_t gy_schedule_bytes_moved(const gantry_schedule *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        bytes += moved_bytes(s, &s->ops.at[i]);
    for (size_t i = 0; i < s->phases.count; i++)
        bytes += gy_schedule_bytes_moved(s->phases.at[i].schedule) * (uint64_t)s->phases.at[i].phase.starts;
    return bytes;
}

static bool uses(const gantry_schedule *s, uint32_t device)
{
    for (size_t i = 0; i < s->op_lane.count; i++)
        if (s->lanes.at[s->op_lane.at[i]].device == device)
            return true;
    for (size_t i = 0; i < s->phases.count; i++)
        if (uses(s->phases.at[i].schedule, device))
            return true;
    return false;
}

uint32_t gy_schedule_devices_used(const gantry_schedule *s)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < s->machine->devices; d++)
        count += uses(s, d);
    return count;
}

uint64_t gy_schedule_memory(const gantry_schedule *s)
{
    uint64_t bytes = s->staging;
    for (size_t i = 0; i < s->slab.count; i++)
        bytes += s->slab.at[i];
    return bytes;
}

/* As often as each is started. */
static gantry_status count_phases(const gantry_schedule *s, gantry_schedule_summary *to, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < s->phases.count && !status; i++) {
        gantry_schedule_summary one = GANTRY_SCHEDULE_SUMMARY_INIT;
        uint64_t starts = (uint64_t)s->phases.at[i].phase.starts;
        status = gantry_schedule_summarize(s->phases.at[i].schedule, &one, err);
        to->ops += one.ops * starts;
        to->copies += one.copies * starts;
        to->collectives += one.collectives * starts;
        to->events += one.events * starts;
        to->recomputed += one.recomputed * starts;
        to->bytes_needed += one.bytes_needed * starts;
    }
    return status;
}

static void count_ops(const gantry_schedule *s, gantry_schedule_summary *to)
{
    for (size_t i = 0; i < s->ops.count; i++) {
        to->copies += gy_op_is_copy(&s->ops.at[i]);
        to->collectives += s->ops.at[i].kind == GY_OP_COLLECTIVE;
        to->recomputed += s->ops.at[i].repeat;
    }
}

/* An event that several ops wait for is one. Slots are below the number of ops (rule form). */
static gantry_status count_events(const gantry_schedule *s, uint64_t *events, gantry_error *err)
{
    uint8_t *seen = gy_calloc(s->ops.count ? s->ops.count : 1, 1);
    if (!seen)
        return gy_fail_nomem(err);
    uint64_t count = 0;
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        uint8_t bit = (uint8_t)(1u << row->carrier);
        if (row->carrier == GY_CARRIER_EDGE) {
            count++;
        } else if (row->carrier != GY_CARRIER_LANE && row->slot < s->ops.count && !(seen[row->slot] & bit)) {
            seen[row->slot] |= bit;
            count++;
        }
    }
    gy_free(seen);
    *events = count;
    return GANTRY_OK;
}

gantry_status gantry_schedule_summarize(const gantry_schedule *s, gantry_schedule_summary *summary, gantry_error *err)
{
    GY_TRY(gy_need(s, "schedule", __func__, err));
    GY_TRY(gy_struct_check(summary, sizeof *summary, "gantry_schedule_summary", err));
    gantry_schedule_summary to = GANTRY_SCHEDULE_SUMMARY_INIT;
    to.makespan_us = gy_ticks_to_us(s->makespan);
    to.bound_us = gy_ticks_to_us(s->bound);
    to.gap = s->bound > 0 ? (double)s->makespan / (double)s->bound - 1 : 0;
    to.period_us = gy_ticks_to_us(s->period);
    to.period_bound_us = gy_ticks_to_us(s->period_bound);
    to.in_flight = s->in_flight;
    to.bytes_moved = gy_schedule_bytes_moved(s);
    to.bytes_needed = s->bytes_needed;
    to.nodes = s->node_ids.count;
    to.ops = s->ops.count;
    count_ops(s, &to);
    GY_TRY(s->phases.count ? count_phases(s, &to, err) : count_events(s, &to.events, err));
    gy_struct_write(summary, &to, sizeof to);
    return GANTRY_OK;
}
