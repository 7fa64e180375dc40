/* SPDX-License-Identifier: Apache-2.0 */
/* --strategy auto: every strategy for the devices there are, scheduled and simulated, and the best of
 * them. recompute=auto: how many layers have to be computed again so that the rest fits the memories. */
#include "strategies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN = 8 }; /* the best of those that were planned with little effort are planned as the user wants it */
/* Not those that cannot become faster than the best by more than so much: effort does not beat bounds. */
static const double worth = 0.03;

typedef struct candidate {
    gantry_strategy strategy;
    char text[STRATEGY_TEXT];
    double us;       /* predicted; 0: it does not fit */
    double bound_us; /* no schedule is faster; 0: not known */
    double busy_us;  /* of the device that computes longest */
    uint64_t moved, peak;
    char limit[80];
} candidate;

typedef struct candidates {
    const options *o;
    const char *path;
    gantry_machine *machine;
    candidate *at;
    size_t count, refused, slower; /* slower: their devices would compute for longer than the best takes */
    double best_us;                /* of those so far; HUGE_VAL: none fits */
    double work_us;                /* of one device that computes all; 0: not known, or devices are not alike */
    bool is_tight;                 /* what does not fit is refused; else it may leave, where the user allows that */
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

static int32_t devices_of(const gantry_strategy *s)
{
    return s->dp * s->tp * s->pp;
}

/* On the devices that the strategy is for, the first ones: what the scheduler would find out by trying them all. Limits
 * of memories are told by name, and want all of them. *some: NULL: the whole machine. */
static int take_devices(const candidates *all, const gantry_strategy *s, gantry_machine **some)
{
    gantry_error err;
    char count[16];
    *some = NULL;
    if (all->o->max_memory || (size_t)devices_of(s) >= gantry_machine_worker_count(all->machine))
        return EXIT_FINE;
    snprintf(count, sizeof count, "%d", (int)devices_of(s));
    return gantry_machine_select(some, all->machine, count, &err) == GANTRY_E_NOMEM ? fail(&err) : EXIT_FINE;
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
    gantry_machine *some;
    int code = take_devices(all, &c->strategy, &some);
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
        c->us = 0;
    else if (!is_cut_only)
        code = fail(&err);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    gantry_machine_free(some);
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
    candidate *c = &grown[all->count];
    *c = (candidate){ .strategy = *s };
    gantry_strategy_text(s, c->text, sizeof c->text);
    int code = predict(all, c, effort, &fits);
    all->count += fits;
    all->refused += !fits;
    all->best_us = fits && c->us > 0 && c->us < all->best_us ? c->us : all->best_us;
    return code;
}

/* Are they cut alike, but for micro-batches? */
static bool is_same_cut(const gantry_strategy *a, const gantry_strategy *b)
{
    return a->dp == b->dp && a->tp == b->tp && a->pp == b->pp && a->zero == b->zero;
}

/* Work does not get less by being cut. So devices compute at least for their share of what one device takes for all,
 * and at least for as long as with fewer micro-batches; if that is no shorter than the best so far, nor is a step. */
static bool is_slower(const candidates *all, const gantry_strategy *s)
{
    if (all->work_us / devices_of(s) >= all->best_us)
        return true;
    for (size_t i = 0; i < all->count; i++) {
        const candidate *c = &all->at[i];
        if (is_same_cut(&c->strategy, s) && c->strategy.micro <= s->micro && c->busy_us >= all->best_us)
            return true;
    }
    return false;
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

/* On one device, alone: what there is to compute. */
static int find_work(candidates *all)
{
    gantry_strategy one = GANTRY_STRATEGY_INIT;
    bool alike = false;
    int code = are_alike(all->machine, &alike);
    code = code ? code : add(all, &one, 0);
    all->work_us = !code && alike && all->count ? all->at[0].busy_us : 0;
    return code;
}

/* Some of the devices, as many as divide them; where they are few, or not alike, any number: one may be so slow, or the
 * batch be divisible so. */
static bool is_worth_trying(const candidates *all, int32_t devices, int32_t count)
{
    enum { FEW = 4 };
    return devices % count == 0 || devices <= FEW || all->work_us <= 0;
}

/* Those on so many devices, in the order of the list, with fewer micro-batches first; with so many of them, 0: any. */
static int predict_on(candidates *all, int32_t count, int32_t micro)
{
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    int code = EXIT_FINE;
    for (size_t i = 0; !code && gantry_strategy_candidate(i, count, &s); i++) {
        bool is_done = count == 1 && s.micro == 1;
        if (devices_of(&s) != count || is_done || (micro && s.micro != micro))
            continue;
        if (is_slower(all, &s))
            all->slower++;
        else
            code = add(all, &s, 0);
    }
    return code;
}

/* Numbers of devices that do not divide all: heads, columns or a batch may be divisible so, and fewer devices meet
 * sooner. With as many micro-batches as the best so far, and more than half of the devices, as the half was tried. */
static int predict_between(candidates *all, int32_t devices)
{
    enum { MANY = 16 };
    int32_t micro = all->count && all->at[0].us > 0 ? all->at[0].strategy.micro : 1;
    int code = EXIT_FINE;
    for (int32_t count = devices - 1; 2 * count > devices && devices <= MANY && !code; count--)
        code = is_worth_trying(all, devices, count) ? code : predict_on(all, count, micro);
    if (!code)
        sort(all);
    return code;
}

/* Those on all devices first: the best of them rules out most of the others. */
static int predict_all(candidates *all)
{
    int32_t devices = (int32_t)gantry_machine_worker_count(all->machine);
    int code = find_work(all);
    for (int32_t count = devices; count > 0 && !code; count--)
        code = is_worth_trying(all, devices, count) ? predict_on(all, count, 0) : code;
    if (!code)
        sort(all);
    return code ? code : predict_between(all, devices);
}

static int predict_again(candidates *all)
{
    size_t count = all->count < AGAIN ? all->count : AGAIN;
    bool fits;
    int code = EXIT_FINE;
    for (size_t i = 0; i < count && all->at[i].us > 0 && !code && all->o->effort; i++) {
        candidate *c = &all->at[i];
        if (c->bound_us >= (1 - worth) * all->best_us)
            continue;
        code = predict(all, c, all->o->effort, &fits);
        all->best_us = c->us > 0 && c->us < all->best_us ? c->us : all->best_us;
    }
    if (!code)
        qsort(all->at, count, sizeof *all->at, compare);
    return code;
}

/* ---- layers that are computed again ---- */

/* Does it fit the memories, nothing leaving them? */
static int is_fit(const candidates *all, const gantry_strategy *s, bool *fits)
{
    candidates tight = *all;
    candidate c = { .strategy = *s };
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
    if (!count || !all->o->train) /* nothing is kept for a backward pass that there is not */
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

/* ---- what differs in little from those that were tried ---- */

enum { CUTS = 4 }; /* of so many cuts, the best ones, more is tried */

static bool is_known(const candidates *all, const gantry_strategy *s)
{
    for (size_t i = 0; i < all->count; i++)
        if (is_same_cut(&all->at[i].strategy, s) && all->at[i].strategy.micro == s->micro &&
            all->at[i].strategy.interleave == s->interleave && all->at[i].strategy.recompute == s->recompute)
            return true;
    return false;
}

/* The best of each cut: is no better one cut alike? */
static bool is_best_of_cut(const candidates *all, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_same_cut(&all->at[i].strategy, &all->at[at].strategy))
            return false;
    return true;
}

/* Adds it unless it is there, or cannot win. *us: what it takes; 0: it does not fit, or was not tried. */
static int try_one(candidates *all, const gantry_strategy *s, double *us)
{
    *us = 0;
    if (is_known(all, s) || all->work_us / devices_of(s) >= all->best_us)
        return EXIT_FINE;
    size_t count = all->count;
    int code = add(all, s, 0);
    *us = all->count > count ? all->at[count].us : 0;
    return code;
}

/* A pipeline with several chunks a device. Each has less to wait for until it has work, so fewer micro-batches may be
 * enough: as long as half of them are faster. */
static int try_chunks(candidates *all, gantry_strategy s)
{
    enum { MOST = 4 };
    double us, best = HUGE_VAL;
    int32_t chunks = 1, micro = s.micro;
    int code = EXIT_FINE;
    for (s.interleave = 2; s.interleave <= MOST && !code; s.interleave *= 2) {
        code = try_one(all, &s, &us);
        chunks = us > 0 && us < best ? s.interleave : chunks;
        best = us > 0 && us < best ? us : best;
    }
    s.interleave = chunks;
    for (s.micro = micro / 2; s.micro > 0 && chunks > 1 && !code; s.micro /= 2) {
        code = try_one(all, &s, &us);
        if (us <= 0 || us >= best)
            break;
        best = us;
    }
    return code;
}

/* Of the best pipelines, the same with several chunks a device: layers may be shared out more evenly, too, so that even
 * one that was far behind becomes the best. */
static int try_interleave(candidates *all)
{
    gantry_strategy some[CUTS];
    size_t count = 0;
    int code = EXIT_FINE;
    for (size_t i = 0; i < all->count && all->at[i].us > 0 && count < CUTS; i++)
        if (all->at[i].strategy.pp > 1 && is_best_of_cut(all, i))
            some[count++] = all->at[i].strategy;
    for (size_t i = 0; i < count && !code; i++)
        code = try_chunks(all, some[i]);
    if (!code)
        sort(all);
    return code;
}

/* The list has powers of two; of the best cuts, three quarters and three halves of as many are tried too. */
static int try_between(candidates *all)
{
    gantry_strategy some[2 * CUTS];
    size_t count = 0;
    for (size_t i = 0; i < all->count && all->at[i].us > 0 && count < 2 * CUTS; i++) {
        if (!is_best_of_cut(all, i))
            continue;
        some[count] = some[count + 1] = all->at[i].strategy;
        some[count].micro = some[count].micro / 4 * 3;
        some[count + 1].micro = some[count + 1].micro / 2 * 3;
        count += 2;
    }
    int code = EXIT_FINE;
    for (size_t i = 0; i < count && !code; i++)
        if (some[i].micro > 0 && !is_known(all, &some[i]) && !is_slower(all, &some[i]))
            code = add(all, &some[i], 0);
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
    if (all->slower)
        fprintf(to, "%zu others are slower: their devices compute for longer than the first takes\n", all->slower);
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
    code = code ? code : try_between(all);
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

/* Has a strategy to be chosen: is it "auto", or one with recompute=auto? */
static bool is_open(const char *text)
{
    gantry_error err;
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    if (!text || strcmp(text, "auto") == 0)
        return text != NULL;
    return !gantry_strategy_parse(&s, text, &err) && s.recompute == GANTRY_RECOMPUTE_AUTO;
}

int settle_strategy(options *o, char text[STRATEGY_TEXT])
{
    if (!is_open(o->strategy))
        return EXIT_FINE;
    options whole = *o;
    gantry_graph *graph = NULL;
    candidates all = { .o = o, .path = o->positional.at[0], .best_us = HUGE_VAL };
    whole.strategy = NULL;
    int code = load_graph(&graph, &whole, all.path);
    if (!code)
        code = load_machine(&all.machine, o, graph, NULL);
    if (!code)
        code = strcmp(o->strategy, "auto") == 0 ? choose(&all, text) : choose_layers(&all, text);
    free(all.at);
    gantry_machine_free(all.machine);
    gantry_graph_free(graph);
    o->strategy = text;
    return code;
}
