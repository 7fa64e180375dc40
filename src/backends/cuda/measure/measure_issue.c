/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of giving work to a device: empty kernels, events, graphs. */
#include "backends/cuda/measure/measure.h"

#include "base/error.h"

enum { CHAIN = 200, ROUNDS = 50, FIGURES = 6, LANES = 2 }; /* a lane computes, a lane copies */
#define SMALL UINT64_C(256)                                /* bytes of a copy that takes no longer than a smaller one */

static gantry_status queue_launch(gy_harness *harness, const void *what, gantry_error *err)
{
    return gy_harness_empty(harness, *(const gy_harness_lane *)what, err);
}

/* There and back: two launches and two events that are waited for. */
static gantry_status queue_hops(gy_harness *harness, const void *what, gantry_error *err)
{
    gy_harness_lane here = *(const gy_harness_lane *)what, there = { here.gpu, 1 };
    gantry_status status = gy_harness_empty(harness, here, err);
    status = status ? status : gy_harness_order(harness, here, there, err);
    status = status ? status : gy_harness_empty(harness, there, err);
    return status ? status : gy_harness_order(harness, there, here, err);
}

/* The time of one of `times` in a graph; `alone`: of a whole launch until its end is seen. */
static gantry_status measure_graph(gy_measure *m, gy_harness_lane lane, gy_harness_queue *queue, uint32_t times,
                                   bool alone, gy_figure *figure, gantry_error *err)
{
    gy_harness_graph g = { .lane = lane };
    int64_t until_ns = gy_measure_next(m);
    gantry_status status = gy_harness_graph_make(&g, &m->harness, queue, &lane, times, err);
    gy_workload workload = { .queue = gy_harness_graph_queue, .what = &g, .first_lane = lane };
    if (!status)
        status = (alone ? gy_harness_sample_wall : gy_harness_sample)(&m->harness, &workload, until_ns, figure, err);
    gy_harness_graph_drop(&g, &m->harness);
    figure->us /= times;
    figure->mad_us /= times;
    return status;
}

/* ---- signals ---- */

/* The GPU that rows of this one go to, or the host, where there is no other. */
static uint32_t partner_of(const gy_harness *harness, uint32_t gpu)
{
    uint32_t next = (gpu + 1) % harness->gpus;
    return next != gpu && gy_harness_reaches(harness, gpu, next) ? next : GY_HARNESS_HOST;
}

static gantry_status queue_copy(gy_harness *harness, const void *what, gantry_error *err)
{
    gy_harness_lane lane = *(const gy_harness_lane *)what;
    return gy_harness_copy(harness, lane, lane.gpu, partner_of(harness, lane.gpu), SMALL, 0, err);
}

/* A kernel, a copy of its results, and work that waits for the copy: on the lane's GPU, then, from there, back to it.
 */
static gantry_status queue_pass(gy_harness *harness, gy_harness_lane here, uint32_t to, gantry_error *err)
{
    gy_harness_lane other = { here.gpu, 1 }, there = { to == GY_HARNESS_HOST ? here.gpu : to, 0 };
    gantry_status status = gy_harness_empty(harness, here, err);
    status = status ? status : gy_harness_order(harness, here, other, err);
    status = status ? status : gy_harness_copy(harness, other, here.gpu, to, SMALL, 0, err);
    return status ? status : gy_harness_order(harness, other, there, err);
}

static gantry_status queue_passes(gy_harness *harness, const void *what, gantry_error *err)
{
    gy_harness_lane here = *(const gy_harness_lane *)what;
    uint32_t to = partner_of(harness, here.gpu);
    gy_harness_lane there = { to == GY_HARNESS_HOST ? here.gpu : to, 0 };
    GY_TRY(queue_pass(harness, here, to, err));
    return queue_pass(harness, there, to == GY_HARNESS_HOST ? to : here.gpu, err);
}

/* The time that a pass takes beyond its kernel and its copy, as these are counted: half of that before the copy, half
 * after. */
static gantry_status measure_signal(gy_measure *m, gy_harness_lane lane, const gy_figure *kernel, gy_figure *figure,
                                    gantry_error *err)
{
    gy_figure copy = { 0 };
    gy_workload workload = { .queue = queue_copy, .what = &lane, .first_lane = lane };
    gantry_status status = gy_harness_sample(&m->harness, &workload, gy_measure_next(m), &copy, err);
    status = status ? status : measure_graph(m, lane, queue_passes, ROUNDS, false, figure, err);
    figure->us = (figure->us / 2 - kernel->us - copy.us) / 2;
    figure->us = figure->us > 0 ? figure->us : 0;
    figure->mad_us /= 4;
    return status;
}

static gantry_status measure_gpu(gy_measure *m, uint32_t gpu, gantry_error *err)
{
    gy_measured_device made = { .device = m->harness.gpu[gpu].device };
    gy_harness_lane lane = { gpu, 0 };
    gy_harness_lane other = { gpu, 1 };
    gy_workload launch = { .queue = queue_launch, .what = &lane, .first_lane = lane };
    gy_workload hops = {
        .queue = queue_hops, .what = &lane, .first_lane = lane, .other_lane = &other, .other_lanes = 1
    };
    gantry_status status = gy_harness_sample(&m->harness, &launch, gy_measure_next(m), &made.launch, err);
    made.clock_mhz = gy_nvml_clock(&m->nvml, &m->harness.d, m->harness.machine, made.device);
    status = status ? status : gy_harness_sample(&m->harness, &hops, gy_measure_next(m), &made.event, err);
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
static gantry_status queue_step(gy_harness *harness, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < harness->gpus && !status; i++) {
        gy_harness_lane compute = { i, 0 }, copies = { i, 1 };
        status = gy_harness_empty(harness, compute, err);
        status = status ? status : gy_harness_order(harness, compute, copies, err);
        status = status ? status : gy_harness_copy(harness, copies, i, (i + 1) % harness->gpus, SMALL, 0, err);
    }
    for (uint32_t i = 0; i < harness->gpus && !status; i++) {
        status =
            gy_harness_order(harness, (gy_harness_lane){ i, 1 }, (gy_harness_lane){ (i + 1) % harness->gpus, 0 }, err);
    }
    return status;
}

static gantry_status queue_ring(gy_harness *harness, const void *what, gantry_error *err)
{
    (void)what;
    GY_TRY(gy_harness_order_all(harness, harness->gpus, LANES, true, err));
    for (int i = 0; i < ROUNDS; i++)
        GY_TRY(queue_step(harness, err));
    return gy_harness_order_all(harness, harness->gpus, LANES, false, err);
}

enum { CHAINS = 8 }; /* of waits, side by side */

/* Kernels in CHAINS rings, each behind that of the GPU before: nothing else takes time, and they overlap. */
static gantry_status queue_waits(gy_harness *harness, const void *what, gantry_error *err)
{
    gantry_status status = gy_harness_order_all(harness, harness->gpus, CHAINS, true, err);
    (void)what;
    for (uint32_t i = 0; i < ROUNDS * harness->gpus * CHAINS && !status; i++) {
        gy_harness_lane here = { i % harness->gpus, i / harness->gpus % CHAINS };
        gy_harness_lane next = { (here.gpu + 1) % harness->gpus, here.stream };
        status = gy_harness_empty(harness, here, err);
        status = status ? status : gy_harness_order(harness, here, next, err);
    }
    return status ? status : gy_harness_order_all(harness, harness->gpus, CHAINS, false, err);
}

static bool is_ring(const gy_harness *harness)
{
    bool ring = harness->gpus > 1;
    for (uint32_t i = 0; i < harness->gpus; i++)
        ring = ring && gy_harness_reaches(harness, i, (i + 1) % harness->gpus);
    return ring;
}

/* A graph whose parts on several GPUs wait for each other is given out by the host, wait after wait. How long a graph
 * takes is at least what the host needs for its waits, and more where they are few and stand behind each other: so the
 * less of two is nearer to it, and still at most what it needs. */
static gantry_status measure_issue(gy_measure *m, gantry_error *err)
{
    const struct {
        gy_harness_queue *queue;
        double bits;
    } graphs[] = { { queue_ring, (double)ROUNDS * m->harness.gpus * BITS },
                   { queue_waits, (double)ROUNDS * m->harness.gpus * CHAINS } };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        gy_figure figure = { 0 };
        GY_TRY(measure_graph(m, (gy_harness_lane){ 0, 0 }, graphs[i].queue, 1, false, &figure, err));
        figure.us /= graphs[i].bits;
        figure.mad_us /= graphs[i].bits;
        if (i == 0 || figure.us < m->to->issue.us)
            m->to->issue = figure;
    }
    return GANTRY_OK;
}

/* A kernel on each GPU: what a graph over all of them has at least. */
static gantry_status queue_each(gy_harness *harness, const void *what, gantry_error *err)
{
    (void)what;
    GY_TRY(gy_harness_order_all(harness, harness->gpus, 1, true, err));
    for (uint32_t i = 0; i < harness->gpus; i++)
        GY_TRY(gy_harness_empty(harness, (gy_harness_lane){ i, 0 }, err));
    return gy_harness_order_all(harness, harness->gpus, 1, false, err);
}

/* The time that each GPU adds to a start, beyond one of the slowest alone. */
static gantry_status measure_another(gy_measure *m, gantry_error *err)
{
    gy_figure *figure = &m->to->another;
    double one = 0, more = m->harness.gpus - 1;
    for (size_t i = 0; i < m->to->devices.count; i++)
        one = m->to->devices.at[i].graph_launch.us > one ? m->to->devices.at[i].graph_launch.us : one;
    GY_TRY(measure_graph(m, (gy_harness_lane){ 0, 0 }, queue_each, 1, true, figure, err));
    figure->us = figure->us > one ? (figure->us - one) / more : 0;
    figure->mad_us /= more;
    return GANTRY_OK;
}

static uint32_t count(const gy_measure *m)
{
    return m->harness.gpus * FIGURES + (is_ring(&m->harness) ? 3 : 0);
}

static gantry_status measure(gy_measure *m, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < m->harness.gpus && !status; i++)
        status = measure_gpu(m, i, err);
    bool rings = !status && is_ring(&m->harness);
    status = rings ? measure_another(m, err) : status;
    return status || !rings ? status : measure_issue(m, err);
}

const gy_figures gy_figures_issue = { "launches, events and graphs", 1, count, measure };
