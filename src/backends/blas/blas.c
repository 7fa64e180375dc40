/* SPDX-License-Identifier: Apache-2.0 */
/* gantry-blas.so: the table of kernel/linalg.h over OpenBLAS (CBLAS and LAPACKE). OpenBLAS is told to use one thread:
 * the threads of a device call it for bands of a matrix (kernels/linalg.c), at places that do not depend on how many
 * they are, while those of OpenBLAS would cut by their number, so that other bits came out, and are shared by all
 * devices. That holds for the whole process, which is why this is a module and not a part of the library. */
#include "gantry_build_id.h"
#include "kernel/linalg.h"
#include <cblas.h>
#include <lapacke.h>

static CBLAS_TRANSPOSE op(int transposed)
{
    return transposed ? CblasTrans : CblasNoTrans;
}

/* Elements from row to row. Matrices without columns have 0, which BLAS refuses in words on standard output, leaving c
 * as it is. */
static int step_of(gy_matrix m)
{
    return m.ld > 0 ? (int)m.ld : 1;
}

static void gemm(gantry_dtype dtype, int ta, int tb, double alpha, gy_matrix a, gy_matrix b, double beta, gy_matrix c)
{
    int m = (int)c.rows, n = (int)c.columns, k = (int)(ta ? a.rows : a.columns);
    int lda = step_of(a), ldb = step_of(b), ldc = step_of(c);
    if (dtype == GANTRY_F32)
        cblas_sgemm(CblasRowMajor, op(ta), op(tb), m, n, k, (float)alpha, a.data, lda, b.data, ldb, (float)beta, c.data,
                    ldc);
    else
        cblas_dgemm(CblasRowMajor, op(ta), op(tb), m, n, k, alpha, a.data, lda, b.data, ldb, beta, c.data, ldc);
}

static int32_t potrf(gantry_dtype dtype, gy_matrix a)
{
    lapack_int n = (lapack_int)a.rows, ld = step_of(a);
    return (int32_t)(dtype == GANTRY_F32 ? LAPACKE_spotrf(LAPACK_ROW_MAJOR, 'L', n, a.data, ld)
                                         : LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', n, a.data, ld));
}

static void trsm(gantry_dtype dtype, gy_matrix a, gy_matrix b)
{
    int m = (int)b.rows, n = (int)b.columns, lda = step_of(a), ldb = step_of(b);
    if (dtype == GANTRY_F32)
        cblas_strsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, m, n, 1, a.data, lda, b.data, ldb);
    else
        cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, m, n, 1, a.data, lda, b.data, ldb);
}

static void syrk(gantry_dtype dtype, double alpha, gy_matrix a, double beta, gy_matrix c)
{
    int n = (int)c.rows, k = (int)a.columns, lda = step_of(a), ldc = step_of(c);
    if (dtype == GANTRY_F32)
        cblas_ssyrk(CblasRowMajor, CblasLower, CblasNoTrans, n, k, (float)alpha, a.data, lda, (float)beta, c.data, ldc);
    else
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, n, k, alpha, a.data, lda, beta, c.data, ldc);
}

static int32_t getrf(gantry_dtype dtype, gy_matrix a, int32_t *pivots)
{
    lapack_int m = (lapack_int)a.rows, n = (lapack_int)a.columns, ld = step_of(a);
    return (int32_t)(dtype == GANTRY_F32 ? LAPACKE_sgetrf(LAPACK_ROW_MAJOR, m, n, a.data, ld, pivots)
                                         : LAPACKE_dgetrf(LAPACK_ROW_MAJOR, m, n, a.data, ld, pivots));
}

static void solve(gantry_dtype dtype, CBLAS_UPLO which, CBLAS_DIAG diagonal, gy_matrix a, gy_matrix b)
{
    int m = (int)b.rows, n = (int)b.columns, lda = step_of(a), ldb = step_of(b);
    if (dtype == GANTRY_F32)
        cblas_strsm(CblasRowMajor, CblasLeft, which, CblasNoTrans, diagonal, m, n, 1, a.data, lda, b.data, ldb);
    else
        cblas_dtrsm(CblasRowMajor, CblasLeft, which, CblasNoTrans, diagonal, m, n, 1, a.data, lda, b.data, ldb);
}

static void lower(gantry_dtype dtype, gy_matrix a, gy_matrix b)
{
    solve(dtype, CblasLower, CblasUnit, a, b);
}

static void getrs(gantry_dtype dtype, gy_matrix a, gy_matrix b)
{
    lower(dtype, a, b);
    solve(dtype, CblasUpper, CblasNonUnit, a, b);
}

/* Rows are LAPACK's columns, and the QR factors of a matrix are the LQ factors of its transpose: nothing is copied. */
static int32_t geqrf(gantry_dtype dtype, gy_matrix a, void *tau)
{
    lapack_int m = (lapack_int)a.columns, n = (lapack_int)a.rows, ld = step_of(a);
    return (int32_t)(dtype == GANTRY_F32 ? LAPACKE_sgelqf(LAPACK_COL_MAJOR, m, n, a.data, ld, tau)
                                         : LAPACKE_dgelqf(LAPACK_COL_MAJOR, m, n, a.data, ld, tau));
}

static int32_t orgqr(gantry_dtype dtype, gy_matrix a, void *tau)
{
    lapack_int m = (lapack_int)a.columns, n = (lapack_int)a.rows, ld = step_of(a);
    return (int32_t)(dtype == GANTRY_F32 ? LAPACKE_sorglq(LAPACK_COL_MAJOR, m, n, m, a.data, ld, tau)
                                         : LAPACKE_dorglq(LAPACK_COL_MAJOR, m, n, m, a.data, ld, tau));
}

_Static_assert(sizeof(lapack_int) == sizeof(int32_t), "pivots of LAPACK are those of the library");

GANTRY_API extern const char gantry_blas_build_id[];
const char gantry_blas_build_id[] = GY_BUILD_ID;

GANTRY_API const void *gantry_blas_module(void);

const void *gantry_blas_module(void)
{
    static const gy_linalg table = { "OpenBLAS", gemm, potrf, trsm, syrk, getrf, lower, getrs, geqrf, orgqr };
    openblas_set_num_threads(1);
    return &table;
}
