/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators, one for each list of GPUs, never blocking: a call that takes its time returns "in progress", and the
 * communicator is asked until it says otherwise, so that nothing hangs that cannot be ended. */
#include "backends/cuda/nccl.h"

#include "base/error.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Making one takes seconds; what is longer than this does not come. */
#define MAKE_NS   INT64_C(120000000000)
#define LAUNCH_NS INT64_C(30000000000)
#define CLOSE_NS  INT64_C(10000000000)

/*
 * Kernels of NCCL wait for those of the other ranks, so two runs whose kernels start in another order on one GPU than
 * on the next would wait for each other forever, and a group call that is half launched must not meet the launches of
 * another. So one start at a time submits work of NCCL in this process, under this lock, and work of NCCL on a GPU
 * waits for all that other runs with such work have submitted for that GPU before: the same order on every GPU. This is
 * the one piece of state that is not a run's; the list holds runs from their first start until they are closed.
 *
 * What this does not cover: NCCL in other parts of the program, and other programs, on the same GPUs.
 */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static gy_nccl *runs;

static void rest(unsigned turn)
{
    if (turn > 1000) {
        nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
    } else if (turn > 100) {
        sched_yield();
    }
}

/* ---- errors ---- */

gantry_status gy_nccl_fail(const gy_nccl *n, int result, const char *what, gantry_error *err)
{
    const char *text = n->api.ncclGetErrorString(result), *last = n->api.ncclGetLastError(NULL);
    bool more = last && last[0];
    gantry_status status = gy_fail(err, GANTRY_E_DEVICE, NULL, "%s: NCCL: %s (%d)%s%s", what, text ? text : "no text",
                                   result, more ? ": " : "", more ? last : "");
    if (err) {
        err->native = result;
        for (char *c = err->text; *c; c++) {
            *c = *c == '\n' ? ' ' : *c; /* ends with one */
        }
        for (size_t length = strlen(err->text); length && err->text[length - 1] == ' '; length--) {
            err->text[length - 1] = 0;
        }
    }
    return status;
}

/* ---- sets ---- */

static bool is_set_of(const gy_nccl *n, const gy_nccl_set *set, const gy_op *op)
{
    bool same = set->ranks == op->lanes;
    for (uint32_t i = 0; same && i < set->ranks; i++) {
        uint32_t device = gy_op_device(n->h->job->schedule, op, i);
        same = n->h->device[set->device[i]].id == n->h->device[device].id;
    }
    return same;
}

uint32_t gy_nccl_set_of(gy_nccl *n, uint32_t op)
{
    const gantry_schedule *s = n->h->job->schedule;
    const gy_op *o = &s->ops.at[op];
    for (uint32_t i = 0; i < n->set.count; i++) {
        if (is_set_of(n, &n->set.at[i], o)) {
            return i;
        }
    }
    gy_nccl_set set = { .ranks = o->lanes };
    set.device = gy_arena_calloc(&n->h->arena, set.ranks, sizeof *set.device);
    set.comm = gy_arena_calloc(&n->h->arena, set.ranks, sizeof *set.comm);
    if (!set.device || !set.comm || !gy_vec_push(&n->set, set)) {
        return GY_NONE;
    }
    for (uint32_t i = 0; i < set.ranks; i++) {
        set.device[i] = gy_op_device(s, o, i);
    }
    return (uint32_t)n->set.count - 1;
}

/* "GPUs gpu0, gpu1" */
static void name_set(const gy_nccl *n, const gy_nccl_set *set, char *to, size_t size)
{
    size_t length = (size_t)snprintf(to, size, "GPUs");
    for (uint32_t i = 0; i < set->ranks && length < size; i++) {
        length += (size_t)snprintf(to + length, size - length, "%s %s", i ? "," : "",
                                   n->h->job->schedule->machine->device[set->device[i]].id);
    }
}

/* ---- making ---- */

static bool is_fine(int result)
{
    return result == GY_NCCL_SUCCESS || result == GY_NCCL_IN_PROGRESS;
}

/* All ranks in one group. GPUs are those whose context is current. */
static int make_ranks(gy_nccl *n, gy_nccl_set *set)
{
    gy_nccl_config config = GY_NCCL_CONFIG;
    gy_nccl_id id;
    int result = n->api.ncclGetUniqueId(&id);
    result = is_fine(result) ? n->api.ncclGroupStart() : result;
    if (!is_fine(result)) {
        return result;
    }
    for (uint32_t i = 0; i < set->ranks && is_fine(result); i++) {
        result = gy_cuda_use(n->h, set->device[i], NULL)
                     ? 1 /* ncclUnhandledCudaError */
                     : n->api.ncclCommInitRankConfig(&set->comm[i], (int)set->ranks, id, (int)i, &config);
        n->h->current = GY_NONE; /* NCCL has a current device of its own */
    }
    int end = n->api.ncclGroupEnd();
    return is_fine(result) ? end : result;
}

static void give_up(gy_nccl *n, const gy_nccl_set *set, int result)
{
    char what[200], gpus[120];
    gantry_error why = { 0 };
    name_set(n, set, gpus, sizeof gpus);
    snprintf(what, sizeof what, "no communicator for %s", gpus);
    if (result == GY_NCCL_IN_PROGRESS) {
        gy_fail(&why, GANTRY_E_DEVICE, NULL, "%s: NCCL: it was not made within %d s", what,
                (int)(MAKE_NS / 1000000000));
    } else {
        gy_nccl_fail(n, result, what, &why);
    }
    snprintf(n->why, sizeof n->why, "%s", why.text);
    gy_nccl_abort(n);
    n->off = true;
}

void gy_nccl_begin(gy_nccl *n)
{
    if (n->off || n->begun_ns || n->made == n->set.count) {
        return;
    }
    gy_nccl_set *set = &n->set.at[n->made];
    n->begun_ns = gy_cuda_now();
    int result = make_ranks(n, set);
    if (!is_fine(result)) {
        give_up(n, set, result);
    }
}

/* The worst of all ranks: an error, else in progress, else success. */
static int state_of(const gy_nccl *n, const gy_nccl_set *set)
{
    int worst = GY_NCCL_SUCCESS;
    for (uint32_t i = 0; i < set->ranks; i++) {
        int state = GY_NCCL_SUCCESS;
        int result = set->comm[i] ? n->api.ncclCommGetAsyncError(set->comm[i], &state) : GY_NCCL_SUCCESS;
        state = is_fine(result) ? state : result;
        if (!is_fine(state)) {
            return state;
        }
        worst = state != GY_NCCL_SUCCESS ? state : worst;
    }
    return worst;
}

int gy_nccl_state(const gy_nccl *n, uint32_t set)
{
    return state_of(n, &n->set.at[set]);
}

/* Until it is no longer in progress, or the time is over. */
static int wait_for(const gy_nccl *n, const gy_nccl_set *set, int64_t until)
{
    int state = state_of(n, set);
    for (unsigned turn = 0; state == GY_NCCL_IN_PROGRESS && gy_cuda_now() < until; turn++) {
        rest(turn);
        state = state_of(n, set);
    }
    return state;
}

int gy_nccl_settle(gy_nccl *n, uint32_t set)
{
    return wait_for(n, &n->set.at[set], gy_cuda_now() + LAUNCH_NS);
}

static gantry_status fail_deadline(const gy_nccl *n, const gy_nccl_set *set, gantry_error *err)
{
    char gpus[120];
    name_set(n, set, gpus, sizeof gpus);
    return gy_fail(err, GANTRY_E_TIMEOUT, NULL,
                   "the deadline of %.3f ms passed; NCCL is still making the communicator for %s",
                   (double)n->h->job->deadline_ns / 1e6, gpus);
}

gantry_status gy_nccl_ready(gy_nccl *n, gantry_error *err)
{
    int64_t deadline = n->h->job->deadline_ns, called = gy_cuda_now();
    while (!n->off && n->made < n->set.count) {
        gy_nccl_set *set = &n->set.at[n->made];
        gy_nccl_begin(n);
        int64_t until = n->begun_ns + MAKE_NS;
        bool hurry = deadline && called + deadline < until;
        int state = n->off ? GY_NCCL_SUCCESS : wait_for(n, set, hurry ? called + deadline : until);
        if (n->off) {
            break;
        }
        if (state == GY_NCCL_IN_PROGRESS && hurry) {
            return fail_deadline(n, set, err);
        }
        if (state != GY_NCCL_SUCCESS) {
            give_up(n, set, state);
            break;
        }
        n->made++;
        n->begun_ns = 0;
    }
    return GANTRY_OK;
}

/* ---- ending ---- */

void gy_nccl_abort(gy_nccl *n)
{
    for (uint32_t t = 0; t < n->h->turns; t++) {
        gy_graph_free(n->h, t); /* what runs of it is freed when it ends */
    }
    for (size_t i = 0; i < n->set.count; i++) {
        gy_nccl_set *set = &n->set.at[i];
        /* In one group, all ranks are told before any is waited for. */
        bool group = n->api.ncclGroupStart() == GY_NCCL_SUCCESS;
        for (uint32_t r = 0; r < set->ranks; r++) {
            if (set->comm[r]) {
                n->api.ncclCommAbort(set->comm[r]);
                set->comm[r] = NULL;
            }
        }
        if (group) {
            n->api.ncclGroupEnd();
        }
    }
    n->h->current = GY_NONE;
    n->made = 0;
    n->begun_ns = 0;
    n->bad = false;
}

static bool finalize(gy_nccl *n, gy_nccl_set *set)
{
    int result = GY_NCCL_SUCCESS;
    for (uint32_t r = 0; r < set->ranks && is_fine(result); r++) {
        result = n->api.ncclCommFinalize(set->comm[r]);
    }
    result = is_fine(result) ? wait_for(n, set, gy_cuda_now() + CLOSE_NS) : result;
    return result == GY_NCCL_SUCCESS;
}

/* Nothing of it runs, and no graph has work of it. */
void gy_nccl_close(gy_nccl *n)
{
    bool well = !n->h->broken.status && !n->bad && n->made == n->set.count;
    for (size_t i = 0; i < n->set.count && well; i++) {
        well = finalize(n, &n->set.at[i]);
    }
    for (size_t i = 0; i < n->set.count && well; i++) {
        gy_nccl_set *set = &n->set.at[i];
        for (uint32_t r = 0; r < set->ranks; r++) {
            n->api.ncclCommDestroy(set->comm[r]);
            set->comm[r] = NULL;
        }
    }
    gy_nccl_abort(n); /* those that are left */
    gy_vec_free(&n->set);
}

/* ---- the process ---- */

static bool shares_gpu(const gy_nccl *a, const gy_nccl *b)
{
    for (size_t i = 0; i < a->set.count; i++) {
        for (uint32_t r = 0; r < a->set.at[i].ranks; r++) {
            CUdevice id = a->h->device[a->set.at[i].device[r]].id;
            for (size_t k = 0; k < b->set.count; k++) {
                for (uint32_t q = 0; q < b->set.at[k].ranks; q++) {
                    if (b->h->device[b->set.at[k].device[q]].id == id) {
                        return true;
                    }
                }
            }
        }
    }
    return false;
}

gantry_status gy_nccl_await_others(gy_cuda *h, gy_queue queue, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    if (!h->nccl || !h->nccl->locked) {
        return GANTRY_OK;
    }
    for (gy_nccl *other = runs; other && status == GANTRY_OK; other = other->next) {
        if (other == h->nccl || !other->end || !shares_gpu(other, h->nccl)) {
            continue;
        }
        status = gy_cuda_use(h, queue.device, err);
        CUresult code = status ? CUDA_SUCCESS : h->d.cuStreamWaitEvent(queue.stream, other->end, 0);
        status =
            code == CUDA_SUCCESS ? status : gy_cuda_fail(h, code, queue.device, "waiting for another run's NCCL", err);
    }
    return status;
}

void gy_nccl_part(gy_cuda *h)
{
    pthread_mutex_lock(&order);
    gy_nccl **link = &runs;
    while (*link && *link != h->nccl) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = (*link)->next;
    }
    pthread_mutex_unlock(&order);
}

gantry_status gy_nccl_enter(gy_cuda *h, gantry_error *err)
{
    gy_nccl *n = h->nccl;
    gantry_status status = n ? gy_nccl_ready(n, err) : GANTRY_OK;
    if (!n || status || n->off || n->set.count == 0) {
        return status;
    }
    pthread_mutex_lock(&order);
    bool listed = false;
    for (gy_nccl *run = runs; run; run = run->next) {
        listed = listed || run == n;
    }
    if (!listed) {
        n->next = runs;
        runs = n;
    }
    n->locked = true;
    return GANTRY_OK;
}

void gy_nccl_leave(gy_cuda *h, CUevent end)
{
    gy_nccl *n = h->nccl;
    if (n && n->locked) {
        n->end = end ? end : n->end;
        n->locked = false;
        pthread_mutex_unlock(&order);
    }
}
