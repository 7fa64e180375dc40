/* SPDX-License-Identifier: Apache-2.0 */
/* --strategy auto: every strategy for the devices there are, scheduled and simulated, and the best of
 * them. recompute=auto: how many layers have to be computed again so that the rest fits the memories. */
#include "candidates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN = 8 }; /* the best of those that were planned with little effort are planned as the user wants it */
/* Not those that cannot become faster than the best by more than so much: effort does not beat bounds. */
static const double worth = 0.03;

/* ---- all of them ---- */

/* Are they cut alike, for the same devices, but for micro-batches? */
static bool is_same_cut(const choice *one, const choice *other)
{
    const gantry_strategy *a = &one->strategy, *b = &other->strategy;
    return a->dp == b->dp && a->tp == b->tp && a->pp == b->pp && a->zero == b->zero && one->on == other->on;
}

/* Work does not get less by being cut. So devices compute at least for their share of what one device takes for all,
 * and at least for as long as with fewer micro-batches; if that is no shorter than the best so far, nor is a step. */
static bool is_slower(const candidates *all, const choice *s)
{
    if (all->work_us / devices_of(&s->strategy) >= all->best_us)
        return true;
    for (size_t i = 0; i < all->count; i++) {
        const candidate *c = &all->at[i];
        if (is_same_cut(&c->choice, s) && c->choice.strategy.interleave == s->strategy.interleave &&
            c->choice.strategy.micro <= s->strategy.micro && c->busy_us >= all->best_us)
            return true;
    }
    return false;
}

/* Some of the devices, as many as divide them; where they are few, or not alike, any number: one may be so slow, or the
 * batch be divisible so. */
static bool is_worth_trying(const candidates *all, int32_t devices, int32_t count)
{
    enum { FEW = 4 };
    return devices % count == 0 || devices <= FEW || all->work_us <= 0;
}

/* Those on so many devices, the first or the fastest, in the order of the list, with fewer micro-batches first; with so
 * many of them, 0: any. */
static int predict_those(candidates *all, int32_t count, int32_t micro, seats on)
{
    choice c = { GANTRY_STRATEGY_INIT, on };
    gantry_strategy *s = &c.strategy;
    int code = EXIT_FINE;
    for (size_t i = 0; !code && gantry_strategy_candidate(i, count, s); i++) {
        bool is_done = count == 1 && s->micro == 1;
        if (devices_of(s) != count || is_done || (micro && s->micro != micro))
            continue;
        if (is_slower(all, &c))
            all->slower++;
        else
            code = add(all, &c, 0);
    }
    return code;
}

static int predict_on(candidates *all, int32_t count, int32_t micro)
{
    int code = predict_those(all, count, micro, ON_FIRST);
    return code || !are_others_better(all, count) ? code : predict_those(all, count, micro, ON_FASTEST);
}

/* Numbers of devices that do not divide all: heads, columns or a batch may be divisible so, and fewer devices meet
 * sooner. With as many micro-batches as the best so far, and up to 16, so that there are no more on larger machines. */
static int predict_between(candidates *all, int32_t devices)
{
    enum { MANY = 16 };
    int32_t micro = all->count && all->at[0].us > 0 ? all->at[0].choice.strategy.micro : 1;
    int code = EXIT_FINE;
    for (int32_t count = devices > MANY ? MANY : devices - 1; count > 1 && !code; count--)
        code = is_worth_trying(all, devices, count) ? code : predict_on(all, count, micro);
    if (!code)
        sort_candidates(all, all->count);
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
        sort_candidates(all, all->count);
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
        sort_candidates(all, count);
    return code;
}

/* ---- layers that are computed again ---- */

/* Does it fit the memories, nothing leaving them? */
static int is_fit(const candidates *all, const choice *s, bool *fits)
{
    candidates tight = *all;
    candidate c = { .choice = *s };
    bool is_known;
    tight.is_tight = true;
    gantry_strategy_text(&s->strategy, c.text, sizeof c.text);
    int code = predict(&tight, &c, 0, &is_known);
    *fits = c.us > 0;
    return code;
}

/* The least number of layers that have to be computed again so that the rest fits: s->recompute becomes it.
 * GANTRY_RECOMPUTE_ALL: not even then. */
static int find_layers(const candidates *all, choice *s)
{
    enum { MOST = 1 << 16 };
    int32_t none = 0, some = 1; /* these do not fit, and these do */
    bool fits = false;
    s->strategy.recompute = GANTRY_RECOMPUTE_ALL;
    int code = is_fit(all, s, &fits);
    if (code || !fits)
        return code;
    for (fits = false; !code && !fits && some < MOST; none = fits ? none : some, some *= fits ? 1 : 2) {
        s->strategy.recompute = some;
        code = is_fit(all, s, &fits);
    }
    while (!code && some - none > 1) {
        s->strategy.recompute = none + (some - none) / 2;
        code = is_fit(all, s, &fits);
        *(fits ? &some : &none) = s->strategy.recompute;
    }
    s->strategy.recompute = some;
    return code;
}

/* Adds the strategy with as many layers as have to be, or with all. */
static int add_fitting(candidates *all, choice *s, int64_t effort)
{
    int code = find_layers(all, s);
    return code ? code : add(all, s, effort);
}

/* Where the best so far has not all in its memories: all of them, with all layers computed again, and what is best
 * then with as few as have to be. */
static int try_recompute(candidates *all)
{
    size_t count = all->count;
    bool fits = false;
    if (!count || !all->o->train) /* nothing is kept for a backward pass that there is not */
        return EXIT_FINE;
    choice best = all->at[0].choice;
    int code = is_fit(all, &best, &fits);
    for (size_t i = 0; !code && !fits && i < count; i++) {
        choice again = all->at[i].choice;
        again.strategy.recompute = GANTRY_RECOMPUTE_ALL;
        code = add(all, &again, 0);
    }
    if (code || fits)
        return code;
    sort_candidates(all, all->count);
    best = all->at[0].choice;
    if (best.strategy.recompute && all->at[0].us > 0)
        code = find_layers(all, &best);
    if (!code && best.strategy.recompute && best.strategy.recompute != GANTRY_RECOMPUTE_ALL)
        code = add(all, &best, 0);
    if (!code)
        sort_candidates(all, all->count);
    return code;
}

/* ---- what differs in little from those that were tried ---- */

enum { CUTS = 4 }; /* of so many cuts, the best ones, more is tried */

static bool is_known(const candidates *all, const choice *s)
{
    for (size_t i = 0; i < all->count; i++) {
        const gantry_strategy *had = &all->at[i].choice.strategy;
        if (is_same_cut(&all->at[i].choice, s) && had->micro == s->strategy.micro &&
            had->interleave == s->strategy.interleave && had->recompute == s->strategy.recompute)
            return true;
    }
    return false;
}

/* The best of each cut: is no better one cut alike? */
static bool is_best_of_cut(const candidates *all, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_same_cut(&all->at[i].choice, &all->at[at].choice))
            return false;
    return true;
}

/* Adds it unless it is there, or cannot win. *us: what it takes; 0: it does not fit, or was not tried. */
static int try_one(candidates *all, const choice *s, double *us)
{
    *us = 0;
    if (is_known(all, s) || all->work_us / devices_of(&s->strategy) >= all->best_us)
        return EXIT_FINE;
    size_t count = all->count;
    int code = add(all, s, 0);
    *us = all->count > count ? all->at[count].us : 0;
    return code;
}

/* A pipeline with several chunks a device. Each has less to wait for until it has work, so fewer micro-batches may be
 * enough: as long as half of them are faster. */
static int try_chunks(candidates *all, choice c)
{
    enum { MOST = 4 };
    double us, best = HUGE_VAL;
    int32_t chunks = 1, micro = c.strategy.micro;
    gantry_strategy *s = &c.strategy;
    int code = EXIT_FINE;
    for (s->interleave = 2; s->interleave <= MOST && !code; s->interleave *= 2) {
        code = try_one(all, &c, &us);
        chunks = us > 0 && us < best ? s->interleave : chunks;
        best = us > 0 && us < best ? us : best;
    }
    s->interleave = chunks;
    for (s->micro = micro / 2; s->micro > 0 && chunks > 1 && !code; s->micro /= 2) {
        code = try_one(all, &c, &us);
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
    choice some[CUTS];
    size_t count = 0;
    int code = EXIT_FINE;
    for (size_t i = 0; i < all->count && all->at[i].us > 0 && count < CUTS; i++)
        if (all->at[i].choice.strategy.pp > 1 && is_best_of_cut(all, i))
            some[count++] = all->at[i].choice;
    for (size_t i = 0; i < count && !code; i++)
        code = try_chunks(all, some[i]);
    if (!code)
        sort_candidates(all, all->count);
    return code;
}

/* ---- step by step from the best ones ---- */

/* With the next number of micro-batches that can be, `step` by `step`: the list has powers of two, and the batch may be
 * divisible by others. */
static int try_micro(candidates *all, choice *c, int32_t step, double *us)
{
    int32_t most = 2 * c->strategy.micro + 3;
    int code = EXIT_FINE;
    for (*us = 0; !code && *us <= 0;) {
        size_t count = all->count;
        c->strategy.micro += step;
        if (c->strategy.micro < 1 || c->strategy.micro > most || is_known(all, c) || is_slower(all, c))
            break;
        code = try_one(all, c, us);
        if (all->count > count) /* it can be, and may be without room */
            break;
    }
    return code;
}

/* Makes a neighbour of a choice, and predicts it. *us: 0: there is none, or it was tried, or does not fit. */
static int try_neighbour(candidates *all, choice *c, int which, double *us)
{
    enum { MOST_CHUNKS = 8 };
    gantry_strategy *s = &c->strategy;
    *us = 0;
    if (which < 2)
        return try_micro(all, c, which ? -1 : 1, us);
    if (which == 2 && s->dp * s->tp > 1)
        s->zero = !s->zero;
    else if (which == 3 && s->pp > 1 && s->interleave < MOST_CHUNKS)
        s->interleave *= 2;
    else if (which == 4 && s->interleave > 1)
        s->interleave /= 2;
    else
        return EXIT_FINE;
    return try_one(all, c, us);
}

/* From one to the fastest of its neighbours that were not tried, as long as it is faster. */
static int climb(candidates *all, choice from, double us)
{
    enum { NEIGHBOURS = 5 };
    int code = EXIT_FINE;
    for (bool moves = true; moves && !code;) {
        choice best = from;
        moves = false;
        for (int i = 0; i < NEIGHBOURS && !code; i++) {
            double its_us;
            choice near = from;
            code = try_neighbour(all, &near, i, &its_us);
            if (its_us <= 0 || its_us >= us)
                continue;
            us = its_us;
            best = near;
            moves = true;
        }
        from = best;
    }
    return code;
}

/* The best with so many replicas, slices and stages? */
static bool is_best_of_shape(const candidates *all, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        const gantry_strategy *a = &all->at[i].choice.strategy, *b = &all->at[at].choice.strategy;
        if (a->dp == b->dp && a->tp == b->tp && a->pp == b->pp && all->at[i].choice.on == all->at[at].choice.on)
            return false;
    }
    return true;
}

/* May one near it become the best? More micro-batches let a pipeline take up to as long as its busiest device computes.
 */
static bool may_win(const candidates *all, const candidate *c)
{
    static const double far = 1.3;
    return c->choice.strategy.pp > 1 ? c->busy_us < all->best_us : c->us < far * all->best_us;
}

/* Of the best ones, and the best pipelines, all that differs in one number, and so on. */
static int try_neighbours(candidates *all)
{
    candidate some[2 * CUTS];
    size_t count = 0, of[2] = { 0, 0 }, refused = all->refused;
    int code = EXIT_FINE;
    for (size_t i = 0; i < all->count && all->at[i].us > 0; i++) {
        size_t *those = &of[all->at[i].choice.strategy.pp > 1];
        if (*those < CUTS && is_best_of_shape(all, i) && may_win(all, &all->at[i])) {
            some[count++] = all->at[i];
            ++*those;
        }
    }
    for (size_t i = 0; i < count && !code; i++)
        code = may_win(all, &some[i]) ? climb(all, some[i].choice, some[i].us) : code;
    all->refused = refused; /* some were asked for more than once */
    if (!code)
        sort_candidates(all, all->count);
    return code;
}

/* The best ones that are for some of the devices, with the others for what is given to none. */
static int try_all_devices(candidates *all)
{
    enum { SOME = 2 };
    size_t count = all->count < SOME ? all->count : SOME;
    int code = EXIT_FINE;
    for (size_t i = 0; i < count && !code; i++) {
        choice c = all->at[i].choice;
        if (c.on != ON_FIRST || all->at[i].us <= 0 ||
            (size_t)devices_of(&c.strategy) == gantry_machine_worker_count(all->machine))
            continue;
        c.on = ON_ALL;
        code = add(all, &c, 0);
    }
    if (!code)
        sort_candidates(all, all->count);
    return code;
}

/* ---- the table ---- */

/* "dp=1 on gpu1", where these are not the first devices alone. */
static void write_row(const candidates *all, const candidate *c, char text[STRATEGY_TEXT + DEVICES_TEXT])
{
    enum { ID = 3 }; /* "id:" */
    char devices[DEVICES_TEXT];
    write_devices(all, &c->choice, devices);
    if (c->choice.on == ON_ALL)
        snprintf(text, STRATEGY_TEXT + DEVICES_TEXT, "%s on all", c->text);
    else
        snprintf(text, STRATEGY_TEXT + DEVICES_TEXT, "%s%s%s", c->text, c->choice.on == ON_FASTEST ? " on " : "",
                 c->choice.on == ON_FASTEST && devices[0] ? devices + ID : "");
}

static void print_row(FILE *to, const candidate *c, const char *name, int width)
{
    char time[UNIT_TEXT], peak[UNIT_TEXT], moved[UNIT_TEXT];
    if (c->us > 0)
        fprintf(to, "%-*s %12s %12s %12s  %s\n", width, name, time_text(time, c->us), bytes_text(peak, (double)c->peak),
                bytes_text(moved, (double)c->moved), c->limit);
    else
        fprintf(to, "%-*s does not fit the memories: %.*s\n", width, name, (int)strcspn(c->refusal, ";"), c->refusal);
}

static void print_table(const candidates *all)
{
    FILE *to = all->o->json || uses_stdout(all->o) ? stderr : stdout;
    char name[STRATEGY_TEXT + DEVICES_TEXT];
    if (all->o->quiet)
        return;
    int width = 32;
    for (size_t i = 0; i < all->count; i++) {
        write_row(all, &all->at[i], name);
        width = (int)strlen(name) > width ? (int)strlen(name) : width;
    }
    fprintf(to, "%-*s %12s %12s %12s  %s\n", width, "strategy", "a step", "peak", "moved", "busiest");
    for (size_t i = 0; i < all->count; i++) {
        write_row(all, &all->at[i], name);
        print_row(to, &all->at[i], name, width);
    }
    if (all->slower)
        fprintf(to, "%zu other%s slower: %s devices compute for longer than the first takes\n", all->slower,
                all->slower == 1 ? " is" : "s are", all->slower == 1 ? "its" : "their");
    if (all->refused)
        fprintf(to, "%zu other%s cannot be: the batch, or its split, is not divisible so\n", all->refused,
                all->refused == 1 ? "" : "s");
}

/* Into how many pieces a strategy cuts what has to be in memory, the batch times the weights. */
static int64_t pieces_of(const gantry_strategy *s)
{
    return (int64_t)s->dp * s->tp * s->micro * s->tp * s->pp * (s->zero ? s->dp : 1);
}

static bool is_finer(const gantry_strategy *a, const gantry_strategy *b)
{
    if (pieces_of(a) != pieces_of(b))
        return pieces_of(a) > pieces_of(b);
    return a->recompute > b->recompute;
}

/* Of all that do not fit, the one that is cut into most pieces says what is lacking. */
static int fail_all(const candidates *all)
{
    const candidate *finest = all->count ? &all->at[0] : NULL;
    for (size_t i = 1; i < all->count; i++)
        if (is_finer(&all->at[i].choice.strategy, &finest->choice.strategy))
            finest = &all->at[i];
    complain("gantry train: no strategy of %s fits the memories of %s%s%s%s%s\n", all->path,
             gantry_machine_name(all->machine), finest ? "; cut into most pieces, by \"" : "",
             finest ? finest->text : "", finest ? "\", " : "", finest ? finest->refusal : "");
    return EXIT_CAPACITY;
}

/* Prints what was predicted, and takes the best. */
static int take_best(const candidates *all, settled *text)
{
    print_table(all);
    if (!all->count || all->at[0].us <= 0)
        return fail_all(all);
    memcpy(text->strategy, all->at[0].text, STRATEGY_TEXT);
    return EXIT_FINE;
}

static int choose(candidates *all, settled *text)
{
    int code = predict_all(all);
    code = code ? code : try_recompute(all);
    code = code ? code : try_interleave(all);
    code = code ? code : try_neighbours(all);
    code = code || !are_named(all) ? code : try_all_devices(all);
    code = code ? code : predict_again(all);
    code = code ? code : take_best(all, text);
    if (!code && are_named(all))
        write_devices(all, &all->at[0].choice, text->devices);
    return code;
}

/* Of the strategy that the user gives, with recompute=auto. */
static int choose_layers(candidates *all, settled *text)
{
    gantry_error err;
    choice c = { GANTRY_STRATEGY_INIT, ON_FIRST };
    gantry_strategy *s = &c.strategy;
    bool fits = false;
    if (gantry_strategy_parse(s, all->o->strategy, &err))
        return fail(&err);
    s->recompute = 0;
    int code = is_fit(all, &c, &fits);
    if (code || fits) {
        gantry_strategy_text(s, text->strategy, STRATEGY_TEXT);
        return code;
    }
    code = add(all, &c, all->o->effort);
    code = code ? code : add_fitting(all, &c, all->o->effort);
    if (code)
        return code;
    sort_candidates(all, all->count);
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

int settle_strategy(options *o, settled *text)
{
    if (!is_open(o->strategy))
        return EXIT_FINE;
    options whole = *o;
    gantry_graph *graph = NULL;
    candidates all = { .o = o, .path = o->positional.at[0], .best_us = HUGE_VAL };
    whole.strategy = NULL;
    *text = (settled){ .strategy = "" };
    int code = load_graph(&graph, &whole, all.path);
    if (!code)
        code = load_machine(&all.machine, o, graph, NULL);
    if (!code)
        code = strcmp(o->strategy, "auto") == 0 ? choose(&all, text) : choose_layers(&all, text);
    free(all.at);
    free(all.speeds);
    gantry_machine_free(all.machine);
    gantry_graph_free(graph);
    o->strategy = text->strategy;
    o->devices = text->devices[0] ? text->devices : o->devices;
    return code;
}
