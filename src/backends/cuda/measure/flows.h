/* SPDX-License-Identifier: Apache-2.0 */
/* Copies at once: each on a stream, all of one size, all begun together. */
#ifndef GY_CUDA_MEASURE_FLOWS_H
#define GY_CUDA_MEASURE_FLOWS_H

#include "backends/cuda/measure/harness.h"
#include "base/vec.h"

typedef struct gy_stream_copy {
    gy_harness_lane lane; /* of one of its ends */
    uint32_t from, to;    /* GPUs, or GY_HARNESS_HOST */
    uint64_t offset;      /* in the page-locked block of the lane's GPU */
} gy_stream_copy;

/* Zero-initialised is none. No lane twice. */
typedef struct gy_flows {
    GY_VEC(gy_stream_copy) flows;
    GY_VEC(gy_harness_lane) lanes;
    uint64_t bytes;  /* of each copy */
    uint32_t rounds; /* copies on each stream, one after another */
} gy_flows;

/* Passes over one that cannot be copied without anything in between. False: out of memory. */
bool gy_flows_add(const gy_harness *harness, gy_flows *f, gy_stream_copy flow);
/* At least one was added. */
gy_workload gy_flows_workload(const gy_flows *f);
void gy_flows_free(gy_flows *f);

#endif
