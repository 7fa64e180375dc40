/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a device. */
#include "backends/host/host.h"

#include "base/clock.h"

void gy_host_note_failure(gy_host_run *h, gy_host_failure failure)
{
    pthread_mutex_lock(&h->lock);
    if (failure.start < atomic_load(&h->failed)) {
        h->failure = failure;
        atomic_store(&h->failed, failure.start);
    }
    pthread_mutex_unlock(&h->lock);
}

static void execute(gy_host_run *h, uint64_t start, uint32_t op)
{
    gy_op_failure why;
    gy_host_ops_turn(&h->ops, op, start);
    if (!gy_host_ops_execute(&h->ops, op, &why))
        gy_host_note_failure(h, (gy_host_failure){ .start = start, .op = op, .why = why });
}

static void execute_timed(gy_host_run *h, uint64_t start, uint32_t op)
{
    int64_t begin = h->begin_ns[start % h->ring];
    h->time[op].start = gy_now_ns() - begin;
    execute(h, start, op);
    h->time[op].end = gy_now_ns() - begin;
}

/* False: something failed. After a failure threads pass through without waiting, but still signal and arrive, so that
 * all numbers are right for the next start. */
static bool wait_for_all(gy_host_run *h, const gy_step *step, uint64_t start)
{
    for (uint32_t i = 0; i < step->waits; i++) {
        gy_await wait = h->plan.await[step->wait + i];
        gy_want want = { (uint32_t)(start - wait.distance), start };
        if (wait.distance < start && !gy_slot_wait(&h->slot[wait.slot], want, &h->failed))
            return false;
    }
    return true;
}

/* Every thread of the party has come to the op before its leader goes on. */
static void arrive(gy_host_run *h, const gy_step *step, uint64_t start)
{
    gy_meeting *m = &h->meeting[step->meeting];
    uint64_t arrived = atomic_fetch_add(&m->arrived, 1) + 1;
    if (arrived == start * h->plan.party[step->meeting])
        gy_slot_set(&m->full, (uint32_t)start);
    if (step->leads)
        gy_slot_wait(&m->full, (gy_want){ (uint32_t)start, start }, &h->failed);
}

static void leave(gy_host_run *h, const gy_step *step, uint64_t start)
{
    gy_meeting *m = &h->meeting[step->meeting];
    if (step->leads)
        gy_slot_set(&m->done, (uint32_t)start);
    else
        gy_slot_wait(&m->done, (gy_want){ (uint32_t)start, start }, &h->failed);
}

void gy_worker_report(gy_worker *w, uint64_t start, size_t step, bool executing)
{
    uint64_t value = start << 32 | (uint64_t)step << 1 | executing;
    atomic_store_explicit(&w->progress, value, memory_order_relaxed);
}

bool gy_worker_may_run(gy_worker *w, uint64_t start, size_t step)
{
    gy_host_run *h = w->host;
    if (gy_job_canceled(h->job))
        gy_host_note_failure(h, (gy_host_failure){ .start = start, .op = w->steps->at[step].op, .canceled = true });
    if (start < atomic_load_explicit(&h->failed, memory_order_acquire))
        return true;
    if (w->left_start == UINT64_MAX) {
        w->left_start = start;
        w->left_step = step;
    }
    return false;
}

static void run_start(gy_worker *w, uint64_t start)
{
    gy_host_run *h = w->host;
    for (size_t i = 0; i < w->steps->count; i++) {
        const gy_step *step = &w->steps->at[i];
        bool alone = step->meeting == GY_NONE;
        if (step->waits || !alone) {
            gy_worker_report(w, start, i, false);
            wait_for_all(h, step, start);
        }
        if (!alone)
            arrive(h, step, start);
        gy_worker_report(w, start, i, step->leads);
        if (step->leads && gy_worker_may_run(w, start, i))
            (h->time ? execute_timed : execute)(h, start, step->op);
        for (uint32_t k = 0; k < step->sets; k++)
            gy_slot_set(&h->slot[h->plan.signal[step->set + k]], (uint32_t)start);
        if (h->queues && step->sets)
            gy_slot_ring(&h->bell);
        if (!alone)
            leave(h, step, start);
    }
}

static bool is_begun(gy_host_run *h, uint64_t start)
{
    return atomic_load_explicit(&h->begun, memory_order_acquire) >= start || atomic_load(&h->quit);
}

bool gy_host_await_begin(gy_host_run *h, uint64_t start)
{
    for (unsigned polls = 0; !is_begun(h, start) && gy_wait_awake(polls); polls++) {
    }
    if (!is_begun(h, start)) {
        pthread_mutex_lock(&h->lock);
        while (!is_begun(h, start))
            pthread_cond_wait(&h->began, &h->lock);
        pthread_mutex_unlock(&h->lock);
    }
    return atomic_load_explicit(&h->begun, memory_order_acquire) >= start;
}

void gy_host_end_start(gy_host_run *h, uint64_t start)
{
    pthread_mutex_lock(&h->lock);
    uint32_t place = (uint32_t)(start % h->ring);
    if (++h->ended_by[place] == h->workers) {
        h->ended_by[place] = 0;
        h->end_ns[place] = gy_now_ns();
        atomic_store_explicit(&h->ended, start, memory_order_release);
        pthread_cond_broadcast(&h->ended_some);
    }
    pthread_mutex_unlock(&h->lock);
}

void *gy_worker_main(void *worker)
{
    gy_worker *w = worker;
    for (uint64_t start = 1; gy_host_await_begin(w->host, start); start++) {
        run_start(w, start);
        gy_host_end_start(w->host, start);
    }
    return NULL;
}
