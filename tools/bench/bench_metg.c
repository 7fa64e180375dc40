/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench metg: the minimum effective task granularity of Task Bench (Slaughter et al., SC 2020), the smallest task for
 * which at least half of the time is work. Tasks of a stencil, one on each list of a GPU at a time, wait by the clock;
 * at best a start takes a task's time for each step, and its efficiency is that over what it does take.
 */
#include "bench.h"
#include <stdio.h>
#include <string.h>

enum { STARTS = 9, SURE = 2, STEPS = 100, WAYS = 3, MOST_TRIED = 24 };
#define WANTED    0.5
#define FIRST_US  16.0
#define LEAST_US  0.125
#define MOST_US   2048.0
#define ENOUGH_US 2e5  /* no other start is made for a length after so long */
#define CLOSE     1.03 /* so near are a task that is large enough and one that is not, when the search ends */
#define IN_VAIN   1.25 /* so many times too much time for each step, however long tasks are, ends it too, */
#define FAR       2    /* as told by lengths that are so many times apart, as a start more or less is noise */
#define BESIDE    1.01 /* so far beside the length that is guessed a length is tried */

typedef struct metg {
    const char *backend;
    const gantry_machine *machine;
    int64_t lists, steps;
    int devices;
} metg;

typedef struct found {
    char replay[128]; /* what came of it */
    double us;        /* the smallest task; 0: none of up to MOST_US */
    double efficiency;
    int tried;
} found;

/* The least of up to STARTS starts, as what else the computer does only adds to them. Once it is low enough, others can
 * only say the same. */
static int least_us(gantry_run *run, int64_t series, double enough, double *least)
{
    double us = 0, begin = now_us();
    int code = bench_starts(run, series, &us); /* which does not count */
    for (int i = 0; (i == 0 || (i < STARTS && now_us() - begin < ENOUGH_US)) && !code; i++) {
        code = bench_starts(run, series, &us);
        *least = i == 0 || us < *least ? us : *least;
        if (i + 1 >= SURE && *least <= enough)
            break;
    }
    return code;
}

/* The part of a start that is work, with tasks of so long. */
static int measure(found *f, const options *o, const metg *m, double us, double *efficiency)
{
    gantry_error err;
    gantry_run *run = NULL;
    gantry_schedule *schedule = NULL;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    double least = 0;
    gantry_graph *graph = bench_busy(m->lists, m->steps, m->devices, us);
    int code = bench_open_on(&run, &schedule, o, m->backend, graph, m->machine);
    if (!code)
        code = least_us(run, o->series, us * (double)m->steps / WANTED, &least);
    if (!code && gantry_run_get_info(run, &info, &err))
        code = fail(&err);
    if (!code) {
        *efficiency = us * (double)m->steps / least;
        snprintf(f->replay, sizeof f->replay, "%s", info.replay);
        f->tried++;
    }
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    return code;
}

/* The longest task that was not large enough, and the shortest that was, each with its efficiency; us 0: none so far.
 */
typedef struct bracket {
    double small, small_part, large, large_part;
} bracket;

static double within(double us, double least, double most)
{
    return us < least ? least : us > most ? most : us;
}

/* A start has a part that does not depend on the length of tasks, and one in proportion: a line through both ends tells
 * where WANTED lies. */
static double between(const bracket *b)
{
    double begin = b->small / b->small_part, end = b->large / b->large_part; /* time of a step */
    double slope = (end - begin) / (b->large - b->small), guess = WANTED * (begin - slope * b->small);
    guess = WANTED * slope < 1 ? guess / (1 - WANTED * slope) : (b->small + b->large) / 2;
    double middle = (b->small + b->large) / 2;
    guess = guess > middle ? guess / BESIDE : guess * BESIDE; /* so that the longer side is cut off */
    return within(guess, b->small * 1.005, b->large / 1.005);
}

/* Longer tasks come nearer to what a line through two lengths that are too small rises by, and never beyond: where
 * lists are more than what runs at once, or one behind the other, no length is large enough. */
static bool is_in_vain(const bracket *b, double us, double part)
{
    if (b->small <= 0 || b->large > 0 || us < FAR * b->small || part <= 0)
        return false;
    double slope = (us / part - b->small / b->small_part) / (us - b->small);
    return slope * WANTED > IN_VAIN;
}

/* As long as WANTED says, if what a start takes beside the work is the same for all lengths. */
static double alike(double us, double part)
{
    return us * (1 / part - 1) * WANTED / (1 - WANTED);
}

/* The next length to try; 0: none. */
static double next_us(const bracket *b, int tried)
{
    if (b->small > 0 && b->large > 0) {
        bool halve = tried % 3 == 2; /* whatever the line says */
        return b->large <= CLOSE * b->small ? 0 : halve ? (b->small + b->large) / 2 : between(b);
    }
    if (b->small >= MOST_US)
        return 0;
    if (b->small > 0)
        return within(alike(b->small, b->small_part) * BESIDE, 1.05 * b->small, MOST_US);
    double us = within(alike(b->large, b->large_part) / BESIDE, b->large / 16, b->large / CLOSE);
    return b->large <= LEAST_US ? 0 : us > LEAST_US ? us : LEAST_US;
}

static int search(found *f, const options *o, const metg *m, const char *replay)
{
    options with = *o;
    bracket b = { 0 };
    double part = 0, us = FIRST_US;
    int code = EXIT_FINE;
    with.replay = replay;
    while (!code && us > 0 && f->tried < MOST_TRIED) {
        code = measure(f, &with, m, us, &part);
        if (is_in_vain(&b, us, part))
            break;
        if (part >= WANTED) {
            b.large = us;
            b.large_part = f->efficiency = part;
        } else {
            b.small = us;
            b.small_part = part > 1e-6 ? part : 1e-6;
        }
        us = next_us(&b, f->tried);
    }
    f->us = b.large;
    f->efficiency = b.large > 0 ? f->efficiency : part;
    return code;
}

static void print_one(const metg *m, const found *f)
{
    printf("metg of %lld lists on %d %s%s, %s: ", (long long)m->lists, m->devices,
           strcmp(m->backend, "cuda") == 0 ? "GPU" : "device", m->devices == 1 ? "" : "s", f->replay);
    if (f->us > 0)
        printf("%.2f us a task (%.0f %% of the time is work)\n", f->us, 100 * f->efficiency);
    else
        printf("none of up to %.0f us\n", MOST_US);
}

static int report(const options *o, const metg *m, const found *f, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *us = f[i].us > 0 ? json_real(f[i].us) : json_null();
        if (!o->json)
            print_one(m, &f[i]);
        json_array_append_new(list, json_pack("{s:s, s:o, s:f, s:i}", "replay", f[i].replay, "metg_us", us,
                                              "efficiency", f[i].efficiency, "tried", f[i].tried));
    }
    if (!o->json) {
        json_decref(list);
        return EXIT_FINE;
    }
    return print_json(json_pack("{s:s, s:s, s:I, s:I, s:i, s:I, s:o}", "backend", m->backend, "shape", "metg", "tasks",
                                (json_int_t)(m->lists * m->steps), "steps", (json_int_t)m->steps, "devices", m->devices,
                                "lanes", (json_int_t)o->lanes, "rows", list));
}

/* Where no GPU can be used, the host's. */
static const char *default_backend(void)
{
    for (size_t i = 0; gantry_backend_name(i); i++)
        if (strcmp(gantry_backend_name(i), "cuda") == 0 && gantry_backend_usable(i))
            return "cuda";
    return "host";
}

static int open_machine(gantry_machine **machine, metg *m, const options *o)
{
    m->backend = o->backend ? o->backend : default_backend();
    if (strcmp(m->backend, "cuda") == 0)
        return bench_gpus(machine, o, &m->devices);
    if (o->lanes > 1)
        return bench_refuse_lanes(o, m->backend);
    int code = bench_machine(machine, o, "2");
    m->devices = code ? 0 : (int)gantry_machine_device_count(*machine);
    return code;
}

int bench_metg(const options *o)
{
    static const char *const ways[WAYS] = { "stream", "graph", "device" };
    found each[WAYS] = { { .us = 0 } };
    gantry_machine *machine = NULL;
    metg m = { .steps = STEPS };
    size_t count = 0;
    int code = open_machine(&machine, &m, o);
    if (code)
        return code;
    m.machine = machine;
    m.lists = m.devices * o->lanes;
    m.steps = o->nodes > m.lists ? o->nodes / m.lists : o->nodes ? 1 : STEPS;
    bool gpus = strcmp(m.backend, "cuda") == 0; /* others have one way */
    for (size_t i = 0; i < (gpus ? WAYS : 1) && !code; i++)
        if (!gpus || !o->replay || strcmp(o->replay, ways[i]) == 0)
            code = search(&each[count++], o, &m, gpus ? ways[i] : o->replay);
    if (!code)
        code = report(o, &m, each, count);
    gantry_machine_free(machine);
    return code;
}
