/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a start. The thread that waits also watches that the start moves. */
#include "backends/cuda/submit/submit.h"

#include "backends/cuda/resident/resident.h"
#include "backends/cuda/stream/gates.h"
#include "backends/cuda/times/times.h"
#include "base/clock.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

enum { DRAIN_MS = 500 };

static gy_cuda_turn *turn_of(gy_cuda *h, uint64_t start)
{
    return &h->turn[gy_job_turn(h->job, start)];
}

/* The progress of a start, as far as events show: `op` is the first one that is not known to have ended. */
typedef struct progress {
    uint32_t op;
    gy_waited still; /* since the last event that was seen */
} progress;

/* Moves the progress on. In graph replay no events show what happens inside. */
static void look(gy_cuda *h, uint64_t start, progress *p)
{
    size_t ops = h->job->schedule->ops.count;
    if (gy_resident_on(h)) {
        p->still = gy_resident_look(h, &p->op) ? gy_waited_begin() : p->still;
        return;
    }
    while (!h->graphs && p->op < ops) {
        uint32_t event = h->op[p->op].event;
        if (event != GY_NONE && h->d.cuEventQuery(h->event[(size_t)event * h->ring + start % h->ring]) != CUDA_SUCCESS)
            return;
        p->op++;
        p->still = event != GY_NONE ? gy_waited_begin() : p->still;
    }
}

/* Writes "op 3, "blur[1]"", or names the first op with an event that is not known to have ended. */
static void name_op_of(const gy_cuda *h, const progress *p, char *to, size_t size)
{
    const gantry_schedule *s = h->job->schedule;
    if (gy_resident_on(h) && p->op >= s->ops.count) {
        snprintf(to, size, "%zu ops, of which workers have ended all of theirs", s->ops.count);
        return;
    }
    if (h->graphs || p->op >= s->ops.count) {
        snprintf(to, size, "a graph of %zu ops", s->ops.count);
        return;
    }
    gy_text name = { 0 };
    gy_op_text(&name, s, p->op);
    snprintf(to, size, "op %u, \"%s\", on device \"%s\", is the first not known to have ended", p->op,
             name.failed || !name.length ? "?" : name.at, s->machine->device[gy_op_device(s, &s->ops.at[p->op], 0)].id);
    gy_text_free(&name);
}

void gy_cuda_tell(void *run, char *text, size_t size)
{
    const gy_cuda *h = run;
    const gantry_schedule *s = h->job->schedule;
    uint32_t op = atomic_load_explicit(&h->at, memory_order_relaxed);
    text[0] = 0;
    if (op == GY_NONE)
        return;
    if (op >= s->ops.count) {
        snprintf(text, size, "a start of %zu ops", s->ops.count);
        return;
    }
    gy_text name = { 0 };
    gy_op_text(&name, s, op);
    snprintf(text, size, "op %u, \"%.100s\", on device \"%.60s\"", op, name.failed || !name.length ? "?" : name.at,
             s->machine->device[gy_op_device(s, &s->ops.at[op], 0)].id);
    gy_text_free(&name);
}

/* With the start of a series. */
static void name_op(const gy_cuda *h, const progress *p, char *to, size_t size)
{
    name_op_of(h, p, to, size);
    const gy_resident *r = gy_resident_on(h) ? h->resident : NULL;
    size_t at = strlen(to);
    if (r && r->series.starts > 1 && p->op < h->job->schedule->ops.count)
        snprintf(to + at, size - at, ", in start %u of a series of %llu", r->seen_epoch - (uint32_t)r->first + 1,
                 (unsigned long long)r->series.starts);
}

static gantry_status fail_lost(gy_cuda *h, uint64_t start, CUresult code, const progress *p, gantry_error *err)
{
    char what[320], op[260];
    name_op(h, p, op, sizeof op);
    snprintf(what, sizeof what, "start %llu failed; %s; reported", (unsigned long long)start, op);
    gy_cuda_fail(h, code, h->end_stream.device, what, err);
    if (h->broken.status == GANTRY_OK && err)
        h->broken = *err; /* what the end of a start says is no matter of one call */
    return GANTRY_E_DEVICE;
}

static void raise_all(gy_cuda *h)
{
    gy_counted_raise(h);
    if (gy_cuda_by_gates(h))
        gy_gates_raise(h);
}

void gy_cuda_release(gy_cuda *h)
{
    gy_cuda_quieten_all(h, raise_all);
    gy_counted_clear(h);
    if (gy_cuda_by_gates(h))
        gy_gates_clear(h);
}

/* Kernels that wait for their peers are let go. Other starts that are in flight have no results either. NCCL waits for
 * workers that are behind its kernels when it is aborted, so these are let go first; and what came behind it, then.
 */
static void end_waiters(gy_cuda *h, const gantry_error *why)
{
    bool meets = (h->counted || gy_cuda_by_gates(h)) && !h->broken.status;
    bool resident = gy_resident_on(h) && !h->broken.status;
    if (meets)
        gy_cuda_release(h);
    if (resident && gy_nccl_on(h))
        gy_resident_let_go(h);
    gy_nccl_end(h, why);
    if (resident)
        gy_resident_end(h, false);
    if ((meets || resident) && !h->broken.status) {
        h->broken = *why;
        h->aborted = true;
    }
}

/* The op, and what it waits for, as it is now. */
static void tell_still(gy_cuda *h, uint64_t start, progress *p, char *to, size_t size)
{
    bool lost = gy_cuda_lost(h), resident = gy_resident_on(h);
    if (resident && !lost) {
        h->resident->looked_ns = 0;
        gy_resident_look(h, &p->op);
    }
    name_op(h, p, to, size);
    if (lost)
        return;
    size_t at = strlen(to);
    uint32_t op = gy_counted_tell(h, to, size);
    if (gy_cuda_by_gates(h))
        gy_gates_tell_stuck(h, op, to + at, size - at);
    if (resident)
        gy_resident_tell(h, gy_job_turn(h->job, start), p->op, to, size);
}

static gantry_status fail_time(gy_cuda *h, uint64_t start, progress *p, const char *limit, const char *remedy,
                               gantry_error *err)
{
    char op[368]; /* leaves room for the limit and the remedy in an error */
    tell_still(h, start, p, op, sizeof op);
    h->stuck = true;
    gantry_error why = { 0 };
    gantry_status status = gy_fail(&why, GANTRY_E_TIMEOUT, NULL, "%s; %s%s", limit, op, remedy);
    end_waiters(h, &why);
    if (err)
        *err = why;
    return status;
}

/* Fails a start that no longer moves, or has passed its deadline. Where NCCL may wait for another rank, that one is
 * told by heartbeats; of a graph nobody knows, so it may take twice what the caller allows. */
static gantry_status watch(gy_cuda *h, uint64_t start, progress *p, gantry_error *err)
{
    int64_t began = turn_of(h, start)->begin_ns;
    char limit[96];
    if (h->job->look)
        h->job->look(h->job->look_of);
    look(h, start, p);
    int64_t still = gy_waited_look(&p->still);
    GY_TRY(gy_nccl_watch(h, p->op, err));
    if (h->job->deadline_ns && gy_now_ns() - began > h->job->deadline_ns) {
        snprintf(limit, sizeof limit, "the deadline of %.3f ms passed", (double)h->job->deadline_ns / 1e6);
        return fail_time(h, start, p, limit, "", err);
    }
    atomic_store_explicit(&h->at, h->graphs ? (uint32_t)h->job->schedule->ops.count : p->op, memory_order_relaxed);
    if (gy_nccl_waits_for_ranks(h, p->op) && !(h->graphs && h->job->timeout_ns && still > 2 * gy_cuda_patience(h))) {
        p->still = h->graphs ? p->still : gy_waited_begin(); /* heartbeats tell of ranks that do not come to it */
        return GANTRY_OK;
    }
    if (!h->job->timeout_ns && atomic_load_explicit(&h->at_work, memory_order_relaxed))
        p->still = gy_waited_begin(); /* how long functions on the host take nobody knows */
    else if (still > gy_cuda_patience(h)) {
        snprintf(limit, sizeof limit, "no progress for %.1f s, where %g s are allowed", (double)still / 1e9,
                 (double)(gy_cuda_patience(h) / 1000) / 1e6);
        return fail_time(h, start, p, limit, "; " GY_MORE_TIME, err);
    }
    return GANTRY_OK;
}

/* *seen_ns: when the end was seen; 0: it had come before it was waited for. */
static gantry_status wait_end(gy_cuda *h, uint64_t start, int64_t *seen_ns, gantry_error *err)
{
    progress p = { .still = gy_waited_begin() };
    for (unsigned polls = 0;; polls++) {
        CUresult code = gy_resident_ask(h, turn_of(h, start));
        if (code == CUDA_SUCCESS) {
            *seen_ns = polls ? gy_now_ns() : 0;
            return GANTRY_OK;
        }
        if (code != CUDA_ERROR_NOT_READY)
            return fail_lost(h, start, code, &p, err);
        gantry_status status = polls % 64 == 63 ? watch(h, start, &p, err) : GANTRY_OK;
        if (status)
            return status;
        gy_cuda_rest(polls);
    }
}

/* Is a status word of the turn not 0? They lie one behind the other, so that this takes little beside a look at each
 * op. */
static bool has_failed(const gy_cuda *h, uint32_t turn)
{
    int32_t any = 0;
    for (uint32_t i = 0; i < h->devices; i++) {
        const gy_cuda_device *d = &h->device[i];
        for (uint32_t k = 0; d->gpu && k < d->launches; k++)
            any |= d->host_status[turn * d->launches + k];
    }
    return any != 0;
}

/* The first op, by position, whose status word is not 0. */
static uint32_t failed_word(const gy_cuda *h, uint32_t turn, int32_t *word)
{
    const gantry_schedule *s = h->job->schedule;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (!h->op[i].call)
            continue;
        const gy_cuda_device *d = &h->device[gy_op_device(h->job->schedule, op, 0)];
        if (d->gpu && d->host_status[turn * d->launches + h->op[i].word]) {
            *word = d->host_status[turn * d->launches + h->op[i].word];
            return i;
        }
    }
    return GY_NONE;
}

/* Finds a host function or kernel that failed. In graph replay, or with several starts in flight, an earlier start may
 * get the failure of a later one: they fail together anyway. */
static gantry_status failure_of(gy_cuda *h, uint64_t start, gantry_error *err)
{
    uint32_t op = atomic_load(&h->failed.op);
    if (gy_network_is_lost(h->job->network)) /* whatever ended because of it */
        return gy_network_fail(h->job->network, err);
    if (op != GY_NONE && h->failed.status == GANTRY_E_CANCELED)
        return gy_cuda_op_cut(h, op, err);
    if (op != GY_NONE)
        return gy_cuda_op_fail(h, op, h->failed.status, h->failed.word, err);
    int32_t word = 0;
    uint32_t turn = gy_job_turn(h->job, start);
    op = has_failed(h, turn) ? failed_word(h, turn, &word) : GY_NONE;
    if (op == GY_NONE)
        return GANTRY_OK;
    h->dirty_words = true;
    return gy_cuda_op_fail(h, op, GANTRY_OK, word, err);
}

/* The time of an event of the device, by the host's clock. */
static int64_t time_of(gy_cuda *h, CUevent event, uint32_t device)
{
    const gy_cuda_device *d = &h->device[device];
    float ms = 0;
    h->d.event_elapsed(&ms, d->base, event);
    return d->base_ns + (int64_t)((double)ms * 1e6);
}

/* As long as whoever makes a start and waits for it has waited; events of the GPU do not count what passes before the
 * first of them and behind the last, some 6 us. They have to do where other starts were in flight, or the end came
 * while nobody waited. Where that happens for the first time since an end was seen, none were recorded. */
static int64_t elapsed_of(gy_cuda *h, const gy_cuda_turn *t, int64_t seen_ns)
{
    h->ends_unseen = !seen_ns;
    if (t->called_ns && (seen_ns || t->end == t->plain_end))
        return (seen_ns ? seen_ns : gy_now_ns()) - t->called_ns;
    return time_of(h, t->end, h->end_stream.device) - t->begin_ns;
}

static void take_times(gy_cuda *h, uint64_t start)
{
    const gantry_schedule *s = h->job->schedule;
    int64_t begin = turn_of(h, start)->begin_ns;
    uint32_t turn = gy_job_turn(h->job, start);
    bool by_cupti = gy_cupti_take(h, begin);
    for (uint32_t i = 0; h->clock && i < s->ops.count; i++) {
        if (by_cupti && !gy_cupti_leaves_to_events(h, i))
            continue;
        uint32_t device = gy_cuda_lane_of(h, i, 0)->queue.device;
        h->time[i].start = time_of(h, *gy_cuda_clock(h, turn, i, 0), device) - begin;
        h->time[i].end = time_of(h, *gy_cuda_clock(h, turn, i, 1), device) - begin;
    }
}

gantry_status gy_cuda_finish(gy_cuda *h, uint64_t start, int64_t *elapsed_ns, gantry_error *err)
{
    if (h->broken.status) {
        if (err)
            *err = h->broken;
        h->ended = gy_cuda_lost(h) ? h->begun : h->ended;
        return h->broken.status;
    }
    int64_t seen_ns = 0;
    gantry_status status = wait_end(h, start, &seen_ns, err);
    atomic_store_explicit(&h->at, GY_NONE, memory_order_relaxed);
    status = status ? status : gy_nccl_watch(h, GY_NONE, err); /* kernels that gave up have ended, too */
    if (gy_cuda_lost(h)) {
        gy_cuda_settle_all(h); /* arrays of the caller are in use until then, whatever the driver said */
        h->ended = h->begun;
    }
    if (status)
        return status;
    h->ended = start;
    status = failure_of(h, start, err);
    if (status) {
        gy_cuda_drain(h);
        return status;
    }
    const gy_cuda_turn *t = turn_of(h, start);
    for (uint32_t i = 0; i < h->turns && !t->by_stream; i++)
        if (i == gy_job_turn(h->job, start) || gy_resident_takes_turns(h))
            gy_cuda_mirrors_out(h, i);
    *elapsed_ns = elapsed_of(h, t, seen_ns);
    take_times(h, start);
    gy_replay_record(h, *elapsed_ns);
    return GANTRY_OK;
}

static bool all_ended(gy_cuda *h)
{
    for (; h->ended < h->begun; h->ended++) {
        CUresult code = gy_resident_ask(h, turn_of(h, h->ended + 1));
        if (code == CUDA_ERROR_NOT_READY)
            return false;
    }
    h->stuck = false;
    return true;
}

bool gy_cuda_idle(gy_cuda *h)
{
    gy_waited waited = gy_waited_begin();
    for (unsigned polls = 0; !all_ended(h); polls++) {
        if (gy_waited_look(&waited) > DRAIN_MS * INT64_C(1000000))
            return false;
        gy_cuda_rest(polls);
    }
    return true;
}

void gy_cuda_drain(gy_cuda *h)
{
    gy_waited waited = gy_waited_begin();
    for (unsigned polls = 0; !all_ended(h) && gy_waited_look(&waited) < gy_cuda_patience(h); polls++)
        gy_cuda_rest(polls);
}
