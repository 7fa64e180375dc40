/* SPDX-License-Identifier: Apache-2.0 */
/* Times of devices and links from the slices of a trace: unions of intervals. */
#include "profile/profile.h"

#include "command.h"
#include <stdlib.h>
#include <string.h>

static bool is_copy(const slice *s)
{
    return s->from != NULL;
}

static bool moves(const slice *s)
{
    return is_copy(s) || strcmp(s->kind, "collective") == 0;
}

/* ---- slices ---- */

/* Process 0 is what was measured; with phases 2 i is that of phase i. */
static bool read_slice(slice *to, json_t *event, json_int_t process)
{
    json_t *args = json_object_get(event, "args");
    if (!json_object_get(args, "op") || json_integer_value(json_object_get(event, "pid")) != process)
        return false;
    double start = json_number_value(json_object_get(event, "ts"));
    *to = (slice){ .start = start,
                   .end = start + json_number_value(json_object_get(event, "dur")),
                   .name = json_string_value(json_object_get(event, "name")),
                   .kind = json_string_value(json_object_get(event, "cat")),
                   .kernel = json_string_value(json_object_get(args, "kernel")),
                   .device = json_string_value(json_object_get(args, "device")),
                   .from = json_string_value(json_object_get(args, "from")),
                   .to = json_string_value(json_object_get(args, "to")),
                   .bytes = json_number_value(json_object_get(args, "bytes")) };
    return to->device && to->kind;
}

static int by_start(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* By prediction: of one start, as often as it may be started. */
static int longest_phase(const gantry_schedule *schedule)
{
    double most = 0;
    int longest = gantry_schedule_phase_count(schedule) ? 0 : -1;
    gantry_phase_info info = GANTRY_PHASE_INFO_INIT;
    const gantry_schedule *phase;
    for (size_t i = 0; (phase = gantry_schedule_phase(schedule, i, &info)); i++) {
        gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
        if (gantry_schedule_summarize(phase, &sum, NULL) || sum.makespan_us * (double)info.starts <= most)
            continue;
        most = sum.makespan_us * (double)info.starts;
        longest = (int)i;
    }
    return longest;
}

static bool read_slices(profile *p)
{
    size_t i;
    json_int_t process = p->phase < 0 ? 0 : 2 * (json_int_t)p->phase;
    json_t *event, *events = json_object_get(p->trace, "traceEvents");
    p->slice = malloc((json_array_size(events) + 1) * sizeof *p->slice);
    if (!p->slice)
        return false;
    json_array_foreach(events, i, event) p->slices += read_slice(&p->slice[p->slices], event, process);
    qsort(p->slice, p->slices, sizeof *p->slice, by_start);
    return true;
}

/* ---- unions ---- */

typedef bool (*chooses)(const slice *s, const void *of);

/* Time in which at least one of the slices that are chosen runs; *last is when the last ends. */
static double covered(const profile *p, chooses chosen, const void *of, double *last)
{
    double total = 0, until = p->slices ? p->slice[0].start : 0;
    for (size_t i = 0; i < p->slices; i++) {
        const slice *s = &p->slice[i];
        if (!chosen(s, of))
            continue;
        double from = s->start > until ? s->start : until;
        total += s->end > from ? s->end - from : 0;
        until = s->end > until ? s->end : until;
    }
    if (last)
        *last = until;
    return total;
}

static bool any(const slice *s, const void *of)
{
    (void)of;
    return s->end > s->start;
}

static bool computes_on(const slice *s, const void *of)
{
    const device_time *d = of;
    return !moves(s) && strcmp(s->device, d->id) == 0;
}

/* A copy keeps both its ends busy, whoever's lane it is in. */
static bool busy_on(const slice *s, const void *of)
{
    const device_time *d = of;
    return strcmp(s->device, d->id) == 0 ||
           (is_copy(s) && d->memory && (strcmp(s->from, d->memory) == 0 || strcmp(s->to, d->memory) == 0));
}

static bool copies_over(const slice *s, const void *of)
{
    const link_time *l = of;
    return is_copy(s) && strcmp(s->from, l->from) == 0 && strcmp(s->to, l->to) == 0;
}

/* ---- devices and links ---- */

static bool measure_devices(profile *p, const gantry_machine *machine)
{
    size_t count = gantry_machine_device_count(machine);
    double begin = p->slices ? p->slice[0].start : 0;
    p->device = calloc(count + 1, sizeof *p->device);
    for (size_t i = 0; p->device && i < count; i++) {
        gantry_device_info info = GANTRY_DEVICE_INFO_INIT;
        gantry_memory_info memory = GANTRY_MEMORY_INFO_INIT;
        device_time *d = &p->device[p->devices++];
        double last;
        if (gantry_machine_device(machine, i, &info, NULL) ||
            gantry_machine_memory(machine, (size_t)info.memory, &memory, NULL))
            return false;
        d->id = info.id;
        d->memory = info.memory ? memory.id : NULL; /* the host's is everybody's */
        d->computing = covered(p, computes_on, d, NULL);
        double busy = covered(p, busy_on, d, &last);
        d->copying = busy - d->computing;
        d->waiting = last - begin - busy;
        d->idle = p->span - (last - begin);
    }
    return p->device != NULL;
}

static link_time *find_link(profile *p, const slice *s)
{
    for (size_t i = 0; i < p->links; i++)
        if (copies_over(s, &p->link[i]))
            return &p->link[i];
    p->link[p->links] = (link_time){ .from = s->from, .to = s->to };
    return &p->link[p->links++];
}

static int busiest_first(const void *a, const void *b)
{
    const link_time *x = a, *y = b;
    return (x->busy < y->busy) - (x->busy > y->busy);
}

static bool measure_links(profile *p)
{
    p->link = calloc(p->slices + 1, sizeof *p->link);
    for (size_t i = 0; p->link && i < p->slices; i++) {
        if (!is_copy(&p->slice[i]))
            continue;
        link_time *l = find_link(p, &p->slice[i]);
        l->bytes += p->slice[i].bytes;
        l->copies++;
    }
    for (size_t i = 0; i < p->links; i++)
        p->link[i].busy = covered(p, copies_over, &p->link[i], NULL);
    if (p->links)
        qsort(p->link, p->links, sizeof *p->link, busiest_first);
    return p->link != NULL;
}

static bool measure(profile *p, const gantry_machine *machine)
{
    double last;
    if (!read_slices(p))
        return false;
    p->active = covered(p, any, NULL, &last);
    p->span = p->slices ? last - p->slice[0].start : 0;
    p->start = p->phase < 0 && p->start > p->span ? p->start : p->span;
    return measure_devices(p, machine) && measure_links(p);
}

/* The same graph, cut the same way, on one device, as far as it allows. 0: it cannot be scheduled so. */
static double predict_single(const session *s)
{
    gantry_schedule *single = NULL;
    gantry_schedule_options so = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    so.policy = "single";
    so.like = s->schedule;
    if (gantry_schedule_new(&single, s->graph, gantry_schedule_machine(s->schedule), &so, NULL))
        return 0;
    double us = gantry_schedule_summarize(single, &sum, NULL) ? 0 : sum.makespan_us;
    gantry_schedule_free(single);
    return us;
}

int measure_profile(profile *p, const session *s)
{
    gantry_error err;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    char *text = NULL;
    size_t length = 0;
    if (gantry_run_get_info(s->run, &info, &err) || gantry_run_trace(s->run, &text, &length, &err))
        return fail(&err);
    *p = (profile){ .trace = json_loadb(text, length, 0, NULL),
                    .start = info.last_us,
                    .predicted_us = info.predicted_us };
    p->phase = longest_phase(s->schedule);
    gantry_free(text);
    if (p->trace && measure(p, gantry_schedule_machine(s->schedule))) {
        p->single_us = predict_single(s);
        return EXIT_FINE;
    }
    return fail_nomem();
}

void free_profile(profile *p)
{
    json_decref(p->trace);
    free(p->slice);
    free(p->device);
    free(p->link);
}
