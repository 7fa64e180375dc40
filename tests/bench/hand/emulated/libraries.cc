/* SPDX-License-Identifier: Apache-2.0 */
/* Products in f32 of cuBLAS, and collectives of f32 of NCCL, as programs by hand call them: sums are made in double. */
#include "runtime.h"

#include <cublas_v2.h>
#include <nccl.h>

#include <cstdlib>
#include <vector>

/* ---- cuBLAS ---- */

struct matrix {
    const float *at;
    long pitch, step;
    bool turned;
    double element(long row, long column) const { return turned ? at[row * pitch + column] : at[column * pitch + row]; }
    matrix number(long i) const { return { at + i * step, pitch, step, turned }; }
};

static void multiply(long m, long n, long k, float alpha, matrix a, matrix b, float beta, float *c, long pitch)
{
    for (long column = 0; column < n; column++)
        for (long row = 0; row < m; row++) {
            double sum = 0;
            for (long i = 0; i < k; i++)
                sum += a.element(row, i) * b.element(i, column);
            float *to = &c[column * pitch + row];
            *to = (float)(alpha * sum + (beta != 0 ? (double)beta * *to : 0));
        }
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = (cublasHandle_t) new cudaStream_t;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    *(cudaStream_t *)handle = stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m,
                                          int n, int k, const void *alpha, const void *a, cudaDataType a_type, int lda,
                                          long long a_step, const void *b, cudaDataType b_type, int ldb,
                                          long long b_step, const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long c_step, int count, cublasComputeType_t compute, cublasGemmAlgo_t)
{
    if (a_type != CUDA_R_32F || b_type != CUDA_R_32F || c_type != CUDA_R_32F || compute != CUBLAS_COMPUTE_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (m < 1 || n < 1 || k < 1 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m)
        return CUBLAS_STATUS_INVALID_VALUE;
    float by = *(const float *)alpha, old = *(const float *)beta;
    matrix first = { (const float *)a, lda, (long)a_step, ta != CUBLAS_OP_N };
    matrix second = { (const float *)b, ldb, (long)b_step, tb != CUBLAS_OP_N };
    give_work(*(cudaStream_t *)handle, [=] {
        for (long i = 0; i < count; i++)
            multiply(m, n, k, by, first.number(i), second.number(i), old, (float *)c + i * c_step, ldc);
    });
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c,
                                      c_type, ldc, 0, 1, compute, algorithm);
}

/* ---- NCCL: a call of each rank between the begin and the end of a group is one collective ---- */

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER };

struct of_rank {
    const float *in;
    float *out;
    size_t count;
    cudaStream_t stream;
    cudaEvent_t event;
};

struct collective {
    kind what;
    std::vector<of_rank> rank; /* in order */
};

static int ranks;
static std::vector<collective> group;

ncclResult_t ncclCommInitAll(ncclComm_t *all, int count, const int *)
{
    ranks = count;
    for (int i = 0; i < count; i++)
        all[i] = (ncclComm_t)(uintptr_t)(i + 1);
    return ncclSuccess;
}
ncclResult_t ncclGroupStart()
{
    group.clear();
    return ncclSuccess;
}

/* The first collective of the group that this rank has no part in yet; ranks call one after the other. */
static ncclResult_t take_part(kind what, const void *in, void *out, size_t count, ncclComm_t comm, cudaStream_t stream)
{
    size_t rank = (size_t)(uintptr_t)comm - 1, at = 0;
    while (at < group.size() && group[at].rank.size() > rank)
        at++;
    if (at == group.size())
        group.push_back({ what, {} });
    collective &c = group[at];
    if (c.what != what || c.rank.size() != rank || (rank && c.rank[0].count != count))
        return ncclInvalidUsage;
    c.rank.push_back({ (const float *)in, (float *)out, count, stream, nullptr });
    return cudaEventCreateWithFlags(&c.rank.back().event, 0) ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t stream)
{
    return take_part(ALL_REDUCE, in, out, count, comm, stream);
}
ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t, ncclComm_t comm,
                           cudaStream_t stream)
{
    return take_part(ALL_GATHER, in, out, count, comm, stream);
}
ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t, ncclRedOp_t, ncclComm_t comm,
                               cudaStream_t stream)
{
    return take_part(REDUCE_SCATTER, in, out, count, comm, stream);
}

static void carry_out(const collective &c)
{
    size_t count = c.rank[0].count, all = c.what == ALL_REDUCE ? count : count * c.rank.size();
    std::vector<float> result(all);
    for (size_t i = 0; i < all; i++) {
        double sum = 0;
        for (size_t r = 0; r < c.rank.size(); r++)
            sum += c.what == ALL_GATHER ? (i / count == r ? c.rank[r].in[i % count] : 0) : c.rank[r].in[i];
        result[i] = (float)sum;
    }
    for (size_t r = 0; r < c.rank.size(); r++)
        memcpy(c.rank[r].out, &result[c.what == REDUCE_SCATTER ? r * count : 0],
               (c.what == REDUCE_SCATTER ? count : all) * sizeof(float));
}

/* The first rank's stream waits for the others and does it all, and these wait for it. */
static void give_collective(const collective &c)
{
    const of_rank &first = c.rank[0];
    for (size_t r = 1; r < c.rank.size(); r++) {
        give_record(c.rank[r].stream, c.rank[r].event);
        give_wait(first.stream, c.rank[r].event);
    }
    give_work(first.stream, [c] { carry_out(c); });
    give_record(first.stream, first.event);
    for (size_t r = 1; r < c.rank.size(); r++)
        give_wait(c.rank[r].stream, first.event);
}

ncclResult_t ncclGroupEnd()
{
    for (const collective &c : group) {
        if ((int)c.rank.size() != ranks)
            return ncclInvalidUsage;
        give_collective(c);
    }
    return ncclSuccess;
}
