/* SPDX-License-Identifier: Apache-2.0 */
/* Max-min fair sharing of resources among flows, for the flows that a begin or an end can have touched. */
#include "sim/internal.h"

/* The lists of scratch have room for every resource and every job: nothing here can run out of memory but the list of
 * flows of a resource. */
static void touch(gy_sim *sim, uint32_t resource)
{
    if (!sim->link[resource].dirty)
        sim->dirty.at[sim->dirty.count++] = resource;
    sim->link[resource].dirty = true;
}

bool gy_sim_flow_begin(gy_sim *sim, uint32_t job)
{
    gy_sim_job *j = &sim->jobs.at[job];
    for (uint32_t i = 0; i < j->resources; i++) {
        if (!gy_vec_push(&sim->link[j->resource[i]].flows, job))
            return false;
        sim->link[j->resource[i]].teams += j->weight != NULL;
        touch(sim, j->resource[i]);
    }
    return true;
}

void gy_sim_flow_end(gy_sim *sim, uint32_t job)
{
    gy_sim_job *j = &sim->jobs.at[job];
    for (uint32_t i = 0; i < j->resources; i++) {
        gy_sim_link *l = &sim->link[j->resource[i]];
        size_t k = 0;
        while (l->flows.at[k] != job)
            k++;
        l->flows.at[k] = l->flows.at[--l->flows.count];
        l->teams -= j->weight != NULL;
        touch(sim, j->resource[i]);
    }
}

static void reach_link(gy_sim *sim, uint32_t resource)
{
    gy_sim_link *l = &sim->link[resource];
    if (l->seen == sim->round)
        return;
    l->seen = sim->round;
    l->rest = sim->m->resource[resource].rate;
    l->open = 0;
    sim->links.at[sim->links.count++] = resource;
}

static uint64_t weight_of(const gy_sim_job *j, uint32_t i)
{
    return j->weight ? j->weight[i] : GY_SIM_ONE;
}

/* Bytes a second that a flow at that rate takes of its i-th resource. */
static int64_t taken_at(const gy_sim_job *j, uint32_t i, int64_t rate)
{
    if (!j->weight)
        return rate;
    gy_int128 taken = ((gy_int128)rate * (gy_int128)j->weight[i] + GY_SIM_ONE - 1) >> GY_SIM_ONE_BITS;
    return taken > INT64_MAX ? INT64_MAX : (int64_t)taken;
}

/* The rate to which all open flows of the link can rise: of copies alone without long division. */
static int64_t level_of(const gy_sim_link *l)
{
    if (!l->teams)
        return l->rest / (int64_t)(l->open >> GY_SIM_ONE_BITS);
    gy_int128 level = ((gy_int128)l->rest << GY_SIM_ONE_BITS) / l->open;
    return level > INT64_MAX ? INT64_MAX : (int64_t)level;
}

static void reach_flow(gy_sim *sim, uint32_t job)
{
    gy_sim_job *j = &sim->jobs.at[job];
    if (j->seen == sim->round)
        return;
    j->seen = sim->round;
    j->open = true;
    sim->flows.at[sim->flows.count++] = job;
    for (uint32_t i = 0; i < j->resources; i++) {
        reach_link(sim, j->resource[i]);
        sim->link[j->resource[i]].open += weight_of(j, i);
    }
}

/* The connected components of the dirty resources: flows and links that can feel the change. */
static void collect(gy_sim *sim)
{
    sim->round++;
    sim->links.count = sim->flows.count = 0;
    for (size_t i = 0; i < sim->dirty.count; i++) {
        sim->link[sim->dirty.at[i]].dirty = false;
        reach_link(sim, sim->dirty.at[i]);
    }
    sim->dirty.count = 0;
    for (size_t i = 0; i < sim->links.count; i++) {
        const gy_sim_link *l = &sim->link[sim->links.at[i]];
        for (size_t k = 0; k < l->flows.count; k++)
            reach_flow(sim, l->flows.at[k]);
    }
}

/* How far all open flows can rise together before a cap or a resource stops some of them. */
static int64_t next_level(const gy_sim *sim)
{
    int64_t level = INT64_MAX;
    for (size_t i = 0; i < sim->flows.count; i++) {
        const gy_sim_job *j = &sim->jobs.at[sim->flows.at[i]];
        if (j->open && j->cap < level)
            level = j->cap;
    }
    for (size_t i = 0; i < sim->links.count; i++) {
        const gy_sim_link *l = &sim->link[sim->links.at[i]];
        if (l->open > 0 && level_of(l) < level)
            level = level_of(l);
    }
    return level > 1 ? level : 1;
}

static bool is_stopped(const gy_sim *sim, const gy_sim_job *j, int64_t level)
{
    if (j->cap <= level)
        return true;
    for (uint32_t i = 0; i < j->resources; i++)
        if (sim->link[j->resource[i]].full)
            return true;
    return false;
}

static void fix(gy_sim *sim, gy_sim_job *j, int64_t level)
{
    j->open = false;
    j->next_rate = level;
    for (uint32_t i = 0; i < j->resources; i++) {
        gy_sim_link *l = &sim->link[j->resource[i]];
        int64_t taken = taken_at(j, i, level);
        l->rest -= taken < l->rest ? taken : l->rest;
        l->open -= weight_of(j, i);
    }
}

/* Which resources are full is decided before any flow is fixed: the rates then do not depend on the order of the lists.
 */
static void fill(gy_sim *sim)
{
    for (size_t open = sim->flows.count; open > 0;) {
        int64_t level = next_level(sim);
        for (size_t i = 0; i < sim->links.count; i++) {
            gy_sim_link *l = &sim->link[sim->links.at[i]];
            l->full = l->open > 0 && level_of(l) <= level;
        }
        for (size_t i = 0; i < sim->flows.count; i++) {
            gy_sim_job *j = &sim->jobs.at[sim->flows.at[i]];
            if (j->open && is_stopped(sim, j, level)) {
                fix(sim, j, level);
                open--;
            }
        }
    }
}

static gy_ticks ticks_left(const gy_sim_job *j)
{
    gy_int128 ticks = (j->left + j->rate - 1) / j->rate;
    return ticks > GY_TICKS_MAX ? GY_TICKS_MAX : (gy_ticks)ticks;
}

static void set_rate(gy_sim *sim, uint32_t job)
{
    gy_sim_job *j = &sim->jobs.at[job];
    if (j->rate == j->next_rate)
        return;
    bool begins = j->rate == 0;
    j->left -= (gy_int128)j->rate * (sim->now - j->since);
    if (j->left < 0)
        j->left = 0; /* caps are rounded up: the last fraction of a tick */
    j->since = sim->now;
    j->rate = j->next_rate;
    j->unhindered = begins && j->rate == j->cap;
    j->time = gy_ticks_both(sim->now, j->unhindered ? j->alone : ticks_left(j));
    gy_sim_queue_update(sim, job);
}

void gy_sim_set_rates(gy_sim *sim)
{
    if (sim->dirty.count == 0)
        return;
    collect(sim);
    fill(sim);
    for (size_t i = 0; i < sim->flows.count; i++)
        set_rate(sim, sim->flows.at[i]);
}
