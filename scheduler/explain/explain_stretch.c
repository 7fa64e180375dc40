/* SPDX-License-Identifier: Apache-2.0 */
/* From the schedule alone: which way starts go, and by whom an op is carried out where the devices lead them. */
#include "scheduler/explain/explain.h"

#include "base/error.h"
#include "base/memory.h"
#include "schedule/stretches/stretches.h"

/* Ops around one in its lane that are carried out as it is. */
typedef struct stretch {
    uint32_t ops, switches;
    gy_stretch_costs costs;
} stretch;

static void add_ways(gy_text *to, const gantry_schedule *s)
{
    if (!s->by_host)
        return;
    gy_text_printf(to, "\na start is predicted to take %.3f us by launches, ", gy_ticks_to_us(s->by_host));
    if (s->by_device >= GY_TICKS_MAX)
        gy_text_add(to, "and workers of resident kernels can have nothing of it");
    else
        gy_text_printf(to, "and %.3f us carried out by the devices", gy_ticks_to_us(s->by_device));
    if (s->replay == GY_REPLAY_DEVICE)
        gy_text_add(to, ": by the devices\n");
    else
        gy_text_printf(to, ": by launches, as these have to take %d us and %d %% longer\n", GY_STRETCH_PAYS_US,
                       GY_STRETCH_PAYS);
}

static bool has_lane(const gantry_schedule *s, uint32_t op, uint32_t lane)
{
    bool any = false;
    for (uint32_t k = 0; k < s->ops.at[op].lanes && !any; k++)
        any = s->op_lane.at[s->ops.at[op].lane + k] == lane;
    return any;
}

/* Goes from the op to one end of its lane. */
static void go_on(stretch *x, const gantry_schedule *s, const uint8_t *has, uint32_t op, int step)
{
    uint32_t lane = s->op_lane.at[s->ops.at[op].lane];
    for (uint32_t i = op + (uint32_t)step; i < s->ops.count; i += (uint32_t)step) {
        if (!has_lane(s, i, lane))
            continue;
        if (has[i] != has[op]) {
            x->switches++;
            return;
        }
        gy_stretch_costs c = gy_stretch_costs_of(s, i);
        x->ops++;
        x->costs.workers += c.workers;
        x->costs.launched += c.launched;
    }
}

static void add_stretch(gy_text *to, const gantry_schedule *s, const uint8_t *has, uint32_t op)
{
    stretch x = { .ops = 1, .costs = gy_stretch_costs_of(s, op) };
    gy_text_printf(to,
                   "\nby workers of a resident kernel it takes %.3f us, launched beside them %.3f us, as measured\n",
                   gy_ticks_to_us(x.costs.workers), gy_ticks_to_us(x.costs.launched));
    if (!has[op] && !gy_stretch_may(s, op)) {
        gy_text_add(to, "  it is launched, since workers have no code for it\n");
        return;
    }
    go_on(&x, s, has, op, 1);
    go_on(&x, s, has, op, -1);
    gy_text_printf(to,
                   "  %s; the %u op%s of its stretch take %.3f us by workers and %.3f us launched, and a switch at an "
                   "end %.3f us (its lane has %u there)\n",
                   has[op] ? "workers carry it out" : "it is launched", x.ops, x.ops == 1 ? "" : "s",
                   gy_ticks_to_us(x.costs.workers), gy_ticks_to_us(x.costs.launched),
                   gy_ticks_to_us(gy_stretch_switch(s, op)), x.switches);
}

gantry_status gy_explain_stretch(gy_text *to, const gantry_schedule *s, uint32_t op, gantry_error *err)
{
    add_ways(to, s);
    if (s->replay != GY_REPLAY_DEVICE || !gy_stretches_known(s))
        return GANTRY_OK;
    uint8_t *can = gy_calloc(s->ops.count + 1, sizeof *can), *has = gy_calloc(s->ops.count + 1, sizeof *has);
    gantry_status status = can && has ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t i = 0; i < s->ops.count && !status; i++)
        can[i] = gy_stretch_may(s, i);
    status = status ? status : gy_stretches_choose(s, can, NULL, has, err);
    if (!status)
        add_stretch(to, s, has, op);
    gy_free(can);
    gy_free(has);
    return status;
}
