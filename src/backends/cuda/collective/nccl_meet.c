/* SPDX-License-Identifier: Apache-2.0 */
/* Processes find out together whether they use NCCL between them, and make communicators. Whatever is decided, all
 * decide it from the same: each tells the others what it has, all gather that. They do so at the first start, when all
 * have begun, since one that fails ends all from then on. */
#include "backends/cuda/collective/nccl.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/map.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WHY = 240, LATE = -1 };
#define NAP_NS INT64_C(500000)

/* ---- what each has ---- */

/* Of a process, and, behind it, for each device of the machine: which GPU it is, 0: none of this process that is used.
 */
typedef struct hello {
    int32_t version;
    uint32_t can;  /* ops: others have another GANTRY_CUDA_NETWORK if that differs */
    char why[WHY]; /* not: "" if it can */
} hello;

static gantry_status lost(const gy_nccl *n, gantry_error *err)
{
    return gy_network_fail(n->h->job->network, err);
}

static bool gather(const gy_nccl *n, const void *mine, void *all, uint64_t bytes)
{
    gantry_network *w = n->h->job->network;
    return w->calls->gather(mine, all, bytes, gy_network_is_lost, w);
}

/* This computer, until it is begun anew, also from within a container. */
static uint64_t computer(void)
{
    char text[128] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        fclose(file);
    if (!length && gethostname(text, sizeof text - 1) == 0)
        length = strlen(text);
    return gy_hash_bytes(text, length, 0);
}

static uint64_t identity(gy_cuda *h, uint32_t device)
{
    char bus[32] = "";
    const gy_cuda_device *d = &h->device[device];
    if (!d->gpu || !d->used || h->d.cuDeviceGetPCIBusId(bus, (int)sizeof bus, d->id))
        return 0;
    uint64_t hash = gy_hash_bytes(bus, strlen(bus), computer());
    return hash ? hash : 1;
}

static void introduce(gy_nccl *n, hello *mine, uint64_t *gpu)
{
    gantry_error why = { 0 };
    mine->can = n->can;
    if (gy_driver_switch("GANTRY_CUDA_NETWORK", "host"))
        snprintf(mine->why, sizeof mine->why, "GANTRY_CUDA_NETWORK=host");
    else if (gy_nccl_load(&n->api, &why))
        snprintf(mine->why, sizeof mine->why, "%.*s", WHY - 1, why.text);
    mine->version = 10000 * n->api.version[0] + 100 * n->api.version[1] + n->api.version[2];
    for (uint32_t i = 0; i < n->h->devices; i++)
        gpu[i] = identity(n->h, i);
}

/* ---- whether all can ---- */

static const uint64_t *gpus_of(const hello *h)
{
    return (const uint64_t *)(const void *)(h + 1);
}

/* Two devices of a set that are one GPU. */
static bool find_twins(const gy_nccl *n, const gy_nccl_set *set, const uint64_t *gpu)
{
    const gantry_machine *m = n->h->job->schedule->machine;
    for (uint32_t i = 0; i < set->ranks; i++)
        for (uint32_t k = 0; k < i; k++)
            if (gpu[set->device[i]] && gpu[set->device[i]] == gpu[set->device[k]]) {
                snprintf(n->h->nccl->why, sizeof n->why, "devices \"%s\" and \"%s\" are one GPU",
                         m->device[set->device[k]].id, m->device[set->device[i]].id);
                return true;
            }
    return false;
}

/* Sets `off`, and `why`, where one of them cannot. `all`: the words of all processes, `bytes` each. */
static void decide(gy_nccl *n, const char *all, size_t bytes, uint64_t *gpu)
{
    uint32_t ranks = gy_machine_ranks(n->h->job->schedule->machine);
    const hello *first = (const hello *)(const void *)all;
    for (uint32_t r = 0; r < ranks && !n->off; r++) {
        const hello *h = (const hello *)(const void *)(all + r * bytes);
        n->off = h->why[0] || h->version != first->version || h->can != first->can;
        if (h->why[0])
            snprintf(n->why, sizeof n->why, "rank %u: %s", r, h->why);
        else if (h->can != first->can)
            snprintf(n->why, sizeof n->why, "rank %u has another GANTRY_CUDA_NETWORK than rank 0", r);
        else if (n->off)
            snprintf(n->why, sizeof n->why, "rank 0 has version %d of it, rank %u has %d", first->version, r,
                     h->version);
        for (uint32_t i = 0; i < n->h->devices; i++)
            gpu[i] |= gpus_of(h)[i];
    }
    for (size_t i = 0; i < n->set.count && !n->off; i++)
        n->off = find_twins(n, &n->set.at[i], gpu);
}

static gantry_status compare(gy_nccl *n, gantry_error *err)
{
    size_t bytes = sizeof(hello) + n->h->devices * sizeof(uint64_t);
    char *all = gy_calloc(n->h->job->network->ranks + 1, bytes);
    uint64_t *gpu = gy_calloc(n->h->devices + 1, sizeof *gpu);
    gantry_status status = all && gpu ? GANTRY_OK : gy_fail_nomem(err);
    if (!status) {
        char *mine = all + n->h->job->network->ranks * bytes;
        introduce(n, (hello *)(void *)mine, (uint64_t *)(void *)(mine + sizeof(hello)));
        status = gather(n, mine, all, bytes) ? GANTRY_OK : lost(n, err);
    }
    if (!status)
        decide(n, all, bytes, gpu);
    gy_free(gpu);
    gy_free(all);
    return status;
}

/* ---- communicators ---- */

/* The word of a process on the set that is being made. */
typedef struct word {
    int32_t state; /* of NCCL */
    gy_nccl_id id; /* of the process that has the first GPU of the set */
} word;

static uint32_t owner_of(const gy_nccl *n, const gy_nccl_set *set)
{
    return gy_device_rank(n->h->job->schedule->machine, set->device[0]);
}

/* The first process that says that it failed, or `still`: that it is in progress; the number of processes: none. */
static uint32_t find(const gy_nccl *n, const word *all, bool still)
{
    uint32_t r = 0, ranks = n->h->job->network->ranks;
    while (r < ranks && (still ? all[r].state != GY_NCCL_IN_PROGRESS : gy_nccl_fine(all[r].state)))
        r++;
    return r;
}

/* All know which of them could not, and what it says. */
static gantry_status give_up(gy_nccl *n, const gy_nccl_set *set, int state, uint32_t who, gantry_error *err)
{
    gantry_error why = { 0 };
    char *all = gy_calloc(n->h->job->network->ranks + 1, WHY), *mine;
    if (!all)
        return gy_fail_nomem(err);
    mine = all + (size_t)n->h->job->network->ranks * WHY;
    if (!gy_nccl_fine(state) || who == n->h->part.rank) {
        gy_nccl_unmade(n, set, state, &why);
        snprintf(mine, WHY, "%.*s", WHY - 1, why.text);
    }
    bool there = gather(n, mine, all, WHY);
    snprintf(n->why, sizeof n->why, "rank %u: %.*s", who, WHY - 1, all + (size_t)who * WHY);
    n->off = true;
    gy_nccl_abort(n);
    gy_free(all);
    return there ? GANTRY_OK : lost(n, err);
}

/* Rounds in which all say how far they are, so that all see the same end of it. */
static gantry_status settle(gy_nccl *n, const gy_nccl_set *set, word *mine, word *all, gantry_error *err)
{
    uint32_t ranks = n->h->job->network->ranks;
    int64_t until = gy_now_ns() + GY_NCCL_MAKE_NS;
    for (;;) {
        if (gy_nccl_fine(mine->state))
            mine->state = gy_nccl_clique_state(gy_nccl_clique_of(n, set));
        bool late = gy_now_ns() > until && mine->state == GY_NCCL_IN_PROGRESS;
        mine->state = late ? LATE : mine->state;
        if (!gather(n, mine, all, sizeof *mine))
            return lost(n, err);
        uint32_t failed = find(n, all, false);
        if (failed < ranks)
            return give_up(n, set, late ? GY_NCCL_IN_PROGRESS : mine->state, failed, err);
        if (find(n, all, true) == ranks)
            return GANTRY_OK;
        nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    }
}

static gantry_status make_set(gy_nccl *n, gy_nccl_set *set, bool *is_mine, word *mine, word *all, gantry_error *err)
{
    const gantry_machine *m = n->h->job->schedule->machine;
    bool any = false;
    *mine = (word){ .state = GY_NCCL_SUCCESS };
    for (uint32_t i = 0; i < set->ranks; i++)
        any |= is_mine[i] = gy_device_rank(m, set->device[i]) == n->h->part.rank;
    if (owner_of(n, set) == n->h->part.rank)
        mine->state = n->api.ncclGetUniqueId(&mine->id);
    if (!gather(n, mine, all, sizeof *mine))
        return lost(n, err);
    gy_nccl_id id = all[owner_of(n, set)].id;
    if (any && find(n, all, false) == n->h->job->network->ranks)
        mine->state =
            gy_nccl_clique_join(gy_nccl_clique_of(n, set), &id, is_mine, gy_nccl_use_rank, &(gy_nccl_maker){ n, set });
    n->h->current = GY_NONE;
    return settle(n, set, mine, all, err);
}

static gantry_status make_sets(gy_nccl *n, gantry_error *err)
{
    word mine = { 0 }, *all = gy_calloc(n->h->job->network->ranks, sizeof *all);
    bool *is_mine = gy_calloc(n->h->devices, sizeof *is_mine);
    gantry_status status = all && is_mine ? GANTRY_OK : gy_fail_nomem(err);
    for (size_t i = 0; i < n->set.count && !n->off && !status; i++) {
        status = make_set(n, &n->set.at[i], is_mine, &mine, all, err);
        n->made += !n->off && !status;
    }
    gy_free(is_mine);
    gy_free(all);
    return status;
}

gantry_status gy_nccl_meet(gy_nccl *n, gantry_error *err)
{
    if (n->met || n->off)
        return GANTRY_OK;
    GY_TRY(compare(n, err));
    GY_TRY(n->off ? GANTRY_OK : make_sets(n, err));
    n->met = true;
    gy_nccl_assign(n);
    return GANTRY_OK;
}
