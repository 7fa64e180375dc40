/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submission by several threads, one for each GPU: the driver needs three microseconds for a launch, and threads can
 * launch on several GPUs at once. Each thread submits the ops of its GPU in the order of positions. A stream that waits
 * for an event that has not been recorded yet does not wait at all, so a thread that comes to such a row of the sync
 * table waits itself until the other thread has recorded the event. Rows go up in position, so the first op that is not
 * submitted yet never waits for another.
 *
 * This works for schedules whose ops each need one GPU only. Collectives, copies that are staged between GPUs,
 * functions of the program (which may share state) and starts that are captured or timed op by op are submitted by one
 * thread.
 */
#include "backends/cuda/submit/submit.h"

#include "backends/cuda/resident/resident.h"

#include "base/error.h"
#include "base/thread.h"
#include <sched.h>
#include <unistd.h>

enum {
    LEAST_SPARED = 48, /* ops that others take off the busiest thread: waking them takes 50 us at times */
    SPINS = 4000,      /* looks before a thread sleeps, some 50 us: the next start may be near */
    YIELD_AFTER = 1000 /* looks before it leaves its core to others */
};

typedef struct gy_submitters gy_submitters;

/* The thread that submits for one GPU. */
typedef struct gy_submitter {
    struct gy_submitters *all;
    uint32_t device; /* one of those that are this GPU */
    uint32_t *op, ops;
    pthread_t thread;
    gy_callbacks *callbacks; /* per turn */
    gantry_status status;
    gantry_error why;
    uint32_t failed; /* op */
} gy_submitter;

struct gy_submitters {
    gy_submitter *submitter; /* the first is the thread that makes a start */
    uint32_t count, threads;
    atomic_ullong *recorded; /* per op: the last start in which its event was recorded */
    const gy_submit *start;
    atomic_bool stop; /* a thread failed */
    atomic_uint busy;
    atomic_ullong round; /* one for each start, and the last to end */
    bool over;
    pthread_mutex_t lock;
    pthread_cond_t begun;
};

/* ---- which schedules ---- */

static bool is_alone(const gy_cuda *h, uint32_t id)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    uint32_t lane = gy_cuda_lane_of(h, id, 0)->queue.device, pairs = op->kind == GY_OP_FILL ? op->uses : op->uses / 2;
    if (op->lanes != 1 || op->kind == GY_OP_COLLECTIVE || h->op[id].when)
        return false;
    if (gy_op_calls(op)) {
        bool gpu = h->device[gy_op_device(s, op, 0)].gpu;
        return !gpu || h->job->graph->nodes.at[op->node].kernel != GY_NONE;
    }
    bool alone = true;
    for (uint32_t k = 0; k < pairs && alone; k++) {
        gy_location from = gy_cuda_location(h, &s->use.at[op->use + k], 0);
        gy_location to = op->kind == GY_OP_FILL ? from : gy_cuda_location(h, &s->use.at[op->use + pairs + k], 0);
        alone = gy_copy_alone(h, to, from, lane);
    }
    return alone;
}

static bool all_alone(const gy_cuda *h)
{
    bool alone = !h->nccl && !h->job->record;
    for (uint32_t i = 0; i < h->job->schedule->ops.count && alone; i++)
        alone = is_alone(h, i);
    return alone;
}

/* ---- making ---- */

static gy_submitter *submitter_of(const gy_cuda *h, const gy_submitters *c, uint32_t device)
{
    gy_submitter *m = c->submitter;
    while (m < c->submitter + c->count && !gy_cuda_same_gpu(h, m->device, device))
        m++;
    return m;
}

/* The GPU of the thread that makes a start comes first. */
static void count_ops(const gy_cuda *h, gy_submitters *c)
{
    c->submitter[c->count++].device = h->end_stream.device;
    for (uint32_t i = 0; i < h->job->schedule->ops.count; i++) {
        uint32_t device = gy_cuda_lane_of(h, i, 0)->queue.device;
        gy_submitter *m = submitter_of(h, c, device);
        if (m == c->submitter + c->count) {
            c->count++;
            m->device = device;
        }
        m->ops++;
    }
}

static bool deal_out(gy_cuda *h, gy_submitters *c)
{
    bool room = true;
    for (uint32_t i = 0; i < c->count && room; i++) {
        gy_submitter *m = &c->submitter[i];
        m->all = c;
        m->op = gy_arena_calloc(&h->arena, m->ops + 1, sizeof *m->op);
        m->callbacks = gy_arena_calloc(&h->arena, h->turns, sizeof *m->callbacks);
        room = m->op && m->callbacks;
        m->ops = 0;
    }
    for (uint32_t i = 0; i < h->job->schedule->ops.count && room; i++) {
        gy_submitter *m = submitter_of(h, c, gy_cuda_lane_of(h, i, 0)->queue.device);
        m->op[m->ops++] = i;
    }
    return room;
}

/* Threads do not pay where there are fewer cores than threads. */
static bool pays(const gy_submitters *c, size_t ops)
{
    size_t most = 0;
    for (uint32_t i = 0; i < c->count; i++)
        most = c->submitter[i].ops > most ? c->submitter[i].ops : most;
    bool worth = ops - most >= LEAST_SPARED && sysconf(_SC_NPROCESSORS_ONLN) >= (long)c->count;
    return c->count > 1 && (worth || gy_driver_switch("GANTRY_CUDA_THREADS", "on"));
}

static void *work(void *data);

/* True if all threads could be made; a part of them is of no use. */
static bool begin_threads(gy_submitters *c)
{
    while (c->threads + 1 < c->count &&
           gy_thread_create(&c->submitter[c->threads + 1].thread, work, &c->submitter[c->threads + 1]) == 0)
        c->threads++;
    return c->threads + 1 == c->count;
}

gantry_status gy_submitters_make(gy_cuda *h, gantry_error *err)
{
    size_t ops = h->job->schedule->ops.count;
    if (h->step || h->graphs || gy_resident_on(h) || !all_alone(h) || gy_driver_switch("GANTRY_CUDA_THREADS", "off"))
        return GANTRY_OK;
    gy_submitters *c = gy_arena_calloc(&h->arena, 1, sizeof *c);
    gy_submitter *submitter = c ? gy_arena_calloc(&h->arena, h->devices + 1, sizeof *submitter) : NULL;
    atomic_ullong *recorded = submitter ? gy_arena_calloc(&h->arena, ops + 1, sizeof *recorded) : NULL;
    if (!recorded)
        return gy_fail_nomem(err);
    c->submitter = submitter;
    c->recorded = recorded;
    count_ops(h, c);
    if (!pays(c, ops))
        return GANTRY_OK;
    if (!deal_out(h, c))
        return gy_fail_nomem(err);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->begun, NULL);
    h->submitters = c;
    if (!begin_threads(c))
        gy_submitters_free(h);
    return GANTRY_OK;
}

/* ---- a start ---- */

static void rest(unsigned polls)
{
    if (polls % YIELD_AFTER == YIELD_AFTER - 1)
        sched_yield();
}

gantry_status gy_submitters_await(const gy_submit *x, uint32_t op)
{
    gy_submitters *c = x->submitter->all;
    for (unsigned polls = 0; atomic_load_explicit(&c->recorded[op], memory_order_acquire) < x->start; polls++) {
        if (atomic_load_explicit(&c->stop, memory_order_relaxed))
            return GANTRY_E_DEVICE; /* the other tells why */
        rest(polls);
    }
    return GANTRY_OK;
}

void gy_submitters_signal(const gy_submit *x)
{
    atomic_store_explicit(&x->submitter->all->recorded[x->op], x->start, memory_order_release);
}

static void submit_own(gy_submitter *m)
{
    gy_submitters *c = m->all;
    gy_submit x = *c->start;
    x.submitter = m;
    x.callbacks = &m->callbacks[x.turn];
    x.err = &m->why;
    m->status = GANTRY_OK;
    m->why = (gantry_error){ 0 };
    gy_callbacks_reset(x.callbacks);
    for (uint32_t i = 0; i < m->ops && !m->status && !atomic_load_explicit(&c->stop, memory_order_relaxed); i++) {
        x.op = m->op[i];
        m->status = gy_submit_check_canceled(&x);
        m->status = m->status ? m->status : gy_submit_op(&x);
    }
    m->failed = x.op;
    if (m->status)
        atomic_store(&c->stop, true);
}

/* Waits for the next round; false: there are no more starts. */
static bool await_round(gy_submitters *c, unsigned long long *seen)
{
    for (unsigned polls = 0; polls < SPINS && atomic_load_explicit(&c->round, memory_order_acquire) == *seen; polls++)
        rest(polls);
    pthread_mutex_lock(&c->lock);
    while (atomic_load(&c->round) == *seen)
        pthread_cond_wait(&c->begun, &c->lock);
    *seen = atomic_load(&c->round);
    bool more = !c->over;
    pthread_mutex_unlock(&c->lock);
    return more;
}

static void *work(void *data)
{
    gy_submitter *m = data;
    unsigned long long seen = 0;
    while (await_round(m->all, &seen)) {
        submit_own(m);
        atomic_fetch_sub(&m->all->busy, 1);
    }
    return NULL;
}

static void next_round(gy_submitters *c, bool over)
{
    pthread_mutex_lock(&c->lock);
    c->over = over;
    atomic_fetch_add(&c->round, 1);
    pthread_cond_broadcast(&c->begun);
    pthread_mutex_unlock(&c->lock);
}

/* Reports the failure of the first op among threads that failed by themselves. A thread that only gave up waiting for
 * another has nothing to report. */
static gantry_status tell_failure(const gy_submitters *c, gy_submit *x)
{
    const gy_submitter *first = NULL;
    for (uint32_t i = 0; i < c->count; i++) {
        const gy_submitter *m = &c->submitter[i];
        bool itself = m->status && m->why.status;
        first = itself && (!first || m->failed < first->failed) ? m : first;
    }
    if (!first)
        return gy_fail(x->err, GANTRY_E_DEVICE, NULL, "a thread that submits has stopped without a reason");
    x->op = first->failed;
    if (x->err)
        *x->err = first->why;
    return first->status;
}

gantry_status gy_submitters_submit(gy_submit *x)
{
    gy_cuda *h = x->h;
    gy_submitters *c = h->submitters;
    c->start = x;
    atomic_store(&c->stop, false);
    atomic_store(&c->busy, c->threads);
    h->concurrent = true;
    next_round(c, false);
    submit_own(&c->submitter[0]);
    for (unsigned polls = 0; atomic_load_explicit(&c->busy, memory_order_acquire) > 0; polls++)
        rest(polls);
    h->concurrent = false;
    h->current = GY_NONE;
    return atomic_load(&c->stop) ? tell_failure(c, x) : GANTRY_OK;
}

/* Called when no host function of the run is left to run. */
void gy_submitters_free(gy_cuda *h)
{
    gy_submitters *c = h->submitters;
    if (!c)
        return;
    next_round(c, true);
    for (uint32_t i = 1; i <= c->threads; i++)
        pthread_join(c->submitter[i].thread, NULL);
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t t = 0; t < h->turns; t++)
            gy_callbacks_free(&c->submitter[i].callbacks[t]);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->begun);
    h->submitters = NULL;
}
