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

/* Rows of the smallest and the largest part of the batch, where the scheduler has cut it by the speed of devices. */
static void add_parts(candidate *c, const json_t *parts)
{
    size_t length = strlen(c->limit);
    if (parts)
        snprintf(c->limit + length, sizeof c->limit - length, "; parts of %lld to %lld rows",
                 (long long)json_integer_value(json_object_get(parts, "least")),
                 (long long)json_integer_value(json_object_get(parts, "most")));
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
    add_parts(c, json_object_get(report, "parts"));
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

/* How far they are from each other: the time of a megabyte there and back. */
static double distance(const gantry_machine *machine, size_t a, size_t b)
{
    static const double no_route = 1e9;
    gantry_device_info one = GANTRY_DEVICE_INFO_INIT, other = GANTRY_DEVICE_INFO_INIT;
    if (gantry_machine_device(machine, a, &one, NULL) || gantry_machine_device(machine, b, &other, NULL))
        return no_route;
    double there = gantry_machine_copy_us(machine, (size_t)one.memory, (size_t)other.memory, 1 << 20);
    double back = gantry_machine_copy_us(machine, (size_t)other.memory, (size_t)one.memory, 1 << 20);
    return there < 0 || back < 0 ? no_route : there + back;
}

static double distance_to(const candidates *all, const bool *picked, size_t device)
{
    double sum = 0;
    for (size_t i = 0; i < MOST_NAMED; i++)
        sum += picked[i] && i != device ? distance(all->machine, i, device) : 0;
    return sum;
}

/* Of speeds [from, to), which are as fast as each other, the one that is nearest to those that are picked. */
static size_t find_nearest(const candidates *all, size_t from, size_t to, const bool *picked)
{
    size_t nearest = from;
    double least = HUGE_VAL;
    for (size_t i = from; i < to; i++) {
        double far = picked[all->speeds[i].device] ? HUGE_VAL : distance_to(all, picked, all->speeds[i].device);
        nearest = far < least ? i : nearest;
        least = far < least ? far : least;
    }
    return nearest;
}

/* Takes `wanted` of those: the first, and then each time the nearest. Returns how far all are from each other. */
static double gather(const candidates *all, size_t first, size_t from, size_t to, size_t wanted, bool *picked)
{
    double sum = 0;
    for (size_t next = first; wanted > 0; wanted--) {
        sum += distance_to(all, picked, all->speeds[next].device);
        picked[all->speeds[next].device] = true;
        next = find_nearest(all, from, to, picked);
    }
    return sum;
}

/* The fastest `count` devices; of those that are as fast as the last of them, the ones that are nearest to each other.
 */
static void pick_fastest(const candidates *all, size_t count, bool picked[MOST_NAMED])
{
    static const double as_fast = 1.01;
    size_t workers = gantry_machine_worker_count(all->machine), from = 0, to = count;
    double last = all->speeds[count - 1].us, least = HUGE_VAL;
    bool sure[MOST_NAMED] = { false }, some[MOST_NAMED];
    for (; from < count && all->speeds[from].us * as_fast < last; from++)
        sure[all->speeds[from].device] = true;
    for (; to < workers && all->speeds[to].us <= last * as_fast; to++)
        ;
    memcpy(picked, sure, sizeof sure);
    for (size_t first = from; first < to; first++) {
        memcpy(some, sure, sizeof sure);
        double sum = gather(all, first, from, to, count - from, some);
        if (sum < least)
            memcpy(picked, some, sizeof some);
        least = sum < least ? sum : least;
    }
}

void write_devices(const candidates *all, const choice *c, char text[DEVICES_TEXT])
{
    size_t count = (size_t)devices_of(&c->strategy), used = 0, workers = gantry_machine_worker_count(all->machine);
    bool is_picked[MOST_NAMED] = { false };
    text[0] = '\0';
    if (c->on == ON_ALL || count >= workers || workers > MOST_NAMED)
        return;
    if (c->on == ON_FASTEST)
        pick_fastest(all, count, is_picked);
    for (size_t i = 0; i < workers && used < DEVICES_TEXT; i++) {
        gantry_device_info device = GANTRY_DEVICE_INFO_INIT;
        if ((c->on == ON_FASTEST ? is_picked[i] : i < count) && !gantry_machine_device(all->machine, i, &device, NULL))
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
    if (a->devices != b->devices)
        return a->devices < b->devices ? -1 : 1;
    if (a->peak != b->peak)
        return a->peak < b->peak ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
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
    *c = (candidate){ .choice = *which, .number = all->count, .devices = (size_t)devices_of(&which->strategy) };
    if (which->on == ON_ALL)
        c->devices = gantry_machine_worker_count(all->machine);
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
        speed alone[MOST_NAMED] = { { .device = i } };
        candidates with = *all;
        candidate c = { .choice = { GANTRY_STRATEGY_INIT, ON_FASTEST } };
        alone[0].us = 1;
        for (size_t k = 1; k < count; k++)
            alone[k] = (speed){ k <= i ? k - 1 : k, 2 };
        with.speeds = alone;
        gantry_strategy_text(&c.choice.strategy, c.text, sizeof c.text);
        code = predict(&with, &c, 0, &fits);
        speeds[i] = (speed){ i, c.us > 0 ? c.us : HUGE_VAL };
    }
    return code;
}

static int rank_devices(candidates *all, bool are_alike)
{
    size_t count = gantry_machine_worker_count(all->machine);
    speed *speeds = calloc(count, sizeof *speeds);
    if (!speeds)
        return fail_nomem();
    for (size_t i = 0; i < count; i++)
        speeds[i].device = i;
    int code = are_alike ? EXIT_FINE : time_devices(all, speeds, count);
    qsort(speeds, count, sizeof *speeds, compare_speeds);
    all->speeds = speeds;
    return code;
}

/* Virtual devices share out what a CPU has: fewer are not some of them. Other processes have devices of their own, and
 * limits are of memories by name, which have to be there. */
bool are_named(const candidates *all)
{
    return (all->o->machine || !counts_virtual(all->o)) && !all->o->max_memory &&
           gantry_machine_worker_count(all->machine) <= MOST_NAMED && gantry_machine_rank_count(all->machine) == 1;
}

bool are_others_better(const candidates *all, int32_t count)
{
    bool picked[MOST_NAMED], differs = false;
    size_t workers = gantry_machine_worker_count(all->machine);
    if (!all->speeds || (size_t)count >= workers)
        return false;
    pick_fastest(all, (size_t)count, picked);
    for (size_t i = (size_t)count; i < workers; i++)
        differs = differs || picked[i];
    return differs;
}

int find_work(candidates *all)
{
    choice one = { GANTRY_STRATEGY_INIT, ON_FIRST };
    bool alike = false;
    int code = are_alike(all->machine, &alike);
    code = code || !are_named(all) ? code : rank_devices(all, alike);
    code = code ? code : add(all, &one, 0);
    if (!code && are_others_better(all, 1)) {
        one.on = ON_FASTEST;
        code = add(all, &one, 0);
    }
    all->work_us = !code && alike && all->count ? all->at[0].busy_us : 0;
    return code;
}
