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

void graph_clear(struct CUgraph_st *g)
{
    for (int i = 0; i < g->count; i++) {
        work_hold(&g->at[i].w, -1);
        work_free(&g->at[i].w);
        set_free(&g->at[i].before);
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

CUresult capture_work(CUstream stream, const work *w)
{
    capture *c = stream->capture;
    if (c->bad)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    struct CUgraph_st *g = &c->graph;
    if (w->early)
        check_early(g, &stream->front, w);
    g->at = realloc(g->at, ((size_t)g->count + 1) * sizeof *g->at);
    g->at[g->count] = (node){ work_copy(w), stream->front };
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

/* Everything that was captured must be before the end of the origin. */
static bool is_joined(const capture *c)
{
    bool *seen = calloc((size_t)c->graph.count + 1, sizeof *seen), all = true;
    mark_before(&c->graph, &c->origin->front, seen);
    for (int i = 0; i < c->graph.count; i++)
        all = all && seen[i];
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
        *graph = calloc(1, sizeof **graph);
        **graph = c->graph;
        c->graph = (struct CUgraph_st){ 0 };
        fake.alive_graphs++;
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

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    lock();
    CUresult code = count_call("cuGraphInstantiateWithFlags");
    (void)flags;
    if (!code) {
        *exec = calloc(1, sizeof **exec);
        struct CUgraph_st *g = &(*exec)->graph;
        g->at = calloc((size_t)graph->count + 1, sizeof *g->at);
        for (; g->count < graph->count; g->count++) {
            g->at[g->count].w = work_copy(&graph->at[g->count].w);
            g->at[g->count].w.node = ++fake.nodes;
            tell_node(g, &g->at[g->count].w, graph->at[g->count].w.node);
            work_hold(&g->at[g->count].w, 1);
            g->at[g->count].before = set_copy(&graph->at[g->count].before);
            count_waits(graph, &graph->at[g->count]);
        }
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
