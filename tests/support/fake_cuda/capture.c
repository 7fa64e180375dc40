/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture and graphs: edges are what streams and events said while capturing, and nothing else orders nodes. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

void set_free(set *s)
{
    free(s->at);
    *s = (set){ 0 };
}

set set_copy(const set *s)
{
    set made = { malloc(((size_t)s->count + 1) * sizeof *s->at), s->count };
    if (s->count)
        memcpy(made.at, s->at, (size_t)s->count * sizeof *s->at);
    return made;
}

bool set_join(set *to, const set *from)
{
    for (int i = 0; i < from->count; i++) {
        bool there = false;
        for (int k = 0; k < to->count; k++)
            there = there || to->at[k] == from->at[i];
        if (!there) {
            to->at = realloc(to->at, ((size_t)to->count + 1) * sizeof *to->at);
            to->at[to->count++] = from->at[i];
        }
    }
    return true;
}

/* Of handles, which are indices from 1. */
static set set_of(const CUgraphNode *handle, size_t count)
{
    set made = { malloc((count + 1) * sizeof *made.at), (int)count };
    for (size_t i = 0; i < count; i++)
        made.at[i] = (int)(uintptr_t)handle[i] - 1;
    return made;
}

void graph_clear(struct CUgraph_st *g)
{
    for (int i = 0; i < g->count; i++) {
        work_hold(&g->at[i].w, -1);
        work_free(&g->at[i].w);
        set_free(&g->at[i].before);
        if (g->at[i].body) {
            graph_clear(g->at[i].body);
            free(g->at[i].body);
        }
    }
    free(g->at);
    *g = (struct CUgraph_st){ 0 };
}

void work_hold(const work *w, int by)
{
    if (w->kind == JOB && w->job.hold)
        w->job.hold(w->job.data, by);
}

void capture_drop(capture *c)
{
    if (c && --c->references == 0) {
        graph_clear(&c->graph);
        free(c);
    }
}

/* A kernel that comes early waits for the kernel ahead of it and for nothing else. That one must be known to end after
 * all that is ahead of it. Whether it waits is seen when it runs. */
static void check_early(const struct CUgraph_st *g, const set *front, const work *w)
{
    if (front->count != 1)
        wrong("kernel %s comes early and depends on %d nodes", w->function->name, front->count);
    const work *ahead = &g->at[front->at[0]].w;
    if (ahead->kind != KERNEL || ahead->device != w->device)
        wrong("kernel %s comes early behind what is no kernel of its device", w->function->name);
    if (!ahead->function->begins)
        wrong("kernel %s comes early behind %s, which need not have waited", w->function->name, ahead->function->name);
    count_call("early");
}

/* With FAKE_CUDA_LOOSE a kernel that waits, and is none of gates, does not come behind what was added to its stream. */
static void loosen(CUstream stream, const work *w)
{
    const char *text = getenv("FAKE_CUDA_LOOSE");
    bool loose = text && atoi(text) && w->kind == KERNEL && w->waits && strncmp(w->function->name, "gate", 4) != 0;
    int kept = 0;
    for (int i = 0; loose && i < stream->front.count; i++) {
        bool added = false;
        for (int k = 0; k < stream->added.count; k++)
            added = added || stream->added.at[k] == stream->front.at[i];
        if (!added)
            stream->front.at[kept++] = stream->front.at[i];
    }
    stream->front.count = loose ? kept : stream->front.count;
    set_free(&stream->added);
}

CUresult capture_work(CUstream stream, const work *w)
{
    capture *c = stream->capture;
    if (c->bad)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    struct CUgraph_st *g = &c->graph;
    loosen(stream, w);
    if (w->early)
        check_early(g, &stream->front, w);
    g->at = realloc(g->at, ((size_t)g->count + 1) * sizeof *g->at);
    if (c->into && w->kind != KERNEL && w->kind != SET && w->kind != DTOD && w->kind != HTOD && w->kind != DTOH)
        wrong("work of kind %d in the body of a conditional node", (int)w->kind);
    g->at[g->count] = (node){ .w = work_copy(w), .before = stream->front };
    stream->front = (set){ malloc(sizeof(int)), 1 };
    g->at[g->count].w.node = ++fake.nodes;
    tell_node(g, &g->at[g->count].w, 0);
    stream->front.at[0] = g->count++;
    return CUDA_SUCCESS;
}

/* Streams of one capture: the node comes after what each has, and each goes on after it. */
CUresult capture_job(const CUstream *streams, int count, const work *w)
{
    capture *c = streams[0]->capture;
    for (int i = 0; i < count; i++) {
        if (streams[i]->capture != c) {
            c->bad = true;
            return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        }
        set_join(&streams[0]->front, &streams[i]->front);
    }
    CUresult code = capture_work(streams[0], w);
    for (int i = 1; i < count && !code; i++) {
        set_free(&streams[i]->front);
        streams[i]->front = set_copy(&streams[0]->front);
    }
    if (!code)
        work_hold(w, 1);
    return code;
}

static void leave(CUstream stream)
{
    capture_drop(stream->capture);
    stream->capture = NULL;
    set_free(&stream->front);
    set_free(&stream->added);
}

/* Marks what `from` comes after. */
static void mark_before(const struct CUgraph_st *g, const set *from, bool *seen)
{
    for (int i = 0; i < from->count; i++) {
        if (!seen[from->at[i]]) {
            seen[from->at[i]] = true;
            mark_before(g, &g->at[from->at[i]].before, seen);
        }
    }
}

/* Everything that was captured must be before the end of the origin; what was added to the graph need not be. */
static bool is_joined(const capture *c)
{
    bool *seen = calloc((size_t)c->graph.count + 1, sizeof *seen), all = true;
    mark_before(&c->graph, &c->origin->front, seen);
    for (int i = 0; i < c->graph.count; i++)
        all = all && (seen[i] || c->graph.at[i].added);
    free(seen);
    return all;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    lock();
    CUresult code = count_call("cuStreamBeginCapture");
    if (!code && (stream->capture || mode > CU_STREAM_CAPTURE_MODE_RELAXED))
        code = CUDA_ERROR_ILLEGAL_STATE;
    if (!code) {
        stream->capture = calloc(1, sizeof *stream->capture);
        stream->capture->references = 1;
        stream->capture->origin = stream;
        stream->capture->open = true;
        stream->capture->mode = mode;
        stream->capture->by = pthread_self();
    }
    unlock();
    return code;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    lock();
    CUresult code = count_call("cuStreamEndCapture");
    capture *c = stream->capture;
    *graph = NULL;
    if (!c || c->origin != stream) {
        unlock();
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (!code) {
        code = c->bad         ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
               : is_joined(c) ? CUDA_SUCCESS
                              : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    if (!code) {
        *graph = c->into ? c->into : calloc(1, sizeof **graph);
        **graph = c->graph;
        c->graph = (struct CUgraph_st){ 0 };
        fake.alive_graphs += !c->into;
    }
    graph_clear(&c->graph); /* of a capture that failed; events may keep the rest of it */
    c->open = false;
    for (CUstream s = fake.streams; s; s = s->next)
        if (s->capture == c && s != stream)
            leave(s);
    leave(stream);
    unlock();
    return code;
}

/* Kernels of two devices of which one waits for the other, in a graph that is made. */
static void count_waits(const struct CUgraph_st *g, const node *n)
{
    for (int i = 0; i < n->before.count; i++) {
        const work *other = &g->at[n->before.at[i]].w;
        if (n->w.kind == KERNEL && other->kind == KERNEL && other->device != n->w.device)
            count_call("wait between devices");
    }
}

/* ---- conditional nodes ---- */

/* Conditions are there as long as the program, as graphs that are made from captured ones use theirs. */
static unsigned **conditions;
static size_t count_of_conditions;

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph graph, CUcontext context,
                                        unsigned int value, unsigned int flags)
{
    lock();
    CUresult code = count_call("cuGraphConditionalHandleCreate");
    if (!code && (!graph || !context || flags > CU_GRAPH_COND_ASSIGN_DEFAULT))
        code = CUDA_ERROR_INVALID_VALUE;
    if (!code) {
        conditions = realloc(conditions, (count_of_conditions + 1) * sizeof *conditions);
        unsigned *made = conditions[count_of_conditions++] = malloc(sizeof *made);
        *made = value;
        *handle = (CUgraphConditionalHandle)(uintptr_t)made;
    }
    unlock();
    return code;
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                const CUgraphNode **front, const CUgraphEdgeData **edges, size_t *fronts)
{
    lock();
    CUresult code = count_call("cuStreamGetCaptureInfo");
    capture *c = stream->capture;
    *status = c ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    if (c && id)
        *id = (cuuint64_t)(uintptr_t)c;
    if (c && graph)
        *graph = &c->graph;
    if (c && front) {
        stream->told = realloc(stream->told, ((size_t)stream->front.count + 1) * sizeof *stream->told);
        for (int i = 0; i < stream->front.count; i++)
            stream->told[i] = (CUgraphNode)(uintptr_t)(stream->front.at[i] + 1);
        *front = stream->told;
        *fronts = (size_t)stream->front.count;
    }
    if (edges)
        *edges = NULL;
    unlock();
    return code;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *front, const CUgraphEdgeData *edges,
                                           size_t fronts, unsigned int flags)
{
    lock();
    CUresult code = count_call("cuStreamUpdateCaptureDependencies");
    if (!code && !stream->capture)
        code = CUDA_ERROR_ILLEGAL_STATE;
    if (!code && (edges || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES))
        code = CUDA_ERROR_INVALID_VALUE;
    if (!code) {
        set with = set_of(front, fronts);
        if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
            set_free(&stream->front);
        set_join(&stream->front, &with);
        set_join(&stream->added, &with);
        set_free(&with);
    }
    unlock();
    return code;
}

/* The array of bodies that the driver keeps: of one. */
static CUgraph *bodies_of(CUgraph body)
{
    static CUgraph one[64];
    static unsigned next;
    one[next % 64] = body;
    return &one[next++ % 64];
}

static CUresult make_conditional(node *made, CUgraphNodeParams *params)
{
    if (params->conditional.size != 1 || params->conditional.type != CU_GRAPH_COND_TYPE_IF || !params->conditional.ctx)
        return CUDA_ERROR_INVALID_VALUE;
    made->body = calloc(1, sizeof *made->body);
    made->w = (work){ .kind = NOTHING, .device = params->conditional.ctx->device };
    made->w.condition = (unsigned *)(uintptr_t)params->conditional.handle;
    params->conditional.phGraph_out = bodies_of(made->body);
    return CUDA_SUCCESS;
}

/* A kernel of the current context's device, which nobody captured. */
static CUresult make_kernel(node *made, const CUgraphNodeParams *params)
{
    work w;
    CUresult code = kernel_work(&w, &params->kernel);
    if (!code) {
        made->w = work_copy(&w);
        made->w.node = ++fake.nodes;
        made->added = true;
    }
    return code;
}

/* CUDA wants each node once among those that another one comes behind. */
static bool is_distinct(const CUgraphNode *at, size_t count)
{
    bool distinct = true;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i && distinct; k++)
            distinct = at[k] != at[i];
    return distinct;
}

/* Only conditional nodes and kernels are known. */
CUresult cuGraphAddNode(CUgraphNode *added, CUgraph g, const CUgraphNode *before, const CUgraphEdgeData *edges,
                        size_t befores, CUgraphNodeParams *params)
{
    lock();
    CUresult code = count_call("cuGraphAddNode");
    node made = { .body = NULL };
    if (!code)
        code = edges || !is_distinct(before, befores)           ? CUDA_ERROR_INVALID_VALUE
               : params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? make_conditional(&made, params)
               : params->type == CU_GRAPH_NODE_TYPE_KERNEL      ? make_kernel(&made, params)
                                                                : CUDA_ERROR_INVALID_VALUE;
    if (!code) {
        made.before = set_of(before, befores);
        g->at = realloc(g->at, ((size_t)g->count + 1) * sizeof *g->at);
        g->at[g->count] = made;
        if (made.added)
            tell_node(g, &made.w, 0);
        *added = (CUgraphNode)(uintptr_t)(++g->count);
    }
    unlock();
    return code;
}

/* Nodes are numbers, of what is captured on that device. */
static node *find_captured(CUgraphNode handle, int device)
{
    uintptr_t number = (uintptr_t)handle;
    for (CUstream s = fake.streams; s; s = s->next)
        if (s->capture && s->context->device == device)
            return number >= 1 && number <= (uintptr_t)s->capture->graph.count ? &s->capture->graph.at[number - 1]
                                                                               : NULL;
    return NULL;
}

/* A kernel gets other parameters. */
CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams *params)
{
    lock();
    CUresult code = count_call("cuGraphNodeSetParams");
    node *n = NULL, made = { .body = NULL };
    if (!code && params->type != CU_GRAPH_NODE_TYPE_KERNEL)
        code = CUDA_ERROR_INVALID_VALUE;
    code = code ? code : make_kernel(&made, params);
    n = code ? NULL : find_captured(handle, made.w.device);
    if (!code && (!n || n->w.kind != KERNEL || n->w.function != made.w.function)) {
        work_free(&made.w);
        code = CUDA_ERROR_INVALID_VALUE;
    }
    if (!code) {
        made.w.node = n->w.node;
        work_free(&n->w);
        n->w = made.w;
    }
    unlock();
    return code;
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *before,
                                     const CUgraphEdgeData *edges, size_t befores, CUstreamCaptureMode mode)
{
    if (befores || before || edges || graph->count)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult code = cuStreamBeginCapture(stream, mode);
    if (!code) {
        lock();
        stream->capture->into = graph;
        unlock();
    }
    return code;
}

int fakeCudaInBody(CUstream stream)
{
    lock();
    int inside = stream && stream->capture && stream->capture->into;
    unlock();
    return inside;
}

/* ---- executable graphs ---- */

/* Appends a copy of a node, behind the nodes of those numbers. */
static int add_copy(struct CUgraph_st *to, const node *from, set before, unsigned *condition)
{
    to->at = realloc(to->at, ((size_t)to->count + 1) * sizeof *to->at);
    node *made = &to->at[to->count];
    *made = (node){ .w = work_copy(&from->w), .before = before };
    made->w.condition = condition;
    made->w.node = ++fake.nodes;
    tell_node(to, &made->w, from->w.node);
    work_hold(&made->w, 1);
    return to->count++;
}

/* A conditional node becomes its body, each node behind all that the conditional one is behind, and itself, which does
 * nothing, behind all of them. */
static void add_nodes(struct CUgraph_st *to, const struct CUgraph_st *from, const set *behind, unsigned *condition)
{
    int *place = calloc((size_t)from->count + 1, sizeof *place);
    for (int i = 0; i < from->count; i++) {
        const node *n = &from->at[i];
        set before = set_copy(behind);
        for (int k = 0; k < n->before.count; k++) {
            const set one = { &place[n->before.at[k]], 1 };
            set_join(&before, &one);
        }
        if (n->body) {
            int first = to->count;
            add_nodes(to, n->body, &before, n->w.condition);
            for (; first < to->count; first++) {
                const set one = { &first, 1 };
                set_join(&before, &one);
            }
        }
        place[i] = add_copy(to, n, before, n->body ? NULL : condition);
    }
    free(place);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    lock();
    CUresult code = count_call("cuGraphInstantiateWithFlags");
    (void)flags;
    if (!code) {
        *exec = calloc(1, sizeof **exec);
        const set nothing = { 0 };
        add_nodes(&(*exec)->graph, graph, &nothing, NULL);
        for (int i = 0; i < graph->count; i++)
            count_waits(graph, &graph->at[i]);
        fake.alive_execs++;
    }
    unlock();
    return code;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    (void)exec;
    (void)stream;
    lock();
    CUresult code = count_call("cuGraphUpload");
    unlock();
    return code;
}

/* A piece of work per node, and one at the end that comes after all. */
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    lock();
    CUresult code = count_call("cuGraphLaunch");
    const struct CUgraph_st *g = &exec->graph;
    op **made = calloc((size_t)g->count + 1, sizeof *made);
    op *first[2] = { stream->last, exec->last };
    uint64_t urgency = draw();
    for (int i = 0; i < g->count && !code; i++) {
        const node *n = &g->at[i];
        op **before = calloc((size_t)n->before.count + 2, sizeof *before);
        size_t befores = 0;
        for (int k = 0; k < n->before.count; k++)
            before[befores++] = made[n->before.at[k]];
        before[befores++] = first[0];
        before[befores++] = first[1];
        urgency = draw() % 4 == 0 ? draw() : urgency;
        made[i] = op_new(&n->w, before, befores, urgency);
        free(before);
    }
    if (!code) {
        work nothing = { .kind = NOTHING };
        op *end = op_new(&nothing, made, (size_t)g->count, draw());
        if (g->count == 0) {
            op_drop(end);
            end = op_new(&nothing, first, 2, draw());
        }
        op_drop(stream->last);
        op_drop(exec->last);
        stream->last = end;
        exec->last = op_keep(end);
    }
    for (int i = 0; i < g->count; i++)
        op_drop(made[i]);
    free(made);
    unlock();
    return code;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    lock();
    CUresult code = count_call("cuGraphExecDestroy");
    /* Allowed, what runs goes on; but nobody wants it, except to end work of libraries that hangs. */
    bool jobs = false;
    for (int i = 0; i < exec->graph.count; i++)
        jobs = jobs || exec->graph.at[i].w.kind == JOB;
    if (exec->last && !exec->last->done && !fake.sticky && !jobs)
        wrong("a graph is destroyed while it runs");
    op_drop(exec->last);
    graph_clear(&exec->graph);
    free(exec);
    fake.alive_execs--;
    unlock();
    return code;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    lock();
    CUresult code = count_call("cuGraphDestroy");
    graph_clear(graph);
    free(graph);
    fake.alive_graphs--;
    unlock();
    return code;
}
