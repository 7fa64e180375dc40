/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/measure/harness_nccl.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include <string.h>

enum { F32 = 7, SUM = 0, ELEMENT = 4, ALIGNMENT = 16, MOST_RANKS = 64 };
#define MAKE_PATIENCE 3 /* times that of the harness: making communicators takes seconds */

static gy_nccl_clique clique_of(const gy_harness_nccl *n)
{
    return (gy_nccl_clique){ n->api, n->comm, n->ranks };
}

/* ---- communicators ---- */

bool gy_harness_nccl_can(const gy_harness *harness, uint32_t ranks)
{
    const gy_device *device = harness->machine->device;
    bool can = ranks > 1 && ranks <= harness->gpus && ranks <= MOST_RANKS;
    for (uint32_t i = 1; can && i < ranks; i++) {
        can = strcmp(device[harness->gpu[i].device].kind, device[harness->gpu[0].device].kind) == 0;
        for (uint32_t k = 0; can && k < i; k++)
            can = harness->gpu[k].context != harness->gpu[i].context;
    }
    return can;
}

static gantry_status use_rank(void *user, uint32_t rank)
{
    return gy_harness_use(user, rank, NULL);
}

static gantry_status fail(const gy_harness_nccl *n, int result, const char *what, gantry_error *err)
{
    if (result == GY_NCCL_IN_PROGRESS)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s: NCCL: it is in progress for too long a time", what);
    return gy_nccl_api_fail(n->api, result, what, err);
}

gantry_status gy_harness_nccl_open(gy_harness_nccl *n, gy_harness *harness, const gy_nccl_api *api, uint32_t ranks,
                                   gantry_error *err)
{
    *n = (gy_harness_nccl){ .harness = harness, .api = api, .ranks = ranks };
    n->comm = gy_calloc(ranks, sizeof *n->comm);
    if (!n->comm)
        return gy_fail_nomem(err);
    int result = gy_nccl_clique_begin(clique_of(n), use_rank, harness);
    if (gy_nccl_fine(result))
        result = gy_nccl_clique_settle(clique_of(n), gy_now_ns() + MAKE_PATIENCE * harness->patience_ns);
    if (result == GY_NCCL_SUCCESS)
        return GANTRY_OK;
    gantry_status status = fail(n, result, "making communicators", err);
    gy_nccl_clique_abort(clique_of(n));
    gy_free(n->comm);
    n->comm = NULL;
    return status;
}

void gy_harness_nccl_close(gy_harness_nccl *n)
{
    if (!n->comm)
        return;
    if (gy_nccl_clique_finalize(clique_of(n), gy_now_ns() + n->harness->patience_ns))
        gy_nccl_clique_destroy(clique_of(n));
    else
        gy_nccl_clique_abort(clique_of(n));
    gy_free(n->comm);
    n->comm = NULL;
}

gantry_status gy_harness_nccl_abort(gy_harness_nccl *n, gantry_error *err)
{
    if (n->comm) {
        gy_nccl_clique_abort(clique_of(n));
        gy_free(n->comm);
        n->comm = NULL;
    }
    n->harness->hung = false;
    gantry_status status = gy_harness_drain(n->harness, err);
    return status && !n->harness->hung ? gy_harness_drain(n->harness, err)
                                       : status; /* the first may be of a call before */
}

/* ---- calls ---- */

/* Parts that the bytes of a kind are cut into: see gy_collective_table. */
static uint64_t parts_of(const gy_harness_nccl *n, gantry_collective kind)
{
    switch (kind) {
    case GANTRY_ALL_REDUCE:
    case GANTRY_REDUCE:
    case GANTRY_BROADCAST:
        return 1;
    case GANTRY_ALL_TO_ALL:
        return (uint64_t)n->ranks * n->ranks;
    default:
        return n->ranks;
    }
}

uint64_t gy_harness_nccl_bytes(const gy_harness_nccl *n, gantry_collective kind, uint64_t bytes)
{
    uint64_t unit = parts_of(n, kind) * ALIGNMENT, whole = bytes / unit * unit;
    uint64_t most = kind == GANTRY_ALL_TO_ALL ? whole / n->ranks : whole; /* that one rank has */
    return most <= n->harness->bytes ? whole : 0;
}

typedef struct call {
    const gy_harness_nccl *n;
    gantry_collective kind;
    uint64_t count; /* elements of a part */
} call;

static char *from_of(const call *c, uint32_t rank, uint32_t part)
{
    return (char *)(uintptr_t)(c->n->harness->gpu[rank].block + part * c->count * ELEMENT);
}

static char *to_of(const call *c, uint32_t rank, uint32_t part)
{
    return from_of(c, rank, part) + c->n->harness->bytes;
}

static int send(const call *c, uint32_t from, uint32_t to, uint32_t part, uint32_t place)
{
    const gy_harness_nccl *n = c->n;
    const gy_harness_gpu *gpu = n->harness->gpu;
    int result = n->api->ncclSend(from_of(c, from, part), c->count, F32, (int)to, n->comm[from], gpu[from].stream[0]);
    return gy_nccl_fine(result)
               ? n->api->ncclRecv(to_of(c, to, place), c->count, F32, (int)from, n->comm[to], gpu[to].stream[0])
               : result;
}

/* The calls of one rank, or its sends to all others. */
static int call_rank(const call *c, uint32_t r)
{
    const gy_nccl_api *api = c->n->api;
    const char *from = from_of(c, r, 0);
    char *to = to_of(c, r, 0);
    gy_nccl_comm comm = c->n->comm[r];
    CUstream stream = c->n->harness->gpu[r].stream[0];
    int result = GY_NCCL_SUCCESS;
    switch (c->kind) {
    case GANTRY_ALL_REDUCE:
        return api->ncclAllReduce(from, to, c->count, F32, SUM, comm, stream);
    case GANTRY_REDUCE:
        return api->ncclReduce(from, to, c->count, F32, SUM, 0, comm, stream);
    case GANTRY_REDUCE_SCATTER:
        return api->ncclReduceScatter(from, to, c->count, F32, SUM, comm, stream);
    case GANTRY_BROADCAST:
        return api->ncclBroadcast(from, to, c->count, F32, 0, comm, stream);
    case GANTRY_ALL_GATHER:
        return api->ncclAllGather(from, to, c->count, F32, comm, stream);
    case GANTRY_SCATTER:
        return send(c, 0, r, r, 0);
    case GANTRY_GATHER:
        return send(c, r, 0, 0, r);
    case GANTRY_ALL_TO_ALL:
        break;
    }
    for (uint32_t k = 0; k < c->n->ranks && gy_nccl_fine(result); k++)
        result = send(c, r, k, k, r);
    return result;
}

/* One group call for all ranks. */
static gantry_status queue_call(const call *c, gantry_error *err)
{
    const gy_harness_nccl *n = c->n;
    int result = n->api->ncclGroupStart();
    if (gy_nccl_fine(result)) {
        for (uint32_t r = 0; r < n->ranks && gy_nccl_fine(result); r++)
            result = call_rank(c, r);
        int end = n->api->ncclGroupEnd();
        result = gy_nccl_fine(result) ? end : result;
    }
    if (gy_nccl_fine(result))
        result = gy_nccl_clique_settle(clique_of(n), gy_now_ns() + n->harness->patience_ns);
    return result == GY_NCCL_SUCCESS ? GANTRY_OK : fail(n, result, gantry_collective_name(c->kind), err);
}

static gantry_status queue_calls(const gy_harness_chain *c, gantry_error *err)
{
    call one = { c->nccl, c->kind, c->bytes / parts_of(c->nccl, c->kind) / ELEMENT };
    for (uint32_t i = 0; i < c->calls; i++)
        GY_TRY(queue_call(&one, err));
    return GANTRY_OK;
}

/* ---- chains ---- */

static gantry_status queue_together(gy_harness *harness, const void *what, gantry_error *err)
{
    const gy_harness_chain *c = what;
    gantry_status status = gy_harness_order_all(harness, c->nccl->ranks, 1, true, err);
    status = status ? status : queue_calls(c, err);
    return status ? status : gy_harness_order_all(harness, c->nccl->ranks, 1, false, err);
}

gantry_status gy_harness_chain_capture(gy_harness_chain *c, gantry_error *err)
{
    return gy_harness_graph_make(&c->graph, c->nccl->harness, queue_together, c, 1, err);
}

void gy_harness_chain_free(gy_harness_chain *c)
{
    gy_harness_graph_free(&c->graph, c->nccl->harness);
}

static gantry_status queue_chain(gy_harness *harness, const void *what, gantry_error *err)
{
    const gy_harness_chain *c = what;
    return c->graph.exec ? gy_harness_graph_queue(harness, &c->graph, err) : queue_calls(c, err);
}

/* In a graph the other ranks come after the first lane already. */
gantry_status gy_harness_chain_time(const gy_harness_chain *c, double *us, gantry_error *err)
{
    gy_harness_lane other[MOST_RANKS];
    for (uint32_t i = 1; i < c->nccl->ranks; i++)
        other[i - 1] = (gy_harness_lane){ i, 0 };
    gy_workload workload = {
        .queue = queue_chain, .what = c, .other_lane = other, .other_lanes = c->graph.exec ? 0 : c->nccl->ranks - 1
    };
    return gy_harness_time(c->nccl->harness, &workload, 1, us, err);
}
