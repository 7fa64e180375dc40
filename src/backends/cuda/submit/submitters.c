/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of several GPUs, each given its work by a thread of its own: the driver needs three microseconds for a
 * launch, and as many at once for other GPUs. Each thread submits the ops of its GPU in the order of positions. A
 * stream that is told to wait for an event that nobody has recorded yet does not wait, so a thread that comes to such a
 * row waits itself until the other has recorded it; since rows go up in position, the first op that is not submitted
 * yet never waits for another.
 *
 * That is for schedules whose ops each need one GPU only. Collectives, copies that are staged between GPUs, functions
 * of the program (which may share what they like) and starts that are captured or timed op by op are one thread's work.
 */
#include "backends/cuda/submit/submit.h"

#include "base/error.h"
#include "base/thread.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LEAST_SPARED = 48, /* ops that others take off the busiest thread: waking them takes 50 us at times */
    SPINS = 4000,      /* looks before a thread sleeps, some 50 us: the next start may be near */
    TURNS = 1000       /* looks before it leaves its core to others */
};

typedef struct gy_crew gy_crew;

/* The thread that submits for one GPU. */
typedef struct gy_member {
    struct gy_crew *crew;
    uint32_t device; /* one of those that are this GPU */
    uint32_t *op, ops;
    pthread_t thread;
    gy_notes *notes; /* per turn */
    gantry_status status;
    gantry_error why;
    uint32_t failed; /* op */
} gy_member;

struct gy_crew {
    gy_member *member; /* the first is whoever makes a start */
    uint32_t members, threads;
    atomic_ullong *told; /* per op: the last start in which its event was recorded */
    const gy_submit *start;
    atomic_bool stop; /* somebody failed */
    atomic_uint busy;
    atomic_ullong round; /* one for each start, and the last to end */
    bool over;
    pthread_mutex_t lock;
    pthread_cond_t begun;
};

/* ---- which schedules ---- */

static gy_queue lead_of(const gy_cuda *h, uint32_t op)
{
    const gantry_schedule *s = h->job->schedule;
    return h->lane[s->op_lane.at[s->ops.at[op].lane]].queue;
}

static bool is_alone(const gy_cuda *h, uint32_t id)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    uint32_t lane = lead_of(h, id).device, pairs = op->kind == GY_OP_FILL ? op->uses : op->uses / 2;
    if (op->lanes != 1 || op->kind == GY_OP_COLLECTIVE) {
        return false;
    }
    if (gy_op_calls(op)) {
        bool gpu = h->device[gy_op_device(s, op, 0)].gpu;
        return !gpu || h->job->graph->nodes.at[op->node].kernel != GY_NONE;
    }
    bool alone = true;
    for (uint32_t k = 0; k < pairs && alone; k++) {
        gy_place from = gy_cuda_place(h, &s->use.at[op->use + k], 0);
        gy_place to = op->kind == GY_OP_FILL ? from : gy_cuda_place(h, &s->use.at[op->use + pairs + k], 0);
        alone = gy_copy_alone(h, to, from, lane);
    }
    return alone;
}

static bool all_alone(const gy_cuda *h)
{
    bool alone = !h->nccl && !h->job->record;
    for (uint32_t i = 0; i < h->job->schedule->ops.count && alone; i++) {
        alone = is_alone(h, i);
    }
    return alone;
}

/* ---- making ---- */

static gy_member *member_of(const gy_cuda *h, const gy_crew *c, uint32_t device)
{
    gy_member *m = c->member;
    while (m < c->member + c->members && !gy_cuda_same_gpu(h, m->device, device)) {
        m++;
    }
    return m;
}

/* The GPU of whoever makes a start comes first. */
static void count_ops(const gy_cuda *h, gy_crew *c)
{
    c->member[c->members++].device = h->tail.device;
    for (uint32_t i = 0; i < h->job->schedule->ops.count; i++) {
        uint32_t device = lead_of(h, i).device;
        gy_member *m = member_of(h, c, device);
        if (m == c->member + c->members) {
            c->members++;
            m->device = device;
        }
        m->ops++;
    }
}

static bool deal_out(gy_cuda *h, gy_crew *c)
{
    bool room = true;
    for (uint32_t i = 0; i < c->members && room; i++) {
        gy_member *m = &c->member[i];
        m->crew = c;
        m->op = gy_arena_calloc(&h->arena, m->ops + 1, sizeof *m->op);
        m->notes = gy_arena_calloc(&h->arena, h->turns, sizeof *m->notes);
        room = m->op && m->notes;
        m->ops = 0;
    }
    for (uint32_t i = 0; i < h->job->schedule->ops.count && room; i++) {
        gy_member *m = member_of(h, c, lead_of(h, i).device);
        m->op[m->ops++] = i;
    }
    return room;
}

static bool is_wanted(const char *what)
{
    const char *wanted = getenv("GANTRY_CUDA_THREADS");
    return wanted && strcmp(wanted, what) == 0;
}

/* Where there are fewer cores than threads they would wait for each other's. */
static bool pays(const gy_crew *c, size_t ops)
{
    size_t most = 0;
    for (uint32_t i = 0; i < c->members; i++) {
        most = c->member[i].ops > most ? c->member[i].ops : most;
    }
    bool worth = ops - most >= LEAST_SPARED && sysconf(_SC_NPROCESSORS_ONLN) >= (long)c->members;
    return c->members > 1 && (worth || is_wanted("on"));
}

static void *work(void *data);

/* Where a thread cannot be had there is no crew. */
static bool begin_threads(gy_crew *c)
{
    while (c->threads + 1 < c->members &&
           gy_thread_create(&c->member[c->threads + 1].thread, work, &c->member[c->threads + 1]) == 0) {
        c->threads++;
    }
    return c->threads + 1 == c->members;
}

gantry_status gy_crew_make(gy_cuda *h, gantry_error *err)
{
    size_t ops = h->job->schedule->ops.count;
    if (h->graphs || !all_alone(h) || is_wanted("off")) {
        return GANTRY_OK;
    }
    gy_crew *c = gy_arena_calloc(&h->arena, 1, sizeof *c);
    gy_member *member = c ? gy_arena_calloc(&h->arena, h->devices + 1, sizeof *member) : NULL;
    atomic_ullong *told = member ? gy_arena_calloc(&h->arena, ops + 1, sizeof *told) : NULL;
    if (!told) {
        return gy_fail_nomem(err);
    }
    c->member = member;
    c->told = told;
    count_ops(h, c);
    if (!pays(c, ops)) {
        return GANTRY_OK;
    }
    if (!deal_out(h, c)) {
        return gy_fail_nomem(err);
    }
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->begun, NULL);
    h->crew = c;
    if (!begin_threads(c)) {
        gy_crew_free(h);
    }
    return GANTRY_OK;
}

/* ---- a start ---- */

static void rest(unsigned turn)
{
    if (turn % TURNS == TURNS - 1) {
        sched_yield();
    }
}

gantry_status gy_crew_await(const gy_submit *x, uint32_t op)
{
    gy_crew *c = x->member->crew;
    for (unsigned turn = 0; atomic_load_explicit(&c->told[op], memory_order_acquire) < x->start; turn++) {
        if (atomic_load_explicit(&c->stop, memory_order_relaxed)) {
            return GANTRY_E_DEVICE; /* the other tells why */
        }
        rest(turn);
    }
    return GANTRY_OK;
}

void gy_crew_tell(const gy_submit *x)
{
    atomic_store_explicit(&x->member->crew->told[x->op], x->start, memory_order_release);
}

static void submit_own(gy_member *m)
{
    gy_crew *c = m->crew;
    gy_submit x = *c->start;
    x.member = m;
    x.notes = &m->notes[x.turn];
    x.err = &m->why;
    m->status = GANTRY_OK;
    m->why = (gantry_error){ 0 };
    gy_notes_reset(x.notes);
    for (uint32_t i = 0; i < m->ops && !m->status && !atomic_load_explicit(&c->stop, memory_order_relaxed); i++) {
        x.op = m->op[i];
        m->status = gy_submit_op(&x);
    }
    m->failed = x.op;
    if (m->status) {
        atomic_store(&c->stop, true);
    }
}

/* False: there is no more. */
static bool await_round(gy_crew *c, unsigned long long *seen)
{
    for (unsigned turn = 0; turn < SPINS && atomic_load_explicit(&c->round, memory_order_acquire) == *seen; turn++) {
        rest(turn);
    }
    pthread_mutex_lock(&c->lock);
    while (atomic_load(&c->round) == *seen) {
        pthread_cond_wait(&c->begun, &c->lock);
    }
    *seen = atomic_load(&c->round);
    bool more = !c->over;
    pthread_mutex_unlock(&c->lock);
    return more;
}

static void *work(void *data)
{
    gy_member *m = data;
    unsigned long long seen = 0;
    while (await_round(m->crew, &seen)) {
        submit_own(m);
        atomic_fetch_sub(&m->crew->busy, 1);
    }
    return NULL;
}

static void next_round(gy_crew *c, bool over)
{
    pthread_mutex_lock(&c->lock);
    c->over = over;
    atomic_fetch_add(&c->round, 1);
    pthread_cond_broadcast(&c->begun);
    pthread_mutex_unlock(&c->lock);
}

/* Of those that failed by themselves the one with the first op; who only gave up waiting for another says nothing. */
static gantry_status tell_failure(const gy_crew *c, gy_submit *x)
{
    const gy_member *first = NULL;
    for (uint32_t i = 0; i < c->members; i++) {
        const gy_member *m = &c->member[i];
        bool itself = m->status && m->why.status;
        first = itself && (!first || m->failed < first->failed) ? m : first;
    }
    if (!first) {
        return gy_fail(x->err, GANTRY_E_DEVICE, NULL, "a thread that submits has stopped without a reason");
    }
    x->op = first->failed;
    if (x->err) {
        *x->err = first->why;
    }
    return first->status;
}

gantry_status gy_crew_submit(gy_submit *x)
{
    gy_cuda *h = x->h;
    gy_crew *c = h->crew;
    c->start = x;
    atomic_store(&c->stop, false);
    atomic_store(&c->busy, c->threads);
    h->shared = true;
    next_round(c, false);
    submit_own(&c->member[0]);
    for (unsigned turn = 0; atomic_load_explicit(&c->busy, memory_order_acquire) > 0; turn++) {
        rest(turn);
    }
    h->shared = false;
    h->current = GY_NONE;
    return atomic_load(&c->stop) ? tell_failure(c, x) : GANTRY_OK;
}

/* Nothing that notes are for runs any more. */
void gy_crew_free(gy_cuda *h)
{
    gy_crew *c = h->crew;
    if (!c) {
        return;
    }
    next_round(c, true);
    for (uint32_t i = 1; i <= c->threads; i++) {
        pthread_join(c->member[i].thread, NULL);
    }
    for (uint32_t i = 0; i < c->members; i++) {
        for (uint32_t t = 0; t < h->turns; t++) {
            gy_notes_free(&c->member[i].notes[t]);
        }
    }
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->begun);
    h->crew = NULL;
}
