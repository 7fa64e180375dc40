/* SPDX-License-Identifier: Apache-2.0 */
/* libcublasLt.so.13 for tests: products with a bias and an activation, on the fake driver. What a real cuBLASLt would
 * do wrong in silence ends the program: operands that lie at other multiples than the algorithm was asked for, less
 * workspace than that. */
#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

#include "columns.h"

#include <stdlib.h>
#include <string.h>

enum { WORKSPACE = 16384 };

#define FAIL_IF_TOLD(name)                                                                                             \
    do {                                                                                                               \
        int told_ = columns_failure(#name);                                                                            \
        if (told_)                                                                                                     \
            return (cublasStatus_t)told_;                                                                              \
    } while (0)

/* Handles of the library point to these. */
typedef struct layout {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t ld;
} layout;
typedef struct product {
    cublasComputeType_t compute;
    cudaDataType scale;
    cublasOperation_t op_a, op_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    const float *scale_a, *scale_b;
} product;
typedef struct preference {
    uint64_t workspace;
    uint32_t sums, a, b, c, d;
} preference;
/* In the data of an algorithm. */
typedef struct algorithm {
    uint32_t magic, a, b, d, epilogue;
} algorithm;
enum { MAGIC = 0x17A16011 };

static const layout *layout_of(cublasLtMatrixLayout_t handle)
{
    return (const layout *)(const void *)handle;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    FAIL_IF_TOLD(cublasLtCreate);
    *handle = calloc(1, 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type, uint64_t rows, uint64_t cols,
                                          int64_t ld)
{
    FAIL_IF_TOLD(cublasLtMatrixLayoutCreate);
    layout *l = calloc(1, sizeof *l);
    *l = (layout){ type, rows, cols, ld };
    *made = (cublasLtMatrixLayout_t)(void *)l;
    return ld >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute, cudaDataType_t scale)
{
    FAIL_IF_TOLD(cublasLtMatmulDescCreate);
    product *p = calloc(1, sizeof *p);
    *p = (product){ .compute = compute, .scale = scale, .op_a = CUBLAS_OP_N, .op_b = CUBLAS_OP_N };
    p->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    *made = (cublasLtMatmulDesc_t)(void *)p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

/* A value of the size that the attribute has. */
static cublasStatus_t put(void *to, size_t want, const void *from, size_t bytes)
{
    if (want != bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
#define PUT(member) put(&(member), sizeof(member), buf, bytes)

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void *buf, size_t bytes)
{
    FAIL_IF_TOLD(cublasLtMatmulDescSetAttribute);
    product *p = (product *)(void *)handle;
    switch ((int)attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return PUT(p->op_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return PUT(p->op_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return PUT(p->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return PUT(p->bias);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        return PUT(p->scale_a);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        return PUT(p->scale_b);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made)
{
    FAIL_IF_TOLD(cublasLtMatmulPreferenceCreate);
    preference *p = calloc(1, sizeof *p);
    *p = (preference){ 0, CUBLASLT_REDUCTION_SCHEME_MASK, 256, 256, 256, 256 };
    *made = (cublasLtMatmulPreference_t)(void *)p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *buf,
                                                    size_t bytes)
{
    FAIL_IF_TOLD(cublasLtMatmulPreferenceSetAttribute);
    preference *p = (preference *)(void *)handle;
    switch ((int)attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return PUT(p->workspace);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return PUT(p->sums);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return PUT(p->a);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return PUT(p->b);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return PUT(p->c);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return PUT(p->d);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

/* The documentation asks for rows of A, columns of B, and multiples of 16 bytes. */
static bool does_f8(const product *p, const layout *a, const layout *b, const layout *c, const preference *w)
{
    bool lies = p->op_a == CUBLAS_OP_T && p->op_b == CUBLAS_OP_N && p->epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    bool sized = a->rows % 16 == 0 && a->columns % 16 == 0 && b->rows == a->rows && a->ld % 16 == 0 && b->ld % 16 == 0;
    return lies && sized && w->a >= 16 && w->b >= 16 && w->d >= 16 && c->type != CUDA_R_64F;
}

static bool is_epilogue(cublasLtEpilogue_t epilogue)
{
    return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
           epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t wanted, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    FAIL_IF_TOLD(cublasLtMatmulAlgoGetHeuristic);
    const product *p = (const product *)(const void *)description;
    const preference *w = (const preference *)(const void *)wanted;
    algorithm chosen = { MAGIC, w->a, w->b, w->d, (uint32_t)p->epilogue };
    (void)handle;
    *count = 0;
    if (w->sums & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)
        columns_wrong("sums of 16 bits");
    if (most < 1 || layout_of(a)->type == CUDA_R_64F || layout_of(a)->type != layout_of(b)->type || c != d ||
        w->workspace < WORKSPACE || w->a < 2 || w->b < 2 || w->d < 2 || layout_of(a)->type == CUDA_R_8F_E5M2 ||
        (layout_of(a)->type == CUDA_R_8F_E4M3 && !does_f8(p, layout_of(a), layout_of(b), layout_of(c), w)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memset(&results[0], 0, sizeof results[0]);
    memcpy(&results[0].algo, &chosen, sizeof chosen);
    results[0].workspaceSize = WORKSPACE;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static void check_aligned(const void *at, uint32_t bytes, const char *what)
{
    if ((uintptr_t)at % bytes)
        columns_wrong("%s lies at no multiple of %u bytes, which the algorithm counts on", what, bytes);
}

static cublasStatus_t queue(const product *p, const job *shapes, const layout *a, const layout *b, const layout *c,
                            cudaStream_t stream)
{
    job j = *shapes;
    j.transpose_a = p->op_a == CUBLAS_OP_T;
    j.transpose_b = p->op_b == CUBLAS_OP_T;
    j.m = (int)c->rows;
    j.n = (int)c->columns;
    j.k = (int)(j.transpose_a ? a->rows : a->columns);
    if ((j.transpose_a ? a->columns : a->rows) != c->rows || (j.transpose_b ? b->rows : b->columns) != c->columns ||
        (int)(j.transpose_b ? b->columns : b->rows) != j.k || j.k == 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    j.bias = p->bias;
    j.activation = p->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS   ? RELU
                   : p->epilogue == CUBLASLT_EPILOGUE_GELU_BIAS ? GELU
                                                                : NO_ACTIVATION;
    return columns_queue(&j, stream) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t Adesc, const void *B, cublasLtMatrixLayout_t Bdesc,
                              const void *beta, const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspaceSizeInBytes, cudaStream_t stream)
{
    FAIL_IF_TOLD(cublasLtMatmul);
    const product *p = (const product *)(const void *)description;
    algorithm chosen;
    memcpy(&chosen, algo, sizeof chosen);
    (void)handle;
    if (chosen.magic != MAGIC || chosen.epilogue != (uint32_t)p->epilogue)
        columns_wrong("an algorithm that was not chosen for this product");
    if (!workspace || workspaceSizeInBytes < WORKSPACE)
        columns_wrong("less workspace than the algorithm wants");
    cudaDataType type = layout_of(Adesc)->type, result = layout_of(Ddesc)->type;
    bool is_f8 = type == CUDA_R_8F_E4M3;
    if ((!is_f8 && (!is_epilogue(p->epilogue) || !p->bias)) || C != D || Cdesc != Ddesc ||
        p->compute != CUBLAS_COMPUTE_32F || p->scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    check_aligned(A, chosen.a, "A");
    check_aligned(B, chosen.b, "B");
    check_aligned(D, chosen.d, "D");
    if (!is_f8)
        check_aligned(p->bias, chosen.d, "the bias");
    job j = { .kind = GEMM, .type = is_f8 ? E4M3 : type == CUDA_R_16F ? F16 : type == CUDA_R_16BF ? BF16 : F32 };
    j.wide = is_f8 && result == CUDA_R_32F;
    j.narrow = result == CUDA_R_16F ? F16 : BF16;
    j.scale_a = p->scale_a;
    j.scale_b = p->scale_b;
    j.alpha = (double)*(const float *)alpha;
    j.beta = (double)*(const float *)beta;
    j.a = (columns){ (void *)(uintptr_t)A, (int)layout_of(Adesc)->ld };
    j.b = (columns){ (void *)(uintptr_t)B, (int)layout_of(Bdesc)->ld };
    j.c = (columns){ D, (int)layout_of(Ddesc)->ld };
    j.workspace = workspace;
    j.workspace_bytes = workspaceSizeInBytes;
    return queue(p, &j, layout_of(Adesc), layout_of(Bdesc), layout_of(Ddesc), stream);
}
