/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that the fake cuBLAS and cuSOLVER queue: on matrices in column order, done as BLAS and LAPACK define them
 * when the stream comes to it. Sums are of doubles, whatever the type. */
#ifndef FAKE_CUDA_COLUMNS_H
#define FAKE_CUDA_COLUMNS_H

#include "control.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum element { F16, BF16, F32, F64, E4M3 } element;
typedef enum activation { NO_ACTIVATION, RELU, GELU } activation;
typedef enum job_kind { GEMM, TRSM, SYRK, POTRF, GETRF, GEQRF, ORGQR } job_kind;

/* Element (i, j) is at i + j * ld. */
typedef struct columns {
    void *at;
    int ld;
} columns;

typedef struct job {
    job_kind kind;
    element type;
    bool wide;                      /* gemm: c is of F32, whatever the type of a and b */
    element narrow;                 /* gemm of E4M3: what c is of, where it is not wide */
    const float *scale_a, *scale_b; /* gemm: in device memory; NULL: 1 */
    bool transpose_a, transpose_b, right, upper, unit;
    int m, n, k;
    double alpha, beta;
    columns a, b, c; /* written: c of gemm and syrk, b of trsm and geqrf (tau), a of factorisations */
    int batch;       /* gemm: so many of them; 0: one. Matrix i is `step_` bytes x i further, or, */
    int64_t step_a, step_b, step_c;
    const void *const *list_a, *const *list_b; /* where there are lists in device memory, the i-th of each */
    void *const *list_c;
    const void *bias; /* gemm: one element for each row of c, then an activation; NULL: neither */
    activation activation;
    int *info, *pivots;
    void *workspace;
    size_t workspace_bytes;
} job;

/* Element i of those that lie one behind the other. */
double columns_load(element type, const void *at, int64_t i);
void columns_store(element type, void *at, int64_t i, double x);

/* Queues it on the stream as one kernel. The workspace is used, so that it had better be there. With FAKE_LINALG_LOADS
 * (any number; another one begins anew), the first call of each kind, type and size on a device counts as "load by a
 * library" (fakeCudaCalls). */
CUresult columns_queue(const job *j, CUstream stream);
/* Ends the program with a line on standard error: a real library would have let it pass. */
_Noreturn void columns_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* FAKE_LINALG_FAIL="cublasGemmEx:13": every call of that function returns 13; 0: it goes on. */
int columns_failure(const char *function);

#endif
