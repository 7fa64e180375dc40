/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and kernels by hand. Times are those of the host's clock, as of a start that is waited for, but for kernels
 * and copies within a memory: those are between two events. */
#include "backends/cuda/measure/raw.h"

#include "base/error.h"
#include <string.h>

#define PATIENCE 30.0
#define SMALL    (UINT64_C(1) << 20)

enum { EVENT_TIMES = 4 };

static gantry_status time_wall(gy_raw *raw, double *us, gantry_error *err)
{
    gy_shot shot = gy_flows_shot(&raw->flows);
    return gy_bed_wall(&raw->bed, &shot, us, err);
}

static gantry_status time_events(gy_raw *raw, double *us, gantry_error *err)
{
    gy_shot copies = raw->call ? (gy_shot){ .queue = NULL } : gy_flows_shot(&raw->flows);
    gy_shot calls = { .queue = gy_recipe_queue, .what = raw->call, .lead = { 0, 0 } };
    return gy_bed_time(&raw->bed, raw->call ? &calls : &copies, EVENT_TIMES, us, err);
}

/* ---- copies ---- */

typedef enum way { PEER, UPLOAD, FETCH, BOTH, WITHIN } way;

/* The arrays of the caller for the blocks of the bed, and back again. */
static void swap_host(gy_raw *raw)
{
    for (uint32_t i = 0; raw->host && i < raw->bed.gpus; i++) {
        char *block = raw->bed.gpu[i].host;
        raw->bed.gpu[i].host = raw->host[i];
        raw->host[i] = block;
    }
}

static gantry_status take_host(gy_raw *raw, void *const *host, gantry_error *err)
{
    raw->host = gy_calloc(raw->bed.gpus, sizeof *raw->host);
    if (!raw->host) {
        return gy_fail_nomem(err);
    }
    for (uint32_t i = 0; i < raw->bed.gpus; i++) {
        raw->host[i] = host[i];
    }
    swap_host(raw);
    return GANTRY_OK;
}

static bool add_copies(gy_raw *raw, way w)
{
    bool ok = true;
    uint64_t apart = raw->host && raw->options.apart ? raw->options.apart
                     : raw->host || w == BOTH        ? raw->options.bytes
                                                     : 0;
    uint32_t gpus = w == PEER || w == WITHIN ? 1 : raw->bed.gpus;
    for (uint32_t i = 0; i < gpus && ok; i++) {
        ok = w == PEER     ? gy_flows_add(&raw->bed, &raw->flows, (gy_stream_copy){ { 0, 0 }, 0, 1, 0 })
             : w == WITHIN ? gy_flows_add(&raw->bed, &raw->flows, (gy_stream_copy){ { 0, 0 }, 0, 0, 0 })
                           : true;
        ok = ok && (w == UPLOAD || w == BOTH)
                 ? gy_flows_add(&raw->bed, &raw->flows, (gy_stream_copy){ { i, 0 }, GY_BED_HOST, i, 0 })
                 : ok;
        ok = ok && (w == FETCH || w == BOTH)
                 ? gy_flows_add(&raw->bed, &raw->flows, (gy_stream_copy){ { i, 1 }, i, GY_BED_HOST, apart })
                 : ok;
    }
    return ok;
}

static gantry_status open_copies(gy_raw *raw, const gantry_machine *machine, way w, gantry_error *err)
{
    uint64_t bytes = raw->options.bytes;
    gy_bed_want want = { .gpus = w == PEER     ? 2
                                 : w == WITHIN ? 1
                                               : (uint32_t)raw->options.devices,
                         .bytes = bytes,
                         .host = w == PEER || w == WITHIN || raw->options.host ? SMALL
                                 : w == BOTH                                   ? 2 * bytes
                                                                               : bytes,
                         .peers = w == PEER,
                         .patience = PATIENCE };
    gantry_status status = gy_bed_open(&raw->bed, machine, &want, err);
    if (status) {
        return status;
    }
    if (raw->options.host && w != PEER && w != WITHIN && (status = take_host(raw, raw->options.host, err))) {
        return status;
    }
    raw->bed.peer_call = w == PEER;
    raw->flows.bytes = bytes;
    raw->flows.rounds = (uint32_t)raw->options.copies;
    if (!add_copies(raw, w)) {
        return gy_fail_nomem(err);
    }
    if (raw->flows.flows.count == 0) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "the first two GPUs have no access to each other");
    }
    raw->time = w == WITHIN ? time_events : time_wall;
    raw->bytes = (double)bytes * raw->flows.rounds * (double)raw->flows.flows.count * (w == WITHIN ? 2 : 1);
    return GANTRY_OK;
}

/* ---- kernels ---- */

gantry_status gy_raw_prepare(gy_raw *raw, uint32_t gpu, const char *kernel, gantry_dtype dtype, int64_t size,
                             gantry_error *err)
{
    raw->kernel = gy_cuda_kernel_find(kernel);
    raw->call = raw->call ? raw->call : gy_calloc(raw->bed.gpus, sizeof *raw->call);
    raw->handle = raw->handle ? raw->handle : gy_calloc(raw->bed.gpus, sizeof *raw->handle);
    if (!raw->kernel) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "kernel \"%s\" has no CUDA version", kernel);
    }
    if (!raw->call || !raw->handle) {
        return gy_fail_nomem(err);
    }
    gantry_status status = gy_recipe_load(&raw->handle[gpu], &raw->bed, gpu, raw->kernel, err);
    return status ? status
                  : gy_recipe_open(&raw->call[gpu], &raw->bed, gpu, raw->kernel, raw->handle[gpu], dtype, size, err);
}

/* Arguments of `bytes` each, where they are large. */
static gantry_status open_kernel(gy_raw *raw, const gantry_machine *machine, const char *kernel, gantry_error *err)
{
    const gantry_kernel *manifest = kernel ? gantry_kernel_find(kernel) : NULL;
    gantry_dtype dtype;
    gy_bed_want want = { .gpus = 1, .bytes = 2 * raw->options.bytes, .host = 4 * SMALL, .patience = PATIENCE };
    if (!manifest || !gy_recipe_dtype(manifest, 0, &dtype)) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "there is no kernel \"%s\" that can be timed alone",
                       kernel ? kernel : "");
    }
    gantry_status status = gy_bed_open(&raw->bed, machine, &want, err);
    status = status
                 ? status
                 : gy_raw_prepare(raw, 0, kernel, dtype, gy_recipe_size_of(manifest, dtype, raw->options.bytes), err);
    if (!status) {
        raw->time = time_events;
        raw->bytes = raw->call[0].bytes;
    }
    return status;
}

/* ---- all ---- */

static void close_all(gy_raw *raw)
{
    if (raw->bed.machine) {
        gy_raw_graph_close(raw);
        gy_raw_nccl_close(raw);
        for (uint32_t i = 0; i < raw->bed.gpus && raw->call; i++) {
            gy_recipe_free(&raw->call[i], &raw->bed);
            gy_recipe_unload(raw->handle ? raw->handle[i] : NULL, &raw->bed, i, raw->kernel);
        }
        swap_host(raw);
        gy_bed_close(&raw->bed);
    }
    gy_flows_free(&raw->flows);
    gy_free((void *)raw->host);
    gy_free(raw->call);
    gy_free(raw->handle);
    gy_free(raw->nccl); /* its bed could not be opened */
    gy_free(raw);
}

static gantry_status open_what(gy_raw *raw, const char *what, const gantry_machine *machine,
                               const gantry_raw_options *o, gantry_error *err)
{
    static const struct {
        const char *name;
        way w;
    } copies[] = { { "peer", PEER }, { "upload", UPLOAD }, { "fetch", FETCH }, { "both", BOTH }, { "within", WITHIN } };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        if (strcmp(what, copies[i].name) == 0) {
            return open_copies(raw, machine, copies[i].w, err);
        }
    }
    if (strcmp(what, "kernel") == 0) {
        return open_kernel(raw, machine, o->kernel, err);
    }
    if (strcmp(what, "nccl") == 0) {
        return gy_raw_nccl_open(raw, machine, o->shape, err);
    }
    if (strcmp(what, "replay") != 0 && strcmp(what, "build") != 0) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "nothing is done by hand that is called \"%s\"; there are peer, upload, fetch, both, within, "
                       "kernel, nccl, replay and build",
                       what);
    }
    gy_bed_want want = { .gpus = (uint32_t)o->devices, .bytes = SMALL, .host = SMALL, .patience = PATIENCE };
    want.peers = gy_raw_graph_peers(o->shape);
    gantry_status status = gy_bed_open(&raw->bed, machine, &want, err);
    return status ? status : gy_raw_graph_open(raw, o->shape, what[0] == 'b', err);
}

static gantry_status open_raw(void **state, const char *what, const gantry_machine *machine,
                              const gantry_raw_options *options, gantry_error *err)
{
    gy_raw *raw = gy_calloc(1, sizeof *raw);
    if (!raw) {
        return gy_fail_nomem(err);
    }
    raw->options = *options;
    raw->options.shape = raw->options.kernel = NULL;
    gantry_status status = open_what(raw, what, machine, options, err);
    if (status) {
        close_all(raw);
        return status;
    }
    raw->bed.d.cuCtxSetCurrent(raw->bed.before);
    *state = raw;
    return GANTRY_OK;
}

static gantry_status time_raw(void *state, double *us, double *bytes, gantry_error *err)
{
    gy_raw *raw = state;
    CUcontext before = NULL;
    raw->bed.d.cuCtxGetCurrent(&before);
    gantry_status status = raw->time(raw, us, err);
    raw->bed.d.cuCtxSetCurrent(before);
    *bytes = raw->bytes;
    return status;
}

static void close_raw(void *state)
{
    gy_raw *raw = state;
    raw->bed.before = NULL;
    raw->bed.d.cuCtxGetCurrent(&raw->bed.before);
    close_all(raw);
}

const gy_raw_table gy_cuda_raw = { open_raw, time_raw, close_raw };
