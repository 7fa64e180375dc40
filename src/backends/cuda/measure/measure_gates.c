/* SPDX-License-Identifier: Apache-2.0 */
/* How soon a kernel of a GPU begins behind one of the next: by an edge of one graph over both, and by a gate, where
 * each has a graph of its own (stream/gates.h). Kernels that do nothing go to and fro. */
#include "backends/cuda/measure/measure.h"

#include "backends/cuda/kernels/kernels.h"
#include "base/error.h"
#include "kernels/gate/gate.h"

enum { ROUNDS = 50, ENDS = 2, FIGURES = 2 };

typedef struct ends {
    void *handle[ENDS]; /* of the kernel of gates */
    gy_harness_graph graph[ENDS];
} ends;

typedef struct side {
    const ends *ends;
    uint32_t gpu;
} side;

/* ---- one graph ---- */

static gantry_status queue_edges(gy_harness *harness, const void *what, gantry_error *err)
{
    (void)what;
    gy_harness_lane a = { 0, 0 }, b = { 1, 0 };
    GY_TRY(gy_harness_empty(harness, a, err));
    GY_TRY(gy_harness_order(harness, a, b, err));
    GY_TRY(gy_harness_empty(harness, b, err));
    return gy_harness_order(harness, b, a, err);
}

/* Of a hop there and back, less the two kernels. */
static void take_hop(gy_figure *figure, double rounds, double kernel_us)
{
    figure->us = figure->us / (2 * rounds) - kernel_us;
    figure->us = figure->us > 0 ? figure->us : 0;
    figure->mad_us /= 2 * rounds;
}

static gantry_status measure_edge(gy_measure *m, double kernel_us, gantry_error *err)
{
    gy_harness_graph g = { .lane = { 0, 0 } };
    gy_figure *figure = &m->to->edge;
    int64_t until_ns = gy_measure_next(m);
    gantry_status status = gy_harness_graph_make(&g, &m->harness, queue_edges, NULL, ROUNDS, err);
    gy_workload workload = { .queue = gy_harness_graph_queue, .what = &g, .first_lane = g.lane };
    status = status ? status : gy_harness_sample(&m->harness, &workload, until_ns, figure, err);
    gy_harness_graph_drop(&g, &m->harness);
    take_hop(figure, ROUNDS, kernel_us);
    return status;
}

/* ---- by gates ---- */

/* Words lie where copies are read from. */
static CUdeviceptr word_of(const gy_harness *harness, uint32_t gpu, uint32_t round)
{
    return harness->gpu[gpu].block + (CUdeviceptr)round * GY_GATE_STEP;
}

/* Sets a word of the other GPU, or waits for one of its own. */
static gantry_status queue_gate(gy_harness *harness, const side *s, uint32_t round, bool sets, gantry_error *err)
{
    CUdeviceptr at = word_of(harness, sets ? 1 - s->gpu : s->gpu, round);
    gantry_arg arg = gy_combine_arg(sets ? GANTRY_WRITE : GANTRY_READWRITE, GANTRY_U64, at, sizeof(uint64_t));
    gantry_launch l = { .struct_size = sizeof l, .node = "gate", .args = 1, .arg = &arg, .arg_size = sizeof arg };
    l.handle = s->ends->handle[s->gpu];
    l.stream = gy_harness_stream(harness, (gy_harness_lane){ s->gpu, 0 });
    GY_TRY(gy_harness_use(harness, s->gpu, err));
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(GY_CUDA_GATE);
    return gy_harness_launched(harness, s->gpu, kernel, l.handle, kernel->launch(&l), err);
}

/* The part of one GPU in all rounds: the first begins each. */
static gantry_status queue_side(gy_harness *harness, const void *what, gantry_error *err)
{
    const side *s = what;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        GY_TRY(s->gpu ? queue_gate(harness, s, i, false, err) : GANTRY_OK);
        GY_TRY(gy_harness_empty(harness, (gy_harness_lane){ s->gpu, 0 }, err));
        GY_TRY(queue_gate(harness, s, i, true, err));
        GY_TRY(s->gpu ? GANTRY_OK : queue_gate(harness, s, i, false, err));
    }
    return GANTRY_OK;
}

static gantry_status queue_both(gy_harness *harness, const void *what, gantry_error *err)
{
    const ends *e = what;
    GY_TRY(gy_harness_graph_queue(harness, &e->graph[0], err));
    return gy_harness_graph_queue(harness, &e->graph[1], err);
}

static gantry_status make_side(gy_measure *m, ends *e, uint32_t gpu, gantry_error *err)
{
    side s = { e, gpu };
    gy_harness_lane lane = { gpu, 0 };
    GY_TRY(gy_harness_use(&m->harness, gpu, err));
    CUresult code = m->harness.d.cuMemsetD8Async(word_of(&m->harness, gpu, 0), 0, (size_t)ROUNDS * GY_GATE_STEP,
                                                 gy_harness_stream(&m->harness, lane));
    GY_TRY(gy_harness_check(&m->harness, code, gpu, "clearing words that graphs wait for", err));
    GY_TRY(gy_harness_drain(&m->harness, err));
    e->graph[gpu].lane = lane;
    return gy_harness_graph_make(&e->graph[gpu], &m->harness, queue_side, &s, 1, err);
}

static gantry_status measure_gate(gy_measure *m, ends *e, double kernel_us, gantry_error *err)
{
    gy_harness_lane other = { 1, 0 };
    gy_figure *figure = &m->to->gate;
    int64_t until_ns = gy_measure_next(m);
    gantry_status status = make_side(m, e, 0, err);
    status = status ? status : make_side(m, e, 1, err);
    gy_workload workload = {
        .queue = queue_both, .what = e, .first_lane = { 0, 0 }, .other_lane = &other, .other_lanes = 1
    };
    status = status ? status : gy_harness_sample(&m->harness, &workload, until_ns, figure, err);
    for (uint32_t i = 0; i < ENDS; i++)
        gy_harness_graph_drop(&e->graph[i], &m->harness);
    take_hop(figure, ROUNDS, kernel_us);
    return status;
}

/* ---- both ---- */

/* That no code was compiled for a GPU is no failure: there are no gates then. */
static bool open_ends(gy_measure *m, ends *e)
{
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(GY_CUDA_GATE);
    for (uint32_t i = 0; i < ENDS; i++) {
        gantry_error why = { 0 };
        if (gy_harness_use(&m->harness, i, &why) || kernel->open(&e->handle[i], kernel, &m->harness.d, &why)) {
            e->handle[i] = NULL;
            gy_text_printf(&m->to->notes, "not measured: gates between graphs: %s\n", why.text);
            return false;
        }
    }
    return true;
}

static void close_ends(gy_measure *m, ends *e)
{
    bool settled = gy_harness_settle(&m->harness);
    for (uint32_t i = 0; i < ENDS; i++)
        if (e->handle[i] && settled && !gy_harness_use(&m->harness, i, NULL))
            gy_cuda_kernel_find(GY_CUDA_GATE)->close(e->handle[i]);
}

/* Kernels that wait for one that is given out later would never end where the driver waits for each. */
static uint32_t count(const gy_measure *m)
{
    bool can = m->harness.gpus > 1 && gy_harness_reaches(&m->harness, 0, 1) && gy_harness_reaches(&m->harness, 1, 0) &&
               gy_cuda_kernel_find(GY_CUDA_GATE) && !gy_driver_blocks() && !gy_driver_debugged(&m->harness.d);
    return can ? FIGURES : 0;
}

static gantry_status measure(gy_measure *m, gantry_error *err)
{
    ends e = { 0 };
    double kernel_us = m->to->devices.at[0].graph_node.us;
    gantry_status status = GANTRY_OK;
    if (open_ends(m, &e)) {
        status = measure_edge(m, kernel_us, err);
        status = status ? status : measure_gate(m, &e, kernel_us, err);
    } else {
        gy_measure_next(m);
        gy_measure_next(m);
    }
    close_ends(m, &e);
    return status;
}

const gy_figures gy_figures_gates = { "graphs that wait for each other", 0.2, count, measure };
