/* SPDX-License-Identifier: Apache-2.0 */
/* Starts as one graph for each GPU (GANTRY_CUDA_GRAPHS) on the fake driver, whose kernels are those of gantry-cuda.so
 * on the CPU: what programs that look at them share. */
#ifndef TESTS_UNIT_CUDA_COUNTED_GATED_H
#define TESTS_UNIT_CUDA_COUNTED_GATED_H

#include "../suite.h"

enum { STARTS = 3 };

/* A graph, a schedule of it, and what one graph for all GPUs makes of that. */
typedef struct problem {
    gantry_graph *graph;
    gantry_machine *machine;
    gantry_schedule *schedule;
    results want[STARTS]; /* start after start */
} problem;

/* The graph is given to the problem. `policy`: NULL, or its name. From now on starts are graphs of GPUs. */
problem pose_graph(gantry_graph *g, int gpus, const char *policy);
problem pose(const graph_case *c, int gpus); /* round-robin */
void put_away(problem *p);
bool as_wanted(const problem *p, gantry_run *run);

bool has_gates(gantry_run *run); /* its starts are graphs of GPUs */
gantry_status start(gantry_run *run, gantry_error *err);
/* Every second seed has small copies made by kernels, which set words by themselves. */
void copies_by(int seed);
/* Starts of a run by graphs of GPUs, in orders of as many seeds, have the bits of the host back end. */
void compare_with_host(gantry_graph *g, gantry_schedule *s, int seeds);

/* A stencil of a row of 4 KiB for each GPU, whose kernel gets the rows of its neighbours. */
enum { STEPS = 20 };
gantry_graph *stencil(int gpus);

typedef struct array {
    const char *name;
    int elements;
    const char *more; /* of its object */
} array;

/* y = 2 x, or y += 2 x, on a GPU. */
typedef struct step {
    const char *id, *kernel, *x, *y;
    int gpu;
    double us;
    const char *after;
} step;

/* Both lists end with an empty one. */
gantry_graph *graph_of(const array *arrays, const step *steps);

#define IOTA   ",\"init\":\"iota\""
#define OUTPUT IOTA ",\"output\":true"

#endif
