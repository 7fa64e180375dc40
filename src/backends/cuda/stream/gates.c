/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/stream/gates.h"

#include "backends/cuda/stream/own_kernel.h"
#include "base/error.h"
#include "base/vec.h"
#include "kernels/gate/gate.h"
#include "kernels/resident/counters.h"
#include "schedule/gates/gates.h"
#include <stdio.h>
#include <string.h>

#define BYTES ((uint64_t)GY_GATES_MOST * GY_GATE_STEP) /* of the words of a GPU */

static const gy_own_kernel own = { GY_CUDA_GATE, "what lets graphs wait for each other" };

typedef struct node_list {
    GY_VEC(CUgraphNode) node;
} node_list;

typedef struct gates_gpu {
    bool used;
    gy_queue origin, aside; /* where its capture begins and ends; aside: the host's, in a failure */
    CUfunction set, wait;   /* of the kernel of gates */
    CUdeviceptr block;      /* its words */
    CUgraph graph;          /* that is captured */
    uint32_t words;         /* so many has the capture */
    node_list before;       /* what the next gate comes behind: the last one, and what has set words since */
    uint32_t wants;         /* of the gate that is open: the last so many words */
    GY_VEC(uint32_t) ops;   /* that the open one waits for */
    node_list gate;         /* all of the capture */
    CUevent ended;          /* the last launch of its graph */
} gates_gpu;

/* Of an op. */
typedef struct gates_op {
    uint32_t gpu;        /* where it ends */
    bool told, within;   /* other GPUs wait for it; its own does, by an event */
    bool captured;       /* the capture has come to its end, and `end` is of it */
    uint32_t end, nodes; /* of a capture: what it ends with, among `end` of all, if others are told */
} gates_op;

struct gy_gates {
    bool on, forced;
    const gy_cuda_kernel *kernel;
    void **handle; /* per device: of the kernel */
    gy_gate_waiters waiters;
    gates_gpu *gpu;   /* per device: set for the lowest of those that are one GPU */
    gates_op *op;     /* per op */
    node_list end;    /* of all ops */
    node_list front;  /* what a node is made to come behind */
    uint32_t *passed; /* per lane: so many gates of its GPU are ahead of it */
    uint32_t *last;   /* per lane: the last op there that a gate takes in, while it is closed; GY_NONE: none */
    uint32_t *number; /* per op and device: of the gate that has waited for the op, from 1; 0: none */
    uint8_t *asked;   /* likewise: a gate has, or the one that is open does */
    gy_gate_times times;
    char why[512];   /* it is one graph for this reason; empty: it is not, or for what is predicted */
    char text[1024]; /* of the last report */
};

static bool is_on(const gy_cuda *h)
{
    return h->gates && h->gates->on;
}

/* The lowest device that is the same GPU. */
static uint32_t gpu_of(const gy_cuda *h, uint32_t device)
{
    uint32_t i = 0;
    while (!h->device[i].gpu || !gy_cuda_same_gpu(h, i, device))
        i++;
    return i;
}

bool gy_gates_begins(const gy_cuda *h, uint32_t device)
{
    return is_on(h) ? h->gates->gpu[device].used : device == h->end_stream.device;
}

gy_queue gy_gates_origin(const gy_cuda *h, uint32_t device)
{
    return is_on(h) ? h->gates->gpu[gpu_of(h, device)].origin : h->end_stream;
}

bool gy_gates_on(const gy_cuda *h)
{
    return is_on(h);
}

void gy_gates_leave(gy_cuda *h, const gantry_error *why)
{
    h->gates->on = false;
    snprintf(h->gates->why, sizeof h->gates->why, "%s", why->text);
}

/* ---- whether ---- */

static bool has_when(const gy_cuda *h)
{
    bool any = false;
    for (uint32_t i = 0; i < h->job->schedule->ops.count && !any; i++)
        any = h->op[i].when != NULL;
    return any;
}

/* Of rows of the sync table: a GPU cannot set words of one that it does not reach. */
static bool reaches_all(const gy_cuda *h)
{
    bool all = true;
    for (uint32_t op = 0; op < h->job->schedule->ops.count && all; op++)
        for (uint32_t i = h->op[op].wait; i < h->op[op].wait + h->op[op].waits && all; i++)
            all = h->wait[i].distance > 0 || gy_cuda_reaches(h, gy_cuda_lane_of(h, h->wait[i].from, 0)->queue.device,
                                                             gy_cuda_lane_of(h, op, 0)->queue.device);
    return all;
}

/* Ops that are carried out as several GPUs together do it, or as conditional nodes, are left to one graph; and so is
 * all where a kernel would end, or be stopped, before the one that it waits for is launched. */
static const char *obstacle(const gy_cuda *h)
{
    if (h->nccl || h->counted)
        return "GPUs carry out collectives together";
    if (h->step)
        return "several processes carry it out";
    if (h->job->record || h->job->apart)
        return h->job->record ? "times of ops are recorded" : "ops are carried out one at a time";
    if (has_when(h))
        return "a node has a `when`";
    if (!h->d.conditions)
        return "the driver is older than CUDA 12.3";
    if (!gy_cuda_kernel_find(GY_CUDA_GATE))
        return "Gantry was built without nvcc";
    if (!reaches_all(h))
        return "a GPU waits for one that does not reach it";
    return gy_driver_blocks()          ? "CUDA_LAUNCH_BLOCKING is set"
           : gy_driver_debugged(&h->d) ? "a debugger stops kernels"
                                       : NULL;
}

/* The schedule decides unless the user does. */
static gantry_status choose(gy_cuda *h, gy_gates *to, bool *each, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    if (!to->forced)
        GY_TRY(gy_gates_predict(s, &to->times, err));
    *each = false;
    if (!to->forced && !to->times.rows)
        return GANTRY_OK; /* nothing to choose */
    const char *why = obstacle(h);
    why = why || to->forced ? why : gy_gates_obstacle(s);
    snprintf(to->why, sizeof to->why, "%s", why ? why : "");
    *each = !why && (to->forced || gy_gates_pay(&to->times));
    return GANTRY_OK;
}

/* By GANTRY_CUDA_GRAPHS, and otherwise where what it costs is known. */
static bool is_asked(const gy_cuda *h, bool *forced)
{
    gy_replay replay = h->job->schedule->replay;
    *forced = gy_driver_switch("GANTRY_CUDA_GRAPHS", "gpu");
    if (replay == GY_REPLAY_DEVICE || gy_driver_switch("GANTRY_CUDA_GRAPHS", "one"))
        return false;
    return *forced || (replay != GY_REPLAY_STREAM && gy_gates_known(h->job->schedule->machine));
}

const char *gy_gates_replay(gy_cuda *h, const char *replay)
{
    gy_gates *g = h->gates;
    if (!g || !h->graphs || (!g->on && !g->why[0] && !g->times.rows))
        return replay;
    double share = g->times.one ? (double)g->times.each / (double)g->times.one : 1;
    if (g->on && g->forced)
        snprintf(g->text, sizeof g->text, "%s, one for each GPU", replay);
    else if (g->on)
        snprintf(g->text, sizeof g->text, "%s, one for each GPU, predicted at %.3f of one for all", replay, share);
    else if (g->why[0])
        snprintf(g->text, sizeof g->text, "%s; one for all GPUs: %s", replay, g->why);
    else
        snprintf(g->text, sizeof g->text, "%s; one for all GPUs, as one for each is predicted at %.3f of it", replay,
                 share);
    return g->text;
}

/* Finds the GPUs with streams. */
static bool find_gpus(const gy_cuda *h, gy_gates *to)
{
    uint32_t count = 0;
    to->gpu[gpu_of(h, h->end_stream.device)].used = true;
    for (uint32_t i = 0; i < h->lanes; i++)
        if (h->lane[i].used)
            to->gpu[gpu_of(h, h->lane[i].queue.device)].used = true;
    for (uint32_t i = 0; i < h->devices; i++)
        count += to->gpu[i].used;
    return count > 1;
}

static gantry_status clear(gy_cuda *h, uint32_t device, gantry_error *err)
{
    const gates_gpu *g = &h->gates->gpu[device];
    GY_TRY(gy_cuda_use(h, device, err));
    CUresult code = h->d.cuMemsetD8Async(g->block, 0, BYTES, g->aside.stream);
    code = code ? code : gy_cuda_settle(h, g->aside);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, device, "clearing words that graphs wait for", err);
}

static gantry_status make_gpu(gy_cuda *h, uint32_t device, gantry_error *err)
{
    gates_gpu *g = &h->gates->gpu[device];
    bool ends = gy_cuda_same_gpu(h, device, h->end_stream.device);
    g->origin = ends ? h->end_stream : h->device[device].auxiliary;
    GY_TRY(gy_cuda_queue_new(h, &g->aside, device, true, err));
    GY_TRY(gy_cuda_event_new(h, &g->ended, device, false, err));
    GY_TRY(gy_cuda_allocate(h, &g->block, device, BYTES, "words that its graphs wait for", err));
    return clear(h, device, err);
}

/* Goes through the rows of an op: the GPU that it is on, if one leads to it from another GPU. */
static uint32_t waiting_gpu(gy_cuda *h, uint32_t op)
{
    gates_op *all = h->gates->op;
    bool waits = false;
    for (uint32_t i = h->op[op].wait; i < h->op[op].wait + h->op[op].waits; i++) {
        gates_op *from = &all[h->wait[i].from];
        bool crosses = from->gpu != all[op].gpu;
        if (h->wait[i].distance > 0)
            continue;
        waits = waits || crosses;
        from->told = from->told || crosses;
        from->within = from->within || !crosses;
    }
    return waits ? all[op].gpu : GY_NONE;
}

static gantry_status find_waiters(gy_cuda *h, gantry_error *err)
{
    size_t ops = h->job->schedule->ops.count;
    gy_gate_waiters *w = &h->gates->waiters;
    uint32_t *gpu = gy_arena_calloc(&h->arena, ops + 1, sizeof *gpu);
    w->op = gy_arena_calloc(&h->arena, ops + 1, sizeof *w->op);
    w->first = gy_arena_calloc(&h->arena, h->devices + 1, sizeof *w->first);
    h->gates->op = gy_arena_calloc(&h->arena, ops + 1, sizeof *h->gates->op);
    if (!gpu || !w->op || !w->first || !h->gates->op)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < ops; i++)
        h->gates->op[i].gpu = gpu_of(h, gy_cuda_lane_of(h, i, 0)->queue.device);
    for (uint32_t i = 0; i < ops; i++)
        gpu[i] = waiting_gpu(h, i);
    gy_gate_waiters_fill(w, gpu, ops, h->devices);
    return GANTRY_OK;
}

/* Finds the functions of the kernel on the device; false: there is no code for such a GPU. */
static gantry_status open_kernel(gy_cuda *h, uint32_t device, bool *found, gantry_error *err)
{
    gy_gates *to = h->gates;
    *found = false;
    GY_TRY(gy_own_kernel_open(h, &own, to->handle, device, err));
    if (!to->handle[device])
        return GANTRY_OK;
    to->gpu[device].set = to->kernel->function(to->handle[device], GY_GATE_SETS);
    to->gpu[device].wait = to->kernel->function(to->handle[device], GY_GATE_WAITS);
    *found = to->gpu[device].set && to->gpu[device].wait;
    return GANTRY_OK;
}

static gantry_status make(gy_cuda *h, gantry_error *err)
{
    gy_gates *to = h->gates;
    to->kernel = gy_cuda_kernel_find(GY_CUDA_GATE);
    GY_TRY(find_waiters(h, err));
    size_t pairs = (size_t)h->job->schedule->ops.count * h->devices;
    to->handle = gy_arena_calloc(&h->arena, h->devices, sizeof *to->handle);
    to->number = gy_arena_calloc(&h->arena, pairs + 1, sizeof *to->number);
    to->asked = gy_arena_calloc(&h->arena, pairs + 1, 1);
    to->passed = gy_arena_calloc(&h->arena, h->lanes + 1, sizeof *to->passed);
    to->last = gy_arena_calloc(&h->arena, h->lanes + 1, sizeof *to->last);
    for (uint32_t t = 0; t < h->turns; t++)
        if (!(h->turn[t].beside = gy_arena_calloc(&h->arena, h->devices, sizeof *h->turn[t].beside)))
            return gy_fail_nomem(err);
    if (!to->handle || !to->number || !to->asked || !to->passed || !to->last)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < h->lanes; i++)
        to->last[i] = GY_NONE;
    to->on = true;
    for (uint32_t i = 0; i < h->devices; i++) {
        if (!to->gpu[i].used)
            continue;
        bool found;
        GY_TRY(open_kernel(h, i, &found, err));
        GY_TRY(make_gpu(h, i, err));
        to->on = to->on && found;
    }
    if (!to->on)
        snprintf(to->why, sizeof to->why, "gates were compiled for no GPU like one of these");
    return GANTRY_OK;
}

gantry_status gy_gates_make(gy_cuda *h, gantry_error *err)
{
    bool forced, each;
    if (!is_asked(h, &forced))
        return GANTRY_OK;
    gy_gates *made = gy_arena_calloc(&h->arena, 1, sizeof *made);
    if (!made || !(made->gpu = gy_arena_calloc(&h->arena, h->devices, sizeof *made->gpu)))
        return gy_fail_nomem(err);
    if (!find_gpus(h, made))
        return GANTRY_OK;
    made->forced = forced;
    GY_TRY(choose(h, made, &each, err));
    h->gates = made;
    return each ? make(h, err) : GANTRY_OK;
}

static void free_gpu(gy_cuda *h, uint32_t device)
{
    gates_gpu *g = &h->gates->gpu[device];
    gy_vec_free(&g->before.node);
    gy_vec_free(&g->ops);
    gy_vec_free(&g->gate.node);
    if (!g->used || gy_cuda_use(h, device, NULL))
        return;
    if (g->block)
        h->d.cuMemFree(g->block);
    if (g->ended)
        h->d.cuEventDestroy(g->ended);
    if (g->aside.stream)
        h->d.cuStreamDestroy(g->aside.stream);
}

void gy_gates_free(gy_cuda *h)
{
    if (!h->gates)
        return;
    for (uint32_t i = 0; i < h->devices; i++)
        free_gpu(h, i);
    gy_vec_free(&h->gates->end.node);
    gy_vec_free(&h->gates->front.node);
    gy_own_kernel_close(h, &own, h->gates->handle);
}

/* ---- nodes of a capture ---- */

bool gy_gates_between(const gy_submit *x, uint32_t from, uint32_t to)
{
    return x->capture && is_on(x->h) && !gy_cuda_same_gpu(x->h, from, to);
}

#ifdef GY_CUDA_CONDITIONS

/* Adds what comes next on the queue would come behind. *graph: that is captured there; NULL: none. */
static gantry_status add_front(gy_submit *x, gy_queue queue, node_list *to, CUgraph *graph)
{
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode *front = NULL;
    size_t fronts = 0;
    *graph = NULL;
    CUresult code = x->h->d.capture_info(queue.stream, &state, NULL, graph, &front, NULL, &fronts);
    GY_TRY(gy_submit_check(x, code, queue, "asking for the nodes of a capture"));
    if (state != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        *graph = NULL;
    for (size_t i = 0; *graph && i < fronts; i++)
        if (!gy_vec_push(&to->node, front[i]))
            return gy_fail_nomem(x->err);
    return GANTRY_OK;
}

/* Adds a node behind those of the list, a kernel of a thread for each of `count` words; then it stands for them. It is
 * part of the graph and of no stream, which other nodes come behind or nobody does. */
static gantry_status add_node(gy_submit *x, gates_gpu *g, CUfunction function, CUdeviceptr at, uint32_t count,
                              node_list *behind)
{
    CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
    CUgraphNode node = NULL;
    params.kernel.func = function;
    params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
    params.kernel.blockDimX = count;
    params.kernel.blockDimY = params.kernel.blockDimZ = 1;
    params.kernel.kernelParams = (void *[]){ &at };
    GY_TRY(gy_cuda_use(x->h, g->origin.device, x->err));
    CUresult code = x->h->d.add_node(&node, g->graph, behind->node.at, NULL, behind->node.count, &params);
    GY_TRY(gy_submit_check(x, code, g->origin, "adding a node that sets words of another GPU or waits for its own"));
    behind->node.count = 0;
    return gy_vec_push(&behind->node, node) ? GANTRY_OK : gy_fail_nomem(x->err);
}

/* All that comes on the queue from now on comes behind the node, too. */
static gantry_status put_behind(gy_submit *x, gy_queue queue, CUgraphNode node)
{
    CUresult code = x->h->d.capture_behind(queue.stream, &node, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
    return gy_submit_check(x, code, queue, "putting work behind a gate");
}

#else /* cuda.h is older, and `obstacle` says no */

static gantry_status add_front(gy_submit *x, gy_queue queue, node_list *to, CUgraph *graph)
{
    (void)x, (void)queue, (void)to, (void)graph;
    return GANTRY_E_UNSUPPORTED;
}

static gantry_status add_node(gy_submit *x, gates_gpu *g, CUfunction function, CUdeviceptr at, uint32_t count,
                              node_list *behind)
{
    (void)x, (void)g, (void)function, (void)at, (void)count, (void)behind;
    return GANTRY_E_UNSUPPORTED;
}

static gantry_status put_behind(gy_submit *x, gy_queue queue, CUgraphNode node)
{
    (void)x, (void)queue, (void)node;
    return GANTRY_E_UNSUPPORTED;
}

#endif

/* Behind these nodes a word of the other GPU is set, and the gate that is open there waits for it. */
static gantry_status tell(gy_submit *x, node_list *behind, gates_gpu *from, gates_gpu *to)
{
    if (!gy_cuda_reaches(x->h, from->origin.device, to->origin.device))
        return gy_fail(x->err, GANTRY_E_UNSUPPORTED, NULL,
                       "one graph a GPU: a GPU waits for one that does not reach it");
    if (to->words == GY_GATES_MOST)
        return gy_fail(x->err, GANTRY_E_UNSUPPORTED, NULL, "one graph a GPU: a GPU waits for others more than %d times",
                       GY_GATES_MOST);
    GY_TRY(add_node(x, from, from->set, to->block + (CUdeviceptr)to->words * GY_GATE_STEP, 1, behind));
    to->words++;
    to->wants++;
    return gy_vec_push(&from->before.node, behind->node.at[0]) ? GANTRY_OK : gy_fail_nomem(x->err);
}

static gantry_status close_gate(gy_submit *x, gates_gpu *g)
{
    CUdeviceptr first = g->block + (CUdeviceptr)(g->words - g->wants) * GY_GATE_STEP;
    GY_TRY(add_node(x, g, g->wait, first, g->wants, &g->before));
    g->wants = 0;
    return gy_vec_push(&g->gate.node, g->before.node.at[0]) ? GANTRY_OK : gy_fail_nomem(x->err);
}

gantry_status gy_gates_order(gy_submit *x, gy_queue from, gy_queue to)
{
    gy_gates *all = x->h->gates;
    gates_gpu *on = &all->gpu[gpu_of(x->h, to.device)];
    CUgraph graph;
    all->front.node.count = 0;
    GY_TRY(add_front(x, from, &all->front, &graph));
    GY_TRY(tell(x, &all->front, &all->gpu[gpu_of(x->h, from.device)], on));
    GY_TRY(close_gate(x, on));
    GY_TRY(add_front(x, to, &all->front, &graph));
    if (!graph)
        GY_TRY(gy_submit_order(x, on->origin, to)); /* it takes part from now on */
    return put_behind(x, to, on->before.node.at[0]);
}

/* ---- ends of ops ---- */

bool gy_gates_within(const gy_submit *x, uint32_t op)
{
    return !x->capture || !is_on(x->h) || x->h->gates->op[op].within;
}

gantry_status gy_gates_end(gy_submit *x, uint32_t op, gy_queue queue)
{
    gy_gates *g = x->h->gates;
    CUgraph graph;
    if (!x->capture || !is_on(x->h) || !g->op[op].told)
        return GANTRY_OK;
    g->op[op].end = (uint32_t)g->end.node.count;
    GY_TRY(add_front(x, queue, &g->end, &graph));
    g->op[op].nodes = (uint32_t)g->end.node.count - g->op[op].end;
    g->op[op].captured = true;
    return GANTRY_OK;
}

/* ---- several ops in one gate ---- */

static size_t pair_of(const gy_cuda *h, uint32_t op, uint32_t gpu)
{
    return (size_t)op * h->devices + gpu;
}

bool gy_gates_passed(const gy_cuda *h, uint32_t op, uint32_t to)
{
    return h->gates->asked[pair_of(h, op, gpu_of(h, to))];
}

bool gy_gates_captured(const gy_cuda *h, uint32_t op)
{
    return h->gates->op[op].captured;
}

bool gy_gates_full(const gy_cuda *h, uint32_t to)
{
    return h->gates->gpu[gpu_of(h, to)].ops.count == GY_GATE_MOST;
}

const uint32_t *gy_gates_waiters(const gy_cuda *h, uint32_t op, uint32_t to, const uint32_t **last)
{
    uint32_t gpu = gpu_of(h, to);
    *last = gy_gate_waiters_to(&h->gates->waiters, gpu, op);
    return gy_gate_waiters_from(&h->gates->waiters, gpu, op);
}

gantry_status gy_gates_want(gy_submit *x, uint32_t op, uint32_t to)
{
    uint32_t gpu = gpu_of(x->h, to);
    x->h->gates->asked[pair_of(x->h, op, gpu)] = 1;
    return gy_vec_push(&x->h->gates->gpu[gpu].ops, op) ? GANTRY_OK : gy_fail_nomem(x->err);
}

/* Of the ops of a lane that the gate waits for, the last one tells of all. */
static uint32_t *last_of(const gy_cuda *h, uint32_t op)
{
    const gy_op *o = &h->job->schedule->ops.at[op];
    return o->lanes == 1 ? &h->gates->last[h->job->schedule->op_lane.at[o->lane]] : NULL;
}

static bool has_node(const node_list *list, CUgraphNode node)
{
    bool found = false;
    for (size_t i = 0; i < list->node.count && !found; i++)
        found = list->node.at[i] == node;
    return found;
}

/* Nodes that the ops of that GPU end with, those that the gate waits for: each once, as a part of an op without rows
 * adds no node and ends with those of another. */
static gantry_status gather(gy_submit *x, const gates_gpu *g, uint32_t gpu)
{
    gy_gates *all = x->h->gates;
    all->front.node.count = 0;
    for (size_t i = 0; i < g->ops.count; i++) {
        const gates_op *op = &all->op[g->ops.at[i]];
        const uint32_t *last = last_of(x->h, g->ops.at[i]);
        if (op->gpu != gpu || (last && *last != g->ops.at[i]))
            continue;
        for (uint32_t k = op->end; k < op->end + op->nodes; k++)
            if (!has_node(&all->front, all->end.node.at[k]) && !gy_vec_push(&all->front.node, all->end.node.at[k]))
                return gy_fail_nomem(x->err);
    }
    return GANTRY_OK;
}

static bool waits_for(const gy_gates *all, const gates_gpu *g, uint32_t gpu)
{
    bool found = false;
    for (size_t i = 0; i < g->ops.count && !found; i++)
        found = all->op[g->ops.at[i]].gpu == gpu;
    return found;
}

/* A word for each GPU that the gate waits for. */
static gantry_status tell_all(gy_submit *x, gates_gpu *g)
{
    gy_gates *all = x->h->gates;
    for (uint32_t i = 0; i < x->h->devices; i++) {
        if (!waits_for(all, g, i))
            continue;
        GY_TRY(gather(x, g, i));
        GY_TRY(tell(x, &all->front, &all->gpu[i], g));
    }
    return GANTRY_OK;
}

gantry_status gy_gates_close(gy_submit *x, uint32_t to)
{
    gy_gates *all = x->h->gates;
    uint32_t gpu = gpu_of(x->h, to);
    gates_gpu *g = &all->gpu[gpu];
    for (size_t i = 0; i < g->ops.count; i++) {
        uint32_t *last = last_of(x->h, g->ops.at[i]);
        if (last && (*last == GY_NONE || *last < g->ops.at[i]))
            *last = g->ops.at[i];
    }
    gantry_status status = tell_all(x, g);
    status = status ? status : close_gate(x, g);
    for (size_t i = 0; i < g->ops.count; i++) {
        uint32_t *last = last_of(x->h, g->ops.at[i]);
        if (last)
            *last = GY_NONE;
        all->number[pair_of(x->h, g->ops.at[i], gpu)] = (uint32_t)g->gate.node.count;
    }
    g->ops.count = 0;
    return status;
}

/* The lane of the op that is submitted, or of the one that carries it. */
static uint32_t lane_of(const gy_submit *x, gy_queue queue)
{
    const gantry_schedule *s = x->h->job->schedule;
    const gy_op *op = &s->ops.at[x->op];
    for (uint32_t i = 0; i < op->lanes; i++)
        if (gy_submit_lane(x, i).stream == queue.stream)
            return s->op_lane.at[op->lane + i];
    return GY_NONE;
}

/* Gates of a GPU come one behind the other: what is behind one is behind those ahead of it. */
gantry_status gy_gates_pass(gy_submit *x, gy_queue queue, uint32_t op)
{
    gy_gates *all = x->h->gates;
    uint32_t gpu = gpu_of(x->h, queue.device), number = all->number[pair_of(x->h, op, gpu)];
    uint32_t lane = lane_of(x, queue);
    if (lane != GY_NONE && all->passed[lane] >= number)
        return GANTRY_OK;
    if (lane != GY_NONE)
        all->passed[lane] = number;
    return put_behind(x, queue, all->gpu[gpu].gate.node.at[number - 1]);
}

/* ---- the beginning of a capture ---- */

static gantry_status begin_gpu(gy_submit *x, gates_gpu *g)
{
    g->before.node.count = g->ops.count = g->gate.node.count = 0;
    g->words = g->wants = 0;
    return g->used ? add_front(x, g->origin, &g->before, &g->graph) : GANTRY_OK;
}

gantry_status gy_gates_fork(gy_submit *x)
{
    const gy_cuda *h = x->h;
    size_t ops = h->job->schedule->ops.count, pairs = ops * h->devices;
    if (!x->capture || !is_on(h))
        return GANTRY_OK;
    memset(h->gates->number, 0, pairs * sizeof *h->gates->number);
    memset(h->gates->asked, 0, pairs);
    memset(h->gates->passed, 0, h->lanes * sizeof *h->gates->passed);
    h->gates->end.node.count = 0;
    for (size_t i = 0; i < ops; i++)
        h->gates->op[i].captured = false;
    for (uint32_t i = 0; i < h->devices; i++)
        GY_TRY(begin_gpu(x, &h->gates->gpu[i]));
    return GANTRY_OK;
}

/* ---- a start ---- */

/* The GPU of the end stream, whose graph is launched there. Its event is that of the beginning, those of others of the
 * ends of their graphs. */
static uint32_t last_gpu(const gy_cuda *h)
{
    return gpu_of(h, h->end_stream.device);
}

static CUresult launch(gy_cuda *h, uint32_t turn, uint32_t device, bool alone)
{
    const gates_gpu *g = &h->gates->gpu[device];
    const gy_cuda_turn *t = &h->turn[turn];
    if (device == last_gpu(h))
        return h->d.cuGraphLaunch(t->exec, h->end_stream.stream);
    CUevent begun = h->gates->gpu[last_gpu(h)].ended;
    CUresult code = alone ? CUDA_SUCCESS : h->d.cuStreamWaitEvent(g->origin.stream, begun, 0);
    code = code ? code : h->d.cuGraphLaunch(t->beside[device], g->origin.stream);
    return code ? code : h->d.cuEventRecord(g->ended, g->origin.stream);
}

static gantry_status fork_start(gy_cuda *h, gantry_error *err)
{
    GY_TRY(gy_cuda_use(h, h->end_stream.device, err));
    CUresult code = h->d.cuEventRecord(h->gates->gpu[last_gpu(h)].ended, h->end_stream.stream);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, h->end_stream.device, "recording an event", err);
}

static gantry_status join_start(gy_cuda *h, gantry_error *err)
{
    CUresult code = CUDA_SUCCESS;
    GY_TRY(gy_cuda_use(h, h->end_stream.device, err));
    for (uint32_t i = 0; i < h->devices && code == CUDA_SUCCESS; i++)
        if (h->gates->gpu[i].used && i != last_gpu(h))
            code = h->d.cuStreamWaitEvent(h->end_stream.stream, h->gates->gpu[i].ended, 0);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_cuda_fail(h, code, h->end_stream.device, "joining graphs", err);
}

gantry_status gy_gates_launch(gy_cuda *h, uint32_t turn, bool alone, gantry_error *err)
{
    GY_TRY(alone ? GANTRY_OK : fork_start(h, err));
    for (uint32_t i = 0; i < h->devices; i++) {
        if (!h->gates->gpu[i].used)
            continue;
        GY_TRY(gy_cuda_use(h, i, err));
        CUresult code = launch(h, turn, i, alone);
        if (code != CUDA_SUCCESS)
            return gy_cuda_fail(h, code, i, "launching the graph of a GPU", err);
    }
    return join_start(h, err);
}

static void raise_words(gy_cuda *h)
{
    for (uint32_t i = 0; i < h->devices; i++) {
        const gates_gpu *g = &h->gates->gpu[i];
        if (g->used && gy_cuda_use(h, i, NULL) == GANTRY_OK &&
            h->d.cuMemsetD8Async(g->block, GY_COUNTER_STOP & 0xFF, BYTES, g->aside.stream) == CUDA_SUCCESS)
            gy_cuda_settle(h, g->aside);
    }
}

void gy_gates_release(gy_cuda *h)
{
    if (!is_on(h))
        return;
    gy_cuda_quieten_all(h, raise_words);
    for (uint32_t i = 0; i < h->devices; i++)
        if (h->gates->gpu[i].used)
            clear(h, i, NULL);
}
