/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The ops of a schedule made ready to be executed by the CPU: launches with their arguments, fills, copies and the
 * parts of collectives. Everything is prepared here; executing allocates nothing. Shared by the threads and by checking
 * mode, which points the uses of an op elsewhere.
 */
#ifndef GY_HOST_OPS_H
#define GY_HOST_OPS_H

#include "backends/host/memory.h"

/* A launch or host op. */
typedef struct gy_call {
    gantry_kernel_fn function;
    gantry_launch launch;
} gy_call;

/* Bytes of a collective with one list of sources and one of targets: targets receive the sources combined. */
typedef struct gy_piece {
    uint32_t source, sources; /* range of gy_exchange.end: combined in this order; one is plain copying */
    uint32_t target, targets; /* range of gy_exchange.end */
    uint64_t bytes;
} gy_piece;

typedef struct gy_piece_end {
    uint32_t use; /* of the op, from 0 */
    uint64_t offset;
} gy_piece_end;

/* A collective op. `staged`: a target overlaps a source that is read later, so results are built aside first. */
typedef struct gy_exchange {
    gy_piece *piece;
    gy_piece_end *end;
    uint32_t pieces, ends, most_sources;
    gantry_dtype dtype;
    gantry_access reduce; /* 0 where nothing is combined */
    char *stage;          /* NULL, or room for all pieces */
    const void **from;    /* room for most_sources */
} gy_exchange;

/* A scalar of a launch that may change between starts. */
typedef struct gy_dynamic {
    gantry_arg *arg;
    uint32_t scalar;
} gy_dynamic;

typedef struct gy_host_ops {
    const gy_job *job;
    const gy_host_memory *memory; /* borrowed */
    gy_arena arena;
    void **at;                 /* per use of the schedule: its first byte, in the start that its op was last part of */
    gantry_arg **arg;          /* per use: the argument it is, NULL where the op is no launch */
    gy_call **call;            /* per op; NULL where it is no launch */
    gy_exchange **exchange;    /* per op; NULL where it is no collective */
    void **handle;             /* kernels x devices */
    int32_t *status_word;      /* per device */
    char **scratch;            /* per device */
    GY_VEC(uint32_t) external; /* uses whose address depends on bindings */
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
/* False: it failed. */
bool gy_host_ops_execute(const gy_host_ops *ops, uint32_t op, gy_op_failure *failure);
/* The record of a failure of an op that calls a function. */
gantry_status gy_host_ops_fail(const gy_host_ops *ops, uint32_t op, gy_op_failure failure, gantry_error *err);

/* exchange.c */
gantry_status gy_exchange_make(gy_exchange **made, gy_arena *arena, const gy_job *job, uint32_t op, gantry_error *err);
void gy_exchange_execute(const gy_exchange *x, void *const *at);

#endif
