/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Dense linear algebra behind the host versions of gemm, potrf, trsm, syrk, getrf, getrs and qr: a table of functions.
 * A slow plain C table is always there; gantry-blas.so brings one that calls OpenBLAS. Matrices are in C order, `ld*`
 * elements from row to row; dtype is GANTRY_F32 or GANTRY_F64 (the plain gemm takes f16 and bf16 too, adding in float).
 */
#ifndef GY_KERNEL_LINALG_H
#define GY_KERNEL_LINALG_H

#include "base/module.h"
#include <gantry/kernel.h>
#include <stdbool.h>

typedef struct gy_matrix {
    void *data;
    int64_t rows, columns, ld;
} gy_matrix;

typedef struct gy_linalg {
    const char *name;
    /* c = alpha op(a) op(b) + beta c; beta 0 does not read c. */
    void (*gemm)(gantry_dtype dtype, int ta, int tb, double alpha, gy_matrix a, gy_matrix b, double beta, gy_matrix c);
    /* The lower triangle of a becomes its Cholesky factor. 0, or the order of the minor that is not positive. */
    int32_t (*potrf)(gantry_dtype dtype, gy_matrix a);
    /* b = b a^-T, a lower triangular. */
    void (*trsm)(gantry_dtype dtype, gy_matrix a, gy_matrix b);
    /* The lower triangle of c = alpha a a^T + beta c. */
    void (*syrk)(gantry_dtype dtype, double alpha, gy_matrix a, double beta, gy_matrix c);
    /* a, with at least as many rows as columns, becomes its factors L U, the ones on L's diagonal left out; row i was
     * exchanged with row pivots[i] - 1, in the order of i. 0, or the order of the first minor that is singular. */
    int32_t (*getrf)(gantry_dtype dtype, gy_matrix a, int32_t *pivots);
    /* b = L^-1 b of such factors, of which a has the first rows, as many as columns. */
    void (*lower)(gantry_dtype dtype, gy_matrix a, gy_matrix b);
    /* b = U^-1 L^-1 b of such factors; rows of b were exchanged before. */
    void (*getrs)(gantry_dtype dtype, gy_matrix a, gy_matrix b);
    /* a, with at least as many rows as columns, becomes R in its upper triangle and, below it, the vectors of its
     * reflections, whose first elements are 1; tau has their factors, one a column, of the dtype. 0, or below 0 what
     * LAPACKE says: no memory, or a number that is none. */
    int32_t (*geqrf)(gantry_dtype dtype, gy_matrix a, void *tau);
    /* Such an a becomes Q, as large as it; tau may be written to. The result as geqrf's. */
    int32_t (*orgqr)(gantry_dtype dtype, gy_matrix a, void *tau);
} gy_linalg;

/* gantry-blas.so (base/module.h), and the table to use. */
typedef struct gy_linalg_handle {
    gy_module module;
    const gy_linalg *table;
    bool alone; /* one thread of the device may call it at a time: there is no room for more */
} gy_linalg_handle;

/* gantry_kernel.open and .close of the kernels above: opens gantry-blas.so; without one, `plain`. The handle is a
 * gy_linalg_handle. Where memory is short it is `plain` too: OpenBLAS, which takes memory of its own for every thread
 * that calls it, waits for ever or ends the process where it gets none. */
gantry_status gy_linalg_open(void **handle, const gy_linalg *plain);
void gy_linalg_close(void *handle);

#endif
