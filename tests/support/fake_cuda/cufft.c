/* SPDX-License-Identifier: Apache-2.0 */
/* libcufft.so.12 for tests: as cufft.h declares it, on the fake driver, by the definition of the transform in double,
 * split by the factors of its length. A plan that was not told to leave its work area to the caller, or that was given
 * none, ends the program. */
#pragma GCC visibility push(default)
#include <cufft.h>
#pragma GCC visibility pop

#include "columns.h"

#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct plan {
    bool used, by_caller; /* by_caller: the work area */
    int device;
    int axes;
    int64_t n[3], points, count, stride, apart; /* apart: the batch's transforms */
    cufftType type;
    CUstream stream;
    void *area;
} plan;

enum { PLANS = 4096 };
static plan plans[PLANS];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

#define FAIL_IF_TOLD(name)                                                                                             \
    do {                                                                                                               \
        int told_ = columns_failure(#name);                                                                            \
        if (told_)                                                                                                     \
            return (cufftResult)told_;                                                                                 \
    } while (0)

static plan *find(cufftHandle handle)
{
    bool known = handle >= 1 && handle < PLANS && plans[handle].used;
    if (!known) {
        columns_wrong("%d is no plan of cuFFT", handle);
        return &plans[0];
    }
    if (plans[handle].device != fakeCudaCurrent())
        columns_wrong("a plan of cuFFT is used on another device");
    return &plans[handle];
}

cufftResult cufftGetVersion(int *version)
{
    *version = 12000;
    return CUFFT_SUCCESS;
}

cufftResult cufftCreate(cufftHandle *handle)
{
    FAIL_IF_TOLD(cufftCreate);
    cufftResult status = CUFFT_ALLOC_FAILED;
    pthread_mutex_lock(&guard);
    for (int i = 1; i < PLANS && status; i++) {
        if (!plans[i].used) {
            plans[i] = (plan){ .used = true, .device = fakeCudaCurrent() };
            *handle = i;
            status = CUFFT_SUCCESS;
        }
    }
    pthread_mutex_unlock(&guard);
    return status;
}

cufftResult cufftDestroy(cufftHandle handle)
{
    pthread_mutex_lock(&guard);
    find(handle)->used = false;
    pthread_mutex_unlock(&guard);
    return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int automatic)
{
    FAIL_IF_TOLD(cufftSetAutoAllocation);
    find(handle)->by_caller = !automatic;
    return CUFFT_SUCCESS;
}

/* Some number that is easy to get wrong; small plans need none. */
static size_t area_of(const plan *p)
{
    return p->points * p->count < 8 ? 0 : (size_t)(p->points * p->count * 16 + 48);
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long *n, long long *inembed, long long istride,
                                long long idist, long long *onembed, long long ostride, long long odist, cufftType type,
                                long long batch, size_t *bytes)
{
    FAIL_IF_TOLD(cufftMakePlanMany64);
    plan *p = find(handle);
    if (rank < 1 || rank > 3 || *n < 1 || batch < 1)
        return CUFFT_INVALID_SIZE;
    p->axes = rank;
    p->points = 1;
    for (int k = 0; k < rank; k++) {
        p->n[k] = n[k];
        p->points *= n[k];
        if (inembed && (inembed[k] != n[k] || onembed[k] != n[k]))
            columns_wrong("a plan of cuFFT for arrays within larger ones");
    }
    /* Without a layout cuFFT takes arrays one behind the other, whatever the strides say. */
    if (!inembed != !onembed || istride != ostride || idist != odist ||
        (!inembed && (istride != 1 || idist != p->points)))
        columns_wrong("a plan of cuFFT for numbers that lie in another way than it says");
    p->count = batch;
    p->stride = istride;
    p->apart = idist;
    p->type = type;
    *bytes = area_of(p);
    return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
    FAIL_IF_TOLD(cufftSetStream);
    find(handle)->stream = stream;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetWorkArea(cufftHandle handle, void *area)
{
    FAIL_IF_TOLD(cufftSetWorkArea);
    find(handle)->area = area;
    return CUFFT_SUCCESS;
}

/* ---- transforms ---- */

typedef struct transform {
    plan plan;
    const void *x;
    void *y;
    int sign;
} transform;

static double load(const transform *t, int64_t i)
{
    return t->plan.type == CUFFT_C2C ? (double)((const float *)t->x)[i] : ((const double *)t->x)[i];
}

static void store(const transform *t, int64_t i, double value)
{
    if (t->plan.type == CUFFT_C2C)
        ((float *)t->y)[i] = (float)value;
    else
        ((double *)t->y)[i] = value;
}

static int64_t least_factor(int64_t n)
{
    for (int64_t f = 2; f * f <= n; f++)
        if (n % f == 0)
            return f;
    return n;
}

/* Of n complex numbers, each `stride` behind the one before it, to `y`: the definition of the transform, split by the
 * least factor of n, as calibrations transform long lines. `roots`: the powers of the n-th root of 1, each `step`
 * behind the one before it; `sums` has room for n numbers. */
static void transform_line(int64_t n, const double complex *x, int64_t stride, const double complex *roots,
                           int64_t step, double complex *y, double complex *sums)
{
    int64_t factor = least_factor(n), part = n / factor;
    if (n == 1) {
        *y = *x;
        return;
    }
    for (int64_t f = 0; f < factor; f++)
        transform_line(part, x + f * stride, stride * factor, roots, step * factor, y + f * part, sums);
    for (int64_t k = 0; k < n; k++) {
        sums[k] = 0;
        for (int64_t f = 0; f < factor; f++)
            sums[k] += y[f * part + k % part] * roots[f * k % n * step];
    }
    memcpy(y, sums, (size_t)n * sizeof *y);
}

/* Along an axis of `points` complex numbers; `line` has room for three of its lines. */
static void transform_axis(const transform *t, int axis, double complex *z, double complex *line)
{
    int64_t n = t->plan.n[axis], stride = 1;
    double complex *roots = line + n, *sums = roots + n;
    for (int64_t k = 0; k < n; k++)
        roots[k] = cexp(t->sign * 2 * acos(-1) * (double)k / (double)n * I);
    for (int k = axis + 1; k < t->plan.axes; k++)
        stride *= t->plan.n[k];
    for (int64_t i = 0; i < t->plan.points / n; i++) {
        double complex *at = z + i / stride * n * stride + i % stride;
        transform_line(n, at, stride, roots, 1, line, sums);
        for (int64_t k = 0; k < n; k++)
            at[k * stride] = line[k];
    }
}

static void transform_one(const transform *t, int64_t first)
{
    const plan *p = &t->plan;
    double complex *z = malloc((size_t)p->points * 4 * sizeof *z);
    for (int64_t i = 0; i < p->points; i++)
        z[i] = load(t, 2 * (first + i * p->stride)) + load(t, 2 * (first + i * p->stride) + 1) * I;
    for (int k = 0; k < p->axes; k++)
        transform_axis(t, k, z, z + p->points);
    for (int64_t i = 0; i < p->points; i++) {
        store(t, 2 * (first + i * p->stride), creal(z[i]));
        store(t, 2 * (first + i * p->stride) + 1, cimag(z[i]));
    }
    free(z);
}

static void run(const fakeCudaLaunch *l, void **params)
{
    const transform *t = params[0];
    (void)l;
    if (area_of(&t->plan))
        memset(t->plan.area, 0x5C, area_of(&t->plan));
    for (int64_t i = 0; i < t->plan.count; i++)
        transform_one(t, i * t->plan.apart);
}

static cufftResult queue(cufftHandle handle, cufftType type, void *x, void *y, int sign)
{
    static const size_t size = sizeof(transform);
    const plan *p = find(handle);
    transform t = { *p, x, y, sign };
    if (p->type != type || !p->points || x == y)
        columns_wrong("a plan of cuFFT is used for what it was not made for");
    if (!p->by_caller || (area_of(p) && !p->area))
        columns_wrong("a plan of cuFFT has no work area of the caller's");
    CUresult code = cuLaunchKernel(fakeCudaFunction("cuFFT", run, &size, 1), 1, 1, 1, 1, 1, 1, 0, p->stream,
                                   (void *[]){ &t }, NULL);
    return code == CUDA_SUCCESS ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

cufftResult cufftExecC2C(cufftHandle handle, cufftComplex *x, cufftComplex *y, int sign)
{
    FAIL_IF_TOLD(cufftExecC2C);
    return queue(handle, CUFFT_C2C, x, y, sign);
}

cufftResult cufftExecZ2Z(cufftHandle handle, cufftDoubleComplex *x, cufftDoubleComplex *y, int sign)
{
    FAIL_IF_TOLD(cufftExecZ2Z);
    return queue(handle, CUFFT_Z2Z, x, y, sign);
}
