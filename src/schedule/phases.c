/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules that are made of phases: what they add up to, and what must hold of them together (rule phases). */
#include "base/error.h"
#include "base/versioned.h"
#include "schedule/form.h"
#include <stdio.h>
#include <string.h>

const gantry_schedule *gy_schedule_of_node(const gantry_schedule *s, uint32_t node)
{
    for (size_t i = 0; i < s->phases.count; i++) {
        const gy_phase *p = &s->phases.at[i].phase;
        if (node >= p->first_node && node < p->last_node)
            return s->phases.at[i].schedule;
    }
    return s->phases.count ? NULL : s;
}

/* ---- sums ---- */

static void grow(uint64_t *to, uint64_t bytes)
{
    *to = *to > bytes ? *to : bytes;
}

static bool add_loads(gantry_schedule *s, const gy_schedule_phase *phase)
{
    const gantry_schedule *one = phase->schedule;
    if (s->load.count == 0 && one->load.count > 0) {
        if (!gy_vec_add(&s->load, one->load.count))
            return false;
        memset(s->load.at, 0, s->load.count * sizeof *s->load.at);
    }
    for (size_t d = 0; d < one->load.count && d < s->load.count; d++)
        s->load.at[d] = gy_ticks_both(s->load.at[d], gy_ticks_repeated(one->load.at[d], phase->phase.starts));
    return true;
}

gantry_status gy_schedule_phases_sum(gantry_schedule *s, gantry_error *err)
{
    s->makespan = s->bound = s->bound_without = 0;
    s->staging = 0;
    s->slab.count = s->load.count = 0;
    if (!gy_vec_add(&s->slab, s->machine->memories))
        return gy_fail_nomem(err);
    memset(s->slab.at, 0, s->slab.count * sizeof *s->slab.at);
    for (size_t i = 0; i < s->phases.count; i++) {
        const gy_schedule_phase *phase = &s->phases.at[i];
        const gantry_schedule *one = phase->schedule;
        gy_ticks runs = gy_ticks_repeated(one->makespan, phase->phase.starts);
        s->makespan = gy_ticks_both(s->makespan, gy_ticks_both(runs, phase->hand_over));
        s->bound = gy_ticks_both(s->bound, gy_ticks_repeated(one->bound, phase->phase.starts));
        s->bound_without = gy_ticks_both(s->bound_without, gy_ticks_repeated(one->bound_without, phase->phase.starts));
        grow(&s->staging, one->staging);
        for (size_t m = 0; m < one->slab.count && m < s->slab.count; m++)
            grow(&s->slab.at[m], one->slab.at[m]);
        if (!add_loads(s, phase))
            return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

/* ---- rules ---- */

gantry_status gy_schedule_phase_fail(size_t i, const gantry_error *inner, gantry_error *err)
{
    if (inner->status != GANTRY_E_SCHEDULE) {
        if (err)
            *err = *inner;
        return inner->status;
    }
    char where[sizeof inner->where + 40];
    snprintf(where, sizeof where, "/phases/%zu/schedule%s", i, inner->where);
    return gy_fail(err, GANTRY_E_SCHEDULE, where, "phase %zu: %s", i, inner->text);
}

static gantry_status breach(size_t i, gantry_error *err, const char *what)
{
    return gy_breach(err, "phases", "phases", i, "phase %zu %s", i, what);
}

static gantry_status check_machine(const gantry_machine *a, const gantry_machine *b, size_t i, gantry_error *err)
{
    gy_text x = { 0 }, y = { 0 };
    gantry_status status = GANTRY_OK;
    if (a == b)
        return GANTRY_OK;
    gy_machine_print(&x, a, 0);
    gy_machine_print(&y, b, 0);
    if (x.failed || y.failed)
        status = gy_fail_nomem(err);
    else if (strcmp(x.at, y.at) != 0)
        status = breach(i, err, "has a schedule for another machine");
    gy_text_free(&x);
    gy_text_free(&y);
    return status;
}

static gantry_status check_phase(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_schedule_phase *phase = &s->phases.at[i];
    gantry_error inner = { 0 };
    if (!phase->schedule || phase->schedule->phases.count)
        return breach(i, err, "has no schedule, or one with phases");
    if (gy_schedule_form(phase->schedule, &inner))
        return gy_schedule_phase_fail(i, &inner, err);
    if (phase->schedule->graph_hash != s->graph_hash)
        return breach(i, err, "has a schedule of another graph");
    if (phase->schedule->in_flight != 1)
        return breach(i, err, "has starts that overlap; each goes on with what the one before left");
    GY_TRY(check_machine(s->machine, phase->schedule->machine, i, err));
    for (size_t m = 0; m < s->slab.count; m++)
        if (phase->schedule->slab.at[m] > s->slab.at[m])
            return breach(i, err, "has a larger slab than the whole");
    return phase->schedule->staging > s->staging ? breach(i, err, "has more staging than the whole")
           : phase->hand_over < 0                ? breach(i, err, "is handed over in less than no time")
                                                 : GANTRY_OK;
}

static bool has_lists(const gantry_schedule *s)
{
    return s->ops.count || s->instances.count || s->values.count || s->lanes.count || s->in_flight != 1;
}

gantry_status gy_schedule_phases_form(const gantry_schedule *s, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < s->phases.count && !status; i++)
        status = check_phase(s, i, err);
    if (!status && s->phases.count && has_lists(s)) {
        status =
            gy_fail(err, GANTRY_E_SCHEDULE, "/phases",
                    "rule phases: a schedule with phases has values, lanes, instances and ops in the phases only, and "
                    "no starts that overlap");
    }
    return status;
}

/* ---- looking ---- */

size_t gantry_schedule_phase_count(const gantry_schedule *s)
{
    return s ? s->phases.count : 0;
}

const gantry_schedule *gantry_schedule_phase(const gantry_schedule *s, size_t i, gantry_phase_info *info)
{
    if (!s || i >= s->phases.count || (info && gy_struct_check(info, sizeof *info, "gantry_phase_info", NULL)))
        return NULL;
    const gy_schedule_phase *phase = &s->phases.at[i];
    gantry_phase_info full = { .first_node = phase->phase.first_node,
                               .last_node = phase->phase.last_node,
                               .first_iteration = phase->phase.loop == GY_NONE ? -1 : phase->phase.first,
                               .iterations = phase->phase.iterations,
                               .starts = phase->phase.starts,
                               .every = gy_phase_looks(&phase->phase) ? phase->phase.every : 0,
                               .hand_over_us = gy_ticks_to_us(phase->hand_over) };
    gy_struct_write(info, &full, sizeof full);
    return phase->schedule;
}
