/* SPDX-License-Identifier: Apache-2.0 */
/* Racing Gantry against work by hand, and what comes of it. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rows_add(rows *to, bench_row r)
{
    if (to->count < sizeof to->at / sizeof *to->at)
        to->at[to->count++] = r;
}

int rows_skip(rows *to, const char *what, const gantry_error *err)
{
    size_t used = strlen(to->skipped);
    if (err->status != GANTRY_E_UNSUPPORTED && err->status != GANTRY_E_CAPACITY)
        return fail(err);
    snprintf(to->skipped + used, sizeof to->skipped - used, "%s%s: %s", used ? "; " : "", what, err->text);
    return EXIT_FINE;
}

/* Of the rate by hand; with `times`, of its time. */
static double ratio_of(const bench_row *r)
{
    return r->times ? r->gantry_us / r->raw_us : r->raw_us / r->gantry_us;
}

static bool is_reached(const bench_row *r)
{
    return r->times ? ratio_of(r) <= r->want : ratio_of(r) >= r->want;
}

/* "-": nothing is wanted. */
static const char *want_text(const bench_row *r, char *to, size_t size)
{
    if (r->want > 0)
        snprintf(to, size, "%s %.3g", r->times ? "<=" : ">=", r->want);
    else
        snprintf(to, size, "-");
    return to;
}

static int print_rows_json(const rows *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->count; i++) {
        const bench_row *w = &r->at[i];
        char want[32];
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f, s:f, s:s, s:b}", "what", w->what, "bytes", w->bytes,
                                              "gantry_us", w->gantry_us, "raw_us", w->raw_us, "ratio", ratio_of(w),
                                              "want", want_text(w, want, sizeof want), "reached", is_reached(w)));
    }
    return print_json(
        json_pack("{s:s, s:o, s:s*}", "bench", r->bench, "rows", list, "skipped", *r->skipped ? r->skipped : NULL));
}

int rows_print(const options *o, const rows *r)
{
    if (o->json)
        return print_rows_json(r);
    printf("%-36s %12s %12s %10s %8s\n", r->bench, "gantry us", "by hand us", "GB/s", "ratio");
    for (size_t i = 0; i < r->count; i++) {
        const bench_row *w = &r->at[i];
        char gbs[24] = "-", want[32];
        if (w->bytes > 0)
            snprintf(gbs, sizeof gbs, "%.1f", w->bytes / w->gantry_us / 1e3);
        printf("%-36s %12.2f %12.2f %10s %8.3f  %s%s\n", w->what, w->gantry_us, w->raw_us, gbs, ratio_of(w),
               want_text(w, want, sizeof want), is_reached(w) ? "" : ", not reached");
    }
    if (*r->skipped)
        printf("left out: %s\n", r->skipped);
    return EXIT_FINE;
}

int bench_start(void *user, double *us)
{
    gantry_run *run = user;
    gantry_error err;
    uint64_t ticket;
    double start = now_us();
    if (gantry_run_start(run, &ticket, &err) || gantry_run_wait(run, ticket, &err))
        return fail(&err);
    *us = now_us() - start;
    return EXIT_FINE;
}

int bench_starts(gantry_run *run, int64_t starts, double *us)
{
    gantry_error err;
    double start = now_us();
    if (gantry_run_repeat(run, (uint64_t)starts, &err))
        return fail(&err);
    *us = (now_us() - start) / (double)starts;
    return EXIT_FINE;
}

enum { MOST_SAMPLES = 101 };

int bench_race(bench_row *r, bench_sample ours, void *user, baseline *by_hand, size_t samples, gantry_error *err)
{
    double gantry[MOST_SAMPLES], hand[MOST_SAMPLES];
    int code = EXIT_FINE;
    samples = samples < MOST_SAMPLES ? samples : MOST_SAMPLES;
    for (size_t i = 0; i < samples + 1 && !code; i++) {
        size_t at = i ? i - 1 : 0; /* the first of each warms up, and is taken again */
        code = ours(user, &gantry[at]);
        if (!code && baseline_time(by_hand, &hand[at], NULL, err))
            code = fail(err);
    }
    r->gantry_us = median(gantry, samples);
    r->raw_us = median(hand, samples);
    return code;
}

static int count_gpus(const gantry_machine *machine)
{
    int gpus = 0;
    for (size_t i = 0; i < gantry_machine_device_count(machine); i++) {
        gantry_device_info d = GANTRY_DEVICE_INFO_INIT;
        gpus += !gantry_machine_device(machine, i, &d, NULL) && d.gpu;
    }
    return gpus;
}

int bench_gpus(gantry_machine **machine, const options *o, int *gpus)
{
    options with = *o;
    with.backend = "cuda";
    int code = load_machine(machine, &with, NULL, NULL);
    if (code)
        return code;
    *gpus = count_gpus(*machine);
    if (*gpus > 0)
        return EXIT_FINE;
    complain("gantry bench: machine \"%s\" has no GPU; `gantry machine` tells what was looked for\n",
             gantry_machine_name(*machine));
    gantry_machine_free(*machine);
    *machine = NULL;
    return EXIT_DEVICE;
}

int bench_open_on(gantry_run **run, gantry_schedule **schedule, const options *o, const char *backend,
                  gantry_graph *graph, const gantry_machine *machine)
{
    gantry_error err;
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    ro.backend = backend;
    int code = schedule_on(schedule, o, graph, machine);
    return code ? code : gantry_run_new(run, *schedule, &ro, &err) ? fail(&err) : EXIT_FINE;
}

int bench_open(gantry_run **run, gantry_schedule **schedule, const options *o, gantry_graph *graph,
               const gantry_machine *machine)
{
    return bench_open_on(run, schedule, o, "cuda", graph, machine);
}
