/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a schedule, read off its report, and what follows for the number of devices. */
#include "scale.h"
#include <stdio.h>
#include <string.h>

#define CLOSE 0.1  /* to the bound: then what makes the bound is what limits */
#define BUSY  0.7  /* of the time: then that is what limits */
#define WORTH 0.05 /* of the time: what more devices have to gain */
#define FAIR  0.7  /* an efficiency at which more devices may still help */

/* ---- limits ---- */

static const char *bound_text(const char *by)
{
    if (strcmp(by, "path") == 0)
        return "the longest chain of nodes";
    if (strcmp(by, "area") == 0)
        return "computing, which is spread evenly";
    if (strcmp(by, "links") == 0)
        return "bytes over the links of host memory";
    return "bytes for which the devices have no room";
}

/* The largest of the numbers in an object; *name is borrowed. Counts those above 0. */
static double largest(const json_t *numbers, const char **name, int *positive)
{
    const char *key;
    json_t *value;
    double most = 0;
    json_object_foreach((json_t *)(uintptr_t)numbers, key, value)
    {
        double number = json_number_value(value);
        *positive += number > 0;
        if (number > most) {
            most = number;
            *name = key;
        }
    }
    return most;
}

static double busiest_route(const json_t *routes, const char **from, const char **to)
{
    double most = 0;
    for (size_t i = 0; i < json_array_size(routes); i++) {
        const json_t *r = json_array_get(routes, i);
        double busy = json_number_value(json_object_get(r, "busy_us"));
        if (busy <= most)
            continue;
        most = busy;
        *from = json_string_value(json_object_get(r, "from"));
        *to = json_string_value(json_object_get(r, "to"));
    }
    return most;
}

static void read_report(scale_row *row, const json_t *report)
{
    const char *by = json_string_value(json_object_get(report, "bound_by"));
    const char *device = "", *from = "", *to = "";
    double busy = largest(json_object_get(report, "busy_us"), &device, &row->used);
    double copying = busiest_route(json_object_get(report, "routes"), &from, &to);
    const char *port = json_string_value(json_object_get(report, "network_busiest"));
    row->network = (uint64_t)json_integer_value(json_object_get(report, "network_bytes"));
    row->network_us = json_number_value(json_object_get(report, "network_busy_us"));
    if (by && row->gap < CLOSE)
        snprintf(row->limit, sizeof row->limit, "%s", bound_text(by));
    else if (port && row->network_us > BUSY * row->us)
        snprintf(row->limit, sizeof row->limit, "the network, %.60s %.0f %% of the time", port,
                 100 * row->network_us / row->us > 100 ? 100 : 100 * row->network_us / row->us);
    else if (busy >= copying && busy > BUSY * row->us)
        snprintf(row->limit, sizeof row->limit, "computing on %.60s, %.0f %% of the time", device,
                 100 * busy / row->us);
    else if (copying > BUSY * row->us)
        snprintf(row->limit, sizeof row->limit, "copies from %.50s to %.50s, %.0f %% of the time", from, to,
                 100 * copying / row->us > 100 ? 100 : 100 * copying / row->us);
    else
        snprintf(row->limit, sizeof row->limit, "waiting for copies and for each other");
}

int scale_limit(scale_row *row, const gantry_schedule *schedule)
{
    json_t *report;
    int code = load_report(&report, schedule);
    if (code)
        return code;
    read_report(row, report);
    json_decref(report);
    return EXIT_FINE;
}

/* ---- advice ---- */

static const char *plural(const scale *s, int count)
{
    return s->ranks ? count == 1 ? "rank" : "ranks" : count == 1 ? "device" : "devices";
}

/* Fewest devices that are nearly as fast as any number. */
static const scale_row *fewest(const scale *s)
{
    double least = s->row[0].us;
    for (size_t i = 1; i < s->count; i++)
        least = s->row[i].us < least ? s->row[i].us : least;
    size_t i = 0;
    while (s->row[i].us > least * (1 + WORTH))
        i++;
    return &s->row[i];
}

static void advise(scale *s)
{
    const scale_row *best = fewest(s), *last = &s->row[s->count - 1];
    if (s->count == 1)
        snprintf(s->advice, sizeof s->advice,
                 "there is nothing to compare %d %s with: --%s 1..8 tries more of them, --machine NAME another "
                 "machine; what "
                 "limits is %s.",
                 best->count, plural(s, best->count), s->ranks ? "ranks" : "devices", best->limit);
    else if (best != last)
        snprintf(s->advice, sizeof s->advice, "take %d %s: more of them gain less than 5 %%, since what limits is %s.",
                 best->count, plural(s, best->count), best->limit);
    else if (best->efficiency >= FAIR)
        snprintf(s->advice, sizeof s->advice,
                 "take all %d: each does %.0f %% of what one alone does; what limits is %s.", best->devices,
                 100 * best->efficiency, best->limit);
    else
        snprintf(s->advice, sizeof s->advice,
                 "take %d for the least time, but each does %.0f %% of what one alone does, since what limits is %s.",
                 best->count, 100 * best->efficiency, best->limit);
}

/* Where work grows with the devices: as many as keep their efficiency. */
static void advise_weak(scale *s)
{
    size_t i = s->count - 1;
    while (i > 0 && s->row[i].efficiency < FAIR)
        i--;
    const scale_row *best = &s->row[i], *next = &s->row[i + 1 < s->count ? i + 1 : i];
    if (best == next)
        snprintf(s->advice, sizeof s->advice,
                 "let \"%s\" grow with up to %d %s, the most that were tried: each does %.0f %% of "
                 "what one alone does.",
                 s->weak, best->count, plural(s, best->count), 100 * best->efficiency);
    else
        snprintf(s->advice, sizeof s->advice,
                 "let \"%s\" grow with up to %d %s: with %d each does %.0f %% of what one alone does, since what "
                 "limits is %s.",
                 s->weak, best->count, plural(s, best->count), next->count, 100 * next->efficiency, next->limit);
}

/* The parts of a graph are all that is shared out, and a model may have none before a strategy cuts it. */
static void advise_strategy(scale *s)
{
    const scale_row *last = &s->row[s->count - 1];
    size_t told = strlen(s->advice);
    if (s->uncut && last->used < last->devices)
        snprintf(s->advice + told, sizeof s->advice - told,
                 " Not all devices have work, and the graph is a model, which is cut by an option: add --strategy "
                 "dp=devices for a step of its training, each device with a part of the batch.");
}

void scale_judge(scale *s)
{
    const scale_row *first = &s->row[0];
    for (size_t i = 0; i < s->count; i++) {
        scale_row *r = &s->row[i];
        double times = (double)r->count / first->count;
        double ratio = r->us > 0 ? first->us / r->us : 1;
        r->speedup = ratio * r->work / first->work;
        r->efficiency = r->speedup / times;
    }
    *s->weak ? advise_weak(s) : advise(s);
    advise_strategy(s);
}
