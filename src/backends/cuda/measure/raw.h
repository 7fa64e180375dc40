/* SPDX-License-Identifier: Apache-2.0 */
/* Work by hand, straight on the driver: what gantry_raw_* times (gantry/raw.h). */
#ifndef GY_CUDA_MEASURE_RAW_H
#define GY_CUDA_MEASURE_RAW_H

#include "backends/cuda/measure/flows.h"
#include "backends/cuda/measure/recipe.h"
#include "run/backend.h"

typedef struct gy_raw_graph gy_raw_graph;
typedef struct gy_raw_nccl gy_raw_nccl;

typedef struct gy_raw {
    gy_bed bed;
    gantry_raw_options options; /* without its strings */
    gantry_status (*time)(struct gy_raw *raw, double *us, gantry_error *err);
    double bytes; /* that are moved each time */
    gy_flows flows;
    char **host;            /* per GPU: arrays in place of the bed's blocks, or those while they are; NULL: none */
    gy_recipe_launch *call; /* per GPU: a kernel to launch */
    void **handle;          /* of those */
    const gy_cuda_kernel *kernel;
    gy_raw_graph *graph;
    gy_raw_nccl *nccl;
} gy_raw;

extern const gy_raw_table gy_cuda_raw; /* raw.c */

/* raw_graph.c: a graph of many tiny kernels, captured by hand. */
bool gy_raw_graph_peers(const char *shape); /* whether it has GPUs that reach each other's memory */
gantry_status gy_raw_graph_open(gy_raw *raw, const char *shape, bool build, gantry_error *err);
void gy_raw_graph_close(gy_raw *raw);
/* raw_nccl.c: a chain of collectives, captured by hand; `raw` is closed by the caller on errors, too. */
gantry_status gy_raw_nccl_open(gy_raw *raw, const gantry_machine *machine, const char *collective, gantry_error *err);
void gy_raw_nccl_close(gy_raw *raw);
/* raw.c: prepares a launch of the kernel on GPU i. */
gantry_status gy_raw_prepare(gy_raw *raw, uint32_t gpu, const char *kernel, gantry_dtype dtype, int64_t size,
                             gantry_error *err);

#endif
