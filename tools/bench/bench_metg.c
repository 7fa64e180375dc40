/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench metg: the minimum effective task granularity of Task Bench (Slaughter et al., SC 2020), the smallest task for
 * which at least half of the time is work. Tasks of a stencil, one on each list of a GPU at a time, wait by the clock;
 * at best a start takes a task's time for each step, and its efficiency is that over what it does take.
 */
#include "bench.h"
#include "metg_search.h"
#include <stdio.h>
#include <string.h>

enum { STARTS = 9, SURE = 2, STEPS = 100, WAYS = 3 };
#define ENOUGH_US 2e5 /* no other start is made for a length after so long */

typedef struct metg {
    const char *backend;
    const gantry_machine *machine;
    int64_t lists, steps;
    int devices;
} metg;

typedef struct found {
    char replay[128]; /* what came of it */
    double us;        /* the smallest task; 0: none of up to METG_MOST_US */
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
        code = least_us(run, o->series, us * (double)m->steps / METG_WANTED, &least);
    if (!code && gantry_run_get_info(run, &info, &err))
        code = fail(&err);
    if (!code) {
        *efficiency = us * (double)m->steps / least;
        snprintf(f->replay, sizeof f->replay, "%s", info.replay);
    }
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    return code;
}

static int search(found *f, const options *o, const metg *m, const char *replay)
{
    options with = *o;
    metg_search s = metg_search_begin();
    double part = 0;
    int code = EXIT_FINE;
    with.replay = replay;
    while (!code && s.us > 0) {
        code = measure(f, &with, m, s.us, &part);
        metg_search_take(&s, part);
    }
    f->us = s.large;
    f->efficiency = s.large > 0 ? s.large_part : part;
    f->tried = s.tried;
    return code;
}

static void print_one(const metg *m, const found *f)
{
    printf("metg of %lld lists on %d %s%s, %s: ", (long long)m->lists, m->devices,
           strcmp(m->backend, "cuda") == 0 ? "GPU" : "device", m->devices == 1 ? "" : "s", f->replay);
    if (f->us > 0)
        printf("%.2f us a task (%.0f %% of the time is work)\n", f->us, 100 * f->efficiency);
    else
        printf("none of up to %.0f us\n", METG_MOST_US);
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
