/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes that go together, and bounds. Host versions and kernels each stay within the error bound of their algorithm
 * (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, chapters 3, 8 and 10), so they are at most
 * twice that apart. u is the unit roundoff of the type that is computed in; it is double for sums, as in the host
 * versions. A result that is stored in a narrower type may be rounded to a neighbour: 2 u of that type, relative.
 */
#include "problems.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double B = 4; /* of fillings ANY */
static const double U = 0x1p-53;

static const int64_t sizes[] = { 1, 2, 31, 32, 33, 255, 256, 257, 1000, 4097, 100003 };
enum {
    SIZES = sizeof sizes / sizeof *sizes,
    MANY = 65536 * 256 + 300, /* more than a grid of one element a thread has */
    LONG = (1 << 22) + 77     /* for reductions in steps */
};

typedef struct extents {
    int64_t a, b, c;
} extents;
/* The i-th of a list that ends with zeros. */
static bool pick(const extents *list, int i, extents *e)
{
    for (int k = 0; k < i; k++)
        if (list[k].a == 0)
            return false;
    *e = list[i];
    return e->a > 0;
}

/* ---- arguments ---- */

/* The regions of the manifest, of one type where they share it, of n elements; scalars that are no trouble. */
static void begin(problem *p, gantry_dtype type, int64_t n)
{
    const gantry_kernel *k = p->kernel;
    for (int32_t i = 0; i < k->args; i++) {
        const gantry_kernel_arg *a = &k->arg[i];
        if (!a->scalar) {
            p->operand[p->operands++] =
                (operand){ .arg = a, .dtype = type, .access = a->access, .rank = 1, .shape = { n } };
        }
    }
}

static void number(problem *p, const char *name, double value)
{
    p->scalar[p->scalars++] = (scalar){ name, value };
}

static void matrix(operand *o, int64_t rows, int64_t columns)
{
    o->rank = 2;
    o->shape[0] = rows;
    o->shape[1] = columns;
}

static void one_element(operand *o, gantry_dtype type)
{
    o->dtype = type;
    o->shape[0] = 1;
    o->whole = true;
}

/* ---- the same for each element: no bound but equality ---- */

static bool elements(problem *p, gantry_dtype type, int i)
{
    if (i > SIZES || (i == SIZES && type != GANTRY_U8))
        return false;
    begin(p, type, i == SIZES ? MANY : sizes[i]);
    for (int32_t k = 0; k < p->kernel->args; k++) {
        const gantry_kernel_arg *a = &p->kernel->arg[k];
        if (a->scalar && !a->optional) {
            number(p, a->name,
                   strcmp(a->name, "us") == 0    ? 1
                   : strcmp(a->name, "how") == 0 ? 0
                   : !is_float(type)             ? -3 - k
                                                 : -1.7 + k);
        }
    }
    p->large = i == SIZES;
    p->parts = !p->large;
    return true;
}

static bool rows_and_vector(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 0 },    { 3, 7, 0 },    { 33, 257, 0 },
                                    { 1000, 5, 0 }, { 2, 4097, 0 }, { 0, 0, 0 } };
    extents e;
    if (!pick(list, i, &e))
        return false;
    begin(p, type, e.b);
    matrix(&p->operand[0], e.a, e.b);
    matrix(&p->operand[2], e.a, e.b);
    p->operand[1].whole = true;
    p->parts = true;
    return true;
}

/* The same array twice: tiles are those of test_gpu's graphs. */
static bool retiled(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 1 }, { 5, 3, 7 }, { 40, 9, 16 }, { 2, 3, 1001 }, { 0, 0, 0 } };
    extents e;
    if (!pick(list, i, &e))
        return false;
    begin(p, type, 1);
    for (int k = 0; k < 2; k++) {
        matrix(&p->operand[k], e.a, e.b);
        p->operand[k].rank = 3;
        p->operand[k].shape[2] = e.c;
    }
    p->parts = true;
    return true;
}

/* Matrices, then matrices of so many elements each. */
static bool transposed(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 0 },    { 1, 100, 0 }, { 100, 1, 0 }, { 31, 33, 0 },  { 32, 32, 0 },
                                    { 65, 130, 0 }, { 257, 3, 0 }, { 3, 5, 2 },   { 33, 70, 2 },  { 65, 33, 4 },
                                    { 9, 40, 7 },   { 2, 3, 130 }, { 5, 3, 2 },   { 65, 12, 64 }, { 0, 0, 0 } };
    enum { HEADS = 12 }; /* the first of those whose x is a matrix of all heads */
    extents e;
    if (!pick(list, i, &e))
        return false;
    begin(p, type, 1);
    for (int k = 0; k < 2; k++) {
        operand *o = &p->operand[k];
        matrix(o, k ? e.b : e.a, k ? e.a : e.b);
        o->rank = e.c ? 3 : 2;
        o->shape[2] = e.c;
    }
    if (i >= HEADS)
        matrix(&p->operand[0], e.a, e.b * e.c);
    return true;
}

/* A fixed expression of five neighbours. */
static bool stencil(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 0 },   { 2, 5, 0 },     { 5, 1, 0 },    { 3, 3, 0 },
                                    { 33, 70, 0 }, { 100, 257, 0 }, { 4, 4097, 0 }, { 0, 0, 0 } };
    extents e;
    if (!pick(list, i, &e))
        return false;
    begin(p, type, 1);
    matrix(&p->operand[0], e.a, e.b);
    matrix(&p->operand[1], e.a, e.b);
    p->operand[0].halo = 1;
    p->parts = true;
    return true;
}

/* ---- reductions ---- */

/* Float sums in double in any order: n u times the magnitudes, of products where there are two factors; then `starts`
 * roundings to the type of the result, which is as large as the magnitudes at most. Integers wrap: no bound. */
static bound of_sum(gantry_dtype type, int64_t n, double largest, int starts)
{
    double magnitude = (double)n * largest + B;
    if (!is_float(type))
        return (bound){ 0, 0 };
    return (bound){ 2 * unit_of(type),
                    2 * (double)(n + 4) * U * magnitude + (starts - 1) * 2 * unit_of(type) * magnitude };
}

static gantry_dtype wider(gantry_dtype type)
{
    return type == GANTRY_F64                        ? GANTRY_F64
           : is_float(type)                          ? GANTRY_F64
           : type == GANTRY_I8 || type == GANTRY_I32 ? GANTRY_I64
                                                     : GANTRY_U64;
}

/* The i-th; 0: no more. The last one is for two types only. */
static int64_t size_of_reduction(problem *p, gantry_dtype type, int i)
{
    p->large = i == SIZES;
    p->parts = !p->large;
    return i < SIZES ? sizes[i] : i == SIZES && (type == GANTRY_F32 || type == GANTRY_U8) ? LONG : 0;
}

static bool sum(problem *p, gantry_dtype type, int i, double largest)
{
    gantry_dtype out = i % 2 ? wider(type) : type;
    int64_t n = size_of_reduction(p, type, i / 2);
    if (n == 0)
        return false;
    begin(p, type, n);
    one_element(&p->operand[p->operands - 1], out);
    p->bound = of_sum(out, n, largest, 3);
    return true;
}

static bool sum_of_elements(problem *p, gantry_dtype type, int i)
{
    return sum(p, type, i, B);
}

static bool sum_of_products(problem *p, gantry_dtype type, int i)
{
    return sum(p, type, i, B * B);
}

static bool maximum(problem *p, gantry_dtype type, int i)
{
    int64_t n = size_of_reduction(p, type, i);
    if (n == 0)
        return false;
    begin(p, type, n);
    one_element(&p->operand[1], type);
    return true;
}

static bool counts(problem *p, gantry_dtype type, int i)
{
    int64_t n = size_of_reduction(p, type == GANTRY_I32 ? GANTRY_U8 : type, i);
    if (n == 0)
        return false;
    begin(p, GANTRY_U8, n);
    p->operand[1].dtype = type;
    p->operand[1].shape[0] = 256;
    p->operand[1].whole = true;
    return true;
}

/* ---- scans ---- */

/* Floats are added in one order, so there is no bound but equality. */
static bool running_sum(problem *p, gantry_dtype type, int i)
{
    int64_t n = size_of_reduction(p, type, i / 4);
    if (n == 0)
        return false;
    begin(p, type, n);
    number(p, "exclusive", i % 2);
    number(p, "reverse", i / 2 % 2);
    return true;
}

/* ---- sorting: there is one result ---- */

static bool sorted(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 0, 0 }, { 300, 0, 0 }, { 20500, 0, 0 }, { 0, 0, 0 } };
    extents e;
    if (!pick(list, i / 2, &e))
        return false;
    begin(p, type, e.a);
    number(p, "descending", i % 2);
    return true;
}

static bool sorted_places(problem *p, gantry_dtype type, int i)
{
    bool made = sorted(p, type, i);
    p->operand[1].dtype = i / 2 % 2 ? GANTRY_I64 : GANTRY_I32;
    return made;
}

static bool sorted_pairs(problem *p, gantry_dtype type, int i)
{
    bool made = sorted(p, type, i);
    p->operand[1].dtype = p->operand[3].dtype = i / 2 % 2 ? GANTRY_F64 : GANTRY_U32;
    return made;
}

/* Pieces of two sorted arrays, which begin and end anywhere. */
static bool merged(problem *p, gantry_dtype type, int i)
{
    static const struct {
        int64_t x, y, z, first;
    } list[] = { { 1, 1, 2, 0 },         { 1, 1, 1, 1 },        { 300, 5, 305, 0 },        { 7, 4100, 4100, 7 },
                 { 20500, 3, 20000, 2 }, { 5000, 5000, 10, 0 }, { 9000, 8000, 8500, 8500 } };
    if (i >= (int)(sizeof list / sizeof *list))
        return false;
    begin(p, type, 1);
    p->operand[0].shape[0] = list[i].x;
    p->operand[1].shape[0] = list[i].y;
    p->operand[2].shape[0] = list[i].z;
    p->operand[0].filling = p->operand[1].filling = SORTED;
    number(p, "first", (double)list[i].first);
    return true;
}

static bool best(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 1 },    { 5, 40, 40 },     { 9, 257, 3 },
                                    { 3, 3000, 1 }, { 2, 1100, 1024 }, { 0, 0, 0 } };
    extents e; /* rows, elements of a row, and of its best */
    if (!pick(list, i / 2, &e))
        return false;
    begin(p, type, 1);
    matrix(&p->operand[0], e.a, e.b);
    matrix(&p->operand[1], e.a, e.c);
    matrix(&p->operand[2], e.a, e.c);
    p->operand[2].dtype = i / 2 % 2 ? GANTRY_I64 : GANTRY_I32;
    number(p, "smallest", i % 2);
    p->parts = true;
    return true;
}

/* ---- images ---- */

/* The image and the result are the arguments `first` and the one behind it. */
static bool images(problem *p, gantry_dtype type, int i, int first, int64_t halo)
{
    static const struct {
        int rank;
        int64_t shape[4];
    } list[] = { { 2, { 1, 1 } },     { 2, { 9, 11 } },         { 2, { 40, 70 } },       { 3, { 2, 20, 30 } },
                 { 3, { 4, 1, 33 } }, { 4, { 2, 13, 150, 3 } }, { 4, { 1, 5, 1100, 1 } } };
    if (i >= (int)(sizeof list / sizeof *list))
        return false;
    begin(p, type, 1);
    for (int k = 0; k < 2; k++) {
        operand *o = &p->operand[first + k];
        o->rank = list[i].rank;
        memcpy(o->shape, list[i].shape, sizeof o->shape);
        o->filling = PIXELS;
        o->halo = k == 0 && o->rank == 2 ? halo : 0;
    }
    p->parts = true;
    return true;
}

/* Sums of integers below 2^24, a square root and a rounding, all of them exact or rounded correctly. */
static bool edges(problem *p, gantry_dtype type, int i)
{
    return images(p, type, i, 0, 1);
}

/* Products that are rounded once and added up in one order on both sides. */
static bool filtered(problem *p, gantry_dtype type, int i)
{
    if (!images(p, type, i, 1, 2))
        return false;
    p->operand[0].dtype = GANTRY_F32;
    p->operand[0].whole = true;
    matrix(&p->operand[0], 5, 3);
    return true;
}

/* Steps that are rounded once each, in one order on both sides. */
static bool resized(problem *p, gantry_dtype type, int i)
{
    static const struct {
        int64_t frames, h, w, channels, high, wide; /* channels 0: no such axis */
    } list[] = { { 1, 1, 1, 0, 3, 2 }, { 2, 9, 11, 0, 9, 11 }, { 4, 20, 30, 0, 7, 61 }, { 5, 10, 13, 3, 40, 5 } };
    if (i >= (int)(sizeof list / sizeof *list))
        return false;
    begin(p, type, 1);
    for (int k = 0; k < 2; k++) {
        operand *o = &p->operand[k];
        o->rank = list[i].channels ? 4 : 3;
        o->shape[0] = list[i].frames;
        o->shape[1] = k ? list[i].high : list[i].h;
        o->shape[2] = k ? list[i].wide : list[i].w;
        o->shape[3] = list[i].channels;
        o->filling = PIXELS;
    }
    p->parts = true;
    return true;
}

/* Two sums of 2 r + 1 products in f32, whose weights add up to 1 and may be rounded to a neighbour each; pixels are at
 * most 255. What is stored in u8 may round to the neighbour. */
static bool blurred(problem *p, gantry_dtype type, int i)
{
    static const double sigmas[] = { 0.8, 5 };
    double sigma = sigmas[i % 2], terms = 2 * ceil(3 * sigma) + 1;
    if (!images(p, type, i / 2, 0, (int64_t)ceil(3 * sigma)))
        return false;
    number(p, "sigma", sigma);
    p->bound.absolute = type == GANTRY_U8 ? 1 : 2 * (2 * terms + 4) * 0x1p-24 * 255;
    return true;
}

/* A pixel of the border takes what is beyond it, too: less than eight times its own along each axis. */
static bool blurred_back(problem *p, gantry_dtype type, int i)
{
    if (!blurred(p, type, i))
        return false;
    p->bound.absolute *= 64;
    return true;
}

/* ---- matrices ---- */

/* Of `count` problems each: those of 16 bits are given a second time, with results of f32. */
static gantry_dtype widened(gantry_dtype type, int *i, int count)
{
    if ((type != GANTRY_F16 && type != GANTRY_BF16) || *i < count)
        return type;
    *i -= count;
    return GANTRY_F32;
}

/* k products summed in any order in u of float at least: k u |a| |b|. */
static bool product(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 1 },     { 17, 23, 31 },   { 32, 32, 32 },   { 33, 65, 129 }, { 64, 1, 70 },
                                    { 1, 100, 300 }, { 1, 128, 2100 }, { 1, 4104, 515 }, { 0, 0, 0 } };
    static const gantry_access accesses[] = { GANTRY_WRITE, GANTRY_READWRITE, GANTRY_SUM };
    extents e; /* c is a x b, c terms */
    gantry_dtype result = widened(type, &i, 12 * (int)(sizeof list / sizeof *list - 1));
    int ta = i % 2, tb = i / 2 % 2, how = i / 4 % 3;
    if (!pick(list, i / 16, &e))
        return false;
    begin(p, type, 1);
    p->operands = 3; /* without scales, which are of f8 */
    matrix(&p->operand[0], ta ? e.c : e.a, ta ? e.a : e.c);
    matrix(&p->operand[1], tb ? e.b : e.c, tb ? e.c : e.b);
    matrix(&p->operand[2], e.a, e.b);
    p->operand[2].access = accesses[how];
    p->operand[2].dtype = result;
    number(p, "alpha", -0.75);
    number(p, "beta", how == 1 ? 1.25 : 0);
    number(p, "ta", ta);
    number(p, "tb", tb);
    double u = type == GANTRY_F64 ? U : 0x1p-24;
    p->bound = (bound){ 2 * unit_of(result), 2 * (double)(e.c + 3) * u * (0.75 * (double)e.c * B * B + 1.25 * B) };
    if (accesses[how] == GANTRY_SUM) { /* an accumulator is rounded too, and is at most the result and what was there */
        p->bound.relative += 2 * unit_of(result);
        p->bound.absolute += 2 * unit_of(result) * B;
    }
    return true;
}

/* The same, then the bias in the type, then an activation of slope 1.13 at most. */
static bool product_with_bias(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 1 },   { 17, 23, 31 },  { 32, 32, 32 }, { 33, 65, 129 },
                                    { 64, 1, 70 }, { 1, 100, 300 }, { 0, 0, 0 } };
    extents e; /* c is a x b, c terms */
    int ta = i % 2, tb = i / 2 % 2;
    if (!pick(list, i / 12, &e))
        return false;
    begin(p, type, 1);
    matrix(&p->operand[0], ta ? e.c : e.a, ta ? e.a : e.c);
    matrix(&p->operand[1], tb ? e.b : e.c, tb ? e.c : e.b);
    p->operand[2].shape[0] = e.b;
    matrix(&p->operand[3], e.a, e.b);
    number(p, "ta", ta);
    number(p, "tb", tb);
    number(p, "activation", i / 4 % 4);
    double u = type == GANTRY_F64 ? U : 0x1p-24, most = (double)e.c * B * B + B;
    p->bound = (bound){ 4 * unit_of(type), 1.13 * 2 * (double)(e.c + 8) * u * most + 1.13 * 2 * unit_of(type) * most };
    return true;
}

static void stack(operand *o, int64_t count, int64_t rows, int64_t columns)
{
    *o = (operand){
        .arg = o->arg, .dtype = o->dtype, .access = o->access, .rank = 3, .shape = { count, rows, columns }
    };
}

/* The same of stacks of which one may be a single matrix, which is whole on every device. */
static bool stencil_of_volumes(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 1 },    { 2, 3, 5 },    { 5, 1, 4 },   { 3, 3, 3 },
                                    { 17, 20, 70 }, { 9, 33, 257 }, { 70, 2, 40 }, { 0, 0, 0 } };
    extents e;
    if (!pick(list, i, &e))
        return false;
    begin(p, type, 1);
    stack(&p->operand[0], e.a, e.b, e.c);
    stack(&p->operand[1], e.a, e.b, e.c);
    p->operand[0].halo = 1;
    p->parts = true;
    return true;
}

static bool products(problem *p, gantry_dtype type, int i)
{
    static const int64_t counts[][3] = { { 1, 1, 1 }, { 5, 5, 5 }, { 4, 1, 4 }, { 3, 3, 1 } };
    gantry_dtype result = widened(type, &i, 32);
    const int64_t *count = counts[i % 4], m = i % 3 ? 33 : 7, n = i % 5 ? 65 : 130, k = i % 7 ? 19 : 64;
    int ta = i / 4 % 2, tb = i / 8 % 2;
    if (i >= 32)
        return false;
    begin(p, type, 1);
    stack(&p->operand[0], count[1], ta ? k : m, ta ? m : k);
    stack(&p->operand[1], count[2], tb ? n : k, tb ? k : n);
    stack(&p->operand[2], count[0], m, n);
    p->operand[0].whole = count[1] == 1;
    p->operand[1].whole = count[2] == 1;
    p->operand[2].access = i % 2 ? GANTRY_READWRITE : GANTRY_WRITE;
    p->operand[2].dtype = result;
    number(p, "alpha", -0.75);
    number(p, "beta", i % 2 ? 1.25 : 0);
    number(p, "ta", ta);
    number(p, "tb", tb);
    p->parts = true;
    double u = type == GANTRY_F64 ? U : 0x1p-24;
    p->bound = (bound){ 2 * unit_of(result), 2 * (double)(k + 3) * u * (0.75 * (double)k * B * B + 1.25 * B) };
    return true;
}

static bool rank_update(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 0 }, { 33, 13, 0 }, { 65, 64, 0 }, { 130, 7, 0 }, { 0, 0, 0 } };
    extents e;
    if (!pick(list, i / 2, &e))
        return false;
    begin(p, type, 1);
    matrix(&p->operand[0], e.a, e.b);
    matrix(&p->operand[1], e.a, e.a);
    number(p, "alpha", i % 2 ? 0.5 : -1);
    number(p, "beta", i % 2 ? 0 : 1);
    p->bound = (bound){ 2 * unit_of(type), 2 * (double)(e.b + 3) * unit_of(type) * ((double)e.b * B * B + B) };
    return true;
}

/* Backward error (n + 1) u |L| |L|^T, where the diagonal is n and what is beside it about 1; condition below 4, and
 * |L| about sqrt(n): 4 (n + 1) u n / sqrt(n) * sqrt(n), twice. */
static bool factor(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 0, 0 },  { 2, 0, 0 },  { 31, 0, 0 },  { 32, 0, 0 },
                                    { 33, 0, 0 }, { 65, 0, 0 }, { 130, 0, 0 }, { 0, 0, 0 } };
    extents e;
    if (!pick(list, i, &e))
        return false;
    begin(p, type, 1);
    matrix(&p->operand[0], e.a, e.a);
    p->operand[0].filling = POSITIVE;
    p->bound.absolute = 2 * 4 * (double)(e.a + 1) * unit_of(type) * (double)e.a;
    return true;
}

/* As for potrf: |L| |U| is about n, and the condition below 4. */
static bool factor_pivoted(problem *p, gantry_dtype type, int i)
{
    bool made = factor(p, type, i);
    if (made) {
        p->operand[0].filling = PIVOTED;
        p->operand[1].dtype = GANTRY_I32;
        p->operand[1].shape[0] = p->operand[0].shape[0];
    }
    return made;
}

/* Backward error of each column about (m + n) u of its norm (Higham, theorem 19.4), condition below 4, and q is of no
 * larger numbers than r. */
static bool factored_in_qr(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 0 },     { 2, 1, 0 },    { 1000, 1, 0 }, { 33, 33, 0 },
                                    { 70, 31, 0 },   { 257, 40, 0 }, { 65, 64, 0 },  { 700, 64, 0 },
                                    { 1500, 17, 0 }, { 3000, 3, 0 }, { 0, 0, 0 } };
    extents e; /* rows, columns */
    if (!pick(list, i, &e))
        return false;
    begin(p, type, 1);
    matrix(&p->operand[0], e.a, e.b);
    matrix(&p->operand[1], e.a, e.b);
    matrix(&p->operand[2], e.b, e.b);
    p->operand[0].filling = TRIANGLE;
    p->bound.absolute = 2 * 4 * (double)(e.a + e.b) * unit_of(type) * sqrt(9 + (double)e.a / (3 * (double)(e.b * e.b)));
    return true;
}

/* Two triangles: |u^-1| |u| and |l^-1| |l| are below 4 and 8 where what is beside the diagonal is below 1 / n. */
static bool solve_pivoted(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 0 },   { 19, 33, 0 }, { 32, 32, 0 }, { 33, 1, 0 },
                                    { 65, 70, 0 }, { 130, 5, 0 }, { 0, 0, 0 } };
    extents e; /* rows, columns of b */
    if (!pick(list, i, &e))
        return false;
    begin(p, type, 1);
    matrix(&p->operand[0], e.a, e.a);
    p->operand[0].filling = TRIANGLE;
    p->operand[1].dtype = GANTRY_I32;
    p->operand[1].shape[0] = e.a;
    p->operand[1].filling = PIVOTS;
    matrix(&p->operand[2], e.a, e.b);
    p->bound.absolute = 2 * 32 * (double)(e.a + 1) * unit_of(type) * B;
    return true;
}

/* n u |a^-1| |a| |x|: |a^-1| |a| is below 4 as rows are dominated by a diagonal of 2 and more, and |x| below b. */
static bool solve(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 0 }, { 19, 33, 0 }, { 33, 65, 0 }, { 5, 130, 0 }, { 0, 0, 0 } };
    extents e;
    if (!pick(list, i, &e))
        return false;
    begin(p, type, 1);
    matrix(&p->operand[0], e.b, e.b);
    matrix(&p->operand[1], e.a, e.b);
    p->operand[0].filling = TRIANGLE;
    p->bound.absolute = 2 * 4 * (double)(e.b + 1) * unit_of(type) * B;
    return true;
}

/* ---- convolutions ---- */

static void four_axes(operand *o, int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t shape[4] = { a, b, c, d };
    o->rank = 4;
    memcpy(o->shape, shape, sizeof shape);
}

/* Sums of products: as many terms as a window has elements, or as pixels have windows, or as there are pixels. */
static bool convolved(problem *p, gantry_dtype type, int i)
{
    static const struct {
        int64_t n, c, o, h, w, kh, kw, stride, pad;
    } list[] = { { 1, 1, 1, 1, 1, 1, 1, 1, 0 },    { 2, 3, 4, 9, 7, 3, 3, 1, 1 },     { 3, 5, 70, 6, 11, 1, 4, 1, 2 },
                 { 4, 8, 3, 12, 12, 5, 5, 2, 2 },  { 2, 17, 33, 10, 13, 3, 2, 3, 0 }, { 3, 2, 2, 33, 40, 7, 7, 2, 3 },
                 { 37, 2, 5, 16, 16, 3, 3, 1, 1 }, { 9, 3, 20, 14, 14, 3, 3, 1, 1 } }; /* of the last two pixels are cut
                                                                    for the gradient of weights */
    if (i >= (int)(sizeof list / sizeof *list))
        return false;
    int64_t n = list[i].n, c = list[i].c, o = list[i].o, h = list[i].h, w = list[i].w, kh = list[i].kh, kw = list[i].kw;
    int64_t high = (h + 2 * list[i].pad - kh) / list[i].stride + 1,
            wide = (w + 2 * list[i].pad - kw) / list[i].stride + 1;
    begin(p, type, 1);
    for (int k = 0; k < p->operands; k++) {
        const char *name = p->operand[k].arg->name, last = name[strlen(name) - 1];
        if (last == 'w')
            four_axes(&p->operand[k], o, c, kh, kw);
        else if (last == 'y')
            four_axes(&p->operand[k], n, o, high, wide);
        else
            four_axes(&p->operand[k], n, c, h, w);
        p->operand[k].whole = last == 'w';
    }
    number(p, "stride", (double)list[i].stride);
    number(p, "pad", (double)list[i].pad);
    bool of_weights = strcmp(p->kernel->name, "conv2d_grad_w") == 0;
    double terms = (double)(of_weights ? n * high * wide : (c > o ? c : o) * kh * kw);
    double u = type == GANTRY_F64 ? U : 0x1p-24;
    p->parts = true;
    p->bound = (bound){ 2 * unit_of(type), 2 * (terms + 3) * u * (terms * B * B + B) };
    if (strcmp(p->kernel->name, "conv2d") == 0 && i % 2) { /* as by product */
        p->operand[2].access = GANTRY_SUM;
        p->bound.relative += 2 * unit_of(type);
        p->bound.absolute += 2 * unit_of(type) * B;
    }
    if (of_weights) { /* parts add to it one after the other, and it is rounded each time */
        p->bound.relative += 4 * unit_of(type);
        p->bound.absolute += 4 * unit_of(type) * (terms * B * B / 4 + B);
    }
    return true;
}

/* ---- transforms ---- */

/* A transform of n numbers in passes is right to log2(n) units, relative to its norm (Higham, chapter 24); so many
 * terms of at most B sqrt(2) make each result and bound its norm. Where it is padded there are two more, of a longer
 * one. */
static bool transformed_rows(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 0 },  { 3, 2, 0 },   { 5, 16, 0 },   { 4, 60, 0 },
                                    { 2, 97, 0 }, { 3, 128, 0 }, { 1, 1001, 0 }, { 2, 1024, 0 },
                                    { 3, 34, 0 }, { 1, 578, 0 }, { 0, 0, 0 } };
    extents e; /* transforms, numbers of each */
    if (!pick(list, i / 2, &e))
        return false;
    begin(p, type, 1);
    stack(&p->operand[0], e.a, e.b, 2);
    stack(&p->operand[1], e.a, e.b, 2);
    number(p, "inverse", i % 2);
    number(p, "scale", i / 2 % 2 ? -0.5 : 1);
    p->parts = true;
    p->bound.absolute =
        2 * 12 * (log2((double)e.b) + 2) * unit_of(type) * (double)e.b * B * 1.5 / (i % 2 ? (double)e.b : 1);
    return true;
}

/* Along other axes than the last, and several. Each axis rounds as transforms of its own. */
static bool transformed_axes(problem *p, gantry_dtype type, int i)
{
    static const struct {
        int64_t shape[3];
        int axis, axes;
    } list[] = { { { 8, 3, 1 }, 0, 1 },   { { 97, 5, 1 }, 0, 1 },  { { 4, 12, 5 }, 1, 1 },  { { 3, 34, 7 }, 1, 1 },
                 { { 2, 64, 40 }, 1, 1 }, { { 600, 6, 2 }, 1, 1 }, { { 3, 16, 12 }, 1, 2 }, { { 5, 60, 9 }, -4, 2 },
                 { { 4, 8, 37 }, 1, 2 },  { { 6, 13, 9 }, 0, 3 },  { { 17, 4, 10 }, 0, 3 }, { { 32, 8, 128 }, 0, 3 } };
    if (i / 2 >= (int)(sizeof list / sizeof *list))
        return false;
    const int64_t *shape = list[i / 2].shape;
    int axis = list[i / 2].axis, axes = list[i / 2].axes;
    double points = 1;
    begin(p, type, 1);
    for (int k = 0; k < 2; k++) {
        p->operand[k].rank = 4;
        memcpy(p->operand[k].shape, shape, 3 * sizeof *shape);
        p->operand[k].shape[3] = 2;
    }
    for (int k = 0; k < axes; k++)
        points *= (double)shape[(axis < 0 ? axis + 4 : axis) + k];
    number(p, "inverse", i % 2);
    number(p, "axis", axis);
    number(p, "axes", axes);
    p->parts = axis > 0;
    p->bound.absolute = 2 * 12 * (log2(points) + 2 * axes) * unit_of(type) * points * B * 1.5 / (i % 2 ? points : 1);
    return true;
}

static bool transformed(problem *p, gantry_dtype type, int i)
{
    enum { ROWS = 20 };
    return i < ROWS ? transformed_rows(p, type, i) : transformed_axes(p, type, i - ROWS);
}

/* ---- learning, sparse ---- */

static bool logits(problem *p, gantry_dtype type, int i, extents *e)
{
    static const extents list[] = { { 1, 1, 0 },    { 50, 7, 0 },   { 33, 257, 0 },   { 3, 1000, 0 },
                                    { 257, 10, 0 }, { 5, 1025, 0 }, { 300, 2100, 0 }, { 0, 0, 0 } };
    if (!pick(list, i, e))
        return false;
    begin(p, type, e->a);
    matrix(&p->operand[0], e->a, e->b);
    p->operand[1] = (operand){ .arg = p->operand[1].arg,
                               .dtype = GANTRY_I32,
                               .access = GANTRY_READ,
                               .rank = 1,
                               .shape = { e->a },
                               .filling = BELOW,
                               .below = e->b };
    number(p, "scale", 0.02);
    p->parts = true;
    return true;
}

/* In double: exp and log to 4 u, sums of c terms c u; each row is below 2 B + log(c), and so are its terms. On GPUs the
 * exponentials are taken in float, or double of f64: what they are taken of is at most 2 B, rounded, and they are right
 * to 4 u of that type. So are their sums, whose logarithm has that as an absolute error. */
static double exponential(gantry_dtype type)
{
    return (2 * B + 4) * unit_of(type);
}

static bool cross_entropy(problem *p, gantry_dtype type, int i)
{
    extents e;
    if (!logits(p, type, i, &e))
        return false;
    double row = 2 * B + log((double)e.b);
    gantry_dtype wide = type == GANTRY_F64 ? type : GANTRY_F32;
    one_element(&p->operand[2], wide);
    p->bound = of_sum(wide, e.a, 0.02 * row, 3);
    p->bound.absolute += 0.02 * (double)e.a * (2 * (double)(e.b + 16) * U * row + exponential(wide));
    return true;
}

static bool cross_entropy_gradient(problem *p, gantry_dtype type, int i)
{
    extents e;
    if (!logits(p, type, i, &e))
        return false;
    matrix(&p->operand[2], e.a, e.b);
    gantry_dtype wide = type == GANTRY_F64 ? type : GANTRY_F32;
    p->bound = (bound){ 2 * unit_of(type), 2 * 0.02 * ((double)(e.b + 16) * U + exponential(wide) + unit_of(wide)) };
    p->bound.absolute += type == GANTRY_F16 ? 0x1p-24 : 0; /* from one of its small numbers to the next */
    return true;
}

/* ---- transformers ---- */

static const extents of_rows[] = { { 1, 1, 0 },     { 3, 31, 0 },    { 33, 33, 0 },  { 100, 5, 0 },  { 7, 257, 0 },
                                   { 70, 130, 0 },  { 9, 1024, 0 },  { 5, 1025, 0 }, { 2, 4097, 0 }, { 4, 33, 3 },
                                   { 3, 12288, 0 }, { 2, 21003, 0 }, { 0, 0, 0 } };

/* A matrix, or a stack of c of them: rows lie along the last axis. */
static void lines(operand *o, extents e)
{
    if (e.c)
        stack(o, e.a, e.c, e.b);
    else
        matrix(o, e.a, e.b);
}

/* Host and GPU add in one order: no bound but equality. Matrices but for what belongs to columns. */
static bool normalized(problem *p, gantry_dtype type, int i)
{
    extents e;
    if (!pick(of_rows, i, &e))
        return false;
    begin(p, type, e.b);
    for (int k = 0; k < p->operands; k++) {
        const char *name = p->operand[k].arg->name;
        if (strstr(name, "gain") || strstr(name, "bias"))
            p->operand[k].whole = true;
        else
            lines(&p->operand[k], e);
    }
    number(p, "eps", 0.01);
    p->parts = true;
    return true;
}

/* Exponentials are in float on GPUs, but for f64; elements are 1 at most. */
static bool softmax(problem *p, gantry_dtype type, int i)
{
    extents e;
    double u = type == GANTRY_F64 ? U : 0x1p-24;
    if (!pick(of_rows, i / 2, &e))
        return false;
    begin(p, type, 1);
    lines(&p->operand[0], e);
    lines(&p->operand[1], e);
    number(p, "scale", 0.5);
    number(p, "causal", i % 2);
    number(p, "first", i % 2 ? 2 : 0);
    p->parts = true;
    p->bound = (bound){ 2 * unit_of(type), 2 * ((2 * B + 4) * u + (double)(e.b + 16) * U) };
    return true;
}

static bool softmax_gradient(problem *p, gantry_dtype type, int i)
{
    extents e;
    if (!pick(of_rows, i, &e))
        return false;
    begin(p, type, 1);
    for (int k = 0; k < p->operands; k++)
        lines(&p->operand[k], e);
    number(p, "scale", -0.3);
    p->parts = true;
    return true;
}

/* The last shape is for what is done by cuBLAS, which is only asked for many scores. */
static bool is_for_products(const problem *p, gantry_dtype type)
{
    return (type == GANTRY_F32 || type == GANTRY_F64) && strcmp(p->kernel->name, "attention_cached") != 0;
}

/* Logarithms of attention, which come last: of half of the problems, the others do not give them. Where they are read,
 * `largest` or more, so that the weights of a query add up to 1 at most. */
static void logarithms(problem *p, gantry_dtype type, bool are_given, int64_t heads, int64_t n, double largest)
{
    operand *o = &p->operand[p->operands - 1];
    if (strcmp(o->arg->name, "lse") != 0)
        return;
    if (!are_given) {
        p->operands--;
        return;
    }
    matrix(o, heads, n);
    o->dtype = type == GANTRY_F64 ? GANTRY_F64 : GANTRY_F32;
    o->filling = o->access == GANTRY_READ ? FROM : ANY;
    o->below = (int64_t)largest + 1;
}

/* Heads of n rows of d elements: behind each other, or side by side as products leave them, in one sequence. */
static void heads(operand *o, bool in_rows, int64_t count, int64_t n, int64_t d)
{
    if (in_rows)
        matrix(o, n, count * d);
    else
        stack(o, count, n, d);
}

/* Of all heads, whose logarithms have an axis of sequences then. */
static void side_by_side(problem *p, int64_t many, int64_t n, int64_t d)
{
    operand *last = &p->operand[p->operands - 1];
    if (strcmp(last->arg->name, "lse") == 0) {
        last->rank = 3;
        last->shape[0] = 1;
        last->shape[1] = many;
        last->shape[2] = n;
    }
    number(p, "dim", (double)d);
}

/* A score is a sum of d products, scaled; the error of an exponential is that of its score, and results are means of
 * values of at most B. On GPUs each block of keys scales what was before it, which is a rounding more; exponentials are
 * rounded to f16 or bf16 where they multiply values on tensor cores. */
static bool attended(problem *p, gantry_dtype type, int i)
{
    static const struct {
        int64_t many, few, n, m, d;
    } list[] = { { 1, 1, 1, 1, 1 },     { 3, 3, 5, 5, 8 },       { 6, 2, 7, 70, 16 },   { 4, 1, 65, 130, 33 },
                 { 2, 2, 130, 64, 64 }, { 8, 4, 1, 200, 128 },   { 2, 1, 9, 4, 130 },   { 3, 3, 70, 33, 256 },
                 { 4, 2, 70, 150, 72 }, { 2, 2, 140, 200, 128 }, { 3, 1, 50, 129, 64 }, { 2, 2, 131, 131, 63 },
                 { 4, 4, 512, 512, 4 } };
    bool is_cached = strcmp(p->kernel->name, "attention_cached") == 0, in_rows = !is_cached && i / 4 % 2;
    int at = is_cached ? i / 4 : i / 8;
    if (at >= (int)(sizeof list / sizeof *list) - !is_for_products(p, type))
        return false;
    int64_t many = list[at].many, few = list[at].few, n = list[at].n, m = list[at].m, d = list[at].d;
    double u = type == GANTRY_F64 ? U : 0x1p-24, scale = 0.05, highest = scale * (double)d * B * B;
    begin(p, type, 1);
    logarithms(p, type, i / 2 % 2, many, n, 0);
    for (int k = 0; k < p->operands; k++) {
        operand *o = &p->operand[k];
        bool keys = strcmp(o->arg->name, "k") == 0 || strcmp(o->arg->name, "v") == 0;
        if (o->arg->dtypes == GANTRY_DTYPE_BIT(GANTRY_I32)) { /* length */
            one_element(o, GANTRY_I32);
            o->filling = BELOW;
            o->below = m + 1;
        } else if (o->arg->same) {
            heads(o, in_rows, keys ? few : many, keys ? m : n, d);
        }
    }
    number(p, "scale", scale);
    number(p, "causal", i % 2);
    if (in_rows)
        side_by_side(p, many, n, d);
    p->parts = !in_rows && many == few && n < 512; /* a part of the last has fewer scores */
    p->bound = (bound){ 2 * unit_of(type), 2 * B * u * (2 * (double)(d + 8) * highest + 2 * highest + (double)m + 24) };
    if (type == GANTRY_F16 || type == GANTRY_BF16)
        p->bound.absolute += B * unit_of(type);
    return true;
}

/* Scores are so small that exponentials are about 1; a slope of a score is at most 4 B^2 d scale = 4 times its weight,
 * and weights of a query add up to 1. A gradient by a key adds up what as many queries as share it contribute. */
static bool attended_back(problem *p, gantry_dtype type, int i)
{
    static const struct {
        int64_t many, few, n, m, d;
    } list[] = { { 1, 1, 1, 1, 1 },     { 3, 3, 5, 5, 8 },       { 6, 2, 3, 70, 16 },  { 4, 1, 65, 130, 33 },
                 { 2, 2, 130, 64, 64 }, { 8, 4, 1, 200, 128 },   { 2, 1, 9, 4, 130 },  { 3, 3, 70, 33, 256 },
                 { 2, 2, 2, 300, 72 },  { 2, 2, 140, 200, 128 }, { 4, 4, 512, 512, 4 } };
    bool in_rows = i / 4 % 2;
    int at = i / 8;
    if (at >= (int)(sizeof list / sizeof *list) - !is_for_products(p, type))
        return false;
    int64_t many = list[at].many, few = list[at].few, n = list[at].n, m = list[at].m, d = list[at].d;
    double u = type == GANTRY_F64 ? U : 0x1p-24, highest = 2, scale = highest / ((double)d * B * B);
    double most = 2 * highest * B * (double)(many / few * n),
           terms = 8 * (double)(d + 8) + (double)(m + n * many / few) + 32;
    begin(p, type, 1);
    logarithms(p, type, i / 2 % 2, many, n, log((double)m) + highest);
    for (int k = 0; k < p->operands; k++) {
        const char *name = p->operand[k].arg->name, last = name[strlen(name) - 1];
        bool keys = last == 'k' || last == 'v';
        if (p->operand[k].arg->same)
            heads(&p->operand[k], in_rows, keys ? few : many, keys ? m : n, d);
    }
    number(p, "scale", scale);
    number(p, "causal", i % 2);
    if (in_rows)
        side_by_side(p, many, n, d);
    p->parts = !in_rows && many == few && n < 512; /* a part of the last has fewer scores */
    p->bound = (bound){ 2 * unit_of(type), 2 * most * terms * u };
    if (type == GANTRY_F16 || type == GANTRY_BF16)
        p->bound.absolute += most * unit_of(type);
    return true;
}

/* Angles are positions times at most 1, by a power that is right to 2 units on both sides, as sines and cosines are. */
static bool turned(problem *p, gantry_dtype type, int i)
{
    enum { HEADS = 5 }; /* the first of those whose positions are axis 1 */
    static const extents list[] = { { 1, 2, 2 },     { 5, 12, 4 }, { 100, 128, 64 }, { 33, 70, 70 },
                                    { 3, 600, 200 }, { 5, 12, 4 }, { 33, 128, 64 },  { 0, 0, 0 } };
    extents e; /* rows, elements of a row and of a head */
    if (!pick(list, i, &e))
        return false;
    begin(p, type, 1);
    matrix(&p->operand[0], e.a, e.b);
    matrix(&p->operand[1], e.a, e.b);
    number(p, "dim", (double)e.c);
    number(p, "first", 7);
    number(p, "length", i % 2 ? 11 : 0);
    number(p, "sign", i % 2 ? 1 : -1);
    for (int k = 0; k < 2 && i >= HEADS; k++) {
        p->operand[k].rank = 3;
        p->operand[k].shape[0] = 3;
        p->operand[k].shape[1] = e.a;
        p->operand[k].shape[2] = e.b;
    }
    number(p, "axis", i >= HEADS);
    p->parts = true;
    p->bound = (bound){ 2 * unit_of(type), 4 * B * (8 * (double)(e.a + 7) + 16) * U };
    return true;
}

/* The table is read or added to as a whole; rows are its copies, or sums in the order of ids. */
/* Rows of one element and of more, of which none, some or all are taken. */
static bool selected(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 0 },    { 37, 5, 0 },     { 2048, 1, 0 }, { 2049, 3, 0 },
                                    { 70, 300, 0 }, { 100003, 1, 0 }, { 0, 0, 0 } };
    extents e;
    if (!pick(list, i / 3, &e))
        return false;
    begin(p, type, 1);
    matrix(&p->operand[0], e.a, e.b);
    p->operand[1].dtype = (const gantry_dtype[]){ GANTRY_U8, GANTRY_I32, GANTRY_I64 }[i % 3];
    p->operand[1].shape[0] = e.a;
    p->operand[1].filling = BELOW;
    p->operand[1].below = 1 + (i + 1) % 3; /* below 1: nothing is taken */
    matrix(&p->operand[2], e.a, e.b);
    one_element(&p->operand[3], i % 2 ? GANTRY_I64 : GANTRY_I32);
    return true;
}

static bool embedded(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 1 },     { 10, 3, 50 },    { 100, 33, 7 },
                                    { 5, 130, 300 }, { 1000, 64, 90 }, { 0, 0, 0 } };
    extents e; /* rows of the table, width, ids */
    bool is_part = i % 4 >= 2;
    if (!pick(list, i / 4, &e))
        return false;
    begin(p, type, 1);
    if (is_part) {
        number(p, "first", 3);
        number(p, "of", (double)e.a + 5);
    }
    for (int k = 0; k < p->operands; k++) {
        operand *o = &p->operand[k];
        o->whole = strstr(o->arg->name, "table") != NULL;
        if (strcmp(o->arg->name, "ids") == 0) {
            o->dtype = i % 2 ? GANTRY_I64 : GANTRY_I32;
            o->shape[0] = e.c;
            o->filling = BELOW;
            o->below = e.a + (is_part && e.c ? 5 : 0);
        } else {
            matrix(o, o->whole ? e.a : e.c, e.b);
        }
        if (is_part && strcmp(o->arg->name, "y") == 0)
            o->access = GANTRY_SUM;
    }
    p->parts = true;
    return true;
}

/* v is a mean of squares, so it is not negative. The gradient's type says what weights are. */
static bool stepped(problem *p, gantry_dtype type, int i)
{
    if (i >= SIZES)
        return false;
    begin(p, type == GANTRY_F64 ? type : GANTRY_F32, sizes[i]);
    p->operand[1].dtype = type;
    p->operand[3].filling = PIXELS;
    number(p, "lr", 0.01);
    number(p, "step", (double)(1 + i));
    number(p, "decay", 0.1);
    p->parts = true;
    return true;
}

/* Arrays, and then columns of wider rows. */
static bool dropped(problem *p, gantry_dtype type, int i)
{
    static const extents rows[] = { { 1, 7, 9 }, { 40, 5, 13 }, { 1000, 64, 128 }, { 3, 4097, 8195 }, { 0, 0, 0 } };
    extents e = { 0, 0, 0 }; /* rows, their elements, and from row to row */
    if (i >= SIZES && !pick(rows, i - SIZES, &e))
        return false;
    begin(p, type, i < SIZES ? sizes[i] : e.a * e.b);
    number(p, "p", 0.3);
    number(p, "seed", 5000000000 + i);
    number(p, "first", i);
    number(p, "run", (double)e.b);
    number(p, "pitch", (double)e.c);
    p->parts = i < SIZES;
    return true;
}

/* A row has at most as many entries as there are; empty rows are among them. */
static bool sparse(problem *p, gantry_dtype type, int i)
{
    static const extents list[] = { { 1, 1, 1 },       { 30, 20, 100 },     { 257, 100, 3000 }, { 1000, 33, 500 },
                                    { 3, 100, 10000 }, { 700, 300, 20000 }, { 0, 0, 0 } };
    extents e; /* rows, columns, entries */
    gantry_dtype index = i % 2 ? GANTRY_I64 : GANTRY_I32;
    if (!pick(list, i / 2, &e))
        return false;
    begin(p, type, 1);
    operand *o = p->operand;
    o[0].shape[0] = e.a + 1;
    o[0].filling = STARTS;
    o[0].below = o[1].shape[0] = o[2].shape[0] = e.c;
    o[1].filling = BELOW;
    o[1].below = o[3].shape[0] = e.b;
    o[0].dtype = o[1].dtype = index;
    o[4].shape[0] = e.a;
    p->bound = of_sum(type, e.c, B * B, 1);
    return true;
}

/* The same times a matrix: entries and rows are added in one order. */
static bool sparse_times_matrix(problem *p, gantry_dtype type, int i)
{
    static const int64_t widths[] = { 1, 33, 70 };
    bool made = sparse(p, type, i);
    if (made) {
        matrix(&p->operand[3], p->operand[3].shape[0], widths[i % 3]);
        matrix(&p->operand[4], p->operand[4].shape[0], widths[i % 3]);
        p->bound = (bound){ 0, 0 };
    }
    return made;
}

/* A token's keys and values in a cache; at the last place angles are largest. */
static bool appended(problem *p, gantry_dtype type, int i)
{
    static const struct {
        int64_t queries, heads, places, dim;
    } list[] = { { 1, 1, 1, 2 }, { 4, 2, 7, 8 }, { 6, 6, 33, 130 }, { 16, 16, 100, 64 }, { 2, 1, 5, 520 } };
    if (i / 2 >= (int)(sizeof list / sizeof *list))
        return false;
    int64_t queries = list[i / 2].queries, heads = list[i / 2].heads, places = list[i / 2].places,
            dim = list[i / 2].dim;
    begin(p, type, 1);
    for (int k = 0; k < p->operands; k++) {
        operand *o = &p->operand[k];
        if (o->arg->dtypes == GANTRY_DTYPE_BIT(GANTRY_I32)) { /* place */
            one_element(o, GANTRY_I32);
            o->filling = BELOW;
            o->below = places;
        } else if (strcmp(o->arg->name, "keys") == 0 || strcmp(o->arg->name, "values") == 0) {
            stack(o, heads, places, dim);
        } else {
            bool of_queries = strcmp(o->arg->name, "q") == 0 || strcmp(o->arg->name, "turned") == 0;
            matrix(o, 1, (of_queries ? queries : heads) * dim);
        }
    }
    number(p, "base", i % 2 ? 500 : 0);
    p->bound = (bound){ 2 * unit_of(type), 4 * B * (8 * (double)places + 16) * U };
    return true;
}

/* The same, and what its queries see of the cache up to it. Pairs of a query that is turned are as long as they were,
 * so its scores are at most twice those of attended(). */
static bool appended_and_attended(problem *p, gantry_dtype type, int i)
{
    static const struct {
        int64_t queries, heads, places, dim;
    } list[] = { { 1, 1, 1, 2 },    { 4, 2, 7, 8 },     { 6, 6, 133, 34 },
                 { 16, 4, 70, 64 }, { 3, 3, 200, 128 }, { 2, 1, 65, 256 } };
    if (i / 2 >= (int)(sizeof list / sizeof *list))
        return false;
    int64_t queries = list[i / 2].queries, heads = list[i / 2].heads, places = list[i / 2].places,
            dim = list[i / 2].dim;
    double u = type == GANTRY_F64 ? U : 0x1p-24, scale = 0.05, highest = 2 * scale * (double)dim * B * B;
    begin(p, type, 1);
    for (int k = 0; k < p->operands; k++) {
        operand *o = &p->operand[k];
        const char *name = o->arg->name;
        if (o->arg->dtypes == GANTRY_DTYPE_BIT(GANTRY_I32)) { /* place */
            one_element(o, GANTRY_I32);
            o->filling = BELOW;
            o->below = places;
        } else if (strcmp(name, "keys") == 0 || strcmp(name, "values") == 0) {
            stack(o, heads, places, dim);
        } else {
            matrix(o, 1, (strcmp(name, "q") == 0 || strcmp(name, "y") == 0 ? queries : heads) * dim);
        }
    }
    number(p, "base", i % 2 ? 500 : 0);
    number(p, "scale", scale);
    p->bound =
        (bound){ 2 * unit_of(type), 2 * B * u * (2 * (double)(dim + 8) * highest + 2 * highest + (double)places + 24) +
                                        4 * B * (8 * (double)places + 16) * U };
    if (type == GANTRY_F16 || type == GANTRY_BF16)
        p->bound.absolute += 2 * B * unit_of(type);
    return true;
}

/* ---- all ---- */

static const recipe recipes[] = {
    { "adamw", "g", stepped },
    { "add", NULL, elements },
    { "argsort", NULL, sorted_places },
    { "attention", NULL, attended },
    { "attention_append", "q", appended_and_attended },
    { "attention_cached", NULL, attended },
    { "attention_grad", NULL, attended_back },
    { "axpby", NULL, elements },
    { "bias_add", NULL, rows_and_vector },
    { "busy", NULL, elements },
    { "cache_append", "q", appended },
    { "conv2d", NULL, convolved },
    { "conv2d_grad_w", NULL, convolved },
    { "conv2d_grad_x", NULL, convolved },
    { "copy", NULL, elements },
    { "dot", NULL, sum_of_products },
    { "dropout", NULL, dropped },
    { "embedding", NULL, embedded },
    { "embedding_grad", "dy", embedded },
    { "fail", NULL, elements },
    { "fft", NULL, transformed },
    { "filter2d", "image", filtered },
    { "filter2d_grad", "dout", filtered },
    { "gaussian_blur", NULL, blurred },
    { "gaussian_blur_grad", NULL, blurred_back },
    { "gemm", NULL, product },
    { "gemm_batched", NULL, products },
    { "gemm_bias", NULL, product_with_bias },
    { "getrf", NULL, factor_pivoted },
    { "getrs", NULL, solve_pivoted },
    { "histogram", "out", counts },
    { "jacobi2d", NULL, stencil },
    { "jacobi2d_grad", NULL, stencil },
    { "jacobi3d", NULL, stencil_of_volumes },
    { "jacobi3d_grad", NULL, stencil_of_volumes },
    { "layernorm", NULL, normalized },
    { "layernorm_grad", NULL, normalized },
    { "merge", NULL, merged },
    { "mul", NULL, elements },
    { "potrf", NULL, factor },
    { "qr", NULL, factored_in_qr },
    { "reduce_max", NULL, maximum },
    { "reduce_sum", NULL, sum_of_elements },
    { "relu", NULL, elements },
    { "relu_grad", NULL, elements },
    { "resize", NULL, resized },
    { "retile", NULL, retiled },
    { "rmsnorm", NULL, normalized },
    { "rmsnorm_grad", NULL, normalized },
    { "rope", NULL, turned },
    { "saxpy", NULL, elements },
    { "scale", NULL, elements },
    { "scan", NULL, running_sum },
    { "select", NULL, selected },
    { "sgd_update", NULL, elements },
    { "sobel", NULL, edges },
    { "softmax", NULL, softmax },
    { "softmax_grad", NULL, softmax_gradient },
    { "softmax_xent", NULL, cross_entropy },
    { "softmax_xent_grad", NULL, cross_entropy_gradient },
    { "sort", NULL, sorted },
    { "sort_pairs", NULL, sorted_pairs },
    { "spmm_csr", "val", sparse_times_matrix },
    { "spmv_csr", "val", sparse },
    { "syrk", NULL, rank_update },
    { "top_k", NULL, best },
    { "transpose", NULL, transposed },
    { "trsm", NULL, solve },
};

const recipe *recipe_find(const char *kernel)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (strcmp(recipes[i].kernel, kernel) == 0)
            return &recipes[i];
    return NULL;
}

/* All but f8, which tests/conformance/f8 holds, on GPUs too. */
static uint32_t types_of(const gantry_kernel *k, const char *typed)
{
    const uint32_t usual = (2u << GANTRY_U64) - 1;
    for (int32_t i = 0; i < k->args; i++) {
        const gantry_kernel_arg *a = &k->arg[i];
        if (!a->scalar && (!typed || strcmp(a->name, typed) == 0))
            return a->dtypes ? a->dtypes & usual : usual;
    }
    abort();
}

void problems_of(const recipe *r, void (*take)(void *user, const problem *p), void *user)
{
    const gantry_kernel *kernel = gantry_kernel_find(r->kernel);
    uint32_t types = types_of(kernel, r->typed);
    for (int d = 0; d < GANTRY_DTYPE_COUNT; d++) {
        problem p = { .kernel = kernel };
        for (int i = 0; types >> d & 1 && r->make(&p, (gantry_dtype)d, i); i++) {
            take(user, &p);
            p = (problem){ .kernel = kernel };
        }
    }
}
