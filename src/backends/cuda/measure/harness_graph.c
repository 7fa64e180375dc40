/* SPDX-License-Identifier: Apache-2.0 */
/* Work on a bed that is captured once and launched as often as it is timed. */
#include "backends/cuda/measure/harness.h"

static gantry_status capture(const gy_bed_graph *g, gy_bed *bed, gy_bed_queue *queue, const void *what, uint32_t times,
                             CUgraph *made, gantry_error *err)
{
    CUstream origin = gy_bed_stream(bed, g->lane);
    gantry_status status = gy_bed_use(bed, g->lane.gpu, err);
    status = status ? status
                    : gy_bed_check(bed, bed->d.cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                                   g->lane.gpu, "beginning a capture", err);
    if (status) {
        return status;
    }
    for (uint32_t i = 0; i < times && !status; i++) {
        status = queue(bed, what, err);
    }
    gantry_status used = gy_bed_use(bed, g->lane.gpu, status ? NULL : err);
    CUresult code = bed->d.cuStreamEndCapture(origin, made); /* after a failure, too: no stream stays captured */
    status = status ? status : used;
    return status ? status : gy_bed_check(bed, code, g->lane.gpu, "ending a capture", err);
}

gantry_status gy_bed_graph_make(gy_bed_graph *g, gy_bed *bed, gy_bed_queue *queue, const void *what, uint32_t times,
                                gantry_error *err)
{
    CUgraph made = NULL;
    gantry_status status = capture(g, bed, queue, what, times, &made, err);
    if (!status) {
        CUresult code = bed->d.cuGraphInstantiateWithFlags(&g->exec, made, 0);
        g->exec = code ? NULL : g->exec;
        code = code ? code : bed->d.cuGraphUpload(g->exec, gy_bed_stream(bed, g->lane));
        status = gy_bed_check(bed, code, g->lane.gpu, "instantiating a graph", err);
    }
    if (made) {
        bed->d.cuGraphDestroy(made);
    }
    if (status) {
        gy_bed_graph_free(g, bed);
    }
    return status;
}

gantry_status gy_bed_graph_queue(gy_bed *bed, const void *graph, gantry_error *err)
{
    const gy_bed_graph *g = graph;
    gantry_status status = gy_bed_use(bed, g->lane.gpu, err);
    return status ? status
                  : gy_bed_check(bed, bed->d.cuGraphLaunch(g->exec, gy_bed_stream(bed, g->lane)), g->lane.gpu,
                                 "launching a graph", err);
}

void gy_bed_graph_free(gy_bed_graph *g, const gy_bed *bed)
{
    if (g->exec) {
        bed->d.cuGraphExecDestroy(g->exec);
        g->exec = NULL;
    }
}

void gy_bed_graph_drop(gy_bed_graph *g, gy_bed *bed)
{
    if (g->exec && gy_bed_settle(bed)) {
        gy_bed_graph_free(g, bed);
    }
    g->exec = NULL;
}
