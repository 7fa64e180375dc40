/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages of checking mode. */
#include "backends/host/check.h"

#include "base/error.h"
#include "run/number.h"
#include <inttypes.h>
#include <stdio.h>

typedef struct words {
    char at[160];
} words;

/* 'argument "y" (y{0:4})', or the rows alone where the op has no arguments. */
static words argument(const gy_checked *c, uint32_t use)
{
    words w;
    gy_text rows = { 0 };
    gy_use_text(&rows, c->job->schedule, &c->job->schedule->use.at[use]);
    const gantry_arg *arg = c->ops.arg[use];
    snprintf(w.at, sizeof w.at, arg && arg->name ? "argument \"%s\" (%s)" : "%s%s", arg && arg->name ? arg->name : "",
             rows.length ? rows.at : "?");
    gy_text_free(&rows);
    return w;
}

/* One kernel stands behind many nodes, so both are named. */
static gantry_status fail(const gy_trial *t, gantry_error *err, const char *text)
{
    const gantry_schedule *s = t->c->job->schedule;
    const gantry_graph *g = t->c->job->graph;
    const char *kernel = t->node->kernel == GY_NONE ? NULL : g->kernels.at[t->node->kernel].manifest->name;
    uint32_t device = gy_op_device(s, t->op, 0);
    gy_graph_fail(g, t->node->origin, err, GANTRY_E_CHECK, "node \"%s\"%s%s%s on device \"%s\" %s", t->node->id,
                  kernel ? " (kernel \"" : "", kernel ? kernel : "", kernel ? "\")" : "", s->machine->device[device].id,
                  text);
    if (err)
        err->device = (int32_t)device;
    return GANTRY_E_CHECK;
}

static bool in_window(const gy_window *w, uintptr_t at)
{
    return w->pages && at >= (uintptr_t)w->pages && at - (uintptr_t)w->pages < w->mapped;
}

static gantry_status report_near(const gy_trial *t, const gy_window *w, const char *what, uintptr_t at,
                                 gantry_error *err)
{
    char text[360];
    uintptr_t data = (uintptr_t)w->data;
    if (at < data) {
        snprintf(text, sizeof text, "touched memory %zu bytes before the beginning of %s, which is not its own",
                 (size_t)(data - at), what);
    } else if (at >= data + w->bytes) {
        snprintf(text, sizeof text, "touched memory %zu bytes past the end of %s, which is not its own",
                 (size_t)(at - data - w->bytes), what);
    } else {
        snprintf(text, sizeof text, "wrote to %s, %zu bytes in, which it only reads; declare readwrite", what,
                 (size_t)(at - data));
    }
    return fail(t, err, text);
}

static gantry_status report_far(const gy_trial *t, uintptr_t at, gantry_error *err)
{
    const gy_checked *c = t->c;
    char text[240];
    uint32_t memory = gy_host_memory_find(&c->memory, (const void *)at);
    if (memory != GY_MACHINE_NONE) {
        snprintf(text, sizeof text,
                 "touched memory \"%s\" of the run past its arguments, %zu bytes in; name what it uses as an access",
                 c->job->schedule->machine->memory[memory].id, (size_t)(at - (uintptr_t)c->memory.slab[memory]));
    } else if (gy_windows_contain(&c->windows, (const void *)at)) {
        snprintf(text, sizeof text,
                 "touched what an earlier launch was given, through a pointer that was kept; name what it uses as an "
                 "access");
    } else {
        snprintf(text, sizeof text, "touched address 0x%" PRIxPTR ", which is not memory of the run", at);
    }
    return fail(t, err, text);
}

gantry_status gy_report_touch(const gy_trial *t, const void *address, gantry_error *err)
{
    uintptr_t at = (uintptr_t)address;
    for (uint32_t k = 0; k < t->op->uses; k++) {
        if (in_window(&t->window[k], at)) {
            words what = argument(t->c, t->op->use + k);
            return report_near(t, &t->window[k], what.at, at, err);
        }
    }
    if (in_window(&t->scratch, at))
        return report_near(t, &t->scratch, "its scratch memory", at, err);
    return report_far(t, at, err);
}

gantry_status gy_report_unwritten(const gy_trial *t, uint32_t k, size_t first, size_t count, gantry_error *err)
{
    char text[360];
    words what = argument(t->c, t->op->use + k);
    snprintf(text, sizeof text,
             "left %zu of %" PRIu64 " bytes of %s unwritten, first byte %zu; write all of it, or declare readwrite",
             count, gy_use_bytes(t->c->job->schedule, gy_trial_use(t, k)), what.at, first);
    return fail(t, err, text);
}

gantry_status gy_report_not_added(const gy_trial *t, uint32_t k, uint64_t i, gantry_error *err)
{
    char text[420];
    words what = argument(t->c, t->op->use + k);
    gantry_dtype dtype = gy_trial_dtype(t, k);
    snprintf(text, sizeof text,
             "does not combine (%s) with what %s held: element %" PRIu64 " is %g from the identity and %g from %g; a "
             "reduction adds to what it is given",
             gantry_access_name((gantry_access)gy_trial_use(t, k)->mode), what.at, i,
             gy_element_load(*gy_trial_result(t, k, 1), dtype, i), gy_element_load(*gy_trial_result(t, k, 2), dtype, i),
             gy_element_load(t->start[k], dtype, i));
    return fail(t, err, text);
}

gantry_status gy_report_depends(const gy_trial *t, uint32_t k, size_t first, gantry_error *err)
{
    char text[420];
    words what = argument(t->c, t->op->use + k);
    snprintf(text, sizeof text,
             "gives another byte %zu of %s when bytes change that it should not read: old contents of what it declares "
             "to write, scratch, or memory beside its regions; declare readwrite, or initialise scratch",
             first, what.at);
    return fail(t, err, text);
}

gantry_status gy_report_unset(const gy_checked *c, uint32_t op, uint32_t k, size_t first, gantry_error *err)
{
    const gantry_schedule *s = c->job->schedule;
    gy_text name = { 0 };
    gy_op_text(&name, s, op);
    words what = argument(c, s->ops.at[op].use + k);
    uint32_t memory = s->instances.at[s->use.at[s->ops.at[op].use + k].instance].memory;
    gy_fail(
        err, GANTRY_E_CHECK, NULL,
        "op %u, \"%s\", reads %s in memory \"%s\", of which nothing has written byte %zu in this start: a copy, a fill "
        "or a dependency is missing in the schedule",
        op, name.length ? name.at : "?", what.at, s->machine->memory[memory].id, first);
    gy_text_free(&name);
    return GANTRY_E_CHECK;
}
