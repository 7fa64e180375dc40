/* SPDX-License-Identifier: Apache-2.0 */
/* A capture of graphs of GPUs: words, what sets them, gates. */
#include "backends/cuda/stream/gates_state.h"

#include "base/error.h"
#include <string.h>

#define MANY (GY_NONE - 1)

_Static_assert((int)GY_GATE_PAIRS <= (int)GY_GATE_PARTS && (int)GY_GATE_WORDS_SET <= (int)GY_GATE_TELLS,
               "a kernel has room for what predictions count on");

bool gy_gates_between(const gy_submit *x, uint32_t from, uint32_t to)
{
    return x->capture && is_on(x->h) && !gy_cuda_same_gpu(x->h, from, to);
}

/* A thread for each 16 bytes, as far as a block has room. */
static unsigned threads_for(const gy_gate_copy *c)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < c->parts; i++)
        most = c->part[i].bytes > most ? c->part[i].bytes : most;
    unsigned warps = (unsigned)((most + 511) / 512);
    return 32 * (warps < 1 ? 1 : warps > GY_GATE_THREADS / 32 ? GY_GATE_THREADS / 32 : warps);
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
static gantry_status add_node(gy_submit *x, gates_gpu *g, int function, void *given, uint32_t count, node_list *behind)
{
    CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
    CUgraphNode node = NULL;
    params.kernel.func = g->function[function];
    params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
    params.kernel.blockDimX = count;
    params.kernel.blockDimY = params.kernel.blockDimZ = 1;
    params.kernel.kernelParams = &given;
    GY_TRY(gy_cuda_use(x->h, g->origin.device, x->err));
    CUresult code = x->h->d.add_node(&node, g->graph, behind->node.at, NULL, behind->node.count, &params);
    GY_TRY(gy_submit_check(x, code, g->origin, "adding a node that sets words of another GPU or waits for its own"));
    behind->node.count = 0;
    return gy_vec_push(&behind->node, node) ? GANTRY_OK : gy_fail_nomem(x->err);
}

/* Gives a copy that was captured other parameters. */
static gantry_status set_copy(gy_submit *x, const gates_gpu *g, CUgraphNode node, gy_gate_copy *c)
{
    CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
    params.kernel.func = g->function[GY_GATE_COPIES];
    params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
    params.kernel.blockDimX = threads_for(c);
    params.kernel.blockDimY = params.kernel.blockDimZ = 1;
    params.kernel.kernelParams = (void *[]){ c };
    GY_TRY(gy_cuda_use(x->h, g->origin.device, x->err));
    return gy_submit_check(x, x->h->d.set_node(node, &params), g->origin, "making a copy wait for another GPU, too");
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

static gantry_status add_node(gy_submit *x, gates_gpu *g, int function, void *given, uint32_t count, node_list *behind)
{
    (void)x, (void)g, (void)function, (void)given, (void)count, (void)behind;
    return GANTRY_E_UNSUPPORTED;
}

static gantry_status set_copy(gy_submit *x, const gates_gpu *g, CUgraphNode node, gy_gate_copy *c)
{
    (void)x, (void)g, (void)node, (void)c;
    return GANTRY_E_UNSUPPORTED;
}

static gantry_status put_behind(gy_submit *x, gy_queue queue, CUgraphNode node)
{
    (void)x, (void)queue, (void)node;
    return GANTRY_E_UNSUPPORTED;
}

#endif

/* A word of the GPU `to` that one of `from` sets, when the op has ended. */
static gantry_status take_word(gy_submit *x, const gates_gpu *from, gates_gpu *to, uint32_t ended, uint32_t *word)
{
    gates_word who = { GY_NONE, ended };
    if (!gy_cuda_reaches(x->h, from->origin.device, to->origin.device))
        return gy_fail(x->err, GANTRY_E_UNSUPPORTED, NULL,
                       "one graph a GPU: a GPU waits for one that does not reach it");
    if (to->words == GY_GATES_MOST)
        return gy_fail(x->err, GANTRY_E_UNSUPPORTED, NULL, "one graph a GPU: a GPU waits for others more than %d times",
                       GY_GATES_MOST);
    *word = to->words++;
    return gy_vec_push(&to->who, who) ? GANTRY_OK : gy_fail_nomem(x->err);
}

/* The gate that is open waits for the word. */
static void want_word(const gy_submit *x, gates_gpu *to, uint32_t word)
{
    to->want.number[to->wants++] = (uint16_t)word;
    to->who.at[word].waits = x->op;
}

static CUdeviceptr address_of(const gates_gpu *g, uint32_t word)
{
    return g->block + (CUdeviceptr)word * GY_GATE_STEP;
}

static bool has_node(const node_list *list, CUgraphNode node)
{
    bool found = false;
    for (size_t i = 0; i < list->node.count && !found; i++)
        found = list->node.at[i] == node;
    return found;
}

static gantry_status push_once(gy_submit *x, node_list *to, CUgraphNode node)
{
    return has_node(to, node) || gy_vec_push(&to->node, node) ? GANTRY_OK : gy_fail_nomem(x->err);
}

/* Behind these nodes, the last of which are of the op, a word of the other GPU is set, and the gate that is open there
 * waits for it. */
static gantry_status tell(gy_submit *x, node_list *behind, uint32_t ended, gates_gpu *from, gates_gpu *to)
{
    uint32_t word;
    GY_TRY(take_word(x, from, to, ended, &word));
    CUdeviceptr at = address_of(to, word);
    GY_TRY(add_node(x, from, GY_GATE_SETS, &at, 1, behind));
    want_word(x, to, word);
    from->told_lane = MANY;
    return gy_vec_push(&from->before.node, behind->node.at[0]) ? GANTRY_OK : gy_fail_nomem(x->err);
}

/* The gate that is open waits for the word that the copy of the op sets. */
static gantry_status tell_copied(gy_submit *x, uint32_t id, gates_gpu *from, gates_gpu *to)
{
    const gates_op *op = &x->h->gates->op[id];
    uint32_t lane = first_lane_of(x->h, id);
    want_word(x, to, op->word);
    from->told_lane = from->told_lane == GY_NONE || from->told_lane == lane ? lane : MANY;
    for (uint32_t k = op->end; k < op->end + op->nodes; k++)
        GY_TRY(push_once(x, &from->before, x->h->gates->end.node.at[k]));
    return GANTRY_OK;
}

/* Comes the last copy of the GPU behind all that a gate there has to, and nothing of its own GPU behind it that is
 * predicted to begin before `end`? */
static bool may_wait(const gy_cuda *h, const gates_gpu *g, gy_ticks end)
{
    if (g->copy.op == GY_NONE || g->wants > GY_GATE_FEW)
        return false;
    const gates_op *op = &h->gates->op[g->copy.op];
    uint32_t next = h->gates->next[g->copy.op];
    bool behind = g->told_lane == GY_NONE || g->told_lane == first_lane_of(h, g->copy.op);
    bool alone = op->captured && op->nodes == 1 && !op->within;
    return behind && alone && (next == GY_NONE || h->job->schedule->ops.at[next].start >= end);
}

/* The copy stands for the gate. */
static gantry_status wait_behind_copy(gy_submit *x, gates_gpu *g)
{
    gy_gates *all = x->h->gates;
    CUgraphNode node = all->end.node.at[all->op[g->copy.op].end];
    g->copy.what.list.words = g->want.words;
    g->copy.what.waits = g->wants;
    memcpy(g->copy.what.list.number, g->want.number, g->wants * sizeof *g->want.number);
    GY_TRY(set_copy(x, g, node, &g->copy.what));
    all->passed[first_lane_of(x->h, g->copy.op)] = (uint32_t)g->gate.node.count + 1;
    g->before.node.count = 0;
    return gy_vec_push(&g->before.node, node) ? GANTRY_OK : gy_fail_nomem(x->err);
}

/* The one node in `before` is the last gate. No copy ahead of it may wait in the place of the next one. */
static gantry_status pass_gate(gy_submit *x, gates_gpu *g)
{
    g->copy.op = g->told_lane = GY_NONE;
    return gy_vec_push(&g->gate.node, g->before.node.at[0]) ? GANTRY_OK : gy_fail_nomem(x->err);
}

static gantry_status close_gate(gy_submit *x, gates_gpu *g, gy_ticks end)
{
    g->want.words = g->block;
    g->awaited += g->wants;
    if (may_wait(x->h, g, end))
        GY_TRY(wait_behind_copy(x, g));
    else
        GY_TRY(add_node(x, g, g->wants <= GY_GATE_FEW ? GY_GATE_WAITS : GY_GATE_WAITS_LONG, &g->want, g->wants,
                        &g->before));
    g->wants = 0;
    return pass_gate(x, g);
}

gantry_status gy_gates_order(gy_submit *x, gy_queue from, gy_queue to)
{
    gy_gates *all = x->h->gates;
    gates_gpu *on = &all->gpu[gpu_of(x->h, to.device)];
    CUgraph graph;
    all->front.node.count = 0;
    GY_TRY(add_front(x, from, &all->front, &graph));
    GY_TRY(tell(x, &all->front, x->op, &all->gpu[gpu_of(x->h, from.device)], on));
    GY_TRY(close_gate(x, on, GY_TICKS_MAX));
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
    if (!x->capture || !is_on(x->h))
        return GANTRY_OK;
    g->op[op].passed = g->passed[first_lane_of(x->h, op)];
    if (!g->op[op].told)
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

gy_ticks gy_gates_awaited(const gy_cuda *h, uint32_t op)
{
    return h->gates->awaited[op];
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

/* Does its copy set a word for that GPU? */
static bool tells_itself(const gates_op *op, uint32_t gpu)
{
    return op->word != GY_NONE && op->to == gpu;
}

/* Nodes that the ops of that GPU end with, those that the gate of `to` waits for, but for copies that set words by
 * themselves: each once, as a part of an op without rows adds no node and ends with those of another. *ended: the last
 * of these ops; GY_NONE: there are none. */
static gantry_status gather(gy_submit *x, uint32_t to, uint32_t gpu, uint32_t *ended)
{
    gy_gates *all = x->h->gates;
    const gates_gpu *g = &all->gpu[to];
    all->front.node.count = 0;
    *ended = GY_NONE;
    for (size_t i = 0; i < g->ops.count; i++) {
        const gates_op *op = &all->op[g->ops.at[i]];
        const uint32_t *last = last_of(x->h, g->ops.at[i]);
        if (op->gpu != gpu || tells_itself(op, to) || (last && *last != g->ops.at[i]))
            continue;
        if (*ended == GY_NONE || g->ops.at[i] > *ended) /* an op that launches nothing may end without a node */
            *ended = g->ops.at[i];
        for (uint32_t k = op->end; k < op->end + op->nodes; k++)
            GY_TRY(push_once(x, &all->front, all->end.node.at[k]));
    }
    return GANTRY_OK;
}

/* Those of copies that set them, and one for all else of each GPU that the gate waits for. */
static gantry_status tell_all(gy_submit *x, uint32_t gpu)
{
    gy_gates *all = x->h->gates;
    gates_gpu *g = &all->gpu[gpu];
    for (size_t i = 0; i < g->ops.count; i++) {
        const gates_op *op = &all->op[g->ops.at[i]];
        GY_TRY(tells_itself(op, gpu) ? tell_copied(x, g->ops.at[i], &all->gpu[op->gpu], g) : GANTRY_OK);
    }
    for (uint32_t i = 0; i < x->h->devices; i++) {
        uint32_t ended;
        GY_TRY(gather(x, gpu, i, &ended));
        GY_TRY(ended != GY_NONE ? tell(x, &all->front, ended, &all->gpu[i], g) : GANTRY_OK);
    }
    return GANTRY_OK;
}

gantry_status gy_gates_close(gy_submit *x, uint32_t to, gy_ticks end)
{
    gy_gates *all = x->h->gates;
    uint32_t gpu = gpu_of(x->h, to);
    gates_gpu *g = &all->gpu[gpu];
    for (size_t i = 0; i < g->ops.count; i++) {
        uint32_t *last = last_of(x->h, g->ops.at[i]);
        if (last && (*last == GY_NONE || *last < g->ops.at[i]))
            *last = g->ops.at[i];
    }
    gantry_status status = tell_all(x, gpu);
    status = status ? status : close_gate(x, g, end);
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

/* A collective whose kernel there is a gate has the number of that. */
void gy_gates_follow(const gy_submit *x, gy_queue queue, uint32_t op)
{
    gy_gates *all = x->h->gates;
    uint32_t lane = x->capture && is_on(x->h) ? lane_of(x, queue) : GY_NONE;
    if (lane == GY_NONE)
        return;
    uint32_t number = all->number[pair_of(x->h, op, gpu_of(x->h, queue.device))];
    uint32_t passed = number ? number : all->op[op].passed;
    if (all->passed[lane] < passed)
        all->passed[lane] = passed;
}

/* ---- kernels of collectives that meet ---- */

gantry_status gy_gates_meet(gy_submit *x, gy_queue queue)
{
    gy_gates *all = x->h->gates;
    CUgraph graph;
    if (!x->capture || !is_on(x->h))
        return GANTRY_OK;
    const gates_gpu *g = &all->gpu[gpu_of(x->h, queue.device)];
    all->front.node.count = 0;
    GY_TRY(add_front(x, queue, &all->front, &graph));
    for (size_t i = 0; i < g->before.node.count; i++)
        if (!has_node(&all->front, g->before.node.at[i]))
            GY_TRY(put_behind(x, queue, g->before.node.at[i]));
    return GANTRY_OK;
}

/* The gate has the op, and others that its kernels carry out: whoever waits for one of them is behind it, as behind
 * any. */
gantry_status gy_gates_met(gy_submit *x, gy_queue queue)
{
    gy_gates *all = x->h->gates;
    CUgraph graph;
    if (!x->capture || !is_on(x->h))
        return GANTRY_OK;
    const gantry_schedule *s = x->h->job->schedule;
    uint32_t gpu = gpu_of(x->h, queue.device), op = x->op;
    gates_gpu *g = &all->gpu[gpu];
    g->before.node.count = 0;
    GY_TRY(add_front(x, queue, &g->before, &graph));
    GY_TRY(pass_gate(x, g));
    all->passed[lane_of(x, queue)] = (uint32_t)g->gate.node.count;
    do {
        all->number[pair_of(x->h, op, gpu)] = (uint32_t)g->gate.node.count;
        all->asked[pair_of(x->h, op, gpu)] = 1;
    } while (++op < s->ops.count && s->ops.at[op].kind == GY_OP_COLLECTIVE && x->h->op[op].called);
    return GANTRY_OK;
}

/* ---- copies that set words ---- */

static bool is_alone_told(const gy_cuda *h, uint32_t op)
{
    const gates_op *o = &h->gates->op[op];
    return o->to != GY_NONE &&
           gy_cuda_reaches(h, h->gates->gpu[o->gpu].origin.device, h->gates->gpu[o->to].origin.device);
}

bool gy_gates_copies(const gy_submit *x, const gantry_arg *arg, int32_t args)
{
    const gy_cuda *h = x->h;
    gy_gate_copies c = { .pairs = (uint32_t)args / 2 };
    if (!x->capture || !is_on(h))
        return false;
    for (int32_t i = 0; i < args; i += 2)
        c.bytes += (uint64_t)(arg[i].rows * arg[i].row_bytes);
    for (uint32_t id = x->op; id != GY_NONE; id = h->op[id].carries)
        c.told += is_alone_told(h, id);
    return gy_gate_tells(&c);
}

gantry_status gy_gates_copy(gy_submit *x, const gantry_arg *arg, int32_t args)
{
    gy_cuda *h = x->h;
    gates_gpu *g = &h->gates->gpu[gpu_of(h, x->first_lane.device)];
    gy_gate_copy c = { .parts = 0 };
    for (int32_t i = 0; i < args; i += 2)
        c.part[c.parts++] = (gy_gate_part){ (uintptr_t)arg[i].data, (uintptr_t)arg[i + 1].data,
                                            (uint64_t)(arg[i].rows * arg[i].row_bytes) };
    for (uint32_t id = x->op; id != GY_NONE; id = h->op[id].carries) {
        gates_op *op = &h->gates->op[id];
        if (!is_alone_told(h, id))
            continue;
        GY_TRY(take_word(x, g, &h->gates->gpu[op->to], id, &op->word));
        c.tell[c.tells++] = address_of(&h->gates->gpu[op->to], op->word);
    }
    GY_TRY(gy_cuda_use(h, x->first_lane.device, x->err));
    CUresult code = h->d.cuLaunchKernel(g->function[GY_GATE_COPIES], 1, 1, 1, threads_for(&c), 1, 1, 0,
                                        x->first_lane.stream, (void *[]){ &c }, NULL);
    bool one = h->op[x->op].carries == GY_NONE;
    bool behind = h->gates->passed[first_lane_of(h, x->op)] == g->gate.node.count;
    g->copy = (last_copy){ c, one && behind ? x->op : GY_NONE };
    return gy_submit_check(x, code, x->first_lane, "launching a kernel that copies and tells another GPU");
}

/* ---- the beginning of a capture ---- */

static gantry_status begin_gpu(gy_submit *x, gates_gpu *g)
{
    g->before.node.count = g->ops.count = g->gate.node.count = g->who.count = 0;
    g->words = g->awaited = g->wants = 0;
    g->copy.op = g->told_lane = GY_NONE;
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
    for (size_t i = 0; i < ops; i++) {
        h->gates->op[i].captured = false;
        h->gates->op[i].passed = 0;
        h->gates->op[i].word = GY_NONE;
    }
    for (uint32_t i = 0; i < h->devices; i++)
        GY_TRY(begin_gpu(x, &h->gates->gpu[i]));
    return GANTRY_OK;
}

/* A word that nobody waits for would be 1 when the next capture gives it to another gate. */
gantry_status gy_gates_check(gy_submit *x)
{
    bool all = true;
    for (uint32_t i = 0; is_on(x->h) && i < x->h->devices; i++)
        all = all && x->h->gates->gpu[i].words == x->h->gates->gpu[i].awaited;
    return all ? GANTRY_OK
               : gy_fail(x->err, GANTRY_E_UNSUPPORTED, NULL, "one graph a GPU: a copy tells a GPU that does not wait");
}
