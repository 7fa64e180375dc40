/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The CUDA driver API, opened at run time: nothing here is linked with libcuda. A member of gy_driver has the name that
 * cuda.h gives the function, so `d->cuMemAlloc(...)` calls what cuda.h declares.
 */
#ifndef GY_CUDA_NVIDIA_DRIVER_H
#define GY_CUDA_NVIDIA_DRIVER_H

#include <cuda.h>
#include <gantry/status.h>
#include <stdbool.h>

#if CUDA_VERSION >= 12030
#define GY_CUDA_CONDITIONS
#endif

#define GY_CUDA_FUNCTIONS(X)                                                                                           \
    X(cuInit)                                                                                                          \
    X(cuDriverGetVersion)                                                                                              \
    X(cuGetErrorName)                                                                                                  \
    X(cuGetErrorString)                                                                                                \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGet)                                                                                                     \
    X(cuDeviceGetName)                                                                                                 \
    X(cuDeviceGetAttribute)                                                                                            \
    X(cuDeviceTotalMem)                                                                                                \
    X(cuDeviceGetPCIBusId)                                                                                             \
    X(cuDeviceCanAccessPeer)                                                                                           \
    X(cuDevicePrimaryCtxGetState)                                                                                      \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuDevicePrimaryCtxRelease)                                                                                       \
    X(cuCtxGetCurrent)                                                                                                 \
    X(cuCtxSetCurrent)                                                                                                 \
    X(cuCtxGetDevice)                                                                                                  \
    X(cuCtxEnablePeerAccess)                                                                                           \
    X(cuMemGetInfo)                                                                                                    \
    X(cuMemAlloc)                                                                                                      \
    X(cuMemFree)                                                                                                       \
    X(cuMemHostAlloc)                                                                                                  \
    X(cuMemFreeHost)                                                                                                   \
    X(cuMemHostRegister)                                                                                               \
    X(cuMemHostUnregister)                                                                                             \
    X(cuPointerGetAttributes)                                                                                          \
    X(cuMemGetAddressRange)                                                                                            \
    X(cuMemcpyHtoDAsync)                                                                                               \
    X(cuMemcpyDtoHAsync)                                                                                               \
    X(cuMemcpyDtoDAsync)                                                                                               \
    X(cuMemcpyPeerAsync)                                                                                               \
    X(cuMemsetD8Async)                                                                                                 \
    X(cuMemsetD16Async)                                                                                                \
    X(cuMemsetD32Async)                                                                                                \
    X(cuMemsetD2D32Async)                                                                                              \
    X(cuStreamCreate)                                                                                                  \
    X(cuStreamCreateWithPriority)                                                                                      \
    X(cuCtxGetStreamPriorityRange)                                                                                     \
    X(cuStreamDestroy)                                                                                                 \
    X(cuStreamWaitEvent)                                                                                               \
    X(cuStreamGetCtx)                                                                                                  \
    X(cuEventCreate)                                                                                                   \
    X(cuEventDestroy)                                                                                                  \
    X(cuEventRecord)                                                                                                   \
    X(cuEventQuery)                                                                                                    \
    X(cuLaunchHostFunc)                                                                                                \
    X(cuLaunchCooperativeKernel)                                                                                       \
    X(cuLaunchKernel)                                                                                                  \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleLoadDataEx)                                                                                              \
    X(cuModuleUnload)                                                                                                  \
    X(cuModuleGetFunction)                                                                                             \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                                     \
    X(cuFuncGetAttribute)                                                                                              \
    X(cuFuncSetAttribute)                                                                                              \
    X(cuStreamBeginCapture)                                                                                            \
    X(cuStreamEndCapture)                                                                                              \
    X(cuGraphInstantiateWithFlags)                                                                                     \
    X(cuGraphUpload)                                                                                                   \
    X(cuGraphLaunch)                                                                                                   \
    X(cuGraphExecDestroy)                                                                                              \
    X(cuGraphDestroy)

typedef struct gy_driver {
    void *handle; /* of dlopen */
#define GY_X(name) __typeof__(name) *name;
    GY_CUDA_FUNCTIONS(GY_X)
#undef GY_X
    /* cuda.h of CUDA 13 gives this name to a function that drivers before CUDA 12.8 do not have. */
    CUresult (*event_elapsed)(float *ms, CUevent start, CUevent end);
    /* cuLaunchKernelEx; NULL: the driver is older than CUDA 11.8. */
    __typeof__(cuLaunchKernelEx) *launch_ex;
    /* cuStreamWaitValue64_v2, cuStreamWriteValue64_v2; NULL: the driver is older than CUDA 11.7. */
    __typeof__(cuStreamWaitValue64) *wait_value;
    __typeof__(cuStreamWriteValue64) *write_value;
    /* cuLinkCreate and others; NULL, all of them: the driver has no linker. */
    __typeof__(cuLinkCreate) *link_create;
    __typeof__(cuLinkAddData) *link_add;
    __typeof__(cuLinkComplete) *link_complete;
    __typeof__(cuLinkDestroy) *link_destroy;
    /* cuFuncGetParamInfo; NULL: the driver is older than CUDA 12.4. */
    CUresult (*param_info)(CUfunction function, size_t index, size_t *offset, size_t *bytes);
    /* Functions that put a conditional node into a graph that is captured, by the names of CUDA 12.3, which later
     * headers give to functions without these numbers. NULL: the driver, or the header, is older. */
#ifdef GY_CUDA_CONDITIONS
    CUresult (*condition)(CUgraphConditionalHandle *handle, CUgraph graph, CUcontext context, unsigned value,
                          unsigned flags); /* cuGraphConditionalHandleCreate */
    CUresult (*add_node)(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *edges,
                         size_t befores, CUgraphNodeParams *params);   /* cuGraphAddNode_v2 */
    CUresult (*set_node)(CUgraphNode node, CUgraphNodeParams *params); /* cuGraphNodeSetParams */
    CUresult (*capture_info)(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                             const CUgraphNode **front, const CUgraphEdgeData **edges,
                             size_t *fronts); /* cuStreamGetCaptureInfo_v3 */
    CUresult (*capture_behind)(CUstream stream, CUgraphNode *front, const CUgraphEdgeData *edges, size_t fronts,
                               unsigned flags); /* cuStreamUpdateCaptureDependencies_v2 */
    CUresult (*capture_into)(CUstream stream, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *edges,
                             size_t befores, CUstreamCaptureMode mode); /* cuStreamBeginCaptureToGraph */
#endif
    bool conditions; /* all of these are there */
} gy_driver;

/* Opens libcuda.so.1 and finds every function, without calling any. E_DEVICE: the library or the first function that is
 * not there. */
gantry_status gy_driver_open(gy_driver *driver, gantry_error *err);
void gy_driver_close(gy_driver *driver); /* one that is not open is fine */
/* Open, initialised, and with a device: *devices >= 1. */
gantry_status gy_driver_start(gy_driver *driver, int *devices, gantry_error *err);

/* The compute capability: 90 for 9.0. E_DEVICE. */
gantry_status gy_driver_capability(const gy_driver *driver, CUdevice device, int *capability, gantry_error *err);
/* True: the current context's device has tensor cores for floats that are split in two (kernels/mma_f32.cuh). */
bool gy_driver_splits_floats(const gy_driver *driver);

/* True if the environment has the word for a switch of this back end, such as "off" for GANTRY_CUDA_PEERS. */
bool gy_driver_switch(const char *name, const char *word);

/* True if the driver returns from a launch only when that has ended, before what it waits for is launched. */
bool gy_driver_blocks(void);
/* True if the process is a client of MPS whose part of a GPU is less than all of it: fewer blocks than the GPU has room
 * for run at once. */
bool gy_driver_has_part(void);
/* True if a debugger of GPU code is at work. */
bool gy_driver_debugged(const gy_driver *driver);

/* True if the GPU may reach the other's memory: as the driver says, unless GANTRY_CUDA_PEERS is "off" (where access is
 * broken, or to see what it is worth). */
bool gy_driver_peers_off(void);
bool gy_driver_can_reach(const gy_driver *driver, CUdevice from, CUdevice to);
/* Lets the current context, of `from`, reach memory of `to`; that it does already is success. */
bool gy_driver_reach(const gy_driver *driver, CUdevice from, CUdevice to, CUcontext to_context);

/* Makes current what was, in the thread of the caller, who would else be left with a context that is about to go: so it
 * is tried again where it fails. */
void gy_driver_give_back(const gy_driver *driver, CUcontext context);
/* "%s: CUDA_ERROR_X (2): out of memory", native = the code; E_DEVICE. `what` says what failed and where. */
gantry_status gy_driver_fail(const gy_driver *driver, CUresult code, const char *what, gantry_error *err);

#endif
