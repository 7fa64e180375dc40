/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the fake NCCL; the lock is the fake driver's. */
#ifndef FAKE_NCCL_FAKE_H
#define FAKE_NCCL_FAKE_H

#include "abi.h"
#include <stdbool.h>
#include <stdint.h>

enum { RANKS = 16 };

typedef enum what { ALL_REDUCE, REDUCE, REDUCE_SCATTER, BROADCAST, ALL_GATHER, SEND, RECV } what;

typedef struct call {
    what what;
    const char *from;
    char *to;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root; /* or peer */
    ncclComm_t comm;
    CUstream stream;
} call;

/* Communicators of one id. */
typedef struct clique {
    uint64_t id;
    int ranks, present, finalized, destroyed, graphs; /* graphs: nodes of graphs with its work */
    struct ncclComm *comm[RANKS];
    bool aborted, launched;
    struct ncclComm *ghost[RANKS]; /* of ranks of other processes */
    int pid[RANKS];                /* of those */
    bool apart;                    /* it has such */
    struct job *waiting;           /* a group that has not reached the streams yet */
    struct clique *next;
} clique;

struct ncclComm {
    clique *clique;
    int rank, device, polls; /* polls: until it is no longer in progress */
    ncclResult_t state, then;
    bool gone, initial;
    int collectives, sends[RANKS], receives[RANKS]; /* made, where ranks are of several processes */
};

/* A group: its calls, and its work on the streams. */
typedef struct part {
    struct job *job;
    int rank;
} part;
typedef struct job {
    clique *clique;
    call *calls;
    char **source, **result;  /* per call: what is sent, what is received */
    int looks;                /* for what other processes send */
    int count, local;         /* local: without those of other processes, which come behind them */
    int *number;              /* per call: which one it is, in its files */
    bool hangs, begun[RANKS]; /* begun: what the rank sends has been read */
    part part[RANKS];
    CUstream stream[RANKS];
    struct job *next;
} job;

void fail_use(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
size_t size_of(ncclDataType_t type);
/* to (op)= from, element by element */
void combine(ncclDataType_t type, ncclRedOp_t op, char *to, const char *from, size_t count);

/* apart.c: ranks of several processes */
bool apart_can(void);
void apart_tell(const char *text);   /* in the file `wrong` */
void apart_begin(clique *q);         /* tells the others of the ranks that this process has */
ncclResult_t apart_state(clique *q); /* of making it, or of a peer */
bool apart_leaves_out(job *j);       /* FAKE_NCCL_MUTANT: not given to the streams */
void apart_publish(job *j);          /* what its ranks send */
bool apart_ready(job *j);            /* what they get is there */
void apart_fetch(job *j);            /* as calls of the others, behind its own */

/* job.c */
size_t sent(const call *c); /* bytes */
void job_check(const job *j);
void job_launch(job *j);
void jobs_free(void);

#endif
