/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cuDNN 9, opened at run time as cuBLAS is (blas.h): its convolutions, and what cudnn_graph.h makes graphs by. Its
 * headers do not come with the toolkit, so what is used of its ABI is declared here; tests/unit/cuda/test_cudnn.c holds
 * it against cudnn.h where that is.
 *
 * All three convolutions have functions of the same form: of two operands and a result, each with a descriptor. These
 * are x, w and y forward; w, dy and dx for the gradient by x; x, dy and dw for that by w.
 */
#ifndef GY_CUDA_NVIDIA_CUDNN_API_H
#define GY_CUDA_NVIDIA_CUDNN_API_H

#include "backends/cuda/nvidia/driver.h"
#include "backends/cuda/nvidia/library.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cudnn.h, as far as it is used. */
enum { GY_CUDNN_SUCCESS = 0, GY_CUDNN_BAD_PARAM = 2000, GY_CUDNN_NOT_SUPPORTED = 3000, GY_CUDNN_FAMILY = 1000 };
enum { GY_CUDNN_FLOAT = 0, GY_CUDNN_HALF = 2, GY_CUDNN_BFLOAT16 = 9 };
enum { GY_CUDNN_NCHW = 0, GY_CUDNN_CROSS_CORRELATION = 1, GY_CUDNN_DETERMINISTIC = 1 };
enum { GY_CUDNN_DEFAULT_MATH, GY_CUDNN_TENSOR_OP_MATH, GY_CUDNN_ALLOW_CONVERSION, GY_CUDNN_FMA_MATH };

/* cudnnConvolutionFwdAlgoPerf_t; that of the gradients is alike. */
typedef struct gy_cudnn_algorithm {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
} gy_cudnn_algorithm;

typedef int gy_cudnn_get(void *cudnn, void *a, void *b, void *convolution, void *c, int asked, int *found,
                         gy_cudnn_algorithm *list);
typedef int gy_cudnn_size(void *cudnn, void *a, void *b, void *convolution, void *c, int algorithm, size_t *bytes);
typedef int gy_cudnn_convolve(void *cudnn, const void *alpha, void *a, const void *a_at, void *b, const void *b_at,
                              void *convolution, int algorithm, void *workspace, size_t bytes, const void *beta,
                              void *c, void *c_at);

#define GY_CUDNN_FUNCTIONS(X)                                                                                          \
    X(size_t, cudnnGetVersion, (void))                                                                                 \
    X(size_t, cudnnGetCudartVersion, (void))                                                                           \
    X(const char *, cudnnGetErrorString, (int status))                                                                 \
    X(int, cudnnCreate, (void **cudnn))                                                                                \
    X(int, cudnnDestroy, (void *cudnn))                                                                                \
    X(int, cudnnSetStream, (void *cudnn, CUstream stream))                                                             \
    X(int, cudnnCreateTensorDescriptor, (void **made))                                                                 \
    X(int, cudnnSetTensor4dDescriptor, (void *to, int format, int type, int n, int c, int h, int w))                   \
    X(int, cudnnDestroyTensorDescriptor, (void *made))                                                                 \
    X(int, cudnnCreateFilterDescriptor, (void **made))                                                                 \
    X(int, cudnnSetFilter4dDescriptor, (void *to, int type, int format, int k, int c, int h, int w))                   \
    X(int, cudnnDestroyFilterDescriptor, (void *made))                                                                 \
    X(int, cudnnCreateConvolutionDescriptor, (void **made))                                                            \
    X(int, cudnnSetConvolution2dDescriptor,                                                                            \
      (void *to, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int mode,           \
       int computed_in))                                                                                               \
    X(int, cudnnSetConvolutionMathType, (void *to, int math))                                                          \
    X(int, cudnnDestroyConvolutionDescriptor, (void *made))                                                            \
    X(int, cudnnBackendCreateDescriptor, (int kind, void **made))                                                      \
    X(int, cudnnBackendDestroyDescriptor, (void *made))                                                                \
    X(int, cudnnBackendSetAttribute, (void *to, int name, int type, int64_t count, const void *values))                \
    X(int, cudnnBackendGetAttribute,                                                                                   \
      (const void *of, int name, int type, int64_t asked, int64_t *found, void *values))                               \
    X(int, cudnnBackendFinalize, (void *made))                                                                         \
    X(int, cudnnBackendExecute, (void *cudnn, void *plan, void *pack))

/* Forward, by x and by w, as gy_conv_way has them. */
#define GY_CUDNN_WAYS(X)                                                                                               \
    X(0, cudnnGetConvolutionForwardAlgorithm_v7, cudnnGetConvolutionForwardWorkspaceSize, cudnnConvolutionForward)     \
    X(1, cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnGetConvolutionBackwardDataWorkspaceSize,                    \
      cudnnConvolutionBackwardData)                                                                                    \
    X(2, cudnnGetConvolutionBackwardFilterAlgorithm_v7, cudnnGetConvolutionBackwardFilterWorkspaceSize,                \
      cudnnConvolutionBackwardFilter)
enum { GY_CUDNN_WAYS_COUNT = 3 };

typedef struct gy_cudnn_way {
    gy_cudnn_get *get;
    gy_cudnn_size *size;
    gy_cudnn_convolve *convolve;
    const char *get_name, *size_name, *convolve_name;
} gy_cudnn_way;

typedef struct gy_cudnn {
    gy_library lib;
    gy_cudnn_way way[GY_CUDNN_WAYS_COUNT];
#define GY_X(type, name, arguments) type(*name) arguments;
    GY_CUDNN_FUNCTIONS(GY_X)
#undef GY_X
} gy_cudnn;

/* As gy_blas_open. E_DEVICE also: it is older than 9, or made for a CUDA that the driver is too old for. */
gantry_status gy_cudnn_open(gy_cudnn *cudnn, int driver_version, gantry_error *err);

/* True for CUDNN_STATUS_NOT_SUPPORTED and its kinds: cuDNN cannot do it, which is no error. */
static inline bool gy_cudnn_refuses(int status)
{
    return status / GY_CUDNN_FAMILY == GY_CUDNN_NOT_SUPPORTED / GY_CUDNN_FAMILY;
}

#endif
