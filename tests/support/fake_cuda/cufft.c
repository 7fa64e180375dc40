/* SPDX-License-Identifier: Apache-2.0 */
/* libcufft.so.12 for tests: as cufft.h declares it, on the fake driver, by the definition of the transform in double. A
 * plan that was not told to leave its work area to the caller, or that was given none, ends the program. */
#pragma GCC visibility push(default)
#include <cufft.h>
#pragma GCC visibility pop

#include "columns.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct plan {
    bool used, by_caller; /* by_caller: the work area */
    int device;
    int64_t n, count;
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
    if (handle < 1 || handle >= PLANS || !plans[handle].used)
        columns_wrong("%d is no plan of cuFFT", handle);
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
    return p->n * p->count < 8 ? 0 : (size_t)(p->n * p->count * 16 + 48);
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long *n, long long *inembed, long long istride,
                                long long idist, long long *onembed, long long ostride, long long odist, cufftType type,
                                long long batch, size_t *bytes)
{
    FAIL_IF_TOLD(cufftMakePlanMany64);
    plan *p = find(handle);
    (void)inembed;
    (void)onembed;
    if (rank != 1 || *n < 1 || batch < 1)
        return CUFFT_INVALID_SIZE;
    if (istride != 1 || ostride != 1 || idist != *n || odist != *n)
        columns_wrong("a plan of cuFFT for numbers that do not lie one behind the other");
    p->n = *n;
    p->count = batch;
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

static void transform_one(const transform *t, int64_t first)
{
    int64_t n = t->plan.n;
    for (int64_t k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (int64_t j = 0; j < n; j++) {
            double angle = t->sign * 2 * acos(-1) * (double)(j * k % n) / (double)n, c = cos(angle), s = sin(angle);
            double a = load(t, 2 * (first + j)), b = load(t, 2 * (first + j) + 1);
            re += a * c - b * s;
            im += a * s + b * c;
        }
        store(t, 2 * (first + k), re);
        store(t, 2 * (first + k) + 1, im);
    }
}

static void run(const fakeCudaLaunch *l, void **params)
{
    const transform *t = params[0];
    (void)l;
    if (area_of(&t->plan))
        memset(t->plan.area, 0x5C, area_of(&t->plan));
    for (int64_t i = 0; i < t->plan.count; i++)
        transform_one(t, i * t->plan.n);
}

static cufftResult queue(cufftHandle handle, cufftType type, void *x, void *y, int sign)
{
    static const size_t size = sizeof(transform);
    const plan *p = find(handle);
    transform t = { *p, x, y, sign };
    if (p->type != type || !p->n || x == y)
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
