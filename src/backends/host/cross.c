/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of several ranks, by messages (schedule/part.h): their places, and how far each is. */
#include "backends/host/host.h"

#include "base/error.h"
#include "base/memory.h"
#include <string.h>

/* Bytes for what a collective reads and writes on other ranks, and for a flag that is theirs, while the op goes on. */
static uint64_t room_of(const gy_host_run *h, const gy_part_step *step)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < step->messages; i++)
        bytes += h->part.message.at[step->message + i].bytes + GY_HOST_ALIGN;
    return bytes;
}

static bool is_mine(const gy_host_run *h, const gy_op *op, uint32_t k)
{
    return gy_part_rank(&h->part, h->job->schedule, op, k) == h->part.rank;
}

void gy_host_cross_point(gy_host_run *h)
{
    for (size_t i = 0; i < h->part.step.count; i++) {
        const gy_part_step *step = &h->part.step.at[i];
        const gy_op *op = &h->job->schedule->ops.at[step->op];
        char *at = h->boxes;
        for (uint32_t k = 0; k < op->uses && step->messages; k++) {
            bool box = !is_mine(h, op, k) && (!gy_op_is_copy(op) || k > 1);
            if (!box)
                continue;
            gy_host_ops_point(&h->ops, op->use + k, at);
            at += (gy_use_bytes(h->job->schedule, &h->job->schedule->use.at[op->use + k]) + GY_HOST_ALIGN - 1) /
                  GY_HOST_ALIGN * GY_HOST_ALIGN;
        }
    }
}

gantry_status gy_host_cross_make(gy_host_run *h, gantry_error *err)
{
    uint64_t most = 0;
    GY_TRY(gy_part_make(&h->part, h->job->schedule, h->job->network->rank, GY_PART_BY_DEVICE, h->job->own, err));
    h->crossing = gy_calloc(h->job->schedule->ops.count, sizeof *h->crossing);
    for (uint32_t i = 0; h->crossing && i < h->part.step.count; i++) {
        const gy_part_step *step = &h->part.step.at[i];
        uint64_t room = room_of(h, step);
        most = room > most ? room : most;
        h->crossing[step->op] = step->messages || step->packed ? i + 1 : 0;
    }
    h->boxes_block_ = gy_alloc(most + GY_HOST_ALIGN);
    h->queue = gy_calloc(h->part.queues - h->part.network, sizeof *h->queue);
    if (!h->crossing || !h->boxes_block_ || !h->queue)
        return gy_fail_nomem(err);
    h->boxes = h->boxes_block_ + (GY_HOST_ALIGN - (uintptr_t)h->boxes_block_ % GY_HOST_ALIGN) % GY_HOST_ALIGN;
    gy_host_cross_point(h);
    return GANTRY_OK;
}

void gy_host_cross_free(gy_host_run *h)
{
    gy_part_free(&h->part);
    gy_free(h->crossing);
    gy_free(h->boxes_block_);
    for (uint32_t i = 0; i < h->queues; i++)
        gy_free(h->queue[i].pack);
    gy_free(h->queue);
}

static const gy_part_step *step_of(const gy_host_run *h, const gy_host_queue *c)
{
    return &h->part.step.at[h->crossing[c->worker->steps->at[c->at].op] - 1];
}

bool gy_host_cross_add(gy_host_run *h, gy_worker *worker)
{
    gy_host_queue *c = &h->queue[h->queues++];
    *c = (gy_host_queue){ .worker = worker };
    for (; c->at < worker->steps->count; c->at++) {
        const gy_part_step *step = step_of(h, c);
        for (uint32_t i = 0, end; i < step->messages; i = end) {
            end = gy_pack_end(&h->part, step, i);
            uint64_t bytes = end - i > 1 ? gy_pack_bytes(&h->part, step, i, end) : 0;
            c->pack_bytes = bytes > c->pack_bytes ? bytes : c->pack_bytes;
        }
    }
    c->at = 0;
    c->pack = gy_alloc(c->pack_bytes + 1);
    return c->pack != NULL;
}

/* Rows of a copy are sent from its first use, and received in its second. */
static char *place_of(const gy_host_run *h, const gy_message *m)
{
    const gy_op *op = &h->job->schedule->ops.at[m->op];
    return h->ops.at[op->use + m->use + (gy_op_is_copy(op) && m->use == 0 && !m->sends)];
}

/* Of messages that are one, the rows of all behind each other. */
static void gather(gy_host_run *h, gy_host_queue *c, const gy_message *m, bool back)
{
    char *at = c->pack;
    for (uint32_t i = c->message; i < c->end; i++, at += m->bytes, m++)
        memcpy(back ? place_of(h, m) : at, back ? at : place_of(h, m), m->bytes);
}

static void begin_message(gy_host_run *h, gy_host_queue *c, const gy_part_step *step)
{
    const gy_message *m = &h->part.message.at[step->message + c->message];
    c->end = gy_pack_end(&h->part, step, c->message);
    bool one = c->end - c->message > 1, order = c->worker->device == h->part.network;
    char *at = one ? c->pack : place_of(h, m);
    if (one && m->sends)
        gather(h, c, m, false);
    c->transfer = (gy_transfer){ .from = m->sends ? at : NULL,
                                 .to = at,
                                 .bytes = gy_pack_bytes(&h->part, step, c->message, c->end),
                                 .peer = m->peer,
                                 .channel = order ? GY_CHANNEL_ORDER : GY_CHANNEL_COPIES };
    c->under_way = true;
}

/* False: it is still under way. */
static bool end_message(gy_host_run *h, gy_host_queue *c, const gy_part_step *step)
{
    const gy_message *m = &h->part.message.at[step->message + c->message];
    if (!h->job->network->calls->pass(&c->transfer))
        return false;
    if (c->end - c->message > 1 && !m->sends)
        gather(h, c, m, true);
    c->message = c->end;
    c->under_way = false;
    return true;
}

/* A collective, which cannot fail. */
static void reduce(gy_host_run *h, gy_host_queue *c, const gy_part_step *step)
{
    gy_op_failure why;
    if (!c->reduced && step->runs)
        gy_host_ops_execute(&h->ops, step->op, &why);
    c->reduced = true;
}

void gy_host_cross_begin(gy_host_queue *c, const gy_op *op)
{
    c->message = 0;
    c->under_way = false;
    c->reduced = gy_op_is_copy(op);
}

bool gy_host_cross_pass(gy_host_run *h, gy_host_queue *c)
{
    const gy_part_step *step = step_of(h, c);
    bool copy = gy_op_is_copy(&h->job->schedule->ops.at[step->op]);
    while (c->message < step->messages) {
        const gy_message *m = &h->part.message.at[step->message + c->message];
        if (!c->under_way && copy && m->use == 0 && !gy_host_ops_wanted(&h->ops, step->op))
            return true;
        if (m->sends)
            reduce(h, c, step);
        if (!c->under_way)
            begin_message(h, c, step);
        if (!end_message(h, c, step))
            return false;
    }
    reduce(h, c, step);
    return true;
}
