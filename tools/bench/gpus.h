/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs that work by hand is done on: the driver, opened at run time; of each GPU its primary context, two streams,
 * a block of memory and a block of page-locked host memory. What does not end within half a minute is taken for hung,
 * and then nothing that it may touch is freed. */
#ifndef GANTRY_COMMAND_BENCH_GPUS_H
#define GANTRY_COMMAND_BENCH_GPUS_H

#include <cuda.h>
#include <gantry/gantry.h>
#include <stdbool.h>

/* Members have the names that cuda.h gives the functions. */
#define DRIVER_FUNCTIONS(X)                                                                                            \
    X(cuInit)                                                                                                          \
    X(cuGetErrorName)                                                                                                  \
    X(cuGetErrorString)                                                                                                \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGet)                                                                                                     \
    X(cuDeviceCanAccessPeer)                                                                                           \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuDevicePrimaryCtxRelease)                                                                                       \
    X(cuCtxGetCurrent)                                                                                                 \
    X(cuCtxSetCurrent)                                                                                                 \
    X(cuCtxEnablePeerAccess)                                                                                           \
    X(cuMemAlloc)                                                                                                      \
    X(cuMemFree)                                                                                                       \
    X(cuMemHostAlloc)                                                                                                  \
    X(cuMemFreeHost)                                                                                                   \
    X(cuMemcpyHtoDAsync)                                                                                               \
    X(cuMemcpyDtoHAsync)                                                                                               \
    X(cuMemcpyDtoDAsync)                                                                                               \
    X(cuMemcpyPeerAsync)                                                                                               \
    X(cuStreamCreate)                                                                                                  \
    X(cuStreamDestroy)                                                                                                 \
    X(cuStreamWaitEvent)                                                                                               \
    X(cuEventCreate)                                                                                                   \
    X(cuEventDestroy)                                                                                                  \
    X(cuEventRecord)                                                                                                   \
    X(cuEventQuery)                                                                                                    \
    X(cuLaunchKernel)                                                                                                  \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleUnload)                                                                                                  \
    X(cuModuleGetFunction)                                                                                             \
    X(cuStreamBeginCapture)                                                                                            \
    X(cuStreamEndCapture)                                                                                              \
    X(cuGraphInstantiateWithFlags)                                                                                     \
    X(cuGraphUpload)                                                                                                   \
    X(cuGraphLaunch)                                                                                                   \
    X(cuGraphExecDestroy)                                                                                              \
    X(cuGraphDestroy)

typedef struct driver {
#define X_(name) __typeof__(name) *name;
    DRIVER_FUNCTIONS(X_)
#undef X_
    CUresult (*elapsed)(float *ms, CUevent start, CUevent end); /* cuEventElapsedTime, whatever cuda.h calls so */
#if CUDA_VERSION >= 12030
    /* cuStreamGetCaptureInfo_v3, cuStreamUpdateCaptureDependencies_v2; NULL: an older driver */
    CUresult (*capture_info)(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                             const CUgraphNode **front, const CUgraphEdgeData **edges, size_t *fronts);
    CUresult (*capture_behind)(CUstream stream, CUgraphNode *front, const CUgraphEdgeData *edges, size_t fronts,
                               unsigned flags);
#endif
} driver;

enum { GPU_STREAMS = 2, GPU_MARKS = 4, TINY_BYTES = 4096 };

typedef struct one_gpu {
    int index, ordinal; /* of the machine's devices; of the driver */
    char id[64], kind[64];
    CUdevice device;
    CUcontext context;
    CUstream stream[GPU_STREAMS];
    CUevent begin, end;      /* with times */
    CUevent mark[GPU_MARKS]; /* without, used in turn */
    unsigned next_mark;
    CUdeviceptr block; /* 2 x bytes: one half is copied from, the other to */
    char *host;
    CUmodule module;
    CUfunction tiny; /* copies TINY_BYTES from its second parameter to its first */
} one_gpu;

typedef struct gpus {
    driver d;
    one_gpu *at;
    int count;
    uint64_t bytes;   /* of a half block */
    bool *peer;       /* count x count: access is enabled both ways */
    CUcontext before; /* the caller's */
    bool hung;
} gpus;

/* Opens the first `count` GPUs of the machine (0: all) with half blocks of `bytes` and `host` bytes of host memory.
 * With `peers` each can reach the memory of the others where the driver allows it. Close on success. */
gantry_status gpus_open(gpus *g, const gantry_machine *machine, int count, uint64_t bytes, uint64_t host, bool peers,
                        gantry_error *err);
/* Waits for all that was queued, frees everything and makes the context current that was when they were opened. */
void gpus_close(gpus *g);

gantry_status bench_error(gantry_error *err, gantry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* OK, or E_DEVICE: "WHAT on device "gpu0": CUDA_ERROR_X (2): text". */
gantry_status gpus_check(const gpus *g, CUresult code, int gpu, const char *what, gantry_error *err);
gantry_status gpus_use(const gpus *g, int gpu, gantry_error *err); /* makes its context current */
gantry_status gpus_wait(gpus *g, CUevent event, int gpu, gantry_error *err);
/* Waits until all streams are done, after an error too. False: something hangs. */
bool gpus_settle(gpus *g);
bool gpus_reach(const gpus *g, int a, int b); /* each reaches the memory of the other */
/* All that follows on the stream `to` comes after all that is on `from` by now; streams belong to these GPUs. */
gantry_status gpus_order(gpus *g, int from_gpu, CUstream from, int to_gpu, CUstream to, gantry_error *err);
/* The first streams of the first `count` GPUs come after that of the first one, or (not `before`) that one after all.
 */
gantry_status gpus_order_all(gpus *g, int count, bool before, gantry_error *err);
gantry_status gpus_tiny(gpus *g, int gpu, gantry_error *err); /* launches the tiny kernel on its first stream */

/* In a capture: what the first stream of the GPU is given next comes after these nodes of it and nothing else. */
gantry_status gpus_behind(const gpus *g, int gpu, CUgraphNode *nodes, size_t count, gantry_error *err);
gantry_status gpus_last(const gpus *g, int gpu, CUgraphNode *node, gantry_error *err); /* what it was given last */

/* Work that `queue` gives to streams, captured from the first stream of the first GPU on. NULL: not made. */
typedef gantry_status queue_fn(gpus *g, void *work, gantry_error *err);
gantry_status gpus_capture(gpus *g, CUgraphExec *made, queue_fn *queue, void *work, gantry_error *err);

#endif
