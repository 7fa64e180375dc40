/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The measuring harness: the GPUs of a machine, opened for nothing but measuring. Each has its streams, a block of
 * memory and a block of page-locked host memory. Every wait has an end: work that does not move for a while is taken
 * for hung, and then nothing that it may touch is freed.
 */
#ifndef GY_CUDA_MEASURE_HARNESS_H
#define GY_CUDA_MEASURE_HARNESS_H

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/nvidia/driver.h"
#include "machine/measured.h"
#include <stdint.h>

enum { GY_HARNESS_STREAMS = 16, GY_HARNESS_SCRATCH_EVENTS = 4, GY_HARNESS_SAMPLES = 15, GY_HARNESS_LEAST = 3 };
#define GY_HARNESS_BYTES (UINT64_C(256) << 20) /* bytes of a half block, where there is so much memory */
#define GY_HARNESS_HOST  UINT32_MAX            /* in place of a GPU, means host memory */

typedef struct gy_harness_gpu {
    uint32_t device, memory; /* of the machine */
    CUdevice id;
    CUcontext context;
    CUstream stream[GY_HARNESS_STREAMS];
    CUevent begin, end;                               /* with times */
    CUevent scratch_event[GY_HARNESS_SCRATCH_EVENTS]; /* without times; each is waited for before it is used again */
    uint32_t next_scratch_event;
    CUdeviceptr block; /* 2 x bytes: copies read one half and write the other */
    char *host;        /* page-locked, on the NUMA node that the GPU is near to */
    CUmodule module;
    CUfunction empty; /* a kernel without parameters that does nothing */
} gy_harness_gpu;

typedef struct gy_harness {
    gy_driver d;
    const gantry_machine *machine;
    gy_harness_gpu *gpu;
    uint8_t *peer; /* gpus x gpus: access is enabled both ways */
    uint32_t gpus;
    uint64_t bytes, host; /* bytes of a half block; of a block of host memory */
    CUcontext before;     /* the caller's */
    int64_t patience_ns;
    bool hung;
} gy_harness;

/* `bytes` and `host`: of a half block, of a block of host memory; with `less` as much of both as there is room for.
 * `peers`: access to each other's memory, which makes every allocation in the process dearer from then on. */
typedef struct gy_harness_want {
    uint32_t gpus; /* GPUs of the machine, from the first on; 0: all */
    uint64_t bytes, host;
    bool less, peers;
    double patience; /* seconds */
} gy_harness_want;
/* Opens the GPUs of the machine, by their ordinals. E_DEVICE: there are fewer, or one cannot be opened. */
gantry_status gy_harness_open(gy_harness *harness, const gantry_machine *machine, const gy_harness_want *want,
                              gantry_error *err);
void gy_harness_close(gy_harness *harness); /* the caller's context is current again */

/* "WHAT on device "gpu0": ...", native = code. */
gantry_status gy_harness_fail(const gy_harness *harness, CUresult code, uint32_t gpu, const char *what,
                              gantry_error *err);
static inline gantry_status gy_harness_check(const gy_harness *harness, CUresult code, uint32_t gpu, const char *what,
                                             gantry_error *err)
{
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_harness_fail(harness, code, gpu, what, err);
}
/* Fails if launching that kernel did: `handle` may know why. */
gantry_status gy_harness_launched(const gy_harness *harness, uint32_t gpu, const gy_cuda_kernel *kernel, void *handle,
                                  gantry_status status, gantry_error *err);
/* Makes its context current. */
gantry_status gy_harness_use(const gy_harness *harness, uint32_t gpu, gantry_error *err);
/* Waits until the event has happened. E_TIMEOUT: it hangs. */
gantry_status gy_harness_wait(gy_harness *harness, CUevent event, uint32_t gpu, gantry_error *err);
/* Waits until all GPUs have done all they were given. */
gantry_status gy_harness_drain(gy_harness *harness, gantry_error *err);
/* Does the same before something is freed, after an error too. False: work hangs. */
bool gy_harness_settle(gy_harness *harness);

/* A stream of a GPU. */
typedef struct gy_harness_lane {
    uint32_t gpu, stream;
} gy_harness_lane;
static inline CUstream gy_harness_stream(const gy_harness *harness, gy_harness_lane lane)
{
    return harness->gpu[lane.gpu].stream[lane.stream];
}
/* All that follows on `to` comes after all that is on `from` by now. */
gantry_status gy_harness_order(gy_harness *harness, gy_harness_lane from, gy_harness_lane to, gantry_error *err);
/* Of the first GPUs, so many streams each: all come after the first lane, {0, 0}, or (not `before`) the first lane
 * after all. */
gantry_status gy_harness_order_all(gy_harness *harness, uint32_t gpus, uint32_t streams, bool before,
                                   gantry_error *err);
/* Pairs of GPUs and host memory, which is the last end, in both directions: how many numbers they have, and the ends of
 * the i-th. false: the two do not reach each other, or are both the host's. */
uint32_t gy_harness_pairs(const gy_harness *harness);
bool gy_harness_pair_at(const gy_harness *harness, uint32_t i, uint32_t *from, uint32_t *to);
/* The memory of the machine that an end of a pair is. */
uint32_t gy_harness_memory(const gy_harness *harness, uint32_t end);
/* Copies from one's block to the other's, or host memory: the lane is of one of the two. `offset`: in host memory. */
gantry_status gy_harness_copy(gy_harness *harness, gy_harness_lane lane, uint32_t from, uint32_t to, uint64_t bytes,
                              uint64_t offset, gantry_error *err);
gantry_status gy_harness_empty(gy_harness *harness, gy_harness_lane lane,
                               gantry_error *err); /* a kernel that does nothing */
/* True if a copy between the two needs nothing in between. */
bool gy_harness_reaches(const gy_harness *harness, uint32_t from, uint32_t to);

typedef gantry_status gy_harness_queue(gy_harness *harness, const void *what, gantry_error *err);

/* ---- bed_graph.c ---- */

/* The lane is the origin of the capture, and where the graph is launched. */
typedef struct gy_harness_graph {
    gy_harness_lane lane;
    CUgraphExec exec; /* NULL: not made */
} gy_harness_graph;
/* Captures the work that `queue` gives to streams, so many times. Other lanes take part if `queue` orders them after
 * the first lane, and before it in the end. */
gantry_status gy_harness_graph_make(gy_harness_graph *g, gy_harness *harness, gy_harness_queue *queue, const void *what,
                                    uint32_t times, gantry_error *err);
gantry_status gy_harness_graph_queue(gy_harness *harness, const void *graph,
                                     gantry_error *err); /* a gy_harness_graph, launched */
/* Not while it may hang (gy_harness_settle), but for the graph of a communicator that is going to be aborted. */
void gy_harness_graph_free(gy_harness_graph *g, const gy_harness *harness);
/* Frees it when it has ended; a graph that hangs is left alone for good. */
void gy_harness_graph_drop(gy_harness_graph *g, gy_harness *harness);

/* ---- bed_time.c ---- */

/* Work that is timed: `queue` gives it to the first lane, or to one of the others, which begin with the first and are
 * waited for. */
typedef struct gy_workload {
    gy_harness_queue *queue;
    const void *what;
    gy_harness_lane first_lane;
    const gy_harness_lane *other_lane;
    uint32_t other_lanes;
    uint32_t most; /* times that it can be repeated, at least 5; 0: any number */
    bool heats;    /* it makes a GPU slower in the long run: where it is long, it is sampled after some time of it */
} gy_workload;

/* Times `times` of it, one after another, by the events of the first lane; us of one. */
gantry_status gy_harness_time(gy_harness *harness, const gy_workload *workload, uint32_t times, double *us,
                              gantry_error *err);
/* Runs it once to warm up, then takes GY_HARNESS_LEAST to GY_HARNESS_SAMPLES samples, until the clock says so. */
gantry_status gy_harness_sample(gy_harness *harness, const gy_workload *workload, int64_t until_ns, gy_figure *figure,
                                gantry_error *err);
/* Samples one among many in a graph, as runs have them, where it is short; no other lanes. */
gantry_status gy_harness_sample_nodes(gy_harness *harness, const gy_workload *workload, int64_t until_ns,
                                      gy_figure *figure, gantry_error *err);
/* One at a time by the clock of the host, from before it is queued until its end is seen; no other lanes. */
gantry_status gy_harness_sample_wall(gy_harness *harness, const gy_workload *workload, int64_t until_ns,
                                     gy_figure *figure, gantry_error *err);

/* The time that is left for `left` figures: each may take an equal share of what those before it have left. */
typedef struct gy_budget {
    int64_t until_ns;
    uint32_t left;
} gy_budget;
int64_t gy_budget_next(gy_budget *budget); /* until when the next one may go on */

#endif
