/* SPDX-License-Identifier: Apache-2.0 */
/* The order of ops: lane order and the rows of the sync table as one list of edges, and the cycle in it if any. */
#include "sim/internal.h"

#include "base/error.h"

/* Calls `visit` for every edge: sync rows; each op of a lane to the next; the last of a lane to the first, one start
 * later. */
typedef void (*visitor)(gy_sim *sim, uint32_t from, gy_sim_edge edge);

const gy_route *gy_sim_route(const gy_sim *sim, const gy_op *op)
{
    const gy_use *use = gy_vec_from(&sim->s->use, op->use);
    return gy_machine_route(sim->m, sim->s->instances.at[use[0].instance].memory,
                            sim->s->instances.at[use[1].instance].memory);
}

bool gy_sim_is_message(const gy_sim *sim, const gy_op *op)
{
    if (!gy_op_is_copy(op) || op->joined || !sim->m->contention || op->lanes != 1)
        return false;
    const gy_lane *lane = &sim->s->lanes.at[sim->s->op_lane.at[op->lane]];
    return lane->kind == GY_LANE_COPY && !sim->m->device[lane->device].gpu && gy_sim_route(sim, op)->network;
}

static uint32_t memory_of(const gy_sim *sim, const gy_op *op, uint32_t k)
{
    return sim->s->instances.at[sim->s->use.at[op->use + k].instance].memory;
}

/* Is the memory where the message comes: of that rank, or, where it stays within a rank, the same? */
static bool is_there(const gy_sim *sim, const gy_op *message, uint32_t memory)
{
    uint32_t from = memory_of(sim, message, 0), to = memory_of(sim, message, 1);
    const gy_memory *m = sim->m->memory;
    return m[from].rank == m[to].rank ? memory == to : m[memory].rank == m[to].rank;
}

/* Has it, or one of its batch, anything to do where the message comes? */
static bool touches(const gy_sim *sim, const gy_op *op, const gy_op *message)
{
    bool found = false;
    for (uint32_t k = 0; k < op->lanes; k++)
        found = found || is_there(sim, message, sim->m->device[gy_op_device(sim->s, op, k)].memory);
    for (uint32_t i = 0; i < (op->batch ? op->batch : 1); i++)
        for (uint32_t k = 0; k < op[i].uses; k++)
            found = found || is_there(sim, message, memory_of(sim, &op[i], k));
    return found;
}

/* It is a message of the same way, which comes no sooner: who gets both takes them in their order. */
static bool follows(const gy_sim *sim, const gy_op *op, const gy_op *message)
{
    return gy_sim_is_message(sim, op) && is_there(sim, message, memory_of(sim, op, 1)) &&
           !is_there(sim, message, memory_of(sim, op, 0)) &&
           gy_route_latency(gy_sim_route(sim, op)) >= gy_route_latency(gy_sim_route(sim, message));
}

/* An op that waits for a message waits until it is sent, if all it touches is where that comes from, else until it
 * comes: each rank has its own side of it. Those of a batch are one, the first. */
static void visit_wait(gy_sim *sim, uint32_t from, gy_sim_edge edge, visitor visit)
{
    const gy_op *ops = sim->s->ops.at, *op = &ops[edge.to];
    uint32_t head = from;
    while (head && ops[head].joined)
        head--;
    edge.sent = edge.distance == 0 && head < edge.to && gy_sim_is_message(sim, &ops[head]) &&
                (!touches(sim, op, &ops[head]) || follows(sim, op, &ops[head]));
    visit(sim, edge.sent ? head : from, edge);
}

static void visit_edges(gy_sim *sim, uint32_t *first, uint32_t *last, visitor visit)
{
    const gantry_schedule *s = sim->s;
    for (size_t i = 0; i < s->sync.count; i++)
        visit_wait(sim, s->sync.at[i].from, (gy_sim_edge){ s->sync.at[i].to, s->sync.at[i].distance, false }, visit);
    for (size_t i = 0; i < s->lanes.count; i++)
        first[i] = last[i] = GY_NONE;
    for (uint32_t op = 0; op < sim->ops; op++)
        for (uint32_t k = 0; k < s->ops.at[op].lanes; k++) {
            uint32_t lane = s->op_lane.at[s->ops.at[op].lane + k];
            if (first[lane] == GY_NONE)
                first[lane] = op;
            else
                visit_wait(sim, last[lane], (gy_sim_edge){ op, 0, false }, visit);
            last[lane] = op;
        }
    for (size_t i = 0; i < s->lanes.count; i++)
        if (first[i] != GY_NONE)
            visit(sim, last[i], (gy_sim_edge){ first[i], 1, false });
}

static void count_edge(gy_sim *sim, uint32_t from, gy_sim_edge edge)
{
    sim->edge_first[from + 1]++;
    for (uint64_t start = edge.distance; start < sim->starts; start++)
        sim->waits[start * sim->ops + edge.to]++;
}

/* edge_first[from] is where the next edge of `from` goes: after all of them it is where the edges of from + 1 begin. */
static void store_edge(gy_sim *sim, uint32_t from, gy_sim_edge edge)
{
    sim->edge[sim->edge_first[from]++] = edge;
}

static void wait_for_starts(gy_sim *sim)
{
    for (uint64_t start = sim->s->in_flight; start < sim->starts; start++)
        for (uint32_t op = 0; op < sim->ops; op++)
            sim->waits[start * sim->ops + op]++;
}

gantry_status gy_sim_order(gy_sim *sim, gantry_error *err)
{
    size_t lanes = sim->s->lanes.count, n = sim->ops;
    uint32_t *first = gy_calloc(2 * lanes, sizeof *first);
    sim->edge_first = gy_calloc(n + 1, sizeof *sim->edge_first);
    if (!first || !sim->edge_first)
        goto nomem;
    visit_edges(sim, first, first + lanes, count_edge);
    for (size_t i = 0; i < n; i++)
        sim->edge_first[i + 1] += sim->edge_first[i];
    sim->edge = gy_calloc(sim->edge_first[n], sizeof *sim->edge);
    if (!sim->edge)
        goto nomem;
    visit_edges(sim, first, first + lanes, store_edge);
    for (size_t i = n; i > 0; i--)
        sim->edge_first[i] = sim->edge_first[i - 1];
    sim->edge_first[0] = 0;
    wait_for_starts(sim);
    gy_free(first);
    return GANTRY_OK;
nomem:
    gy_free(first);
    return gy_fail_nomem(err);
}

/* An op of the first start that is left over has a predecessor (distance 0) that is left over: walking back must come
 * round. Only the first start is looked at: what starts wait for goes forward, so a later one is stuck only behind it.
 */
static void find_blockers(const gy_sim *sim, uint32_t *blocker)
{
    for (uint32_t from = 0; from < sim->ops; from++)
        for (size_t e = sim->edge_first[from]; e < sim->edge_first[from + 1]; e++) {
            uint32_t to = sim->edge[e].to;
            if (sim->waits[from] > 0 && sim->edge[e].distance == 0 && blocker[to] == GY_NONE)
                blocker[to] = from;
        }
}

static void write_cycle(const gy_sim *sim, const uint32_t *blocker, uint32_t op, gy_text *text)
{
    uint32_t length = 0;
    for (uint32_t at = op; length == 0 || at != op; at = blocker[at])
        length++;
    for (uint32_t i = 0, at = op; i < length; i++, at = blocker[at]) {
        if (i >= 4 && i + 1 < length)
            continue;
        gy_text_printf(text, "%sop %u \"", i == 0 ? "" : i >= 4 ? " ... which waits for " : " which waits for ", at);
        gy_op_text(text, sim->s, at);
        gy_text_add(text, "\"");
    }
}

gantry_status gy_sim_stuck(const gy_sim *sim, gantry_error *err)
{
    uint32_t *blocker = gy_alloc(sim->ops * sizeof *blocker);
    if (!blocker)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < sim->ops; i++)
        blocker[i] = GY_NONE;
    find_blockers(sim, blocker);
    uint32_t op = 0;
    while (sim->waits[op] == 0)
        op++;
    for (uint32_t i = 0; i < sim->ops; i++)
        op = blocker[op]; /* as many steps as there are ops: on the cycle by now */
    gy_text text = { 0 };
    write_cycle(sim, blocker, op, &text);
    gantry_status status =
        text.failed || !text.at
            ? gy_fail_nomem(err)
            : gy_fail(err, GANTRY_E_SCHEDULE, NULL,
                      "ops wait for each other for ever: %s which waits for op %u again; every row of "
                      "the sync table must go forward in position",
                      text.at, op);
    gy_text_free(&text);
    gy_free(blocker);
    return status;
}
