/* SPDX-License-Identifier: Apache-2.0 */
#include "run/feed/ahead.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include <errno.h>
#include <time.h>

struct gy_ahead {
    gy_ahead_memory memory;
    uint32_t places;
    void **place; /* array n is at n % places */
    gy_make make;
    void *user;
    bool running;
    pthread_t thread;
    pthread_mutex_t guard; /* for what follows */
    pthread_cond_t changed;
    uint64_t made, taken, kept; /* array numbers: kept <= taken <= made <= kept + places */
    bool stop;
    gantry_status status; /* of array `made`; not GANTRY_OK: there will be no more */
    gantry_error error;
};

static gantry_status make_next(gy_ahead *a, gantry_error *error)
{
    uint64_t number = a->made; /* nobody else changes it */
    pthread_mutex_unlock(&a->guard);
    gantry_status status = a->make(a->user, number, a->place[number % a->places], error);
    pthread_mutex_lock(&a->guard);
    return status;
}

static void *make_all(void *data)
{
    gy_ahead *a = data;
    gantry_error error = { 0 };
    pthread_mutex_lock(&a->guard);
    while (!a->stop && !a->status) {
        if (a->made == a->kept + a->places) {
            pthread_cond_wait(&a->changed, &a->guard);
            continue;
        }
        gantry_status status = make_next(a, &error);
        if (status)
            a->error = error;
        a->status = status;
        a->made += status == GANTRY_OK;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->guard);
    return NULL;
}

static gantry_status make_pages(void *of, void **to, uint64_t bytes, gantry_error *err)
{
    (void)of;
    *to = gy_alloc_array(bytes);
    return *to ? GANTRY_OK : gy_fail_nomem(err);
}

static void free_pages(void *of, void *at)
{
    (void)of;
    gy_free(at);
}

static gantry_status make_places(gy_ahead *a, uint64_t bytes, gantry_error *err)
{
    a->place = gy_calloc(a->places, sizeof *a->place);
    gantry_status status = a->place ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t i = 0; i < a->places && !status; i++)
        status = a->memory.make(a->memory.of, &a->place[i], bytes, err);
    return status;
}

/* Waits are by the clock that nobody sets. */
static void make_signals(gy_ahead *a)
{
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&a->changed, &by_clock);
    pthread_condattr_destroy(&by_clock);
    pthread_mutex_init(&a->guard, NULL);
}

gantry_status gy_ahead_start(gy_ahead **ahead, const gy_ahead_memory *memory, uint32_t places, uint64_t bytes,
                             uint64_t first, gy_make make, void *user, gantry_error *err)
{
    static const gy_ahead_memory pages = { .make = make_pages, .free = free_pages };
    gy_ahead *a = gy_calloc(1, sizeof *a);
    if (!a)
        return gy_fail_nomem(err);
    *a = (gy_ahead){ .places = places, .make = make, .user = user, .made = first, .taken = first, .kept = first };
    a->memory = memory ? *memory : pages;
    make_signals(a);
    gantry_status status = make_places(a, bytes, err);
    int failed = status ? 0 : gy_thread_create(&a->thread, make_all, a);
    a->running = !status && failed == 0;
    if (!a->running) {
        gy_ahead_free(a);
        errno = failed;
        return status ? status : gy_fail_errno(err, "start", "a thread that reads ahead");
    }
    *ahead = a;
    return GANTRY_OK;
}

bool gy_ahead_wait(gy_ahead *a, int64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (until.tv_nsec + ns) / 1000000000;
    until.tv_nsec = (until.tv_nsec + ns) % 1000000000;
    pthread_mutex_lock(&a->guard);
    int late = 0;
    while (a->made == a->taken && !a->status && late == 0)
        late = pthread_cond_timedwait(&a->changed, &a->guard, &until);
    bool known = a->made != a->taken || a->status;
    pthread_mutex_unlock(&a->guard);
    return known;
}

bool gy_ahead_ready(gy_ahead *a)
{
    pthread_mutex_lock(&a->guard);
    bool ready = a->made != a->taken;
    pthread_mutex_unlock(&a->guard);
    return ready;
}

gantry_status gy_ahead_next(gy_ahead *a, const void **array, gantry_error *err)
{
    pthread_mutex_lock(&a->guard);
    gantry_status status = a->made == a->taken ? a->status : GANTRY_OK;
    if (status && err)
        *err = a->error;
    *array = a->place[a->taken % a->places];
    pthread_mutex_unlock(&a->guard);
    return status;
}

void gy_ahead_take(gy_ahead *a)
{
    pthread_mutex_lock(&a->guard);
    a->taken++;
    pthread_mutex_unlock(&a->guard);
}

void gy_ahead_give_back(gy_ahead *a, uint64_t kept)
{
    pthread_mutex_lock(&a->guard);
    a->kept = kept;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->guard);
}

uint64_t gy_ahead_taken(const gy_ahead *a)
{
    return a->taken;
}

void gy_ahead_stop(gy_ahead *a)
{
    if (!a->running)
        return;
    pthread_mutex_lock(&a->guard);
    a->stop = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->guard);
    pthread_join(a->thread, NULL);
    a->running = false;
}

void gy_ahead_free(gy_ahead *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; a->place && i < a->places; i++)
        if (a->place[i])
            a->memory.free(a->memory.of, a->place[i]);
    gy_free(a->place);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->guard);
    gy_free(a);
}
