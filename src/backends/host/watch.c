/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a start, and watching that it moves: whoever waits is the watchdog. */
#include "backends/host/host.h"

#include "base/clock.h"
#include "base/error.h"
#include <errno.h>
#include <time.h>

enum { TICK_MS = 20, DRAIN_MS = 500 };

/* Why a start is given up. */
typedef struct limit {
    char text[96];
    const char *remedy; /* the end of what is told */
} limit;

/* The worker to blame: one that executes before one that waits; `busy` says which. */
static const gy_worker *find_culprit(gy_host_run *h, uint64_t start, bool *busy)
{
    const gy_worker *waiting = NULL;
    for (uint32_t i = 0; i < h->workers; i++) {
        uint64_t progress = atomic_load_explicit(&h->worker[i].progress, memory_order_relaxed);
        if (progress >> 32 > (uint32_t)start || (progress & 0xFFFFFFFFu) >> 1 >= h->worker[i].steps->count)
            continue;
        if (progress & 1) {
            *busy = true;
            return &h->worker[i];
        }
        waiting = waiting ? waiting : &h->worker[i];
    }
    *busy = false;
    return waiting;
}

static void describe(const gy_host_run *h, const gy_worker *w, bool busy, const limit *l, gantry_error *err)
{
    uint64_t progress = atomic_load_explicit(&w->progress, memory_order_relaxed);
    const gy_step *step = &w->steps->at[(progress & 0xFFFFFFFFu) >> 1];
    gy_text name = { 0 };
    gy_op_text(&name, h->job->schedule, step->op);
    uint32_t device = gy_op_device(h->job->schedule, &h->job->schedule->ops.at[step->op], 0);
    device = w->device < h->job->schedule->machine->devices ? w->device : device; /* else the network */
    gy_fail(err, GANTRY_E_TIMEOUT, NULL, "%s: op %u, \"%s\", on device \"%s\" %s%s", l->text, step->op,
            name.failed || !name.length ? "?" : name.at, h->job->schedule->machine->device[device].id,
            busy ? "had not returned" : "was still waiting for others", l->remedy);
    err->device = (int32_t)device;
    gy_text_free(&name);
}

/* The caller holds the lock. An earlier failure is kept: what hangs after it is given up without a word. */
static void time_out(gy_host_run *h, uint64_t start, const limit *l)
{
    gantry_error error;
    bool busy;
    if (atomic_load(&h->failed) <= start)
        return;
    const gy_worker *w = find_culprit(h, start, &busy);
    if (w)
        describe(h, w, busy, l, &error);
    else
        gy_fail(&error, GANTRY_E_TIMEOUT, NULL, "%s%s", l->text, l->remedy);
    uint64_t first = atomic_load(&h->ended) + 1;
    h->failure = (gy_host_failure){ .start = first, .timeout = true, .error = error };
    atomic_store(&h->failed, first);
}

/* Does a thread execute an op? All ops here are functions on the host. */
static bool is_at_work(gy_host_run *h, uint64_t start)
{
    bool busy;
    return find_culprit(h, start, &busy) && busy;
}

typedef struct watch {
    gy_waited still; /* since it moved last */
    uint64_t seen;
} watch;

static uint64_t sum_progress(const gy_host_run *h)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < h->workers; i++)
        sum += atomic_load_explicit(&h->worker[i].progress, memory_order_relaxed);
    return sum;
}

void gy_host_tell(void *run, char *text, size_t size)
{
    gy_host_run *h = run;
    bool busy;
    uint64_t start = atomic_load(&h->begun);
    const gy_worker *w = start && atomic_load(&h->ended) < start ? find_culprit(h, start, &busy) : NULL;
    text[0] = 0;
    if (!w)
        return;
    uint64_t progress = atomic_load_explicit(&w->progress, memory_order_relaxed);
    const gy_step *step = &w->steps->at[(progress & 0xFFFFFFFFu) >> 1];
    gy_text name = { 0 };
    gy_op_text(&name, h->job->schedule, step->op);
    uint32_t device = gy_op_device(h->job->schedule, &h->job->schedule->ops.at[step->op], 0);
    device = w->device < h->job->schedule->machine->devices ? w->device : device;
    snprintf(text, size, "op %u, \"%.100s\", on device \"%.60s\"", step->op,
             name.failed || !name.length ? "?" : name.at, h->job->schedule->machine->device[device].id);
    gy_text_free(&name);
}

/* The caller holds the lock. A rank is silent: nothing of this start can be waited for. */
static bool give_up_lost(gy_host_run *h)
{
    if (!gy_network_is_lost(h->job->network))
        return false;
    uint64_t first = atomic_load(&h->ended) + 1;
    h->failure = (gy_host_failure){ .start = first, .timeout = true, .error = h->job->network->why };
    atomic_store(&h->failed, first);
    return true;
}

/* The caller holds the lock. True: this start is given up. */
static bool look(gy_host_run *h, watch *w, uint64_t start)
{
    if (give_up_lost(h))
        return true;
    uint64_t sum = sum_progress(h);
    if (sum != w->seen || atomic_load_explicit(&h->in_message, memory_order_relaxed)) {
        w->seen = sum;
        w->still = gy_waited_begin();
    }
    limit l = { .remedy = "" };
    int64_t deadline = h->job->deadline_ns, still = gy_waited_look(&w->still), patience = gy_job_patience(h->job);
    if (deadline && gy_now_ns() - h->begin_ns[start % h->ring] > deadline) {
        snprintf(l.text, sizeof l.text, "the deadline of %.3f ms passed", (double)deadline / 1e6);
    } else if (still > patience && (h->job->timeout_ns || !is_at_work(h, start))) {
        snprintf(l.text, sizeof l.text, "no progress for %.1f s, where %g s are allowed", (double)still / 1e9,
                 (double)(patience / 1000) / 1e6);
        l.remedy = "; " GY_MORE_TIME;
    } else {
        return false;
    }
    time_out(h, start, &l);
    return true;
}

static void wait_tick(gy_host_run *h, int64_t nanoseconds)
{
    int64_t at = gy_now_ns() + nanoseconds;
    struct timespec until = { at / 1000000000, at % 1000000000 };
    pthread_cond_timedwait(&h->ended_some, &h->lock, &until);
}

static bool has_ended(gy_host_run *h, uint64_t start)
{
    return atomic_load_explicit(&h->ended, memory_order_acquire) >= start;
}

bool gy_host_idle(gy_host_run *h)
{
    if (has_ended(h, atomic_load(&h->begun)))
        return true;
    gy_waited waited = gy_waited_begin();
    pthread_mutex_lock(&h->lock);
    while (!has_ended(h, atomic_load(&h->begun)) && gy_waited_look(&waited) < DRAIN_MS * INT64_C(1000000))
        wait_tick(h, TICK_MS * INT64_C(1000000));
    pthread_mutex_unlock(&h->lock);
    return has_ended(h, atomic_load(&h->begun));
}

/* A failed start is over when everything in flight is: the next one begins anew. */
static bool is_over(gy_host_run *h, uint64_t start)
{
    return has_ended(h, atomic_load(&h->failed) <= start ? atomic_load(&h->begun) : start);
}

/* The caller holds the lock, which whoever is told must not wait for. */
static void look_around(gy_host_run *h)
{
    if (!h->job->look)
        return;
    pthread_mutex_unlock(&h->lock);
    h->job->look(h->job->look_of);
    pthread_mutex_lock(&h->lock);
}

/* The caller holds the lock. Until the start is over or given up. */
static void wait_watching(gy_host_run *h, uint64_t start)
{
    watch w = { .still = gy_waited_begin(), .seen = sum_progress(h) };
    int64_t tick = h->job->deadline_ns && h->job->deadline_ns < TICK_MS * INT64_C(1000000)
                       ? h->job->deadline_ns / 4 + 1000
                       : TICK_MS * INT64_C(1000000);
    while (!is_over(h, start)) {
        wait_tick(h, tick);
        look_around(h);
        if (!is_over(h, start) && look(h, &w, start))
            return;
    }
}

/* The text is what comes behind "start 3 ended ". */
static gantry_status fail_canceled(const gy_host_run *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    uint32_t op = h->failure.op;
    gy_text name = { 0 };
    gy_op_text(&name, s, op);
    gy_fail(err, GANTRY_E_CANCELED, NULL, "before op %u, \"%s\", on device \"%s\"", op,
            name.failed || !name.length ? "?" : name.at, s->machine->device[gy_op_device(s, &s->ops.at[op], 0)].id);
    gy_text_free(&name);
    return GANTRY_E_CANCELED;
}

static gantry_status failure_of(gy_host_run *h, gantry_error *err)
{
    if (gy_network_is_lost(h->job->network)) /* whatever ended because of it */
        return gy_network_fail(h->job->network, err);
    if (h->failure.canceled)
        return fail_canceled(h, err);
    if (!h->failure.timeout)
        return gy_host_ops_fail(&h->ops, h->failure.op, h->failure.why, err);
    if (err)
        *err = h->failure.error;
    return h->failure.error.status;
}

gantry_status gy_host_finish(gy_host_run *h, uint64_t start, int64_t *elapsed_ns, gantry_error *err)
{
    for (unsigned polls = 0; !has_ended(h, start) && gy_wait_awake(polls); polls++) {
    }
    gantry_status status = GANTRY_OK;
    pthread_mutex_lock(&h->lock);
    wait_watching(h, start);
    if (atomic_load(&h->failed) <= start)
        status = failure_of(h, err);
    else
        *elapsed_ns = h->end_ns[start % h->ring] - h->begin_ns[start % h->ring];
    pthread_mutex_unlock(&h->lock);
    return status;
}

static bool writes_output(const gantry_schedule *s, uint32_t op, uint32_t buffer)
{
    for (uint32_t k = 0; k < s->ops.at[op].uses; k++) {
        const gy_instance *i = &s->instances.at[s->use.at[s->ops.at[op].use + k].instance];
        if (i->space == GY_SPACE_OUTPUT && s->values.at[i->value].buffer == buffer)
            return true;
    }
    return false;
}

/* A thread carries its steps out in order, so it has left out all from the first one on. */
bool gy_host_wrote(const gy_host_run *h, uint64_t start, uint32_t buffer)
{
    for (uint32_t d = 0; d < h->workers; d++) {
        const gy_worker *w = &h->worker[d];
        size_t from = w->left_start < start ? 0 : w->left_start == start ? w->left_step : w->steps->count;
        for (size_t i = from; i < w->steps->count; i++)
            if (w->steps->at[i].leads && writes_output(h->job->schedule, w->steps->at[i].op, buffer))
                return false;
    }
    return true;
}
