/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the linear algebra kernels share. */
#ifndef GY_KERNELS_LINALG_H
#define GY_KERNELS_LINALG_H

#include "kernel/linalg.h"
#include "kernels/manifest.h"
#include <stdbool.h>

extern const gy_linalg gy_linalg_plain;
/* Of its table: qr/qr_plain.c. */
int32_t gy_geqrf_plain(gantry_dtype dtype, gy_matrix a, void *tau);
int32_t gy_orgqr_plain(gantry_dtype dtype, gy_matrix a, void *tau);

static inline gy_matrix gy_matrix_of(const gantry_arg *a)
{
    int64_t columns = gy_arg_width(a);
    gy_matrix m = { a->data, a->rows, columns, columns };
    return m;
}

/* The table of the launch's handle, or the plain one where a kernel is called without open(). */
static inline const gy_linalg *gy_linalg_of(const gantry_launch *l)
{
    return l->handle ? ((const gy_linalg_handle *)l->handle)->table : &gy_linalg_plain;
}

/* A product: c = alpha op(a) op(b) + beta c. The factors are of one dtype, and c is of it or, where it is f16 or bf16,
 * of f32, which sums are computed in and then not rounded to; where the factors are f8, c is f16, bf16 or f32. */
typedef struct gy_product {
    gantry_dtype dtype, result; /* of the factors; of c */
    bool ta, tb;
    double alpha, beta;
    gy_matrix a, b, c;
} gy_product;

/*
 * Large matrices are cut into bands of GY_BAND rows or columns, which threads of the device take. The bands follow from
 * the shape alone, and each is one call of the table, so the bits do not depend on how many threads there are.
 */
enum { GY_BAND = 256 };
static inline int64_t gy_bands_of(int64_t side)
{
    return (side + GY_BAND - 1) / GY_BAND;
}
/* Band i: so many rows, or columns. */
gy_matrix gy_band_of_rows(gy_matrix m, gantry_dtype dtype, int64_t i);
gy_matrix gy_band_of_columns(gy_matrix m, gantry_dtype dtype, int64_t i);
/* gantry_launch_cut where pieces call the table; an item is `flops` of work. */
gantry_status gy_linalg_cut(const gantry_launch *l, int64_t items, double flops, gantry_piece_fn piece, void *data);
/* How many bands the larger side of c has, and one of them. */
int64_t gy_product_bands(const gy_product *p);
double gy_product_flops(const gy_product *p); /* of a band */
void gy_product_do_band(const gantry_launch *l, const gy_product *p, int64_t band);
/* The same of all of a product of f16, bf16 or f8 without bands: by loops, or by the table's gemm of f32, to which
 * panels of the factors are converted (panels.c). false: there is no memory for panels. */
void gy_product_plain(const gy_product *p);
bool gy_product_in_panels(const gy_linalg *table, const gy_product *p);
/* All of it. */
gantry_status gy_product_do(const gantry_launch *l, const gy_product *p);

gantry_status gy_linalg_open_kernel(void **handle, int32_t device_ordinal);
/* check(): argument i is a matrix. */
gantry_status gy_check_matrix(const gantry_launch *l, int i, char *text, size_t size);
/* check(): the dtype of c is that of a, or f32 of a narrower one; f16, bf16 or f32 of f8. */
gantry_status gy_check_result(const gantry_launch *l, int a, int c, char *text, size_t size);
/* check(): c is as large as op(a) op(b). */
gantry_status gy_check_product(bool ta, bool tb, gy_matrix a, gy_matrix b, gy_matrix c, char *text, size_t size);
/* check(): a c that is only written has no beta. */
gantry_status gy_check_beta(const gantry_arg *beta, const gantry_arg *c, char *text, size_t size);
/* Writing forgets c, a sum adds to it, and only an update has a beta of its own. */
static inline double gy_beta_of(const gantry_arg *beta, const gantry_arg *c)
{
    return c->access == GANTRY_WRITE ? 0 : c->access == GANTRY_SUM ? 1 : beta->number;
}
/* check(): `pivots` has one number for each row of a. */
gantry_status gy_check_pivots(const gantry_launch *l, int a, int pivots, char *text, size_t size);
gantry_status gy_check_square(const gantry_launch *l, int i, char *text, size_t size);

#endif
