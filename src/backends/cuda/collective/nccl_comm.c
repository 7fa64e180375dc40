/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of a run, one clique for each list of GPUs. */
#include "backends/cuda/collective/nccl.h"

#include "base/clock.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

/* The patience for each step. */
#define LAUNCH_NS INT64_C(30000000000)
#define CLOSE_NS  INT64_C(10000000000)

gy_nccl_clique gy_nccl_clique_of(const gy_nccl *n, const gy_nccl_set *set)
{
    return (gy_nccl_clique){ &n->api, set->comm, set->ranks };
}

gantry_status gy_nccl_fail(const gy_nccl *n, int result, const char *what, gantry_error *err)
{
    return gy_nccl_api_fail(&n->api, result, what, err);
}

/* ---- sets ---- */

static bool is_set_of(const gy_nccl *n, const gy_nccl_set *set, const uint32_t *device, uint32_t ranks)
{
    bool same = set->ranks == ranks;
    for (uint32_t i = 0; same && i < ranks; i++)
        same = gy_nccl_same_gpu(n->h, set->device[i], device[i]);
    return same;
}

uint32_t gy_nccl_set_with(gy_nccl *n, const uint32_t *device, uint32_t ranks)
{
    for (uint32_t i = 0; i < n->set.count; i++)
        if (is_set_of(n, &n->set.at[i], device, ranks))
            return i;
    gy_nccl_set set = { .ranks = ranks };
    set.device = gy_arena_calloc(&n->h->arena, ranks, sizeof *set.device);
    set.comm = gy_arena_calloc(&n->h->arena, ranks, sizeof *set.comm);
    if (!set.device || !set.comm || !gy_vec_push(&n->set, set))
        return GY_NONE;
    memcpy(set.device, device, ranks * sizeof *device);
    return (uint32_t)n->set.count - 1;
}

uint32_t gy_nccl_set_of(gy_nccl *n, uint32_t op)
{
    const gantry_schedule *s = n->h->job->schedule;
    const gy_op *o = &s->ops.at[op];
    uint32_t *device = gy_arena_calloc(&n->h->arena, o->lanes, sizeof *device);
    for (uint32_t i = 0; device && i < o->lanes; i++)
        device[i] = gy_op_device(s, o, i);
    return device ? gy_nccl_set_with(n, device, o->lanes) : GY_NONE;
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

/* NCCL has a current device of its own, so nothing is known of it. */
gantry_status gy_nccl_use_rank(void *user, uint32_t rank)
{
    const gy_nccl_maker *m = user;
    m->n->h->current = GY_NONE;
    gantry_status status = gy_cuda_use(m->n->h, m->set->device[rank], NULL);
    m->n->h->current = GY_NONE;
    return status;
}

void gy_nccl_unmade(const gy_nccl *n, const gy_nccl_set *set, int result, gantry_error *why)
{
    char what[200], gpus[120];
    name_set(n, set, gpus, sizeof gpus);
    snprintf(what, sizeof what, "no communicator for %s", gpus);
    if (result == GY_NCCL_IN_PROGRESS)
        gy_fail(why, GANTRY_E_DEVICE, NULL, "%s: NCCL: it was not made within %d s", what,
                (int)(GY_NCCL_MAKE_NS / 1000000000));
    else
        gy_nccl_fail(n, result, what, why);
}

static void give_up(gy_nccl *n, const gy_nccl_set *set, int result)
{
    gantry_error why = { 0 };
    gy_nccl_unmade(n, set, result, &why);
    snprintf(n->why, sizeof n->why, "%s", why.text);
    gy_nccl_abort(n);
    n->off = true;
    gy_nccl_assign(n);
}

void gy_nccl_begin(gy_nccl *n)
{
    if (n->off || n->begun_ns || n->made == n->set.count)
        return;
    gy_nccl_set *set = &n->set.at[n->made];
    n->begun_ns = gy_now_ns();
    int result = gy_nccl_clique_begin(gy_nccl_clique_of(n, set), gy_nccl_use_rank, &(gy_nccl_maker){ n, set });
    if (!gy_nccl_fine(result))
        give_up(n, set, result);
}

int gy_nccl_state(const gy_nccl *n, uint32_t set)
{
    return gy_nccl_clique_state(gy_nccl_clique_of(n, &n->set.at[set]));
}

int gy_nccl_settle(gy_nccl *n, uint32_t set)
{
    return gy_nccl_clique_settle(gy_nccl_clique_of(n, &n->set.at[set]), gy_now_ns() + LAUNCH_NS);
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
    if (n->h->step)
        return gy_nccl_meet(n, err);
    int64_t deadline = n->h->job->deadline_ns, called = gy_now_ns();
    while (!n->off && n->made < n->set.count) {
        gy_nccl_set *set = &n->set.at[n->made];
        gy_nccl_begin(n);
        int64_t until = n->begun_ns + GY_NCCL_MAKE_NS;
        bool hurry = deadline && called + deadline < until;
        int state = n->off ? GY_NCCL_SUCCESS
                           : gy_nccl_clique_settle(gy_nccl_clique_of(n, set), hurry ? called + deadline : until);
        if (n->off)
            break;
        if (state == GY_NCCL_IN_PROGRESS && hurry)
            return fail_deadline(n, set, err);
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
    for (uint32_t t = 0; t < n->h->turns; t++)
        gy_graph_free(n->h, t); /* what runs of it is freed when it ends */
    for (size_t i = 0; i < n->set.count; i++)
        gy_nccl_clique_abort(gy_nccl_clique_of(n, &n->set.at[i]));
    n->h->current = GY_NONE;
    n->made = 0;
    n->begun_ns = 0;
    n->bad = false;
}

/* Called when no work of NCCL runs, and no graph holds any. */
void gy_nccl_close(gy_nccl *n)
{
    bool well = !n->h->broken.status && !n->bad && n->made == n->set.count;
    for (size_t i = 0; i < n->set.count && well; i++)
        well = gy_nccl_clique_finalize(gy_nccl_clique_of(n, &n->set.at[i]), gy_now_ns() + CLOSE_NS);
    for (size_t i = 0; i < n->set.count && well; i++)
        gy_nccl_clique_destroy(gy_nccl_clique_of(n, &n->set.at[i]));
    gy_nccl_abort(n); /* those that are left */
    gy_vec_free(&n->set);
}
