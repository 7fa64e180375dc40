/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_schedule_new: the passes, one after the other. */
#include "scheduler/by_device.h"
#include "scheduler/devices/fewer.h"
#include "scheduler/options.h"
#include "scheduler/plan/plan.h"

#include "base/error.h"
#include "base/versioned.h"
#include "schedule/check/verify.h"
#include "schedule/counters/counters.h"
#include "sim/sim.h"

/* Buffers that are kept outside name memories that the machine has. */
static gantry_status check_homes(const gantry_graph *g, const gantry_machine *m, gantry_error *err)
{
    for (size_t i = 0; i < g->buffers.count; i++) {
        const gy_buffer *b = &g->buffers.at[i];
        if (gy_buffer_home(m, b) == GY_NONE)
            return gy_graph_fail(g, b->origin, err, GANTRY_E_GRAPH,
                                 "buffer \"%s\" is external, kept in \"%s\", and machine \"%s\" has no memory and no "
                                 "device of that name (its first device is \"%s\")",
                                 b->name, b->external, m->name, m->device[0].id);
    }
    return GANTRY_OK;
}

/* The makespan of a start in which no node with a `when` runs. */
static gantry_status find_without(gantry_schedule *s, gantry_error *err)
{
    bool any = false;
    for (size_t i = 0; i < s->ops.count && !any; i++)
        any = gy_op_is_conditional(s, &s->ops.at[i]);
    gy_ticks sum = 0, one = s->makespan;
    for (size_t i = 0; i < s->phases.count; i++) {
        const gy_schedule_phase *phase = &s->phases.at[i];
        GY_TRY(find_without(phase->schedule, err));
        gy_ticks runs = gy_ticks_repeated(phase->schedule->without, phase->phase.starts);
        sum = gy_ticks_both(sum, gy_ticks_both(runs, phase->hand_over));
    }
    GY_TRY(any ? gy_sim_run_unset(s, &one, err) : GANTRY_OK);
    s->without = s->phases.count ? sum : one;
    return GANTRY_OK;
}

static gantry_status add_counters(gantry_schedule *s, gantry_error *err)
{
    GY_TRY(gy_counters_make(s, err));
    return gy_schedule_verify(s, s->graph, err);
}

static gantry_status make(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine, gy_options *o,
                          gantry_error *err)
{
    GY_TRY(gantry_graph_check(graph, err));
    GY_TRY(check_homes(graph, machine, err));
    bool by_device = o->replay == GY_REPLAY_DEVICE;
    o->replay = by_device ? GY_REPLAY_AUTO : o->replay; /* counters are added to the schedule that is chosen */
    GY_TRY(by_device ? gy_by_device_plan(schedule, graph, machine, o, err)
                     : gy_fewer_run(schedule, graph, machine, o, err));
    gantry_status status = o->replay == GY_REPLAY_AUTO && !by_device
                               ? gy_by_device_try(schedule, graph, machine, o, &by_device, err)
                               : GANTRY_OK;
    status = !status && by_device ? add_counters(*schedule, err) : status;
    status = status ? status : find_without(*schedule, err);
    if (status) {
        gantry_schedule_free(*schedule);
        *schedule = NULL;
    }
    return status;
}

gantry_status gantry_schedule_new(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                                  const gantry_schedule_options *options, gantry_error *err)
{
    gy_options o;
    gy_planning planning;
    gantry_schedule *made = NULL;
    gantry_schedule_options given = GANTRY_SCHEDULE_OPTIONS_INIT;
    GY_NEED(schedule, err);
    GY_NEED(machine, err);
    GY_TRY(gy_struct_read(&given, sizeof given, options, "gantry_schedule_options", err));
    GY_TRY(gy_options_read(&o, &given, err));
    gy_planning_begin(&planning, &given);
    o.planning = given.progress ? &planning : NULL;
    gantry_status status = gy_planning_end(&planning, make(&made, graph, machine, &o, err), err);
    if (status)
        gantry_schedule_free(made);
    else
        *schedule = made;
    return status;
}
