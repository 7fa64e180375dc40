/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/plan/known.h"

#include "schedule/usage.h"
#include "scheduler/plan/plan.h"

uint64_t gy_placement_hash(const gy_plan *p, uint64_t seed)
{
    size_t tasks = p->flow->tasks;
    const gy_placement *at = &p->placed;
    uint64_t hash = gy_hash_bytes(at->device, tasks * sizeof *at->device, seed);
    hash = gy_hash_bytes(at->order, tasks * sizeof *at->order, hash);
    hash = gy_hash_bytes(at->start, tasks * sizeof *at->start, hash);
    hash = gy_hash_bytes(at->finish, tasks * sizeof *at->finish, hash);
    for (size_t i = 0; i < p->inputs.teams.count; i++) {
        const gy_team *team = &p->inputs.teams.at[i];
        hash = gy_hash_bytes(team->device, team->ranks * sizeof *team->device, hash ^ team->algorithm);
    }
    return hash;
}

/* Every flag of an attempt that a pass after the placement reads is in the hash; replicas are found after it, or
 * not even looked for. */
bool gy_known_hash(const gy_plan *p, uint64_t *hash)
{
    const gy_attempt *a = p->attempt;
    uint32_t asked[] = { a->spare_memory, a->keep_copies, a->prefer_collectives,
                         a->keep_hops,    a->from_makers, a->keep_single,
                         a->pack_copies,  a->replicate,   a->settled && !a->replicate,
                         a->one_instance, a->join_teams };
    if (!p->known || a->make_room || a->is_known_not_to_fit || a->in_flight != 1 || a->watch != GY_NONE)
        return false;
    *hash = gy_placement_hash(p, gy_hash_bytes(asked, sizeof asked, 1));
    return true;
}

bool gy_known_recall(gy_plan *p, uint64_t hash)
{
    uint64_t i;
    if (!gy_map_get(&p->known->number, hash, &i))
        return false;
    p->end = p->known->end.at[i];
    p->recalled = true;
    return true;
}

void gy_plan_note_end(gy_plan *p)
{
    const gantry_schedule *s = p->schedule;
    p->end = (gy_plan_end){ .makespan = s->makespan,
                            .small_copies = p->small_copies,
                            .moved = gy_schedule_bytes_moved(s),
                            .memory = gy_schedule_memory(s),
                            .devices = gy_schedule_devices_used(s),
                            .collectives = p->collectives,
                            .passed_over = p->passed_over,
                            .passed_makers = p->passed_makers,
                            .hops = p->hops,
                            .batched = p->batched,
                            .packed = p->packed,
                            .teams_joined = p->teams_joined,
                            .turns = p->turns,
                            .overtakes = p->placed.overtakes,
                            .teams_spare = p->teams_spare,
                            .replicable = p->placed.replicable,
                            .replicated = p->placed.replica.count > 0 };
}

bool gy_known_keep(gy_plan *p, uint64_t hash)
{
    return gy_map_put(&p->known->number, hash, p->known->end.count) && gy_vec_push(&p->known->end, p->end);
}

void gy_known_free(gy_known_plans *known)
{
    gy_map_free(&known->number);
    gy_vec_free(&known->end);
}
