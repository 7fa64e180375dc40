/* SPDX-License-Identifier: Apache-2.0 */
/**
 * CUPTI, for times of ops: begin and end of kernels, copies and memsets on the clock of the GPUs, in graphs too.
 *
 *   nvidia/cupti_api.c  the library, opened at run time
 *   cupti.c         the one client that a process has: what CUPTI tells goes to the runs that it is of
 *   cupti_table.c   which op a call of the driver, or a node of a graph, belongs to
 *   cupti_times.c   a run: from its submission to times of its ops
 *
 * How ops are told apart. While a run submits an op, CUPTI tells of each call of the driver by that thread, with the
 * number that the records of the work have (correlation id). Under capture it tells of each node instead, and then of
 * the copy of that node in the executable graph; records of a graph that runs have the number of that copy (graph node
 * id). Whatever else the process does on its GPUs is not asked about.
 *
 * Of work that another thread gives in streams it is not known whose it is: collectives by NCCL keep their events, and
 * so do functions of the program of which nothing was heard. Host functions are timed by themselves. Ops of which some
 * record was lost have no time.
 */
#ifndef GY_CUDA_TIMES_CUPTI_H
#define GY_CUDA_TIMES_CUPTI_H

#include "backends/cuda/nvidia/cupti_api.h"
#include "backends/cuda/times/times.h"
#include "base/map.h"
#include <pthread.h>

/* ---- cupti_table.c ---- */

/* Work that has a record: a call of the driver, or a node of a graph. */
typedef struct gy_cupti_piece {
    uint32_t op;
    bool recorded;
} gy_cupti_piece;

/* Zero-initialised is an empty one. Several ids may be of one piece. */
typedef struct gy_cupti_table {
    gy_map of; /* id (correlation id or graph node id) -> index in `piece` */
    GY_VEC(gy_cupti_piece) piece;
    uint32_t recorded; /* pieces */
} gy_cupti_table;

void gy_cupti_table_clear(gy_cupti_table *t);
void gy_cupti_table_free(gy_cupti_table *t);
/* False: out of memory. */
bool gy_cupti_table_add(gy_cupti_table *t, uint64_t id, uint32_t op);
/* The id means what `like` does, if that is known. */
void gy_cupti_table_alias(gy_cupti_table *t, uint64_t id, uint64_t like);
/* NULL: not one of these. */
gy_cupti_piece *gy_cupti_table_find(const gy_cupti_table *t, uint64_t id);
/* The same pieces once more. */
void gy_cupti_table_again(gy_cupti_table *t);

/* ---- cupti_times.c ---- */

/* Times of an op in one start, by CUPTI's clock; end 0: there was no record. */
typedef struct gy_cupti_span {
    uint64_t start, end;
    bool lost; /* a part of the work has no time */
} gy_cupti_span;

/* A run that records. All but `h`, `on`, `why` and `text` is only touched with the lock of cupti.c. */
typedef struct gy_cupti {
    gy_cuda *h;
    bool on;
    const char *why;  /* not on: the reason in few words */
    uint32_t without; /* ops of the last start that lost a record */
    char text[200];   /* what reports say */

    struct gy_cupti *next;
    bool submits, captures, busy; /* `by` gives work to the driver; to a graph; a start is in flight */
    pthread_t by;
    uint32_t op;         /* that it is for; GY_NONE: for none */
    bool incomplete;     /* there was no memory for all work */
    CUgraph graph;       /* that is captured; NULL: not known yet */
    gy_cupti_span *span; /* per op */
    gy_cupti_table calls, nodes;
    gy_op_time *host; /* per op: of host functions, by our clock; end 0: none. Written by these */
    int64_t patience_ns;
} gy_cupti;

/* Takes in a record, `node` 0: not of a graph. True: it is of this run. */
bool gy_cupti_take_record(gy_cupti *c, uint32_t correlation, uint64_t node, uint64_t start, uint64_t end);

/* ---- cupti.c ---- */

/* *why: NULL, and the run hears of its work from now on; or why it cannot. */
void gy_cupti_subscribe(gy_cupti *c, int driver_version, const char **why);
void gy_cupti_unsubscribe(gy_cupti *c); /* one that has not joined is fine */
void gy_cupti_lock(void);
void gy_cupti_unlock(void);
/* Asks for the records of work that has ended. `forced`: records that are missing are given up, unless another run is
 * in the middle of a start. */
void gy_cupti_flush(const gy_cupti *c, bool forced);
/* CUPTI's clock less ours, in ns. False: it does not tell. */
bool gy_cupti_offset(int64_t *ns);

#endif
