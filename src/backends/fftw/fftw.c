/* SPDX-License-Identifier: Apache-2.0 */
/* gantry-fftw.so: the table of kernel/fft.h over FFTW 3. Plans are estimated, never measured, so that the same
 * transform is computed in the same way every time; arrays may lie anywhere. */
#include "gantry_build_id.h"
#include "kernel/fft.h"
#include <fftw3.h>
#include <pthread.h>
#include <stdbool.h>

typedef struct plan {
    gy_fft_shape shape;
    fftwf_plan narrow; /* f32 */
    fftw_plan wide;    /* f64 */
} plan;

/* FFTW makes and forgets plans in one table of its own, for one thread at a time. */
static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

/* FFTW ends the process where it gets no memory. It takes a few times the transform for factors, and some for itself.
 */
static bool has_room(const gy_fft_shape *s)
{
    size_t bytes = ((size_t)1 << 20) + 8 * (size_t)gy_fft_points(s) * 2 * gantry_dtype_size(s->dtype);
    void *probe = fftw_malloc(bytes);
    fftw_free(probe);
    return probe != NULL;
}

static void make(plan *p, const void *x, void *y)
{
    const gy_fft_shape *s = &p->shape;
    int sign = s->inverse ? FFTW_BACKWARD : FFTW_FORWARD;
    unsigned flags = FFTW_ESTIMATE | FFTW_UNALIGNED | FFTW_PRESERVE_INPUT;
    /* Nothing is read or written through it, as plans are estimated. */
    void *in = (void *)(uintptr_t)x;
    int64_t apart = gy_fft_points(s) * s->inner;
    fftw_iodim64 along[GY_FFT_AXES], many[2] = { { s->outer, apart, apart }, { s->inner, 1, 1 } };
    fftwf_iodim64 along_narrow[GY_FFT_AXES], many_narrow[2] = { { s->outer, apart, apart }, { s->inner, 1, 1 } };
    for (int k = 0; k < s->axes; k++) {
        int64_t stride = gy_fft_stride(s, k);
        along[k] = (fftw_iodim64){ s->n[k], stride, stride };
        along_narrow[k] = (fftwf_iodim64){ s->n[k], stride, stride };
    }
    if (s->dtype == GANTRY_F32)
        p->narrow = fftwf_plan_guru64_dft(s->axes, along_narrow, 2, many_narrow, in, y, sign, flags);
    else
        p->wide = fftw_plan_guru64_dft(s->axes, along, 2, many, in, y, sign, flags);
}

static void *make_plan(const gy_fft_shape *shape, const void *x, void *y)
{
    plan *p = has_room(shape) ? fftw_malloc(sizeof *p) : NULL;
    if (!p)
        return NULL;
    *p = (plan){ .shape = *shape };
    pthread_mutex_lock(&planner);
    make(p, x, y);
    pthread_mutex_unlock(&planner);
    if (p->narrow || p->wide)
        return p;
    fftw_free(p);
    return NULL;
}

static void scale_all(const gy_fft_shape *s, void *y, double scale)
{
    int64_t n = 2 * gy_fft_numbers(s);
    float *narrow = y;
    double *wide = y;
    for (int64_t i = 0; s->dtype == GANTRY_F32 && i < n; i++)
        narrow[i] *= (float)scale;
    for (int64_t i = 0; s->dtype == GANTRY_F64 && i < n; i++)
        wide[i] *= scale;
}

static gantry_status run(const void *made, const void *x, void *y, double scale)
{
    const plan *p = made;
    void *in = (void *)(uintptr_t)x; /* preserved, as the plan says */
    if (p->narrow)
        fftwf_execute_dft(p->narrow, in, y);
    else
        fftw_execute_dft(p->wide, in, y);
    if (scale != 1)
        scale_all(&p->shape, y, scale);
    return GANTRY_OK;
}

static void free_plan(void *made)
{
    plan *p = made;
    pthread_mutex_lock(&planner);
    if (p->narrow)
        fftwf_destroy_plan(p->narrow);
    if (p->wide)
        fftw_destroy_plan(p->wide);
    pthread_mutex_unlock(&planner);
    fftw_free(p);
}

GANTRY_API extern const char gantry_fftw_build_id[];
const char gantry_fftw_build_id[] = GY_BUILD_ID;

GANTRY_API const void *gantry_fftw_module(void);

const void *gantry_fftw_module(void)
{
    static const gy_fft table = { "FFTW", make_plan, run, free_plan };
    return &table;
}
