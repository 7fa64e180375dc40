/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by hand, and which file does what. */
#include "baseline_work.h"

#include "command.h"
#include <stdlib.h>
#include <string.h>

typedef enum way { PEER, UPLOAD, FETCH, BOTH, WITHIN } way;
enum { EVENT_TIMES = 4 }; /* times between two events */

static CUstream stream_of(const gpus *g, const stream_copy *c)
{
    return g->at[c->gpu].stream[c->stream];
}

/* Host memory of the caller where it gave some, in place of the GPU's own block. */
static char *host_of(const baseline *b, int gpu)
{
    return b->host ? b->host[gpu] : b->gpus.at[gpu].host;
}

static gantry_status copy(baseline *b, const stream_copy *c, bool peer, gantry_error *err)
{
    const gpus *g = &b->gpus;
    uint64_t bytes = b->options.bytes;
    CUstream stream = stream_of(g, c);
    CUresult code;
    gantry_status status = gpus_use(g, c->gpu, err);
    if (status)
        return status;
    if (c->from == HOST)
        code = g->d.cuMemcpyHtoDAsync(g->at[c->gpu].block + g->bytes, host_of(b, c->gpu) + c->offset, bytes, stream);
    else if (c->to == HOST)
        code = g->d.cuMemcpyDtoHAsync(host_of(b, c->gpu) + c->offset, g->at[c->gpu].block, bytes, stream);
    else if (peer)
        code = g->d.cuMemcpyPeerAsync(g->at[c->to].block + g->bytes, g->at[c->to].context, g->at[c->from].block,
                                      g->at[c->from].context, bytes, stream);
    else
        code = g->d.cuMemcpyDtoDAsync(g->at[c->to].block + g->bytes, g->at[c->from].block, bytes, stream);
    return gpus_check(g, code, c->gpu, "copying", err);
}

static gantry_status record(gpus *g, CUevent event, const stream_copy *c, gantry_error *err)
{
    gantry_status status = gpus_use(g, c->gpu, err);
    return status ? status
                  : gpus_check(g, g->d.cuEventRecord(event, stream_of(g, c)), c->gpu, "recording an event", err);
}

/* The streams of the other copies begin with that of the first one, or are waited for by it. */
static gantry_status order_others(baseline *b, bool before, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    const stream_copy *first = b->copy;
    for (int i = 1; i < b->copies && !status; i++) {
        const stream_copy *from = before ? first : &b->copy[i], *to = before ? &b->copy[i] : first;
        status = gpus_order(&b->gpus, from->gpu, stream_of(&b->gpus, from), to->gpu, stream_of(&b->gpus, to), err);
    }
    return status;
}

static gantry_status time_copies(baseline *b, int times, bool events, double *us, gantry_error *err)
{
    gpus *g = &b->gpus;
    one_gpu *first = &g->at[b->copy[0].gpu];
    bool peer = b->copy[0].from != b->copy[0].to;
    double start = now_us();
    float ms = 0;
    gantry_status status = record(g, first->begin, &b->copy[0], err);
    if (!status)
        status = order_others(b, true, err);
    for (int round = 0; round < times * b->options.copies && !status; round++)
        for (int i = 0; i < b->copies && !status; i++)
            status = copy(b, &b->copy[i], peer, err);
    if (!status)
        status = order_others(b, false, err);
    if (!status)
        status = record(g, first->end, &b->copy[0], err);
    if (!status)
        status = gpus_wait(g, first->end, b->copy[0].gpu, err);
    *us = now_us() - start;
    if (!status && events) {
        status = gpus_check(g, g->d.elapsed(&ms, first->begin, first->end), b->copy[0].gpu,
                            "reading the time between events", err);
        *us = (double)ms * 1e3 / times;
    }
    return status;
}

static gantry_status time_wall(baseline *b, double *us, gantry_error *err)
{
    return time_copies(b, 1, false, us, err);
}

static gantry_status time_events(baseline *b, double *us, gantry_error *err)
{
    return time_copies(b, EVENT_TIMES, true, us, err);
}

static void add_copies(baseline *b, way w)
{
    uint64_t apart = b->host && b->options.apart ? b->options.apart : b->options.bytes;
    if (w == PEER && gpus_reach(&b->gpus, 0, 1))
        b->copy[b->copies++] = (stream_copy){ 0, 0, 0, 1, 0 };
    if (w == WITHIN)
        b->copy[b->copies++] = (stream_copy){ 0, 0, 0, 0, 0 };
    for (int i = 0; i < b->gpus.count && w != PEER && w != WITHIN; i++) {
        if (w != FETCH)
            b->copy[b->copies++] = (stream_copy){ i, 0, HOST, i, 0 };
        if (w != UPLOAD)
            b->copy[b->copies++] = (stream_copy){ i, 1, i, HOST, b->host || w == BOTH ? apart : 0 };
    }
}

static gantry_status take_host(baseline *b, void *const *host, gantry_error *err)
{
    b->host = calloc((size_t)b->gpus.count, sizeof *b->host);
    if (!b->host)
        return bench_error(err, GANTRY_E_NOMEM, "out of memory");
    for (int i = 0; i < b->gpus.count; i++)
        b->host[i] = host[i];
    return GANTRY_OK;
}

static gantry_status open_copies(baseline *b, const gantry_machine *machine, way w, gantry_error *err)
{
    bool hosts = w != PEER && w != WITHIN;
    uint64_t bytes = b->options.bytes, host = !hosts || b->options.host ? BASELINE_SMALL
                                              : w == BOTH               ? 2 * bytes
                                                                        : bytes;
    gantry_status status = gpus_open(&b->gpus, machine,
                                     w == PEER     ? 2
                                     : w == WITHIN ? 1
                                                   : b->options.devices,
                                     bytes, host, w == PEER, err);
    if (status)
        return status;
    b->copy = calloc(2 * (size_t)b->gpus.count, sizeof *b->copy);
    if (!b->copy)
        return bench_error(err, GANTRY_E_NOMEM, "out of memory");
    if (b->options.host && hosts && (status = take_host(b, b->options.host, err)))
        return status;
    add_copies(b, w);
    if (b->copies == 0)
        return bench_error(err, GANTRY_E_UNSUPPORTED, "the first two GPUs have no access to each other");
    b->time = w == WITHIN ? time_events : time_wall;
    b->bytes = (double)bytes * b->options.copies * b->copies * (w == WITHIN ? 2 : 1);
    return GANTRY_OK;
}

/* ---- all ---- */

gantry_status baseline_launch(baseline *b, CUgraphExec graph, double *us, gantry_error *err)
{
    gpus *g = &b->gpus;
    double start = now_us();
    gantry_status status = gpus_use(g, 0, err);
    if (!status)
        status = gpus_check(g, g->d.cuGraphLaunch(graph, g->at[0].stream[0]), 0, "launching a graph", err);
    if (!status)
        status = gpus_check(g, g->d.cuEventRecord(g->at[0].end, g->at[0].stream[0]), 0, "recording an event", err);
    if (!status)
        status = gpus_wait(g, g->at[0].end, 0, err);
    *us = now_us() - start;
    return status;
}

static gantry_status open_work(baseline *b, const char *what, const gantry_machine *machine, const char *shape,
                               gantry_error *err)
{
    static const struct {
        const char *name;
        way w;
    } copies[] = { { "peer", PEER }, { "upload", UPLOAD }, { "fetch", FETCH }, { "both", BOTH }, { "within", WITHIN } };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        if (strcmp(what, copies[i].name) == 0)
            return open_copies(b, machine, copies[i].w, err);
    if (strcmp(what, "nccl") == 0)
        return baseline_nccl_open(b, machine, shape, err);
    if (strcmp(what, "replay") == 0 || strcmp(what, "build") == 0)
        return baseline_graph_open(b, machine, shape, what[0] == 'b', err);
    return bench_error(err, GANTRY_E_INVALID,
                       "nothing is done by hand that is called \"%s\"; there are peer, upload, fetch, both, within, "
                       "nccl, replay and build",
                       what);
}

static void close_all(baseline *b)
{
    if (b->gpus.at) { /* they are open */
        baseline_graph_close(b);
        baseline_nccl_close(b);
        gpus_close(&b->gpus);
    }
    free(b->copy);
    free((void *)b->host);
    free(b->nccl); /* its GPUs could not be opened */
    free(b);
}

gantry_status baseline_open(baseline **made, const char *what, const gantry_machine *machine,
                            const baseline_options *wanted, gantry_error *err)
{
    baseline *b = calloc(1, sizeof *b);
    if (!b)
        return bench_error(err, GANTRY_E_NOMEM, "out of memory");
    b->options = *wanted;
    b->options.shape = NULL;
    gantry_status status = open_work(b, what, machine, wanted->shape, err);
    if (status) {
        close_all(b);
        return status;
    }
    b->gpus.d.cuCtxSetCurrent(b->gpus.before);
    *made = b;
    return GANTRY_OK;
}

gantry_status baseline_time(baseline *b, double *us, double *bytes, gantry_error *err)
{
    CUcontext before = NULL;
    double took = 0;
    b->gpus.d.cuCtxGetCurrent(&before);
    gantry_status status = b->time(b, &took, err);
    b->gpus.d.cuCtxSetCurrent(before);
    if (us)
        *us = took;
    if (bytes)
        *bytes = b->bytes;
    return status;
}

void baseline_close(baseline *b)
{
    if (!b)
        return;
    if (b->gpus.d.cuCtxGetCurrent(&b->gpus.before))
        b->gpus.before = NULL;
    close_all(b);
}
