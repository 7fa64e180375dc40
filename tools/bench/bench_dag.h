/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of trees and of layers at random: what each reads, for graphs and for the same by hand. */
#ifndef GANTRY_COMMAND_BENCH_DAG_H
#define GANTRY_COMMAND_BENCH_DAG_H

#include <stdbool.h>
#include <stdint.h>

/* A tree: as many leaves as there may be, a power of two, then level by level what joins two of the one below. Else
 * layers, of which a task reads one or two rows of the layer before, drawn from a fixed seed. */
typedef struct bench_dag {
    bool tree;
    int64_t tasks, width; /* width: leaves, or tasks of a layer; 0: it is neither */
    int devices;
} bench_dag;

typedef struct bench_task {
    int64_t from[2]; /* earlier tasks, whose rows it reads; without, a row that is there from the start */
    int froms, device;
} bench_task;

/* True for "tree" and "random". */
bool bench_is_dag(const char *shape);
/* Of `nodes` tasks at most, at least 1; `lanes` of a layer on each device, and 8 in all at least. */
bench_dag bench_dag_of(const char *shape, int64_t nodes, int devices, int64_t lanes);
bench_task bench_dag_task(const bench_dag *d, int64_t i);
/* The next of a fixed sequence (splitmix64), so that every machine measures the same graph. */
uint64_t bench_next(uint64_t *state);

#endif
