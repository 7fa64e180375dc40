/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of many tiny kernels over GPUs, as a good program would capture it by hand: a chain on one GPU; chains on
 * all; or a stencil, where each GPU takes a row from both neighbours before each step. */
#include "backends/cuda/measure/raw.h"

#include "base/clock.h"
#include "base/error.h"
#include <string.h>

enum { ROW = 4096 };

struct gy_raw_graph {
    bool stencil;
    int64_t steps;
    uint32_t lanes; /* GPUs that take part */
    CUevent *event; /* 2 per GPU: the end of its last steps */
    gy_bed_graph graph;
};

bool gy_raw_graph_peers(const char *shape)
{
    return strcmp(shape, "stencil") == 0;
}

static gantry_status wait_for(gy_bed *bed, const gy_raw *raw, uint32_t gpu, uint32_t other, int64_t step,
                              gantry_error *err)
{
    CUevent event = raw->graph->event[2 * other + (uint32_t)((step + 1) % 2)];
    gantry_status status = gy_bed_use(bed, gpu, err);
    status = status ? status
                    : gy_bed_check(bed, bed->d.cuStreamWaitEvent(bed->gpu[gpu].stream[0], event, 0), gpu,
                                   "waiting for an event", err);
    return status ? status : gy_bed_copy(bed, (gy_bed_lane){ gpu, 0 }, other, gpu, ROW, 0, err);
}

static gantry_status take_rows(gy_bed *bed, const gy_raw *raw, uint32_t gpu, int64_t step, gantry_error *err)
{
    uint32_t lanes = raw->graph->lanes;
    gantry_status status = gpu > 0 && step ? wait_for(bed, raw, gpu, gpu - 1, step, err) : GANTRY_OK;
    return !status && gpu + 1 < lanes && step ? wait_for(bed, raw, gpu, gpu + 1, step, err) : status;
}

static gantry_status queue_step(gy_bed *bed, const gy_raw *raw, uint32_t gpu, int64_t step, gantry_error *err)
{
    gantry_status status = raw->graph->stencil ? take_rows(bed, raw, gpu, step, err) : GANTRY_OK;
    status = status ? status : gy_recipe_queue(bed, &raw->call[gpu], err);
    if (status || !raw->graph->stencil) {
        return status;
    }
    return gy_bed_check(
        bed, bed->d.cuEventRecord(raw->graph->event[2 * gpu + (uint32_t)(step % 2)], bed->gpu[gpu].stream[0]), gpu,
        "recording an event", err);
}

static gantry_status queue_all(gy_bed *bed, const void *what, gantry_error *err)
{
    const gy_raw *raw = what;
    gantry_status status = gy_bed_order_all(bed, raw->graph->lanes, 1, true, err);
    for (int64_t step = 0; step < raw->graph->steps && !status; step++) {
        for (uint32_t i = 0; i < raw->graph->lanes && !status; i++) {
            status = queue_step(bed, raw, i, step, err);
        }
    }
    return status ? status : gy_bed_order_all(bed, raw->graph->lanes, 1, false, err);
}

static gantry_status time_replay(gy_raw *raw, double *us, gantry_error *err)
{
    gy_shot shot = { .queue = gy_bed_graph_queue, .what = &raw->graph->graph, .lead = { 0, 0 } };
    return gy_bed_wall(&raw->bed, &shot, us, err);
}

/* Until it could be launched; taking it down again is not counted. */
static gantry_status time_build(gy_raw *raw, double *us, gantry_error *err)
{
    int64_t start = gy_now_ns();
    gantry_status status = gy_bed_graph_make(&raw->graph->graph, &raw->bed, queue_all, raw, 1, err);
    status = status ? status : gy_bed_drain(&raw->bed, err);
    *us = (double)(gy_now_ns() - start) / 1e3;
    gy_bed_graph_drop(&raw->graph->graph, &raw->bed);
    return status;
}

static gantry_status make_events(gy_raw *raw, gantry_error *err)
{
    gy_bed *bed = &raw->bed;
    gantry_status status = GANTRY_OK;
    raw->graph->event = gy_calloc(2 * (size_t)bed->gpus, sizeof *raw->graph->event);
    if (!raw->graph->event) {
        return gy_fail_nomem(err);
    }
    for (uint32_t i = 0; i < 2 * raw->graph->lanes && raw->graph->stencil && !status; i++) {
        status = gy_bed_use(bed, i / 2, err);
        CUevent *event = &raw->graph->event[i];
        CUresult code = status ? CUDA_SUCCESS : bed->d.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
        *event = code ? NULL : *event;
        status = status ? status : gy_bed_check(bed, code, i / 2, "creating an event", err);
    }
    return status;
}

/* Neighbours must reach each other: a staged copy has no place in a graph made by hand. */
static gantry_status check_shape(const gy_raw *raw, gantry_error *err)
{
    for (uint32_t i = 1; i < raw->graph->lanes && raw->graph->stencil; i++) {
        if (!gy_bed_reaches(&raw->bed, i - 1, i)) {
            return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "neighbouring GPUs have no access to each other");
        }
    }
    return GANTRY_OK;
}

gantry_status gy_raw_graph_open(gy_raw *raw, const char *shape, bool build, gantry_error *err)
{
    gy_raw_graph *g = raw->graph = gy_calloc(1, sizeof *g);
    if (!g) {
        return gy_fail_nomem(err);
    }
    g->stencil = gy_raw_graph_peers(shape);
    g->lanes = strcmp(shape, "chain") == 0 ? 1 : raw->bed.gpus;
    g->steps = raw->options.nodes / g->lanes;
    gantry_status status = check_shape(raw, err);
    status = status ? status : make_events(raw, err);
    for (uint32_t i = 0; i < g->lanes && !status; i++) {
        status = gy_raw_prepare(raw, i, "copy", GANTRY_U8, ROW, err);
    }
    raw->time = build ? time_build : time_replay;
    return status || build ? status : gy_bed_graph_make(&g->graph, &raw->bed, queue_all, raw, 1, err);
}

void gy_raw_graph_close(gy_raw *raw)
{
    if (!raw->graph) {
        return;
    }
    gy_bed_graph_drop(&raw->graph->graph, &raw->bed);
    for (uint32_t i = 0; raw->graph->event && i < 2 * raw->bed.gpus && !raw->bed.hung; i++) {
        if (raw->graph->event[i]) {
            raw->bed.d.cuEventDestroy(raw->graph->event[i]);
        }
    }
    gy_free(raw->graph->event);
    gy_free(raw->graph);
    raw->graph = NULL;
}
