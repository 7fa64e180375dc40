// SPDX-License-Identifier: Apache-2.0
// Factors of one matrix by cuSOLVER: Cholesky's, and LU without pivoting.
#pragma once
#include "blas.h"

#include <cusolverDn.h>
#include <memory>

inline int potrf_room(cusolverDnHandle_t h, long n, double *a, long lda)
{
    int room;
    LIBRARY(cusolverDnDpotrf_bufferSize(h, CUBLAS_FILL_MODE_LOWER, (int)n, a, (int)lda, &room));
    return room;
}
inline int potrf_room(cusolverDnHandle_t h, long n, float *a, long lda)
{
    int room;
    LIBRARY(cusolverDnSpotrf_bufferSize(h, CUBLAS_FILL_MODE_LOWER, (int)n, a, (int)lda, &room));
    return room;
}
inline int getrf_room(cusolverDnHandle_t h, long n, double *a, long lda)
{
    int room;
    LIBRARY(cusolverDnDgetrf_bufferSize(h, (int)n, (int)n, a, (int)lda, &room));
    return room;
}
inline int getrf_room(cusolverDnHandle_t h, long n, float *a, long lda)
{
    int room;
    LIBRARY(cusolverDnSgetrf_bufferSize(h, (int)n, (int)n, a, (int)lda, &room));
    return room;
}
inline void potrf_call(cusolverDnHandle_t h, long n, double *a, long lda, double *work, int room, int *info)
{
    LIBRARY(cusolverDnDpotrf(h, CUBLAS_FILL_MODE_LOWER, (int)n, a, (int)lda, work, room, info));
}
inline void potrf_call(cusolverDnHandle_t h, long n, float *a, long lda, float *work, int room, int *info)
{
    LIBRARY(cusolverDnSpotrf(h, CUBLAS_FILL_MODE_LOWER, (int)n, a, (int)lda, work, room, info));
}
inline void getrf_call(cusolverDnHandle_t h, long n, double *a, long lda, double *work, int *info)
{
    LIBRARY(cusolverDnDgetrf(h, (int)n, (int)n, a, (int)lda, work, nullptr, info));
}
inline void getrf_call(cusolverDnHandle_t h, long n, float *a, long lda, float *work, int *info)
{
    LIBRARY(cusolverDnSgetrf(h, (int)n, (int)n, a, (int)lda, work, nullptr, info));
}

// One stream of one GPU, with the workspace for matrices of n columns that lie lda apart at most.
template <typename T> class Factor
{
  public:
    Factor(cudaStream_t stream, long n, long lda) : n_(n), lda_(lda)
    {
        LIBRARY(cusolverDnCreate(&handle_));
        LIBRARY(cusolverDnSetStream(handle_, stream));
        room_ = std::max(potrf_room(handle_, n, (T *)nullptr, lda), getrf_room(handle_, n, (T *)nullptr, lda));
        work_ = new_array<T>((size_t)room_);
        info_ = new_array<int>(1);
    }
    void potrf(T *a) { potrf(a, lda_); }
    void potrf(T *a, long lda) { potrf_call(handle_, n_, a, lda, work_, room_, info_); }
    void getrf(T *a) { getrf_call(handle_, n_, a, lda_, work_, info_); }

  private:
    cusolverDnHandle_t handle_;
    long n_, lda_;
    int room_, *info_;
    T *work_;
};
