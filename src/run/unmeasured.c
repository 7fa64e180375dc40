/* SPDX-License-Identifier: Apache-2.0 */
/* Is there anything to learn from starting a graph a few times more? */
#include "run/learn.h"

#include "machine/recall.h"
#include <math.h>

#define NEAR 0.05 /* a prediction that is off by less is right */

/* ---- times of kernels ---- */

/* Does the op run a kernel on a GPU whose time for these arguments the machine does not have? */
static bool is_unmeasured(const gantry_schedule *s, const gy_op *op, gy_cases *seen)
{
    bool isnew;
    if (!gy_samples_kernel(s, op, true) || op->provenance == GY_COST_GIVEN)
        return false;
    const gy_node *n = &s->graph->nodes.at[op->node];
    if (!s->machine->device[gy_op_device(s, op, 0)].gpu || !(n->flops > 0 || n->bytes > 0))
        return false;
    (void)gy_cases_look(seen, s, op, &isnew);
    return isnew && seen->told && !gy_cases_find(seen, s->machine);
}

static bool has_unmeasured(const gantry_schedule *schedule)
{
    const gantry_schedule *s;
    gy_cases seen = { 0 };
    bool found = false;
    for (size_t part = 0; !found && (s = gy_samples_phase(schedule, part)); part++)
        for (size_t i = 0; i < s->ops.count && !found; i++)
            found = is_unmeasured(s, &s->ops.at[i], &seen);
    gy_cases_free(&seen);
    return found;
}

/* ---- the prediction ---- */

/* Only where starts follow each other, and the last was not the first. */
static bool is_off(const gantry_run *run)
{
    double predicted = gy_ticks_to_us(run->schedule->makespan);
    return run->started > 1 && run->schedule->in_flight == 1 && run->last_us > 0 && predicted > 0 &&
           fabs(predicted / run->last_us - 1) > NEAR;
}

/* ---- may the graph be started again? ---- */

/* Functions of a program, and code of users on the host, may do what nobody wants done once more. */
static bool may_be_noticed(const gantry_graph *g, const gy_node *n)
{
    const gy_kernel_code *code = n->kernel == GY_NONE ? NULL : g->kernels.at[n->kernel].code;
    if (n->kind == GY_NODE_LAUNCH || n->function != GY_NONE || gy_kernel_code_launches(code))
        return true;
    return n->kind == GY_NODE_HOST && code;
}

static bool is_silent(const gantry_schedule *schedule)
{
    const gantry_schedule *s;
    for (size_t part = 0; (s = gy_samples_phase(schedule, part)); part++)
        for (size_t i = 0; i < s->graph->nodes.count; i++)
            if (may_be_noticed(s->graph, &s->graph->nodes.at[i]))
                return false;
    return true;
}

/* Was it measured often enough, or can nothing be kept? */
static bool is_settled(const gantry_run *run, const gantry_machine *here)
{
    gantry_machine *known = NULL;
    char *text = NULL;
    if (!gy_recall_is_writable(here) || gy_recall_read(&known, here, &text, NULL))
        return true;
    bool settled = gy_learn_rounds(known, run) == GY_LEARN_ROUNDS;
    gantry_free(text);
    gantry_machine_free(known);
    return settled;
}

static gantry_status unmeasured(const gantry_run *run, const gantry_machine *here, gantry_unmeasured *what)
{
    *what = GANTRY_UNMEASURED_NOTHING;
    if (!gy_recall_is_on(here) || !run->backend->gpu_kernels || !is_silent(run->schedule))
        return GANTRY_OK;
    bool times = has_unmeasured(run->schedule);
    if ((times || is_off(run)) && !is_settled(run, here))
        *what = times ? GANTRY_UNMEASURED_TIMES : GANTRY_UNMEASURED_SHARES;
    return GANTRY_OK;
}

gantry_status gantry_run_unmeasured(const gantry_run *run, const gantry_machine *here, gantry_unmeasured *what,
                                    gantry_error *err)
{
    GY_NEED(here, err);
    GY_NEED(what, err);
    GY_USE_RUN(run, unmeasured(run, here, what), err);
}
