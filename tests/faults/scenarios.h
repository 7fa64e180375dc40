/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is done while calls fail: each scenario takes the API from nothing to a result, and gives everything back.
 */
#ifndef TESTS_FAULTS_SCENARIOS_H
#define TESTS_FAULTS_SCENARIOS_H

#include <gantry/gantry.h>
#include <stdbool.h>

typedef struct attempt {
    const char *tree;     /* the source tree */
    const char *material; /* files that the scenarios read */
    const char *out;      /* the folder that they write to */
    gantry_error err;
    uint64_t digest; /* of all results */
} attempt;

typedef struct scenario {
    const char *name;
    gantry_status (*carry_out)(attempt *a);
    bool gpu;     /* on GPUs, fakes or not */
    bool detects; /* calls hwloc, which does not live without memory: none is refused */
} scenario;

extern const scenario scenarios[]; /* ends with one without a name */

enum { SCENARIO_PATH = 600 };
/* ---- between the scenarios ---- */

void digest_bytes(attempt *a, const void *data, size_t length);
/* Adds a text that the library gave, and frees it. */
void digest_text(attempt *a, char *text, size_t length);
const char *path_in(const char *folder, const char *name);
gantry_status load_graph(gantry_graph **g, attempt *a, const char *name, const char *const *params);
/* The graph on the machine, run `starts` times, with hashes of outputs; `starts` 0: the machine is scheduled for. */
typedef struct course {
    const char *backend, *replay, *policy, *objective, *max_memory, *machine;
    int starts, in_flight, check, trace, effort;
} course;
gantry_status run_graph(attempt *a, gantry_graph *g, const gantry_machine *m, const course *how);

gantry_status on_gpus_detecting(attempt *a);
gantry_status on_gpus(attempt *a);
gantry_status on_gpus_by_graphs(attempt *a);
gantry_status on_gpus_overlapping(attempt *a);
gantry_status on_gpus_in_phases(attempt *a);
gantry_status on_gpus_collective(attempt *a);
gantry_status on_gpus_nccl(attempt *a);
gantry_status on_gpus_linear_algebra(attempt *a);
gantry_status on_gpus_traced(attempt *a);
gantry_status on_gpus_calibrating(attempt *a);
gantry_status on_gpus_user_code(attempt *a);

#endif
