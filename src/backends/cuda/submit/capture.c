/* SPDX-License-Identifier: Apache-2.0 */
/* Graph replay: the submission of a start captured into one CUDA graph over all devices. A graph never overlaps itself,
 * and those of the turns are launched into one stream, so starts follow each other. */
#include "backends/cuda/submit/submit.h"

#include "backends/cuda/times/times.h"
#include "base/error.h"
#include <string.h>

/* *refused: a call of the driver failed that works outside of a capture, most likely. */
static gantry_status capture(gy_cuda *h, uint32_t turn, CUgraph *graph, gantry_error *err)
{
    gy_submit x = { .h = h, .turn = turn, .capture = true, .callbacks = &h->turn[turn].exec_callbacks, .op = GY_NONE };
    x.err = err;
    gantry_status status = gy_cuda_use(h, h->end_stream.device, err);
    if (status == GANTRY_OK) {
        /* Other threads of the application may go on with what a capture forbids to this one. */
        CUresult code = h->d.cuStreamBeginCapture(h->end_stream.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        status = gy_submit_check(&x, code, h->end_stream, "beginning a capture");
        if (status == GANTRY_OK) {
            status = gy_submit_start(&x);
            gy_cuda_use(h, h->end_stream.device, NULL);
            code = h->d.cuStreamEndCapture(h->end_stream.stream, graph);
            status = status ? status : gy_submit_check(&x, code, h->end_stream, "ending a capture");
        }
    }
    return status;
}

static gantry_status instantiate(gy_cuda *h, uint32_t turn, CUgraph graph, gantry_error *err)
{
    gy_cuda_turn *t = &h->turn[turn];
    /* Nodes keep the priority of the stream that they were captured from. */
    CUresult code = h->d.cuGraphInstantiateWithFlags(&t->exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    if (code != CUDA_SUCCESS) {
        t->exec = NULL;
        return gy_cuda_fail(h, code, h->end_stream.device, "instantiating a graph", err);
    }
    code = h->d.cuGraphUpload(t->exec, h->end_stream.stream);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, h->end_stream.device, "uploading a graph", err);
}

static gantry_status make(gy_cuda *h, uint32_t turn, gantry_error *err)
{
    CUgraph graph = NULL;
    gy_graph_free(h, turn);
    h->came_early = false;
    gy_cupti_enter(h, true);
    gantry_status status = capture(h, turn, &graph, err);
    status = status ? status : instantiate(h, turn, graph, err);
    gy_cupti_leave(h);
    if (graph)
        h->d.cuGraphDestroy(graph);
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
