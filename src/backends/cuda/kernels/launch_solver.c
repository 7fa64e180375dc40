/* SPDX-License-Identifier: Apache-2.0 */
/* potrf, getrf and qr by cuSOLVER. It has no way to be given the workspace of the cuBLAS inside of it, so each lane has
 * a handle of its own. Its info is LAPACK's: 0, or the order of the minor that is not positive; it goes to the status
 * word.
 *
 * A lower triangle in C order is an upper one to cuSOLVER, which takes more than twice as long for those (H200, f64,
 * 1024 x 1024: 0.90 and 0.42 ms), so the matrix is turned before and after, in place. That of qr is turned into
 * scratch. */
#include "backends/cuda/kernels/linalg.h"
#include "backends/cuda/kernels/plain_qr.h"
#include "backends/cuda/nvidia/solver.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>

typedef struct lane {
    void *stream;
    cusolverDnHandle_t cusolver;
} lane;

typedef struct handle {
    gy_solver solver;
    void *plain; /* of the kernel that turns the matrix: gy_plain_qr, or else gy_plain_potrf */
    int driver_version;
    lane *lane;
    size_t lanes;
    char why[160];
} handle;

static gantry_status check(handle *h, cusolverStatus_t status, const char *call)
{
    if (status == CUSOLVER_STATUS_SUCCESS)
        return GANTRY_OK;
    snprintf(h->why, sizeof h->why, "%s of %s returned %s (%d)", call, h->solver.lib.name,
             gy_solver_status_name(status), (int)status);
    return GANTRY_E_DEVICE;
}

static gantry_status usable_solver(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    gy_solver solver;
    (void)kernel;
    return gy_solver_open(&solver, gy_linalg_driver_version(driver), err) ? GANTRY_E_UNSUPPORTED : GANTRY_OK;
}

static gantry_status open_solver(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver,
                                 gantry_error *err)
{
    const gy_cuda_kernel *plain = kernel == &gy_library_qr ? &gy_plain_qr : &gy_plain_potrf;
    handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    h->driver_version = gy_linalg_driver_version(driver);
    gantry_status status = gy_solver_open(&h->solver, h->driver_version, err);
    status = status ? status : gy_cuda_image_open(&h->plain, plain, driver, err);
    if (status) {
        gy_free(h);
        return status;
    }
    *opened = h;
    return GANTRY_OK;
}

static void close_solver(void *opened)
{
    handle *h = opened;
    for (size_t i = 0; i < h->lanes; i++)
        h->solver.cusolverDnDestroy(h->lane[i].cusolver);
    gy_free(h->lane);
    gy_cuda_image_close(h->plain);
    gy_free(h);
}

static const char *why_solver(const void *opened)
{
    const handle *h = opened;
    return h->why;
}

/* The cuSOLVER handle of the stream; NULL: it has none yet. */
static cusolverDnHandle_t find(const handle *h, const void *stream)
{
    for (size_t i = 0; i < h->lanes; i++)
        if (h->lane[i].stream == stream)
            return h->lane[i].cusolver;
    return NULL;
}

static gantry_status add_lane(handle *h, void *stream, gantry_error *err)
{
    lane *grown = gy_realloc(h->lane, h->lanes + 1, sizeof *grown);
    if (!grown)
        return gy_fail_nomem(err);
    h->lane = grown;
    lane made = { .stream = stream };
    gantry_status status = check(h, h->solver.cusolverDnCreate(&made.cusolver), "cusolverDnCreate");
    if (status)
        return gy_linalg_fail(h->why, h->driver_version, err);
    h->lane[h->lanes++] = made;
    status = check(h, h->solver.cusolverDnSetStream(made.cusolver, stream), "cusolverDnSetStream");
    return status ? gy_fail(err, status, NULL, "%s", h->why) : GANTRY_OK;
}

/* Asks how many elements the scratch needs; it depends on the size only, not on the matrix. */
typedef gantry_status ask_fn(handle *h, cusolverDnHandle_t with, bool wide, gy_gpu_matrix a, int *elements);

static gantry_status ask_potrf(handle *h, cusolverDnHandle_t with, bool wide, gy_gpu_matrix a, int *elements)
{
    cusolverStatus_t code =
        wide ? h->solver.cusolverDnDpotrf_bufferSize(with, CUBLAS_FILL_MODE_LOWER, a.rows, NULL, a.ld, elements)
             : h->solver.cusolverDnSpotrf_bufferSize(with, CUBLAS_FILL_MODE_LOWER, a.rows, NULL, a.ld, elements);
    return check(h, code, wide ? "cusolverDnDpotrf_bufferSize" : "cusolverDnSpotrf_bufferSize");
}

static gantry_status ask_getrf(handle *h, cusolverDnHandle_t with, bool wide, gy_gpu_matrix a, int *elements)
{
    cusolverStatus_t code = wide ? h->solver.cusolverDnDgetrf_bufferSize(with, a.rows, a.rows, NULL, a.ld, elements)
                                 : h->solver.cusolverDnSgetrf_bufferSize(with, a.rows, a.rows, NULL, a.ld, elements);
    return check(h, code, wide ? "cusolverDnDgetrf_bufferSize" : "cusolverDnSgetrf_bufferSize");
}

static gantry_status prepare(const gantry_launch *l, ask_fn *ask, uint64_t *scratch, gantry_error *err)
{
    handle *h = l->handle;
    gy_gpu_matrix a = gy_gpu_matrix_of(&l->arg[0]);
    int elements = 0;
    gantry_launch plain = gy_launch_with(l, h->plain);
    gantry_status status = gy_linalg_check_sizes(l, err);
    status = status ? status : gy_cuda_image_prepare(&plain, scratch, err);
    status = status || find(h, l->stream) ? status : add_lane(h, l->stream, err);
    if (status || a.rows == 0)
        return status;
    status = ask(h, find(h, l->stream), l->arg[0].dtype == GANTRY_F64, a, &elements);
    uint64_t need = (uint64_t)elements * gantry_dtype_size(l->arg[0].dtype);
    *scratch = need > *scratch ? need : *scratch;
    return status ? gy_fail(err, status, NULL, "%s", h->why) : GANTRY_OK;
}

static gantry_status prepare_potrf(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    return prepare(l, ask_potrf, scratch, err);
}

static gantry_status prepare_getrf(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    return prepare(l, ask_getrf, scratch, err);
}

/* cuSOLVER's lower triangle is the upper one here. */
static gantry_status factor(handle *h, const gantry_launch *l)
{
    gy_gpu_matrix a = gy_gpu_matrix_of(&l->arg[0]);
    cusolverDnHandle_t with = find(h, l->stream);
    int elements = (int)(l->scratch_bytes / gantry_dtype_size(l->arg[0].dtype));
    if (l->arg[0].dtype == GANTRY_F64) {
        return check(h,
                     h->solver.cusolverDnDpotrf(with, CUBLAS_FILL_MODE_LOWER, a.rows, a.data, a.ld, l->scratch,
                                                elements, l->status),
                     "cusolverDnDpotrf");
    }
    return check(
        h,
        h->solver.cusolverDnSpotrf(with, CUBLAS_FILL_MODE_LOWER, a.rows, a.data, a.ld, l->scratch, elements, l->status),
        "cusolverDnSpotrf");
}

/* Pivots of cuSOLVER are LAPACK's, which are the kernel's. */
static gantry_status factor_pivoted(handle *h, const gantry_launch *l)
{
    gy_gpu_matrix a = gy_gpu_matrix_of(&l->arg[0]);
    cusolverDnHandle_t with = find(h, l->stream);
    int32_t *pivots = l->arg[1].data;
    if (l->arg[0].dtype == GANTRY_F64)
        return check(h, h->solver.cusolverDnDgetrf(with, a.rows, a.rows, a.data, a.ld, l->scratch, pivots, l->status),
                     "cusolverDnDgetrf");
    return check(h, h->solver.cusolverDnSgetrf(with, a.rows, a.rows, a.data, a.ld, l->scratch, pivots, l->status),
                 "cusolverDnSgetrf");
}

static gantry_status turn(handle *h, const gantry_launch *l)
{
    gantry_launch plain = gy_launch_with(l, h->plain);
    gantry_status status = gy_plain_turn(&plain);
    if (status)
        snprintf(h->why, sizeof h->why, "the driver refused to launch the kernel that turns the matrix");
    return status;
}

static gantry_status launch(const gantry_launch *l, gantry_status (*factor_turned)(handle *h, const gantry_launch *l))
{
    handle *h = l->handle;
    if (l->arg[0].rows == 0)
        return GANTRY_OK;
    GY_TRY(turn(h, l));
    GY_TRY(factor_turned(h, l));
    return turn(h, l);
}

static gantry_status launch_potrf(const gantry_launch *l)
{
    return launch(l, factor);
}

static gantry_status launch_getrf(const gantry_launch *l)
{
    return launch(l, factor_pivoted);
}

/* ---- qr ---- */

/* The larger of what cuSOLVER wants for the reflections and for what is made of them. */
static gantry_status ask_qr(handle *h, cusolverDnHandle_t with, bool wide, int m, int n, int *elements)
{
    int back = 0;
    cusolverStatus_t code = wide ? h->solver.cusolverDnDgeqrf_bufferSize(with, m, n, NULL, m, elements)
                                 : h->solver.cusolverDnSgeqrf_bufferSize(with, m, n, NULL, m, elements);
    GY_TRY(check(h, code, wide ? "cusolverDnDgeqrf_bufferSize" : "cusolverDnSgeqrf_bufferSize"));
    code = wide ? h->solver.cusolverDnDorgqr_bufferSize(with, m, n, n, NULL, m, NULL, &back)
                : h->solver.cusolverDnSorgqr_bufferSize(with, m, n, n, NULL, m, NULL, &back);
    *elements = back > *elements ? back : *elements;
    return check(h, code, wide ? "cusolverDnDorgqr_bufferSize" : "cusolverDnSorgqr_bufferSize");
}

static gantry_status prepare_qr(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    handle *h = l->handle;
    gantry_launch plain = gy_launch_with(l, h->plain);
    int elements = 0, m = (int)l->arg[0].rows, n = (int)l->arg[2].rows;
    gantry_status status = gy_linalg_check_sizes(l, err);
    status = status ? status : gy_plain_qr_prepare(&plain, scratch, err);
    if (status || n == 0 || gy_plain_qr_is_tall(l))
        return status;
    status = find(h, l->stream) ? GANTRY_OK : add_lane(h, l->stream, err);
    GY_TRY(status);
    status = ask_qr(h, find(h, l->stream), l->arg[0].dtype == GANTRY_F64, m, n, &elements);
    uint64_t need = gy_qr_scratch_of(l).bytes + (uint64_t)elements * gantry_dtype_size(l->arg[0].dtype);
    *scratch = need > *scratch ? need : *scratch;
    return status ? gy_fail(err, status, NULL, "%s", h->why) : GANTRY_OK;
}

static gantry_status reflect(handle *h, const gantry_launch *l, const gy_qr_scratch *s, int elements)
{
    cusolverDnHandle_t with = find(h, l->stream);
    int m = (int)l->arg[0].rows, n = (int)l->arg[2].rows;
    if (l->arg[0].dtype == GANTRY_F64)
        return check(h, h->solver.cusolverDnDgeqrf(with, m, n, s->columns, m, s->tau, s->rest, elements, l->status),
                     "cusolverDnDgeqrf");
    return check(h, h->solver.cusolverDnSgeqrf(with, m, n, s->columns, m, s->tau, s->rest, elements, l->status),
                 "cusolverDnSgeqrf");
}

static gantry_status unfold(handle *h, const gantry_launch *l, const gy_qr_scratch *s, int elements)
{
    cusolverDnHandle_t with = find(h, l->stream);
    int m = (int)l->arg[0].rows, n = (int)l->arg[2].rows;
    if (l->arg[0].dtype == GANTRY_F64)
        return check(h, h->solver.cusolverDnDorgqr(with, m, n, n, s->columns, m, s->tau, s->rest, elements, l->status),
                     "cusolverDnDorgqr");
    return check(h, h->solver.cusolverDnSorgqr(with, m, n, n, s->columns, m, s->tau, s->rest, elements, l->status),
                 "cusolverDnSorgqr");
}

static gantry_status own_step(handle *h, const gantry_launch *l, gantry_status (*step)(const gantry_launch *l))
{
    gantry_launch plain = gy_launch_with(l, h->plain);
    gantry_status status = step(&plain);
    if (status)
        snprintf(h->why, sizeof h->why, "the driver refused to launch a kernel of or around the factorisation");
    return status;
}

static gantry_status launch_qr(const gantry_launch *l)
{
    handle *h = l->handle;
    if (l->arg[2].rows == 0)
        return GANTRY_OK;
    if (gy_plain_qr_is_tall(l))
        return own_step(h, l, gy_plain_qr_launch);
    gy_qr_scratch s = gy_qr_scratch_of(l);
    int elements = (int)((l->scratch_bytes - s.bytes) / gantry_dtype_size(l->arg[0].dtype));
    GY_TRY(own_step(h, l, gy_plain_qr_begin));
    GY_TRY(reflect(h, l, &s, elements));
    GY_TRY(own_step(h, l, gy_plain_qr_upper));
    GY_TRY(unfold(h, l, &s, elements));
    return own_step(h, l, gy_plain_qr_end);
}

#define KERNEL(name_)                                                                                                  \
    const gy_cuda_kernel gy_library_##name_ = { .name = #name_,                                                        \
                                                .launch = launch_##name_,                                              \
                                                .open = open_solver,                                                   \
                                                .close = close_solver,                                                 \
                                                .usable = usable_solver,                                               \
                                                .prepare = prepare_##name_,                                            \
                                                .why = why_solver,                                                     \
                                                .loads = gy_linalg_loads,                                              \
                                                .keeps_word = gy_plain_keeps_word };
KERNEL(potrf)
KERNEL(getrf)
KERNEL(qr)
