/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to give work to a device: empty kernels, events, graphs. */
#include "backends/cuda/measure/measure.h"

#include "base/error.h"

enum { CHAIN = 200, ROUNDS = 50, FIGURES = 6 };
#define SMALL UINT64_C(256) /* bytes of a copy that takes no longer than a smaller one */

static gantry_status queue_launch(gy_bed *bed, const void *what, gantry_error *err)
{
    return gy_bed_empty(bed, *(const gy_bed_lane *)what, err);
}

/* There and back: two launches and two events that are waited for. */
static gantry_status queue_hops(gy_bed *bed, const void *what, gantry_error *err)
{
    gy_bed_lane here = *(const gy_bed_lane *)what, there = { here.gpu, 1 };
    gantry_status status = gy_bed_empty(bed, here, err);
    status = status ? status : gy_bed_order(bed, here, there, err);
    status = status ? status : gy_bed_empty(bed, there, err);
    return status ? status : gy_bed_order(bed, there, here, err);
}

/* Of one of `times` in a graph; `alone`: of a whole launch and its end seen. */
static gantry_status measure_graph(gy_measure *m, gy_bed_lane lane, gy_bed_queue *queue, uint32_t times, bool alone,
                                   gy_figure *figure, gantry_error *err)
{
    gy_bed_graph g = { .lane = lane };
    int64_t until_ns = gy_measure_next(m);
    gantry_status status = gy_bed_graph_make(&g, &m->bed, queue, &lane, times, err);
    gy_shot shot = { .queue = gy_bed_graph_queue, .what = &g, .lead = lane };
    if (!status) {
        status = (alone ? gy_bed_sample_wall : gy_bed_sample)(&m->bed, &shot, until_ns, figure, err);
    }
    gy_bed_graph_drop(&g, &m->bed);
    figure->us /= times;
    figure->mad_us /= times;
    return status;
}

/* ---- signals ---- */

/* The GPU that rows of this one go to, or the host, where there is no other. */
static uint32_t partner_of(const gy_bed *bed, uint32_t gpu)
{
    uint32_t next = (gpu + 1) % bed->gpus;
    return next != gpu && gy_bed_reaches(bed, gpu, next) ? next : GY_BED_HOST;
}

static gantry_status queue_copy(gy_bed *bed, const void *what, gantry_error *err)
{
    gy_bed_lane lane = *(const gy_bed_lane *)what;
    return gy_bed_copy(bed, lane, lane.gpu, partner_of(bed, lane.gpu), SMALL, 0, err);
}

/* A kernel, a copy of what it made, and whoever needs that goes on: on the lane's GPU, then, from there, back to it. */
static gantry_status queue_pass(gy_bed *bed, gy_bed_lane here, uint32_t to, gantry_error *err)
{
    gy_bed_lane side = { here.gpu, 1 }, there = { to == GY_BED_HOST ? here.gpu : to, 0 };
    gantry_status status = gy_bed_empty(bed, here, err);
    status = status ? status : gy_bed_order(bed, here, side, err);
    status = status ? status : gy_bed_copy(bed, side, here.gpu, to, SMALL, 0, err);
    return status ? status : gy_bed_order(bed, side, there, err);
}

static gantry_status queue_passes(gy_bed *bed, const void *what, gantry_error *err)
{
    gy_bed_lane here = *(const gy_bed_lane *)what;
    uint32_t to = partner_of(bed, here.gpu);
    gy_bed_lane there = { to == GY_BED_HOST ? here.gpu : to, 0 };
    gantry_status status = queue_pass(bed, here, to, err);
    return status ? status : queue_pass(bed, there, to == GY_BED_HOST ? to : here.gpu, err);
}

/* What a pass takes beyond its kernel and its copy, as these are counted: half of that before the copy, half after. */
static gantry_status measure_signal(gy_measure *m, gy_bed_lane lane, const gy_figure *kernel, gy_figure *figure,
                                    gantry_error *err)
{
    gy_figure copy = { 0 };
    gy_shot shot = { .queue = queue_copy, .what = &lane, .lead = lane };
    gantry_status status = gy_bed_sample(&m->bed, &shot, gy_measure_next(m), &copy, err);
    status = status ? status : measure_graph(m, lane, queue_passes, ROUNDS, false, figure, err);
    figure->us = (figure->us / 2 - kernel->us - copy.us) / 2;
    figure->us = figure->us > 0 ? figure->us : 0;
    figure->mad_us /= 4;
    return status;
}

static gantry_status measure_gpu(gy_measure *m, uint32_t gpu, gantry_error *err)
{
    gy_measured_device made = { .device = m->bed.gpu[gpu].device };
    gy_bed_lane lane = { gpu, 0 };
    gy_bed_lane side = { gpu, 1 };
    gy_shot launch = { .queue = queue_launch, .what = &lane, .lead = lane };
    gy_shot hops = { .queue = queue_hops, .what = &lane, .lead = lane, .side = &side, .sides = 1 };
    gantry_status status = gy_bed_sample(&m->bed, &launch, gy_measure_next(m), &made.launch, err);
    made.clock_mhz = gy_nvml_clock(&m->nvml, &m->bed.d, m->bed.machine, made.device);
    status = status ? status : gy_bed_sample(&m->bed, &hops, gy_measure_next(m), &made.event, err);
    made.event.us = made.event.us / 2 - made.launch.us;
    made.event.us = made.event.us > 0 ? made.event.us : 0;
    made.event.mad_us /= 2;
    status = status ? status : measure_graph(m, lane, queue_launch, CHAIN, false, &made.graph_node, err);
    status = status ? status : measure_graph(m, lane, queue_launch, 1, true, &made.graph_launch, err);
    status = status ? status : measure_signal(m, lane, &made.graph_node, &made.signal, err);
    return status || gy_vec_push(&m->to->devices, made) ? status : gy_fail_nomem(err);
}

/* ---- issuing ---- */

enum { BITS = 3 }; /* of a step, as the simulator counts them: the copy, its wait, and the wait for it */

/* A kernel on each GPU, a copy of what it made to the next, and that one waits for it: as rows go in a schedule. */
static gantry_status queue_step(gy_bed *bed, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < bed->gpus && !status; i++) {
        gy_bed_lane compute = { i, 0 }, copies = { i, 1 };
        status = gy_bed_empty(bed, compute, err);
        status = status ? status : gy_bed_order(bed, compute, copies, err);
        status = status ? status : gy_bed_copy(bed, copies, i, (i + 1) % bed->gpus, SMALL, 0, err);
    }
    for (uint32_t i = 0; i < bed->gpus && !status; i++) {
        status = gy_bed_order(bed, (gy_bed_lane){ i, 1 }, (gy_bed_lane){ (i + 1) % bed->gpus, 0 }, err);
    }
    return status;
}

static gantry_status queue_ring(gy_bed *bed, const void *what, gantry_error *err)
{
    (void)what;
    gantry_status status = gy_bed_order_all(bed, bed->gpus, GY_BED_STREAMS, true, err);
    for (int i = 0; i < ROUNDS && !status; i++) {
        status = queue_step(bed, err);
    }
    return status ? status : gy_bed_order_all(bed, bed->gpus, GY_BED_STREAMS, false, err);
}

static bool is_ring(const gy_bed *bed)
{
    bool ring = bed->gpus > 1;
    for (uint32_t i = 0; i < bed->gpus; i++) {
        ring = ring && gy_bed_reaches(bed, i, (i + 1) % bed->gpus);
    }
    return ring;
}

/* A graph whose parts on several GPUs wait for each other is given out by the host, wait after wait. With few GPUs
 * their kernels may take longer than the host, so this is at most what it needs. */
static gantry_status measure_issue(gy_measure *m, gantry_error *err)
{
    gy_bed_lane lead = { 0, 0 };
    double bits = (double)ROUNDS * m->bed.gpus * BITS;
    gantry_status status = measure_graph(m, lead, queue_ring, 1, false, &m->to->issue, err);
    m->to->issue.us /= bits;
    m->to->issue.mad_us /= bits;
    return status;
}

static uint32_t count(const gy_measure *m)
{
    return m->bed.gpus * FIGURES + is_ring(&m->bed);
}

static gantry_status measure(gy_measure *m, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < m->bed.gpus && !status; i++) {
        status = measure_gpu(m, i, err);
    }
    return status || !is_ring(&m->bed) ? status : measure_issue(m, err);
}

const gy_figures gy_figures_issue = { "launches, events and graphs", 1, count, measure };
