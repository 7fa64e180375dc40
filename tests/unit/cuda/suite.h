/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs on GPUs of the fake driver, or on real ones: what the programs of this folder and of tests/gpu share. */
#ifndef TESTS_UNIT_CUDA_SUITE_H
#define TESTS_UNIT_CUDA_SUITE_H

#include <check.h>
#include <gantry/gantry.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/run_suite.h"

/* Built so that code takes several times as long: a kernel may have one size that there is time for. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define SLOW true
#else
#define SLOW false
#endif

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        gantry_error must_ = { 0 };                                                                                    \
        gantry_status status_ = (call);                                                                                \
        ck_assert_msg(status_ == GANTRY_OK, "%s: %s: %s", #call, gantry_status_name(status_), must_.text);             \
    } while (0)
#define MUST_ERR &must_

enum { MOST_OUTPUTS = 16 };
typedef struct results {
    uint64_t hash[MOST_OUTPUTS];
    int count;
} results;

/* Graph files with sizes that a test can afford; NULL past the last. `params` are up to 6, NULL at the end. `near` is
 * for kernels that are not the host versions: outputs may differ by that much of their largest element, as sums in
 * another order do (in the graph's type, several steps of some hundred terms) and pixels that round to a neighbour. */
typedef struct graph_case {
    const char *file;
    const char *params[6];
    double near;
} graph_case;
extern const graph_case graph_cases[];

gantry_graph *load_graph(const graph_case *c);
/* `gpus` devices with a memory each, a link between all, and the CPU for host calls. With `mixed` the CPU takes nodes,
 * too. */
gantry_machine *gpu_machine(int gpus, bool mixed);
/* The same on fewer GPUs: device i is GPU i % gpus. */
gantry_machine *shared_machine(int devices, int gpus);
/* `replay`: "stream" or "graph". */
gantry_schedule *make_schedule(gantry_graph *g, const gantry_machine *m, const char *replay, const char *policy);
gantry_run *open_run(gantry_schedule *s, const char *backend);
/* False: something in it has no CUDA version yet, as `why` says. */
bool open_cuda(gantry_run **run, gantry_schedule *s, gantry_error *why);
/* Start and wait; then the hashes of all outputs. */
results run_results(gantry_run *run, const gantry_graph *g);
results outputs_of(gantry_run *run, const gantry_graph *g);
bool same(const results *a, const results *b);
const char *replay_of(gantry_run *run);

/* Of this computer. Also outside of tests. */
int count_gpus(void);
/* A run on all of them that is never started. While it is open their contexts are there: to make them anew for every
 * run takes most of a test's time. */
typedef struct held_gpus {
    gantry_graph *graph;
    gantry_machine *machine;
    gantry_schedule *schedule;
    gantry_run *run;
} held_gpus;
held_gpus hold_gpus(int gpus);
void let_go(held_gpus *held);
int most_gpus(void); /* that tests use: 8 of them */
/* The result of the function in a child (0: it did not end well), for CUDA does not survive a fork. */
int in_child(int (*function)(void));
bool has_gpu(void); /* asked by a child */

/* Streams, then graphs (k = 1); or only what GANTRY_GPU_REPLAY says. */
const char *replay_at(int k);

#endif
