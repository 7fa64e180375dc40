/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Ranges for profilers (NVTX): "gantry" is the domain, a range is the submission of an op, or of a start, by the thread
 * that submits. Kernels and copies of an op are found in a profile by its range. Without a profiler nothing is made.
 */
#ifndef GY_CUDA_STREAM_RANGES_H
#define GY_CUDA_STREAM_RANGES_H

#include "schedule/schedule.h"

typedef struct gy_ranges gy_ranges;

/* NULL: no profiler asks for them, this was built without NVTX's header, or there is no memory. */
gy_ranges *gy_ranges_new(const gantry_schedule *schedule);
void gy_ranges_free(gy_ranges *ranges);
/* All three do nothing with NULL. Ranges nest. */
void gy_range_start(const gy_ranges *ranges, uint64_t start);
void gy_range_op(const gy_ranges *ranges, uint32_t op);
void gy_range_end(const gy_ranges *ranges);

#endif
