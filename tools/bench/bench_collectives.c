/* SPDX-License-Identifier: Apache-2.0 */
/* bench collectives: nodes that NCCL does, and those that Gantry does itself, against NCCL called by hand. With
 * --backend sim all kinds and algorithms are predicted (predict_collectives.c). */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB INT64_C(1024)
#define MIB (KIB * KIB)
enum { SAMPLES = 11 };

typedef struct collective {
    const char *kind, *algorithm;
    int64_t bytes; /* as `bytes` of a machine's table of collectives */
    double want;
} collective;

/* A node takes at most 1.05 times what a call by hand takes. */
#define BY_NCCL (1 / 1.05)
/* And where kernels meet by counters, 3/4 of that. */
#define BY_COUNTERS (4.0 / 3)

static const collective list[] = {
    { "all_reduce", "nccl", 8 * KIB, BY_NCCL },
    { "all_reduce", "nccl", MIB, BY_NCCL },
    { "all_reduce", "nccl", 16 * MIB, BY_NCCL },
    { "all_reduce", "nccl", 256 * MIB, BY_NCCL },
    { "all_gather", "nccl", 16 * MIB, BY_NCCL },
    { "reduce_scatter", "nccl", 16 * MIB, BY_NCCL },
    { "broadcast", "nccl", 16 * MIB, BY_NCCL },
    { "all_to_all", "nccl", 16 * MIB, BY_NCCL },
    { "reduce", "nccl", 16 * MIB, BY_NCCL },
    { "scatter", "nccl", 16 * MIB, BY_NCCL },
    { "gather", "nccl", 16 * MIB, BY_NCCL },
    { "all_reduce", "two_shot", 8 * KIB, 1 },
    { "all_reduce", "two_shot", 64 * KIB, 1 },
    { "all_reduce", "two_shot", MIB, 1 },
    { "all_reduce", "two_shot", 4 * MIB, 1 },
    { "all_reduce", "counters", MIB, BY_COUNTERS },
    { "all_reduce", "counters", 4 * MIB, BY_COUNTERS },
};

/* So many in a start that what it costs weighs little. */
static int calls_for(int64_t bytes)
{
    return bytes <= 64 * KIB ? 100 : bytes <= MIB ? 50 : bytes <= 16 * MIB ? 20 : 5;
}

/* ---- the machine ---- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The kind of all its GPUs; NULL: they differ. */
static const char *kind_of(const json_t *machine)
{
    const char *kind = NULL;
    size_t i;
    json_t *d;
    json_array_foreach(json_object_get(machine, "devices"), i, d)
    {
        if (strcmp(text_of(d, "type"), "gpu") != 0)
            continue;
        if (kind && strcmp(kind, text_of(d, "kind")) != 0)
            return NULL;
        kind = text_of(d, "kind");
    }
    return kind;
}

static bool has_table(json_t *tables, const char *name, const char *kind, int gpus)
{
    size_t i;
    json_t *t;
    json_array_foreach(tables, i, t)
    {
        if (strcmp(text_of(t, "collective"), name) == 0 && strcmp(text_of(t, "algorithm"), "nccl") == 0 &&
            strcmp(text_of(t, "kind"), kind) == 0 && json_integer_value(json_object_get(t, "ranks")) == gpus)
            return true;
    }
    return false;
}

/* A node may ask for NCCL where the machine has times of it: where it has none, some are made up, as nothing is chosen
 * by them here. */
static json_t *with_tables(const char *text, int gpus)
{
    json_t *machine = json_loads(text, 0, NULL), *tables = json_object_get(machine, "collectives");
    const char *kind = kind_of(machine);
    if (!tables) {
        tables = json_array();
        json_object_set_new(machine, "collectives", tables);
    }
    for (size_t i = 0; kind && i < sizeof list / sizeof *list; i++)
        if (!has_table(tables, list[i].kind, kind, gpus))
            json_array_append_new(tables, json_pack("{s:s, s:s, s:s, s:i, s:[[i, i], [i, i]]}", "collective",
                                                    list[i].kind, "algorithm", "nccl", "kind", kind, "ranks", gpus,
                                                    "points", 1, 10, 1000000, 20));
    return machine;
}

static int add_tables(gantry_machine **machine, int gpus)
{
    gantry_error err;
    gantry_machine *made = NULL;
    char *text = NULL;
    size_t length;
    if (gantry_machine_json(*machine, &text, &length, &err))
        return fail(&err);
    json_t *document = with_tables(text, gpus);
    char *more = json_dumps(document, JSON_REAL_PRECISION(17));
    int code = EXIT_FINE;
    if (!more || gantry_machine_parse(&made, more, strlen(more), "machine", &err)) {
        code = more ? fail(&err) : EXIT_FAILURE;
    } else {
        gantry_machine_free(*machine);
        *machine = made;
    }
    free(more);
    json_decref(document);
    gantry_free(text);
    return code;
}

/* ---- the graph ---- */

/* `count` regions of so many bytes each. */
static void add_buffer(char *to, size_t size, const char *name, const char *class, int count, int64_t bytes)
{
    snprintf(to, size, "\"%s\":{\"dtype\":\"f32\",\"shape\":[%lld],\"split\":%d%s}", name,
             (long long)(bytes / 4 * count), count, class);
}

/* Inputs do not change from start to start; outputs are written again and again. */
gantry_graph *bench_collective_graph(const bench_collective *c, gantry_error *err)
{
    gantry_graph *graph = NULL;
    char text[1024], in[160], out[160], on[64];
    bool from_root = strcmp(c->kind, "broadcast") == 0 || strcmp(c->kind, "scatter") == 0;
    bool to_root = strcmp(c->kind, "reduce") == 0 || strcmp(c->kind, "gather") == 0;
    int ins = from_root ? 1 : c->ranks, outs = to_root ? 1 : c->ranks;
    add_buffer(in, sizeof in, "x", ",\"class\":\"const\",\"init\":1", ins, c->in_bytes);
    add_buffer(out, sizeof out, "y", "", outs, c->out_bytes);
    snprintf(on, sizeof on, ",\"on\":[{\"for\":{\"i\":%d},\"on\":\"i\"}]", c->ranks);
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"name\":\"%s\",\"buffers\":{%s,%s},\"nodes\":[{\"id\":\"it[k]\",\"for\":{\"k\":%d},"
             "\"collective\":\"%s\",%s\"in\":[{\"for\":{\"i\":%d},\"ref\":\"x[i]\"}],\"out\":[{\"for\":{\"i\":%d},"
             "\"ref\":\"y[i]\"}],\"algorithm\":\"%s\"%s}]}",
             c->kind, in, out, c->calls, c->kind, strstr(c->kind, "reduce") ? "\"op\":\"sum\"," : "", ins, outs,
             c->algorithm, on);
    return gantry_graph_parse(&graph, text, strlen(text), "bench", NULL, NULL, err) ? NULL : graph;
}

/* `bytes` is what the largest region of a rank has; of all_to_all it is that of all ranks together. */
static gantry_graph *collective_graph(const collective *c, int gpus, int64_t bytes, int calls)
{
    gantry_error err;
    bool is_broadcast = strcmp(c->kind, "broadcast") == 0, is_gather = strcmp(c->kind, "gather") == 0;
    bool each_in = is_broadcast || strstr(c->kind, "reduce") || strcmp(c->kind, "scatter") == 0;
    bool each_out = is_broadcast || is_gather || strcmp(c->kind, "all_reduce") == 0 ||
                    strcmp(c->kind, "all_gather") == 0 || strcmp(c->kind, "reduce") == 0;
    bench_collective made = { .kind = c->kind, .algorithm = c->algorithm, .ranks = gpus, .calls = calls };
    made.in_bytes = each_in ? bytes : bytes / gpus;
    made.out_bytes = each_out ? bytes : bytes / gpus;
    gantry_graph *graph = bench_collective_graph(&made, &err);
    if (!graph)
        fail(&err);
    return graph;
}

/* ---- the race ---- */

/* A row that was done in another way than it says would be misread. */
static bool is_as_asked(gantry_run *run, char *why, size_t size)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    gantry_error err;
    if (gantry_run_get_info(run, &info, &err))
        return true;
    snprintf(why, size, "%s", info.replay);
    return strncmp(info.replay, "graph", 5) == 0 && !strstr(info.replay, "instead of NCCL");
}

static int race_run(rows *to, bench_row *r, const options *o, const gantry_machine *machine, gantry_graph *graph,
                    baseline *hand, int calls)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_schedule *schedule = NULL;
    options with = *o;
    with.replay = "graph";
    with.effort = o->effort < 0 ? 0 : o->effort;
    int code = bench_open(&run, &schedule, &with, graph, machine);
    if (!code)
        code = bench_race(r, bench_start, run, hand, SAMPLES, &err);
    r->gantry_us /= calls;
    r->raw_us /= calls;
    err.status = GANTRY_E_UNSUPPORTED;
    if (!code && is_as_asked(run, err.text, sizeof err.text))
        rows_add(to, *r);
    else if (!code)
        code = rows_skip(to, r->what, &err);
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    return code;
}

static void name_row(bench_row *r, const collective *c, int gpus)
{
    bool nccl = strcmp(c->algorithm, "nccl") == 0, large = c->bytes >= MIB;
    snprintf(r->what, sizeof r->what, "%s%s%s, %d GPUs, %lld %s", c->kind, nccl ? "" : " by ", nccl ? "" : c->algorithm,
             gpus, (long long)(c->bytes / (large ? MIB : KIB)), large ? "MiB" : "KiB");
}

/* By hand first: where NCCL is not there, say, there is nothing to compare, and *none is set. */
static int race(rows *to, const collective *c, const options *o, const gantry_machine *machine, int gpus, bool *none)
{
    gantry_error err;
    baseline *hand = NULL;
    baseline_options bo = BASELINE_OPTIONS_INIT;
    int64_t unit = 16 * (int64_t)gpus * gpus, bytes = c->bytes / unit * unit;
    bench_row r = { .bytes = (double)bytes, .want = c->want };
    name_row(&r, c, gpus);
    bo.shape = c->kind;
    bo.bytes = (uint64_t)bytes;
    bo.copies = calls_for(c->bytes);
    if (baseline_open(&hand, "nccl", machine, &bo, &err)) {
        *none = true;
        return rows_skip(to, to->count ? "the rest" : "all", &err);
    }
    gantry_graph *graph = collective_graph(c, gpus, bytes, bo.copies);
    int code = graph ? race_run(to, &r, o, machine, graph, hand, bo.copies) : EXIT_FAILURE;
    baseline_close(hand);
    gantry_graph_free(graph);
    return code;
}

int bench_collectives(const options *o)
{
    gantry_machine *machine = NULL;
    rows r = { .bench = "collectives" };
    bool none = false;
    if (o->backend && strcmp(o->backend, "sim") == 0)
        return bench_predict_collectives(o);
    int gpus = 0, code = bench_gpus(&machine, o, &gpus);
    if (!code && gpus < 2)
        snprintf(r.skipped, sizeof r.skipped, "all: there is one GPU");
    if (!code && gpus > 1)
        code = add_tables(&machine, gpus);
    bool apart = !code && gpus > 1 && o->shape;
    if (apart)
        code = bench_collectives_apart(o, machine, gpus);
    for (size_t i = 0; i < sizeof list / sizeof *list && gpus > 1 && !code && !none && !apart; i++)
        if (!o->bytes || list[i].bytes <= o->bytes)
            code = race(&r, &list[i], o, machine, gpus, &none);
    if (!code && !apart)
        code = rows_print(o, &r);
    gantry_machine_free(machine);
    return code;
}
