/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The bound of machines whose devices are of several kinds. A node is fast on one kind and slow on another, so it is
 * not enough to count it where it is fastest: all nodes are not on the few devices that are fastest for all. With x the
 * part of a task that is done by a kind of `count` devices, no schedule ends before
 *
 *   min T:  work of each kind by x <= count T,  length of each chain by x <= T,  each task is done once
 *
 * (the linear program HLP of M. Amaris, G. Lucarelli, C. Mommessin, D. Trystram, Generic algorithms for scheduling
 * applications on hybrid multi-core machines, Euro-Par 2017). Its dual needs no solver: with prices for kinds and
 * chains, all at least 0, that add up to 1 where each device of a kind and each chain counts once,
 *
 *   sum over tasks of min over kinds of (price of the kind x work there + price of chains through it x time there)
 *
 * is a bound whatever the prices are. They begin with those of equal devices and are moved towards one kind or one
 * chain at a time, as far as that raises the sum (which is concave, so by bisection). For two kinds without chains this
 * finds where the list of tasks by acceleration is cut, exactly.
 *
 * And for sets of tasks that cannot begin before h and are followed by q: h + the sum over the set + q.
 *
 * Tasks that one kind alone can do, as most can where the graph says what goes where, are certain: their part of the
 * sum is linear in the prices and is added up once for each move, not at each price that is tried.
 *
 * A part of a task on a slow kind is worth nothing where the whole of it is too long to be there: refute.c.
 */
#include "scheduler/bound/bound_kinds.h"

#include "base/error.h"
#include <math.h>
#include <stdlib.h>

#define KINDS         8                 /* more than these: no such bound is looked for */
#define STEPS         UINT64_C(3000000) /* tasks x kinds looked at in all, about */
#define HALVINGS      20
#define ROUNDS        24
#define WINDOWS_UP_TO 1024       /* tasks */
#define SAFE          (1 - 1e-9) /* sums are of floating point */

typedef struct prices {
    double kind[KINDS]; /* of one device */
    double *chain;      /* per task */
} prices;

/* Towards one kind, or (`kind` == GY_NONE) the chain that is marked. */
typedef struct target {
    uint32_t kind;
} target;

/* Values of an answer x to prices between `at` and the target: that of the target, and that of `at`. */
typedef struct answer {
    double there, here, sum;
} answer;

typedef struct finder {
    const gy_kind_work *work;
    prices at;
    uint32_t *only; /* per task: the kind that alone can do it; GY_NONE: several can, or none */
    uint32_t *open; /* tasks that several kinds can do */
    uint32_t opens;
    double held[KINDS]; /* work of the certain tasks, by kind */
    answer certain;     /* what they add to each answer of a move */
    uint8_t *marked;    /* per task: is on the chain */
    double *mean;       /* per task: its time, as the last answers were on average */
    double *longest;    /* per task: of chains that end with it */
    uint32_t *through;  /* per task: the one before it on that chain */
    double answers;
    double best;
    uint64_t steps;
} finder;

static void sum_certain(finder *f, const target *to)
{
    const gy_kind_work *w = f->work;
    f->certain = (answer){ 0 };
    for (uint32_t k = 0; k < w->kinds; k++) {
        f->certain.here += f->at.kind[k] * f->held[k];
        f->certain.there += to->kind == k ? f->held[k] / w->count[k] : 0;
    }
    for (uint32_t t = 0; t < w->tasks; t++) {
        if (f->only[t] == GY_NONE)
            continue;
        double time = w->time[(size_t)t * w->kinds + f->only[t]].time;
        f->certain.here += f->at.chain[t] * time;
        f->certain.there += to->kind == GY_NONE && f->marked[t] ? time : 0;
    }
    f->steps += w->tasks;
}

static answer ask(finder *f, const target *to, double share, double weight)
{
    const gy_kind_work *w = f->work;
    answer a = f->certain;
    a.sum = (1 - share) * a.here + share * a.there;
    for (uint32_t i = 0; i < f->opens; i++) {
        uint32_t t = f->open[i], best = 0;
        double least = HUGE_VAL, chain = f->at.chain[t], on = to->kind == GY_NONE && f->marked[t] ? 1 : 0;
        for (uint32_t k = 0; k < w->kinds; k++) {
            const gy_kind_time *x = &w->time[(size_t)t * w->kinds + k];
            double goal = to->kind == k ? 1.0 / w->count[k] : 0;
            double price = (1 - share) * f->at.kind[k] + share * goal;
            double cost = price * x->hold + ((1 - share) * chain + share * on) * x->time;
            if (cost < least) {
                least = cost;
                best = k;
            }
        }
        const gy_kind_time *x = &w->time[(size_t)t * w->kinds + best];
        a.sum += least;
        a.here += f->at.kind[best] * x->hold + chain * x->time;
        a.there += (to->kind == best ? x->hold / w->count[best] : 0) + on * x->time;
        f->mean[t] += weight * (x->time - f->mean[t]);
    }
    f->steps += (uint64_t)f->opens * w->kinds;
    return a;
}

static void go(finder *f, const target *to, double share)
{
    const gy_kind_work *w = f->work;
    for (uint32_t k = 0; k < w->kinds; k++)
        f->at.kind[k] = (1 - share) * f->at.kind[k] + (to->kind == k ? share / w->count[k] : 0);
    for (uint32_t t = 0; t < w->tasks; t++)
        f->at.chain[t] = (1 - share) * f->at.chain[t] + (to->kind == GY_NONE && f->marked[t] ? share : 0);
}

/* As far as the sum rises. Answers on both sides of the best share count towards the mean. */
static void move_towards(finder *f, target to)
{
    double low = 0, high = 1, best = f->best, share = 0;
    sum_certain(f, &to);
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        bool last = i + 2 >= HALVINGS;
        f->answers += last;
        answer a = ask(f, &to, middle, last ? 1 / f->answers : 0);
        if (a.sum > best) {
            best = a.sum;
            share = middle;
        }
        if (a.there > a.here)
            low = middle;
        else
            high = middle;
    }
    if (share > 0)
        go(f, &to, share);
    f->best = best;
}

static void mark_longest(finder *f)
{
    const gy_kind_work *w = f->work;
    uint32_t last = GY_NONE;
    for (uint32_t t = 0; t < w->tasks; t++) {
        double before = 0;
        f->marked[t] = 0;
        f->through[t] = GY_NONE;
        for (uint32_t i = w->first[t]; i < w->first[t + 1]; i++)
            if (f->longest[w->before[i]] > before) {
                before = f->longest[w->before[i]];
                f->through[t] = w->before[i];
            }
        f->longest[t] = before + f->mean[t];
        if (last == GY_NONE || f->longest[t] > f->longest[last])
            last = t;
    }
    for (; last != GY_NONE; last = f->through[last])
        f->marked[last] = 1;
    f->steps += w->first[w->tasks];
}

static void begin_with_equal_devices(finder *f)
{
    const gy_kind_work *w = f->work;
    target none = { KINDS };
    uint32_t devices = 0;
    for (uint32_t k = 0; k < w->kinds; k++)
        devices += w->count[k];
    for (uint32_t k = 0; k < w->kinds; k++)
        f->at.kind[k] = w->count[k] ? 1.0 / devices : 0;
    sum_certain(f, &none);
    f->best = ask(f, &none, 0, 1).sum;
}

static void move_prices_of_kinds(finder *f)
{
    for (uint32_t k = 0; k < f->work->kinds; k++)
        if (f->work->count[k])
            move_towards(f, (target){ k });
}

/* ---- sets of tasks ---- */

typedef struct piece {
    double head, work, tail;
} piece;

static int by_tail(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    return x->tail < y->tail ? 1 : x->tail > y->tail ? -1 : 0;
}

static double least_time(const gy_kind_work *w, uint32_t task)
{
    double least = HUGE_VAL;
    for (uint32_t k = 0; k < w->kinds; k++) {
        double time = w->time[(size_t)task * w->kinds + k].time;
        least = time < least ? time : least;
    }
    return least < HUGE_VAL ? least : 0;
}

static void make_pieces(const finder *f, piece *pieces)
{
    const gy_kind_work *w = f->work;
    for (uint32_t t = 0; t < w->tasks; t++) {
        double work = HUGE_VAL;
        for (uint32_t k = 0; k < w->kinds; k++) {
            const gy_kind_time *x = &w->time[(size_t)t * w->kinds + k];
            double cost = x->time < HUGE_VAL ? f->at.kind[k] * x->hold : HUGE_VAL;
            work = cost < work ? cost : work;
        }
        pieces[t] = (piece){ 0, work < HUGE_VAL ? work : 0, 0 };
        for (uint32_t i = w->first[t]; i < w->first[t + 1]; i++) {
            double end = pieces[w->before[i]].head + least_time(w, w->before[i]);
            pieces[t].head = end > pieces[t].head ? end : pieces[t].head;
        }
    }
    for (uint32_t t = w->tasks; t-- > 0;)
        for (uint32_t i = w->first[t]; i < w->first[t + 1]; i++) {
            piece *before = &pieces[w->before[i]];
            double tail = pieces[t].tail + least_time(w, t);
            before->tail = tail > before->tail ? tail : before->tail;
        }
}

/* With the prices of kinds alone. */
static gantry_status try_sets(finder *f, double *most, gantry_error *err)
{
    uint32_t tasks = f->work->tasks;
    piece *pieces = gy_calloc((size_t)tasks + 1, sizeof *pieces);
    if (!pieces)
        return gy_fail_nomem(err);
    make_pieces(f, pieces);
    qsort(pieces, tasks, sizeof *pieces, by_tail);
    for (uint32_t a = 0; a < tasks; a++) {
        double work = 0;
        for (uint32_t i = 0; i < tasks; i++) {
            if (pieces[i].head < pieces[a].head || pieces[i].work <= 0)
                continue;
            work += pieces[i].work;
            double time = pieces[a].head + work + pieces[i].tail;
            *most = time > *most ? time : *most;
        }
    }
    gy_free(pieces);
    return GANTRY_OK;
}

/* ---- all of it ---- */

/* Which tasks one kind alone can do. */
static void find_certain(finder *f)
{
    const gy_kind_work *w = f->work;
    for (uint32_t t = 0; t < w->tasks; t++) {
        uint32_t can = 0, last = 0;
        for (uint32_t k = 0; k < w->kinds; k++)
            if (w->time[(size_t)t * w->kinds + k].time < HUGE_VAL) {
                can++;
                last = k;
            }
        f->only[t] = can == 1 ? last : GY_NONE;
        if (can > 1)
            f->open[f->opens++] = t;
        if (can != 1)
            continue;
        f->held[last] += w->time[(size_t)t * w->kinds + last].hold;
        f->mean[t] = w->time[(size_t)t * w->kinds + last].time;
    }
}

static bool init(finder *f, const gy_kind_work *w)
{
    size_t room = (size_t)w->tasks + 1;
    *f = (finder){ .work = w };
    f->at.chain = gy_calloc(room, sizeof *f->at.chain);
    f->marked = gy_calloc(room, sizeof *f->marked);
    f->mean = gy_calloc(room, sizeof *f->mean);
    f->longest = gy_calloc(room, sizeof *f->longest);
    f->through = gy_calloc(room, sizeof *f->through);
    f->only = gy_calloc(room, sizeof *f->only);
    f->open = gy_calloc(room, sizeof *f->open);
    bool done = f->at.chain && f->marked && f->mean && f->longest && f->through && f->only && f->open;
    if (done)
        find_certain(f);
    return done;
}

static void free_finder(finder *f)
{
    gy_free(f->at.chain);
    gy_free(f->marked);
    gy_free(f->mean);
    gy_free(f->longest);
    gy_free(f->through);
    gy_free(f->only);
    gy_free(f->open);
}

static void find_prices(finder *f)
{
    begin_with_equal_devices(f);
    for (int i = 0; i < (f->work->kinds > 2 ? 3 : 1); i++)
        move_prices_of_kinds(f);
}

static gantry_status find(finder *f, bool chains, double *most, gantry_error *err)
{
    double sets = 0;
    find_prices(f);
    if (chains && f->work->tasks <= WINDOWS_UP_TO)
        GY_TRY(try_sets(f, &sets, err));
    for (int i = 0; chains && i < ROUNDS && f->steps < STEPS; i++) {
        mark_longest(f);
        move_towards(f, (target){ GY_NONE });
        move_prices_of_kinds(f);
    }
    *most = (sets > f->best ? sets : f->best) * SAFE;
    return GANTRY_OK;
}

gantry_status gy_kind_work_bound(const gy_kind_work *w, bool chains, double *most, gantry_error *err)
{
    finder f;
    gantry_status status = init(&f, w) ? find(&f, chains, most, err) : gy_fail_nomem(err);
    free_finder(&f);
    return status;
}

gantry_status gy_kind_work_prices(const gy_kind_work *w, double *price, gantry_error *err)
{
    finder f;
    gantry_status status = init(&f, w) ? GANTRY_OK : gy_fail_nomem(err);
    if (!status)
        find_prices(&f);
    for (uint32_t k = 0; k < w->kinds; k++)
        price[k] = status ? 0 : f.at.kind[k];
    free_finder(&f);
    return status;
}

gantry_status gy_bound_kinds(const gy_plan *p, bool chains, gy_ticks *most, gantry_error *err)
{
    gy_kind_work w;
    double time = 0;
    gantry_status status = gy_kind_work_make(&w, p, KINDS, err);
    if (!status && w.kinds > 1)
        status = gy_kind_work_bound(&w, chains, &time, err);
    if (!status && w.kinds > 1 && chains)
        status = gy_kind_work_refute(&w, &time, err);
    if (!status && time < (double)GY_TICKS_MAX && (gy_ticks)time > *most)
        *most = (gy_ticks)time;
    gy_kind_work_free(&w);
    return status;
}
