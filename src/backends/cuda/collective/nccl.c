/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that NCCL carries out: how they are submitted, and what a failure means for the run. */
#include "backends/cuda/collective/nccl.h"
#include "backends/cuda/collective/counted.h"
#include "backends/cuda/collective/order.h"

#include "backends/cuda/times/times.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

/* ---- opening ---- */

static bool asks(const gy_op *op)
{
    return op->kind == GY_OP_COLLECTIVE && op->algorithm == GY_ALGORITHM_NCCL;
}

void gy_nccl_refuse(gy_nccl *n, uint32_t op, const char *why)
{
    gy_text name = { 0 };
    gy_op_text(&name, n->h->job->schedule, op);
    if (!n->why[0])
        snprintf(n->why, sizeof n->why, "op %u, \"%s\": %s", op, name.failed || !name.length ? "?" : name.at, why);
    gy_text_free(&name);
}

static gantry_status plan_op(gy_nccl *n, uint32_t op, gantry_error *err)
{
    const char *why = NULL;
    GY_TRY(gy_nccl_plan_make(&n->plan[op], n->h, op, n->h->op[op].exchange, &why, err));
    n->asked++;
    if (why) {
        gy_nccl_refuse(n, op, why);
        return GANTRY_OK;
    }
    n->can++;
    n->rounds = n->rounds || n->plan[op].rounds;
    if (n->plan[op].call.count == 0)
        return GANTRY_OK; /* no rows */
    n->plan[op].set = gy_nccl_set_of(n, op);
    return n->plan[op].set == GY_NONE ? gy_fail_nomem(err) : GANTRY_OK;
}

gantry_status gy_nccl_new(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    gy_nccl *n = gy_arena_calloc(&h->arena, 1, sizeof *n);
    if (!n)
        return gy_fail_nomem(err);
    n->h = h;
    n->plan = gy_arena_calloc(&h->arena, s->ops.count, sizeof *n->plan);
    if (!n->plan)
        return gy_fail_nomem(err);
    h->nccl = n;
    return GANTRY_OK;
}

uint32_t gy_nccl_members(const gy_cuda *h, uint32_t op)
{
    return h->op[op].joint ? h->job->schedule->ops.at[op].batch : 1;
}

/* A batch is NCCL's as a whole, or not at all. */
static void agree_batch(gy_nccl *n, uint32_t head)
{
    uint32_t members = gy_nccl_members(n->h, head), calls = 0, can = 0;
    for (uint32_t i = head; i < head + members; i++) {
        bool none = n->h->op[i].exchange->bytes == 0;
        calls += n->plan[i].call.count > 0;
        can += n->plan[i].call.count > 0 || none;
    }
    if (calls == members || !asks(&n->h->job->schedule->ops.at[head]))
        return;
    if (can == members)
        gy_nccl_refuse(n, head, "it is in a batch with a collective of no rows");
    n->can -= can;
    for (uint32_t i = head; i < head + members; i++)
        gy_nccl_plan_free(&n->plan[i]);
}

static bool has_calls(const gy_cuda *h, uint32_t op)
{
    return h->nccl->plan[op].call.count > 0;
}

bool gy_nccl_on(const gy_cuda *h)
{
    return h->nccl && !h->nccl->off && h->nccl->set.count;
}

void gy_nccl_assign(gy_nccl *n)
{
    for (uint32_t i = 0; i < n->h->job->schedule->ops.count; i++)
        n->h->op[i].nccl = !n->off && n->plan[i].call.count > 0;
}

gantry_status gy_nccl_open(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    gantry_status status = GANTRY_OK;
    gantry_error why = { 0 };
    for (uint32_t i = 0; i < s->ops.count && status == GANTRY_OK; i++) {
        if (asks(&s->ops.at[i])) {
            status = h->nccl ? GANTRY_OK : gy_nccl_new(h, err);
            status = status ? status : plan_op(h->nccl, i, err);
        }
    }
    if (status || !h->nccl)
        return status;
    for (uint32_t i = 0; i < s->ops.count; i++)
        if (gy_nccl_members(h, i) > 1)
            agree_batch(h->nccl, i);
    if (h->nccl->set.count == 0) {
        h->nccl->off = true;
    } else if (gy_nccl_load(&h->nccl->api, &why)) {
        snprintf(h->nccl->why, sizeof h->nccl->why, "%s", why.text);
        h->nccl->off = true;
    }
    gy_nccl_assign(h->nccl);
    return gy_order_tie(h, has_calls, err);
}

/* Also of sets that are found at the first start. */
static gantry_status take_order(gy_nccl *n, gantry_error *err)
{
    for (size_t i = 0; i < n->set.count; i++)
        for (uint32_t r = 0; r < n->set.at[i].ranks; r++)
            GY_TRY(gy_order_add(n->h, n->set.at[i].device[r], err));
    return GANTRY_OK;
}

gantry_status gy_nccl_enter(gy_cuda *h, gantry_error *err)
{
    GY_TRY(h->nccl ? gy_nccl_ready(h->nccl, err) : GANTRY_OK);
    return gy_nccl_on(h) ? take_order(h->nccl, err) : GANTRY_OK;
}

void gy_nccl_connect(gy_cuda *h)
{
    if (h->nccl)
        gy_nccl_begin(h->nccl);
}

void gy_nccl_free(gy_cuda *h)
{
    gy_nccl *n = h->nccl;
    if (!n)
        return;
    if (n->api.lib.handle)
        gy_nccl_close(n);
    for (size_t i = 0; i < h->job->schedule->ops.count; i++)
        gy_nccl_plan_free(&n->plan[i]);
    gy_vec_free(&n->set);
}

/* ---- reports ---- */

const char *gy_nccl_replay(gy_cuda *h)
{
    gy_nccl *n = h->nccl;
    if (!n)
        return gy_cupti_replay(h);
    uint32_t done = n->off ? 0 : n->can;
    int length = snprintf(n->text, sizeof n->text, "%s", gy_cupti_replay(h));
    if (h->step && !n->met && !n->off)
        return n->text; /* that is found out at the first start */
    if (done) {
        length += snprintf(n->text + length, sizeof n->text - (size_t)length, "; NCCL %d.%d.%d does %u %s%s%s%s",
                           n->api.version[0], n->api.version[1], n->api.version[2], done, h->step ? "op" : "collective",
                           done == 1 ? "" : "s", h->step ? " between ranks" : "",
                           n->rounds ? ", adding in its own order" : "");
    }
    if (done < n->asked) {
        uint32_t left = n->asked - done;
        snprintf(n->text + length, sizeof n->text - (size_t)length, "; %u %s%s by %s instead of NCCL: %s", left,
                 h->step ? "op" : "collective", left == 1 ? "" : "s", h->step ? "messages between hosts" : "copies",
                 n->why);
    }
    return n->text;
}

/* ---- one op ---- */

static const gy_op *op_of(const gy_submit *x)
{
    return &x->h->job->schedule->ops.at[x->op];
}

static uint32_t lane_of(const gy_submit *x, uint32_t rank)
{
    return x->h->job->schedule->op_lane.at[op_of(x)->lane + rank];
}

static void *pointer_of(const gy_submit *x, gy_exchange_end end)
{
    const gantry_schedule *s = x->h->job->schedule;
    return end.use == GY_NONE ? NULL
                              : gy_location_pointer(gy_location_at(
                                    gy_cuda_location(x->h, &s->use.at[op_of(x)->use + end.use], x->turn), end.offset));
}

/* The stream of a rank: its lane. Between processes that of the network, or, of other GPUs, one that goes along with
 * it.
 */
static CUstream stream_of(const gy_submit *x, const gy_nccl_plan *p, uint32_t r)
{
    const gy_cuda *h = x->h;
    if (!h->step)
        return h->lane[lane_of(x, r)].queue.stream;
    uint32_t device = h->nccl->set.at[p->set].device[r];
    return gy_cuda_same_gpu(h, device, x->first_lane.device) ? x->first_lane.stream
                                                             : h->device[device].auxiliary.stream;
}

static int call_rank(const gy_submit *x, const gy_nccl_plan *p, const gy_nccl_call *c, uint32_t r)
{
    const gy_nccl *n = x->h->nccl;
    gy_nccl_comm comm = n->set.at[p->set].comm[r];
    CUstream stream = stream_of(x, p, r);
    const void *from = pointer_of(x, c->end[r]);
    void *to = pointer_of(x, c->end[op_of(x)->lanes + r]);
    switch (c->kind) {
    case GY_NCCL_ALL_REDUCE:
        return n->api.ncclAllReduce(from, to, c->count, p->type, p->op, comm, stream);
    case GY_NCCL_REDUCE:
        return n->api.ncclReduce(from, to, c->count, p->type, p->op, (int)c->root, comm, stream);
    case GY_NCCL_REDUCE_SCATTER:
        return n->api.ncclReduceScatter(from, to, c->count, p->type, p->op, comm, stream);
    case GY_NCCL_BROADCAST:
        return n->api.ncclBroadcast(from, to, c->count, p->type, (int)c->root, comm, stream);
    case GY_NCCL_ALL_GATHER:
        return n->api.ncclAllGather(from, to, c->count, p->type, comm, stream);
    case GY_NCCL_PAIR:
        break;
    }
    return GY_NCCL_SUCCESS;
}

static int call_pair(const gy_submit *x, const gy_nccl_plan *p, const gy_nccl_call *c)
{
    const gy_nccl *n = x->h->nccl;
    gy_nccl_comm *comm = n->set.at[p->set].comm;
    int result = GY_NCCL_SUCCESS;
    if (comm[c->root])
        result = n->api.ncclSend(pointer_of(x, c->end[0]), c->count, p->type, (int)c->to, comm[c->root],
                                 stream_of(x, p, c->root));
    return comm[c->to] && gy_nccl_fine(result) ? n->api.ncclRecv(pointer_of(x, c->end[1]), c->count, p->type,
                                                                 (int)c->root, comm[c->to], stream_of(x, p, c->to))
                                               : result;
}

/* Of the ranks that this process has. */
static int call_all(const gy_submit *x, const gy_nccl_plan *p)
{
    const gy_nccl_set *set = &x->h->nccl->set.at[p->set];
    int result = GY_NCCL_SUCCESS;
    for (size_t i = 0; i < p->call.count && gy_nccl_fine(result); i++) {
        const gy_nccl_call *c = &p->call.at[i];
        if (c->kind == GY_NCCL_PAIR) {
            result = call_pair(x, p, c);
            continue;
        }
        for (uint32_t r = 0; r < set->ranks && gy_nccl_fine(result); r++)
            result = set->comm[r] ? call_rank(x, p, c, r) : result;
    }
    return result;
}

/* Writes "op 3, "sum"". */
static void name_op(const gy_cuda *h, uint32_t op, char *to, size_t size)
{
    gy_text name = { 0 };
    gy_op_text(&name, h->job->schedule, op);
    snprintf(to, size, "op %u, \"%s\"", op, name.failed || !name.length ? "?" : name.at);
    gy_text_free(&name);
}

/* Fails the op and ends the run; but not under capture, as starts go on as streams. */
static gantry_status fail_op(gy_submit *x, int result)
{
    char what[200];
    gantry_error why = { 0 };
    if (x->h->step && gy_nccl_is_lost(x->h, result))
        return gy_nccl_watch_ranks(x->h, x->op, x->err);
    name_op(x->h, x->op, what, sizeof what);
    if (result == GY_NCCL_IN_PROGRESS)
        gy_fail(&why, GANTRY_E_DEVICE, NULL, "%s: NCCL: it is in progress for too long a time", what);
    else
        gy_nccl_fail(x->h->nccl, result, what, &why);
    if (x->capture && !x->h->step) /* one process alone cannot make others */
        x->h->nccl->bad = true;
    else
        gy_nccl_end(x->h, &why);
    if (x->err)
        *x->err = why;
    return GANTRY_E_DEVICE;
}

/* Calls for the copies of a step between processes, in the order of its messages: between two ranks NCCL takes the
 * n-th send for the n-th receive. */
static int call_step(const gy_submit *x)
{
    const gy_cuda *h = x->h;
    const gy_part_step *step = &h->part.step.at[h->step[x->op] - 1];
    int result = GY_NCCL_SUCCESS;
    gy_submit at = *x;
    for (uint32_t i = 0; i < step->messages && gy_nccl_fine(result); i++) {
        at.op = h->part.message.at[step->message + i].op;
        result = call_all(&at, &h->nccl->plan[at.op]);
    }
    return result;
}

/* Calls for the op, and for those of the batch that it begins. */
static int call_batch(const gy_submit *x)
{
    int result = GY_NCCL_SUCCESS;
    gy_submit at = *x;
    if (x->h->step && gy_op_is_copy(op_of(x)))
        return call_step(x);
    for (uint32_t i = 0; i < gy_nccl_members(x->h, x->op) && gy_nccl_fine(result); i++) {
        at.op = x->op + i;
        result = call_all(&at, &x->h->nccl->plan[at.op]);
    }
    return result;
}

/* One group call for all ranks of this process. */
static gantry_status call_group(gy_submit *x)
{
    gy_nccl *n = x->h->nccl;
    uint32_t set = n->plan[x->op].set;
    atomic_store_explicit(&x->h->at, x->h->step ? x->op : GY_NONE, memory_order_relaxed);
    int result = n->api.ncclGroupStart();
    if (gy_nccl_fine(result)) {
        result = call_batch(x);
        int end = n->api.ncclGroupEnd();
        result = gy_nccl_fine(result) ? end : result;
    }
    if (gy_nccl_fine(result))
        result = x->h->step ? gy_nccl_settle_ranks(n, set) : gy_nccl_settle(n, set);
    x->h->current = GY_NONE;
    return result == GY_NCCL_SUCCESS ? GANTRY_OK : fail_op(x, result);
}

gantry_status gy_nccl_submit(gy_submit *x)
{
    bool meets = gy_cuda_op_meets(&x->h->op[x->op]);
    GY_TRY(gy_order_lanes(x));
    if (meets) {
        GY_TRY(gy_counted_come(x));
    } else {
        GY_TRY(x->capture ? GANTRY_OK : gy_order_await_others(x->h, x->first_lane, x->err));
        GY_TRY(gy_order_join(x, true));
    }
    GY_TRY(call_group(x));
    return meets ? gy_counted_leave(x) : gy_order_join(x, false);
}

gantry_status gy_nccl_submit_ranks(gy_submit *x)
{
    const gy_nccl_set *set = &x->h->nccl->set.at[x->h->nccl->plan[x->op].set];
    gy_queue queue;
    GY_TRY(x->capture ? GANTRY_OK : gy_order_await_others(x->h, x->first_lane, x->err));
    for (uint32_t r = 0; r < set->ranks; r++)
        GY_TRY(set->comm[r] ? gy_submit_on(x, set->device[r], &queue) : GANTRY_OK);
    gantry_status status = call_group(x);
    return status ? status : gy_submit_join(x);
}

/* ---- while it runs ---- */

void gy_nccl_end(gy_cuda *h, const gantry_error *why)
{
    if (!h->nccl || h->nccl->off || h->broken.status)
        return;
    h->broken = *why;
    h->aborted = true;
    gy_nccl_abort(h->nccl);
}

/* The first op from `op` on that the communicator carries out; in a graph, no events show how far it has come. */
static uint32_t next_op(const gy_nccl *n, uint32_t op, uint32_t set)
{
    size_t ops = n->h->job->schedule->ops.count;
    while (op < ops && !(n->plan[op].call.count && n->plan[op].set == set))
        op++;
    return op < ops ? op : next_op(n, 0, set);
}

gantry_status gy_nccl_watch(gy_cuda *h, uint32_t op, gantry_error *err)
{
    gy_nccl *n = h->nccl;
    GY_TRY(n && h->step ? gy_nccl_watch_ranks(h, op, err) : GANTRY_OK);
    for (uint32_t i = 0; n && !n->off && i < n->made; i++) {
        int state = gy_nccl_state(n, i);
        if (gy_nccl_fine(state))
            continue;
        if (h->step && gy_nccl_is_lost(h, state))
            return gy_nccl_watch_ranks(h, op, err);
        char what[200], name[160];
        gantry_error why = { 0 };
        name_op(h, next_op(n, op, i), name, sizeof name);
        snprintf(what, sizeof what, "%s, or an earlier one, failed", name);
        gy_nccl_fail(n, state, what, &why);
        gy_nccl_end(h, &why);
        if (err)
            *err = why;
        return GANTRY_E_DEVICE;
    }
    return GANTRY_OK;
}

gantry_status gy_nccl_renew(gy_cuda *h, gantry_error *err)
{
    gy_nccl *n = h->nccl;
    if (!n || !n->bad)
        return GANTRY_OK;
    gy_nccl_abort(n);
    return gy_nccl_ready(n, err);
}
