/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing: code, streams and memory of resident kernels, and what stands in their way. */
#include "backends/cuda/resident/resident.h"

#include "backends/cuda/collective/order.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

bool gy_resident_has(const gy_cuda *h, uint32_t op)
{
    return gy_resident_on(h) && h->resident->has[op];
}

bool gy_resident_streams(const gy_cuda *h, uint32_t lane)
{
    return h->lane[lane].used && !(gy_resident_on(h) && !h->resident->lane[lane].streamed);
}

CUdeviceptr gy_resident_counter(const gy_cuda *h, uint32_t counter)
{
    const gy_resident *r = h->resident;
    return r->gpu[gy_resident_counter_device(h, counter)].block + (uint64_t)r->number[counter] * GY_COUNTER_BYTES;
}

void gy_resident_stale(gy_cuda *h, uint32_t turn)
{
    for (uint32_t i = 0; h->resident && !h->resident->off && i < h->devices; i++)
        if (h->resident->gpu[i].used)
            h->resident->gpu[i].turn[turn].stale = true;
}

void gy_resident_give_up(gy_cuda *h, const char *why)
{
    gy_resident *r = h->resident;
    snprintf(r->off_text, sizeof r->off_text, "%s", why);
    r->off = r->off_text;
}

/* ---- what stands in the way ---- */

static bool shares_gpu(const gy_cuda *h)
{
    const gy_resident *r = h->resident;
    for (uint32_t a = 0; a < h->devices; a++)
        for (uint32_t b = a + 1; b < h->devices; b++)
            if (r->gpu[a].used && r->gpu[b].used && gy_cuda_same_gpu(h, a, b))
                return true;
    return false;
}

/* A schedule that "auto" has made for the devices has none. */
static bool uses_nccl_unasked(const gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    bool any = false;
    for (uint32_t i = 0; i < s->ops.count && !any; i++)
        any = h->op[i].nccl;
    return any && (s->replay != GY_REPLAY_DEVICE || s->by_host > 0);
}

/* Nobody has measured what a cut takes, so a schedule has to be made for the devices by name. */
static const char *detours_unasked(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    return s->replay != GY_REPLAY_DEVICE || s->by_host > 0 ? gy_resident_unreached(h) : NULL;
}

static bool has_attribute(const gy_cuda *h, CUdevice_attribute which)
{
    bool all = true;
    for (uint32_t i = 0; i < h->devices; i++) {
        int value = 0;
        if (h->resident->gpu[i].used)
            all = all && h->d.cuDeviceGetAttribute(&value, which, h->device[i].id) == CUDA_SUCCESS && value;
    }
    return all;
}

/* NULL: nothing. */
static const char *obstacle(gy_cuda *h)
{
    if (h->job->record)
        return "times of ops are recorded, which only streams tell: leave that out (record_trace; --trace, --compare)";
    if (h->job->apart)
        return "ops of a device are kept apart, each a launch of its own: leave that out (apart; --calibrate)";
    if (!gy_cuda_kernel_find(GY_CUDA_RESIDENT))
        return "this gantry was built without code for GPUs: build it where nvcc is found";
    if (uses_nccl_unasked(h))
        return "NCCL carries collectives out, by launches of its own: give their nodes another \"algorithm\", such as "
               "\"counters\", or ask for the replay mode \"device\"";
    if (shares_gpu(h))
        return "two devices are one GPU, so kernels that wait for each other may not run at once: plan for one "
               "device a GPU (--devices)";
    if (!has_attribute(h, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH))
        return "a GPU cannot run all blocks of a kernel at once: leave it out by CUDA_VISIBLE_DEVICES, or use the "
               "replay mode \"graph\"";
    if (!h->d.wait_value || !h->d.write_value || !has_attribute(h, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS))
        return "streams of a GPU cannot wait for words in memory: update the driver, or use the replay mode \"graph\"";
    const char *why = gy_resident_around(h);
    return why ? why : detours_unasked(h);
}

/* ---- making ---- */

/* With formulas, where the graph has some. That they cannot be compiled or linked is no error: streams launch them. */
static gantry_status open_linked(gy_cuda *h, uint32_t device, void **handle, gantry_error *err)
{
    gy_cuda_kernel with = *gy_cuda_kernel_find(GY_CUDA_RESIDENT);
    gantry_error why = { 0 };
    char *image = NULL;
    gantry_status status = gy_resident_link(h, device, &image, &why);
    gy_resident_image linked = { .code = image, .shared = h->resident->linked.shared };
    with.data = &linked;
    status = status ? status : with.open(handle, &with, &h->d, &why);
    gy_free(image);
    if (status == GANTRY_E_NOMEM)
        return gy_fail_nomem(err);
    if (status)
        gy_resident_link_none(h, why.text);
    return GANTRY_OK;
}

/* A GPU that is older than all that the code was compiled for is no error. */
static gantry_status open_code(gy_cuda *h, uint32_t device, gantry_error *err)
{
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(GY_CUDA_RESIDENT);
    gantry_error why = { 0 };
    void *handle = NULL;
    GY_TRY(gy_cuda_use(h, device, err));
    GY_TRY(h->resident->linked.any ? open_linked(h, device, &handle, err) : GANTRY_OK);
    gantry_status status = handle ? GANTRY_OK : kernel->open(&handle, kernel, &h->d, &why);
    h->resident->gpu[device].code = handle;
    if (status == GANTRY_E_NOMEM)
        return gy_fail_nomem(err);
    if (status)
        gy_resident_give_up(h, why.text);
    else if (h->resident->gpu[device].code->places < 1)
        gy_resident_give_up(h, "a GPU has no room for a worker: use the replay mode \"graph\"");
    return GANTRY_OK;
}

/* Counters, of which the last two are the words of series, then a meet for each lane, then a word of progress for each
 * worker that has room. */
static gantry_status make_block(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_resident_gpu *g = &h->resident->gpu[device];
    uint64_t most = (uint64_t)g->code->processors * (uint64_t)g->code->places;
    g->counters += GY_RESIDENT_SERIES_WORDS;
    uint64_t counters = (uint64_t)g->counters * GY_COUNTER_BYTES;
    g->meets_at = counters;
    g->progress_at = g->meets_at + h->lanes * sizeof(gy_resident_meet);
    g->bytes = g->progress_at + most * sizeof(uint64_t);
    g->turn = gy_arena_calloc(&h->arena, h->turns, sizeof *g->turn);
    if (!g->turn)
        return gy_fail_nomem(err);
    for (uint32_t t = 0; t < h->turns; t++)
        g->turn[t].stale = true;
    GY_TRY(gy_cuda_allocate(h, &g->block, device, g->bytes, "counters of its resident kernel", err));
    void *host = NULL;
    GY_TRY(gy_cuda_pinned(h, &host, g->bytes - g->progress_at + 2 * counters, err));
    g->host = host;
    memset(g->host, 0, g->bytes - g->progress_at);
    memset(g->host + (g->bytes - g->progress_at), (int)(GY_COUNTER_STOP & 0xFF), counters);
    return GANTRY_OK;
}

static gantry_status make_gpu(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gy_resident_gpu *g = &h->resident->gpu[device];
    GY_TRY(open_code(h, device, err));
    if (h->resident->off)
        return GANTRY_OK;
    GY_TRY(gy_cuda_queue_new(h, &g->queue, device, false, err));
    GY_TRY(gy_cuda_queue_new(h, &g->aside, device, true, err));
    GY_TRY(gy_cuda_event_new(h, &g->end, device, false, err));
    GY_TRY(gy_order_add(h, device, err));
    gy_order_kernel(h, device, g->end);
    return make_block(h, device, err);
}

static gantry_status make_arrays(gy_cuda *h, gantry_error *err)
{
    gy_resident *r = gy_arena_calloc(&h->arena, 1, sizeof *r);
    if (!r)
        return gy_fail_nomem(err);
    r->lane = gy_arena_calloc(&h->arena, h->lanes + 1, sizeof *r->lane);
    r->gpu = gy_arena_calloc(&h->arena, h->devices + 1, sizeof *r->gpu);
    size_t ops = h->job->schedule->ops.count;
    r->can = gy_arena_calloc(&h->arena, ops + 1, sizeof *r->can);
    r->has = gy_arena_calloc(&h->arena, ops + 1, sizeof *r->has);
    r->left = gy_arena_calloc(&h->arena, ops + 1, sizeof *r->left);
    r->cut = gy_arena_calloc(&h->arena, ops + 1, sizeof *r->cut);
    if (!r->lane || !r->gpu || !r->can || !r->has || !r->left || !r->cut)
        return gy_fail_nomem(err);
    memset(r->can, 1, ops);
    r->unfit_op = r->until = r->ask_op = GY_NONE;
    r->series = gy_resident_alone;
    h->resident = r;
    for (uint32_t i = 0; i < h->lanes; i++)
        if (h->lane[i].used)
            r->gpu[h->lane[i].queue.device].used = true;
    return GANTRY_OK;
}

gantry_status gy_resident_make(gy_cuda *h, gantry_error *err)
{
    GY_TRY(make_arrays(h, err));
    const char *why = obstacle(h);
    if (why) {
        gy_resident_give_up(h, why);
        return GANTRY_OK;
    }
    gy_resident_find_cuts(h);
    GY_TRY(gy_resident_find_detours(h, err));
    GY_TRY(gy_resident_table_make(h, err));
    GY_TRY(gy_resident_link_make(h, err));
    for (uint32_t i = 0; i < h->devices && !h->resident->off; i++)
        if (h->resident->gpu[i].used)
            GY_TRY(make_gpu(h, i, err));
    if (h->resident->off)
        return GANTRY_OK;
    GY_TRY(gy_cuda_pinned(h, (void **)&h->resident->told, sizeof *h->resident->told, err));
    return gy_resident_clear(h, err);
}

static void free_gpu(gy_cuda *h, uint32_t device)
{
    gy_resident_gpu *g = &h->resident->gpu[device];
    if (!g->used || gy_cuda_use(h, device, NULL))
        return;
    for (uint32_t t = 0; g->turn && t < h->turns; t++) {
        if (g->turn[t].at)
            h->d.cuMemFree(g->turn[t].at);
        if (g->turn[t].host)
            h->d.cuMemFreeHost(g->turn[t].host);
        gy_vec_free(&g->turn[t].segment);
    }
    gy_resident_ring_free(h, device);
    if (g->host)
        h->d.cuMemFreeHost(g->host);
    if (g->block)
        h->d.cuMemFree(g->block);
    gy_order_kernel(h, device, NULL);
    if (g->end)
        h->d.cuEventDestroy(g->end);
    if (g->aside.stream)
        h->d.cuStreamDestroy(g->aside.stream);
    if (g->queue.stream)
        h->d.cuStreamDestroy(g->queue.stream);
    if (g->code)
        gy_cuda_kernel_find(GY_CUDA_RESIDENT)->close(g->code);
}

void gy_resident_free(gy_cuda *h)
{
    if (!h->resident)
        return;
    for (uint32_t i = 0; i < h->devices; i++)
        free_gpu(h, i);
    for (uint32_t i = 0; i < h->lanes; i++) {
        gy_vec_free(&h->resident->lane[i].leader);
        gy_vec_free(&h->resident->lane[i].helper);
        gy_vec_free(&h->resident->lane[i].part);
    }
    gy_vec_free(&h->resident->pairs);
    gy_vec_free(&h->resident->detours);
    gy_vec_free(&h->resident->passages);
    gy_vec_free(&h->resident->credits);
    gy_vec_free(&h->resident->far);
    if (h->resident->told)
        h->d.cuMemFreeHost(h->resident->told);
}

/* ---- reports ---- */

static void tell_unfit(const gy_cuda *h, char *to, size_t size)
{
    const gy_resident *r = h->resident;
    gy_text name = { 0 };
    gy_op_text(&name, h->job->schedule, r->unfit_op);
    snprintf(to, size, "device and stream; not by the device alone: op %u, \"%s\": %s", r->unfit_op,
             name.failed || !name.length ? "?" : name.at, r->unfit_why);
    gy_text_free(&name);
}

const char *gy_resident_replay(gy_cuda *h, const char *replay)
{
    gy_resident *r = h->resident;
    if (!r || r->rests)
        return replay;
    if (r->off)
        snprintf(r->text, sizeof r->text, "%s; not by the device: %s", replay, r->off);
    else if (r->unfit_op == GY_NONE && r->lefts && r->lefts == r->cuts)
        snprintf(r->text, sizeof r->text, "device and stream");
    else if (r->unfit_op == GY_NONE && r->lefts)
        snprintf(r->text, sizeof r->text, "device and stream: %u of %zu ops are launched, which takes less time",
                 r->lefts - r->cuts, h->job->schedule->ops.count);
    else if (r->unfit_op == GY_NONE)
        snprintf(r->text, sizeof r->text, h->job->schedule->replay == GY_REPLAY_AUTO ? "device (auto)" : "device");
    else
        tell_unfit(h, r->text, sizeof r->text);
    if (!r->off) {
        gy_resident_tell_cuts(h, replay, r->text, sizeof r->text);
        gy_resident_tell_detours(h, r->text, sizeof r->text);
    }
    gy_resident_tell_series(h, r->text, sizeof r->text);
    return r->text;
}
