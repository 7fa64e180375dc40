/* SPDX-License-Identifier: Apache-2.0 */
/* gantry bench: what its parts share. On GPUs Gantry is timed against the same work by hand (baseline.h), a sample of
 * one and a sample of the other in turn, and medians are compared. */
#ifndef GANTRY_COMMAND_BENCH_H
#define GANTRY_COMMAND_BENCH_H

#include "baseline.h"
#include "command.h"

/* A comparison. `want`: of the rate by hand the part that has to be reached, or, with `times`, so many times its time
 * may be taken. */
typedef struct bench_row {
    char what[64];
    double bytes; /* moved; 0: not the point */
    double gantry_us, raw_us, want;
    bool times;
} bench_row;

typedef struct rows {
    const char *bench;
    bench_row at[64];
    size_t count;
    char skipped[300]; /* why there is nothing, or not all */
} rows;

void rows_add(rows *to, bench_row r);
/* An error that only says that this cannot be done here is no failure: it is told in the report. */
int rows_skip(rows *to, const char *what, const gantry_error *err);
int rows_print(const options *o, const rows *r);

/* Takes a sample of `ours` and one by hand in turn, after one of each that does not count, and fills in the times. */
typedef int (*bench_sample)(void *user, double *us);
int bench_race(bench_row *r, bench_sample ours, void *user, baseline *by_hand, size_t samples, gantry_error *err);
/* A start that is waited for; `user` is the run. */
int bench_start(void *user, double *us);
int bench_starts(gantry_run *run, int64_t starts, double *us); /* so many as one: of each, in the mean */

/* --machine or this computer, then --devices; its GPUs come first. *gpus of them: at least one. */
int bench_gpus(gantry_machine **machine, const options *o, int *gpus);
/* The back end is "cuda". */
int bench_open(gantry_run **run, gantry_schedule **schedule, const options *o, gantry_graph *graph,
               const gantry_machine *machine);
int bench_open_on(gantry_run **run, gantry_schedule **schedule, const options *o, const char *backend,
                  gantry_graph *graph, const gantry_machine *machine);

/* --devices N virtual devices of this CPU, or --machine with all or some of its own. */
int bench_machine(gantry_machine **machine, const options *o, const char *devices);

/* Says that --lanes is for GPUs. */
int bench_refuse_lanes(const options *o, const char *backend);

int bench_schedule(const options *o);
int bench_replay(const options *o);
int bench_build(const options *o);
int bench_hop(const options *o);
int bench_metg(const options *o);
/* A graph of tiny kernels in all ways to replay it, or as --replay asks for: us for each of `tasks`, which are called
 * `what`. */
typedef struct bench_replays {
    gantry_graph *graph;
    const gantry_machine *machine;
    const char *shape, *what;
    int64_t tasks, lanes;
    int gpus;
} bench_replays;
int bench_all_replays(const options *o, const bench_replays *all);
int bench_peer(const options *o);
int bench_host(const options *o);
int bench_frames(const options *o);
int bench_kernels(const options *o);
int bench_collectives(const options *o);
int bench_network(const options *o);
/* The same collective, `calls` times, rank i on device i. Regions have so many bytes each: one for each rank, but for
 * the root's. */
typedef struct bench_collective {
    const char *kind, *algorithm;
    int64_t in_bytes, out_bytes;
    int ranks, calls;
} bench_collective;
gantry_graph *bench_collective_graph(const bench_collective *c, gantry_error *err);
int bench_predict_collectives(const options *o);
/* One all_reduce after another, with work between them or without, by each algorithm. The machine has tables of NCCL.
 */
int bench_collectives_apart(const options *o, const gantry_machine *machine, int gpus);

/* bench_graphs.c: graphs made through the C API. */
gantry_graph *bench_layered(int64_t nodes);
/* nodes >= devices; the graph has nodes / devices * devices of them (chain, random: nodes; tree: no more than that). */
gantry_graph *bench_empty(const char *shape, int64_t nodes, int devices);
/* The same shapes of tiny kernels, which GPUs have to launch. */
gantry_graph *bench_tiny(const char *shape, int64_t nodes, int devices, int64_t lanes);
/* A stencil whose tasks each take so long: `lists` rows, of which each device has as many as others, in so many steps;
 * a task reads the rows of both neighbours. */
gantry_graph *bench_busy(int64_t lists, int64_t steps, int devices, double us);
/* One node after another, each on the next device, copies the row that the one before has made: 4 KiB. */
gantry_graph *bench_hops(int64_t hops, int devices);
/* Nothing but `copies` copies of so many bytes from the first device to the second. */
gantry_graph *bench_peer_copies(int64_t copies, uint64_t bytes);
/* So many bytes to each device (input "in0", ...), from each (output "out0", ...), or both. */
gantry_graph *bench_host_copies(int devices, uint64_t bytes, bool to, bool from);
gantry_graph *bench_blur(int64_t frames, int64_t height, int64_t width);

#endif
