/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between GPUs, within one, and between one and the host by the kernel that collectives have, against those of
 * the driver, both as nodes of a graph: up to which size the kernel is faster. From there on copies are left to the
 * driver. */
#include "backends/cuda/measure/measure.h"

#include "backends/cuda/kernels/kernels.h"
#include "base/error.h"

/* Between a GPU and the host up to 64 KiB: beyond, what a kernel saves is little beside the time that it takes from
 * others by waiting for the bus. */
enum { SIZES = 6, HOST_SIZES = 3 };
#define SMALLEST (UINT64_C(4) << 10) /* 4 KiB, 16 KiB, ... 4 MiB: sizes of measure_copy.c */

typedef struct pair {
    uint32_t from, to; /* GPUs, or GY_HARNESS_HOST */
    uint64_t bytes;
    void *handle; /* of the kernel, on `from` */
} pair;

static bool has_host(const pair *p)
{
    return p->from == GY_HARNESS_HOST || p->to == GY_HARNESS_HOST;
}

/* The GPU that copies. */
static uint32_t gpu_of(const pair *p)
{
    return p->from == GY_HARNESS_HOST ? p->to : p->from;
}

/* Where that end of the pair begins, for its GPU. */
static CUdeviceptr address_of(const gy_harness *harness, const pair *p, bool to)
{
    uint32_t end = to ? p->to : p->from;
    if (end == GY_HARNESS_HOST)
        return (CUdeviceptr)(uintptr_t)harness->gpu[gpu_of(p)].host;
    return harness->gpu[end].block + (to ? harness->bytes : 0);
}

static gantry_status queue_engine(gy_harness *harness, const void *what, gantry_error *err)
{
    const pair *p = what;
    return gy_harness_copy(harness, (gy_harness_lane){ gpu_of(p), 0 }, p->from, p->to, p->bytes, 0, err);
}

static gantry_status queue_kernel(gy_harness *harness, const void *what, gantry_error *err)
{
    const pair *p = what;
    gantry_arg arg[] = { gy_combine_arg(GANTRY_READ, GANTRY_U8, address_of(harness, p, false), p->bytes),
                         gy_combine_arg(GANTRY_WRITE, GANTRY_U8, address_of(harness, p, true), p->bytes) };
    gantry_launch l = { .struct_size = sizeof l, .args = 2, .arg = arg, .arg_size = sizeof *arg, .handle = p->handle };
    GY_TRY(gy_harness_use(harness, gpu_of(p), err));
    l.stream = gy_harness_stream(harness, (gy_harness_lane){ gpu_of(p), 0 });
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(GY_CUDA_COMBINE);
    return gy_harness_launched(harness, gpu_of(p), kernel, l.handle, kernel->launch(&l), err);
}

static gantry_status sample(gy_measure *m, const pair *p, gy_harness_queue *queue, int64_t until_ns, gy_figure *figure,
                            gantry_error *err)
{
    gy_workload workload = { .queue = queue, .what = p, .first_lane = { gpu_of(p), 0 } };
    return gy_harness_sample_nodes(&m->harness, &workload, until_ns, figure, err);
}

static gy_measured_copy *copy_of(const gy_measure *m, const pair *p)
{
    for (size_t i = 0; i < m->to->copies.count; i++) {
        gy_measured_copy *copy = &m->to->copies.at[i];
        if (copy->from == gy_harness_memory(&m->harness, p->from) && copy->to == gy_harness_memory(&m->harness, p->to))
            return copy;
    }
    return NULL;
}

/* Copies of that size take what the kernel takes, and so do those between, by their points. */
static void take_times(gy_measured_copy *copy, uint64_t bytes, gy_figure kernel)
{
    copy->kernel_bytes = (int64_t)bytes;
    for (size_t i = 0; i < copy->points.count; i++) {
        gy_measured_point *at = &copy->points.at[i];
        if (at->work <= (double)bytes && kernel.us < at->time.us)
            at->time = kernel;
    }
}

/* Sizes from the smallest on, as long as the kernel is faster. */
static gantry_status measure_sizes(gy_measure *m, pair p, gy_measured_copy *copy, gantry_error *err)
{
    gy_budget budget = { gy_measure_next(m), 2 * SIZES };
    for (uint32_t i = 0; i < (has_host(&p) ? HOST_SIZES : SIZES); i++) {
        gy_figure engine = { 0 }, kernel = { 0 };
        p.bytes = SMALLEST << (2 * i);
        if (p.bytes > m->harness.bytes || (has_host(&p) && p.bytes > m->harness.host))
            break;
        GY_TRY(sample(m, &p, queue_engine, gy_budget_next(&budget), &engine, err));
        GY_TRY(sample(m, &p, queue_kernel, gy_budget_next(&budget), &kernel, err));
        if (!(kernel.us < engine.us))
            break;
        take_times(copy, p.bytes, kernel);
    }
    return GANTRY_OK;
}

/* That no code was compiled for a GPU is no failure: engines copy. */
static gantry_status measure_pair(gy_measure *m, pair p, gantry_error *err)
{
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(GY_CUDA_COMBINE);
    gy_measured_copy *copy = copy_of(m, &p);
    gantry_error why = { 0 };
    GY_TRY(gy_harness_use(&m->harness, gpu_of(&p), err));
    gantry_status status = copy ? kernel->open(&p.handle, kernel, &m->harness.d, &why) : GANTRY_OK;
    if (!copy || status) {
        gy_measure_next(m);
        if (copy)
            gy_text_printf(&m->to->notes, "not measured: copies by kernels: %s\n", why.text);
        return GANTRY_OK;
    }
    status = measure_sizes(m, p, copy, err);
    if (gy_harness_settle(&m->harness) && !gy_harness_use(&m->harness, gpu_of(&p), NULL))
        kernel->close(p.handle);
    return status;
}

static bool is_wanted(void)
{
    return !gy_driver_switch("GANTRY_CUDA_COPIES", "engines");
}

static uint32_t count(const gy_measure *m)
{
    uint32_t found = 0;
    pair p = { 0 };
    for (uint32_t i = 0; is_wanted() && gy_cuda_kernel_find(GY_CUDA_COMBINE) && i < gy_harness_pairs(&m->harness); i++)
        found += gy_harness_pair_at(&m->harness, i, &p.from, &p.to);
    return found;
}

static gantry_status measure(gy_measure *m, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    pair p = { 0 };
    for (uint32_t i = 0; is_wanted() && i < gy_harness_pairs(&m->harness) && !status; i++)
        status = gy_harness_pair_at(&m->harness, i, &p.from, &p.to) ? measure_pair(m, p, err) : GANTRY_OK;
    return status;
}

const gy_figures gy_figures_carried = { "small copies by kernels", 1, count, measure };
