/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of all ranks in numbers, for programs, and the proof that they fit together. */
#include "schedule/ranks/ranks.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/versioned.h"
#include "schedule/form.h"

static gantry_status check_queues(const gantry_schedule *s, gy_part_queues by, const uint8_t *own, gantry_error *err)
{
    uint32_t ranks = gy_machine_ranks(s->machine), made = 0;
    gy_part *part = gy_calloc(ranks, sizeof *part);
    gantry_status status = part ? gy_schedule_form(s, err) : gy_fail_nomem(err);
    for (; made < ranks && !status; made++)
        status = gy_part_make(&part[made], s, made, by, own, err);
    if (!status)
        status = gy_parts_verify(s, part, ranks, err);
    for (uint32_t i = 0; i < made; i++)
        gy_part_free(&part[i]);
    gy_free(part);
    return status;
}

/* As CPUs carry parts out, and as GPUs do. */
static gantry_status check_both(const gantry_schedule *s, const uint8_t *own, gantry_error *err)
{
    gantry_status status = check_queues(s, GY_PART_BY_DEVICE, own, err);
    return status ? status : check_queues(s, GY_PART_BY_LANE, own, err);
}

/* With arrays of rank 0, and with all that each rank may have itself, which the graph says. */
static gantry_status check_one(const gantry_schedule *s, gantry_error *err)
{
    GY_TRY(check_both(s, NULL, err));
    if (!s->graph)
        return GANTRY_OK;
    uint8_t *own = gy_calloc(s->graph->buffers.count + 1, 1);
    gantry_status status = own ? GANTRY_OK : gy_fail_nomem(err);
    for (size_t b = 0; own && b < s->graph->buffers.count; b++)
        own[b] = s->graph->buffers.at[b].cls == GANTRY_INPUT && !s->graph->buffers.at[b].external ? GY_OWN_INPUT : 0;
    status = status ? status : gy_own_outputs(own, s, err);
    status = status ? status : check_both(s, own, err);
    gy_free(own);
    return status;
}

gantry_status gantry_schedule_check_ranks(const gantry_schedule *s, gantry_error *err)
{
    GY_TRY(gy_need(s, "schedule", __func__, err));
    if (!s->phases.count)
        return check_one(s, err);
    for (size_t i = 0; i < s->phases.count; i++) {
        gantry_error inner = { 0 };
        if (check_one(s->phases.at[i].schedule, &inner))
            return gy_schedule_phase_fail(i, &inner, err);
    }
    return GANTRY_OK;
}

/* Of `starts` starts. */
static gantry_status count_one(const gantry_schedule *s, uint32_t rank, uint64_t starts, gantry_rank_info *to,
                               gantry_error *err)
{
    gy_part part;
    gantry_status status = gy_part_make(&part, s, rank, GY_PART_BY_DEVICE, NULL, err);
    for (size_t i = 0; i < part.step.count && !status; i++)
        to->ops += part.step.at[i].runs ? starts : 0;
    for (size_t i = 0; i < part.message.count && !status; i++) {
        const gy_message *m = &part.message.at[i];
        *(m->sends ? &to->sends : &to->receives) += m->packed ? 0 : starts;
        *(m->sends ? &to->sent_bytes : &to->received_bytes) += m->bytes * starts;
    }
    gy_part_free(&part);
    return status;
}

gantry_status gantry_schedule_rank(const gantry_schedule *s, size_t rank, gantry_rank_info *info, gantry_error *err)
{
    GY_TRY(gy_need(s, "schedule", __func__, err));
    GY_TRY(gy_struct_check(info, sizeof *info, "gantry_rank_info", err));
    const gantry_machine *m = s->machine;
    if (rank >= gy_machine_ranks(m))
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no rank %zu: machine \"%s\" has %u", rank, m->name,
                       gy_machine_ranks(m));
    gantry_rank_info full = GANTRY_RANK_INFO_INIT;
    for (uint32_t i = 0; i < m->memories; i++)
        full.memory_bytes += m->memory[i].rank == rank ? gantry_schedule_peak_bytes(s, i) : 0;
    gantry_status status = s->phases.count ? GANTRY_OK : count_one(s, (uint32_t)rank, 1, &full, err);
    for (size_t i = 0; i < s->phases.count && !status; i++)
        status =
            count_one(s->phases.at[i].schedule, (uint32_t)rank, (uint64_t)s->phases.at[i].phase.starts, &full, err);
    if (!status)
        gy_struct_write(info, &full, sizeof full);
    return status;
}
