/* SPDX-License-Identifier: Apache-2.0 */
/* bench collectives --backend sim: the eight kinds side by side by algorithm, as a machine file predicts them. Sizes
 * and bandwidths are those of nccl-tests (doc/PERFORMANCE.md there), so that its tables can be held beside these. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const algorithms[] = { "copy_engine", "ring",     "tree",    "recursive",
                                          "one_shot",    "two_shot", "islands", "nccl" };
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms, MOST_ROWS = 64, LEAST_BYTES = 4096, LARGEST = 256 << 20 };

/* A rank of n has to send or receive at least so much, in sizes of the row: bus bandwidth is that over time. */
typedef enum bus { ALL, OTHERS, TWICE_OTHERS } bus; /* 1, (n - 1) / n, 2 (n - 1) / n */

/* A region of `in` or `out` has the size of the row, or else the n-th part of it. */
static const struct {
    const char *name;
    bool in, out;
    bus bus;
} kinds[] = { { "all_reduce", true, true, TWICE_OTHERS }, { "reduce", true, true, ALL },
              { "broadcast", true, true, ALL },           { "scatter", true, false, OTHERS },
              { "gather", false, true, OTHERS },          { "all_gather", false, true, OTHERS },
              { "reduce_scatter", true, false, OTHERS },  { "all_to_all", true, true, OTHERS } };
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct row {
    size_t kind;
    int64_t bytes;
    double us[ALGORITHMS]; /* 0: it cannot do it there */
    bool measured[ALGORITHMS];
    char takes[32]; /* what is chosen, and what it takes */
    double best_us;
} row;

typedef struct table {
    const gantry_machine *machine;
    int ranks;
    row at[MOST_ROWS];
    size_t count;
} table;

static double bus_factor(bus b, int ranks)
{
    double others = (ranks - 1.0) / ranks;
    return b == ALL ? 1 : b == OTHERS ? others : 2 * others;
}

static double gbs(double bytes, double us)
{
    return bytes / us / 1e3;
}

/* ---- one cell ---- */

/* The one collective of a schedule: how long it takes alone, by what, and whether that was measured. */
static int read_report(const gantry_schedule *schedule, double *us, char *name, size_t size, bool *measured)
{
    json_t *report;
    int code = load_report(&report, schedule);
    if (code)
        return code;
    const json_t *op = json_array_get(json_object_get(report, "collective_ops"), 0);
    const char *by = json_string_value(json_object_get(op, "algorithm"));
    const char *from = json_string_value(json_object_get(op, "provenance"));
    *us = json_number_value(json_object_get(op, "time_us"));
    *measured = from && strcmp(from, "measured") == 0;
    snprintf(name, size, "%s", by ? by : "");
    json_decref(report);
    return EXIT_FINE;
}

/* An algorithm that cannot do it there is an error of the graph, which leaves *us at 0. */
static int predict(const table *t, const row *r, const char *algorithm, double *us, char *name, size_t size,
                   bool *measured)
{
    gantry_error err;
    gantry_schedule *schedule = NULL;
    gantry_schedule_options so = GANTRY_SCHEDULE_OPTIONS_INIT;
    bench_collective c = { .kind = kinds[r->kind].name, .algorithm = algorithm, .ranks = t->ranks, .calls = 1 };
    c.in_bytes = kinds[r->kind].in ? r->bytes : r->bytes / t->ranks;
    c.out_bytes = kinds[r->kind].out ? r->bytes : r->bytes / t->ranks;
    so.effort = 0;
    *us = 0;
    gantry_graph *graph = bench_collective_graph(&c, &err);
    if (!graph)
        return fail(&err);
    gantry_status status = gantry_schedule_new(&schedule, graph, t->machine, &so, &err);
    bool refused = status == GANTRY_E_GRAPH && strcmp(algorithm, "auto") != 0;
    int code = !status ? read_report(schedule, us, name, size, measured) : refused ? EXIT_FINE : fail(&err);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    return code;
}

static int fill(const table *t, row *r)
{
    char name[sizeof r->takes];
    bool measured;
    int code = predict(t, r, "auto", &r->best_us, r->takes, sizeof r->takes, &measured);
    for (size_t a = 0; a < ALGORITHMS && !code; a++)
        code = predict(t, r, algorithms[a], &r->us[a], name, sizeof name, &r->measured[a]);
    return code;
}

/* ---- what is printed ---- */

/* Of the column of an algorithm: a time with its mark has nine characters up to a tenth of a second. */
static int width(size_t algorithm)
{
    int letters = (int)strlen(algorithms[algorithm]);
    return letters > 9 ? letters : 9;
}

static void print_row(const table *t, const row *r)
{
    char size[UNIT_TEXT];
    printf("%-15s %10s", kinds[r->kind].name, bytes_text(size, (double)r->bytes));
    for (size_t a = 0; a < ALGORITHMS; a++) {
        char cell[32] = "- ";
        if (r->us[a] > 0)
            snprintf(cell, sizeof cell, "%.2f%s", r->us[a], r->measured[a] ? "*" : " ");
        printf(" %*s", width(a) + 1, cell);
    }
    double rate = gbs((double)r->bytes, r->best_us);
    printf(" %-11s %10.2f %8.2f %8.2f\n", r->takes, r->best_us, rate, rate * bus_factor(kinds[r->kind].bus, t->ranks));
}

static void print_table(const table *t)
{
    printf("collectives of %d ranks on %s: us of each algorithm; what is chosen, its us, GB/s and bus GB/s\n", t->ranks,
           gantry_machine_name(t->machine));
    printf("%-15s %10s", "", "bytes");
    for (size_t a = 0; a < ALGORITHMS; a++)
        printf(" %*s ", width(a), algorithms[a]);
    printf(" %-11s %10s %8s %8s\n", "chosen", "us", "GB/s", "bus GB/s");
    for (size_t i = 0; i < t->count; i++)
        print_row(t, &t->at[i]);
    printf("* measured, by the machine file; others by its routes; - cannot do it there\n");
}

static int print_table_json(const table *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->count; i++) {
        const row *r = &t->at[i];
        double rate = gbs((double)r->bytes, r->best_us);
        json_t *us = json_object(), *measured = json_array();
        for (size_t a = 0; a < ALGORITHMS; a++) {
            json_object_set_new(us, algorithms[a], r->us[a] > 0 ? json_real(r->us[a]) : json_null());
            if (r->measured[a])
                json_array_append_new(measured, json_string(algorithms[a]));
        }
        json_array_append_new(list, json_pack("{s:s, s:I, s:o, s:o, s:s, s:f, s:f, s:f}", "collective",
                                              kinds[r->kind].name, "bytes", (json_int_t)r->bytes, "us", us, "measured",
                                              measured, "chosen", r->takes, "chosen_us", r->best_us, "gbs", rate,
                                              "bus_gbs", rate * bus_factor(kinds[r->kind].bus, t->ranks)));
    }
    return print_json(json_pack("{s:s, s:s, s:i, s:o}", "bench", "collectives", "machine",
                                gantry_machine_name(t->machine), "ranks", t->ranks, "rows", list));
}

/* Sizes rise from 4 KiB by a factor of 16, up to --bytes; each is a whole number of elements a rank, and a rank's part.
 */
static int fill_table(table *t, const options *o)
{
    int64_t unit = 4 * (int64_t)t->ranks * t->ranks, most = o->bytes ? o->bytes : LARGEST;
    int code = EXIT_FINE;
    for (size_t kind = 0; kind < KINDS && !code; kind++) {
        for (int64_t bytes = LEAST_BYTES; bytes <= most && t->count < MOST_ROWS && !code; bytes *= 16) {
            row *r = &t->at[t->count++];
            *r = (row){ .kind = kind, .bytes = (bytes + unit - 1) / unit * unit };
            code = fill(t, r);
        }
    }
    return code;
}

int bench_predict_collectives(const options *o)
{
    gantry_machine *machine = NULL;
    int code = bench_machine(&machine, o, "4");
    if (code)
        return code;
    table *t = calloc(1, sizeof *t);
    if (t)
        *t = (table){ .machine = machine, .ranks = (int)gantry_machine_worker_count(machine) };
    if (!t) {
        code = fail_nomem();
    } else if (t->ranks < 2) {
        complain("gantry bench: machine \"%s\" has one device, and collectives are of two or more; --devices N takes "
                 "more of it\n",
                 gantry_machine_name(machine));
        code = EXIT_DEVICE;
    } else {
        code = fill_table(t, o);
        if (!code && o->json)
            code = print_table_json(t);
        else if (!code)
            print_table(t);
    }
    free(t);
    gantry_machine_free(machine);
    return code;
}
