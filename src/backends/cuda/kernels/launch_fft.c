/* SPDX-License-Identifier: Apache-2.0 */
/* fft by cuFFT. One plan for each shape and device; its work area is the launch's scratch, which lanes do not share, so
 * nothing is allocated in flight and launches can be captured. */
#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/kernels/plain.h"
#include "backends/cuda/nvidia/fft_api.h"
#include "kernels/fft/fft.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>

typedef struct made {
    gy_fft_shape shape; /* `inverse` says nothing */
    cufftHandle plan;
    size_t bytes; /* of the work area */
} made;

typedef struct handle {
    gy_cufft fft;
    void *plain; /* of gy_plain_fft, which multiplies by the scale */
    int driver_version;
    made *plan;
    size_t plans;
    char why[160];
} handle;

static gantry_status check(handle *h, cufftResult status, const char *call)
{
    if (status == CUFFT_SUCCESS)
        return GANTRY_OK;
    snprintf(h->why, sizeof h->why, "%s of %s returned %s (%d)", call, h->fft.lib.name, gy_cufft_status_name(status),
             (int)status);
    return GANTRY_E_DEVICE;
}

static gantry_status usable_fft(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    gy_cufft fft;
    (void)kernel;
    return gy_cufft_open(&fft, gy_linalg_driver_version(driver), err) ? GANTRY_E_UNSUPPORTED : GANTRY_OK;
}

static gantry_status open_fft(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    (void)kernel;
    handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    h->driver_version = gy_linalg_driver_version(driver);
    gantry_status status = gy_cufft_open(&h->fft, h->driver_version, err);
    status = status ? status : gy_cuda_image_open(&h->plain, &gy_plain_fft, driver, err);
    if (status) {
        gy_free(h);
        return status;
    }
    *opened = h;
    return GANTRY_OK;
}

static void close_fft(void *opened)
{
    handle *h = opened;
    for (size_t i = 0; i < h->plans; i++)
        h->fft.cufftDestroy(h->plan[i].plan);
    gy_free(h->plan);
    gy_cuda_image_close(h->plain);
    gy_free(h);
}

static const char *why_fft(const void *opened)
{
    const handle *h = opened;
    return h->why;
}

/* One call transforms what lies side by side, or along axes of one array; of many arrays with something behind the
 * axes, so many calls would take longer than the passes of our own kernel. */
enum { MOST_CALLS = 512 };

static int64_t calls_of(const gy_fft_shape *s)
{
    return s->inner > 1 ? s->outer : 1;
}

static const made *find(const handle *h, const gy_fft_shape *s)
{
    for (size_t i = 0; i < h->plans; i++)
        if (gy_fft_same(&h->plan[i].shape, s, false))
            return &h->plan[i];
    return NULL;
}

static gantry_status make_plan(handle *h, made *m)
{
    const gy_fft_shape *s = &m->shape;
    long long n[GY_FFT_AXES] = { s->n[0], s->n[1], s->n[2] }, *layout = s->inner > 1 ? n : NULL;
    long long stride = s->inner, apart = s->inner > 1 ? 1 : gy_fft_points(s),
              batch = s->inner > 1 ? s->inner : s->outer;
    cufftType type = s->dtype == GANTRY_F32 ? CUFFT_C2C : CUFFT_Z2Z;
    gantry_status status = check(h, h->fft.cufftSetAutoAllocation(m->plan, 0), "cufftSetAutoAllocation");
    return status ? status
                  : check(h,
                          h->fft.cufftMakePlanMany64(m->plan, s->axes, n, layout, stride, apart, layout, stride, apart,
                                                     type, batch, &m->bytes),
                          "cufftMakePlanMany64");
}

static gantry_status add_plan(handle *h, const gy_fft_shape *s, gantry_error *err)
{
    made *grown = gy_realloc(h->plan, h->plans + 1, sizeof *grown);
    if (!grown)
        return gy_fail_nomem(err);
    h->plan = grown;
    made m = { .shape = *s };
    gantry_status status = check(h, h->fft.cufftCreate(&m.plan), "cufftCreate");
    if (status)
        return gy_linalg_fail(h->why, h->driver_version, err);
    status = make_plan(h, &m);
    if (status) {
        h->fft.cufftDestroy(m.plan);
        return gy_fail(err, status, NULL, "%s for %lld transforms of %lld numbers", h->why,
                       (long long)(s->outer * s->inner), (long long)gy_fft_points(s));
    }
    h->plan[h->plans++] = m;
    return GANTRY_OK;
}

static gantry_status prepare_fft(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    handle *h = l->handle;
    gy_fft_shape s = gy_fft_shape_of(l);
    gantry_launch plain = gy_launch_with(l, h->plain);
    if (calls_of(&s) > MOST_CALLS)
        return gy_plain_fft.prepare(&plain, scratch, err);
    GY_TRY(gy_cuda_image_prepare(&plain, scratch, err));
    if (gy_fft_numbers(&s) == 0)
        return GANTRY_OK;
    if (!find(h, &s))
        GY_TRY(add_plan(h, &s, err));
    uint64_t need = find(h, &s)->bytes;
    *scratch = need > *scratch ? need : *scratch;
    return GANTRY_OK;
}

static gantry_status transform(handle *h, const gantry_launch *l, const made *m, int sign)
{
    const gy_fft_shape *s = &m->shape;
    size_t array = (size_t)(gy_fft_points(s) * s->inner) * 2 * gantry_dtype_size(s->dtype);
    char *x = l->arg[GY_FFT_X].data, *y = l->arg[GY_FFT_Y].data;
    gantry_status status = check(h, h->fft.cufftSetStream(m->plan, l->stream), "cufftSetStream");
    if (m->bytes && !status)
        status = check(h, h->fft.cufftSetWorkArea(m->plan, l->scratch), "cufftSetWorkArea");
    for (int64_t i = 0; i < calls_of(s) && !status; i++, x += array, y += array) {
        void *from = x, *to = y;
        status = s->dtype == GANTRY_F32 ? check(h, h->fft.cufftExecC2C(m->plan, from, to, sign), "cufftExecC2C")
                                        : check(h, h->fft.cufftExecZ2Z(m->plan, from, to, sign), "cufftExecZ2Z");
    }
    return status;
}

static gantry_status launch_plain(handle *h, const gantry_launch *l, gantry_status (*launch)(const gantry_launch *),
                                  const char *what)
{
    gantry_launch plain = gy_launch_with(l, h->plain);
    gantry_status status = launch(&plain);
    if (status)
        snprintf(h->why, sizeof h->why, "the driver refused to launch the kernel that %s", what);
    return status;
}

static gantry_status launch_fft(const gantry_launch *l)
{
    handle *h = l->handle;
    gy_fft_shape s = gy_fft_shape_of(l);
    if (gy_fft_numbers(&s) == 0)
        return GANTRY_OK;
    if (calls_of(&s) > MOST_CALLS)
        return launch_plain(h, l, gy_plain_fft_launch, "transforms");
    const made *m = find(h, &s);
    if (!m) {
        snprintf(h->why, sizeof h->why, "no plan was made for %lld transforms of %lld numbers",
                 (long long)(s.outer * s.inner), (long long)gy_fft_points(&s));
        return GANTRY_E_DEVICE;
    }
    GY_TRY(transform(h, l, m, s.inverse ? CUFFT_INVERSE : CUFFT_FORWARD));
    return gy_fft_scale_of(l) == 1 ? GANTRY_OK : launch_plain(h, l, gy_plain_scale_complex, "multiplies by the scale");
}

const gy_cuda_kernel gy_library_fft = { .name = "fft",
                                        .launch = launch_fft,
                                        .open = open_fft,
                                        .close = close_fft,
                                        .usable = usable_fft,
                                        .prepare = prepare_fft,
                                        .why = why_fft,
                                        .loads = gy_linalg_loads };
