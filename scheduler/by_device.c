/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/by_device.h"

#include "base/error.h"
#include "base/memory.h"
#include "schedule/stretches/stretches.h"
#include "scheduler/devices/fewer.h"
#include "sim/sim.h"
#include <string.h>

static bool is_faster_by(gy_ticks device, gy_ticks host)
{
    gy_ticks least = gy_ticks_from_us(GY_STRETCH_PAYS_US);
    return host > least && device <= (host - least) / (100 + GY_STRETCH_PAYS) * 100;
}

/* Workers of resident kernels carry out all of the graph's nodes that may be on GPUs. */
static bool is_for_workers(const gantry_graph *g)
{
    bool all = true;
    for (size_t i = 0; i < g->nodes.count && all; i++) {
        const gy_node *n = &g->nodes.at[i];
        all = n->kind == GY_NODE_KERNEL ? gy_kernel_for_workers(&g->kernels.at[n->kernel])
                                        : n->kind == GY_NODE_COPY || n->kind == GY_NODE_FILL || n->kind == GY_NODE_HOST;
    }
    return all;
}

gantry_status gy_by_device_plan(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                                const gy_options *o, gantry_error *err)
{
    if (!is_for_workers(graph))
        return gy_fewer_run(schedule, graph, machine, o, err);
    gantry_machine *workers = gy_machine_for_workers(machine);
    gantry_status status = workers ? gy_fewer_run(schedule, graph, workers, o, err) : gy_fail_nomem(err);
    gantry_machine_free(workers);
    return status;
}

/* ---- starts of a phase ---- */

static bool varies(const gantry_schedule *s, const gy_op *op)
{
    const gy_node *n = op->node == GY_NONE ? NULL : &s->graph->nodes.at[op->node];
    bool any = n && n->loop != GY_NONE && op->kind == GY_OP_LAUNCH && n->kernel == GY_NONE;
    for (uint32_t i = 0; n && n->loop != GY_NONE && i < n->scalars; i++)
        any = any || s->graph->scalar.at[n->scalar + i].expr;
    return any;
}

/* Workers carry out all ops, and none depends on the iteration: starts of the phase are a series, which is one launch.
 */
static bool is_series(const gantry_schedule *s)
{
    bool all = s->graph != NULL;
    for (uint32_t i = 0; i < s->ops.count && all; i++)
        all = gy_stretch_may(s, i) && !varies(s, &s->ops.at[i]);
    return all;
}

/* `beyond`: what a start by workers takes beyond its ops, which counts once in a series. */
static gy_ticks time_of(const gy_schedule_phase *phase, gy_ticks one, gy_ticks beyond)
{
    gy_ticks next = one;
    if (is_series(phase->schedule))
        next = one > beyond ? one - beyond : 0;
    return gy_ticks_both(gy_ticks_both(one, gy_ticks_repeated(next, phase->phase.starts - 1)), phase->hand_over);
}

/* Of a plan for workers. */
static gy_ticks time_planned(const gantry_schedule *s)
{
    gy_ticks all = s->phases.count ? 0 : s->makespan;
    for (size_t i = 0; i < s->phases.count; i++)
        all = gy_ticks_both(all, time_of(&s->phases.at[i], s->phases.at[i].schedule->makespan, s->machine->start));
    return all;
}

/* ---- a plan for launches, as the devices would carry it out ---- */

/* An op waits one switch longer if what it is behind is carried out in the other way. */
static void add_switches(const gantry_schedule *s, const uint8_t *has, uint8_t *changes, uint32_t *last)
{
    for (size_t i = 0; i < s->lanes.count; i++)
        last[i] = GY_NONE;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        for (uint32_t k = 0; k < op->lanes; k++) {
            uint32_t *before = &last[s->op_lane.at[op->lane + k]];
            changes[i] |= *before != GY_NONE && has[*before] != has[i];
            *before = i;
        }
    }
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *row = &s->sync.at[i];
        if (row->distance == 0 && has[row->from] != has[row->to])
            changes[row->to] = 1;
    }
}

static gantry_status simulate(const gantry_schedule *s, const gy_op *ops, gy_ticks *end, gantry_error *err)
{
    gantry_schedule as = *s;
    gy_sim_start start = { 0 };
    as.machine = gy_machine_beside_workers(s->machine);
    if (!as.machine)
        return gy_fail_nomem(err);
    as.ops.at = (gy_op *)(uintptr_t)ops; /* which a simulation of starts does not change */
    gantry_status status = gy_sim_run_starts(&as, 1, &start, err);
    gantry_machine_free(as.machine);
    *end = start.end;
    return status;
}

typedef struct dealt {
    uint8_t *can, *has, *changes;
    uint32_t *last;
    gy_op *ops;
} dealt;

static gantry_status predict_dealt(const gantry_schedule *s, dealt *d, gy_ticks *time, gantry_error *err)
{
    for (uint32_t i = 0; i < s->ops.count; i++)
        d->can[i] = gy_stretch_may(s, i);
    GY_TRY(gy_stretches_choose(s, d->can, NULL, d->has, err));
    if (!gy_stretches_work(s, d->has))
        return GANTRY_OK;
    add_switches(s, d->has, d->changes, d->last);
    for (uint32_t i = 0; i < s->ops.count; i++) {
        gy_stretch_costs costs = gy_stretch_costs_of(s, i);
        d->ops[i] = s->ops.at[i];
        d->ops[i].duration =
            gy_ticks_both(d->has[i] ? costs.workers : costs.launched, d->changes[i] ? gy_stretch_switch(s, i) : 0);
    }
    return simulate(s, d->ops, time, err);
}

/* GY_TICKS_MAX: workers have nothing of it. */
static gantry_status predict_part(const gantry_schedule *s, gy_ticks *time, gantry_error *err)
{
    size_t ops = s->ops.count + 1;
    dealt d = { gy_calloc(ops, 1), gy_calloc(ops, 1), gy_calloc(ops, 1), gy_calloc(s->lanes.count + 1, sizeof *d.last),
                gy_calloc(ops, sizeof *d.ops) };
    bool room = d.can && d.has && d.changes && d.last && d.ops;
    *time = GY_TICKS_MAX;
    gantry_status status = room ? predict_dealt(s, &d, time, err) : gy_fail_nomem(err);
    gy_free(d.can);
    gy_free(d.has);
    gy_free(d.changes);
    gy_free(d.last);
    gy_free(d.ops);
    return status;
}

static gantry_status predict(const gantry_schedule *s, gy_ticks *time, gantry_error *err)
{
    gy_ticks all = 0;
    if (!s->phases.count)
        return predict_part(s, time, err);
    for (size_t i = 0; i < s->phases.count; i++) {
        const gy_schedule_phase *phase = &s->phases.at[i];
        gy_ticks one = 0;
        GY_TRY(predict_part(phase->schedule, &one, err));
        one = one < GY_TICKS_MAX ? one : phase->schedule->makespan;
        all = gy_ticks_both(all, time_of(phase, one, 0)); /* launches are a part of most */
    }
    *time = all;
    return GANTRY_OK;
}

/* ---- which is faster ---- */

static bool is_by_nccl(const gantry_schedule *s)
{
    bool any = false;
    for (size_t i = 0; i < s->phases.count && !any; i++)
        any = is_by_nccl(s->phases.at[i].schedule);
    for (size_t i = 0; i < s->ops.count && !any; i++)
        any = s->ops.at[i].algorithm == GY_ALGORITHM_NCCL;
    return any;
}

static bool uses_gpu(const gantry_schedule *s)
{
    bool any = false;
    for (size_t i = 0; i < s->phases.count && !any; i++)
        any = uses_gpu(s->phases.at[i].schedule);
    for (uint32_t i = 0; i < s->ops.count && !any; i++)
        any = s->machine->device[gy_op_device(s, &s->ops.at[i], 0)].gpu;
    return any;
}

/* NCCL's kernels and those of several processes wait for others in ways of their own. */
static bool may_try(const gantry_schedule *s, const gantry_machine *machine)
{
    return gy_machine_knows_workers(machine) && s->objective == GY_OBJECTIVE_MAKESPAN && s->in_flight == 1 &&
           gy_machine_ranks(machine) == 1 && uses_gpu(s) && !is_by_nccl(s);
}

/* In phases, too, of which an explanation may speak. */
static void note(gantry_schedule *s, gy_ticks host, gy_ticks device)
{
    s->by_host = host;
    s->by_device = device;
    for (size_t i = 0; i < s->phases.count; i++)
        note(s->phases.at[i].schedule, host, device);
}

static gantry_status try_planned(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                                 const gy_options *o, bool *is_faster, gantry_error *err)
{
    gantry_schedule *planned = NULL;
    gantry_error why = { 0 };
    gy_ticks host = (*schedule)->makespan, device = GY_TICKS_MAX;
    gantry_status status = gy_by_device_plan(&planned, graph, machine, o, &why);
    if (status == GANTRY_E_NOMEM || status == GANTRY_E_CANCELED) {
        if (err)
            *err = why;
        return status;
    }
    if (!status) /* else it does not fit in memory so, say */
        device = time_planned(planned);
    *is_faster = !status && is_faster_by(device, host) && uses_gpu(planned) && !is_by_nccl(planned);
    gantry_schedule *kept = *is_faster ? planned : *schedule;
    gantry_schedule_free(*is_faster ? *schedule : planned);
    note(kept, host, device);
    *schedule = kept;
    return GANTRY_OK;
}

gantry_status gy_by_device_try(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                               const gy_options *o, bool *is_faster, gantry_error *err)
{
    gantry_schedule *s = *schedule;
    gy_ticks device = GY_TICKS_MAX;
    *is_faster = false;
    if (!may_try(s, machine))
        return GANTRY_OK;
    if (is_for_workers(graph))
        return try_planned(schedule, graph, machine, o, is_faster, err);
    GY_TRY(predict(s, &device, err));
    *is_faster = device < GY_TICKS_MAX && is_faster_by(device, s->makespan);
    note(s, s->makespan, device);
    return GANTRY_OK;
}
