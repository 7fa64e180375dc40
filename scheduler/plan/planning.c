/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/plan/planning.h"

#include "base/error.h"

enum { SELDOM = 64 }; /* steps of other threads after which the caller is woken */

void gy_planning_begin(gy_planning *w, const gantry_schedule_options *options)
{
    *w = (gy_planning){ .call = options->progress, .user = options->user, .caller = pthread_self() };
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moved, NULL);
}

gantry_status gy_planning_end(gy_planning *w, gantry_status status, gantry_error *err)
{
    bool stopped = atomic_load(&w->stopped);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->moved);
    return stopped ? gy_fail(err, GANTRY_E_CANCELED, NULL,
                             "planning was cancelled by the function of the options that is told of its progress")
                   : status;
}

static void tell(gy_planning *w)
{
    gantry_plan_progress p = { .struct_size = sizeof p,
                               .steps = atomic_load_explicit(&w->steps, memory_order_relaxed),
                               .plans = atomic_load_explicit(&w->plans, memory_order_relaxed),
                               .best_us = gy_ticks_to_us(atomic_load_explicit(&w->best, memory_order_relaxed)),
                               .bound_us = gy_ticks_to_us(atomic_load_explicit(&w->bound, memory_order_relaxed)) };
    if (!atomic_load(&w->stopped) && w->call(w->user, &p))
        atomic_store(&w->stopped, true);
}

static void wake(gy_planning *w)
{
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

bool gy_planning_step(gy_planning *w)
{
    if (!w)
        return true;
    uint64_t steps = atomic_fetch_add_explicit(&w->steps, 1, memory_order_relaxed);
    if (pthread_equal(pthread_self(), w->caller))
        tell(w);
    else if (steps % SELDOM == 0)
        wake(w);
    return !atomic_load_explicit(&w->stopped, memory_order_relaxed);
}

gantry_status gy_planning_check(gy_planning *w, gantry_error *err)
{
    return gy_planning_step(w) ? GANTRY_OK : gy_fail(err, GANTRY_E_CANCELED, NULL, "planning was cancelled");
}

static void lower(_Atomic int64_t *least, gy_ticks to)
{
    int64_t now = atomic_load(least);
    while (to > 0 && (now == 0 || to < now) && !atomic_compare_exchange_weak(least, &now, to)) {
    }
}

void gy_planning_plan(gy_planning *w, gy_ticks makespan)
{
    if (!w)
        return;
    lower(&w->best, makespan);
    atomic_fetch_add(&w->plans, 1);
    (void)gy_planning_step(w);
}

void gy_planning_bound(gy_planning *w, gy_ticks bound)
{
    if (w)
        lower(&w->bound, bound);
}

void gy_planning_fork(gy_planning *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->apart++;
    pthread_mutex_unlock(&w->lock);
}

void gy_planning_join(gy_planning *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->apart--;
    pthread_cond_signal(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

void gy_planning_await(gy_planning *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    while (w->apart > 0) {
        pthread_cond_wait(&w->moved, &w->lock);
        pthread_mutex_unlock(&w->lock);
        tell(w);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}
