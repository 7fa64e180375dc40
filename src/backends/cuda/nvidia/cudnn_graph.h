/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Operation graphs of cuDNN 9 (its "backend" API): a few tensors of four axes, operations on them, and the plan that
 * cuDNN makes of them, in which what lies between two operations need not be in memory. cuDNN fuses those graphs that
 * it knows by their form and refuses others, so a graph has to be of the form that its documentation has.
 *
 * A graph is built without looking at errors: the first one stays, and gy_cudnn_plan_make tells it.
 */
#ifndef GY_CUDA_NVIDIA_CUDNN_GRAPH_H
#define GY_CUDA_NVIDIA_CUDNN_GRAPH_H

#include "backends/cuda/nvidia/cudnn_api.h"

/* cudnn_graph.h of cuDNN, as far as it is used. */
#define GY_CUDNN_CONSTANTS(X)                                                                                          \
    X(BACKEND_POINTWISE_DESCRIPTOR, 0)                                                                                 \
    X(BACKEND_ENGINECFG_DESCRIPTOR, 3)                                                                                 \
    X(BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                                                                                \
    X(BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                                                                            \
    X(BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)                                                                      \
    X(BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                                                                           \
    X(BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                                                                             \
    X(BACKEND_TENSOR_DESCRIPTOR, 17)                                                                                   \
    X(BACKEND_MATMUL_DESCRIPTOR, 18)                                                                                   \
    X(BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19)                                                                         \
    X(BACKEND_REDUCTION_DESCRIPTOR, 21)                                                                                \
    X(BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22)                                                                      \
    X(BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31)                                                                        \
    X(ATTR_POINTWISE_MODE, 0)                                                                                          \
    X(ATTR_POINTWISE_MATH_PREC, 1)                                                                                     \
    X(ATTR_POINTWISE_AXIS, 9)                                                                                          \
    X(ATTR_ENGINEHEUR_MODE, 200)                                                                                       \
    X(ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                                                                            \
    X(ATTR_ENGINEHEUR_RESULTS, 202)                                                                                    \
    X(ATTR_EXECUTION_PLAN_HANDLE, 400)                                                                                 \
    X(ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                                                                          \
    X(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                                                                         \
    X(ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)                                                                     \
    X(ATTR_OPERATION_POINTWISE_XDESC, 751)                                                                             \
    X(ATTR_OPERATION_POINTWISE_BDESC, 752)                                                                             \
    X(ATTR_OPERATION_POINTWISE_YDESC, 753)                                                                             \
    X(ATTR_OPERATION_POINTWISE_TDESC, 758)                                                                             \
    X(ATTR_OPERATIONGRAPH_HANDLE, 800)                                                                                 \
    X(ATTR_OPERATIONGRAPH_OPS, 801)                                                                                    \
    X(ATTR_TENSOR_BYTE_ALIGNMENT, 900)                                                                                 \
    X(ATTR_TENSOR_DATA_TYPE, 901)                                                                                      \
    X(ATTR_TENSOR_DIMENSIONS, 902)                                                                                     \
    X(ATTR_TENSOR_STRIDES, 903)                                                                                        \
    X(ATTR_TENSOR_UNIQUE_ID, 906)                                                                                      \
    X(ATTR_TENSOR_IS_VIRTUAL, 907)                                                                                     \
    X(ATTR_TENSOR_IS_BY_VALUE, 908)                                                                                    \
    X(ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                                                                              \
    X(ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                                                                           \
    X(ATTR_VARIANT_PACK_WORKSPACE, 1003)                                                                               \
    X(ATTR_MATMUL_COMP_TYPE, 1500)                                                                                     \
    X(ATTR_OPERATION_MATMUL_ADESC, 1520)                                                                               \
    X(ATTR_OPERATION_MATMUL_BDESC, 1521)                                                                               \
    X(ATTR_OPERATION_MATMUL_CDESC, 1522)                                                                               \
    X(ATTR_OPERATION_MATMUL_DESC, 1523)                                                                                \
    X(ATTR_REDUCTION_OPERATOR, 1600)                                                                                   \
    X(ATTR_REDUCTION_COMP_TYPE, 1601)                                                                                  \
    X(ATTR_OPERATION_REDUCTION_XDESC, 1610)                                                                            \
    X(ATTR_OPERATION_REDUCTION_YDESC, 1611)                                                                            \
    X(ATTR_OPERATION_REDUCTION_DESC, 1612)                                                                             \
    X(ATTR_OPERATION_RESHAPE_XDESC, 2200)                                                                              \
    X(ATTR_OPERATION_RESHAPE_YDESC, 2201)                                                                              \
    X(TYPE_HANDLE, 0)                                                                                                  \
    X(TYPE_DATA_TYPE, 1)                                                                                               \
    X(TYPE_BOOLEAN, 2)                                                                                                 \
    X(TYPE_INT64, 3)                                                                                                   \
    X(TYPE_VOID_PTR, 6)                                                                                                \
    X(TYPE_HEUR_MODE, 8)                                                                                               \
    X(TYPE_POINTWISE_MODE, 14)                                                                                         \
    X(TYPE_BACKEND_DESCRIPTOR, 15)                                                                                     \
    X(TYPE_REDUCTION_OPERATOR_TYPE, 18)                                                                                \
    X(POINTWISE_ADD, 0)                                                                                                \
    X(POINTWISE_MUL, 1)                                                                                                \
    X(POINTWISE_DIV, 6)                                                                                                \
    X(POINTWISE_SUB, 9)                                                                                                \
    X(POINTWISE_EXP, 13)                                                                                               \
    X(POINTWISE_LOG, 15)                                                                                               \
    X(POINTWISE_CMP_GE, 303)                                                                                           \
    X(POINTWISE_GEN_INDEX, 501)                                                                                        \
    X(POINTWISE_BINARY_SELECT, 601)                                                                                    \
    X(REDUCE_TENSOR_ADD, 0)                                                                                            \
    X(REDUCE_TENSOR_MAX, 3)                                                                                            \
    X(HEUR_MODE_FALLBACK, 2)                                                                                           \
    X(HEUR_MODE_A, 3)                                                                                                  \
    X(DATA_INT32, 4)                                                                                                   \
    X(DATA_BOOLEAN, 11)

enum {
#define GY_X(name, value) GY_CUDNN_##name = value,
    GY_CUDNN_CONSTANTS(GY_X)
#undef GY_X
};

enum { GY_CUDNN_AXES = 4, GY_CUDNN_GRAPH_PARTS = 160, GY_CUDNN_GRAPH_OPERATIONS = 32 };

/* A tensor of a graph. `id` is what gives it memory when the plan is run; 0: there is none. */
typedef struct gy_cudnn_tensor {
    int type;
    int64_t extent[GY_CUDNN_AXES], stride[GY_CUDNN_AXES]; /* in elements */
    int64_t id;
    void *descriptor;
} gy_cudnn_tensor;

typedef struct gy_cudnn_graph {
    const gy_cudnn *api;
    void *cudnn;
    int64_t tensors;
    void *part[GY_CUDNN_GRAPH_PARTS]; /* all descriptors that were made, which a plan needs as long as it is there */
    size_t parts;
    void *operation[GY_CUDNN_GRAPH_OPERATIONS];
    size_t operations;
    int status;       /* of the first call that failed */
    const char *call; /* its name */
} gy_cudnn_graph;

typedef struct gy_cudnn_plan {
    gy_cudnn_graph graph;
    void *plan;
    size_t bytes; /* of the workspace */
} gy_cudnn_plan;

/* In memory, its elements in C order. */
gy_cudnn_tensor gy_cudnn_given(gy_cudnn_graph *g, int type, const int64_t extent[GY_CUDNN_AXES]);
/* In memory, or between two operations as one there would be: so many elements from an element to the next of an axis.
 */
gy_cudnn_tensor gy_cudnn_strided(gy_cudnn_graph *g, int type, const int64_t extent[GY_CUDNN_AXES],
                                 const int64_t stride[GY_CUDNN_AXES], bool between);
/* Between two operations, in C order, or turned: with the last two axes exchanged. */
gy_cudnn_tensor gy_cudnn_between(gy_cudnn_graph *g, int type, const int64_t extent[GY_CUDNN_AXES], bool turned);
/* One number in memory of the host, which is read when the plan is run. */
gy_cudnn_tensor gy_cudnn_number(gy_cudnn_graph *g, int type);

/* y = mode(x, b, t) of each element, b and t broadcast to x; computed in this type. NULL: there is none. `axis` is that
 * of GEN_INDEX. */
void gy_cudnn_each(gy_cudnn_graph *g, int mode, int type, const gy_cudnn_tensor *x, const gy_cudnn_tensor *b,
                   const gy_cudnn_tensor *t, const gy_cudnn_tensor *y);
void gy_cudnn_index(gy_cudnn_graph *g, int64_t axis, const gy_cudnn_tensor *x, const gy_cudnn_tensor *y);
/* y has 1, or fewer elements, along the axes that are reduced. */
void gy_cudnn_reduce(gy_cudnn_graph *g, int operation, const gy_cudnn_tensor *x, const gy_cudnn_tensor *y);
/* c = a b of the last two axes, in f32; the axes before them are broadcast. */
void gy_cudnn_multiply(gy_cudnn_graph *g, const gy_cudnn_tensor *a, const gy_cudnn_tensor *b, const gy_cudnn_tensor *c);
/* y is x with its last two axes exchanged. */
void gy_cudnn_reshape(gy_cudnn_graph *g, const gy_cudnn_tensor *x, const gy_cudnn_tensor *y);

/* The first plan of cuDNN's heuristics for p->graph that wants no more than `most` bytes. Returns a status of cuDNN,
 * and p->graph.call; one of GY_CUDNN_NOT_SUPPORTED: there is none, which is no error. */
int gy_cudnn_plan_make(gy_cudnn_plan *p, size_t most);
/* Queues it on the stream of its handle: tensors by `id` at `at`, ids of 0 left out. As gy_cudnn_plan_make. */
int gy_cudnn_plan_run(gy_cudnn_plan *p, int count, const int64_t *id, void *const *at, void *workspace);
void gy_cudnn_plan_free(gy_cudnn_plan *p);

#endif
