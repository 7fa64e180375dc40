/* SPDX-License-Identifier: Apache-2.0 */
#include "candidates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one strategy ---- */

/* Takes the busier of *limit and of this one. */
static void offer(char *limit, size_t size, double *most, double busy_us, double us, const char *format,
                  const char *from, const char *to)
{
    char name[60];
    if (us <= 0 || busy_us <= *most || !from || !to)
        return;
    *most = busy_us;
    snprintf(name, sizeof name, format, from, to);
    snprintf(limit, size, "%s, busy %.0f %%", name, 100 * busy_us / us);
}

/* The device or the route that has most to do. */
static int find_limit(candidate *c, const gantry_schedule *schedule)
{
    size_t i;
    const char *name;
    json_t *report, *value;
    double most = 0;
    int code = load_report(&report, schedule);
    if (code)
        return code;
    c->busy_us = 0;
    json_object_foreach(json_object_get(report, "busy_us"), name, value)
    {
        double busy = json_number_value(value);
        c->busy_us = busy > c->busy_us ? busy : c->busy_us;
        offer(c->limit, sizeof c->limit, &most, busy, c->us, "%s%s", name, "");
    }
    json_array_foreach(json_object_get(report, "routes"), i, value)
        offer(c->limit, sizeof c->limit, &most, json_number_value(json_object_get(value, "busy_us")), c->us, "%s -> %s",
              json_string_value(json_object_get(value, "from")), json_string_value(json_object_get(value, "to")));
    json_decref(report);
    return EXIT_FINE;
}

static int take_figures(candidate *c, const gantry_schedule *schedule)
{
    gantry_error err;
    const gantry_machine *machine = gantry_schedule_machine(schedule);
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    if (gantry_schedule_summarize(schedule, &sum, &err))
        return fail(&err);
    c->us = sum.makespan_us;
    c->bound_us = sum.bound_us;
    c->moved = sum.bytes_moved;
    c->peak = 0;
    for (size_t i = 0; i < gantry_machine_device_count(machine); i++) {
        gantry_device_info device = GANTRY_DEVICE_INFO_INIT;
        if (gantry_machine_device(machine, i, &device, &err))
            return fail(&err);
        uint64_t peak = gantry_schedule_peak_bytes(schedule, (size_t)device.memory);
        c->peak = peak > c->peak ? peak : c->peak;
    }
    return find_limit(c, schedule);
}

int32_t devices_of(const gantry_strategy *s)
{
    return s->dp * s->tp * s->pp;
}

/* ---- its devices ---- */

/* Is it one of the first `count` of those? */
static bool is_among(const speed *speeds, size_t count, size_t device)
{
    for (size_t i = 0; speeds && i < count; i++)
        if (speeds[i].device == device)
            return true;
    return !speeds && device < count;
}

void write_devices(const candidates *all, const choice *c, char text[DEVICES_TEXT])
{
    size_t count = (size_t)devices_of(&c->strategy), used = 0, workers = gantry_machine_worker_count(all->machine);
    text[0] = '\0';
    for (size_t i = 0; i < workers && c->on != ON_ALL && count < workers && used < DEVICES_TEXT; i++) {
        gantry_device_info device = GANTRY_DEVICE_INFO_INIT;
        if (is_among(c->on == ON_FASTEST ? all->speeds : NULL, count, i) &&
            !gantry_machine_device(all->machine, i, &device, NULL))
            used += (size_t)snprintf(text + used, DEVICES_TEXT - used, "%s%s", used ? "," : "id:", device.id);
    }
    if (used >= DEVICES_TEXT)
        text[0] = '\0';
}

/* On the devices that the choice is for: what the scheduler would find out by trying them all. Limits of memories are
 * told by name, and want all of them. *some: NULL: the whole machine. */
static int take_devices(const candidates *all, const choice *c, gantry_machine **some)
{
    gantry_error err;
    char text[DEVICES_TEXT];
    *some = NULL;
    if (all->o->max_memory || c->on == ON_ALL ||
        (size_t)devices_of(&c->strategy) >= gantry_machine_worker_count(all->machine))
        return EXIT_FINE;
    write_devices(all, c, text);
    if (!text[0]) /* names that are too long for all of them */
        snprintf(text, sizeof text, "%d", (int)devices_of(&c->strategy));
    return gantry_machine_select(some, all->machine, text, &err) == GANTRY_E_NOMEM ? fail(&err) : EXIT_FINE;
}

/* ---- what is predicted of it ---- */

static void keep_refusal(candidate *c, const gantry_error *err)
{
    c->us = 0;
    snprintf(c->refusal, sizeof c->refusal, "%s", err->text);
}

int predict(const candidates *all, candidate *c, int64_t effort, bool *fits)
{
    gantry_error err;
    gantry_graph *graph = NULL;
    gantry_schedule *schedule = NULL;
    options with = *all->o;
    with.strategy = c->text;
    gantry_load_options load = load_options(&with);
    gantry_schedule_options so = schedule_options(all->o);
    load.devices = (int32_t)gantry_machine_worker_count(all->machine);
    so.effort = (int32_t)effort;
    so.spill = all->is_tight ? "off" : so.spill;
    gantry_machine *some;
    int code = take_devices(all, &c->choice, &some);
    if (code)
        return code;
    gantry_status status = gantry_graph_load(&graph, all->path, &load, &err);
    *fits = !status;
    bool is_cut_only = status == GANTRY_E_GRAPH && strcmp(all->o->strategy, "auto") == 0 &&
                       strcmp(c->text, "dp=1") != 0; /* the batch is not divisible so often */
    if (!status)
        status = gantry_schedule_new(&schedule, graph, some ? some : all->machine, &so, &err);
    if (!status)
        code = take_figures(c, schedule);
    else if (status == GANTRY_E_CAPACITY)
        keep_refusal(c, &err);
    else if (!is_cut_only)
        code = fail(&err);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    gantry_machine_free(some);
    return interrupt_code() ? interrupt_code() : code;
}

/* ---- all of them ---- */

static int compare(const void *one, const void *other)
{
    const candidate *a = one, *b = other;
    if ((a->us > 0) != (b->us > 0))
        return a->us > 0 ? -1 : 1;
    if (a->us < b->us || a->us > b->us)
        return a->us < b->us ? -1 : 1;
    return (a->peak > b->peak) - (a->peak < b->peak);
}

void sort_candidates(candidates *all, size_t count)
{
    if (count)
        qsort(all->at, count, sizeof *all->at, compare);
}

int add(candidates *all, const choice *which, int64_t effort)
{
    bool fits = false;
    candidate *grown = realloc(all->at, (all->count + 1) * sizeof *grown);
    if (!grown)
        return fail_nomem();
    all->at = grown;
    candidate *c = &grown[all->count];
    *c = (candidate){ .choice = *which };
    gantry_strategy_text(&which->strategy, c->text, sizeof c->text);
    int code = predict(all, c, effort, &fits);
    all->count += fits;
    all->refused += !fits;
    all->best_us = fits && c->us > 0 && c->us < all->best_us ? c->us : all->best_us;
    return code;
}

static int are_alike(const gantry_machine *machine, bool *alike)
{
    gantry_error err;
    gantry_device_info first = GANTRY_DEVICE_INFO_INIT, one = GANTRY_DEVICE_INFO_INIT;
    if (gantry_machine_device(machine, 0, &first, &err))
        return fail(&err);
    *alike = true;
    for (size_t i = 1; i < gantry_machine_worker_count(machine); i++) {
        if (gantry_machine_device(machine, i, &one, &err))
            return fail(&err);
        *alike = *alike && strcmp(one.kind, first.kind) == 0 && one.gpu == first.gpu && one.threads == first.threads &&
                 !(one.bandwidth_gbs < first.bandwidth_gbs) && !(one.bandwidth_gbs > first.bandwidth_gbs);
    }
    return EXIT_FINE;
}

static int compare_speeds(const void *one, const void *other)
{
    const speed *a = one, *b = other;
    if (a->us < b->us || a->us > b->us)
        return a->us < b->us ? -1 : 1;
    return (a->device > b->device) - (a->device < b->device);
}

/* Each device in turn is the only one, so that it is the fastest. */
static int time_devices(const candidates *all, speed *speeds, size_t count)
{
    int code = EXIT_FINE;
    for (size_t i = 0; i < count && !code; i++) {
        bool fits;
        speed alone = { .device = i };
        candidates with = *all;
        candidate c = { .choice = { GANTRY_STRATEGY_INIT, ON_FASTEST } };
        with.speeds = &alone;
        gantry_strategy_text(&c.choice.strategy, c.text, sizeof c.text);
        code = predict(&with, &c, 0, &fits);
        speeds[i] = (speed){ i, c.us > 0 ? c.us : HUGE_VAL };
    }
    return code;
}

static int rank_devices(candidates *all)
{
    size_t count = gantry_machine_worker_count(all->machine);
    speed *speeds = calloc(count, sizeof *speeds);
    if (!speeds)
        return fail_nomem();
    int code = time_devices(all, speeds, count);
    qsort(speeds, count, sizeof *speeds, compare_speeds);
    all->speeds = speeds;
    return code;
}

/* Virtual devices share out what a CPU has: fewer are not some of them. Other processes have devices of their own, and
 * limits are of memories by name, which have to be there. */
bool are_named(const candidates *all)
{
    return (all->o->machine || !counts_virtual(all->o)) && !all->o->max_memory &&
           gantry_machine_rank_count(all->machine) == 1;
}

bool are_others_faster(const candidates *all, int32_t count)
{
    for (int32_t i = 0; all->speeds && i < count; i++)
        if (all->speeds[i].device >= (size_t)count)
            return true;
    return false;
}

int find_work(candidates *all)
{
    choice one = { GANTRY_STRATEGY_INIT, ON_FIRST };
    bool alike = false;
    int code = are_alike(all->machine, &alike);
    code = code || alike || !are_named(all) ? code : rank_devices(all);
    code = code ? code : add(all, &one, 0);
    if (!code && are_others_faster(all, 1)) {
        one.on = ON_FASTEST;
        code = add(all, &one, 0);
    }
    all->work_us = !code && alike && all->count ? all->at[0].busy_us : 0;
    return code;
}
