/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that several passes ask of a plan. */
#include "scheduler/plan/plan.h"

void gy_plan_forget_draft(gy_plan *p)
{
    gy_vec_free(&p->draft.instance);
    gy_vec_free(&p->draft.op);
    gy_vec_free(&p->draft.use);
    gy_vec_free(&p->rank_device);
    gy_vec_free(&p->draft.edges);
    gy_free(p->sequence.draft_of);
    gy_free(p->sequence.expect);
    p->sequence.draft_of = NULL;
    p->sequence.expect = NULL;
}

uint32_t gy_plan_copier(const gy_plan *p, uint32_t from, uint32_t to)
{
    uint32_t there = gy_plan_device_of(p, to), here = gy_plan_device_of(p, from);
    if (from != 0 && here != GY_NONE)
        return here;
    if (to != 0 && there != GY_NONE)
        return there;
    return here != GY_NONE ? here : there;
}

uint32_t gy_plan_device_of(const gy_plan *p, uint32_t memory)
{
    return p->device_of[memory];
}

const char *gy_plan_room_remedy(const gy_plan *p, uint32_t memory)
{
    return p->limited[memory] ? "raise --max-memory, take" : "take";
}

const char *gy_plan_scratch_text(const gy_plan *p, uint32_t memory, char *to, size_t size)
{
    char bytes[32];
    *to = 0;
    if (p->scratch && p->scratch[memory])
        snprintf(to, size, " beside %s of scratch", gy_bytes_text(bytes, sizeof bytes, p->scratch[memory]));
    return to;
}

bool gy_plan_holds(const gy_plan *p, const gy_dep *d, uint32_t to)
{
    return d->kinds & GY_DEP_DATA ||
           (d->kinds & GY_DEP_ORDER && gy_node_is_after(p->graph, gy_plan_node(p, to), p->flow->task[d->from].node));
}

static bool contributes(const gy_plan *p, uint32_t task)
{
    const gy_node *n = gy_plan_node(p, task);
    for (uint32_t k = 0; k < n->accesses; k++)
        if (p->graph->access.at[n->access + k].mode >= GANTRY_SUM)
            return true;
    return false;
}

bool gy_plan_holds_within(const gy_plan *p, const gy_dep *d, uint32_t to)
{
    return !gy_plan_holds(p, d, to) && !gy_plan_team(p, d->from) && !contributes(p, d->from) && !contributes(p, to);
}

gy_team *gy_plan_team(const gy_plan *p, uint32_t task)
{
    uint64_t index;
    if (!p->inputs.teams.count || !gy_map_get(&p->inputs.team_of, task, &index))
        return NULL;
    return &p->inputs.teams.at[index];
}

uint32_t gy_plan_rank_home(const gy_plan *p, const gy_team *team, uint32_t i)
{
    if (team->fixed)
        return team->fixed[i];
    if (team->writer[i] == GY_NONE)
        return GY_NONE;
    const gy_team *writer = gy_plan_team(p, team->writer[i]);
    return writer ? writer->device[team->writer_rank[i]] : p->placed.device[team->writer[i]];
}

uint32_t gy_access_rank(const gy_node_extra *x, uint32_t k)
{
    uint32_t count = k < x->ins ? x->ins : x->outs, index = k < x->ins ? k : k - x->ins;
    uint32_t ranks = x->ins > x->outs ? x->ins : x->outs;
    return count == 1 && ranks > 1 && x->root >= 0 ? (uint32_t)x->root : index;
}
