/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The ops of a schedule made ready to be executed by the CPU: launches with their arguments, fills, copies and the
 * parts of collectives. Everything is prepared here; executing allocates nothing. Shared by the threads and by checking
 * mode, which points the uses of an op elsewhere.
 */
#ifndef GY_HOST_OPS_H
#define GY_HOST_OPS_H

#include "backends/host/memory.h"
#include "run/reduce.h"

/* A launch or host op. */
typedef struct gy_call {
    gantry_kernel_fn function;
    gantry_launch launch;
} gy_call;

/* A scalar of a launch that may change between starts. */
typedef struct gy_dynamic {
    gantry_arg *arg;
    uint32_t scalar;
} gy_dynamic;

typedef struct gy_host_ops {
    const gy_job *job;
    const gy_host_memory *memory; /* borrowed */
    gy_arena arena;
    void **at;        /* per use of the schedule: its first byte, in the start that its op was last part of */
    gantry_arg **arg; /* per use: the argument it is, NULL where the op is no launch */
    gy_call **call;   /* per op; NULL where it is no launch */
    uint32_t *flag;   /* per op: 1 + the use that is the flag of its node's `when`; 0: it has none */
    gy_host_collective **collective; /* per op; NULL where it is no collective */
    void **handle;                   /* kernels x devices */
    int32_t *status_word;            /* per device */
    char **scratch;                  /* per device */
    GY_VEC(uint32_t) external;       /* uses whose address depends on bindings */
    GY_VEC(gy_dynamic) dynamic;
} gy_host_ops;

/* Why an op failed. `word`: what the kernel left in its status word, if it returned OK. */
typedef struct gy_op_failure {
    gantry_status status;
    int32_t word;
} gy_op_failure;

gantry_status gy_host_ops_make(gy_host_ops *ops, const gy_job *job, const gy_host_memory *memory, gantry_error *err);
void gy_host_ops_free(gy_host_ops *ops);
/* After bindings or scalars have changed. */
void gy_host_ops_rebind(gy_host_ops *ops);
/* Iteration 0 of the schedule is `first` from now on. E_GRAPH: a scalar has no value then. */
gantry_status gy_host_ops_advance(gy_host_ops *ops, int64_t first, gantry_error *err);
/* Where starts take turns: the op's uses are now where they are in this start. One op is never part of two starts at a
 * time: its lane runs one after the other. */
void gy_host_ops_turn(gy_host_ops *ops, uint32_t op, uint64_t start);
/* Says where a use (index into schedule->use) is. */
void gy_host_ops_point(gy_host_ops *ops, uint32_t use, void *at);
/* False: the op has a `when`, and it is 0. */
bool gy_host_ops_wanted(const gy_host_ops *ops, uint32_t op);
/* Does nothing where the op is not wanted. False: it failed. */
bool gy_host_ops_execute(const gy_host_ops *ops, uint32_t op, gy_op_failure *failure);
/* The record of a failure of an op that calls a function. */
gantry_status gy_host_ops_fail(const gy_host_ops *ops, uint32_t op, gy_op_failure failure, gantry_error *err);

#endif
