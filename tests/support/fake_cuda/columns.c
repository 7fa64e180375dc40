/* SPDX-License-Identifier: Apache-2.0 */
#include "columns.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void columns_wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "fake cuBLAS or cuSOLVER: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

int columns_failure(const char *function)
{
    const char *spec = getenv("FAKE_LINALG_FAIL");
    size_t length = strlen(function);
    return spec && strncmp(spec, function, length) == 0 && spec[length] == ':' ? atoi(spec + length + 1) : 0;
}

/* ---- elements ---- */

/* 2^exponent, a normal number; a product by it is what ldexp gives, in a tenth of its time. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Of a format with so many bits of fraction, whose smallest normal number is 2^least. */
static double from_bits(unsigned bits, int fraction, int least)
{
    unsigned exponent = (bits & 0x7FFFu) >> fraction, rest = bits & ((1u << fraction) - 1), top = 0x7FFFu >> fraction;
    double magnitude = exponent == top ? (rest ? NAN : INFINITY)
                       : exponent
                           ? (double)(rest + (1u << fraction)) * power_of_two(least - fraction + (int)exponent - 1)
                           : (double)rest * power_of_two(least - fraction);
    return bits & 0x8000u ? -magnitude : magnitude;
}

static unsigned to_bits(double x, int fraction, int least)
{
    unsigned sign = signbit(x) ? 0x8000u : 0, top = 0x7FFFu >> fraction << fraction;
    int exponent;
    if (isnan(x) || isinf(x) || x == 0)
        return isnan(x) ? top + 1 : sign | (isinf(x) ? top : 0);
    frexp(x, &exponent);
    int scale = (exponent - 1 < least ? least : exponent - 1) - fraction; /* of the last bit */
    double units = nearbyint(ldexp(fabs(x), -scale));
    unsigned made = (unsigned)(units + ldexp(scale + fraction - least, fraction));
    return sign | (made > top ? top : made);
}

/* OFP8: all bits but the sign are NaN, nothing is infinite. */
static double from_e4m3(uint8_t b)
{
    int exponent = b >> 3 & 15, fraction = b & 7;
    double size = exponent ? (8 + fraction) * power_of_two(exponent - 10) : fraction * power_of_two(-9);
    return (b & 127) == 127 ? (double)NAN : b & 128 ? -size : size;
}

double columns_load(element type, const void *at, int64_t i)
{
    switch (type) {
    case F16:
        return from_bits(((const uint16_t *)at)[i], 10, -14);
    case BF16:
        return from_bits(((const uint16_t *)at)[i], 7, -126);
    case E4M3:
        return from_e4m3(((const uint8_t *)at)[i]);
    case F32:
        return (double)((const float *)at)[i];
    default:
        return ((const double *)at)[i];
    }
}

void columns_store(element type, void *at, int64_t i, double x)
{
    switch (type) {
    case F16:
        ((uint16_t *)at)[i] = (uint16_t)to_bits(x, 10, -14);
        return;
    case BF16:
        ((uint16_t *)at)[i] = (uint16_t)to_bits(x, 7, -126);
        return;
    case F32:
        ((float *)at)[i] = (float)x;
        return;
    default:
        ((double *)at)[i] = x;
    }
}

static double load(element type, columns m, int i, int j)
{
    return columns_load(type, m.at, i + (int64_t)j * m.ld);
}

static void store(element type, columns m, int i, int j, double x)
{
    columns_store(type, m.at, i + (int64_t)j * m.ld, x);
}

/* ---- what the functions mean ---- */

static double finish(const job *p, int row, double x)
{
    if (!p->bias)
        return x;
    x += columns_load(p->type, p->bias, row);
    if (p->activation == RELU)
        return x < 0 ? 0 : x;
    return p->activation == GELU ? x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))) : x;
}

/* `rows` x `length` of a matrix, or of what it is the transpose of, row by row. NULL: there is nothing. */
static double *unpack(element type, columns m, bool transpose, int rows, int length)
{
    double *all = rows > 0 && length > 0 ? malloc((size_t)rows * (size_t)length * sizeof *all) : NULL;
    if (!all && rows > 0 && length > 0)
        columns_wrong("no memory for %d x %d", rows, length);
    for (int i = 0; i < rows && all; i++)
        for (int j = 0; j < length; j++)
            all[(size_t)i * (size_t)length + (size_t)j] = transpose ? load(type, m, j, i) : load(type, m, i, j);
    return all;
}

/* m x n = alpha op(a) op(b) + beta c, with a sum of k. What beta 0 forgets is not read. */
static void gemm(const job *p)
{
    double *rows = unpack(p->type, p->a, p->transpose_a, p->m, p->k),
           *across = unpack(p->type, p->b, !p->transpose_b, p->n, p->k);
    element result = p->wide ? F32 : p->type == E4M3 ? p->narrow : p->type;
    double scale = (p->scale_a ? (double)*p->scale_a : 1) * (p->scale_b ? (double)*p->scale_b : 1);
    for (int j = 0; j < p->n; j++) {
        for (int i = 0; i < p->m; i++) {
            const double *a = rows + (int64_t)i * p->k, *b = across + (int64_t)j * p->k;
            double sum = 0;
            for (int l = 0; l < p->k; l++)
                sum += a[l] * b[l];
            double old = p->beta != 0 ? p->beta * load(result, p->c, i, j) : 0;
            store(result, p->c, i, j, finish(p, i, p->alpha * scale * sum + old));
        }
    }
    free(rows);
    free(across);
}

/* Backwards: no order of them is promised. */
static void gemms(const job *p)
{
    for (int i = p->batch; i-- > 0;) {
        job one = *p;
        one.a.at = p->list_a ? (void *)(uintptr_t)p->list_a[i] : (char *)p->a.at + i * p->step_a;
        one.b.at = p->list_b ? (void *)(uintptr_t)p->list_b[i] : (char *)p->b.at + i * p->step_b;
        one.c.at = p->list_c ? p->list_c[i] : (char *)p->c.at + i * p->step_c;
        gemm(&one);
    }
}

/* One triangle of n x n = alpha op(a) op(a)^T + beta c. */
static void syrk(const job *p)
{
    for (int j = 0; j < p->n; j++) {
        for (int i = p->upper ? 0 : j; i < (p->upper ? j + 1 : p->n); i++) {
            double sum = 0;
            for (int l = 0; l < p->k; l++) {
                sum += p->transpose_a ? load(p->type, p->a, l, i) * load(p->type, p->a, l, j)
                                      : load(p->type, p->a, i, l) * load(p->type, p->a, j, l);
            }
            store(p->type, p->c, i, j, p->alpha * sum + (p->beta != 0 ? p->beta * load(p->type, p->c, i, j) : 0));
        }
    }
}

/* op(a)(i, j) of a triangle; nothing outside of it is read. */
static double triangle(const job *p, int i, int j)
{
    int row = p->transpose_a ? j : i, column = p->transpose_a ? i : j;
    if (row == column && p->unit)
        return 1;
    return (p->upper ? row <= column : row >= column) ? load(p->type, p->a, row, column) : 0;
}

/* op(a) x = alpha b, or x op(a) = alpha b, for one column or row x, number `at`, in place. */
static void solve(const job *p, int at)
{
    int size = p->right ? p->n : p->m;
    bool lower = p->upper == p->transpose_a, ahead = lower != p->right; /* x[0] is the first that is known */
    for (int step = 0; step < size; step++) {
        int i = ahead ? step : size - 1 - step;
        double rest = p->alpha * (p->right ? load(p->type, p->b, at, i) : load(p->type, p->b, i, at));
        for (int l = ahead ? 0 : i + 1; l < (ahead ? i : size); l++) {
            rest -= p->right ? load(p->type, p->b, at, l) * triangle(p, l, i)
                             : triangle(p, i, l) * load(p->type, p->b, l, at);
        }
        double x = rest / triangle(p, i, i);
        if (p->right)
            store(p->type, p->b, at, i, x);
        else
            store(p->type, p->b, i, at, x);
    }
}

static void trsm(const job *p)
{
    for (int at = 0; at < (p->right ? p->m : p->n); at++)
        solve(p, at);
}

/* l(i, j) of a = l l^T, where u = l^T is kept if `upper`. */
static double factor(const job *p, int i, int j)
{
    return p->upper ? load(p->type, p->a, j, i) : load(p->type, p->a, i, j);
}

static int potrf(const job *p)
{
    for (int j = 0; j < p->n; j++) {
        for (int i = j; i < p->n; i++) {
            double rest = factor(p, i, j);
            for (int l = 0; l < j; l++)
                rest -= factor(p, i, l) * factor(p, j, l);
            if (i == j && !(rest > 0))
                return j + 1;
            double x = i == j ? sqrt(rest) : rest / factor(p, j, j);
            store(p->type, p->a, p->upper ? j : i, p->upper ? i : j, x);
        }
    }
    return 0;
}

static void swap_rows(const job *p, int i, int with)
{
    for (int j = 0; j < p->n && i != with; j++) {
        double kept = load(p->type, p->a, i, j);
        store(p->type, p->a, i, j, load(p->type, p->a, with, j));
        store(p->type, p->a, with, j, kept);
    }
}

/* P a = l u, column by column of the factors. */
static int getrf(const job *p)
{
    int info = 0;
    for (int k = 0; k < p->n; k++) {
        int with = k;
        for (int i = k; i < p->n; i++)
            if (fabs(load(p->type, p->a, i, k)) > fabs(load(p->type, p->a, with, k)))
                with = i;
        p->pivots[k] = with + 1;
        swap_rows(p, k, with);
        double pivot = load(p->type, p->a, k, k);
        info = info || pivot != 0 ? info : k + 1;
        for (int i = k + 1; i < p->n && pivot != 0; i++) {
            double left = load(p->type, p->a, i, k) / pivot;
            store(p->type, p->a, i, k, left);
            for (int j = k + 1; j < p->n; j++)
                store(p->type, p->a, i, j, load(p->type, p->a, i, j) - left * load(p->type, p->a, k, j));
        }
    }
    return info;
}

/* Column j is multiplied by 1 - tau v v^T, where v is column k below its row k, and 1 there. */
static void reflect(const job *p, int k, int j, double tau)
{
    double sum = load(p->type, p->a, k, j);
    for (int i = k + 1; i < p->m; i++)
        sum += load(p->type, p->a, i, k) * load(p->type, p->a, i, j);
    store(p->type, p->a, k, j, load(p->type, p->a, k, j) - tau * sum);
    for (int i = k + 1; i < p->m; i++)
        store(p->type, p->a, i, j, load(p->type, p->a, i, j) - tau * sum * load(p->type, p->a, i, k));
}

static void geqrf(const job *p)
{
    for (int k = 0; k < p->n; k++) {
        double first = load(p->type, p->a, k, k), below = 0;
        for (int i = k + 1; i < p->m; i++)
            below = hypot(below, load(p->type, p->a, i, k));
        double left = below == 0 ? first : -copysign(hypot(first, below), first);
        double tau = below == 0 ? 0 : (left - first) / left;
        for (int i = k + 1; i < p->m && below != 0; i++)
            store(p->type, p->a, i, k, load(p->type, p->a, i, k) / (first - left));
        store(p->type, p->a, k, k, left);
        store(p->type, p->b, k, 0, tau);
        for (int j = k + 1; j < p->n; j++)
            reflect(p, k, j, tau);
    }
}

/* The first n columns of the product of n reflections. What is above the vectors is not read. */
static void orgqr(const job *p)
{
    for (int k = p->n - 1; k >= 0; k--) {
        double tau = load(p->type, p->b, k, 0);
        for (int j = k + 1; j < p->n; j++) {
            store(p->type, p->a, k, j, 0);
            reflect(p, k, j, tau);
        }
        for (int i = 0; i < p->m; i++)
            store(p->type, p->a, i, k, i < k ? 0 : i == k ? 1 - tau : -tau * load(p->type, p->a, i, k));
    }
}

static void run(const fakeCudaLaunch *l, void **params)
{
    (void)l;
    const job *p = params[0];
    size_t edge = p->workspace_bytes < 16384 ? p->workspace_bytes : 16384;
    memset(p->workspace, 0x5C, edge); /* whatever is at both ends of it is overwritten */
    memset((char *)p->workspace + p->workspace_bytes - edge, 0x5C, edge);
    switch (p->kind) {
    case GEMM:
        if (p->batch)
            gemms(p);
        else
            gemm(p);
        break;
    case TRSM:
        trsm(p);
        break;
    case SYRK:
        syrk(p);
        break;
    case POTRF:
        *p->info = potrf(p);
        break;
    case GETRF:
        *p->info = getrf(p);
        break;
    case GEQRF:
        geqrf(p);
        *p->info = 0;
        break;
    case ORGQR:
        orgqr(p);
        *p->info = 0;
        break;
    }
}

/* Loads are counted while FAKE_LINALG_LOADS is set, from nothing whenever it changes. */
static bool is_loaded(const job *j)
{
    enum { MOST = 512, WORDS = 7 };
    static int known[MOST][WORDS], count, generation;
    const int key[WORDS] = { (int)j->kind, (int)j->type, j->m, j->n, j->k, j->batch, fakeCudaCurrent() };
    const char *now = getenv("FAKE_LINALG_LOADS");
    if (!now)
        return true;
    count = generation == atoi(now) ? count : 0;
    generation = atoi(now);
    for (int i = 0; i < count; i++)
        if (memcmp(known[i], key, sizeof key) == 0)
            return true;
    if (count < MOST)
        memcpy(known[count++], key, sizeof key);
    return false;
}

/* A real library loads the code of a kernel when it is first called, for each context. */
static void load_code(const job *j)
{
    static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&guard);
    bool loaded = is_loaded(j);
    pthread_mutex_unlock(&guard);
    if (!loaded)
        fakeCudaInjected("load by a library");
}

CUresult columns_queue(const job *j, CUstream stream)
{
    static const size_t size = sizeof *j;
    load_code(j);
    job copy = *j;
    return cuLaunchKernel(fakeCudaFunction("column order", run, &size, 1), 1, 1, 1, 1, 1, 1, 0, stream,
                          (void *[]){ &copy }, NULL);
}
