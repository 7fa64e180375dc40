/* SPDX-License-Identifier: Apache-2.0 */
/* bench peer and bench host: copies between GPUs, and between them and host memory. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, SAMPLES = 11, MOST_COPIES = 64 };
#define BATCH   (INT64_C(2048) * MIB) /* bytes of a start: copies are many, so that starting weighs little */
#define LARGEST (INT64_C(1) << 30)

/* A host array that Gantry may lock in memory: pages of its own, all of them there. */
static void *pages(uint64_t bytes)
{
    uint64_t whole = (bytes + 4095) / 4096 * 4096;
    void *at = aligned_alloc(4096, whole);
    return at ? memset(at, 1, whole) : NULL;
}

/* Binds an array to each input "in0", ...; returns them, ended by NULL: the caller frees them after the run. */
static void **bind_inputs(gantry_run *run, const gantry_graph *graph, uint64_t bytes)
{
    gantry_error err;
    size_t count = 0, most = gantry_graph_buffer_count(graph) + 1;
    void **at = calloc(most, sizeof *at);
    for (; at && count + 1 < most; count++) {
        char name[32];
        snprintf(name, sizeof name, "in%zu", count);
        gantry_buffer in = gantry_graph_find_buffer(graph, name);
        if (in.id == GANTRY_NONE)
            break;
        at[count] = pages(bytes);
        if (!at[count] || gantry_run_bind(run, in, at[count], bytes, &err)) {
            fprintf(stderr, "gantry bench: no host memory for %s\n", name);
            break;
        }
    }
    return at;
}

static void free_inputs(void **at)
{
    for (size_t i = 0; at && at[i]; i++)
        free(at[i]);
    free((void *)at);
}

/* `bytes`: of each input. */
static int race_graph(bench_row *r, const options *o, gantry_graph *graph, const gantry_machine *machine,
                      gantry_raw *raw, uint64_t bytes)
{
    gantry_error err;
    gantry_run *run = NULL;
    gantry_schedule *schedule = NULL;
    void **inputs = NULL;
    int code = bench_open(&run, &schedule, o, graph, machine);
    if (!code)
        inputs = bind_inputs(run, graph, bytes);
    if (!code)
        code = bench_race(r, bench_start, run, raw, SAMPLES, &err);
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    free_inputs(inputs);
    return code;
}

/* The same by hand first: where that cannot be done there is nothing to compare. */
static int race(rows *to, bench_row r, const options *o, const gantry_machine *machine, const char *what,
                const gantry_raw_options *ro, gantry_graph *graph)
{
    gantry_error err;
    gantry_raw *raw = NULL;
    int code = EXIT_FINE;
    if (gantry_raw_new(&raw, "cuda", what, machine, ro, &err)) {
        code = rows_skip(to, r.what, &err);
    } else {
        code = race_graph(&r, o, graph, machine, raw, ro->bytes);
        if (!code)
            rows_add(to, r);
    }
    gantry_raw_free(raw);
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
    int gpus = 0, code = bench_gpus(&machine, o, &gpus);
    int64_t largest = o->bytes ? o->bytes : LARGEST;
    if (!code && gpus < 2)
        snprintf(r.skipped, sizeof r.skipped, "all: there is one GPU");
    for (int64_t bytes = largest < MIB ? largest : MIB; bytes <= largest && gpus > 1 && !code && !*r.skipped;
         bytes *= 4) {
        gantry_raw_options ro = GANTRY_RAW_OPTIONS_INIT;
        bench_row w = { .want = bytes >= 16 * MIB ? 0.97 : 0 };
        char size[32];
        ro.bytes = (uint64_t)bytes;
        ro.copies = (int32_t)(BATCH / bytes > MOST_COPIES ? MOST_COPIES : BATCH / bytes < 1 ? 1 : BATCH / bytes);
        w.bytes = (double)bytes * ro.copies;
        snprintf(w.what, sizeof w.what, "%d copies of %s", ro.copies, size_text(size, sizeof size, (double)bytes));
        code = race(&r, w, o, machine, "peer", &ro, bench_peer_copies(ro.copies, ro.bytes));
    }
    if (!code)
        code = rows_print(o, &r);
    gantry_machine_free(machine);
    return code;
}

int bench_host(const options *o)
{
    static const struct {
        const char *what;
        bool to, from;
    } ways[] = { { "upload", true, false }, { "fetch", false, true }, { "both", true, true } };
    gantry_machine *machine = NULL;
    rows r = { .bench = "host" };
    int gpus = 0, code = bench_gpus(&machine, o, &gpus);
    int64_t largest = o->bytes ? o->bytes : 256 * MIB;
    for (int all = 0; all < (gpus > 1 ? 2 : 1) && !code; all++)
        for (int64_t bytes = largest / 16; bytes <= largest && !code; bytes *= 16)
            for (size_t i = 0; i < 3 && !code; i++) {
                gantry_raw_options ro = GANTRY_RAW_OPTIONS_INIT;
                bench_row w = { .want = bytes < 64 * MIB ? 0 : 0.95 }; /* starting weighs less, the more is moved */
                char size[32];
                ro.bytes = (uint64_t)bytes;
                ro.devices = all ? gpus : 1;
                w.bytes = (double)bytes * ro.devices * (ways[i].to + ways[i].from);
                snprintf(w.what, sizeof w.what, "%s, %d GPU%s, %s each", ways[i].what, ro.devices, all ? "s" : "",
                         size_text(size, sizeof size, (double)bytes));
                code = race(&r, w, o, machine, ways[i].what, &ro,
                            bench_host_copies(ro.devices, ro.bytes, ways[i].to, ways[i].from));
            }
    if (!code)
        code = rows_print(o, &r);
    gantry_machine_free(machine);
    return code;
}

/* Frames that are in memory, blurred on all GPUs, against moving as many bytes both ways at once: kernels and what lies
 * between should hide behind the copies. */
int bench_frames(const options *o)
{
    gantry_machine *machine = NULL;
    rows r = { .bench = "frames" };
    bench_row w = { .want = 0.85 };
    int gpus = 0, code = bench_gpus(&machine, o, &gpus);
    int64_t frames = o->nodes ? o->nodes : 96, width = o->bytes ? o->bytes / 3 / 64 : 1920,
            height = o->bytes ? 64 : 1080;
    uint64_t bytes = (uint64_t)(frames * height * width * 3);
    gantry_raw_options ro = GANTRY_RAW_OPTIONS_INIT;
    gantry_error err;
    gantry_raw *raw = NULL;
    gantry_graph *graph = bench_blur(frames, height, width);
    snprintf(w.what, sizeof w.what, "%lld frames, %d GPU%s", (long long)frames, gpus, gpus == 1 ? "" : "s");
    w.bytes = 2 * (double)bytes;
    ro.bytes = bytes / (uint64_t)(gpus ? gpus : 1);
    if (!code && gantry_raw_new(&raw, "cuda", "both", machine, &ro, &err))
        code = fail(&err);
    if (!code)
        code = race_graph(&w, o, graph, machine, raw, bytes);
    if (!code) {
        rows_add(&r, w);
        code = rows_print(o, &r);
    }
    gantry_raw_free(raw);
    gantry_graph_free(graph);
    gantry_machine_free(machine);
    return code;
}
