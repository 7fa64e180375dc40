/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/cost/apart.h"

#include "base/error.h"

#define STEPS_TO_PLAN 32768 /* of all searches for the first plan */
#define STEPS_TO_MOVE 128   /* of a search for a plan with one group elsewhere */

/* ---- one search ---- */

static bool can_go(const gy_plan *p, uint32_t group, uint32_t device)
{
    return gy_plan_time(p, group, device) < GY_TICKS_MAX; /* the first node speaks for its group */
}

static bool is_fixed(const gy_plan *p, uint32_t group)
{
    return p->cost.coloured->decided[group] || p->placed.group_device[group] != GY_NONE;
}

/* Does a neighbour that stays where it is have the device? */
static bool is_taken(const gy_plan *p, uint32_t group, uint32_t device)
{
    const uint32_t *list = p->cost.apart[group];
    for (uint32_t i = 0; i < list[0]; i++)
        if (p->cost.coloured->device[list[i + 1]] == device && is_fixed(p, list[i + 1]))
            return true;
    return false;
}

/* Would nobody be disturbed? */
static bool is_quiet(const gy_plan *p, uint32_t group, uint32_t device)
{
    const uint32_t *list = p->cost.apart[group];
    for (uint32_t i = 0; i < list[0]; i++)
        if (p->cost.coloured->device[list[i + 1]] == device)
            return false;
    return true;
}

static uint32_t count_open(const gy_plan *p, uint32_t group)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < p->devices; d++)
        count += can_go(p, group, d) && !is_taken(p, group, d);
    return count;
}

/* Of the groups that share a device with a decided neighbour the one that has least choice; GY_NONE: all is well. */
static uint32_t find_disturbed(const gy_plan *p)
{
    const gy_apart *a = p->cost.coloured;
    uint32_t found = GY_NONE, least = UINT32_MAX;
    for (uint32_t k = 0; k < a->trailed; k++) {
        const uint32_t *list = p->cost.apart[a->trail[k]];
        for (uint32_t i = 0; i < list[0]; i++) {
            uint32_t other = list[i + 1];
            if (a->device[other] != a->device[a->trail[k]] || a->decided[other])
                continue;
            uint32_t open = count_open(p, other);
            if (open < least) {
                least = open;
                found = other;
            }
        }
    }
    return found;
}

static void decide(gy_apart *a, uint32_t group, uint32_t device)
{
    a->before[a->trailed] = a->device[group];
    a->trail[a->trailed++] = group;
    a->device[group] = device;
    a->decided[group] = 1;
}

static void take_back(gy_apart *a)
{
    uint32_t group = a->trail[--a->trailed];
    a->device[group] = a->before[a->trailed];
    a->decided[group] = 0;
}

/* Moves whoever is disturbed until nobody is; false: as before, it cannot be, or takes too many steps. */
static bool settle(const gy_plan *p)
{
    gy_apart *a = p->cost.coloured;
    uint32_t group = find_disturbed(p);
    if (group == GY_NONE)
        return true;
    for (int quiet = 1; quiet >= 0; quiet--) /* those first that need no more moves */
        for (uint32_t d = 0; d < p->devices; d++) {
            if (!can_go(p, group, d) || is_taken(p, group, d) || is_quiet(p, group, d) != quiet)
                continue;
            if (a->steps == 0)
                return false;
            a->steps--;
            decide(a, group, d);
            if (settle(p))
                return true;
            take_back(a);
        }
    return false;
}

/* Is there a plan that has the group there? It becomes the plan if `keep`. */
static bool move(const gy_plan *p, uint32_t group, uint32_t device, uint64_t steps, bool keep)
{
    gy_apart *a = p->cost.coloured;
    if (!can_go(p, group, device) || is_taken(p, group, device))
        return false;
    a->steps = steps;
    decide(a, group, device);
    bool done = settle(p);
    for (uint32_t i = 0; i < a->trailed && done && keep; i++)
        a->decided[a->trail[i]] = 0;
    if (done && keep)
        a->trailed = 0;
    while (a->trailed)
        take_back(a);
    return done;
}

/* ---- the first plan ---- */

/* Finds room for one more group. *unknown: there may be some all the same. */
static bool add_group(const gy_plan *p, uint32_t group, bool *unknown)
{
    gy_apart *a = p->cost.coloured;
    for (uint32_t d = 0; d < p->devices; d++)
        if (can_go(p, group, d) && is_quiet(p, group, d)) {
            a->device[group] = d;
            return true;
        }
    for (uint32_t d = 0; d < p->devices; d++)
        if (move(p, group, d, a->steps, true))
            return true;
    *unknown = a->steps == 0;
    return false;
}

static uint32_t count_devices(const gy_plan *p, uint32_t group)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < p->devices; d++)
        count += can_go(p, group, d);
    return count;
}

/* Groups from neighbour to neighbour (breadth first), from those on that have least choice: so a graph that two devices
 * are enough for needs no search. `queue` gets all of them; `seen` is scratch. Returns how many. */
static uint32_t line_up(const gy_plan *p, uint32_t *queue, uint8_t *seen)
{
    uint32_t groups = (uint32_t)p->graph->nodes.count, count = 0, head = 0;
    for (uint32_t choice = 1; choice <= p->devices; choice++)
        for (uint32_t g = 0; g < groups; g++) {
            if (!p->cost.apart[g] || seen[g] || count_devices(p, g) != choice)
                continue;
            seen[g] = 1;
            for (queue[count++] = g; head < count; head++) {
                const uint32_t *list = p->cost.apart[queue[head]];
                for (uint32_t i = 0; i < list[0]; i++)
                    if (!seen[list[i + 1]]) {
                        seen[list[i + 1]] = 1;
                        queue[count++] = list[i + 1];
                    }
            }
        }
    return count;
}

static gantry_status add_groups(gy_plan *p, const uint32_t *queue, uint32_t count, gantry_error *err)
{
    bool unknown = false;
    for (uint32_t i = 0; i < count; i++) {
        if (add_group(p, queue[i], &unknown))
            continue;
        p->cost.coloured = NULL; /* not known: policies try their luck */
        return unknown ? GANTRY_OK : gy_apart_refuse(p, queue[i], err);
    }
    return GANTRY_OK;
}

static gy_apart *new_apart(gy_plan *p)
{
    size_t groups = p->graph->nodes.count;
    gy_apart *a = gy_arena_calloc(&p->arena, 1, sizeof *a);
    if (!a)
        return NULL;
    a->device = gy_arena_alloc(&p->arena, groups * sizeof *a->device);
    a->trail = gy_arena_alloc(&p->arena, groups * sizeof *a->trail);
    a->before = gy_arena_alloc(&p->arena, groups * sizeof *a->before);
    a->decided = gy_arena_calloc(&p->arena, groups, 1);
    a->closed = gy_arena_calloc(&p->arena, groups * p->devices, sizeof *a->closed);
    a->age = 1;
    a->steps = STEPS_TO_PLAN;
    if (!a->device || !a->trail || !a->before || !a->decided || !a->closed)
        return NULL;
    for (size_t g = 0; g < groups; g++)
        a->device[g] = GY_NONE;
    return a;
}

gantry_status gy_apart_plan(gy_plan *p, gantry_error *err)
{
    size_t nodes = p->graph->nodes.count;
    bool any = false;
    for (size_t g = 0; g < nodes && !any; g++)
        any = p->cost.apart[g] != NULL;
    if (!any)
        return GANTRY_OK;
    uint32_t *queue = gy_calloc(nodes, sizeof *queue);
    uint8_t *seen = gy_calloc(nodes, 1);
    gantry_status status = GANTRY_OK;
    p->cost.coloured = queue && seen ? new_apart(p) : NULL;
    if (p->cost.coloured)
        status = add_groups(p, queue, line_up(p, queue, seen), err);
    else
        status = gy_fail_nomem(err);
    gy_free(queue);
    gy_free(seen);
    return status;
}

/* ---- while tasks are placed ---- */

bool gy_apart_is_open(const gy_plan *p, uint32_t group, uint32_t device)
{
    gy_apart *a = p->cost.coloured;
    if (a->device[group] == device)
        return true;
    uint32_t *closed = &a->closed[(size_t)group * p->devices + device];
    if (*closed == a->age)
        return false;
    bool open = move(p, group, device, STEPS_TO_MOVE, false);
    *closed = open ? 0 : a->age;
    return open;
}

/* Whoever asked when the plan was another one may need a longer search now. Without a plan policies try their luck. */
void gy_apart_placed(gy_plan *p, uint32_t group, uint32_t device)
{
    if (!p->cost.coloured || !p->cost.apart[group] || p->cost.coloured->device[group] == device)
        return;
    if (!move(p, group, device, STEPS_TO_MOVE, true) && !move(p, group, device, STEPS_TO_PLAN, true))
        p->cost.coloured = NULL;
}

void gy_apart_taken_back(gy_plan *p)
{
    if (p->cost.coloured)
        p->cost.coloured->age++;
}

gantry_status gy_apart_refuse(const gy_plan *p, uint32_t node, gantry_error *err)
{
    const gy_node *n = &p->graph->nodes.at[node];
    return gy_graph_fail(p->graph, n->origin, err, GANTRY_E_UNSUPPORTED,
                         "no device of machine \"%s\" is left for node \"%s\" with what it is kept apart from; "
                         "use more devices or drop some \"apart\"",
                         p->machine->name, n->id);
}
