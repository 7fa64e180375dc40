/* SPDX-License-Identifier: Apache-2.0 */
/* Graph replay: the submission of a start captured into one CUDA graph over all devices, or into one for each GPU
 * (stream/gates.h). A graph never overlaps itself, and those of the turns are launched into one stream, or behind it
 * and ahead of what follows there, so starts follow each other. */
#include "backends/cuda/submit/submit.h"

#include "backends/cuda/stream/gates.h"
#include "backends/cuda/times/times.h"
#include "base/error.h"
#include "base/memory.h"
#include <string.h>

static gantry_status begin(gy_submit *x, uint32_t device)
{
    gy_queue origin = gy_gates_origin(x->h, device);
    GY_TRY(gy_cuda_use(x->h, origin.device, x->err));
    /* Other threads of the application may go on with what a capture forbids to this one. */
    CUresult code = x->h->d.cuStreamBeginCapture(origin.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    return gy_submit_check(x, code, origin, "beginning a capture");
}

/* The graph of the device, NULL where there is none. After a failure ended, too. */
static gantry_status end(gy_submit *x, uint32_t device, CUgraph *graph)
{
    gy_queue origin = gy_gates_origin(x->h, device);
    gy_cuda_use(x->h, origin.device, NULL);
    CUresult code = x->h->d.cuStreamEndCapture(origin.stream, graph);
    return gy_submit_check(x, code, origin, "ending a capture");
}

/* Captures one graph for all GPUs, or one for each: graph[device]. */
static gantry_status capture(gy_cuda *h, uint32_t turn, CUgraph *graph, gantry_error *err)
{
    gy_submit x = { .h = h, .turn = turn, .capture = true, .callbacks = &h->turn[turn].exec_callbacks, .op = GY_NONE };
    gantry_error late = { 0 };
    uint32_t begun = 0;
    gantry_status status = GANTRY_OK;
    x.err = err;
    for (; begun < h->devices && status == GANTRY_OK; begun++)
        status = gy_gates_begins(h, begun) ? begin(&x, begun) : GANTRY_OK;
    begun -= status != GANTRY_OK; /* that one did not */
    status = status ? status : gy_submit_start(&x);
    status = status ? status : gy_gates_check(&x);
    for (uint32_t i = 0; i < begun; i++) {
        x.err = status ? &late : err; /* the first failure is reported */
        gantry_status ended = gy_gates_begins(h, i) ? end(&x, i, &graph[i]) : GANTRY_OK;
        status = status ? status : ended;
    }
    return status;
}

static gantry_status instantiate(gy_cuda *h, uint32_t turn, uint32_t device, CUgraph graph, gantry_error *err)
{
    gy_cuda_turn *t = &h->turn[turn];
    gy_queue origin = gy_gates_origin(h, device);
    CUgraphExec *exec = gy_cuda_same_gpu(h, device, h->end_stream.device) ? &t->exec : &t->beside[device];
    GY_TRY(gy_cuda_use(h, origin.device, err));
    /* Nodes keep the priority of the stream that they were captured from. The first launch of such a graph does not
     * wait for cuGraphUpload, and hangs or has wrong parameters where other processes use the GPU (docs/gpus.md, "A GPU
     * that others use, too"). So nothing is uploaded ahead of it. */
    CUresult code = h->d.cuGraphInstantiateWithFlags(exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    if (code == CUDA_SUCCESS)
        return GANTRY_OK;
    *exec = NULL;
    return gy_cuda_fail(h, code, device, "instantiating a graph", err);
}

static gantry_status make(gy_cuda *h, uint32_t turn, gantry_error *err)
{
    CUgraph *graph = gy_calloc(h->devices, sizeof *graph);
    if (!graph)
        return gy_fail_nomem(err);
    gy_graph_free(h, turn);
    h->came_early = false;
    gy_cupti_enter(h, true);
    gantry_status status = capture(h, turn, graph, err);
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++)
        status = graph[i] ? instantiate(h, turn, i, graph[i], err) : GANTRY_OK;
    gy_cupti_leave(h);
    for (uint32_t i = 0; i < h->devices; i++)
        if (graph[i])
            h->d.cuGraphDestroy(graph[i]);
    gy_free(graph);
    return status;
}

gantry_status gy_graph_make(gy_cuda *h, uint32_t turn, gantry_error *err)
{
    gantry_error why = { 0 };
    gantry_status status = make(h, turn, &why);
    bool again = status && status != GANTRY_E_NOMEM && h->came_early && !h->broken.status && !h->nccl;
    if (again) { /* it may be the early launches that the driver refuses */
        h->no_early = true;
        status = make(h, turn, &why);
    }
    if (status && status != GANTRY_E_NOMEM && gy_gates_on(h) && !h->broken.status) {
        for (uint32_t i = 0; i < h->turns; i++)
            gy_graph_free(h, i);
        gy_gates_leave(h, &why);
        status = make(h, turn, &why);
    }
    if (status == GANTRY_OK)
        return GANTRY_OK;
    gy_graph_free(h, turn);
    status = h->broken.status || status == GANTRY_E_NOMEM ? status : gy_nccl_renew(h, &why);
    if (h->broken.status || status == GANTRY_E_NOMEM || status == GANTRY_E_TIMEOUT) {
        if (err)
            *err = why;
        return status;
    }
    h->graphs = h->automatic.on = false;
    h->replay = "stream (capture refused)";
    return GANTRY_OK;
}
