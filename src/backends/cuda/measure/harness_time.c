/* SPDX-License-Identifier: Apache-2.0 */
/* Timing: by events where the devices alone count, by the host's clock where the host is part of it. */
#include "backends/cuda/measure/harness.h"

#include "base/clock.h"
#include "base/error.h"

enum { MOST_TIMES = 128, WARM_UP = 2 };
#define BATCH_US 200.0  /* short things are timed by so much at once: events count in half microseconds */
#define GRAPH_US 1000.0 /* graphs of so much: starting one takes some microseconds */

int64_t gy_budget_next(gy_budget *budget)
{
    int64_t now = gy_now_ns(), rest = budget->until_ns - now;
    uint32_t left = budget->left ? budget->left-- : 1;
    return rest > 0 ? now + rest / left : now;
}

static gantry_status record(gy_bed *bed, CUevent event, gy_bed_lane lane, gantry_error *err)
{
    gantry_status status = gy_bed_use(bed, lane.gpu, err);
    return status ? status
                  : gy_bed_check(bed, bed->d.cuEventRecord(event, gy_bed_stream(bed, lane)), lane.gpu,
                                 "recording an event", err);
}

/* Between two events of the lead: the sides begin after the one and end before the other. */
static gantry_status queue_all(gy_bed *bed, const gy_shot *shot, uint32_t times, gantry_error *err)
{
    gy_bed_gpu *lead = &bed->gpu[shot->lead.gpu];
    gantry_status status = record(bed, lead->begin, shot->lead, err);
    for (uint32_t i = 0; i < shot->sides && !status; i++) {
        status = gy_bed_order(bed, shot->lead, shot->side[i], err);
    }
    for (uint32_t i = 0; i < times && !status; i++) {
        status = shot->queue(bed, shot->what, err);
    }
    for (uint32_t i = 0; i < shot->sides && !status; i++) {
        status = gy_bed_order(bed, shot->side[i], shot->lead, err);
    }
    return status ? status : record(bed, lead->end, shot->lead, err);
}

gantry_status gy_bed_time(gy_bed *bed, const gy_shot *shot, uint32_t times, double *us, gantry_error *err)
{
    gy_bed_gpu *lead = &bed->gpu[shot->lead.gpu];
    float ms = 0;
    gantry_status status = queue_all(bed, shot, times, err);
    status = status ? status : gy_bed_wait(bed, lead->end, shot->lead.gpu, err);
    status = status ? status
                    : gy_bed_check(bed, bed->d.event_elapsed(&ms, lead->begin, lead->end), shot->lead.gpu,
                                   "reading the time between events", err);
    *us = (double)ms * 1e3 / times;
    return status;
}

/* By the clock of the host: from before it is queued until its end is seen. */
static gantry_status time_wall(gy_bed *bed, const gy_shot *shot, double *us, gantry_error *err)
{
    int64_t start = gy_now_ns();
    gantry_status status = queue_all(bed, shot, 1, err);
    status = status ? status : gy_bed_wait(bed, bed->gpu[shot->lead.gpu].end, shot->lead.gpu, err);
    *us = (double)(gy_now_ns() - start) / 1e3;
    return status;
}

/* In a sample: where it can be done so often only, the least of samples have as many as may be. */
static uint32_t batch_of(const gy_shot *shot, double us, double batch_us)
{
    uint32_t most = shot->most ? (shot->most - WARM_UP) / GY_BED_LEAST : MOST_TIMES;
    double times = us > 0 ? batch_us / us : most;
    return times > most ? most : times < 1 ? 1 : (uint32_t)times;
}

static gantry_status warm_up(gy_bed *bed, const gy_shot *shot, double *us, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < WARM_UP && !status; i++) {
        status = gy_bed_time(bed, shot, 1, us, err); /* the first one may load things */
    }
    return status;
}

/* `times`: of it in a sample; 0: one by the host's clock. */
static gantry_status take_samples(gy_bed *bed, const gy_shot *shot, uint32_t times, int64_t until_ns, gy_figure *figure,
                                  gantry_error *err)
{
    double us[GY_BED_SAMPLES];
    uint32_t samples = 0, most = shot->most && times ? (shot->most - WARM_UP) / times : GY_BED_SAMPLES;
    gantry_status status = GANTRY_OK;
    most = most > GY_BED_SAMPLES ? GY_BED_SAMPLES : most;
    while (!status && samples < most && (samples < GY_BED_LEAST || gy_now_ns() < until_ns)) {
        status = times ? gy_bed_time(bed, shot, times, &us[samples], err) : time_wall(bed, shot, &us[samples], err);
        samples += status == GANTRY_OK;
    }
    *figure = status ? (gy_figure){ 0 } : gy_figure_of(us, samples);
    return status;
}

gantry_status gy_bed_sample(gy_bed *bed, const gy_shot *shot, int64_t until_ns, gy_figure *figure, gantry_error *err)
{
    double first = 0;
    gantry_status status = warm_up(bed, shot, &first, err);
    return status ? status : take_samples(bed, shot, batch_of(shot, first, BATCH_US), until_ns, figure, err);
}

gantry_status gy_bed_sample_wall(gy_bed *bed, const gy_shot *shot, int64_t until_ns, gy_figure *figure,
                                 gantry_error *err)
{
    double first = 0;
    gantry_status status = warm_up(bed, shot, &first, err);
    return status ? status : take_samples(bed, shot, 0, until_ns, figure, err);
}

/* Where a capture is refused nothing is lost but the graph. */
gantry_status gy_bed_sample_nodes(gy_bed *bed, const gy_shot *shot, int64_t until_ns, gy_figure *figure,
                                  gantry_error *err)
{
    double first = 0;
    gy_bed_graph g = { .lane = shot->lead };
    gantry_status status = warm_up(bed, shot, &first, err);
    uint32_t nodes = batch_of(shot, first, GRAPH_US);
    if (status || first > BATCH_US || gy_bed_graph_make(&g, bed, shot->queue, shot->what, nodes, NULL)) {
        return status ? status : take_samples(bed, shot, batch_of(shot, first, BATCH_US), until_ns, figure, err);
    }
    gy_shot graph = { .queue = gy_bed_graph_queue, .what = &g, .lead = shot->lead };
    graph.most = shot->most ? WARM_UP + (shot->most - WARM_UP) / nodes : 0;
    status = take_samples(bed, &graph, 1, until_ns, figure, err);
    gy_bed_graph_drop(&g, bed);
    figure->us /= nodes;
    figure->mad_us /= nodes;
    return status;
}
