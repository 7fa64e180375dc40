/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of several ranks, by messages (schedule/part.h), one after the other by the thread of the network. */
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
    h->pack = gy_alloc(GY_PACK_ALL);
    if (!h->crossing || !h->boxes_block_ || !h->pack)
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
    gy_free(h->pack);
}

typedef struct waiting {
    gy_host_run *h;
    uint64_t start;
} waiting;

static bool is_to_stop(void *context)
{
    const waiting *w = context;
    return atomic_load(&w->h->failed) <= w->start || gy_job_canceled(w->h->job) ||
           gy_network_is_lost(w->h->job->network);
}

/* Rows of a copy are sent from its first use, and received in its second. */
static char *place_of(const gy_host_run *h, const gy_message *m)
{
    const gy_op *op = &h->job->schedule->ops.at[m->op];
    return h->ops.at[op->use + m->use + (gy_op_is_copy(op) && m->use == 0 && !m->sends)];
}

/* Of messages that are one, the rows of all behind each other. */
static void gather(gy_host_run *h, const gy_message *m, uint32_t count, bool back)
{
    char *at = h->pack;
    for (uint32_t i = 0; i < count; at += m[i].bytes, i++)
        memcpy(back ? place_of(h, &m[i]) : at, back ? at : place_of(h, &m[i]), m[i].bytes);
}

/* So many messages, which are one. */
static bool pass(gy_host_run *h, const gy_message *m, uint32_t count, uint64_t bytes, uint64_t start)
{
    const gantry_network *n = h->job->network;
    waiting w = { h, start };
    char *at = count > 1 ? h->pack : place_of(h, m);
    if (count > 1 && m->sends)
        gather(h, m, count, false);
    atomic_store(&h->in_message, true);
    bool done = m->sends ? n->calls->send(at, bytes, m->peer, is_to_stop, &w)
                         : n->calls->receive(at, bytes, m->peer, is_to_stop, &w);
    atomic_store(&h->in_message, false);
    if (count > 1 && !m->sends && done)
        gather(h, m, count, true);
    return done;
}

bool gy_host_cross(gy_host_run *h, uint64_t start, uint32_t id)
{
    const gy_part_step *step = &h->part.step.at[h->crossing[id] - 1];
    const gy_op *op = &h->job->schedule->ops.at[id];
    gy_op_failure why;
    bool reduced = gy_op_is_copy(op), going = true;
    for (uint32_t i = 0, end; i < step->messages && going; i = end) {
        const gy_message *m = &h->part.message.at[step->message + i];
        end = gy_pack_end(&h->part, step, i);
        if (gy_op_is_copy(op) && m->use == 0 && !gy_host_ops_wanted(&h->ops, id))
            return true;
        if (!reduced && step->runs && m->sends) {
            gy_host_ops_execute(&h->ops, id, &why); /* a collective, which cannot fail */
            reduced = true;
        }
        going = pass(h, m, end - i, gy_pack_bytes(&h->part, step, i, end), start);
    }
    if (going && !reduced && step->runs)
        gy_host_ops_execute(&h->ops, id, &why);
    return going;
}
