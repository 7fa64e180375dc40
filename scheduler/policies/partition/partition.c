/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Partition first: the graph is divided between the devices as a whole, so that little has to be moved and every device
 * has its share of the work at all times; then tasks are listed by rank, and each goes where its part is. List methods
 * decide task by task, before they see who will read what it makes; here neighbours are together from the start.
 *
 * How: coarsen by acyclic clusters, then by heavy ties (levels.h); divide the coarsest graph and refine on the way back
 * (parting.h). After J. Herrmann, M. Y. Ozkaya, B. Ucar, K. Kaya, U. V. Catalyurek, Multilevel Algorithms for Acyclic
 * Partitioning of Directed Acyclic Graphs, SIAM J. Sci. Comput. 41(4), 2019, and, for scheduling by the parts,
 * M. Y. Ozkaya, A. Benoit, B. Ucar, J. Herrmann, U. V. Catalyurek, A Scalable Clustering-Based Task Scheduler for
 * Homogeneous Processors Using DAG Partitioning, IPDPS 2019. What differs: the clusters are acyclic, but what is on one
 * device need not be (in a stencil neighbours tell each other something in both directions), and "at all times" is
 * asked of bands of equal work by falling rank, not of the whole.
 *
 * `with`, `apart`, `on`: a task that may not go where its part is goes where it ends first. The bytes that tasks make
 * and upload are kept within the memories, if they fit there all together.
 *
 * Where transfers are few beside the work, a task leaves its part if it would wait there for longer than it takes.
 *
 * Cost: O((n p + e) log n) at most, in practice about that of HEFT. Ties: lower task, lower device.
 */
#include "scheduler/policies/partition/partition.h"

#include "base/error.h"
#include "scheduler/cost/cost.h"
#include "scheduler/place/place.h"
#include "scheduler/policies/list/ready.h"
#include "scheduler/policies/partition/families.h"
#include "scheduler/policies/partition/parting.h"
#include "scheduler/policies/policy.h"
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

#define PARTS  512   /* nodes a device at which acyclic coarsening ends */
#define GROUPS 8     /* and all coarsening */
#define CROWD  16    /* tasks a device in a band, at least */
#define SAMPLE 65536 /* bytes that routes are compared with */

/* Bands, at most; a cluster is no more of a device's work than one in `grain`. */
static const struct way {
    uint32_t bands;
    gy_ticks grain;
} ways[GY_PARTITIONS] = { { 64, 16 },  { 32, 16 }, { 128, 16 }, { 64, 64 }, { 16, 16 },
                          { 256, 32 }, { 32, 64 }, { 128, 8 },  { 8, 32 } };

typedef struct partition {
    gy_levels levels;
    gy_parting parting;
    bool leave; /* may tasks leave their part? */
} partition;

/* ---- machine ---- */

/* By how fast the device is for what it can run; those that are no workers get nothing. */
static void set_shares(gy_parting *x, const gy_plan *p)
{
    const gy_level *l = &x->levels->at.at[0];
    uint32_t shift = x->levels->shift, fastest = 0;
    wide all = 0;
    for (uint32_t d = 0; d < p->workers; d++) {
        wide work = 0, time = 0;
        for (uint32_t t = 0; t < l->nodes; t++) {
            gy_ticks here = gy_plan_time(p, p->flow->task[t].node, d);
            if (here >= GY_TICKS_MAX || !l->work[t])
                continue;
            work += (uint64_t)l->work[t];
            time += (uint64_t)(here >> shift);
        }
        x->share[d] = time ? (uint32_t)(work * 4096 / time < UINT32_MAX / 2 ? work * 4096 / time : UINT32_MAX / 2) : 0;
        all += x->share[d];
    }
    for (uint32_t d = 0; d < p->workers; d++) {
        x->share[d] = all ? (uint32_t)(x->share[d] * (wide)GY_SHARES / all) : GY_SHARES / p->workers;
        fastest = x->share[d] > x->share[fastest] ? d : fastest;
    }
}

static void set_distances(gy_parting *x, const gy_plan *p)
{
    wide sum = 0;
    uint32_t pairs = 0;
    for (uint32_t d = 0; d < p->devices; d++)
        x->memory[d] = p->machine->device[d].memory;
    for (uint32_t a = 0; a < p->workers; a++)
        for (uint32_t b = 0; b < p->workers; b++)
            if (x->memory[a] != x->memory[b]) {
                sum += (uint64_t)gy_transfer_time(p, x->memory[a], x->memory[b], SAMPLE);
                pairs++;
            }
    for (uint32_t a = 0; a < p->devices; a++)
        for (uint32_t b = 0; b < p->devices; b++) {
            wide time = (uint64_t)gy_transfer_time(p, x->memory[a], x->memory[b], SAMPLE);
            wide far = sum ? time * 256 * pairs / sum : 256;
            x->distance[(size_t)a * p->devices + b] = x->memory[a] == x->memory[b] ? 0
                                                      : far < 65535                ? (uint32_t)far
                                                                                   : 65535;
        }
}

/* Nothing is given back in this account: if it says that there is not room enough for all, it says nothing. */
static void set_room(gy_parting *x, const gy_plan *p)
{
    const gy_level *l = &x->levels->at.at[0];
    wide needed = 0, there = 0;
    if (!p->capacity) /* search asks before it is known */
        return;
    for (uint32_t t = 0; t < l->nodes; t++)
        needed += (uint64_t)l->bytes[t];
    for (uint32_t m = 0; m < x->memories; m++) {
        bool used = false;
        for (uint32_t d = 0; d < p->workers; d++)
            used = used || x->memory[d] == m;
        there += used ? p->capacity[m] : 0;
    }
    for (uint32_t m = 0; m < x->memories && needed <= there; m++)
        x->room[m] = p->capacity[m] < INT64_MAX ? (int64_t)p->capacity[m] : INT64_MAX;
}

/* ---- dividing ---- */

static uint32_t bands_for(const gy_plan *p, uint32_t most)
{
    uint32_t bands = p->flow->tasks / p->workers / CROWD;
    return bands < 1 ? 1 : bands < most ? bands : most;
}

static void set_grain(gy_levels *l, const gy_plan *p, gy_ticks grain)
{
    gy_ticks total = 0;
    for (uint32_t t = 0; t < l->at.at[0].nodes; t++)
        total += l->at.at[0].work[t];
    l->grain = (gy_grain){ total / p->workers / grain, 4 * p->workers };
}

/* Would all transfers fit beside half of the work, if every tie were cut? Then waiting is worse than moving. */
static bool is_work_most(const gy_level *l)
{
    gy_ticks work = 0, ties = 0;
    for (uint32_t u = 0; u < l->nodes; u++)
        work += l->work[u];
    for (size_t i = 0; i < l->tie.count; i++)
        ties += l->tie.at[i].cost;
    return ties < work; /* each tie is there twice */
}

static bool divide_levels(partition *x, const gy_plan *p, size_t finest)
{
    if (!gy_parting_init(&x->parting, &x->levels, p->machine->memories))
        return false;
    x->parting.planning = p->planning;
    x->parting.finest = finest;
    set_shares(&x->parting, p);
    set_distances(&x->parting, p);
    set_room(&x->parting, p);
    gy_parting_set_limits(&x->parting);
    return gy_parting_run(&x->parting);
}

static bool divide(partition *x, const gy_plan *p, uint32_t way, const gy_rank *rank)
{
    if (!gy_levels_begin(&x->levels, p, rank, bands_for(p, ways[way].bands)))
        return false;
    set_grain(&x->levels, p, ways[way].grain);
    x->leave = is_work_most(&x->levels.at.at[0]);
    return gy_levels_coarsen(&x->levels, PARTS * p->workers, GROUPS * p->workers) && divide_levels(x, p, 0);
}

/* Families stay together: the level of tasks is not refined, and nobody leaves. */
static bool divide_families(partition *x, const gy_plan *p, const gy_rank *rank)
{
    gy_levels *l = &x->levels;
    if (!gy_families_share(l, p) || !gy_levels_begin(l, p, rank, bands_for(p, ways[0].bands)))
        return false;
    set_grain(l, p, ways[0].grain);
    return gy_families_find(p, l->at.at[0].up) && gy_levels_contract(l) &&
           gy_levels_coarsen(l, UINT32_MAX, GROUPS * p->workers) && divide_levels(x, p, 1);
}

/* ---- placing ---- */

/* Upward ranks, as devices are now known. Any unit will do. */
static void rank_again(const gy_plan *p, const uint32_t *device, gy_rank *rank)
{
    const gy_flow *f = p->flow;
    for (uint32_t t = 0; t < f->tasks; t++)
        rank[t] = 0;
    for (uint32_t t = f->tasks; t-- > 0;) {
        gy_ticks time = gy_plan_team(p, t) ? 0 : gy_plan_time(p, f->task[t].node, device[t]);
        uint32_t here = p->machine->device[device[t]].memory;
        rank[t] += time;
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++) {
            uint32_t there = p->machine->device[device[d->from]].memory;
            gy_rank r = rank[t];
            if (d->kinds & GY_DEP_DATA && here != there)
                r += gy_transfer_time(p, there, here, d->bytes);
            rank[d->from] = r > rank[d->from] ? r : rank[d->from];
        }
    }
}

static gy_try best_try(gy_plan *p, uint32_t task, gy_try best)
{
    for (uint32_t d = 0; d < p->devices; d++) {
        if (!gy_place_allowed(p, task, d))
            continue;
        gy_try t = gy_place_try(p, task, d);
        best = t.finish < best.finish ? t : best;
    }
    return best;
}

static gantry_status place_one(gy_plan *p, uint32_t task, void *context, gantry_error *err)
{
    const partition *x = context;
    uint32_t home = x->parting.device[task];
    if (gy_plan_team(p, task) || !gy_place_allowed(p, task, home))
        return gy_place_earliest(p, task, err);
    gy_try t = gy_place_try(p, task, home);
    if (x->leave && t.start > t.ready) {
        gy_try best = best_try(p, task, t);
        if (t.finish - best.finish > t.finish - t.start)
            t = best;
    }
    return gy_place_at(p, task, &t, err);
}

static gantry_status place_parts(gy_plan *p, bool families, gantry_error *err)
{
    partition x = { 0 };
    gy_rank *rank = gy_upward_ranks(p, GY_BY_MEAN);
    bool done = rank && (families ? divide_families(&x, p, rank) : divide(&x, p, 0, rank));
    gantry_status status = done ? GANTRY_OK : gy_fail_nomem(err);
    gy_levels_free(&x.levels);
    if (!status) {
        rank_again(p, x.parting.device, rank);
        status = gy_place_by_rank(p, rank, place_one, &x, err);
    }
    gy_parting_free(&x.parting);
    gy_free(rank);
    return status;
}

static gantry_status place(gy_plan *p, gantry_error *err)
{
    return place_parts(p, false, err);
}

static gantry_status place_families(gy_plan *p, gantry_error *err)
{
    return place_parts(p, true, err);
}

/* ---- for search ---- */

static void order_by(const gy_plan *p, const uint32_t *device, gy_rank *rank, uint32_t *order)
{
    rank_again(p, device, rank);
    for (uint32_t t = 0; t < p->flow->tasks; t++)
        order[t] = t;
    qsort_r(order, p->flow->tasks, sizeof *order, gy_by_falling_rank, rank);
}

bool gy_partition_order(const gy_plan *p, const uint32_t *device, uint32_t *order)
{
    gy_rank *rank = gy_calloc((size_t)p->flow->tasks + 1, sizeof *rank);
    if (rank)
        order_by(p, device, rank, order);
    gy_free(rank);
    return rank;
}

bool gy_partition_divide(const gy_plan *p, uint32_t way, uint32_t *order, uint32_t *device)
{
    partition x = { 0 };
    gy_rank *rank = gy_upward_ranks(p, GY_BY_MEAN);
    bool done = rank && divide(&x, p, way, rank);
    if (done) {
        memcpy(device, x.parting.device, p->flow->tasks * sizeof *device);
        order_by(p, device, rank, order);
    }
    gy_levels_free(&x.levels);
    gy_parting_free(&x.parting);
    gy_free(rank);
    return done;
}

const gy_policy gy_policy_partition = {
    .name = "partition",
    .summary = "divides the graph first, cutting little (after dagP, 2019)",
    .place = place,
    .largest = GY_ANY_SIZE,
};

const gy_policy gy_policy_families = {
    .name = "families",
    .summary = "divides chains of nodes that hand data on (owner computes)",
    .place = place_families,
    .largest = GY_LARGE_GRAPHS,
};
