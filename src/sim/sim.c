/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: beginning and ending ops in the order of time. */
#include "sim/internal.h"

#include "base/error.h"
#include "machine/gpus.h"
#include "schedule/gates/gates.h"

static const gy_op *op_of(const gy_sim *sim, uint32_t item)
{
    return &sim->s->ops.at[item % sim->ops];
}

/* True if the ops of several compute lanes take turns on one engine of the device; only launches overlap (machine.h).
 */
static bool computes_once(const gy_sim *sim, const gy_lane *lane)
{
    const gy_device *d = &sim->m->device[lane->device];
    return lane->kind == GY_LANE_COMPUTE && d->gpu && d->lanes > 1;
}

/* Which of sim->engines the op needs, one of a copy or what its device computes with; GY_NONE if it needs none: the
 * first of a batch takes it for all. */
static uint32_t engine_of(const gy_sim *sim, const gy_op *op)
{
    if (!sim->m->contention || op->lanes == 0 || op->kind == GY_OP_COLLECTIVE || op->joined)
        return GY_NONE;
    const gy_lane *lane = &sim->s->lanes.at[sim->s->op_lane.at[op->lane]];
    if (gy_op_is_copy(op))
        return lane->kind == GY_LANE_COPY ? lane->device : GY_NONE;
    return computes_once(sim, lane) ? sim->m->devices + lane->device : GY_NONE;
}

/* Its node has a `when`, and does not run. */
static bool is_left_out(const gy_sim *sim, const gy_op *op)
{
    return sim->unset && gy_op_is_conditional(sim->s, op);
}

static gy_ticks duration_of(const gy_sim *sim, const gy_op *op)
{
    return is_left_out(sim, op) ? gy_device_when(sim->m, gy_op_device(sim->s, op, 0), false) : op->duration;
}

/* The part of an op that comes before it needs its engine. */
static gy_ticks launch_of(const gy_sim *sim, const gy_op *op)
{
    uint32_t engine = engine_of(sim, op);
    return engine == GY_NONE || engine < sim->m->devices
               ? 0
               : gy_device_overlap(&sim->m->device[engine - sim->m->devices], duration_of(sim, op));
}

static uint32_t wanted_by(const gy_op *op)
{
    return gy_op_is_copy(op) ? GY_WHOLE_DEVICE : GY_WHOLE_DEVICE - op->spare;
}

static bool new_job(gy_sim *sim, uint32_t item, uint32_t *job)
{
    if (sim->spare.count > 0) {
        *job = sim->spare.at[--sim->spare.count];
        sim->jobs.at[*job] = (gy_sim_job){ .item = item };
        return true;
    }
    size_t need = sim->jobs.count + 1;
    if (!gy_vec_reserve(&sim->spare, need) || !gy_vec_reserve(&sim->queue, need) ||
        !gy_vec_reserve(&sim->flows, need) || !gy_vec_push(&sim->jobs, ((gy_sim_job){ .item = item })))
        return false;
    *job = (uint32_t)sim->jobs.count - 1;
    return true;
}

static gantry_status no_route(const gy_sim *sim, uint32_t op, uint32_t from, uint32_t to, gantry_error *err)
{
    gy_text text = { 0 };
    gy_op_text(&text, sim->s, op);
    gantry_status status =
        text.at && !text.failed
            ? gy_fail(
                  err, GANTRY_E_SCHEDULE, NULL,
                  "op %u \"%s\" copies from memory \"%s\" to \"%s\", between which there is no direct route; such a "
                  "copy needs two ops and an instance in between",
                  op, text.at, sim->m->memory[from].id, sim->m->memory[to].id)
            : gy_fail_nomem(err);
    gy_text_free(&text);
    return status;
}

/* Bytes a second at which so many take so long, rounded down; at most what the resources of the route can carry, whose
 * rates may be less than was measured of one copy. */
static int64_t even_rate(const gy_sim *sim, const gy_route *route, int64_t bytes, gy_ticks time)
{
    gy_int128 rate = time > 0 ? (gy_int128)bytes * GY_TICKS_PER_S / time : 0;
    int64_t most = GY_RATE_MAX;
    for (uint32_t i = 0; i < route->resources; i++)
        most = sim->m->resource[route->resource[i]].rate < most ? sim->m->resource[route->resource[i]].rate : most;
    return rate > most ? most : rate > 1 ? (int64_t)rate : 1;
}

/* The bytes of a copy, or of all of its batch. */
static int64_t bytes_of(const gy_sim *sim, const gy_op *op)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < (op->batch ? op->batch : 1); i++)
        bytes += gy_use_bytes(sim->s, gy_vec_from(&sim->s->use, op[i].use));
    return (int64_t)bytes;
}

/* Of the kernels that carry out a batch of copies; where there can be none it takes no less than one copy. */
static gy_ticks launches_of(const gy_sim *sim, const gy_op *op, const gy_route *route)
{
    gy_ticks time = op->batch ? gy_copies_launch(sim->m, route, gy_op_device(sim->s, op, 0), op->batch) : 0;
    return time < GY_TICKS_MAX ? time : gy_ticks_repeated(gy_route_latency(route), op->batch);
}

/* Ahead of what a copy moves: the kernels of a batch, or what asks the flag of its node. */
static gy_ticks time_ahead(const gy_sim *sim, const gy_op *op, const gy_route *route)
{
    return gy_op_has_flag(op) ? gy_device_when(sim->m, gy_op_device(sim->s, op, 0), true) : launches_of(sim, op, route);
}

/* The two phases of a copy. A flow that shares nothing is a part of the latency: one event less. A copy that takes no
 * longer than one of no bytes has them go over all of its time: one of them is in nobody's way, a thousand are. A batch
 * is one copy behind the launches of its kernels. */
static gantry_status describe_copy(gy_sim *sim, gy_sim_job *j, gantry_error *err)
{
    const gy_op *op = op_of(sim, j->item);
    const gy_use *use = gy_vec_from(&sim->s->use, op->use);
    uint32_t from = sim->s->instances.at[use[0].instance].memory;
    uint32_t to = sim->s->instances.at[use[1].instance].memory;
    const gy_route *route = gy_sim_route(sim, op);
    if (route->kind != GY_ROUTE_DIRECT)
        return no_route(sim, j->item % sim->ops, from, to, err);
    int64_t bytes = bytes_of(sim, op);
    gy_ticks begin = gy_ticks_both(sim->now, time_ahead(sim, op, route));
    gy_ticks whole = gy_route_time(sim->m, route, bytes), latency = gy_route_latency(route);
    j->alone = whole > latency ? whole - latency : 0;
    bool shares = sim->m->contention && route->resources > 0 && bytes > 0 && whole > 0, flat = j->alone == 0;
    j->phase = shares ? GY_SIM_LATENCY : GY_SIM_WORK;
    j->late = !flat && gy_sim_is_message(sim, op) ? latency : 0;
    j->time = gy_ticks_both(begin, !shares ? whole - j->late : flat || j->late ? 0 : latency);
    j->alone = flat ? whole : j->alone;
    j->cap = flat ? even_rate(sim, route, bytes, whole) : gy_route_rate(route, bytes);
    j->left = flat ? (gy_int128)j->cap * whole : (gy_int128)bytes * GY_TICKS_PER_S;
    j->resource = route->resource;
    j->resources = route->resources;
    return GANTRY_OK;
}

static void note_begin(gy_sim *sim, uint32_t item)
{
    gy_sim_start *start = &sim->out[item / sim->ops];
    if (start->begin > sim->now)
        start->begin = sim->now;
    if (item < sim->ops)
        sim->begin[item] = sim->now;
}

/* Time until the work of a computing op is done, at what it has of its device. */
static gy_ticks work_left(const gy_sim_job *j)
{
    gy_int128 ticks = (j->left + j->taken - 1) / j->taken;
    return ticks > GY_TICKS_MAX ? GY_TICKS_MAX : (gy_ticks)ticks;
}

static void describe_work(gy_sim *sim, gy_sim_job *j)
{
    const gy_op *op = op_of(sim, j->item);
    gy_ticks launch = launch_of(sim, op), whole = duration_of(sim, op), rest = whole > launch ? whole - launch : 0;
    j->phase = GY_SIM_WORK;
    j->since = sim->now;
    j->left = (gy_int128)rest * j->wanted;
    j->time = gy_ticks_both(sim->now, j->taken == j->wanted ? rest : work_left(j));
}

/* A collective: from its beginning on it shares what its transfers cross. */
static void describe_team(gy_sim *sim, gy_sim_job *j)
{
    const gy_sim_team *t = gy_sim_team_of(sim, j->item % sim->ops);
    if (!t)
        return;
    j->phase = GY_SIM_LATENCY;
    j->time = sim->now;
    j->alone = op_of(sim, j->item)->duration;
    j->cap = t->cap;
    j->left = (gy_int128)t->bytes * GY_TICKS_PER_S;
    j->resource = sim->team_resource.at + t->first;
    j->weight = sim->team_weight.at + t->first;
    j->resources = t->resources;
}

/* Begins the work of an item: all of it, or the rest where its launch came before. `taken`: of its engine, which it may
 * not have to itself; 0: it needs none. */
static gantry_status begin_job(gy_sim *sim, uint32_t item, uint32_t taken, uint32_t *job, gantry_error *err)
{
    if (!new_job(sim, item, job))
        return gy_fail_nomem(err);
    gy_sim_job *j = &sim->jobs.at[*job];
    const gy_op *op = op_of(sim, item);
    j->taken = taken;
    j->wanted = taken ? wanted_by(op) : 0;
    describe_work(sim, j);
    bool moves = gy_op_is_copy(op) && !op->joined && !is_left_out(sim, op);
    GY_TRY(moves ? describe_copy(sim, j, err) : GANTRY_OK);
    if (op->kind == GY_OP_COLLECTIVE)
        describe_team(sim, j);
    if (!launch_of(sim, op))
        note_begin(sim, item);
    gy_sim_queue_push(sim, *job);
    return GANTRY_OK;
}

static gantry_status begin_launch(gy_sim *sim, uint32_t item, gy_ticks launch, gantry_error *err)
{
    uint32_t job;
    if (!new_job(sim, item, &job))
        return gy_fail_nomem(err);
    sim->jobs.at[job].phase = GY_SIM_LAUNCH;
    sim->jobs.at[job].time = gy_ticks_both(sim->now, launch);
    note_begin(sim, item);
    gy_sim_queue_push(sim, job);
    return GANTRY_OK;
}

/* Nothing holds the item up any more but its due time: a signal, or the host, has to reach it first. */
static bool await_due(gy_sim *sim, uint32_t item)
{
    uint32_t job;
    if (!new_job(sim, item, &job))
        return false;
    sim->jobs.at[job].phase = GY_SIM_SIGNAL;
    sim->jobs.at[job].time = sim->due[item];
    gy_sim_queue_push(sim, job);
    return true;
}

static bool begin_item(gy_sim *sim, uint32_t item)
{
    return sim->due && sim->due[item] > sim->now ? await_due(sim, item) : gy_vec_push(&sim->ready, item);
}

static bool release(gy_sim *sim, uint32_t item)
{
    return --sim->waits[item] > 0 || begin_item(sim, item);
}

/* From the end of `from` to the beginning of `to`. What a lane does in turn needs no telling. */
static gy_ticks signal_between(const gy_sim *sim, uint32_t from, uint32_t to)
{
    const gy_lane *a, *b;
    if (!gy_sim_between(sim, from, to, &a, &b) || a == b)
        return 0;
    const gy_device *from_device = &sim->m->device[a->device], *to_device = &sim->m->device[b->device];
    if (sim->gates && from_device->gpu && to_device->gpu && !gy_device_same_gpu(sim->m, a->device, b->device))
        return gy_gate_cost(sim->s, from, sim->told[from]);
    /* In one graph over several GPUs small copies are told of as those of engines are: jacobi of 2,048 x 2,048 on two
     * H200s takes 1,269 us, and is predicted at 1,281 with such signals, 1,106 without. */
    bool engines = sim->gates ? gy_op_by_engine(sim->s, from) != gy_op_by_engine(sim->s, to)
                              : (a->kind == GY_LANE_COPY) != (b->kind == GY_LANE_COPY);
    return gy_device_signal(from_device, to_device, engines);
}

static void note_signal(gy_sim *sim, uint32_t from, uint32_t to, uint32_t item)
{
    gy_ticks due = sim->due ? gy_ticks_both(sim->now, signal_between(sim, from, to)) : 0;
    if (sim->due && due > sim->due[item])
        sim->due[item] = due;
}

/* The one that it waited for has ended: the host has seen that, and gives it out. */
static bool release_start(gy_sim *sim, uint64_t start)
{
    for (uint32_t op = 0; op < sim->ops; op++) {
        uint32_t item = (uint32_t)(start * sim->ops + op);
        gy_ticks due = sim->given ? gy_ticks_both(sim->now, sim->given[op]) : 0;
        if (sim->given && due > sim->due[item])
            sim->due[item] = due;
        if (!release(sim, item))
            return false;
    }
    return true;
}

/* Lets go on what waits for its end, and not, or only, for that it is sent. */
static bool release_all(gy_sim *sim, uint32_t item, bool ended, bool sent)
{
    uint32_t op = item % sim->ops, start = item / sim->ops;
    for (size_t e = sim->edge_first[op]; e < sim->edge_first[op + 1]; e++) {
        uint64_t to = start + (uint64_t)sim->edge[e].distance;
        uint32_t next = (uint32_t)(to * sim->ops + sim->edge[e].to);
        if (to >= sim->starts || !(sim->edge[e].sent ? sent : ended))
            continue;
        note_signal(sim, op, sim->edge[e].to, next);
        if (!release(sim, next))
            return false;
    }
    return true;
}

static bool end_item(gy_sim *sim, uint32_t item, bool was_sent)
{
    uint32_t op = item % sim->ops, start = item / sim->ops;
    if (start == 0)
        sim->end[op] = sim->now;
    sim->finished++;
    sim->out[start].end = sim->now;
    if (!release_all(sim, item, true, !was_sent))
        return false;
    uint64_t later = start + (uint64_t)sim->s->in_flight;
    return --sim->todo[start] > 0 || later >= sim->starts || release_start(sim, later);
}

static gantry_status begin_flow(gy_sim *sim, uint32_t job, gantry_error *err)
{
    gy_sim_job *j = &sim->jobs.at[job];
    j->phase = GY_SIM_FLOW;
    j->since = sim->now;
    j->time = GY_TICKS_MAX; /* until its rate is known, before time goes on */
    gy_sim_queue_push(sim, job);
    return gy_sim_flow_begin(sim, job) ? GANTRY_OK : gy_fail_nomem(err);
}

static bool wait_engine(gy_sim *sim, uint32_t engine, uint32_t item)
{
    sim->engines_dirty = true;
    return gy_vec_push(&sim->engines[engine].waiting, ((gy_sim_wait){ sim->now, item }));
}

static void release_engine(gy_sim *sim, uint32_t job)
{
    const gy_sim_job *j = &sim->jobs.at[job];
    if (!j->taken)
        return;
    gy_sim_engines *e = &sim->engines[engine_of(sim, op_of(sim, j->item))];
    e->idle += j->taken;
    e->hindered = e->hindered == job ? GY_NONE : e->hindered;
    sim->engines_dirty = true;
}

/* It is on its way, and holds nothing any more. */
static bool send_off(gy_sim *sim, uint32_t job)
{
    gy_sim_job *j = &sim->jobs.at[job];
    uint32_t item = j->item;
    release_engine(sim, job);
    j->taken = 0;
    j->phase = GY_SIM_WORK;
    j->sent = true;
    j->time = gy_ticks_both(sim->now, j->late);
    gy_sim_queue_push(sim, job);
    return release_all(sim, item, false, true);
}

static gantry_status handle_event(gy_sim *sim, gantry_error *err)
{
    uint32_t job = gy_sim_queue_pop(sim);
    gy_sim_job *j = &sim->jobs.at[job];
    if (j->phase == GY_SIM_LATENCY)
        return begin_flow(sim, job, err);
    if (j->phase == GY_SIM_FLOW)
        gy_sim_flow_end(sim, job);
    if (j->late && !j->sent)
        return send_off(sim, job) ? GANTRY_OK : gy_fail_nomem(err);
    bool was_sent = j->sent;
    release_engine(sim, job);
    sim->spare.at[sim->spare.count++] = job;
    if (j->phase == GY_SIM_SIGNAL)
        return gy_vec_push(&sim->ready, j->item) ? GANTRY_OK : gy_fail_nomem(err);
    if (j->phase == GY_SIM_LAUNCH)
        return wait_engine(sim, engine_of(sim, op_of(sim, j->item)), j->item) ? GANTRY_OK : gy_fail_nomem(err);
    return end_item(sim, j->item, was_sent) ? GANTRY_OK : gy_fail_nomem(err);
}

/* Begins what is ready; what needs an engine queues for one, once it is launched. */
static gantry_status begin_ready(gy_sim *sim, gantry_error *err)
{
    uint32_t job;
    while (sim->ready.count > 0) {
        uint32_t item = sim->ready.at[--sim->ready.count];
        uint32_t engine = engine_of(sim, op_of(sim, item));
        gy_ticks launch = launch_of(sim, op_of(sim, item));
        gantry_status status = launch                           ? begin_launch(sim, item, launch, err)
                               : engine == GY_NONE              ? begin_job(sim, item, 0, &job, err)
                               : wait_engine(sim, engine, item) ? GANTRY_OK
                                                                : gy_fail_nomem(err);
        if (status)
            return status;
    }
    return GANTRY_OK;
}

static bool is_urgent(const gy_sim *sim, uint32_t item)
{
    const gy_lane *lane = gy_sim_lead(sim, item % sim->ops);
    return lane && lane->urgent;
}

/* Ops of urgent lanes go before the others; then whoever has waited longest. */
static bool goes_before(const gy_sim *sim, const gy_sim_wait *a, const gy_sim_wait *b)
{
    bool urgent = is_urgent(sim, a->item);
    if (urgent != is_urgent(sim, b->item))
        return urgent;
    return a->since != b->since ? a->since < b->since : a->item < b->item;
}

static uint32_t take_first(const gy_sim *sim, gy_sim_engines *e)
{
    size_t best = 0;
    for (size_t i = 1; i < e->waiting.count; i++)
        if (goes_before(sim, &e->waiting.at[i], &e->waiting.at[best]))
            best = i;
    uint32_t item = e->waiting.at[best].item;
    e->waiting.at[best] = e->waiting.at[--e->waiting.count];
    return item;
}

/* The op that has less than it can use gets more of what is idle, before others begin. */
static void give_more(gy_sim *sim, gy_sim_engines *e)
{
    if (e->hindered == GY_NONE || !e->idle)
        return;
    gy_sim_job *j = &sim->jobs.at[e->hindered];
    uint32_t more = j->wanted - j->taken < e->idle ? j->wanted - j->taken : e->idle;
    j->left -= (gy_int128)j->taken * (sim->now - j->since);
    j->since = sim->now;
    j->taken += more;
    e->idle -= more;
    j->time = gy_ticks_both(sim->now, work_left(j));
    gy_sim_queue_update(sim, e->hindered);
    e->hindered = j->taken < j->wanted ? e->hindered : GY_NONE;
}

static gantry_status grant(gy_sim *sim, gy_sim_engines *e, gantry_error *err)
{
    give_more(sim, e);
    while (e->idle > 0 && e->waiting.count > 0) {
        uint32_t item = take_first(sim, e), wanted = wanted_by(op_of(sim, item)), job;
        uint32_t taken = wanted < e->idle ? wanted : e->idle;
        e->idle -= taken;
        GY_TRY(begin_job(sim, item, taken, &job, err));
        e->hindered = taken < wanted ? job : GY_NONE;
    }
    return GANTRY_OK;
}

static gantry_status grant_engines(gy_sim *sim, gantry_error *err)
{
    if (!sim->engines_dirty)
        return GANTRY_OK;
    sim->engines_dirty = false;
    for (uint32_t i = 0; i < 2 * sim->m->devices; i++)
        GY_TRY(grant(sim, &sim->engines[i], err));
    return GANTRY_OK;
}

/* Carries out the events at `now`, then gives engines to items, until nothing more happens at `now`; then sets the new
 * rates. So neither engines nor rates depend on the order of events that happen at the same time. */
static gantry_status settle(gy_sim *sim, gantry_error *err)
{
    gantry_status status = begin_ready(sim, err);
    do {
        while (!status && sim->queue.count > 0 && sim->jobs.at[sim->queue.at[0]].time == sim->now) {
            status = handle_event(sim, err);
            if (!status)
                status = begin_ready(sim, err);
        }
        if (!status)
            status = grant_engines(sim, err);
    } while (!status && sim->queue.count > 0 && sim->jobs.at[sim->queue.at[0]].time == sim->now);
    gy_sim_set_rates(sim);
    return status;
}

static gantry_status too_late(const gy_sim *sim, uint32_t item, gantry_error *err)
{
    gy_text text = { 0 };
    gy_op_text(&text, sim->s, item % sim->ops);
    gantry_status status =
        text.at && !text.failed
            ? gy_fail(err, GANTRY_E_SCHEDULE, NULL,
                      "op %u \"%s\" would end more than %.1f days after the start, which is more than "
                      "a schedule can hold; look for an impossible cost or rate",
                      item % sim->ops, text.at, gy_ticks_to_us(GY_TICKS_MAX) / 86400e6)
            : gy_fail_nomem(err);
    gy_text_free(&text);
    return status;
}

static gantry_status simulate(gy_sim *sim, gantry_error *err)
{
    size_t items = (size_t)sim->ops * sim->starts;
    for (uint32_t i = 0; i < items; i++)
        if (sim->waits[i] == 0 && !begin_item(sim, i))
            return gy_fail_nomem(err);
    gantry_status status = settle(sim, err);
    while (!status && sim->queue.count > 0) {
        const gy_sim_job *next = &sim->jobs.at[sim->queue.at[0]];
        if (next->time >= GY_TICKS_MAX)
            return too_late(sim, next->item, err);
        sim->now = next->time;
        status = settle(sim, err);
    }
    if (!status && sim->finished < items)
        status = gy_sim_stuck(sim, err);
    return status;
}

static bool has_dues(const gantry_machine *m)
{
    bool any = m->issue > 0 || m->submit > 0 || m->start > 0 || m->gate > 0 || m->another > 0;
    for (uint32_t i = 0; i < m->devices; i++)
        any = any || m->device[i].signal > 0;
    return any;
}

static bool set_up(gy_sim *sim)
{
    size_t n = sim->ops;
    if (has_dues(sim->m) && !(sim->due = gy_calloc(n * sim->starts, sizeof *sim->due)))
        return false;
    if (sim->gates && !(sim->told = gy_calloc(n + 1, sizeof *sim->told)))
        return false;
    if (sim->gates)
        gy_gate_told(sim->told, sim->s);
    sim->waits = gy_calloc(n * sim->starts, sizeof *sim->waits);
    sim->todo = gy_calloc(sim->starts, sizeof *sim->todo);
    sim->begin = gy_calloc(n, sizeof *sim->begin);
    sim->end = gy_calloc(n, sizeof *sim->end);
    sim->link = gy_calloc(sim->m->resources, sizeof *sim->link);
    sim->engines = gy_calloc(2 * (size_t)sim->m->devices, sizeof *sim->engines);
    if (!sim->waits || !sim->todo || !sim->begin || !sim->end || !sim->link || !sim->engines ||
        !gy_vec_reserve(&sim->dirty, sim->m->resources) || !gy_vec_reserve(&sim->links, sim->m->resources))
        return false;
    for (uint32_t i = 0; i < sim->starts; i++) {
        sim->todo[i] = sim->ops;
        sim->out[i] = (gy_sim_start){ n > 0 ? GY_TICKS_MAX : 0, 0 };
    }
    for (uint32_t i = 0; i < sim->m->devices; i++) {
        uint32_t copies = sim->m->device[i].copy_engines > 0 ? sim->m->device[i].copy_engines : 1;
        sim->engines[i] = (gy_sim_engines){ .idle = copies * GY_WHOLE_DEVICE, .hindered = GY_NONE };
        sim->engines[sim->m->devices + i] = (gy_sim_engines){ .idle = GY_WHOLE_DEVICE, .hindered = GY_NONE };
    }
    return true;
}

static void tear_down(gy_sim *sim)
{
    for (uint32_t i = 0; sim->link && i < sim->m->resources; i++)
        gy_vec_free(&sim->link[i].flows);
    for (uint32_t i = 0; sim->engines && i < 2 * sim->m->devices; i++)
        gy_vec_free(&sim->engines[i].waiting);
    void *plain[] = { sim->edge_first, sim->edge,    sim->waits, sim->due, sim->given,   sim->todo,
                      sim->link,       sim->engines, sim->begin, sim->end, sim->team_of, sim->told };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        gy_free(plain[i]);
    gy_vec_free(&sim->team);
    gy_vec_free(&sim->team_resource);
    gy_vec_free(&sim->team_weight);
    gy_vec_free(&sim->ready);
    gy_vec_free(&sim->jobs);
    gy_vec_free(&sim->spare);
    gy_vec_free(&sim->queue);
    gy_vec_free(&sim->dirty);
    gy_vec_free(&sim->links);
    gy_vec_free(&sim->flows);
}

static gantry_status carry_out(gy_sim *sim, gantry_error *err)
{
    if (!set_up(sim))
        return gy_fail_nomem(err);
    GY_TRY(gy_sim_order(sim, err));
    GY_TRY(gy_sim_issue(sim, err));
    GY_TRY(gy_sim_teams(sim, err));
    return simulate(sim, err);
}

static gantry_status run(gantry_schedule *s, bool gates, gantry_error *err)
{
    gy_sim_start whole = { 0 };
    gy_sim sim = { .s = s, .m = s->machine, .ops = (uint32_t)s->ops.count, .starts = 1, .gates = gates, .out = &whole };
    gantry_status status = carry_out(&sim, err);
    if (!status) {
        for (uint32_t i = 0; i < sim.ops; i++) {
            s->ops.at[i].start = sim.begin[i];
            s->ops.at[i].end = sim.end[i];
        }
        s->makespan = whole.end;
    }
    tear_down(&sim);
    return status;
}

/* How many graphs a start is follows from the times, and these from that: as one graph first. If that is not what its
 * times choose it is one for each GPU, if those times choose that, too. Where neither choice follows from its own times
 * it is one graph. */
static gantry_status run_as_chosen(gantry_schedule *s, gantry_error *err)
{
    bool each = false;
    s->capture = GY_CAPTURE_BY_TIMES;
    GY_TRY(run(s, false, err));
    GY_TRY(gy_gates_chosen(s, &each, err));
    if (each) {
        GY_TRY(run(s, true, err));
        GY_TRY(gy_gates_chosen(s, &each, err));
        GY_TRY(each ? GANTRY_OK : run(s, false, err));
    }
    s->capture = each ? GY_CAPTURE_EACH : GY_CAPTURE_ONE;
    return GANTRY_OK;
}

typedef struct times {
    gy_ticks start, end;
} times;

/* Of all ops, and behind them the makespan. */
static void save(const gantry_schedule *s, times *to)
{
    for (size_t i = 0; i < s->ops.count; i++)
        to[i] = (times){ s->ops.at[i].start, s->ops.at[i].end };
    to[s->ops.count].end = s->makespan;
}

static void restore(gantry_schedule *s, const times *from)
{
    for (size_t i = 0; i < s->ops.count; i++) {
        s->ops.at[i].start = from[i].start;
        s->ops.at[i].end = from[i].end;
    }
    s->makespan = from[s->ops.count].end;
}

gantry_status gy_sim_run(gantry_schedule *s, gantry_error *err)
{
    if (!gy_gates_known(s->machine))
        return run(s, false, err);
    times *before = gy_calloc(s->ops.count + 1, sizeof *before);
    if (!before)
        return gy_fail_nomem(err);
    save(s, before);
    gantry_status status = run_as_chosen(s, err);
    if (status)
        restore(s, before);
    gy_free(before);
    return status;
}

static gantry_status run_starts(gy_sim *sim, gantry_error *err)
{
    gantry_status status = gy_gates_chosen(sim->s, &sim->gates, err);
    status = status ? status : carry_out(sim, err);
    tear_down(sim);
    return status;
}

gantry_status gy_sim_run_starts(const gantry_schedule *s, uint32_t starts, gy_sim_start *out, gantry_error *err)
{
    if (starts == 0 || (uint64_t)starts * s->ops.count >= UINT32_MAX)
        return gy_fail(
            err, GANTRY_E_INVALID, NULL,
            "%u starts of %zu ops cannot be simulated; at least 1 start and fewer than %u ops in all are allowed",
            starts, s->ops.count, UINT32_MAX);
    gy_sim_start *result = gy_calloc(starts, sizeof *result);
    if (!result)
        return gy_fail_nomem(err);
    gy_sim sim = { .s = s, .m = s->machine, .ops = (uint32_t)s->ops.count, .starts = starts, .out = result };
    gantry_status status = run_starts(&sim, err);
    for (uint32_t i = 0; !status && i < starts; i++)
        out[i] = result[i];
    gy_free(result);
    return status;
}

gantry_status gy_sim_run_unset(const gantry_schedule *s, gy_ticks *makespan, gantry_error *err)
{
    gy_sim_start whole = { 0 };
    gy_sim sim = { .s = s, .m = s->machine, .ops = (uint32_t)s->ops.count, .starts = 1, .unset = true, .out = &whole };
    GY_TRY(run_starts(&sim, err));
    *makespan = whole.end;
    return GANTRY_OK;
}
