/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that run by a flag, without the host: a conditional node of a graph (CUDA 12.3 and later). A kernel ahead of it
 * reads the flag and sets the condition, and what the op queues is captured into the node's body. While a start is
 * captured the node becomes one of its graph; else a graph of the op alone is made once, and launched in the op's lane.
 */
#include "backends/cuda/stream/own_kernel.h"
#include "backends/cuda/submit/submit.h"

#include "base/error.h"

static const gy_own_kernel own = { GY_CUDA_WHEN, "what asks the flag of a `when`" };

enum { OUTER, INNER }; /* streams of a device: where a graph of an op is captured, and where a body is */

static gy_queue queue_of(const gy_cuda *h, uint32_t device, int which)
{
    return h->when_queue[2 * device + (uint32_t)which];
}

/* ---- making ---- */

static bool is_wanted(const gy_cuda *h, uint32_t id)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    return op->node != GY_NONE && h->job->graph->nodes.at[op->node].has_when && h->device[gy_op_device(s, op, 0)].gpu;
}

/* Nodes of a body work on one GPU, and never on the host. */
static bool is_on(const gy_cuda *h, uint32_t device, const gy_use *use)
{
    uint32_t at = gy_cuda_location(h, use, 0).device;
    return at != GY_NONE && gy_cuda_same_gpu(h, at, device);
}

static const char *obstacle(const gy_cuda *h, uint32_t id)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    uint32_t device = gy_op_device(h->job->schedule, op, 0);
    if (!h->d.conditions)
        return "GPUs ask a flag by conditional nodes of graphs, from CUDA 12.3 on, and the driver or what Gantry was "
               "built with is older: use newer ones, or the back end \"host\"";
    if (!gy_cuda_kernel_find(GY_CUDA_WHEN))
        return "Gantry was built without nvcc, so it has no kernel that asks a flag: use the back end \"host\"";
    for (uint32_t k = 0; k < op->uses; k++)
        if (!is_on(h, device, &h->job->schedule->use.at[op->use + k]))
            return "one of its regions is not in the memory of its GPU: give it another place by \"on\", or use the "
                   "back end \"host\"";
    return NULL;
}

static gantry_status open_device(gy_cuda *h, uint32_t device, gantry_error *err)
{
    if (h->when[device])
        return GANTRY_OK;
    GY_TRY(gy_cuda_queue_new(h, &h->when_queue[2 * device + OUTER], device, false, err));
    GY_TRY(gy_cuda_queue_new(h, &h->when_queue[2 * device + INNER], device, false, err));
    return gy_own_kernel_open(h, &own, h->when, device, err);
}

static gantry_status make_op(gy_cuda *h, uint32_t id, gantry_error *err)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    const gy_node *n = &h->job->graph->nodes.at[op->node];
    uint32_t device = gy_op_device(h->job->schedule, op, 0);
    const char *why = obstacle(h, id);
    GY_TRY(why ? GANTRY_OK : open_device(h, device, err));
    if (!why && !h->when[device])
        why = "what asks a flag was compiled for no GPU like this one: use the back end \"host\"";
    if (why) {
        return gy_graph_fail(h->job->graph, n->origin, err, GANTRY_E_UNSUPPORTED,
                             "node \"%s\" has a `when` and cannot run on device \"%s\": %s", n->id,
                             h->job->schedule->machine->device[device].id, why);
    }
    h->op[id].when = gy_arena_calloc(&h->arena, h->turns, sizeof(CUgraphExec));
    return h->op[id].when ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_when_make(gy_cuda *h, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    h->when = gy_arena_calloc(&h->arena, h->devices, sizeof *h->when);
    h->when_queue = gy_arena_calloc(&h->arena, 2 * (size_t)h->devices, sizeof *h->when_queue);
    if (!h->when || !h->when_queue)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < h->job->schedule->ops.count && !status; i++)
        status = gy_cuda_here(h, i) && is_wanted(h, i) ? make_op(h, i, err) : GANTRY_OK;
    return status;
}

void gy_when_free(gy_cuda *h)
{
    for (uint32_t t = 0; t < h->turns; t++)
        gy_graph_free(h, t);
    for (uint32_t i = 0; h->when && h->when_queue && i < h->devices; i++) {
        if (h->device[i].context && gy_cuda_use(h, i, NULL))
            continue;
        for (int which = OUTER; which <= INNER; which++)
            if (queue_of(h, i, which).stream)
                h->d.cuStreamDestroy(queue_of(h, i, which).stream);
    }
    gy_own_kernel_close(h, &own, h->when);
}

/* ---- capturing ---- */

#ifdef GY_CUDA_CONDITIONS

/* Queues all that the op does, in the stream of its body. */
static gantry_status queue_body(gy_submit *x)
{
    const gantry_schedule *s = x->h->job->schedule;
    const gy_op *op = &s->ops.at[x->op];
    const gy_use *use = &s->use.at[op->use];
    if (op->kind == GY_OP_FILL)
        return gy_submit_fill(x);
    if (gy_op_is_copy(op)) {
        return gy_submit_copy(x, gy_cuda_location(x->h, use + 1, x->turn), gy_cuda_location(x->h, use, x->turn),
                              gy_use_bytes(s, use + 1));
    }
    const gy_cuda_call *c = &x->h->op[x->op].call[x->turn];
    gantry_launch l = c->launch;
    l.stream = x->first_lane.stream;
    gantry_status status = gy_job_call(x->h->job, x->op, c->function, &l);
    gy_cuda_forget(x->h); /* a function may have made another context current */
    return status ? gy_cuda_op_fail(x->h, x->op, status, 0, x->err) : GANTRY_OK;
}

static gantry_status capture_body(gy_submit *x, CUgraph body)
{
    gy_queue lane = x->first_lane, inner = queue_of(x->h, lane.device, INNER);
    CUgraph same = NULL;
    CUresult code = x->h->d.capture_into(inner.stream, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    GY_TRY(gy_submit_check(x, code, inner, "capturing what runs by a flag"));
    x->first_lane = inner;
    gantry_status status = queue_body(x);
    x->first_lane = lane;
    gantry_status used = gy_cuda_use(x->h, lane.device, x->err);
    code = x->h->d.cuStreamEndCapture(inner.stream, &same);
    status = status ? status : used;
    return status ? status : gy_submit_check(x, code, inner, "ending the capture of what runs by a flag");
}

/* Queues the kernel that reads the flag. */
static gantry_status ask(gy_submit *x, gy_queue queue, CUgraphConditionalHandle condition)
{
    const gantry_schedule *s = x->h->job->schedule;
    const gy_use *use = gy_cuda_flag(x->h, x->op);
    gantry_dtype dtype = x->h->job->graph->buffers.at[s->values.at[s->instances.at[use->instance].value].buffer].dtype;
    gantry_arg arg[2] = { gy_combine_arg(GANTRY_READ, dtype, gy_cuda_location(x->h, use, x->turn).at,
                                         gantry_dtype_size(dtype)),
                          { .name = "", .dtype = GANTRY_I64, .integer = (int64_t)condition } };
    gantry_launch l = { .struct_size = sizeof l,
                        .node = "when",
                        .stream = queue.stream,
                        .args = 2,
                        .arg = arg,
                        .arg_size = sizeof *arg,
                        .handle = x->h->when[queue.device] };
    const gy_cuda_kernel *kernel = gy_cuda_kernel_find(GY_CUDA_WHEN);
    gantry_status status = kernel->launch(&l);
    const char *why = kernel->why ? kernel->why(l.handle) : NULL;
    return status
               ? gy_fail(x->err, GANTRY_E_DEVICE, NULL, "the flag of a `when` could not be asked on device \"%s\": %s",
                         s->machine->device[queue.device].id, why ? why : gantry_status_text(status))
               : GANTRY_OK;
}

/* Adds the node behind all that the stream has in the capture that it is part of. */
static gantry_status add_conditional(gy_submit *x, gy_queue queue)
{
    const gy_driver *d = &x->h->d;
    CUcontext context = x->h->device[queue.device].context;
    CUstreamCaptureStatus state;
    const CUgraphNode *front = NULL;
    const CUgraphEdgeData *edges = NULL;
    size_t fronts = 0;
    CUgraph graph = NULL;
    CUgraphNode node;
    CUgraphConditionalHandle handle = 0;
    GY_TRY(gy_cuda_use(x->h, queue.device, x->err));
    CUresult code = d->capture_info(queue.stream, &state, NULL, &graph, NULL, NULL, NULL);
    code = code ? code : d->condition(&handle, graph, context, 0, CU_GRAPH_COND_ASSIGN_DEFAULT);
    GY_TRY(gy_submit_check(x, code, queue, "making a condition"));
    GY_TRY(ask(x, queue, handle));
    CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 1;
    params.conditional.ctx = context;
    code = d->capture_info(queue.stream, &state, NULL, &graph, &front, &edges, &fronts);
    code = code ? code : d->add_node(&node, graph, front, edges, fronts, &params);
    code = code ? code : d->capture_behind(queue.stream, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    GY_TRY(gy_submit_check(x, code, queue, "adding a conditional node"));
    return capture_body(x, params.conditional.phGraph_out[0]);
}

/* A graph of the op alone. */
static gantry_status make_graph(gy_submit *x, CUgraphExec *exec)
{
    gy_queue outer = queue_of(x->h, x->first_lane.device, OUTER);
    CUgraph graph = NULL;
    GY_TRY(gy_cuda_use(x->h, outer.device, x->err));
    CUresult code = x->h->d.cuStreamBeginCapture(outer.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    GY_TRY(gy_submit_check(x, code, outer, "beginning a capture"));
    gantry_status status = add_conditional(x, outer);
    gantry_status used = gy_cuda_use(x->h, outer.device, x->err);
    code = x->h->d.cuStreamEndCapture(outer.stream, &graph);
    status = status ? status : used;
    status = status ? status : gy_submit_check(x, code, outer, "ending a capture");
    code = status ? CUDA_SUCCESS : x->h->d.cuGraphInstantiateWithFlags(exec, graph, 0);
    if (code != CUDA_SUCCESS)
        *exec = NULL;
    if (graph)
        x->h->d.cuGraphDestroy(graph);
    return status ? status : gy_submit_check(x, code, outer, "instantiating a graph");
}

/* A function of the program may count on being called at every start. */
static bool calls_the_program(const gy_submit *x)
{
    const gy_op *op = &x->h->job->schedule->ops.at[x->op];
    return gy_op_calls(op) && x->h->job->graph->nodes.at[op->node].kernel == GY_NONE;
}

gantry_status gy_when_submit(gy_submit *x)
{
    CUgraphExec *exec = &x->h->op[x->op].when[x->turn];
    if (x->capture)
        return add_conditional(x, x->first_lane);
    if (*exec && calls_the_program(x)) {
        x->h->d.cuGraphExecDestroy(*exec);
        *exec = NULL;
    }
    if (!*exec)
        GY_TRY(make_graph(x, exec));
    GY_TRY(gy_cuda_use(x->h, x->first_lane.device, x->err));
    return gy_submit_check(x, x->h->d.cuGraphLaunch(*exec, x->first_lane.stream), x->first_lane, "launching a graph");
}

#else

gantry_status gy_when_submit(gy_submit *x)
{
    (void)x;
    return GANTRY_E_UNSUPPORTED; /* gy_when_make has refused it */
}

#endif
