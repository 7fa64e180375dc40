/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/host/host.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include <errno.h>
#include <string.h>

static bool make_arrays(gy_host_run *h)
{
    const gantry_schedule *s = h->job->schedule;
    h->ring = h->job->turns;
    h->slot = gy_calloc(h->plan.slots, sizeof *h->slot);
    h->meeting = gy_calloc(h->plan.meetings, sizeof *h->meeting);
    h->worker = gy_calloc(h->plan.devices, sizeof *h->worker);
    h->ended_by = gy_calloc(h->ring, sizeof *h->ended_by);
    h->begin_ns = gy_calloc(h->ring, sizeof *h->begin_ns);
    h->end_ns = gy_calloc(h->ring, sizeof *h->end_ns);
    h->time = h->job->record ? gy_calloc(s->ops.count, sizeof *h->time) : NULL;
    return h->slot && h->meeting && h->worker && h->ended_by && h->begin_ns && h->end_ns &&
           (h->time || !h->job->record);
}

static void free_arrays(gy_host_run *h)
{
    gy_free(h->slot);
    gy_free(h->meeting);
    gy_free(h->worker);
    gy_free(h->ended_by);
    gy_free(h->begin_ns);
    gy_free(h->end_ns);
    gy_free(h->time);
}

static void make_locks(gy_host_run *h)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->began, NULL);
    pthread_cond_init(&h->ended_some, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void free_locks(gy_host_run *h)
{
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->began);
    pthread_cond_destroy(&h->ended_some);
}

static void stop_threads(gy_host_run *h)
{
    pthread_mutex_lock(&h->lock);
    atomic_store(&h->quit, true);
    pthread_cond_broadcast(&h->began);
    pthread_mutex_unlock(&h->lock);
    for (uint32_t i = 0; i < h->threads; i++)
        pthread_join(h->worker[i].thread, NULL);
    h->workers = h->threads = 0;
}

static gantry_status fail_thread(gy_host_run *h, uint32_t device, int code, gantry_error *err)
{
    char text[96];
    gy_fail(err, GANTRY_E_DEVICE, NULL, "cannot start the thread of device \"%s\": %s",
            h->job->schedule->machine->device[device].id, strerror_r(code, text, sizeof text));
    if (err) {
        err->native = code;
        err->device = (int32_t)device;
    }
    return GANTRY_E_DEVICE;
}

/* Queues of the network have one thread. */
static gantry_status start_thread(gy_host_run *h, gy_worker *w, gantry_error *err)
{
    bool network = w->device >= h->job->schedule->machine->devices;
    if (network && !gy_host_cross_add(h, w))
        return gy_fail_nomem(err);
    if (network && h->queues > 1)
        return GANTRY_OK;
    int code = gy_thread_create(&w->thread, network ? gy_host_network_main : gy_worker_main, network ? (void *)h : w);
    h->threads += !code;
    return code ? fail_thread(h, network ? 0 : w->device, code, err) : GANTRY_OK;
}

static gantry_status start_threads(gy_host_run *h, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t d = 0; d < h->plan.devices && !status; d++) {
        if (h->plan.steps[d].count == 0)
            continue;
        gy_worker *w = &h->worker[h->workers];
        w->host = h;
        w->steps = &h->plan.steps[d];
        w->device = d;
        status = start_thread(h, w, err);
        h->workers += !status; /* read by workers only after a start has begun */
    }
    return status;
}

static gantry_status host_open(void **state, const gy_job *job, gantry_error *err)
{
    gy_host_run *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    h->job = job;
    atomic_init(&h->failed, UINT64_MAX);
    make_locks(h);
    gantry_status status = GANTRY_OK;
    if (job->beside)
        gy_host_memory_borrow(&h->memory, &((const gy_host_run *)job->beside)->memory);
    else
        status = gy_host_memory_make(&h->memory, job, false, err);
    if (status)
        goto free_locks;
    if ((status = gy_host_ops_make(&h->ops, job, &h->memory, err)))
        goto free_memory;
    if (job->network && (status = gy_host_cross_make(h, err)))
        goto free_ops;
    if ((status = job->network ? gy_sync_plan_make_part(&h->plan, job->schedule, &h->part, err)
                               : gy_sync_plan_make(&h->plan, job->schedule, err)))
        goto free_ops;
    if ((status = make_arrays(h) ? GANTRY_OK : gy_fail_nomem(err)))
        goto free_arrays;
    if ((status = start_threads(h, err)))
        goto stop_threads;
    *state = h;
    return GANTRY_OK;
stop_threads:
    stop_threads(h);
free_arrays:
    free_arrays(h);
    gy_sync_plan_free(&h->plan);
free_ops:
    gy_host_cross_free(h);
    gy_host_ops_free(&h->ops);
free_memory:
    gy_host_memory_free(&h->memory);
free_locks:
    free_locks(h);
    gy_free(h);
    return status;
}

static bool host_close(void *state)
{
    gy_host_run *h = state;
    if (!gy_host_idle(h))
        return false;
    if (h->job->network)
        gy_network_ask_no_more(h->job->network, h);
    stop_threads(h);
    free_arrays(h);
    gy_sync_plan_free(&h->plan);
    gy_host_cross_free(h);
    gy_host_ops_free(&h->ops);
    gy_host_memory_free(&h->memory);
    free_locks(h);
    gy_free(h);
    return true;
}

/* From the memory of one rank to that of another: `from` and `to` are each used on their own. */
static gantry_status move(gy_host_run *h, void *to, uint32_t to_rank, const void *from, uint32_t from_rank,
                          size_t bytes, gantry_error *err)
{
    gantry_network *n = h->job->network;
    uint32_t mine = n ? n->rank : 0;
    bool done = true;
    if (!bytes || (mine != to_rank && mine != from_rank))
        return GANTRY_OK;
    if (to_rank == from_rank)
        memcpy(to, from, bytes);
    else if (mine == from_rank)
        done = n->calls->send(from, bytes, to_rank, gy_network_is_lost, n);
    else
        done = n->calls->receive(to, bytes, from_rank, gy_network_is_lost, n);
    return done ? GANTRY_OK : gy_network_fail(n, err);
}

static uint32_t rank_of(const gy_host_run *h, const gy_instance *i)
{
    return h->job->network ? h->job->schedule->machine->memory[i->memory].rank : 0;
}

/* Contents are those of rank 0, or all have them. */
static gantry_status host_put(void *state, uint32_t instance, const void *rows, gantry_error *err)
{
    gy_host_run *h = state;
    const gy_instance *i = &h->job->schedule->instances.at[instance];
    char *to = gy_host_instance_at(&h->memory, h->job, i, 0); /* what persists is there in every start */
    return move(h, to, rank_of(h, i), rows, h->job->alike ? rank_of(h, i) : 0,
                gy_instance_offset(h->job->schedule, i, i->last), err);
}

static gantry_status host_get(void *state, uint32_t instance, void *rows, gantry_error *err)
{
    gy_host_run *h = state;
    const gy_instance *i = &h->job->schedule->instances.at[instance];
    return move(h, rows, 0, gy_host_instance_at(&h->memory, h->job, i, 0), rank_of(h, i),
                gy_instance_offset(h->job->schedule, i, i->last), err);
}

static gantry_status host_share(void *state, void *bytes, uint64_t count, gantry_error *err)
{
    const gy_host_run *h = state;
    return gy_network_share(h->job->network, bytes, count, err);
}

static gantry_status host_advance(void *state, int64_t first, gantry_error *err)
{
    gy_host_run *h = state;
    return gy_host_ops_advance(&h->ops, first, err);
}

static gantry_status host_rebind(void *state, gantry_error *err)
{
    (void)err;
    gy_host_run *h = state;
    gy_host_ops_rebind(&h->ops);
    if (h->crossing)
        gy_host_cross_point(h);
    return GANTRY_OK;
}

/* Failures are forgotten, and what was left out after them. */
static void begin_anew(gy_host_run *h)
{
    atomic_store(&h->failed, UINT64_MAX);
    for (uint32_t i = 0; i < h->workers; i++)
        h->worker[i].left_start = UINT64_MAX;
}

static gantry_status host_begin(void *state, uint64_t start, gantry_error *err)
{
    (void)err;
    gy_host_run *h = state;
    if (h->job->network)
        gy_network_ask(h->job->network, gy_host_tell, h);
    pthread_mutex_lock(&h->lock);
    if (atomic_load(&h->ended) == atomic_load(&h->begun))
        begin_anew(h);
    h->begin_ns[start % h->ring] = gy_now_ns();
    if (h->workers == 0) { /* a schedule without ops */
        h->end_ns[start % h->ring] = h->begin_ns[start % h->ring];
        atomic_store(&h->ended, start);
    }
    atomic_store_explicit(&h->begun, start, memory_order_release);
    pthread_cond_broadcast(&h->began);
    pthread_mutex_unlock(&h->lock);
    return GANTRY_OK;
}

static gantry_status host_finish(void *state, uint64_t start, int64_t *elapsed_ns, gantry_error *err)
{
    return gy_host_finish(state, start, elapsed_ns, err);
}

static bool host_idle(void *state)
{
    return gy_host_idle(state);
}

static bool host_wrote(void *state, uint64_t start, uint32_t buffer)
{
    return gy_host_wrote(state, start, buffer);
}

static const gy_op_time *host_times(void *state)
{
    const gy_host_run *h = state;
    return h->time;
}

const gy_backend gy_backend_host = {
    .name = "host",
    .summary = "virtual devices on the CPU: a thread and a memory each",
    .replay = "threads",
    .executes = true,
    .overlaps = true,
    .ranks = true,
    .open = host_open,
    .close = host_close,
    .put = host_put,
    .get = host_get,
    .advance = host_advance,
    .share = host_share,
    .rebind = host_rebind,
    .begin = host_begin,
    .finish = host_finish,
    .wrote = host_wrote,
    .idle = host_idle,
    .times = host_times,
};
