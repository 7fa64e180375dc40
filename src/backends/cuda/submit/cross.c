/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops of several ranks, by messages (schedule/part.h). A stream of its own, that of the network, carries them out one
 * after the other, by NCCL (collective/nccl_ranks.c) or by messages between hosts. For these it waits for what the op
 * waits for, copies what leaves a GPU to page-locked boxes, calls host
 * functions that send and receive, and copies what has come to its GPU. So the streams of GPUs go on meanwhile, and a
 * captured start has the same nodes.
 *
 * The driver may call the host functions of a process one after the other, in the order in which streams come to them.
 * That is no deadlock. Say a message waits in its function, and a function of an earlier op waits to be called behind
 * it. What the message waits for at its peer never depends on that op: it could only through an op that crosses, is
 * between the two, and has ended, as the stream of the network came to the message after it.
 */
#include "backends/cuda/submit/submit.h"

#include "base/error.h"
#include "base/memory.h"
#include "schedule/ranks/ranks.h"

enum { ALIGN = 256 };

static const gy_part_step *step_of(const gy_cuda *h, uint32_t op)
{
    return &h->part.step.at[h->step[op] - 1];
}

static const gy_op *op_of(const gy_cuda *h, uint32_t op)
{
    return &h->job->schedule->ops.at[op];
}

static bool is_mine(const gy_cuda *h, const gy_op *op, uint32_t k)
{
    return gy_part_rank(&h->part, h->job->schedule, op, k) == h->part.rank;
}

/* ---- making ---- */

static bool has_gpu(const gy_cuda *h)
{
    const gantry_machine *m = h->job->schedule->machine;
    for (uint32_t i = 0; i < m->devices; i++)
        if (m->device[i].gpu && gy_cuda_mine(h, gy_device_rank(m, i)))
            return true;
    return false;
}

gantry_status gy_cross_make(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    uint32_t rank = h->job->network->rank;
    if (rank < gy_machine_ranks(s->machine) && !has_gpu(h))
        return gy_fail(
            err, GANTRY_E_UNSUPPORTED, NULL,
            "rank %u of machine \"%s\" has no GPU, and the back end cuda needs one on each; use the back end "
            "\"host\", or fewer processes",
            rank, s->machine->name);
    h->step = gy_arena_calloc(&h->arena, s->ops.count + 1, sizeof *h->step);
    h->collective = gy_arena_calloc(&h->arena, s->ops.count + 1, sizeof *h->collective);
    if (!h->step || !h->collective)
        return gy_fail_nomem(err);
    GY_TRY(gy_part_make(&h->part, s, rank, GY_PART_BY_LANE, h->job->own, err));
    for (uint32_t i = 0; i < h->part.step.count; i++)
        h->step[h->part.step.at[i].op] = i + 1;
    return GANTRY_OK;
}

void gy_cross_free(gy_cuda *h)
{
    gy_part_free(&h->part);
}

gantry_status gy_cross_op_make(gy_cuda *h, uint32_t op, gantry_error *err)
{
    if (!gy_cuda_has(h, op) || !step_of(h, op)->runs || op_of(h, op)->kind != GY_OP_COLLECTIVE)
        return GANTRY_OK;
    return gy_host_collective_make(&h->collective[op], &h->arena, h->job->schedule, h->job->graph, op, err);
}

/* ---- boxes: page-locked copies of what is in memory of a GPU, or of another rank ---- */

static bool has_box(const gy_cuda *h, uint32_t id, uint32_t k)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = op_of(h, id);
    if (is_mine(h, op, k))
        return h->memory[s->instances.at[s->use.at[op->use + k].instance].memory].device != GY_NONE;
    return gy_op_is_copy(op) ? k == 2 : step_of(h, id)->runs;
}

/* Bytes of the boxes of the first `uses` uses. */
static uint64_t boxes_before(const gy_cuda *h, uint32_t id, uint32_t uses)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < uses; k++)
        if (has_box(h, id, k))
            bytes += (gy_use_bytes(h->job->schedule, &h->job->schedule->use.at[op_of(h, id)->use + k]) + ALIGN - 1) /
                     ALIGN * ALIGN;
    return bytes;
}

/* Rows of a pack or a group, which are of copies without a flag, lie behind the boxes. */
static uint64_t joint_bytes(const gy_cuda *h, const gy_part_step *step)
{
    const gy_op *op = op_of(h, step->op);
    bool joint = gy_op_is_copy(op) && !gy_op_has_flag(op) && step->messages > 1;
    return joint ? gy_pack_bytes(&h->part, step, 0, step->messages) : 0;
}

uint64_t gy_cross_stage(const gy_cuda *h, uint32_t op)
{
    return gy_cuda_has(h, op) ? boxes_before(h, op, op_of(h, op)->uses) + joint_bytes(h, step_of(h, op)) : 0;
}

static gy_location place_of(const gy_submit *x, uint32_t k)
{
    return gy_cuda_location(x->h, &x->h->job->schedule->use.at[op_of(x->h, x->op)->use + k], x->turn);
}

/* Where the host has the bytes of a use. */
static char *host_of(const gy_submit *x, uint32_t k)
{
    return has_box(x->h, x->op, k) ? gy_cuda_lane_of(x->h, x->op, 0)->stage + boxes_before(x->h, x->op, k)
                                   : place_of(x, k).host;
}

/* Copies a use of this rank to its box, or from there; nothing where it has none. */
static gantry_status move(gy_submit *x, uint32_t k, bool to_box)
{
    const gy_use *use = &x->h->job->schedule->use.at[op_of(x->h, x->op)->use + k];
    gy_location box = { .device = GY_NONE, .pinned = true, .host = host_of(x, k) }, place = place_of(x, k);
    if (!has_box(x->h, x->op, k))
        return GANTRY_OK;
    GY_TRY(gy_submit_copy(x, to_box ? box : place, to_box ? place : box, gy_use_bytes(x->h->job->schedule, use)));
    return gy_submit_join(x);
}

/* ---- messages ---- */

static gantry_status send(gy_submit *x, const gy_message *m, gy_callback callback)
{
    GY_TRY(move(x, m->use, true));
    callback.kind = GY_CALLBACK_SEND;
    callback.from = host_of(x, m->use);
    return gy_submit_callback(x, x->first_lane, callback);
}

/* Rows that do not come, as a flag is 0, are to stay as they are: so they are in the box before. */
static gantry_status receive(gy_submit *x, uint32_t k, gy_callback callback)
{
    bool mine = is_mine(x->h, op_of(x->h, x->op), k);
    GY_TRY(mine && callback.flag ? move(x, k, true) : GANTRY_OK);
    callback.kind = GY_CALLBACK_RECEIVE;
    callback.to = host_of(x, k);
    GY_TRY(gy_submit_callback(x, x->first_lane, callback));
    return mine ? move(x, k, false) : GANTRY_OK;
}

static gy_callback message_of(const gy_submit *x, const gy_message *m)
{
    const gantry_schedule *s = x->h->job->schedule;
    const gy_op *op = op_of(x->h, x->op);
    gy_callback callback = { .peer = m->peer, .bytes = m->bytes };
    if (gy_op_is_copy(op) && gy_op_has_flag(op) && m->use == 0) {
        const gy_instance *flag = &s->instances.at[s->use.at[op->use + 2].instance];
        callback.flag = host_of(x, 2);
        callback.dtype = x->h->job->graph->buffers.at[s->values.at[flag->value].buffer].dtype;
    }
    return callback;
}

/* Copies that go together: the rows of all lie behind each other on their way. Moves those that are sent to there, or
 * from there those that have come. */
static gantry_status move_joint(gy_submit *x, const gy_part_step *step, char *at, bool sends)
{
    const gantry_schedule *s = x->h->job->schedule;
    for (uint32_t i = 0; i < step->messages; i++) {
        const gy_message *m = &x->h->part.message.at[step->message + i];
        gy_location box = { .device = GY_NONE, .pinned = true, .host = at };
        gy_location place = gy_cuda_location(x->h, &s->use.at[op_of(x->h, m->op)->use + !m->sends], x->turn);
        at += m->bytes;
        if (m->sends != sends)
            continue;
        GY_TRY(gy_submit_copy(x, sends ? box : place, sends ? place : box, m->bytes));
        GY_TRY(gy_submit_join(x));
    }
    return GANTRY_OK;
}

static uint32_t count_packs(const gy_submit *x, const gy_part_step *step)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < step->messages; i = gy_pack_end(&x->h->part, step, i))
        count++;
    return count;
}

/* A message for each pack. */
static void list_transfers(const gy_submit *x, const gy_part_step *step, char *at, gy_callback *callback)
{
    gy_transfer *transfer = callback->to;
    for (uint32_t i = 0, end; i < step->messages; i = end) {
        const gy_message *m = &x->h->part.message.at[step->message + i];
        end = gy_pack_end(&x->h->part, step, i);
        gy_transfer next = { .from = m->sends ? at : NULL, .to = at, .peer = m->peer };
        next.bytes = gy_pack_bytes(&x->h->part, step, i, end);
        at += next.bytes;
        transfer[callback->count++] = next;
    }
}

static gantry_status submit_joint(gy_submit *x, const gy_part_step *step)
{
    char *at = gy_cuda_lane_of(x->h, x->op, 0)->stage + boxes_before(x->h, x->op, op_of(x->h, x->op)->uses);
    gy_callback callback = { .kind = GY_CALLBACK_EXCHANGE };
    callback.to = gy_callbacks_add(x->callbacks, count_packs(x, step) * (sizeof(gy_transfer) + sizeof(bool)));
    if (!callback.to)
        return gy_fail_nomem(x->err);
    list_transfers(x, step, at, &callback);
    GY_TRY(move_joint(x, step, at, true));
    GY_TRY(gy_submit_callback(x, x->first_lane, callback));
    return move_joint(x, step, at, false);
}

/* The messages of a copy, or of a collective that another rank combines. Rows of a copy are sent from its first use,
 * and received in its second.
 */
static gantry_status submit_messages(gy_submit *x, const gy_part_step *step)
{
    bool copy = gy_op_is_copy(op_of(x->h, x->op));
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < step->messages && status == GANTRY_OK; i++) {
        const gy_message *m = &x->h->part.message.at[step->message + i];
        status = m->sends ? send(x, m, message_of(x, m)) : receive(x, m->use + (copy && m->use == 0), message_of(x, m));
    }
    return status;
}

/* ---- collectives ---- */

/* All that this rank has of the op goes to boxes first: pieces of a result that are in place already are written by
 * nobody. */
static gantry_status combine(gy_submit *x)
{
    const gy_op *op = op_of(x->h, x->op);
    void **at = gy_callbacks_add(x->callbacks, op->uses * sizeof *at);
    if (!at)
        return gy_fail_nomem(x->err);
    for (uint32_t k = 0; k < op->uses; k++) {
        at[k] = host_of(x, k);
        GY_TRY(is_mine(x->h, op, k) ? move(x, k, true) : GANTRY_OK);
    }
    GY_TRY(gy_submit_callback(x, x->first_lane, (gy_callback){ .kind = GY_CALLBACK_COMBINE, .to = at }));
    for (uint32_t k = op->ins; k < op->uses; k++)
        GY_TRY(is_mine(x->h, op, k) ? move(x, k, false) : GANTRY_OK);
    return GANTRY_OK;
}

/* The rank that combines receives all that it does not have, and sends what came of it; boxes of others have that. */
static gantry_status submit_here(gy_submit *x, const gy_part_step *step)
{
    bool combined = false;
    for (uint32_t i = 0; i < step->messages; i++) {
        const gy_message *m = &x->h->part.message.at[step->message + i];
        gy_callback callback = message_of(x, m);
        GY_TRY(m->sends && !combined ? combine(x) : GANTRY_OK);
        combined = combined || m->sends;
        callback.kind = m->sends ? GY_CALLBACK_SEND : GY_CALLBACK_RECEIVE;
        callback.from = callback.to = host_of(x, m->use);
        GY_TRY(gy_submit_callback(x, x->first_lane, callback));
    }
    return combined ? GANTRY_OK : combine(x);
}

gantry_status gy_cross_submit(gy_submit *x)
{
    const gy_part_step *step = step_of(x->h, x->op);
    if (step->packed)
        return GANTRY_OK;
    if (x->h->op[x->op].nccl)
        return gy_nccl_submit_ranks(x);
    if (joint_bytes(x->h, step))
        return submit_joint(x, step);
    return step->runs && !gy_op_is_copy(op_of(x->h, x->op)) ? submit_here(x, step) : submit_messages(x, step);
}

/* ---- contents ---- */

/* This rank has the instance, and rank 0 its rows. */
static gantry_status pass_rows(gy_cuda *h, uint32_t instance, uint64_t bytes, bool in, gantry_error *err)
{
    gantry_network *n = h->job->network;
    char *rows = gy_alloc(bytes);
    if (!rows)
        return gy_fail_nomem(err);
    bool done = !in || n->calls->receive(rows, bytes, 0, gy_network_is_lost, n);
    gantry_status status = done ? gy_cuda_contents_move(h, instance, rows, in, err) : GANTRY_OK;
    if (!in && !status)
        done = n->calls->send(rows, bytes, 0, gy_network_is_lost, n);
    gy_free(rows);
    return done ? status : gy_network_fail(n, err);
}

gantry_status gy_cross_contents(gy_cuda *h, uint32_t instance, char *rows, bool in, gantry_error *err)
{
    gantry_network *n = h->job->network;
    const gy_instance *i = &h->job->schedule->instances.at[instance];
    uint32_t rank = h->job->schedule->machine->memory[i->memory].rank;
    uint64_t bytes = gy_instance_offset(h->job->schedule, i, i->last);
    if (!n || (rank == 0 && n->rank == 0))
        return gy_cuda_contents_move(h, instance, rows, in, err);
    if (bytes == 0 || (n->rank != 0 && n->rank != rank) || rank == 0)
        return GANTRY_OK;
    if (in && h->job->alike)
        return n->rank == rank ? gy_cuda_contents_move(h, instance, rows, in, err) : GANTRY_OK;
    if (n->rank == rank)
        return pass_rows(h, instance, bytes, in, err);
    bool done = in ? n->calls->send(rows, bytes, rank, gy_network_is_lost, n)
                   : n->calls->receive(rows, bytes, rank, gy_network_is_lost, n);
    return done ? GANTRY_OK : gy_network_fail(n, err);
}
