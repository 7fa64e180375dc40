/* SPDX-License-Identifier: Apache-2.0 */
/* Problems for each kernel of the library: arguments with numbers in them, and how far two right results may be apart.
 * Types, accesses and scalars are those of the manifests; what shapes go together is in recipes.c. */
#ifndef TESTS_GPU_PROBLEMS_H
#define TESTS_GPU_PROBLEMS_H

#include <gantry/gantry.h>
#include <stdbool.h>

enum { MOST_OPERANDS = 9, MOST_SCALARS = 6 };

typedef enum filling {
    ANY,      /* floats within [-4, 4], zeros of both signs and small ones among them; integers of all bits */
    PIXELS,   /* 0 .. 255 */
    POSITIVE, /* n on the diagonal and symmetric numbers within [-1/2, 1/2] beside it: positive definite */
    PIVOTED, /* the same with its rows turned by three, so that each column has one pivot that is far larger than others
              */
    PIVOTS,  /* of n rows: each is exchanged with itself or one below, from 1 */
    TRIANGLE, /* 2 .. 3 on the diagonal, within [-1/n, 1/n] beside it */
    BELOW,    /* integers in [0, below) */
    FROM,     /* floats in [below, below + 1) */
    STARTS,   /* rising from 0 to `below` */
    SORTED    /* rising from 0 to 99, or from -50 to 49: each number often */
} filling;

/* A region that a kernel is given. */
typedef struct operand {
    const gantry_kernel_arg *arg;
    gantry_dtype dtype;
    gantry_access access;
    int rank;
    int64_t shape[4];
    filling filling;
    int64_t below;
    int64_t halo; /* rows around it that the kernel is given, too */
    bool whole;   /* is not cut where others are */
} operand;

typedef struct scalar {
    const char *name;
    double value;
} scalar;

/* Results may differ by relative * |result| + absolute; both 0: not at all. */
typedef struct bound {
    double relative, absolute;
} bound;

typedef struct problem {
    const gantry_kernel *kernel;
    operand operand[MOST_OPERANDS]; /* the regions of the manifest, in its order */
    int operands;
    scalar scalar[MOST_SCALARS];
    int scalars;
    bool parts; /* may be cut along axis 0 */
    bool large; /* runs alone */
    bound bound;
} problem;

typedef struct recipe {
    const char *kernel;
    const char *typed; /* the argument whose types are gone through; NULL: the first region */
    /* The i-th problem of that type; false: there are no more. */
    bool (*make)(problem *p, gantry_dtype type, int i);
} recipe;

/* NULL: there is none. */
const recipe *recipe_find(const char *kernel);
/* All problems of a kernel in some order, until `take` has had the last. */
void problems_of(const recipe *r, void (*take)(void *user, const problem *p), void *user);

/* ---- numbers.c ---- */

int64_t elements_of(const operand *o);
bool is_float(gantry_dtype dtype);
/* Half the distance of 1 to the next number; 0 for integers. */
double unit_of(gantry_dtype dtype);
/* `before` and `after` are elements in front of the operand and behind it, which are any. */
void fill_operand(const operand *o, void *data, int64_t before, int64_t after, uint64_t seed);
double element_at(const void *data, gantry_dtype dtype, int64_t i);
/* Of their magnitudes. */
double largest_of(const void *data, gantry_dtype dtype, int64_t count);
/* The first element that is not what it should be; -1: none. */
int64_t first_wrong(const void *got, const void *want, gantry_dtype dtype, int64_t count, bound b);

#endif
