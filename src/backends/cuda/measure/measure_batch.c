/* SPDX-License-Identifier: Apache-2.0 */
/* The time that one more op of a kernel adds to a batch: that of many by one call, less that of one. Matrices lie in
 * equal steps, as those of a split buffer do. */
#include "backends/cuda/measure/measure.h"
#include "backends/cuda/measure/recipe.h"

#include "base/align.h"
#include "base/error.h"
#include <string.h>

#define MOST_US 2e4 /* that all of a batch would take one by one */
#define GAIN    0.8 /* of its time alone that an op may add at most, for batches to be worth it */

enum { MOST = 256, LEAST = 32 }; /* ops; fewer do not show what a full GPU does */

static const int64_t sides[] = { 16, 32, 64, 128, 256, 512 };

typedef struct batch {
    const gy_recipe_launch *one;
    gantry_launch launch[MOST];
    const gantry_launch *list[MOST];
    gantry_arg *args;
    gy_cuda_batch what;
} batch;

static gantry_status queue(gy_harness *harness, const void *what, gantry_error *err)
{
    const batch *b = what;
    GY_TRY(gy_harness_use(harness, b->one->gpu, err));
    return gy_harness_launched(harness, b->one->gpu, b->one->kernel, b->launch[0].handle,
                               b->one->kernel->launch_batch(&b->launch[0], &b->what), err);
}

/* The bytes from the arguments of one launch to those of the next. */
static uint64_t step_of(const gy_recipe_launch *l)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < l->graph->buffers.count; i++)
        bytes += gy_aligned(l->graph->buffers.at[i].bytes);
    return bytes;
}

/* The arguments of all lie behind those of the first, then the addresses of all, then its scratch. */
static gantry_status place(batch *b, gy_harness *harness, uint64_t step, gantry_error *err)
{
    const gy_recipe_launch *l = b->one;
    const gy_harness_gpu *g = &harness->gpu[l->gpu];
    uint32_t args = (uint32_t)l->launch.args;
    const void **data = (const void **)(uintptr_t)g->host;
    uint64_t bytes = (uint64_t)args * b->what.count * sizeof *data;
    for (uint32_t i = 0; i < b->what.count; i++) {
        b->launch[i] = l->launch;
        b->launch[i].arg = &b->args[i * args];
        b->launch[i].scratch = (void *)(uintptr_t)(g->block + b->what.count * step + gy_aligned(bytes));
        b->list[i] = &b->launch[i];
        for (uint32_t a = 0; a < args; a++) {
            gantry_arg *arg = &b->args[i * args + a];
            *arg = l->launch.arg[a];
            arg->data = arg->data ? (char *)arg->data + i * step : NULL;
            data[a * b->what.count + i] = arg->data;
        }
    }
    b->what.launch = b->list;
    b->what.data = g->block + b->what.count * step;
    GY_TRY(gy_harness_use(harness, l->gpu, err));
    CUresult code = harness->d.cuMemcpyHtoDAsync(b->what.data, data, bytes, g->stream[0]);
    for (uint32_t i = 1; i < b->what.count && code == CUDA_SUCCESS; i++)
        code = harness->d.cuMemcpyDtoDAsync(g->block + i * step, g->block, step, g->stream[0]);
    GY_TRY(gy_harness_check(harness, code, l->gpu, "repeating arguments", err));
    return gy_harness_drain(harness, err);
}

/* As many as there is room for. */
static uint32_t count_of(const gy_harness *harness, const gy_recipe_launch *l, uint64_t step)
{
    uint64_t list = (uint64_t)l->launch.args * MOST * sizeof(void *),
             other = gy_aligned(list) + l->launch.scratch_bytes;
    uint64_t room = 2 * harness->bytes > other + step ? (2 * harness->bytes - other) / step - 1 : 0;
    return list > harness->host ? 0 : room < MOST ? (uint32_t)room : MOST;
}

/* *added: of one more, us; 0: it is not worth it, or not to be had. */
static gantry_status time_added(gy_measure *m, const gy_recipe_launch *l, gy_figure *added, gantry_error *err)
{
    gy_workload alone = { .queue = gy_recipe_queue, .what = l, .first_lane = { l->gpu, 0 } };
    batch b = { .one = l };
    uint64_t step = step_of(l);
    gy_figure one, all;
    *added = (gy_figure){ 0 };
    b.what.count = count_of(&m->harness, l, step);
    GY_TRY(gy_harness_sample_nodes(&m->harness, &alone, 0, &one, err));
    if (b.what.count < LEAST || one.us * b.what.count > MOST_US)
        return GANTRY_OK;
    b.args = gy_calloc((size_t)b.what.count * (size_t)l->launch.args, sizeof *b.args);
    if (!b.args)
        return gy_fail_nomem(err);
    gy_workload many = { .queue = queue, .what = &b, .first_lane = { l->gpu, 0 } };
    gantry_status status = place(&b, &m->harness, step, err);
    status = status ? status : gy_harness_sample_nodes(&m->harness, &many, 0, &all, err);
    gy_harness_settle(&m->harness);
    gy_free(b.args);
    if (status)
        return status;
    double us = (all.us - one.us) / (b.what.count - 1);
    *added = (gy_figure){ us > 0.001 ? us : 0.001, all.mad_us / b.what.count, all.samples };
    added->us = added->us < GAIN * one.us ? added->us : 0;
    return GANTRY_OK;
}

/* A library that refuses batches has none; what is wrong with the GPU is an error. */
static gantry_status time_or_none(gy_measure *m, const gy_recipe_launch *l, gy_figure *added, gantry_error *err)
{
    gantry_error why = { 0 };
    gantry_status status = time_added(m, l, added, &why);
    if (status == GANTRY_E_DEVICE && why.native == 0) {
        *added = (gy_figure){ 0 };
        return gy_harness_drain(&m->harness, err);
    }
    if (status && err)
        *err = why;
    return status;
}

gantry_status gy_measure_batched(gy_measure *m, gy_measured_kernel *k, const gy_recipe_launch *like, gantry_error *err)
{
    const gy_cuda_kernel *kernel = like->kernel;
    bool can = kernel->launch_batch && (!kernel->batches || kernel->batches(like->launch.handle));
    bool worth = can && gy_recipe_size(k->name, 0) == sides[0];
    for (size_t i = 0; i < sizeof sides / sizeof *sides && worth; i++) {
        gy_recipe_launch l;
        gy_measured_point point = { 0 };
        gy_recipe_call call = { k->name, k->dtype, sides[i], 0 };
        gantry_status status =
            gy_recipe_open(&l, &m->harness, like->gpu, like->kernel, like->launch.handle, &call, err);
        if (status)
            return status == GANTRY_E_UNSUPPORTED ? GANTRY_OK : status;
        worth = l.most == 0;
        if (worth)
            status = time_or_none(m, &l, &point.time, err);
        point.work = k->by_flops ? l.flops : l.bytes;
        gy_recipe_free(&l, &m->harness);
        GY_TRY(status);
        worth = worth && point.time.us > 0;
        if (worth && !gy_vec_push(&k->batched, point))
            return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}
