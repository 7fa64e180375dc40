/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of one process that use NCCL on the same GPUs take turns. */
#include "backends/cuda/collective/nccl.h"

#include <pthread.h>

/*
 * Kernels of NCCL wait for those of the other ranks, so two runs whose kernels start in another order on one GPU than
 * on the next would wait for each other forever, and a group call that is half launched must not meet the launches of
 * another. So one start at a time submits work of NCCL in this process, under this lock, and work of NCCL on a GPU
 * waits for all that other runs with such work have submitted for that GPU before: the order is the same on every GPU.
 * This is the one piece of state that does not belong to a run; the list holds runs from their first start until they
 * are closed.
 *
 * NCCL in other parts of the program, and in other programs, on the same GPUs is not covered.
 */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static gy_nccl *runs;

static bool uses_gpu(const gy_nccl *n, CUdevice id)
{
    for (size_t i = 0; i < n->set.count; i++) {
        for (uint32_t r = 0; r < n->set.at[i].ranks; r++)
            if (n->h->device[n->set.at[i].device[r]].id == id)
                return true;
    }
    return false;
}

static bool shares_gpu(const gy_nccl *a, const gy_nccl *b)
{
    for (size_t i = 0; i < a->set.count; i++) {
        for (uint32_t r = 0; r < a->set.at[i].ranks; r++)
            if (uses_gpu(b, a->h->device[a->set.at[i].device[r]].id))
                return true;
    }
    return false;
}

gantry_status gy_nccl_await_others(gy_cuda *h, gy_queue queue, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    if (!h->nccl || !h->nccl->locked)
        return GANTRY_OK;
    for (gy_nccl *other = runs; other && status == GANTRY_OK; other = other->next) {
        if (other == h->nccl || !other->end || !shares_gpu(other, h->nccl))
            continue;
        status = gy_cuda_use(h, queue.device, err);
        CUresult code = status ? CUDA_SUCCESS : h->d.cuStreamWaitEvent(queue.stream, other->end, 0);
        status =
            code == CUDA_SUCCESS ? status : gy_cuda_fail(h, code, queue.device, "waiting for another run's NCCL", err);
    }
    return status;
}

void gy_nccl_unlist(gy_cuda *h)
{
    pthread_mutex_lock(&order);
    gy_nccl **link = &runs;
    while (*link && *link != h->nccl)
        link = &(*link)->next;
    if (*link)
        *link = (*link)->next;
    pthread_mutex_unlock(&order);
}

gantry_status gy_nccl_enter(gy_cuda *h, gantry_error *err)
{
    gy_nccl *n = h->nccl;
    gantry_status status = n ? gy_nccl_ready(n, err) : GANTRY_OK;
    if (!n || status || n->off || n->set.count == 0)
        return status;
    pthread_mutex_lock(&order);
    bool listed = false;
    for (gy_nccl *run = runs; run; run = run->next)
        listed = listed || run == n;
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
