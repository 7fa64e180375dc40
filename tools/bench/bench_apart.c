/* SPDX-License-Identifier: Apache-2.0 */
/* bench collectives, second table: one all_reduce after another in a graph, by each algorithm, right behind each other
 * and with work of every GPU between them. What one takes is how much longer a start with more of them takes. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB INT64_C(1024)
#define MIB (KIB * KIB)

static const char *const algorithms[] = { "counters", "two_shot", "one_shot", "nccl" };
static const int64_t sizes[] = {
    8, 256, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB, 4 * MIB, 16 * MIB, 64 * MIB
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms, SIZES = sizeof sizes / sizeof *sizes };
enum { FEW = 4, SAMPLES = 9 };

typedef struct cell {
    double us; /* 0: it was not measured */
    char why[160];
} cell;

typedef struct row {
    int64_t bytes;
    cell chain[ALGORITHMS], between[ALGORITHMS];
} row;

typedef struct table {
    const gantry_machine *machine;
    int gpus;
    row at[SIZES];
    size_t count;
} table;

/* ---- one figure ---- */

/* Steps in which each GPU copies a few elements of its result to what it gives; the first `calls` of them begin with a
 * collective. Without work there are only collectives. */
static gantry_graph *graph_of(const table *t, const char *algorithm, int64_t bytes, int calls, int steps, bool work)
{
    gantry_graph *graph = NULL;
    gantry_error err;
    char text[2048], own[512];
    long long elements = (long long)(bytes / 4), some = elements < 4 ? elements : 4;
    snprintf(own, sizeof own,
             "{\"id\":\"own[k][i]\",\"for\":{\"i\":%d},\"kernel\":\"scale\",\"on\":\"i\",\"args\":{\"a\":1,\"x\":"
             "\"y{i*%lld:i*%lld+%lld}\",\"y\":\"x{i*%lld:i*%lld+%lld}\"}}",
             t->gpus, elements, elements, some, elements, elements, some);
    int used = snprintf(
        text, sizeof text,
        "{\"gantry\":1,\"name\":\"apart\",\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[%lld],\"split\":%d},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[%lld],\"split\":%d}},\"nodes\":[{\"id\":\"set[i]\",\"for\":{\"i\":%d},"
        "\"fill\":{\"to\":\"x[i]\",\"value\":1},\"on\":\"i\"},{\"id\":\"get[i]\",\"for\":{\"i\":%d},"
        "\"fill\":{\"to\":\"y[i]\",\"value\":1},\"on\":\"i\"},{\"for\":{\"k\":%d},\"nodes\":[{\"id\":\"it[k]\","
        "\"collective\":\"all_reduce\",\"op\":\"sum\",\"in\":[{\"for\":{\"i\":%d},\"ref\":\"x[i]\"}],"
        "\"out\":[{\"for\":{\"i\":%d},\"ref\":\"y[i]\"}],\"algorithm\":\"%s\"}",
        elements * t->gpus, t->gpus, elements * t->gpus, t->gpus, t->gpus, t->gpus, calls, t->gpus, t->gpus, algorithm);
    if (work)
        snprintf(text + used, sizeof text - (size_t)used, ",%s]},{\"for\":{\"k\":\"%d:%d\"},\"nodes\":[%s]}]}", own,
                 calls, steps, own);
    else
        snprintf(text + used, sizeof text - (size_t)used, "]}]}");
    if (gantry_graph_parse(&graph, text, strlen(text), "bench", NULL, NULL, &err))
        fail(&err);
    return graph;
}

typedef struct opened {
    gantry_graph *graph;
    gantry_schedule *schedule;
    gantry_run *run;
} opened;

static void close_run(opened *it)
{
    gantry_run_free(it->run);
    gantry_schedule_free(it->schedule);
    gantry_graph_free(it->graph);
}

/* A row that was done in another way than it says would be misread: `why` says what was done. */
static int open_run(opened *it, const table *t, const char *algorithm, gantry_graph *graph, cell *to)
{
    gantry_error err = { 0 };
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    gantry_schedule_options so = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    *it = (opened){ .graph = graph };
    if (!graph)
        return EXIT_FAILURE;
    so.replay = "graph";
    so.effort = 0;
    ro.backend = "cuda";
    ro.timeout_us = 5e6;
    gantry_status status = gantry_schedule_new(&it->schedule, graph, t->machine, &so, &err);
    status = status ? status : gantry_run_new(&it->run, it->schedule, &ro, &err);
    status = status ? status : gantry_run_get_info(it->run, &info, &err);
    bool counters = strcmp(algorithm, "counters") == 0;
    if (status)
        snprintf(to->why, sizeof to->why, "%.150s", err.text);
    else if (strncmp(info.replay, "graph", 5) != 0 || strstr(info.replay, "instead of NCCL") ||
             counters != (strstr(info.replay, "meet by counters") != NULL))
        snprintf(to->why, sizeof to->why, "%.150s", info.replay);
    return EXIT_FINE;
}

/* The median of a start with `calls` collectives; 0: it cannot be done, and `why` says it. */
static int time_start(const table *t, const char *algorithm, int64_t bytes, int calls, int steps, bool work, cell *to)
{
    opened it;
    double us[SAMPLES + 2];
    to->us = 0;
    int code = open_run(&it, t, algorithm, graph_of(t, algorithm, bytes, calls, steps, work), to);
    for (int i = 0; i < SAMPLES + 2 && !code && !*to->why; i++)
        code = bench_start(it.run, &us[i]);
    if (!code && !*to->why)
        to->us = median(us + 2, SAMPLES);
    close_run(&it);
    return code;
}

static int time_one(const table *t, const char *algorithm, int64_t bytes, bool work, cell *to)
{
    int more = bytes <= MIB ? 40 : 10, steps = FEW + more;
    cell many = { 0 };
    int code = time_start(t, algorithm, bytes, FEW, steps, work, to);
    if (!code && to->us > 0)
        code = time_start(t, algorithm, bytes, FEW + more, steps, work, &many);
    if (many.us > 0)
        to->us = (many.us - to->us) / more;
    else
        *to = many.why[0] ? many : *to;
    return code;
}

static int fill(const table *t, row *r)
{
    int code = EXIT_FINE;
    for (size_t a = 0; a < ALGORITHMS && !code; a++) {
        code = time_one(t, algorithms[a], r->bytes, false, &r->chain[a]);
        if (!code)
            code = time_one(t, algorithms[a], r->bytes, true, &r->between[a]);
    }
    return code;
}

/* ---- what is printed ---- */

static void print_row(const row *r)
{
    char size[UNIT_TEXT];
    printf("%10s", bytes_text(size, (double)r->bytes));
    for (int work = 0; work < 2; work++) {
        for (size_t a = 0; a < ALGORITHMS; a++) {
            const cell *c = work ? &r->between[a] : &r->chain[a];
            if (*c->why)
                printf(" %9s", "-");
            else
                printf(" %9.2f", c->us);
        }
        printf("%s", work ? "\n" : "  |");
    }
}

static void print_table(const table *t)
{
    printf("all_reduce on %d GPUs, us of one in a graph: right behind each other | with work between them\n%10s",
           t->gpus, "bytes");
    for (int work = 0; work < 2; work++) {
        for (size_t a = 0; a < ALGORITHMS; a++)
            printf(" %9s", algorithms[a]);
        printf("%s", work ? "\n" : "  |");
    }
    for (size_t i = 0; i < t->count; i++)
        print_row(&t->at[i]);
    for (size_t a = 0; a < ALGORITHMS; a++)
        if (*t->at[0].chain[a].why)
            printf("- %s: %s\n", algorithms[a], t->at[0].chain[a].why);
}

static int print_table_json(const table *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->count; i++) {
        json_t *chain = json_object(), *between = json_object();
        for (size_t a = 0; a < ALGORITHMS; a++) {
            const cell *c = &t->at[i].chain[a], *b = &t->at[i].between[a];
            json_object_set_new(chain, algorithms[a], *c->why ? json_null() : json_real(c->us));
            json_object_set_new(between, algorithms[a], *b->why ? json_null() : json_real(b->us));
        }
        json_array_append_new(list, json_pack("{s:I, s:o, s:o}", "bytes", (json_int_t)t->at[i].bytes, "behind", chain,
                                              "between", between));
    }
    return print_json(json_pack("{s:s, s:i, s:o}", "bench", "collectives apart", "gpus", t->gpus, "rows", list));
}

/* While a run is open the contexts of its GPUs are there: making them anew for every run would take most of the time.
 */
static int fill_all(table *t, int64_t most)
{
    opened holder;
    cell none = { 0 };
    int64_t unit = 16 * (int64_t)t->gpus; /* of what can be shared */
    int code = open_run(&holder, t, "one_shot", graph_of(t, "one_shot", unit, FEW, FEW, false), &none);
    for (size_t i = 0; i < SIZES && !code; i++) {
        if (most && sizes[i] > most)
            continue;
        t->at[t->count].bytes = (sizes[i] + unit - 1) / unit * unit;
        code = fill(t, &t->at[t->count++]);
    }
    close_run(&holder);
    return code;
}

int bench_collectives_apart(const options *o, const gantry_machine *machine, int gpus)
{
    table *t = calloc(1, sizeof *t);
    if (!t)
        return fail_nomem();
    *t = (table){ .machine = machine, .gpus = gpus };
    int code = fill_all(t, o->bytes);
    if (!code && o->json)
        code = print_table_json(t);
    else if (!code)
        print_table(t);
    free(t);
    return code;
}
