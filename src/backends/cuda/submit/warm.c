/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries load the code of a call when it is first made, which takes tens of milliseconds. So while a run is opened,
 * a thread for each GPU makes each call that differs from those before it, under a capture: the driver loads the code
 * for the graph that comes of it. No such graph is launched, so no memory is touched.
 *
 * All has ended before the run is open: while a stream is captured the driver refuses to wait for its context, and the
 * program may want that. The graphs are made of the lanes' own streams, as some libraries have a handle for each.
 *
 * Nothing here is an error. The first start makes all calls anew, and tells what is wrong with them.
 */
#include "backends/cuda/submit/submit.h"

#include "base/thread.h"
#include "graph/alike.h"

/* Calls of a GPU; more than that would take longer than what they spare. */
enum { MOST_CALLS = 64 };

typedef struct gy_warm {
    gy_cuda *h;
    CUcontext context;
    uint32_t op[MOST_CALLS], ops;
    pthread_t thread;
    bool begun; /* in its thread */
} gy_warm;

/* ---- which calls ---- */

static uint32_t device_of(const gy_cuda *h, uint32_t op)
{
    return gy_op_device(h->job->schedule, &h->job->schedule->ops.at[op], 0);
}

static bool loads_code(const gy_cuda *h, uint32_t id)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    if (op->kind != GY_OP_LAUNCH || h->op[id].called || !h->op[id].call)
        return false;
    const gy_cuda_kernel *kernel = gy_cuda_kernel_of(h, op, device_of(h, id));
    return kernel && kernel->loads && kernel->loads(h->op[id].call->launch.handle);
}

/* Memory of the program is not bound yet. A library may look at addresses before it makes the call. */
static bool has_addresses(const gantry_launch *l)
{
    bool all = true;
    for (int32_t i = 0; i < l->args; i++)
        all = all && (!l->arg[i].access || l->arg[i].data);
    return all;
}

static bool is_known(const gy_warm *w, uint32_t id)
{
    const gy_op *ops = w->h->job->schedule->ops.at;
    bool known = false;
    for (uint32_t i = 0; i < w->ops && !known; i++)
        known = ops[w->op[i]].batch == ops[id].batch &&
                gy_nodes_are_alike(w->h->job->graph, ops[w->op[i]].node, ops[id].node);
    return known;
}

static void collect(gy_warm *w)
{
    gy_cuda *h = w->h;
    for (uint32_t id = 0; id < h->job->schedule->ops.count; id++) {
        gy_warm *of = &w[device_of(h, id)];
        if (of->ops < MOST_CALLS && loads_code(h, id) && has_addresses(&h->op[id].call->launch) && !is_known(of, id))
            of->op[of->ops++] = id;
    }
}

/* ---- making them ---- */

/* Code that was not loaded when its node was made is loaded with the executable graph. */
static void load(const gy_cuda *h, CUgraph graph)
{
    CUgraphExec exec;
    if (h->d.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS)
        h->d.cuGraphExecDestroy(exec);
}

static void make_call(gy_cuda *h, uint32_t id)
{
    CUgraph graph = NULL;
    const gy_cuda_call *call = &h->op[id].call[0];
    CUstream stream = call->launch.stream;
    if (h->d.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
        return;
    gantry_status status = h->op[id].calls ? gy_cuda_batch_launch(h, id, 0) : call->function(&call->launch);
    if (h->d.cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS || !graph)
        return;
    if (status == GANTRY_OK)
        load(h, graph);
    h->d.cuGraphDestroy(graph);
}

static void *make_calls(void *data)
{
    const gy_warm *w = data;
    for (uint32_t i = 0; i < w->ops; i++)
        if (w->h->d.cuCtxSetCurrent(w->context) == CUDA_SUCCESS) /* a library may have made another one current */
            make_call(w->h, w->op[i]);
    return NULL;
}

struct gy_warm *gy_warm_begin(gy_cuda *h)
{
    bool wanted = !gy_driver_switch("GANTRY_CUDA_WARM", "off");
    gy_warm *w = wanted ? gy_arena_calloc(&h->arena, h->devices, sizeof *w) : NULL;
    if (!w)
        return NULL;
    for (uint32_t i = 0; i < h->devices; i++)
        w[i] = (gy_warm){ .h = h, .context = h->device[i].context };
    gy_cuda_ops_point(h, 0);
    collect(w);
    for (uint32_t i = 0; i < h->devices; i++)
        w[i].begun = w[i].ops && gy_thread_create(&w[i].thread, make_calls, &w[i]) == 0;
    return w;
}

void gy_warm_end(struct gy_warm *w, uint32_t devices)
{
    for (uint32_t i = 0; w && i < devices; i++)
        if (w[i].begun)
            pthread_join(w[i].thread, NULL);
}
