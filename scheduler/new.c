/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_schedule_new: the passes, one after the other. */
#include "scheduler/devices/fewer.h"
#include "scheduler/options.h"
#include "scheduler/plan/plan.h"

#include "base/error.h"
#include "schedule/check/verify.h"
#include "schedule/counters/counters.h"

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

static gantry_status add_counters(gantry_schedule *s, gantry_error *err)
{
    GY_TRY(gy_counters_make(s, err));
    return gy_schedule_verify(s, s->graph, err);
}

gantry_status gantry_schedule_new(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                                  const gantry_schedule_options *options, gantry_error *err)
{
    gy_options o;
    GY_NEED(schedule, err);
    GY_NEED(machine, err);
    GY_TRY(gy_options_read(&o, options, err));
    GY_TRY(gantry_graph_check(graph, err));
    GY_TRY(check_homes(graph, machine, err));
    bool counters = o.replay == GY_REPLAY_DEVICE;
    o.replay = counters ? GY_REPLAY_AUTO : o.replay; /* it is planned alike, and counted when it is chosen */
    GY_TRY(gy_fewer_run(schedule, graph, machine, &o, err));
    gantry_status status = counters ? add_counters(*schedule, err) : GANTRY_OK;
    if (status) {
        gantry_schedule_free(*schedule);
        *schedule = NULL;
    }
    return status;
}
