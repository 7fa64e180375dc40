/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of many tiny kernels over GPUs, as a good program would capture it by hand: a chain on one GPU; chains on
 * all; or a stencil, where each GPU takes a row from both neighbours before each step. Or the tasks of a bench_dag. */
#include "baseline_work.h"

#include "command.h"
#include <stdlib.h>
#include <string.h>

struct baseline_graph {
    bool stencil;
    bench_dag dag; /* width 0: none */
    int64_t steps;
    int lanes;      /* GPUs that take part */
    CUevent *event; /* 2 per GPU: the end of its last steps */
    CUgraphExec exec;
};

/* The GPU goes on when its neighbour's last step has ended, whose row it copies. */
static gantry_status take_row(gpus *g, const baseline_graph *w, int gpu, int other, int64_t step, gantry_error *err)
{
    CUstream stream = g->at[gpu].stream[0];
    CUevent event = w->event[2 * other + (int)((step + 1) % 2)];
    gantry_status status = gpus_use(g, gpu, err);
    if (!status)
        status = gpus_check(g, g->d.cuStreamWaitEvent(stream, event, 0), gpu, "waiting for an event", err);
    if (status)
        return status;
    CUresult code = g->d.cuMemcpyDtoDAsync(g->at[gpu].block + g->bytes, g->at[other].block, TINY_BYTES, stream);
    return gpus_check(g, code, gpu, "copying", err);
}

static gantry_status queue_step(gpus *g, const baseline_graph *w, int gpu, int64_t step, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    if (w->stencil && step && gpu > 0)
        status = take_row(g, w, gpu, gpu - 1, step, err);
    if (!status && w->stencil && step && gpu + 1 < w->lanes)
        status = take_row(g, w, gpu, gpu + 1, step, err);
    if (!status)
        status = gpus_tiny(g, gpu, err);
    if (status || !w->stencil)
        return status;
    CUevent event = w->event[2 * gpu + (int)(step % 2)];
    return gpus_check(g, g->d.cuEventRecord(event, g->at[gpu].stream[0]), gpu, "recording an event", err);
}

static gantry_status queue_all(gpus *g, void *work, gantry_error *err)
{
    const baseline_graph *w = work;
    gantry_status status = gpus_order_all(g, w->lanes, true, err);
    for (int64_t step = 0; step < w->steps && !status; step++)
        for (int i = 0; i < w->lanes && !status; i++)
            status = queue_step(g, w, i, step, err);
    return status ? status : gpus_order_all(g, w->lanes, false, err);
}

static gantry_status capture(baseline *b, gantry_error *err)
{
    baseline_graph *w = b->graph;
    bool dag = w->dag.width > 0;
    return gpus_capture(&b->gpus, &w->exec, dag ? baseline_dag_queue : queue_all, dag ? (void *)&w->dag : w, err);
}

static void drop_graph(baseline *b)
{
    if (b->graph->exec && gpus_settle(&b->gpus))
        b->gpus.d.cuGraphExecDestroy(b->graph->exec);
    b->graph->exec = NULL;
}

static gantry_status time_replay(baseline *b, double *us, gantry_error *err)
{
    return baseline_launch(b, b->graph->exec, us, err);
}

/* Until it could be launched; taking it down again is not counted. */
static gantry_status time_build(baseline *b, double *us, gantry_error *err)
{
    double start = now_us();
    gpus *g = &b->gpus;
    gantry_status status = capture(b, err);
    if (!status)
        status = gpus_check(g, g->d.cuEventRecord(g->at[0].end, g->at[0].stream[0]), 0, "recording an event", err);
    if (!status)
        status = gpus_wait(g, g->at[0].end, 0, err); /* its upload */
    *us = now_us() - start;
    drop_graph(b);
    return status;
}

static gantry_status make_events(baseline *b, gantry_error *err)
{
    gpus *g = &b->gpus;
    gantry_status status = GANTRY_OK;
    b->graph->event = calloc(2 * (size_t)g->count, sizeof *b->graph->event);
    if (!b->graph->event)
        return bench_error(err, GANTRY_E_NOMEM, "out of memory");
    for (int i = 0; i < 2 * b->graph->lanes && b->graph->stencil && !status; i++) {
        CUevent *event = &b->graph->event[i];
        status = gpus_use(g, i / 2, err);
        if (!status)
            status = gpus_check(g, g->d.cuEventCreate(event, CU_EVENT_DISABLE_TIMING), i / 2, "creating an event", err);
        *event = status ? NULL : *event;
    }
    return status;
}

/* Those who copy must reach each other: a staged copy has no place in a graph made by hand. */
static gantry_status check_shape(const baseline *b, gantry_error *err)
{
    for (int i = 0; i < b->gpus.count * b->gpus.count && b->graph->dag.width > 0; i++)
        if (!gpus_reach(&b->gpus, i / b->gpus.count, i % b->gpus.count))
            return bench_error(err, GANTRY_E_UNSUPPORTED, "GPUs have no access to each other");
    for (int i = 1; i < b->graph->lanes && b->graph->stencil; i++)
        if (!gpus_reach(&b->gpus, i - 1, i))
            return bench_error(err, GANTRY_E_UNSUPPORTED, "neighbouring GPUs have no access to each other");
    return GANTRY_OK;
}

gantry_status baseline_graph_open(baseline *b, const gantry_machine *machine, const char *shape, bool build,
                                  gantry_error *err)
{
    bool stencil = strcmp(shape, "stencil") == 0, peers = stencil || b->options.dag.width > 0;
    gantry_status status = gpus_open(&b->gpus, machine, b->options.devices, BASELINE_SMALL, BASELINE_SMALL, peers, err);
    if (status)
        return status;
    baseline_graph *w = b->graph = calloc(1, sizeof *w);
    if (!w)
        return bench_error(err, GANTRY_E_NOMEM, "out of memory");
    w->stencil = stencil;
    w->dag = b->options.dag;
    w->lanes = strcmp(shape, "chain") == 0 ? 1 : b->gpus.count;
    w->steps = b->options.nodes / w->lanes;
    b->time = build ? time_build : time_replay;
    status = check_shape(b, err);
    if (!status)
        status = make_events(b, err);
    return status || build ? status : capture(b, err);
}

void baseline_graph_close(baseline *b)
{
    if (!b->graph)
        return;
    drop_graph(b);
    for (int i = 0; b->graph->event && i < 2 * b->gpus.count && !b->gpus.hung; i++)
        if (b->graph->event[i])
            b->gpus.d.cuEventDestroy(b->graph->event[i]);
    free(b->graph->event);
    free(b->graph);
    b->graph = NULL;
}
