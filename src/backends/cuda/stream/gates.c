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

typedef struct gates_gpu {
    bool used;
    bool told;                    /* `tell` is part of the capture */
    gy_queue origin, tell, aside; /* tell: finds what nodes come behind, for captures alone; aside: the host's, in a
                                     failure */
    CUdeviceptr block;            /* its words */
    uint32_t words;               /* so many has the capture */
    GY_VEC(CUgraphNode) before;   /* what the next gate comes behind: the last one, and what has set words since */
    uint32_t wants;               /* of the gate that is open: the last so many words */
    GY_VEC(uint32_t) ops;         /* that the open one waits for */
    CUevent ended;                /* the last launch of its graph */
} gates_gpu;

struct gy_gates {
    bool on, forced;
    const gy_cuda_kernel *kernel;
    void **handle; /* per device: of the kernel */
    gy_gate_waiters waiters;
    gates_gpu *gpu;    /* per device: set for the lowest of those that are one GPU */
    CUgraphNode *node; /* per op and device: the gate that has waited for the op; NULL: none */
    uint8_t *asked;    /* likewise: a gate has, or the one that is open does */
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
    GY_TRY(gy_cuda_queue_new(h, &g->tell, device, false, err));
    GY_TRY(gy_cuda_queue_new(h, &g->aside, device, true, err));
    GY_TRY(gy_cuda_event_new(h, &g->ended, device, false, err));
    GY_TRY(gy_cuda_allocate(h, &g->block, device, BYTES, "words that its graphs wait for", err));
    return clear(h, device, err);
}

/* The GPU of the op, if a row leads to it from another one. */
static uint32_t waiting_gpu(const gy_cuda *h, uint32_t op)
{
    uint32_t device = gy_cuda_lane_of(h, op, 0)->queue.device;
    bool waits = false;
    for (uint32_t i = h->op[op].wait; i < h->op[op].wait + h->op[op].waits && !waits; i++)
        waits = h->wait[i].distance == 0 &&
                !gy_cuda_same_gpu(h, gy_cuda_lane_of(h, h->wait[i].from, 0)->queue.device, device);
    return waits ? gpu_of(h, device) : GY_NONE;
}

static gantry_status find_waiters(gy_cuda *h, gantry_error *err)
{
    size_t ops = h->job->schedule->ops.count;
    gy_gate_waiters *w = &h->gates->waiters;
    uint32_t *gpu = gy_arena_calloc(&h->arena, ops + 1, sizeof *gpu);
    w->op = gy_arena_calloc(&h->arena, ops + 1, sizeof *w->op);
    w->first = gy_arena_calloc(&h->arena, h->devices + 1, sizeof *w->first);
    if (!gpu || !w->op || !w->first)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < ops; i++)
        gpu[i] = waiting_gpu(h, i);
    gy_gate_waiters_fill(w, gpu, ops, h->devices);
    return GANTRY_OK;
}

static gantry_status make(gy_cuda *h, gantry_error *err)
{
    gy_gates *to = h->gates;
    to->kernel = gy_cuda_kernel_find(GY_CUDA_GATE);
    GY_TRY(find_waiters(h, err));
    size_t pairs = (size_t)h->job->schedule->ops.count * h->devices;
    to->handle = gy_arena_calloc(&h->arena, h->devices, sizeof *to->handle);
    to->node = gy_arena_calloc(&h->arena, pairs + 1, sizeof *to->node);
    to->asked = gy_arena_calloc(&h->arena, pairs + 1, 1);
    for (uint32_t t = 0; t < h->turns; t++)
        if (!(h->turn[t].beside = gy_arena_calloc(&h->arena, h->devices, sizeof *h->turn[t].beside)))
            return gy_fail_nomem(err);
    if (!to->handle || !to->node || !to->asked)
        return gy_fail_nomem(err);
    to->on = true;
    for (uint32_t i = 0; i < h->devices; i++) {
        if (!to->gpu[i].used)
            continue;
        GY_TRY(gy_own_kernel_open(h, &own, to->handle, i, err));
        GY_TRY(make_gpu(h, i, err));
        to->on = to->on && to->handle[i];
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
    gy_vec_free(&g->before);
    gy_vec_free(&g->ops);
    if (!g->used || gy_cuda_use(h, device, NULL))
        return;
    if (g->block)
        h->d.cuMemFree(g->block);
    if (g->ended)
        h->d.cuEventDestroy(g->ended);
    if (g->aside.stream)
        h->d.cuStreamDestroy(g->aside.stream);
    if (g->tell.stream)
        h->d.cuStreamDestroy(g->tell.stream);
}

void gy_gates_free(gy_cuda *h)
{
    if (!h->gates)
        return;
    for (uint32_t i = 0; i < h->devices; i++)
        free_gpu(h, i);
    gy_own_kernel_close(h, &own, h->gates->handle);
}

/* ---- nodes of a capture ---- */

bool gy_gates_between(const gy_submit *x, uint32_t from, uint32_t to)
{
    return x->capture && is_on(x->h) && !gy_cuda_same_gpu(x->h, from, to);
}

#ifdef GY_CUDA_CONDITIONS

/* From now on the stream that finds what nodes come behind has these, and nothing else. */
static gantry_status put_behind(gy_submit *x, gates_gpu *g, CUgraphNode *nodes, size_t count)
{
    CUgraphNode none = NULL;
    GY_TRY(gy_cuda_use(x->h, g->tell.device, x->err));
    CUresult code =
        x->h->d.capture_behind(g->tell.stream, count ? nodes : &none, NULL, count, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    return gy_submit_check(x, code, g->tell, "setting what a node comes behind");
}

/* The last node of that stream, which the next gate comes behind. */
static gantry_status keep_node(gy_submit *x, gates_gpu *g)
{
    CUstreamCaptureStatus state;
    const CUgraphNode *front = NULL;
    size_t fronts = 0;
    CUresult code = x->h->d.capture_info(g->tell.stream, &state, NULL, NULL, &front, NULL, &fronts);
    GY_TRY(gy_submit_check(x, code, g->tell, "asking for a node"));
    return fronts == 1 && gy_vec_push(&g->before, front[0]) ? GANTRY_OK : gy_fail_nomem(x->err);
}

#else /* cuda.h is older, and may_wait says no */

static gantry_status put_behind(gy_submit *x, gates_gpu *g, CUgraphNode *nodes, size_t count)
{
    (void)x, (void)g, (void)nodes, (void)count;
    return GANTRY_E_UNSUPPORTED;
}

static gantry_status keep_node(gy_submit *x, gates_gpu *g)
{
    (void)x, (void)g;
    return GANTRY_E_UNSUPPORTED;
}

#endif

/* The stream that finds what nodes come behind takes part in a capture once it has something to do there: one that has
 * nothing need not be joined. */
static gantry_status enter(gy_submit *x, gates_gpu *g)
{
    if (g->told)
        return GANTRY_OK;
    g->told = true;
    return gy_submit_order(x, g->origin, g->tell);
}

/* Adds a node behind what that stream has: of `count` words from number `first` of the GPU `of` on. */
static gantry_status add_node(gy_submit *x, gates_gpu *g, const gates_gpu *of, uint32_t first, uint32_t count,
                              gantry_access access)
{
    const gy_cuda_kernel *kernel = x->h->gates->kernel;
    CUdeviceptr at = of->block + (CUdeviceptr)first * GY_GATE_STEP;
    gantry_arg arg = gy_combine_arg(access, GANTRY_U64, at, count * sizeof(uint64_t));
    gantry_launch l = { .struct_size = sizeof l, .node = "gate", .stream = g->tell.stream, .args = 1, .arg = &arg };
    l.arg_size = sizeof arg;
    l.handle = x->h->gates->handle[g->tell.device];
    GY_TRY(gy_cuda_use(x->h, g->tell.device, x->err));
    gantry_status status = kernel->launch(&l);
    const char *why = status && kernel->why ? kernel->why(l.handle) : NULL;
    if (status)
        return gy_fail(x->err, GANTRY_E_DEVICE, NULL, "a gate could not be launched on device \"%s\": %s",
                       x->h->job->schedule->machine->device[g->tell.device].id, why ? why : gantry_status_text(status));
    return keep_node(x, g);
}

/* Behind the event a word of the other GPU is set, and the gate that is open there waits for it. */
static gantry_status tell(gy_submit *x, CUevent event, gates_gpu *from, gates_gpu *to)
{
    if (!gy_cuda_reaches(x->h, from->tell.device, to->tell.device))
        return gy_fail(x->err, GANTRY_E_UNSUPPORTED, NULL,
                       "one graph a GPU: a GPU waits for one that does not reach it");
    if (to->words == GY_GATES_MOST)
        return gy_fail(x->err, GANTRY_E_UNSUPPORTED, NULL, "one graph a GPU: a GPU waits for more than %d events",
                       GY_GATES_MOST);
    GY_TRY(enter(x, from));
    GY_TRY(put_behind(x, from, NULL, 0));
    GY_TRY(gy_submit_await_here(x, from->tell, event));
    GY_TRY(add_node(x, from, to, to->words, 1, GANTRY_WRITE));
    to->words++;
    to->wants++;
    return GANTRY_OK;
}

static gantry_status close_gate(gy_submit *x, gates_gpu *g)
{
    uint32_t count = g->wants;
    GY_TRY(enter(x, g));
    GY_TRY(put_behind(x, g, g->before.at, g->before.count));
    g->before.count = 0;
    g->wants = 0;
    return add_node(x, g, g, g->words - count, count, GANTRY_READWRITE);
}

static gantry_status pass(gy_submit *x, gy_queue queue, gates_gpu *g, CUgraphNode node)
{
    CUevent event;
    GY_TRY(put_behind(x, g, &node, 1));
    GY_TRY(gy_submit_record_scratch(x, g->tell, &event));
    return gy_submit_await_here(x, queue, event);
}

gantry_status gy_gates_await(gy_submit *x, gy_queue queue, CUevent event, uint32_t from)
{
    gates_gpu *to = &x->h->gates->gpu[gpu_of(x->h, queue.device)];
    GY_TRY(tell(x, event, &x->h->gates->gpu[gpu_of(x->h, from)], to));
    GY_TRY(close_gate(x, to));
    return pass(x, queue, to, to->before.at[0]);
}

/* ---- several events in one gate ---- */

static size_t pair_of(const gy_cuda *h, uint32_t op, uint32_t gpu)
{
    return (size_t)op * h->devices + gpu;
}

bool gy_gates_passed(const gy_cuda *h, uint32_t op, uint32_t to)
{
    return h->gates->asked[pair_of(h, op, gpu_of(h, to))];
}

bool gy_gates_full(const gy_cuda *h, uint32_t to)
{
    return h->gates->gpu[gpu_of(h, to)].wants == GY_GATE_WORDS;
}

const uint32_t *gy_gates_waiters(const gy_cuda *h, uint32_t op, uint32_t to, const uint32_t **last)
{
    uint32_t gpu = gpu_of(h, to);
    *last = gy_gate_waiters_to(&h->gates->waiters, gpu, op);
    return gy_gate_waiters_from(&h->gates->waiters, gpu, op);
}

gantry_status gy_gates_want(gy_submit *x, uint32_t op, CUevent event, uint32_t from, uint32_t to)
{
    uint32_t gpu = gpu_of(x->h, to);
    gates_gpu *g = &x->h->gates->gpu[gpu];
    GY_TRY(tell(x, event, &x->h->gates->gpu[gpu_of(x->h, from)], g));
    x->h->gates->asked[pair_of(x->h, op, gpu)] = 1;
    return gy_vec_push(&g->ops, op) ? GANTRY_OK : gy_fail_nomem(x->err);
}

gantry_status gy_gates_close(gy_submit *x, uint32_t to)
{
    gy_gates *all = x->h->gates;
    uint32_t gpu = gpu_of(x->h, to);
    gates_gpu *g = &all->gpu[gpu];
    GY_TRY(close_gate(x, g));
    for (size_t i = 0; i < g->ops.count; i++)
        all->node[pair_of(x->h, g->ops.at[i], gpu)] = g->before.at[0];
    g->ops.count = 0;
    return GANTRY_OK;
}

gantry_status gy_gates_pass(gy_submit *x, gy_queue queue, uint32_t op)
{
    uint32_t gpu = gpu_of(x->h, queue.device);
    return pass(x, queue, &x->h->gates->gpu[gpu], x->h->gates->node[pair_of(x->h, op, gpu)]);
}

/* ---- beginning and end of a capture ---- */

gantry_status gy_gates_fork(gy_submit *x)
{
    const gy_cuda *h = x->h;
    size_t pairs = (size_t)h->job->schedule->ops.count * h->devices;
    if (!x->capture || !is_on(h))
        return GANTRY_OK;
    memset(h->gates->node, 0, pairs * sizeof *h->gates->node);
    memset(h->gates->asked, 0, pairs);
    for (uint32_t i = 0; i < h->devices; i++) {
        gates_gpu *g = &h->gates->gpu[i];
        g->before.count = g->ops.count = 0;
        g->words = g->wants = 0;
        g->told = false;
    }
    return GANTRY_OK;
}

gantry_status gy_gates_join(gy_submit *x)
{
    for (uint32_t i = 0; x->capture && is_on(x->h) && i < x->h->devices; i++) {
        gates_gpu *g = &x->h->gates->gpu[i];
        if (!g->told)
            continue;
        GY_TRY(put_behind(x, g, g->before.at, g->before.count));
        GY_TRY(gy_submit_order(x, g->tell, g->origin));
    }
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
