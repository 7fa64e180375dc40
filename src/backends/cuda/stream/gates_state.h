/* SPDX-License-Identifier: Apache-2.0 */
/* The state that graphs of GPUs are made with: of gates.c, which decides and starts, and gates_capture.c. */
#ifndef GY_CUDA_STREAM_GATES_STATE_H
#define GY_CUDA_STREAM_GATES_STATE_H

#include "backends/cuda/stream/gates.h"
#include "base/vec.h"
#include "kernels/gate/gate.h"
#include "schedule/gates/gates.h"

typedef struct node_list {
    GY_VEC(CUgraphNode) node;
} node_list;

/* The last copy of a GPU that sets words, and no gate since. It may be the next gate there, too. */
typedef struct last_copy {
    gy_gate_copy what;
    uint32_t op; /* GY_NONE: there is none, or it comes behind fewer gates than there are */
} last_copy;

/* Of a word: the op that waits for it, and the last one that it says of that it has ended. */
typedef struct gates_word {
    uint32_t waits, ended;
} gates_word;

typedef struct gates_gpu {
    bool used;
    gy_queue origin, aside;                  /* where its capture begins and ends; aside: the host's, in a failure */
    CUfunction function[GY_GATE_COPIES + 1]; /* of the kernel of gates */
    CUdeviceptr block;                       /* its words */
    CUgraph graph;                           /* that is captured */
    uint32_t words, awaited;                 /* so many has the capture, and gates wait for */
    GY_VEC(gates_word) who;                  /* each of these */
    node_list before;  /* what the next gate comes behind: the last one, and what has set words since */
    gy_gate_list want; /* words of the gate that is open */
    uint32_t wants;    /* so many */
    last_copy copy;
    uint32_t told_lane;   /* of the copies that have told others since the last gate; GY_NONE: none has; else MANY */
    GY_VEC(uint32_t) ops; /* that the open one waits for */
    node_list gate;       /* all of the capture */
    CUevent ended;        /* the last launch of its graph */
} gates_gpu;

/* Of an op. */
typedef struct gates_op {
    uint32_t gpu;        /* where it ends */
    uint32_t passed;     /* of a capture: it is known to come behind so many gates there */
    bool told, within;   /* other GPUs wait for it; its own does, by an event */
    uint32_t to;         /* the one GPU of all others that waits for it by a word; GY_NONE: none does, or several do */
    uint32_t word;       /* of a capture: of that GPU, which its copy sets; GY_NONE: a node does */
    bool captured;       /* the capture has come to its end, and `end` is of it */
    uint32_t end, nodes; /* of a capture: what it ends with, among `end` of all, if others are told */
} gates_op;

struct gy_gates {
    bool on, forced;
    const gy_cuda_kernel *kernel;
    void **handle; /* per device: of the kernel */
    gy_gate_waiters waiters;
    gy_ticks *awaited; /* per op: as gy_gate_awaited has it */
    uint32_t *next;    /* per op: the one behind it in its first lane; GY_NONE */
    gates_gpu *gpu;    /* per device: set for the lowest of those that are one GPU */
    gates_op *op;      /* per op */
    node_list end;     /* of all ops */
    node_list front;   /* what a node is made to come behind */
    uint32_t *passed;  /* per lane: so many gates of its GPU are ahead of it */
    uint32_t *last;    /* per lane: the last op there that a gate takes in, while it is closed; GY_NONE: none */
    uint32_t *number;  /* per op and device: of the gate that has waited for the op, from 1; 0: none */
    uint8_t *asked;    /* likewise: a gate has, or the one that is open does */
    gy_gate_times times;
    char *seen;      /* page-locked: some of the words of a GPU, as the host saw them */
    char why[512];   /* it is one graph for this reason; empty: it is not, or for what is predicted */
    char text[1024]; /* of the last report */
};

enum { GATES_SEEN = 512 }; /* words that the host looks at at once */

static inline bool is_on(const gy_cuda *h)
{
    return h->gates && h->gates->on;
}

/* The lowest device that is the same GPU. */
static inline uint32_t gpu_of(const gy_cuda *h, uint32_t device)
{
    uint32_t i = 0;
    while (!h->device[i].gpu || !gy_cuda_same_gpu(h, i, device))
        i++;
    return i;
}

static inline uint32_t first_lane_of(const gy_cuda *h, uint32_t op)
{
    return h->job->schedule->op_lane.at[h->job->schedule->ops.at[op].lane];
}

#endif
