/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A test bed: the GPUs of a machine, opened for nothing but measuring. Each has two streams, a block of memory and a
 * block of page-locked host memory. Nothing waits without an end: what does not move for a while is taken for hung, and
 * then nothing that it may touch is freed.
 */
#ifndef GY_CUDA_MEASURE_HARNESS_H
#define GY_CUDA_MEASURE_HARNESS_H

#include "backends/cuda/nvidia/driver.h"
#include "machine/measured.h"
#include <stdint.h>

enum { GY_BED_STREAMS = 2, GY_BED_MARKS = 4, GY_BED_SAMPLES = 15, GY_BED_LEAST = 3 };
#define GY_BED_BYTES (UINT64_C(256) << 20) /* of a half block, where there is so much */
#define GY_BED_HOST  UINT32_MAX            /* in place of a GPU: host memory */

typedef struct gy_bed_gpu {
    uint32_t device, memory; /* of the machine */
    CUdevice id;
    CUcontext context;
    CUstream stream[GY_BED_STREAMS];
    CUevent begin, end;         /* with times */
    CUevent mark[GY_BED_MARKS]; /* without, used in turn */
    uint32_t next_mark;
    CUdeviceptr block; /* 2 x bytes: one half is copied from, the other to */
    char *host;        /* page-locked, on the NUMA node that the GPU is near to */
    CUmodule module;
    CUfunction empty; /* a kernel without parameters that does nothing */
} gy_bed_gpu;

typedef struct gy_bed {
    gy_driver d;
    const gantry_machine *machine;
    gy_bed_gpu *gpu;
    uint8_t *peer; /* gpus x gpus: access is enabled both ways */
    uint32_t gpus;
    uint64_t bytes, host; /* of a half block; of a block of host memory */
    CUcontext before;     /* the caller's */
    int64_t patience_ns;
    bool hung;
} gy_bed;

/* `bytes` and `host`: of a half block, of a block of host memory; with `less` as much of both as there is room for.
 * `peers`: access to each other's memory, which makes every allocation in the process dearer from then on. */
typedef struct gy_bed_want {
    uint32_t gpus; /* the first so many; 0: all */
    uint64_t bytes, host;
    bool less, peers;
    double patience; /* seconds */
} gy_bed_want;
/* The GPUs of the machine, by their ordinals. E_DEVICE: there are fewer, or one cannot be opened. */
gantry_status gy_bed_open(gy_bed *bed, const gantry_machine *machine, const gy_bed_want *want, gantry_error *err);
void gy_bed_close(gy_bed *bed); /* the caller's context is current again */

/* "WHAT on device "gpu0": ...", native = code. */
gantry_status gy_bed_fail(const gy_bed *bed, CUresult code, uint32_t gpu, const char *what, gantry_error *err);
static inline gantry_status gy_bed_check(const gy_bed *bed, CUresult code, uint32_t gpu, const char *what,
                                         gantry_error *err)
{
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_bed_fail(bed, code, gpu, what, err);
}
/* Makes its context current. */
gantry_status gy_bed_use(const gy_bed *bed, uint32_t gpu, gantry_error *err);
/* Until the event has happened. E_TIMEOUT: it hangs. */
gantry_status gy_bed_wait(gy_bed *bed, CUevent event, uint32_t gpu, gantry_error *err);
/* All GPUs have done all they were given. */
gantry_status gy_bed_drain(gy_bed *bed, gantry_error *err);
/* The same before something is freed, after an error too. False: something hangs. */
bool gy_bed_settle(gy_bed *bed);

/* A stream of a GPU. */
typedef struct gy_bed_lane {
    uint32_t gpu, stream;
} gy_bed_lane;
static inline CUstream gy_bed_stream(const gy_bed *bed, gy_bed_lane lane)
{
    return bed->gpu[lane.gpu].stream[lane.stream];
}
/* All that follows on `to` comes after all that is on `from` by now. */
gantry_status gy_bed_order(gy_bed *bed, gy_bed_lane from, gy_bed_lane to, gantry_error *err);
/* Of the first GPUs, so many streams each: all come after the lead, {0, 0}, or (not `before`) the lead after all. */
gantry_status gy_bed_order_all(gy_bed *bed, uint32_t gpus, uint32_t streams, bool before, gantry_error *err);
/* Copies from one's block to the other's, or host memory: the lane is of one of the two. `offset`: in host memory. */
gantry_status gy_bed_copy(gy_bed *bed, gy_bed_lane lane, uint32_t from, uint32_t to, uint64_t bytes, uint64_t offset,
                          gantry_error *err);
gantry_status gy_bed_empty(gy_bed *bed, gy_bed_lane lane, gantry_error *err); /* a kernel that does nothing */
/* Whether a copy needs nothing in between. */
bool gy_bed_reaches(const gy_bed *bed, uint32_t from, uint32_t to);

typedef gantry_status gy_bed_queue(gy_bed *bed, const void *what, gantry_error *err);

/* ---- bed_graph.c ---- */

/* The lane is the origin of the capture, and where the graph is launched. */
typedef struct gy_bed_graph {
    gy_bed_lane lane;
    CUgraphExec exec; /* NULL: not made */
} gy_bed_graph;
/* Captures what `queue` gives out, so many times; other lanes take part that it orders behind the lead, and before it
 * in the end. */
gantry_status gy_bed_graph_make(gy_bed_graph *g, gy_bed *bed, gy_bed_queue *queue, const void *what, uint32_t times,
                                gantry_error *err);
gantry_status gy_bed_graph_queue(gy_bed *bed, const void *graph, gantry_error *err); /* a gy_bed_graph, launched */
/* Not while it may hang (gy_bed_settle), but for the graph of a communicator that is going to be aborted. */
void gy_bed_graph_free(gy_bed_graph *g, const gy_bed *bed);
/* When it has ended; one that hangs is left alone for good. */
void gy_bed_graph_drop(gy_bed_graph *g, gy_bed *bed);

/* ---- bed_time.c ---- */

/* What is timed: `queue` gives it to the lead, or to one of the sides, which begin with the lead and are waited for. */
typedef struct gy_shot {
    gy_bed_queue *queue;
    const void *what;
    gy_bed_lane lead;
    const gy_bed_lane *side;
    uint32_t sides;
    uint32_t most; /* times that it can be done, at least 5; 0: any number */
} gy_shot;

/* By the events of the lead: `times` of it, one after another; us of one. */
gantry_status gy_bed_time(gy_bed *bed, const gy_shot *shot, uint32_t times, double *us, gantry_error *err);
/* Once to warm up, then GY_BED_LEAST to GY_BED_SAMPLES samples, until the clock says so. */
gantry_status gy_bed_sample(gy_bed *bed, const gy_shot *shot, int64_t until_ns, gy_figure *figure, gantry_error *err);
/* Of one among many in a graph, as runs have them, where it is short; no sides. */
gantry_status gy_bed_sample_nodes(gy_bed *bed, const gy_shot *shot, int64_t until_ns, gy_figure *figure,
                                  gantry_error *err);
gantry_status gy_bed_sample_wall(gy_bed *bed, const gy_shot *shot, int64_t until_ns, gy_figure *figure,
                                 gantry_error *err);

/* Time that is left for `left` figures: each may take an equal share of what those before it have left. */
typedef struct gy_budget {
    int64_t until_ns;
    uint32_t left;
} gy_budget;
int64_t gy_budget_next(gy_budget *budget); /* until when the next one may go on */

#endif
