/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/nccl_clique.h"

#include "base/clock.h"
#include <sched.h>
#include <time.h>

static void rest(unsigned polls)
{
    if (polls > 1000)
        nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
    else if (polls > 100)
        sched_yield();
}

/* GPUs are those whose context is current. */
int gy_nccl_clique_join(gy_nccl_clique c, const gy_nccl_id *id, const bool *mine,
                        gantry_status (*use)(void *user, uint32_t rank), void *user)
{
    gy_nccl_config config = GY_NCCL_CONFIG;
    int result = c.api->ncclGroupStart();
    if (!gy_nccl_fine(result))
        return result;
    for (uint32_t i = 0; i < c.ranks && gy_nccl_fine(result); i++) {
        if (mine && !mine[i])
            continue;
        result = use(user, i) ? 1 /* ncclUnhandledCudaError */
                              : c.api->ncclCommInitRankConfig(&c.comm[i], (int)c.ranks, *id, (int)i, &config);
    }
    int end = c.api->ncclGroupEnd();
    return gy_nccl_fine(result) ? end : result;
}

int gy_nccl_clique_begin(gy_nccl_clique c, gantry_status (*use)(void *user, uint32_t rank), void *user)
{
    gy_nccl_id id;
    int result = c.api->ncclGetUniqueId(&id);
    return gy_nccl_fine(result) ? gy_nccl_clique_join(c, &id, NULL, use, user) : result;
}

int gy_nccl_clique_state(gy_nccl_clique c)
{
    int worst = GY_NCCL_SUCCESS;
    for (uint32_t i = 0; i < c.ranks; i++) {
        int state = GY_NCCL_SUCCESS;
        int result = c.comm[i] ? c.api->ncclCommGetAsyncError(c.comm[i], &state) : GY_NCCL_SUCCESS;
        state = gy_nccl_fine(result) ? state : result;
        if (!gy_nccl_fine(state))
            return state;
        worst = state != GY_NCCL_SUCCESS ? state : worst;
    }
    return worst;
}

int gy_nccl_clique_settle(gy_nccl_clique c, int64_t until_ns)
{
    int state = gy_nccl_clique_state(c);
    for (unsigned polls = 0; state == GY_NCCL_IN_PROGRESS && gy_now_ns() < until_ns; polls++) {
        rest(polls);
        state = gy_nccl_clique_state(c);
    }
    return state;
}

void gy_nccl_clique_abort(gy_nccl_clique c)
{
    bool group = c.api->ncclGroupStart() == GY_NCCL_SUCCESS;
    for (uint32_t i = 0; i < c.ranks; i++) {
        if (c.comm[i]) {
            c.api->ncclCommAbort(c.comm[i]);
            c.comm[i] = NULL;
        }
    }
    if (group)
        c.api->ncclGroupEnd();
}

bool gy_nccl_clique_finalize(gy_nccl_clique c, int64_t until_ns)
{
    int result = GY_NCCL_SUCCESS;
    for (uint32_t i = 0; i < c.ranks && gy_nccl_fine(result); i++)
        result = c.comm[i] ? c.api->ncclCommFinalize(c.comm[i]) : result;
    return gy_nccl_fine(result) && gy_nccl_clique_settle(c, until_ns) == GY_NCCL_SUCCESS;
}

void gy_nccl_clique_destroy(gy_nccl_clique c)
{
    for (uint32_t i = 0; i < c.ranks; i++) {
        if (c.comm[i])
            c.api->ncclCommDestroy(c.comm[i]);
        c.comm[i] = NULL;
    }
}
