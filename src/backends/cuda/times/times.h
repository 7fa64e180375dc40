/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Times of ops by CUPTI, for runs that record. All functions do nothing where nothing is recorded or CUPTI is not
 * there. cupti.h says how it works.
 */
#ifndef GY_CUDA_TIMES_TIMES_H
#define GY_CUDA_TIMES_TIMES_H

#include "backends/cuda/state/state.h"

gantry_status gy_cupti_open(gy_cuda *h, gantry_error *err);
void gy_cupti_close(gy_cuda *h);
bool gy_cupti_on(const gy_cuda *h);      /* times are CUPTI's */
const char *gy_cupti_replay(gy_cuda *h); /* what reports say: `replay`, and where times come from */
void gy_cupti_begin(gy_cuda *h);         /* before a start is given to the driver */
/* Around the calls of the driver by this thread for a start, or for a graph until that is instantiated. */
void gy_cupti_enter(gy_cuda *h, bool capture);
void gy_cupti_op(gy_cuda *h, uint32_t op); /* in between: calls are for this op; GY_NONE: for none */
void gy_cupti_leave(gy_cuda *h);
void gy_cupti_host_function_ended(gy_cuda *h, uint32_t op, int64_t began_ns); /* a host function of the op has ended */
/* CUPTI may not hear of all work of this op, as other threads may give it: in streams it has events, too. */
bool gy_cupti_may_miss(const gy_cuda *h, uint32_t op);
bool gy_cupti_leaves_to_events(const gy_cuda *h,
                               uint32_t op); /* after `take`: the time of this op is that of its events */
/* Takes the times of all ops of the start that has ended. False: there are no times by CUPTI. If it has recorded
 * nothing at all, starts go on as streams, and times are those of events. */
bool gy_cupti_take(gy_cuda *h, int64_t begin_ns);

#endif
