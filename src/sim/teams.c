/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as flows: what each takes of the resources that its transfers cross, found once for all starts. */
#include "sim/internal.h"

#include "base/error.h"
#include "schedule/traffic/traffic.h"

#define WEIGHT_MOST (INT64_C(1) << 40) /* who needs a resource a million times less is not held up there */

/* True if a takes longer than b to cross. */
static bool is_slower(const gantry_machine *m, const gy_crossing *a, const gy_crossing *b)
{
    return (gy_int128)a->bytes * m->resource[b->resource].rate > (gy_int128)b->bytes * m->resource[a->resource].rate;
}

/* The part of a resource that the load takes while the busiest one's takes all of its own: rounded up, but not so far
 * that this one would be the busier. */
static gy_int128 weight_of(const gantry_machine *m, const gy_crossing *load, const gy_crossing *busiest)
{
    gy_int128 weight = (((gy_int128)load->bytes << GY_SIM_ONE_BITS) + busiest->bytes - 1) / busiest->bytes;
    gy_int128 most =
        ((gy_int128)m->resource[load->resource].rate << GY_SIM_ONE_BITS) / m->resource[busiest->resource].rate;
    return weight < most ? weight : most;
}

static bool add_weights(gy_sim *sim, const gy_crossings *loads, const gy_crossing *busiest)
{
    for (size_t i = 0; i < loads->count; i++) {
        gy_int128 weight = weight_of(sim->m, &loads->at[i], busiest);
        if (weight < 1 || weight > WEIGHT_MOST)
            continue;
        if (!gy_vec_push(&sim->team_resource, loads->at[i].resource) ||
            !gy_vec_push(&sim->team_weight, (uint64_t)weight))
            return false;
    }
    return true;
}

/* Where a measured duration is shorter than the busiest resource needs, the duration holds. */
static bool add_team(gy_sim *sim, uint32_t op, const gy_crossings *loads)
{
    const gy_crossing *busiest = &loads->at[0];
    gy_ticks duration = sim->s->ops.at[op].duration;
    for (size_t i = 1; i < loads->count; i++)
        busiest = is_slower(sim->m, &loads->at[i], busiest) ? &loads->at[i] : busiest;
    int64_t rate = sim->m->resource[busiest->resource].rate;
    gy_int128 cap = (gy_int128)busiest->bytes * GY_TICKS_PER_S / duration;
    gy_sim_team team = { .first = sim->team_resource.count, .cap = cap < rate ? (int64_t)cap : rate };
    if (team.cap < 1)
        return true;
    team.bytes = cap < rate ? busiest->bytes : (int64_t)((gy_int128)rate * duration / GY_TICKS_PER_S);
    if (!add_weights(sim, loads, busiest))
        return false;
    team.resources = (uint32_t)(sim->team_resource.count - team.first);
    sim->team_of[op] = (uint32_t)sim->team.count + 1;
    return gy_vec_push(&sim->team, team);
}

static bool find_teams(gy_sim *sim)
{
    gy_link_traffic traffic;
    gy_crossings loads = { 0 };
    bool done = gy_link_traffic_init(&traffic, sim->m) && (sim->team_of = gy_calloc(sim->ops, sizeof *sim->team_of));
    for (uint32_t i = 0; i < sim->ops && done; i++) {
        const gy_op *op = &sim->s->ops.at[i];
        if (op->kind != GY_OP_COLLECTIVE || op->duration <= 0)
            continue;
        loads.count = 0;
        done = gy_link_traffic_of_op(&traffic, sim->s, op, &loads) && (!loads.count || add_team(sim, i, &loads));
    }
    gy_link_traffic_free(&traffic);
    gy_vec_free(&loads);
    return done;
}

static bool has_collectives(const gantry_schedule *s)
{
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_COLLECTIVE)
            return true;
    return false;
}

gantry_status gy_sim_teams(gy_sim *sim, gantry_error *err)
{
    if (!sim->m->contention || !has_collectives(sim->s))
        return GANTRY_OK;
    return find_teams(sim) ? GANTRY_OK : gy_fail_nomem(err);
}

const gy_sim_team *gy_sim_team_of(const gy_sim *sim, uint32_t op)
{
    return sim->team_of && sim->team_of[op] ? &sim->team.at[sim->team_of[op] - 1] : NULL;
}
