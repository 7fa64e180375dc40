/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How starts are replayed. As streams always works, and costs the thread that submits some microseconds an op; a graph
 * costs next to nothing an op, and has to be captured anew when addresses or scalars change. Which is better depends on
 * what the program does between starts, which no schedule knows. So replay "auto" begins with streams, captures once a
 * few starts in a row had the same addresses and scalars, and goes back if that was not faster.
 */
#include "backends/cuda/submit/submit.h"

#include "backends/cuda/resident/resident.h"
#include "backends/cuda/times/times.h"

enum {
    UNCHANGED = 3,
    TRIES = 4
}; /* starts as streams before a graph is tried; starts as a graph before it is judged */
_Static_assert((int)UNCHANGED + TRIES < GY_SETTLED, "a trial begins when it is clear whether there is a graph");

static bool is_of_program(const gantry_graph *g, uint32_t node)
{
    uint32_t kernel = g->nodes.at[node].kernel;
    return kernel == GY_NONE || gy_kernel_code_launches(g->kernels.at[kernel].code);
}

/* Functions of the program may count on being called at every start. */
static bool calls_the_program(const gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (op->kind == GY_OP_LAUNCH && h->op[i].call && h->device[gy_op_device(s, op, 0)].gpu &&
            is_of_program(h->job->graph, op->node))
            return true;
    }
    return false;
}

static bool any_by_a_flag(const gy_cuda *h)
{
    size_t i = 0;
    while (i < h->job->schedule->ops.count && !h->op[i].when)
        i++;
    return i < h->job->schedule->ops.count;
}

/* Events tell nothing of what is in a graph, and CUPTI nothing of the bodies of conditional nodes: under CUPTI a start
 * captured with such nodes over two GPUs ended in an illegal address (driver 580, CUDA 13.0). Without CUPTI it is
 * right, and compute-sanitizer finds nothing in it. */
static bool can_capture(const gy_cuda *h)
{
    return !h->job->record || (gy_cupti_on(h) && !any_by_a_flag(h));
}

void gy_replay_begin(gy_cuda *h)
{
    gy_replay wanted = h->job->schedule->replay;
    bool can = can_capture(h);
    h->graphs = wanted == GY_REPLAY_GRAPH && can;
    h->automatic.on =
        (wanted == GY_REPLAY_AUTO || wanted == GY_REPLAY_DEVICE) && can && h->turns == 1 && !calls_the_program(h);
    h->automatic.on = h->automatic.on && !gy_resident_on(h);
    h->replay = h->graphs ? "graph"
                : wanted != GY_REPLAY_STREAM && gy_cupti_on(h) && !can
                    ? "stream (in graphs nodes with a `when` have no times)"
                    : "stream";
}

static void use_streams(gy_cuda *h)
{
    h->automatic.unchanged = 0;
    h->graphs = false;
    h->replay = "stream";
}

/* Of any rank: what all ranks know. */
static bool any_calls_the_program(const gantry_graph *g)
{
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        uint8_t kind = g->nodes.at[i].kind;
        if ((kind == GY_NODE_KERNEL || kind == GY_NODE_LAUNCH) && is_of_program(g, i))
            return true;
    }
    return false;
}

/* NCCL wants the same of all ranks, and each would judge by its own times. In graphs its calls cost the host nothing:
 * on two H200s 20 all_reduce of 4 MiB take 826 us, and 1,828 as streams. */
void gy_replay_settle(gy_cuda *h)
{
    if (h->job->schedule->replay != GY_REPLAY_AUTO || !h->step || !gy_nccl_waits_for_ranks(h, GY_NONE))
        return;
    h->automatic.on = false;
    use_streams(h);
    h->graphs = can_capture(h) && !any_calls_the_program(h->job->graph);
    h->replay = h->graphs ? "graph" : "stream";
}

void gy_replay_changed(gy_cuda *h)
{
    for (uint32_t t = 0; t < h->turns; t++) {
        gy_graph_free(h, t);
        gy_resident_stale(h, t);
    }
    if (h->automatic.on)
        use_streams(h);
}

static void choose(gy_cuda *h)
{
    gy_cuda_auto *a = &h->automatic;
    if (!a->on || gy_resident_on(h))
        return;
    if (a->version != *h->job->version) {
        a->version = *h->job->version;
        use_streams(h);
    }
    if (!h->graphs && a->unchanged >= UNCHANGED) {
        h->graphs = true;
        h->replay = "graph (auto)";
        a->as_graph = 0;
        a->graph_ns = 0;
    }
}

/* Only with addresses does a launch say which functions it calls, so resident kernels may turn out to be no way here.
 */
gantry_status gy_replay_prepare(gy_cuda *h, uint32_t turn, gantry_error *err)
{
    if (gy_resident_on(h)) {
        GY_TRY(gy_resident_program(h, turn, err));
        if (!gy_resident_on(h))
            gy_replay_begin(h);
    }
    choose(h);
    return GANTRY_OK;
}

static int64_t least(int64_t known, int64_t ns)
{
    return known && known < ns ? known : ns;
}

void gy_replay_record(gy_cuda *h, int64_t elapsed_ns)
{
    gy_cuda_auto *a = &h->automatic;
    if (!a->on || gy_resident_on(h))
        return;
    if (!h->graphs) {
        a->stream_ns = least(a->stream_ns, elapsed_ns);
        a->unchanged++;
        return;
    }
    a->graph_ns = least(a->graph_ns, elapsed_ns);
    if (++a->as_graph == TRIES && a->graph_ns > a->stream_ns) {
        a->on = h->graphs = false;
        h->replay = "stream (auto: faster than a graph)";
    }
}
