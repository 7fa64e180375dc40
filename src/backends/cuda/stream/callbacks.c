/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/stream/stream.h"

#include "backends/cuda/times/times.h"
#include "base/clock.h"
#include "run/fill.h"
#include "run/number.h"
#include "run/reduce.h"
#include <sched.h>
#include <string.h>
#include <time.h>

/* The first failure is kept; host functions of different lanes may run at once. */
static void record_failure(gy_cuda *h, const gy_callback *callback, gantry_status status, int32_t word)
{
    unsigned none = GY_NONE;
    if (atomic_compare_exchange_strong(&h->failed.op, &none, callback->op)) {
        h->failed.status = status; /* read after the start has ended */
        h->failed.word = word;
    }
}

static void call(gy_cuda *h, const gy_callback *callback)
{
    gy_cuda_call *c = &h->op[callback->op].call[callback->turn];
    c->word = 0;
    gantry_status status = gy_job_call(h->job, callback->op, c->function, &c->launch);
    if (status || c->word)
        record_failure(h, callback, status, c->word);
}

static void fill(gy_cuda *h, const gy_callback *callback)
{
    const gantry_schedule *s = h->job->schedule;
    const gantry_graph *g = h->job->graph;
    const gy_op *op = &s->ops.at[callback->op];
    const gy_use *use = &s->use.at[callback->use];
    const gy_instance *instance = &s->instances.at[use->instance];
    const gy_buffer *b = &g->buffers.at[s->values.at[instance->value].buffer];
    if (op->node == GY_NONE) {
        gy_fill_identity(callback->to, b->dtype, (gantry_access)(op->reduce ? op->reduce : instance->op),
                         callback->bytes / gantry_dtype_size(b->dtype));
    } else {
        gy_fill_rows(callback->to, b, &gy_node_extra_of(g, op->node)->fill, use->first, use->last);
    }
}

/* The op has a `when`, which is 0. */
static bool is_left_out(const gy_cuda *h, const gy_callback *callback)
{
    const gantry_schedule *s = h->job->schedule;
    bool of_op =
        callback->kind == GY_CALLBACK_CALL || callback->kind == GY_CALLBACK_FILL || callback->kind == GY_CALLBACK_MOVE;
    const gy_op *op = of_op ? &s->ops.at[callback->op] : NULL;
    if (!op || op->node == GY_NONE || !h->job->graph->nodes.at[op->node].has_when)
        return false;
    const gy_use *flag = gy_cuda_flag(h, callback->op);
    const gy_buffer *b = &h->job->graph->buffers.at[s->values.at[s->instances.at[flag->instance].value].buffer];
    return gy_element_load(gy_cuda_location(h, flag, callback->turn).host, b->dtype, 0) == 0;
}

static bool is_to_stop(void *context)
{
    gy_cuda *h = context;
    return gy_job_canceled(h->job) || gy_network_is_lost(h->job->network) ||
           atomic_load_explicit(&h->failed.op, memory_order_relaxed) != GY_NONE;
}

/* A message that is given up is a start that was cancelled, or a rank is lost. */
static void pass(gy_cuda *h, const gy_callback *callback)
{
    const gy_network_calls *calls = h->job->network->calls;
    if (callback->flag && gy_element_load(callback->flag, callback->dtype, 0) == 0)
        return;
    bool done = callback->kind == GY_CALLBACK_SEND
                    ? calls->send(callback->from, callback->bytes, callback->peer, is_to_stop, h)
                    : calls->receive(callback->to, callback->bytes, callback->peer, is_to_stop, h);
    if (!done)
        record_failure(h, callback, GANTRY_E_CANCELED, 0);
}

/* ---- messages both ways ---- */

/* Messages come within microseconds or take long. */
enum { POLLS = 200, YIELDS = 2000, NAP_NS = 50000 };

/* Goes on with all transfers but those behind another that has not ended, of the same rank and way: these come one
 * after the other, and stand together. True: some have ended; *left is how many have not. */
static bool pass_all(const gy_network_calls *calls, gy_transfer *transfer, bool *ended, uint32_t count, uint32_t *left)
{
    uint32_t before = *left;
    for (uint32_t i = 0; i < count; i++) {
        const gy_transfer *t = &transfer[i];
        bool behind = i > 0 && !ended[i - 1] && t[-1].peer == t->peer && !t[-1].from == !t->from;
        if (ended[i] || behind || !calls->pass(&transfer[i]))
            continue;
        ended[i] = true;
        --*left;
    }
    return *left < before;
}

static void exchange(gy_cuda *h, const gy_callback *callback)
{
    const gy_network_calls *calls = h->job->network->calls;
    gy_transfer *transfer = callback->to;
    bool *ended = (bool *)(transfer + callback->count); /* of each */
    uint32_t left = callback->count;
    for (uint32_t i = 0; i < callback->count; i++) { /* a captured start passes them again */
        const gy_transfer *t = &transfer[i];
        transfer[i] = (gy_transfer){ .from = t->from, .to = t->to, .bytes = t->bytes, .peer = t->peer };
        ended[i] = false;
    }
    for (unsigned polls = 0; left > 0; polls++) {
        bool moved = pass_all(calls, transfer, ended, callback->count, &left);
        polls = moved ? 0 : polls;
        if (!moved && is_to_stop(h)) {
            record_failure(h, callback, GANTRY_E_CANCELED, 0);
            return;
        }
        if (polls >= POLLS + YIELDS)
            nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
        else if (polls >= POLLS)
            sched_yield();
    }
}

static void carry_out(gy_cuda *h, const gy_callback *callback)
{
    switch (callback->kind) {
    case GY_CALLBACK_CALL:
        call(h, callback);
        break;
    case GY_CALLBACK_MOVE:
        memmove(callback->to, callback->from, callback->bytes);
        break;
    case GY_CALLBACK_FILL:
        fill(h, callback);
        break;
    case GY_CALLBACK_REDUCE:
        gy_reduce(callback->dtype, callback->reduce, callback->to, callback->sources, callback->count,
                  callback->bytes / gantry_dtype_size(callback->dtype));
        break;
    case GY_CALLBACK_SEND:
    case GY_CALLBACK_RECEIVE:
        pass(h, callback);
        break;
    case GY_CALLBACK_EXCHANGE:
        exchange(h, callback);
        break;
    case GY_CALLBACK_COMBINE:
        gy_host_collective_execute(h->collective[callback->op], callback->to);
        break;
    case GY_CALLBACK_MIRROR_IN:
        gy_cuda_mirrors_in(h, callback->turn);
        break;
    case GY_CALLBACK_MIRROR_OUT:
        gy_cuda_mirrors_out(h, callback->turn);
        break;
    }
}

void gy_callback_run(void *data)
{
    const gy_callback *callback = data;
    gy_cuda *h = callback->h;
    if (atomic_load_explicit(&h->failed.op, memory_order_acquire) != GY_NONE || is_left_out(h, callback))
        return;
    if (callback->op != GY_NONE && gy_job_canceled(h->job)) {
        record_failure(h, callback, GANTRY_E_CANCELED, 0);
        return;
    }
    int64_t began = gy_cupti_on(h) ? gy_now_ns() : 0;
    atomic_fetch_add(&h->at_work, 1);
    carry_out(h, callback);
    atomic_fetch_sub(&h->at_work, 1);
    gy_cupti_host_function_ended(h, callback->op, began);
}
