/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is captured once and launched as often as it is timed. */
#include "backends/cuda/measure/harness.h"

static gantry_status capture(const gy_harness_graph *g, gy_harness *harness, gy_harness_queue *queue, const void *what,
                             uint32_t times, CUgraph *made, gantry_error *err)
{
    CUstream origin = gy_harness_stream(harness, g->lane);
    gantry_status status = gy_harness_use(harness, g->lane.gpu, err);
    status =
        status ? status
               : gy_harness_check(harness, harness->d.cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                                  g->lane.gpu, "beginning a capture", err);
    if (status)
        return status;
    for (uint32_t i = 0; i < times && !status; i++)
        status = queue(harness, what, err);
    gantry_status used = gy_harness_use(harness, g->lane.gpu, status ? NULL : err);
    CUresult code = harness->d.cuStreamEndCapture(origin, made); /* after a failure, too: no stream stays captured */
    status = status ? status : used;
    return status ? status : gy_harness_check(harness, code, g->lane.gpu, "ending a capture", err);
}

gantry_status gy_harness_graph_make(gy_harness_graph *g, gy_harness *harness, gy_harness_queue *queue, const void *what,
                                    uint32_t times, gantry_error *err)
{
    CUgraph made = NULL;
    gantry_status status = capture(g, harness, queue, what, times, &made, err);
    if (!status) {
        CUresult code = harness->d.cuGraphInstantiateWithFlags(&g->exec, made, 0);
        g->exec = code ? NULL : g->exec;
        code = code ? code : harness->d.cuGraphUpload(g->exec, gy_harness_stream(harness, g->lane));
        status = gy_harness_check(harness, code, g->lane.gpu, "instantiating a graph", err);
    }
    if (made)
        harness->d.cuGraphDestroy(made);
    if (status)
        gy_harness_graph_free(g, harness);
    return status;
}

gantry_status gy_harness_graph_queue(gy_harness *harness, const void *graph, gantry_error *err)
{
    const gy_harness_graph *g = graph;
    gantry_status status = gy_harness_use(harness, g->lane.gpu, err);
    return status ? status
                  : gy_harness_check(harness, harness->d.cuGraphLaunch(g->exec, gy_harness_stream(harness, g->lane)),
                                     g->lane.gpu, "launching a graph", err);
}

void gy_harness_graph_free(gy_harness_graph *g, const gy_harness *harness)
{
    if (g->exec) {
        harness->d.cuGraphExecDestroy(g->exec);
        g->exec = NULL;
    }
}

void gy_harness_graph_drop(gy_harness_graph *g, gy_harness *harness)
{
    if (g->exec && gy_harness_settle(harness))
        gy_harness_graph_free(g, harness);
    g->exec = NULL;
}
