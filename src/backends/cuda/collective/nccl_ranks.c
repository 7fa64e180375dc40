/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of several processes by NCCL: which, and what it means for the run if one of the processes is lost. All make the
 * same plan, of all ops that cross, as they have to agree on communicators. */
#include "backends/cuda/collective/nccl.h"

#include "base/clock.h"
#include "base/error.h"
#include <time.h>

/* ncclSystemError and ncclRemoteError: what a rank gets whose peer is gone. */
enum { SYSTEM_ERROR = 2, REMOTE_ERROR = 6 };
#define LOOK_NS  INT64_C(20000000)
#define GRACE_NS INT64_C(1000000000) /* for heartbeats, behind their patience */

/* ---- which ops ---- */

static const gy_op *op_of(const gy_cuda *h, uint32_t op)
{
    return &h->job->schedule->ops.at[op];
}

/* Does it touch memories of two ranks? */
static bool crosses(const gy_cuda *h, uint32_t op)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *o = op_of(h, op);
    bool other = false;
    for (uint32_t k = 1; k < o->uses && (gy_op_is_copy(o) || o->kind == GY_OP_COLLECTIVE); k++)
        other = other || gy_part_rank(&h->part, s, o, k) != gy_part_rank(&h->part, s, o, 0);
    return other;
}

/* The GPU in whose memory a use is; GY_NONE: it is in memory of a host. */
static uint32_t gpu_of_use(const gy_cuda *h, uint32_t op, uint32_t k)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_instance *in = &s->instances.at[s->use.at[op_of(h, op)->use + k].instance];
    return in->space == GY_SPACE_SLAB ? h->memory[in->memory].device : GY_NONE;
}

static const char *refuse_copy(const gy_cuda *h, uint32_t op)
{
    const gy_op *o = op_of(h, op);
    return gy_op_has_flag(o)                                                    ? "whether it is made depends on a flag"
           : o->uses != 2                                                       ? "it has several parts"
           : gpu_of_use(h, op, 0) == GY_NONE || gpu_of_use(h, op, 1) == GY_NONE ? "an end of it is in host memory"
                                                                                : NULL;
}

/* Copies are between two of all GPUs that have any, by one communicator, in which `rank` are the ranks of devices. */
typedef struct all_gpus {
    uint32_t *device, *rank, count, set;
} all_gpus;

static gantry_status find_all(gy_nccl *n, all_gpus *all, gantry_error *err)
{
    const gy_cuda *h = n->h;
    all->device = gy_arena_calloc(&n->h->arena, h->devices + 1, sizeof *all->device);
    all->rank = gy_arena_calloc(&n->h->arena, h->devices + 1, sizeof *all->rank);
    if (!all->device || !all->rank)
        return gy_fail_nomem(err);
    for (uint32_t op = 0; op < h->job->schedule->ops.count; op++)
        for (uint32_t k = 0; gy_op_is_copy(op_of(h, op)) && crosses(h, op) && !refuse_copy(h, op) && k < 2; k++)
            all->rank[gpu_of_use(h, op, k)] = 1;
    for (uint32_t i = 0; i < h->devices; i++) {
        if (!all->rank[i])
            continue;
        all->rank[i] = all->count;
        all->device[all->count++] = i;
    }
    all->set = all->count ? gy_nccl_set_with(n, all->device, all->count) : 0;
    return all->set == GY_NONE ? gy_fail_nomem(err) : GANTRY_OK;
}

static gantry_status plan_copy(gy_nccl *n, uint32_t op, const all_gpus *all, const char **why, gantry_error *err)
{
    const gantry_schedule *s = n->h->job->schedule;
    gy_nccl_plan *p = &n->plan[op];
    uint64_t bytes = gy_use_bytes(s, &s->use.at[op_of(n->h, op)->use]);
    *why = refuse_copy(n->h, op);
    if (*why || bytes == 0)
        return GANTRY_OK;
    gy_nccl_call call = { .kind = GY_NCCL_PAIR, .count = bytes };
    call.root = all->rank[gpu_of_use(n->h, op, 0)];
    call.to = all->rank[gpu_of_use(n->h, op, 1)];
    call.end = gy_arena_calloc(&n->h->arena, 2, sizeof *call.end);
    p->type = GY_NCCL_BYTES;
    p->set = all->set;
    if (call.end)
        call.end[1].use = 1;
    return call.end && gy_vec_push(&p->call, call) ? GANTRY_OK : gy_fail_nomem(err);
}

/* NCCL has steps of its own. */
static gantry_status plan_collective(gy_nccl *n, uint32_t op, const char **why, gantry_error *err)
{
    gy_exchange *x = NULL;
    gy_nccl_plan *p = &n->plan[op];
    GY_TRY(gy_exchange_make_whole(&x, &n->h->arena, n->h->job->schedule, n->h->job->graph, op, err));
    GY_TRY(gy_nccl_plan_make(p, n->h, op, x, why, err));
    p->set = p->call.count ? gy_nccl_set_of(n, op) : 0;
    return p->set == GY_NONE ? gy_fail_nomem(err) : GANTRY_OK;
}

gantry_status gy_nccl_open_ranks(gy_cuda *h, gantry_error *err)
{
    all_gpus all = { 0 };
    GY_TRY(gy_nccl_new(h, err));
    gy_nccl *n = h->nccl;
    n->any_order = gy_driver_switch("GANTRY_CUDA_NETWORK", "nccl");
    GY_TRY(find_all(n, &all, err));
    for (uint32_t op = 0; op < h->job->schedule->ops.count; op++) {
        const char *why = NULL;
        if (!crosses(h, op))
            continue;
        GY_TRY(gy_op_is_copy(op_of(h, op)) ? plan_copy(n, op, &all, &why, err) : plan_collective(n, op, &why, err));
        n->asked++;
        n->can += !why;
        n->rounds = n->rounds || (!why && n->plan[op].rounds);
        if (why)
            gy_nccl_refuse(n, op, why);
    }
    n->off = n->set.count == 0;
    return GANTRY_OK;
}

/* ---- while it runs ---- */

bool gy_nccl_waits_for_ranks(const gy_cuda *h, uint32_t op)
{
    const gy_nccl *n = h->nccl;
    bool known = !h->graphs && op < h->job->schedule->ops.count;
    return n && h->step && n->met && !n->off && (!known || h->op[op].nccl);
}

static bool gives_up(const gy_cuda *h)
{
    return gy_network_is_lost(h->job->network) || gy_job_canceled(h->job);
}

int gy_nccl_settle_ranks(gy_nccl *n, uint32_t set)
{
    gy_nccl_clique c = gy_nccl_clique_of(n, &n->set.at[set]);
    int64_t until = gy_now_ns() + GY_NCCL_MAKE_NS;
    int state = gy_nccl_clique_state(c);
    while (state == GY_NCCL_IN_PROGRESS && gy_now_ns() < until && !gives_up(n->h))
        state = gy_nccl_clique_settle(c, gy_now_ns() + LOOK_NS);
    return state;
}

bool gy_nccl_is_lost(gy_cuda *h, int result)
{
    const gantry_network *network = h->job->network;
    bool peer = result == SYSTEM_ERROR || result == REMOTE_ERROR;
    int64_t until = gy_now_ns() + network->patience_ns + GRACE_NS;
    while (peer && !gives_up(h) && gy_now_ns() < until)
        nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
    return gives_up(h);
}

gantry_status gy_nccl_watch_ranks(gy_cuda *h, uint32_t op, gantry_error *err)
{
    gantry_error why = { 0 };
    if (h->nccl->off || !h->nccl->met || !gives_up(h))
        return GANTRY_OK;
    if (gy_network_is_lost(h->job->network))
        gy_network_fail(h->job->network, &why);
    else if (op < h->job->schedule->ops.count)
        gy_cuda_op_cut(h, op, &why);
    else
        return GANTRY_OK; /* cancelled at its very end */
    gy_nccl_end(h, &why);
    if (err)
        *err = why;
    return why.status;
}

void gy_nccl_end_ranks(gy_cuda *h, const gantry_error *why)
{
    if (h->step && h->nccl && h->nccl->met && why)
        gy_nccl_end(h, why);
}
