/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of gemm, potrf, trsm and syrk in all their forms, and results that are compared as numbers: libraries do not
 * add in the order of the host versions. For the fake driver (test_linalg.c) and real GPUs (tests/gpu). */
#ifndef TESTS_UNIT_CUDA_LINALG_CASES_H
#define TESTS_UNIT_CUDA_LINALG_CASES_H

#include "suite.h"

/* The i-th graph and one line on it; NULL past the last. */
gantry_graph *linalg_case(int i, char *what, size_t size);
/* The i-th graph of many small products at once; NULL past the last. Equal steps between their matrices, matrices that
 * several have, and neither. */
gantry_graph *batch_case(int i, char *what, size_t size);
/* The machine with figures by which products go into batches; frees `m`. */
gantry_machine *batching_machine(gantry_machine *m);
/* Ops in batches; *launches: all that launch a kernel. */
uint32_t count_batched(const gantry_schedule *s, uint32_t *launches);
/* All outputs of both runs, which have been waited for, agree but for rounding. */
void expect_near(gantry_run *got, gantry_run *want, const gantry_graph *g, const char *what);
/* Start and wait. */
void start_and_wait(gantry_run *run);

/* A graph with one potrf of a ROOT_N x ROOT_N matrix, buffer 0, in double. */
enum { ROOT_N = 6 };
extern const char one_root[];
/* 2 on the diagonal, from row `bad`, counted from 1, on -2; 0: nowhere. */
void fill_root(double *a, int bad);
/* Both runs of one_root tell of the same node and minor for each matrix that has none, and then go on. */
void expect_pivots(gantry_run *got, gantry_run *want);

#endif
