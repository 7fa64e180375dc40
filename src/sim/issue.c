/* SPDX-License-Identifier: Apache-2.0 */
/* The time that the host needs to give work out: as streams, or where GPUs wait for each other (sim.h). */
#include "sim/internal.h"

#include "base/error.h"
#include "schedule/gates/gates.h"
#include <string.h>

/* Of another GPU than the first. */
static bool is_other_gpu(const gy_sim *sim, const gy_lane *first, const gy_lane *lane)
{
    return first->device != lane->device && sim->m->device[lane->device].gpu;
}

static uint32_t host_of(const gy_sim *sim, const gy_lane *lane)
{
    return sim->m->memory[sim->m->device[lane->device].memory].computer;
}

/* Between memories of two GPUs of a computer. */
static bool is_peer_copy(const gy_sim *sim, const gy_op *op)
{
    if (!gy_op_is_copy(op) || op->joined)
        return false;
    const gy_memory *from = &sim->m->memory[sim->s->instances.at[sim->s->use.at[op->use].instance].memory];
    const gy_memory *to = &sim->m->memory[sim->s->instances.at[sim->s->use.at[op->use + 1].instance].memory];
    return from != to && !from->host && !to->host && from->computer == to->computer;
}

/* From an op of another computer; those without lanes are of any. */
static bool is_message(const gy_sim *sim, const gy_sync *row)
{
    const gy_lane *a = gy_sim_lead(sim, row->from), *b = gy_sim_lead(sim, row->to);
    return a && b && host_of(sim, a) != host_of(sim, b);
}

/* From a GPU to another one of its computer. */
static bool crosses(const gy_sim *sim, const gy_sync *row)
{
    const gy_lane *a, *b;
    return gy_sim_between(sim, row->from, row->to, &a, &b) && is_other_gpu(sim, a, b) &&
           sim->m->device[a->device].gpu && !is_message(sim, row);
}

/* A wait of one lane for another of the same GPU is an edge that this GPU knows of by itself: by 16 lists on each of
 * two H200s a step of a stencil, with 60 such waits more than by one, takes 9.6 us in place of 7.2. The host gives out
 * what leads from GPU to GPU of its computer: copies, what they wait for, and what waits for them. */
static bool is_given_out(const gy_sim *sim, const gy_sync *row)
{
    return row->carrier != GY_CARRIER_LANE && !is_message(sim, row) &&
           (crosses(sim, row) || is_peer_copy(sim, &sim->s->ops.at[row->to]));
}

/* Each computer has a host that gives its work out: `at` is when it has come so far, `bit` what it needs for each wait,
 * `last` the item it came to, and 1; all by the first memory of the computer. `row` is per op: waits that lead to it.
 */
typedef struct hosts {
    gy_ticks *at, *bit;
    size_t *last;
    uint32_t *row;
} hosts;

/* The lanes that its hosts give out one by one: of GPUs that meet by counters each has its part with its other work. */
static uint32_t lanes_given_out(const gy_sim *sim, const gy_op *op)
{
    return op->lanes > 1 && (op->joined || gy_sim_meets(sim, op)) ? 1 : op->lanes;
}

/* A collective makes GPUs wait for each other; the lane of its host before is kept in `last` meanwhile. */
static void count_lanes(const gy_sim *sim, hosts *h, const gy_op *op, gy_ticks bit)
{
    uint32_t lanes = op->joined ? 0 : lanes_given_out(sim, op);
    for (uint32_t k = 0; k < lanes; k++) {
        const gy_lane *lane = gy_sim_lane(sim, op, k);
        uint32_t host = host_of(sim, lane);
        if (h->last[host] && is_other_gpu(sim, gy_sim_lane(sim, op, (uint32_t)h->last[host] - 1), lane))
            h->bit[host] = bit;
        h->last[host] = (size_t)k + 1;
    }
    for (uint32_t k = 0; k < lanes; k++)
        h->last[host_of(sim, gy_sim_lane(sim, op, k))] = 0;
}

/* Waits that are given out, and the hosts whose GPUs wait for each other: all others give their work out at once. */
static void count_waits(const gy_sim *sim, hosts *h)
{
    const gantry_schedule *s = sim->s;
    gy_ticks bit = sim->gates ? 0 : sim->m->issue;
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        h->row[row->to] += is_given_out(sim, row);
        if (crosses(sim, row))
            h->bit[host_of(sim, gy_sim_lead(sim, row->to))] = bit;
    }
    for (uint32_t op = 0; op < sim->ops; op++) {
        h->row[op] += is_peer_copy(sim, &s->ops.at[op]);
        count_lanes(sim, h, &s->ops.at[op], bit);
    }
}

/* The host comes to the item after what it gave out before: a call, and `waits`, or two of them for another lane. */
static gy_ticks come(hosts *h, uint32_t host, size_t item, gy_ticks call, uint32_t waits)
{
    bool again = h->last[host] == item + 1;
    gy_ticks bits = gy_ticks_repeated(h->bit[host], again ? 2 : waits);
    h->last[host] = item + 1;
    return h->at[host] = gy_ticks_both(h->at[host], gy_ticks_both(again ? 0 : call, bits));
}

static gy_ticks later(gy_ticks a, gy_ticks b)
{
    return a > b ? a : b;
}

/* When all hosts that have a part of it have come to it: of a copy over a network, those of both ends. */
static gy_ticks come_to_all(const gy_sim *sim, hosts *h, size_t item)
{
    const gy_op *op = &sim->s->ops.at[item % sim->ops];
    gy_ticks call = op->joined || sim->s->replay != GY_REPLAY_STREAM ? 0 : sim->m->submit;
    gy_ticks at = op->lanes ? 0 : come(h, 0, item, call, h->row[item % sim->ops]);
    for (uint32_t k = 0; k < lanes_given_out(sim, op); k++)
        at = later(at, come(h, host_of(sim, gy_sim_lane(sim, op, k)), item, call, k ? 0 : h->row[item % sim->ops]));
    for (uint32_t k = 0; k < 2 && gy_op_is_copy(op) && op->lanes; k++) {
        uint32_t memory = sim->s->instances.at[sim->s->use.at[op->use + k].instance].memory;
        uint32_t host = sim->m->memory[memory].computer;
        if (h->last[host] != item + 1)
            at = later(at, come(h, host, item, call, 0));
    }
    return at;
}

/* A start that waits for another to end is given out like the first: each op so much later than the start may begin. */
static bool keep_given(gy_sim *sim)
{
    if (sim->starts <= sim->s->in_flight || sim->ops == 0)
        return true;
    sim->given = gy_calloc(sim->ops, sizeof *sim->given);
    if (sim->given)
        memcpy(sim->given, sim->due, sim->ops * sizeof *sim->given);
    return sim->given != NULL;
}

static gy_ticks graphs_given_out(const gy_sim *sim)
{
    return sim->s->replay == GY_REPLAY_STREAM && !sim->gates ? 0 : gy_gates_given_out(sim->s, sim->gates);
}

static bool give_out(gy_sim *sim, hosts *h, gy_ticks begin)
{
    for (uint32_t i = 0; i < sim->m->memories; i++)
        h->at[i] = begin;
    count_waits(sim, h);
    for (size_t i = 0; i < (size_t)sim->ops * sim->starts; i++)
        sim->due[i] = come_to_all(sim, h, i);
    return keep_given(sim);
}

gantry_status gy_sim_issue(gy_sim *sim, gantry_error *err)
{
    bool streams = sim->s->replay == GY_REPLAY_STREAM && sim->m->submit;
    gy_ticks begin = gy_ticks_both(sim->m->start, graphs_given_out(sim));
    if (!sim->m->issue && !streams && !begin)
        return GANTRY_OK;
    uint32_t n = sim->m->memories;
    hosts h = { .at = gy_calloc(n, sizeof *h.at), .bit = gy_calloc(n, sizeof *h.bit) };
    h.last = gy_calloc(n, sizeof *h.last);
    h.row = gy_calloc((size_t)sim->ops + 1, sizeof *h.row);
    bool done = h.at && h.bit && h.last && h.row && give_out(sim, &h, begin);
    gy_free(h.at);
    gy_free(h.bit);
    gy_free(h.last);
    gy_free(h.row);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
