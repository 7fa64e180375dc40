/* SPDX-License-Identifier: Apache-2.0 */
/* Timing: by events where the devices alone count, by the host's clock where the host is part of it. */
#include "backends/cuda/measure/harness.h"

#include "base/clock.h"
#include "base/error.h"

enum { MOST_TIMES = 128, WARM_UP = 2 };
#define BATCH_US 200.0  /* short things are timed by so much at once: events count in half microseconds */
#define GRAPH_US 1000.0 /* graphs of so much: starting one takes some microseconds */
#define HEAT_US  8e4    /* so long a GPU computes before its clock is where its limit of power keeps it */
#define LONG_US  50.0   /* shorter kernels leave a GPU time to rest */

int64_t gy_budget_next(gy_budget *budget)
{
    int64_t now = gy_now_ns(), rest = budget->until_ns - now;
    uint32_t left = budget->left ? budget->left-- : 1;
    return rest > 0 ? now + rest / left : now;
}

static gantry_status record(gy_harness *harness, CUevent event, gy_harness_lane lane, gantry_error *err)
{
    gantry_status status = gy_harness_use(harness, lane.gpu, err);
    return status ? status
                  : gy_harness_check(harness, harness->d.cuEventRecord(event, gy_harness_stream(harness, lane)),
                                     lane.gpu, "recording an event", err);
}

/* Queues the work between two events of the first lane: the other lanes begin after the one and end before the other.
 */
static gantry_status queue_all(gy_harness *harness, const gy_workload *workload, uint32_t times, gantry_error *err)
{
    gy_harness_gpu *first = &harness->gpu[workload->first_lane.gpu];
    GY_TRY(record(harness, first->begin, workload->first_lane, err));
    for (uint32_t i = 0; i < workload->other_lanes; i++)
        GY_TRY(gy_harness_order(harness, workload->first_lane, workload->other_lane[i], err));
    for (uint32_t i = 0; i < times; i++)
        GY_TRY(workload->queue(harness, workload->what, err));
    for (uint32_t i = 0; i < workload->other_lanes; i++)
        GY_TRY(gy_harness_order(harness, workload->other_lane[i], workload->first_lane, err));
    return record(harness, first->end, workload->first_lane, err);
}

gantry_status gy_harness_time(gy_harness *harness, const gy_workload *workload, uint32_t times, double *us,
                              gantry_error *err)
{
    gy_harness_gpu *first = &harness->gpu[workload->first_lane.gpu];
    float ms = 0;
    gantry_status status = queue_all(harness, workload, times, err);
    status = status ? status : gy_harness_wait(harness, first->end, workload->first_lane.gpu, err);
    status = status ? status
                    : gy_harness_check(harness, harness->d.event_elapsed(&ms, first->begin, first->end),
                                       workload->first_lane.gpu, "reading the time between events", err);
    *us = (double)ms * 1e3 / times;
    return status;
}

/* Times it by the clock of the host: from before it is queued until its end is seen, by an event without a time and
 * none ahead of it, as a start of a run is timed that somebody waits for (submit/wait.c). Two events with times make
 * that 2.7 us longer. The work is all in the first lane, or joins it. */
static gantry_status time_wall(gy_harness *harness, const gy_workload *workload, double *us, gantry_error *err)
{
    gy_harness_lane lane = workload->first_lane;
    CUevent end = harness->gpu[lane.gpu].scratch_event[0];
    int64_t start = gy_now_ns();
    GY_TRY(workload->queue(harness, workload->what, err));
    GY_TRY(record(harness, end, lane, err));
    GY_TRY(gy_harness_wait(harness, end, lane.gpu, err));
    *us = (double)(gy_now_ns() - start) / 1e3;
    return GANTRY_OK;
}

/* The repetitions of a sample. Where the work can be done a limited number of times, the least of samples have as many
 * as may be. */
static uint32_t batch_of(const gy_workload *workload, double us, double batch_us)
{
    uint32_t most = workload->most ? (workload->most - WARM_UP) / GY_HARNESS_LEAST : MOST_TIMES;
    double times = us > 0 ? batch_us / us : most;
    return times > most ? most : times < 1 ? 1 : (uint32_t)times;
}

static gantry_status warm_up(gy_harness *harness, const gy_workload *workload, double *us, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < WARM_UP && !status; i++)
        status = gy_harness_time(harness, workload, 1, us, err); /* the first one may load things */
    return status;
}

static gantry_status heat(gy_harness *harness, const gy_workload *workload, double us, gantry_error *err)
{
    uint32_t times = batch_of(workload, us, HEAT_US / 8);
    gantry_status status = GANTRY_OK;
    if (!workload->heats || workload->most || us < LONG_US)
        return GANTRY_OK;
    for (int64_t until_ns = gy_now_ns() + (int64_t)(HEAT_US * 1e3); gy_now_ns() < until_ns && !status;)
        status = gy_harness_time(harness, workload, times, &us, err);
    return status;
}

/* `times`: of it in a sample; 0: one by the host's clock. */
static gantry_status take_samples(gy_harness *harness, const gy_workload *workload, uint32_t times, int64_t until_ns,
                                  gy_figure *figure, gantry_error *err)
{
    double us[GY_HARNESS_SAMPLES];
    uint32_t samples = 0, most = workload->most && times ? (workload->most - WARM_UP) / times : GY_HARNESS_SAMPLES;
    gantry_status status = GANTRY_OK;
    most = most > GY_HARNESS_SAMPLES ? GY_HARNESS_SAMPLES : most;
    while (!status && samples < most && (samples < GY_HARNESS_LEAST || gy_now_ns() < until_ns)) {
        status = times ? gy_harness_time(harness, workload, times, &us[samples], err)
                       : time_wall(harness, workload, &us[samples], err);
        samples += status == GANTRY_OK;
    }
    *figure = status ? (gy_figure){ 0 } : gy_figure_of(us, samples);
    return status;
}

gantry_status gy_harness_sample(gy_harness *harness, const gy_workload *workload, int64_t until_ns, gy_figure *figure,
                                gantry_error *err)
{
    double first = 0;
    gantry_status status = warm_up(harness, workload, &first, err);
    return status ? status
                  : take_samples(harness, workload, batch_of(workload, first, BATCH_US), until_ns, figure, err);
}

gantry_status gy_harness_sample_wall(gy_harness *harness, const gy_workload *workload, int64_t until_ns,
                                     gy_figure *figure, gantry_error *err)
{
    double first = 0;
    GY_TRY(warm_up(harness, workload, &first, err));
    return take_samples(harness, workload, 0, until_ns, figure, err);
}

/* Where a capture is refused nothing is lost but the graph. */
gantry_status gy_harness_sample_nodes(gy_harness *harness, const gy_workload *workload, int64_t until_ns,
                                      gy_figure *figure, gantry_error *err)
{
    double first = 0;
    gy_harness_graph g = { .lane = workload->first_lane };
    gantry_status status = warm_up(harness, workload, &first, err);
    uint32_t nodes = batch_of(workload, first, GRAPH_US);
    status = status ? status : heat(harness, workload, first, err);
    if (status || first > BATCH_US ||
        gy_harness_graph_make(&g, harness, workload->queue, workload->what, nodes, NULL)) {
        return status ? status
                      : take_samples(harness, workload, batch_of(workload, first, BATCH_US), until_ns, figure, err);
    }
    gy_workload graph = { .queue = gy_harness_graph_queue, .what = &g, .first_lane = workload->first_lane };
    graph.most = workload->most ? WARM_UP + (workload->most - WARM_UP) / nodes : 0;
    status = take_samples(harness, &graph, 1, until_ns, figure, err);
    gy_harness_graph_drop(&g, harness);
    figure->us /= nodes;
    figure->mad_us /= nodes;
    return status;
}
