/* SPDX-License-Identifier: Apache-2.0 */
/* bench peer and bench host: copies between GPUs, and between them and host memory. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)
enum { SAMPLES = 11, MOST_COPIES = 64 };
#define BATCH   (2048 * MIB) /* bytes of a start: copies are many, so that starting weighs little */
#define LARGEST (INT64_C(1) << 30)
#define LEAST   (UINT64_C(1) << 20) /* of an array that is locked for sure */

/* Host arrays that Gantry locks in memory, and that are copied by hand, too: how fast memory is depends on where it
 * lies, which a virtual machine is not told. */
typedef struct arrays {
    void **at;
    size_t count;
    uint64_t bytes; /* of what goes up, and of what comes back */
    uint64_t apart; /* from the one to the other, which has pages of its own */
} arrays;

static uint64_t pages(uint64_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

static void free_arrays(arrays *a)
{
    for (size_t i = 0; a->at && i < a->count; i++)
        free(a->at[i]);
    free((void *)a->at);
}

/* All of it there. */
static int make_arrays(arrays *a, size_t count, uint64_t bytes)
{
    uint64_t whole = 2 * pages(bytes);
    *a = (arrays){ calloc(count + 1, sizeof *a->at), count, bytes, pages(bytes) };
    bool room = a->at;
    for (size_t i = 0; i < count && room; i++) {
        a->at[i] = aligned_alloc(4096, whole);
        room = a->at[i] && memset(a->at[i], 1, whole);
    }
    if (room)
        return EXIT_FINE;
    complain("gantry bench: no host memory for %zu arrays of %llu bytes\n", count, (unsigned long long)whole);
    return EXIT_CAPACITY;
}

/* To "in0", "out0", "in1", ..., as far as the graph has them. */
static int bind_arrays(gantry_run *run, const gantry_graph *graph, const arrays *a)
{
    gantry_error err;
    char name[32];
    for (size_t i = 0; i < a->count; i++) {
        snprintf(name, sizeof name, "in%zu", i);
        gantry_buffer in = gantry_graph_find_buffer(graph, name);
        snprintf(name, sizeof name, "out%zu", i);
        gantry_buffer out = gantry_graph_find_buffer(graph, name);
        if (in.id != GANTRY_NONE && gantry_run_bind(run, in, a->at[i], a->bytes, &err))
            return fail(&err);
        if (out.id != GANTRY_NONE && gantry_run_bind_output(run, out, (char *)a->at[i] + a->apart, a->bytes, &err))
            return fail(&err);
    }
    return EXIT_FINE;
}

/* The first start, before anything is copied by hand, locks the arrays. */
static int race_graph(bench_row *r, const options *o, gantry_graph *graph, const gantry_machine *machine,
                      baseline *hand, const arrays *a)
{
    gantry_error err;
    gantry_run *run = NULL;
    gantry_schedule *schedule = NULL;
    int code = bench_open(&run, &schedule, o, graph, machine);
    if (!code)
        code = bind_arrays(run, graph, a);
    if (!code)
        code = bench_race(r, bench_start, run, hand, SAMPLES, &err);
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    return code;
}

/* The same by hand first: where that cannot be done there is nothing to compare. */
static int race(rows *to, bench_row r, const options *o, const gantry_machine *machine, const char *what,
                const baseline_options *bo, gantry_graph *graph, const arrays *a)
{
    gantry_error err;
    baseline *hand = NULL;
    int code = EXIT_FINE;
    if (baseline_open(&hand, what, machine, bo, &err)) {
        code = rows_skip(to, r.what, &err);
    } else {
        code = race_graph(&r, o, graph, machine, hand, a);
        if (!code)
            rows_add(to, r);
    }
    baseline_close(hand);
    gantry_graph_free(graph);
    return code;
}

static const char *size_text(char *to, size_t size, double bytes)
{
    snprintf(to, size, bytes >= MIB ? "%.0f MiB" : "%.0f B", bytes >= MIB ? bytes / MIB : bytes);
    return to;
}

int bench_peer(const options *o)
{
    gantry_machine *machine = NULL;
    rows r = { .bench = "peer" };
    const arrays none = { .count = 0 };
    int gpus = 0, code = bench_gpus(&machine, o, &gpus);
    int64_t largest = o->bytes ? o->bytes : LARGEST;
    if (!code && gpus < 2)
        snprintf(r.skipped, sizeof r.skipped, "all: there is one GPU");
    for (int64_t bytes = largest < MIB ? largest : MIB; bytes <= largest && gpus > 1 && !code && !*r.skipped;
         bytes *= 4) {
        baseline_options bo = BASELINE_OPTIONS_INIT;
        bench_row w = { .want = bytes >= 16 * MIB ? 0.97 : 0 };
        char size[32];
        bo.bytes = (uint64_t)bytes;
        bo.copies = (int)(BATCH / bytes > MOST_COPIES ? MOST_COPIES : BATCH / bytes < 1 ? 1 : BATCH / bytes);
        w.bytes = (double)bytes * bo.copies;
        snprintf(w.what, sizeof w.what, "%d copies of %s", bo.copies, size_text(size, sizeof size, (double)bytes));
        code = race(&r, w, o, machine, "peer", &bo, bench_peer_copies(bo.copies, bo.bytes), &none);
    }
    if (!code)
        code = rows_print(o, &r);
    gantry_machine_free(machine);
    return code;
}

typedef struct way {
    const char *what; /* as baseline_open has it */
    bool to, from;
} way;

/* Starting weighs less, the more is moved: small copies are told, and nothing is wanted of them. */
static int race_host(rows *r, const options *o, const gantry_machine *machine, int gpus, uint64_t bytes, way w)
{
    baseline_options bo = BASELINE_OPTIONS_INIT;
    bench_row row = { .want = bytes < 64 * MIB ? 0 : 0.95, .bytes = (double)bytes * gpus * (w.to + w.from) };
    char size[32];
    arrays a;
    int code = make_arrays(&a, (size_t)gpus, bytes);
    bo.bytes = bytes;
    bo.devices = gpus;
    bo.host = bytes >= LEAST ? a.at : NULL;
    bo.apart = a.apart;
    snprintf(row.what, sizeof row.what, "%s, %d GPU%s, %s each", w.what, gpus, gpus > 1 ? "s" : "",
             size_text(size, sizeof size, (double)bytes));
    if (!code)
        code = race(r, row, o, machine, w.what, &bo, bench_host_copies(gpus, bytes, w.to, w.from), &a);
    free_arrays(&a);
    return code;
}

int bench_host(const options *o)
{
    static const way ways[] = { { "upload", true, false }, { "fetch", false, true }, { "both", true, true } };
    gantry_machine *machine = NULL;
    rows r = { .bench = "host" };
    int gpus = 0, code = bench_gpus(&machine, o, &gpus);
    uint64_t largest = o->bytes ? (uint64_t)o->bytes : 256 * MIB;
    for (int all = 0; all < (gpus > 1 ? 2 : 1) && !code; all++)
        for (uint64_t bytes = largest / 16; bytes <= largest && !code; bytes *= 16)
            for (size_t i = 0; i < 3 && !code; i++)
                code = race_host(&r, o, machine, all ? gpus : 1, bytes, ways[i]);
    if (!code)
        code = rows_print(o, &r);
    gantry_machine_free(machine);
    return code;
}

/* Of one array, a share for each GPU. */
static void **cut(void *array, uint64_t share, int gpus)
{
    void **at = calloc((size_t)gpus + 1, sizeof *at);
    for (int i = 0; at && i < gpus; i++)
        at[i] = (char *)array + (uint64_t)i * share;
    return at;
}

/* Against moving as many bytes both ways at once. */
static int race_frames(bench_row *w, const options *o, const gantry_machine *machine, int gpus, gantry_graph *graph,
                       uint64_t bytes)
{
    baseline_options bo = BASELINE_OPTIONS_INIT;
    gantry_error err;
    baseline *hand = NULL;
    arrays a;
    int code = make_arrays(&a, 1, bytes);
    bo.bytes = bytes / (uint64_t)gpus;
    bo.apart = a.apart;
    bo.host = code || bytes < LEAST ? NULL : cut(a.at[0], bo.bytes, gpus);
    if (!code && baseline_open(&hand, "both", machine, &bo, &err))
        code = fail(&err);
    if (!code)
        code = race_graph(w, o, graph, machine, hand, &a);
    baseline_close(hand);
    free((void *)(uintptr_t)bo.host);
    free_arrays(&a);
    return code;
}

/* Frames that are in memory, blurred on all GPUs: kernels and what lies between should hide behind the copies. */
int bench_frames(const options *o)
{
    gantry_machine *machine = NULL;
    rows r = { .bench = "frames" };
    bench_row w = { .want = 0.85 };
    int gpus = 0, code = bench_gpus(&machine, o, &gpus);
    int64_t frames = o->nodes ? o->nodes : 96, width = o->bytes ? o->bytes / 3 / 64 : 1920,
            height = o->bytes ? 64 : 1080;
    uint64_t bytes = (uint64_t)(frames * height * width * 3);
    gantry_graph *graph = bench_blur(frames, height, width);
    snprintf(w.what, sizeof w.what, "%lld frames, %d GPU%s", (long long)frames, gpus, gpus == 1 ? "" : "s");
    w.bytes = 2 * (double)bytes;
    if (!code)
        code = race_frames(&w, o, machine, gpus, graph, bytes);
    if (!code) {
        rows_add(&r, w);
        code = rows_print(o, &r);
    }
    gantry_graph_free(graph);
    gantry_machine_free(machine);
    return code;
}
