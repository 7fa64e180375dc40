/* SPDX-License-Identifier: Apache-2.0 */
/* A launch of a program on the host, while it runs. */
#ifndef GY_MATHS_RUNNER_H
#define GY_MATHS_RUNNER_H

#include "maths/steps.h"

typedef struct gy_maths_runner {
    const gy_maths_program *program;
    const gantry_launch *launch;
    gy_maths_steps_fn steps; /* compiled; NULL: they are carried out one after the other */
    char *slots;             /* those of the program, then one for each result that is compiled */
    gy_maths_spread spread[GY_MATHS_ARGS][GY_MATHS_RUNS]; /* of spread regions, for each of their runs of axes */
    const void *value[GY_MATHS_ARGS + GY_MATHS_STEPS];    /* of the chunk at hand */
    void *result[GY_MATHS_RESULTS];                       /* where compiled steps leave the values of results */
} gy_maths_runner;

/* The values of a result for the chunk at hand. */
static inline const void *gy_maths_result_values(const gy_maths_runner *r, uint32_t result)
{
    return r->steps ? r->result[result] : r->value[r->program->value[result]];
}

/* run.c: all steps for n elements from `first` on. */
void gy_maths_do_chunk(gy_maths_runner *runner, int64_t first, size_t n);
/* run.c: stores the values of a result for these elements. */
void gy_maths_store_chunk(const gy_maths_runner *runner, uint32_t result, int64_t first, size_t n);
/* run.c: one for the thread that calls; false: no memory. gy_maths_runner_free. */
bool gy_maths_runner_make(gy_maths_runner *runner, const gantry_launch *launch, const gy_maths_program *program,
                          gy_maths_steps_fn steps);
void gy_maths_runner_free(gy_maths_runner *runner);
/* reduce.c: all elements, chunk by chunk, and the results. */
gantry_status gy_maths_reduce(const gantry_launch *launch, gy_maths_code *code);

/* Elements that are worth a thread (gantry_launch_cut): whole chunks, and whole segments of a reduction. */
enum { GY_MATHS_GRAIN = 16384 };

#endif
