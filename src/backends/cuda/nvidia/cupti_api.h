/* SPDX-License-Identifier: Apache-2.0 */
/** CUPTI, opened at run time: its ABI and the table of its functions. times/cupti.h says what it is used for. */
#ifndef GY_CUDA_NVIDIA_CUPTI_API_H
#define GY_CUDA_NVIDIA_CUPTI_API_H

#include "backends/cuda/nvidia/library.h"
#include <cuda.h>
#include <stdint.h>

/* cupti.h and its like, as far as they are used; the same from 11.8 to 13.0. */

enum {
    GY_CUPTI_OK = 0,
    GY_CUPTI_TAKEN = 39, /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
    GY_CUPTI_MEMCPY = 1, /* kinds of records */
    GY_CUPTI_MEMSET = 2,
    GY_CUPTI_KERNEL = 10, /* CONCURRENT_KERNEL: kernels go on to overlap */
    GY_CUPTI_PEER = 22,   /* MEMCPY2 */
    GY_CUPTI_DRIVER = 1,  /* domains of callbacks */
    GY_CUPTI_RESOURCE = 3,
    GY_CUPTI_CREATED = 13, /* of resources: GRAPHNODE_CREATED */
    GY_CUPTI_CLONED = 20,  /* GRAPHNODE_CLONED */
    GY_CUPTI_LEAST = 18    /* API version of CUDA 11.8 */
};

typedef struct gy_cupti_subscriber_st *gy_cupti_subscriber;
typedef void (*gy_cupti_callback)(void *user, int domain, uint32_t id, const void *data);

/* CUpti_CallbackData; site 0: the call begins. */
typedef struct gy_cupti_call_data {
    int site;
    const char *function;
    const void *parameters, *result;
    const char *symbol;
    CUcontext context;
    uint32_t context_id;
    uint64_t *data;
    uint32_t correlation;
} gy_cupti_call_data;

/* CUpti_GraphData, where CUpti_ResourceData has its descriptor. */
typedef struct gy_cupti_graph_data {
    CUgraph graph, original_graph;
    CUgraphNode node, original;
    int type; /* CUgraphNodeType */
} gy_cupti_graph_data;
typedef struct gy_cupti_resource_data {
    CUcontext context;
    CUstream stream;
    const gy_cupti_graph_data *graph;
} gy_cupti_resource_data;

/* How all records begin that are asked for. */
typedef struct gy_cupti_record {
    uint32_t kind, kind_has[3];
    uint64_t start, end; /* ns; both 0: not known */
    char rest[];
} gy_cupti_record;
/* Bytes from the beginning of CUpti_ActivityKernel5 to 10, Memcpy3 to 6 and Memset2 to 4, MemcpyPtoP2 to 4. */
enum {
    GY_CUPTI_KERNEL_CORRELATION = 92,
    GY_CUPTI_KERNEL_NODE = 144,
    GY_CUPTI_MEMORY_CORRELATION = 44,
    GY_CUPTI_MEMORY_NODE = 64,
    GY_CUPTI_PEER_CORRELATION = 60,
    GY_CUPTI_PEER_NODE = 72
};

#define GY_CUPTI_FUNCTIONS(X)                                                                                          \
    X(cuptiGetVersion, (uint32_t * version))                                                                           \
    X(cuptiSubscribe, (gy_cupti_subscriber * subscriber, gy_cupti_callback callback, void *user))                      \
    X(cuptiUnsubscribe, (gy_cupti_subscriber subscriber))                                                              \
    X(cuptiEnableDomain, (uint32_t enable, gy_cupti_subscriber subscriber, int domain))                                \
    X(cuptiEnableCallback, (uint32_t enable, gy_cupti_subscriber subscriber, int domain, uint32_t id))                 \
    X(cuptiActivityRegisterCallbacks,                                                                                  \
      (void (*request)(uint8_t * *buffer, size_t * size, size_t * records),                                            \
       void (*complete)(CUcontext context, uint32_t stream, uint8_t * buffer, size_t size, size_t valid)))             \
    X(cuptiActivityEnable, (int kind))                                                                                 \
    X(cuptiActivityDisable, (int kind))                                                                                \
    X(cuptiActivityFlushAll, (uint32_t forced))                                                                        \
    X(cuptiActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **record))                                     \
    X(cuptiGetTimestamp, (uint64_t * ns))                                                                              \
    X(cuptiGetGraphNodeId, (CUgraphNode node, uint64_t * id))

/* All return a CUptiResult. */
typedef struct gy_cupti_api {
    gy_library lib;
    uint32_t version; /* 18 to 28, then 130000 for 13.0 */
#define GY_X(name, parameters) int(*name) parameters;
    GY_CUPTI_FUNCTIONS(GY_X)
#undef GY_X
} gy_cupti_api;

/* Calls nothing but cuptiGetVersion. `driver_version` of CUDA, 0: any library will do. E_DEVICE: there is none, or it
 * is older than 11.8's; *why, a short text that stays, says it in few words. */
gantry_status gy_cupti_load(gy_cupti_api *api, int driver_version, const char **why, gantry_error *err);

#endif
