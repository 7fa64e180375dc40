/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of work by hand, a file each. */
#ifndef GANTRY_COMMAND_BENCH_BASELINE_WORK_H
#define GANTRY_COMMAND_BENCH_BASELINE_WORK_H

#include "baseline.h"
#include "gpus.h"

#define BASELINE_SMALL (UINT64_C(1) << 20) /* bytes of blocks that are not the point */

/* A copy on a stream of one of its ends, which are GPUs, or HOST. */
enum { HOST = -1 };
typedef struct stream_copy {
    int gpu, stream, from, to;
    uint64_t offset; /* in host memory */
} stream_copy;

typedef struct baseline_graph baseline_graph;
typedef struct baseline_nccl baseline_nccl;

struct baseline {
    gpus gpus;
    baseline_options options; /* without its string */
    gantry_status (*time)(baseline *b, double *us, gantry_error *err);
    double bytes; /* moved each time */
    stream_copy *copy;
    int copies;
    char **host; /* per GPU: arrays that are in place of the block of host memory; NULL: none */
    baseline_graph *graph;
    baseline_nccl *nccl;
};

/* baseline_graph.c: a graph of many tiny kernels, captured by hand. */
gantry_status baseline_graph_open(baseline *b, const gantry_machine *machine, const char *shape, bool build,
                                  gantry_error *err);
void baseline_graph_close(baseline *b); /* while the GPUs are open */
/* baseline_dag.c: its tasks, in a capture; `work` is a bench_dag. */
gantry_status baseline_dag_queue(gpus *g, void *work, gantry_error *err);
/* baseline_nccl.c: a chain of collectives, captured by hand. */
gantry_status baseline_nccl_open(baseline *b, const gantry_machine *machine, const char *collective, gantry_error *err);
void baseline_nccl_close(baseline *b);
/* Launches the graph on the first stream of the first GPU and waits; us by the host's clock. */
gantry_status baseline_launch(baseline *b, CUgraphExec graph, double *us, gantry_error *err);

#endif
