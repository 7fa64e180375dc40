/* SPDX-License-Identifier: Apache-2.0 */
/* gantry train --strategy auto: every strategy for the devices there are, scheduled and simulated, and the best of
 * them. recompute=auto: how many layers have to be computed again so that the rest fits the memories. */
#include "strategies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN = 8 }; /* the best of those that were planned with little effort are planned as the user wants it */

typedef struct candidate {
    char text[STRATEGY_TEXT];
    double us; /* predicted; 0: it does not fit */
    uint64_t moved, peak;
    char limit[80];
} candidate;

typedef struct candidates {
    const options *o;
    const char *path;
    gantry_machine *machine;
    candidate *at;
    size_t count, refused;
    bool is_tight; /* what does not fit is refused; else it may leave, where the user allows that */
} candidates;

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
    gantry_error err;
    char *text = NULL;
    size_t length = 0, i;
    const char *name;
    json_t *value;
    double most = 0;
    if (gantry_schedule_export(schedule, GANTRY_REPORT, &text, &length, &err))
        return fail(&err);
    json_t *report = json_loadb(text, length, 0, NULL);
    gantry_free(text);
    json_object_foreach(json_object_get(report, "busy_us"), name, value)
        offer(c->limit, sizeof c->limit, &most, json_number_value(value), c->us, "%s%s", name, "");
    json_array_foreach(json_object_get(report, "routes"), i, value)
        offer(c->limit, sizeof c->limit, &most, json_number_value(json_object_get(value, "busy_us")), c->us, "%s -> %s",
              json_string_value(json_object_get(value, "from")), json_string_value(json_object_get(value, "to")));
    json_decref(report);
    return report ? EXIT_FINE : fail_nomem();
}

static int take_figures(candidate *c, const gantry_schedule *schedule)
{
    gantry_error err;
    const gantry_machine *machine = gantry_schedule_machine(schedule);
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    if (gantry_schedule_summarize(schedule, &sum, &err))
        return fail(&err);
    c->us = sum.makespan_us;
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

/* Loads and schedules the model. *fits: it is known what came of it. What does not fit the memories has no time. */
static int predict(const candidates *all, candidate *c, int64_t effort, bool *fits)
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
    gantry_status status = gantry_graph_load(&graph, all->path, &load, &err);
    *fits = !status;
    bool is_cut_only = status == GANTRY_E_GRAPH && strcmp(all->o->strategy, "auto") == 0 &&
                       strcmp(c->text, "dp=1") != 0; /* the batch is not divisible so often */
    if (!status)
        status = gantry_schedule_new(&schedule, graph, all->machine, &so, &err);
    int code = EXIT_FINE;
    if (!status)
        code = take_figures(c, schedule);
    else if (status == GANTRY_E_CAPACITY)
        c->us = 0;
    else if (!is_cut_only)
        code = fail(&err);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    return interrupt_code() ? interrupt_code() : code;
}

/* ---- all of them ---- */

/* The faster first, those that do not fit last; of equals the one with less in memory. */
static int compare(const void *one, const void *other)
{
    const candidate *a = one, *b = other;
    if ((a->us > 0) != (b->us > 0))
        return a->us > 0 ? -1 : 1;
    if (a->us < b->us || a->us > b->us)
        return a->us < b->us ? -1 : 1;
    return (a->peak > b->peak) - (a->peak < b->peak);
}

static void sort(const candidates *all)
{
    if (all->count)
        qsort(all->at, all->count, sizeof *all->at, compare);
}

/* Adds a strategy, and predicts it. */
static int add(candidates *all, const gantry_strategy *s, int64_t effort)
{
    bool fits = false;
    candidate *grown = realloc(all->at, (all->count + 1) * sizeof *grown);
    if (!grown)
        return fail_nomem();
    all->at = grown;
    grown[all->count] = (candidate){ .us = 0 };
    gantry_strategy_text(s, grown[all->count].text, sizeof grown->text);
    int code = predict(all, &grown[all->count], effort, &fits);
    all->count += fits;
    all->refused += !fits;
    return code;
}

static int predict_all(candidates *all)
{
    int32_t devices = (int32_t)gantry_machine_worker_count(all->machine);
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    int code = EXIT_FINE;
    for (size_t i = 0; !code && gantry_strategy_candidate(i, devices, &s); i++)
        code = add(all, &s, 0);
    if (!code)
        sort(all);
    return code;
}

static int predict_again(const candidates *all)
{
    size_t count = all->count < AGAIN ? all->count : AGAIN;
    bool fits;
    int code = EXIT_FINE;
    for (size_t i = 0; i < count && all->at[i].us > 0 && !code && all->o->effort; i++)
        code = predict(all, &all->at[i], all->o->effort, &fits);
    if (!code)
        qsort(all->at, count, sizeof *all->at, compare);
    return code;
}

/* ---- layers that are computed again ---- */

/* Does it fit the memories, nothing leaving them? */
static int is_fit(const candidates *all, const gantry_strategy *s, bool *fits)
{
    candidates tight = *all;
    candidate c = { .us = 0 };
    bool is_known;
    tight.is_tight = true;
    gantry_strategy_text(s, c.text, sizeof c.text);
    int code = predict(&tight, &c, 0, &is_known);
    *fits = c.us > 0;
    return code;
}

/* The least number of layers that have to be computed again so that the rest fits: s->recompute becomes it.
 * GANTRY_RECOMPUTE_ALL: not even then. */
static int find_layers(const candidates *all, gantry_strategy *s)
{
    enum { MOST = 1 << 16 };
    int32_t none = 0, some = 1; /* these do not fit, and these do */
    bool fits = false;
    s->recompute = GANTRY_RECOMPUTE_ALL;
    int code = is_fit(all, s, &fits);
    if (code || !fits)
        return code;
    for (fits = false; !code && !fits && some < MOST; none = fits ? none : some, some *= fits ? 1 : 2) {
        s->recompute = some;
        code = is_fit(all, s, &fits);
    }
    while (!code && some - none > 1) {
        s->recompute = none + (some - none) / 2;
        code = is_fit(all, s, &fits);
        *(fits ? &some : &none) = s->recompute;
    }
    s->recompute = some;
    return code;
}

/* Adds the strategy with as many layers as have to be, or with all. */
static int add_fitting(candidates *all, gantry_strategy *s, int64_t effort)
{
    int code = find_layers(all, s);
    return code ? code : add(all, s, effort);
}

/* Where the best so far has not all in its memories: all of them, with all layers computed again, and what is best
 * then with as few as have to be. */
static int try_recompute(candidates *all)
{
    gantry_error err;
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    size_t count = all->count;
    bool fits = false;
    if (!count)
        return EXIT_FINE;
    if (gantry_strategy_parse(&s, all->at[0].text, &err))
        return fail(&err);
    int code = is_fit(all, &s, &fits);
    for (size_t i = 0; !code && !fits && i < count; i++) {
        if (gantry_strategy_parse(&s, all->at[i].text, &err))
            return fail(&err);
        s.recompute = GANTRY_RECOMPUTE_ALL;
        code = add(all, &s, 0);
    }
    if (code || fits)
        return code;
    sort(all);
    if (gantry_strategy_parse(&s, all->at[0].text, &err))
        return fail(&err);
    if (s.recompute && all->at[0].us > 0)
        code = find_layers(all, &s);
    if (!code && s.recompute && s.recompute != GANTRY_RECOMPUTE_ALL)
        code = add(all, &s, 0);
    if (!code)
        sort(all);
    return code;
}

/* Where the best is a pipeline: the same with several chunks a device. */
static int try_interleave(candidates *all)
{
    enum { MOST = 4 };
    gantry_error err;
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    if (!all->count || all->at[0].us <= 0)
        return EXIT_FINE;
    if (gantry_strategy_parse(&s, all->at[0].text, &err))
        return fail(&err);
    int code = EXIT_FINE;
    for (s.interleave = 2; s.interleave <= MOST && s.pp > 1 && !code; s.interleave *= 2)
        code = add(all, &s, 0);
    if (!code)
        sort(all);
    return code;
}

/* ---- the table ---- */

static void print_row(FILE *to, const candidate *c, int width)
{
    char time[UNIT_TEXT], peak[UNIT_TEXT], moved[UNIT_TEXT];
    if (c->us > 0)
        fprintf(to, "%-*s %12s %12s %12s  %s\n", width, c->text, time_text(time, c->us),
                bytes_text(peak, (double)c->peak), bytes_text(moved, (double)c->moved), c->limit);
    else
        fprintf(to, "%-*s does not fit the memories\n", width, c->text);
}

static void print_table(const candidates *all)
{
    FILE *to = all->o->json || uses_stdout(all->o) ? stderr : stdout;
    if (all->o->quiet)
        return;
    int width = 32;
    for (size_t i = 0; i < all->count; i++)
        width = (int)strlen(all->at[i].text) > width ? (int)strlen(all->at[i].text) : width;
    fprintf(to, "%-*s %12s %12s %12s  %s\n", width, "strategy", "a step", "peak", "moved", "busiest");
    for (size_t i = 0; i < all->count; i++)
        print_row(to, &all->at[i], width);
    if (all->refused)
        fprintf(to, "%zu others cannot be: the batch, or its split, is not divisible so\n", all->refused);
}

/* Prints what was predicted, and takes the best. */
static int take_best(const candidates *all, char text[STRATEGY_TEXT])
{
    print_table(all);
    if (!all->count || all->at[0].us <= 0) {
        complain("gantry train: no strategy of %s fits the memories of %s; allow more (--max-memory), or give more "
                 "devices\n",
                 all->path, gantry_machine_name(all->machine));
        return EXIT_CAPACITY;
    }
    memcpy(text, all->at[0].text, STRATEGY_TEXT);
    return EXIT_FINE;
}

static int choose(candidates *all, char text[STRATEGY_TEXT])
{
    int code = predict_all(all);
    code = code ? code : try_recompute(all);
    code = code ? code : try_interleave(all);
    code = code ? code : predict_again(all);
    return code ? code : take_best(all, text);
}

/* Of the strategy that the user gives, with recompute=auto. */
static int choose_layers(candidates *all, char text[STRATEGY_TEXT])
{
    gantry_error err;
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    bool fits = false;
    if (gantry_strategy_parse(&s, all->o->strategy, &err))
        return fail(&err);
    s.recompute = 0;
    int code = is_fit(all, &s, &fits);
    if (code || fits) {
        gantry_strategy_text(&s, text, STRATEGY_TEXT);
        return code;
    }
    code = add(all, &s, all->o->effort);
    code = code ? code : add_fitting(all, &s, all->o->effort);
    if (code)
        return code;
    sort(all);
    return take_best(all, text);
}

bool is_strategy_open(const char *text)
{
    gantry_error err;
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    if (!text || strcmp(text, "auto") == 0)
        return text != NULL;
    return !gantry_strategy_parse(&s, text, &err) && s.recompute == GANTRY_RECOMPUTE_AUTO;
}

int choose_strategy(const options *o, char text[STRATEGY_TEXT])
{
    options whole = *o;
    gantry_graph *graph = NULL;
    candidates all = { .o = o, .path = o->positional.at[0] };
    whole.strategy = NULL;
    int code = load_graph(&graph, &whole, all.path);
    if (!code)
        code = load_machine(&all.machine, o, graph, NULL);
    if (!code)
        code = strcmp(o->strategy, "auto") == 0 ? choose(&all, text) : choose_layers(&all, text);
    free(all.at);
    gantry_machine_free(all.machine);
    gantry_graph_free(graph);
    return code;
}
