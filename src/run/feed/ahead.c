/* SPDX-License-Identifier: Apache-2.0 */
#include "run/feed/ahead.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include <errno.h>
#include <time.h>

/* Array n is at place n % places. */
typedef struct place {
    void *at;
    uint32_t left; /* parts of the array that is begun there and that are not made */
} place;

struct gy_ahead {
    gy_ahead_memory memory;
    gy_ahead_work work;
    uint32_t places, threads; /* those that run */
    place *place;
    pthread_t thread[GY_AHEAD_THREADS];
    pthread_mutex_t guard;      /* for what follows */
    pthread_cond_t made_one;    /* or failed to: the user waits for it */
    pthread_cond_t room;        /* threads wait for it */
    uint64_t made, taken, kept; /* array numbers: kept <= taken <= made <= begun <= kept + places */
    uint64_t begun;             /* all parts of arrays with lower numbers are made or at work, */
    uint32_t next;              /* and the parts of array `begun` before this one */
    uint32_t working;           /* threads at work on a part */
    bool stop;
    gantry_status status; /* not GANTRY_OK: no part is begun any more, since that of */
    uint64_t failed;      /* this array, with this number, could not be made */
    uint32_t failed_part;
    gantry_error error;
};

static void note_failure(gy_ahead *a, uint64_t number, uint32_t part, gantry_status status, const gantry_error *error)
{
    if (a->status && (a->failed < number || (a->failed == number && a->failed_part < part)))
        return;
    a->status = status;
    a->failed = number;
    a->failed_part = part;
    a->error = *error;
}

/* Carries out the part that is begun next. */
static void make_next(gy_ahead *a)
{
    uint64_t number = a->begun;
    uint32_t part = a->next;
    place *at = &a->place[number % a->places];
    gantry_error error = { 0 };
    at->left = part == 0 ? a->work.parts : at->left;
    a->next = part + 1 < a->work.parts ? part + 1 : 0;
    a->begun += a->next == 0;
    a->working++;
    pthread_mutex_unlock(&a->guard);
    gantry_status status = a->work.make(a->work.user, number, part, at->at, &error);
    pthread_mutex_lock(&a->guard);
    a->working--;
    if (status)
        note_failure(a, number, part, status, &error);
    else
        at->left--;
}

/* Parts end in any order, arrays are made in theirs. */
static void see_what_is_made(gy_ahead *a)
{
    uint64_t before = a->made;
    while (a->made < a->begun && a->place[a->made % a->places].left == 0)
        a->made++;
    if (a->made != before || a->status)
        pthread_cond_broadcast(&a->made_one);
}

static void *make_all(void *data)
{
    gy_ahead *a = data;
    pthread_mutex_lock(&a->guard);
    while (!a->stop && !a->status) {
        if (a->begun == a->kept + a->places) {
            pthread_cond_wait(&a->room, &a->guard);
            continue;
        }
        make_next(a);
        see_what_is_made(a);
    }
    pthread_cond_broadcast(&a->room); /* others see why, too */
    pthread_mutex_unlock(&a->guard);
    return NULL;
}

/* Not reported before all that was begun has ended: a part that comes before the one that failed may fail as well. */
static bool has_failed(const gy_ahead *a)
{
    return a->status && a->working == 0;
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
        status = a->memory.make(a->memory.of, &a->place[i].at, bytes, err);
    return status;
}

/* Waits are by the clock that nobody sets. */
static void make_signals(gy_ahead *a)
{
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&a->made_one, &by_clock);
    pthread_cond_init(&a->room, &by_clock);
    pthread_condattr_destroy(&by_clock);
    pthread_mutex_init(&a->guard, NULL);
}

/* 0, or why there is not even one. */
static int begin_threads(gy_ahead *a)
{
    int failed = 0;
    while (failed == 0 && a->threads < a->work.threads && a->threads < GY_AHEAD_THREADS) {
        failed = gy_thread_create(&a->thread[a->threads], make_all, a);
        a->threads += failed == 0;
    }
    return a->threads ? 0 : failed;
}

gantry_status gy_ahead_start(gy_ahead **ahead, const gy_ahead_memory *memory, uint32_t places, uint64_t bytes,
                             uint64_t first, const gy_ahead_work *work, gantry_error *err)
{
    static const gy_ahead_memory pages = { .make = make_pages, .free = free_pages };
    gy_ahead *a = gy_calloc(1, sizeof *a);
    if (!a)
        return gy_fail_nomem(err);
    *a = (gy_ahead){ .places = places, .work = *work, .made = first, .taken = first, .kept = first, .begun = first };
    a->memory = memory ? *memory : pages;
    make_signals(a);
    gantry_status status = make_places(a, bytes, err);
    int failed = status ? 0 : begin_threads(a);
    if (status || failed) {
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
    while (a->made == a->taken && !has_failed(a) && late == 0)
        late = pthread_cond_timedwait(&a->made_one, &a->guard, &until);
    bool known = a->made != a->taken || has_failed(a);
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
    *array = a->place[a->taken % a->places].at;
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
    uint64_t parts = (kept - a->kept) * a->work.parts;
    a->kept = kept;
    for (uint64_t i = 0; i < parts && i < a->threads; i++)
        pthread_cond_signal(&a->room); /* a thread a part, no more */
    pthread_mutex_unlock(&a->guard);
}

uint64_t gy_ahead_taken(const gy_ahead *a)
{
    return a->taken;
}

void gy_ahead_stop(gy_ahead *a)
{
    if (a->threads == 0)
        return;
    pthread_mutex_lock(&a->guard);
    a->stop = true;
    pthread_cond_broadcast(&a->room);
    pthread_mutex_unlock(&a->guard);
    while (a->threads)
        pthread_join(a->thread[--a->threads], NULL);
}

void gy_ahead_free(gy_ahead *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; a->place && i < a->places; i++)
        if (a->place[i].at)
            a->memory.free(a->memory.of, a->place[i].at);
    gy_free(a->place);
    pthread_cond_destroy(&a->made_one);
    pthread_cond_destroy(&a->room);
    pthread_mutex_destroy(&a->guard);
    gy_free(a);
}
