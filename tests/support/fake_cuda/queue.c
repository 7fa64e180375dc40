/* SPDX-License-Identifier: Apache-2.0 */
/* Queued work, and doing it in some order. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static op **pending;
static size_t pendings, room;

int64_t fake_now(void);
int64_t fake_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

work work_copy(const work *w)
{
    work made = *w;
    for (int i = 0; w->kind == KERNEL && i < w->function->params; i++) {
        made.param[i] = malloc(w->function->size[i]);
        memcpy(made.param[i], w->param[i], w->function->size[i]);
    }
    return made;
}

void work_free(work *w)
{
    for (int i = 0; w->kind == KERNEL && i < w->function->params; i++)
        free(w->param[i]);
}

op *op_keep(op *o)
{
    if (o)
        o->references++;
    return o;
}

static void drop_before(op *o)
{
    for (size_t i = 0; i < o->befores; i++)
        op_drop(o->before[i]);
    free(o->before);
    o->before = NULL;
    o->befores = 0;
}

void op_drop(op *o)
{
    if (o && --o->references == 0) {
        drop_before(o);
        work_free(&o->w);
        free(o);
    }
}

/* The caller has one reference, the list of what is pending another. */
op *op_new(const work *w, op *const *before, size_t befores, uint64_t urgency)
{
    op *o = calloc(1, sizeof *o);
    o->references = 2;
    o->w = work_copy(w);
    o->w.correlation = w->kind == JOB ? 0 : fake.correlation;
    o->urgency = urgency;
    o->before = calloc(befores + 1, sizeof *o->before);
    for (size_t i = 0; i < befores; i++)
        if (before[i])
            o->before[o->befores++] = op_keep(before[i]);
    if (pendings == room) {
        room = room ? 2 * room : 256;
        pending = realloc(pending, room * sizeof *pending);
    }
    pending[pendings++] = o;
    return o;
}

size_t queued(void)
{
    return pendings;
}

static bool is_ready(const op *o)
{
    for (size_t i = 0; i < o->befores; i++)
        if (!o->before[i]->done)
            return false;
    return true;
}

/* 1: yes, 0: not before other work, -1: not by itself */
static int may_begin(const op *o)
{
    return o->w.kind == JOB && o->w.job.ready ? o->w.job.ready(o->w.job.data) : 1;
}

/* Mostly the most urgent, so that some streams run far ahead; sometimes any. */
static size_t choose(void)
{
    size_t best = pendings, ready = 0;
    int blocked = 0, hung = 0;
    bool any = draw() % 8 == 0;
    for (size_t i = 0; i < pendings; i++) {
        if (!is_ready(pending[i]))
            continue;
        int may = may_begin(pending[i]);
        blocked += may == 0;
        hung += may < 0;
        if (may < 1)
            continue;
        ready++;
        bool better = best == pendings || (any ? draw() % ready == 0 : pending[i]->urgency > pending[best]->urgency);
        best = better ? i : best;
    }
    if (best == pendings && blocked && !hung)
        wrong("deadlock: kernels hold the GPUs that others wait for");
    return best;
}

/* ---- what work does ---- */

static void open_for(int device, int other)
{
    bool devices[MOST_DEVICES] = { false };
    devices[device] = true;
    if (other >= 0)
        devices[other] = true;
    memory_open(devices);
}

static void open_all(void)
{
    bool devices[MOST_DEVICES];
    for (int i = 0; i < MOST_DEVICES; i++)
        devices[i] = i < fake.devices;
    memory_open(devices);
}

static const work *running;

static void open_for_kernel(const work *w)
{
    bool devices[MOST_DEVICES] = { false };
    for (int i = 0; i < fake.devices; i++)
        devices[i] = i == w->device || fake.context[w->device].peer[i];
    memory_open(devices);
}

void fakeCudaBegin(int waited)
{
    if (waited)
        open_for_kernel(running);
    else
        memory_close();
}

/* One that comes early is done after the kernel ahead of it, which is what it waits for if it does. */
static void run_kernel(work *w)
{
    running = w;
    if (w->early)
        memory_close();
    else
        open_for_kernel(w);
    fakeCudaLaunch launch = { .name = w->function->name, .seed = draw(), .early = w->early };
    memcpy(launch.grid, w->grid, sizeof launch.grid);
    memcpy(launch.block, w->block, sizeof launch.block);
    w->function->body(&launch, w->param);
}

static void set_memory(const work *w)
{
    size_t span = w->bytes ? (w->bytes - 1) * w->pitch + w->width : 0;
    memory_check(w->to, span, w->device, "a memset");
    open_for(w->device, -1);
    for (size_t i = 0; i < w->bytes; i++)
        memcpy(w->to + i * w->pitch, &w->value, w->width); /* little endian */
}

static void copy_memory(const work *w)
{
    int to = w->kind == DTOH ? -1 : w->device, from = w->kind == HTOD ? -1 : w->from_device;
    memory_check(w->to, w->bytes, to, "the target of a copy");
    memory_check(w->from, w->bytes, from, "the source of a copy");
    if (w->kind == DTOD && w->from < w->to + w->bytes && w->to < w->from + w->bytes)
        wrong("source and target of a copy overlap");
    open_for(to >= 0 ? to : from, from);
    memcpy(w->to, w->from, w->bytes);
}

static void run(work *w)
{
    switch (w->kind) {
    case NOTHING:
        break;
    case KERNEL:
        run_kernel(w);
        break;
    case HOST:
        memory_close(); /* a host function is not a kernel */
        w->call(w->data);
        break;
    case HTOD:
    case DTOH:
    case DTOD:
    case PEER:
        copy_memory(w);
        break;
    case SET:
        set_memory(w);
        break;
    case JOB:
        open_all();
        w->job.body(w->job.data);
        break;
    }
}

void forget_all(void)
{
    for (size_t i = 0; i < pendings; i++)
        op_drop(pending[i]);
    free(pending);
    pending = NULL;
    pendings = room = 0;
}

static CUresult count_kernel(int device)
{
    char name[24];
    snprintf(name, sizeof name, "kernel on %d", device);
    count_call(name);
    return count_call("kernel");
}

bool step(void)
{
    size_t i = fake.sticky || fake.stalled ? pendings : choose();
    if (i == pendings)
        return false;
    op *o = pending[i];
    memmove(&pending[i], &pending[i + 1], (--pendings - i) * sizeof *pending); /* keeps the order of arrival */
    CUresult code = o->w.kind == KERNEL ? count_kernel(o->w.device) : CUDA_SUCCESS;
    if (o->w.kind == HOST)
        count_call("host");
    if (code) {
        fake.sticky = code;
        op_drop(o);
        forget_all();
        return false;
    }
    int64_t began = fake_now();
    run(&o->w);
    o->done = true;
    o->done_ns = fake_now();
    tell_done(&o->w, began, o->done_ns);
    drop_before(o);
    op_drop(o);
    return true;
}

void steps(int most)
{
    while (most-- > 0 && step()) {
    }
    memory_close();
}

void finish(const op *o)
{
    while (o && !o->done && step()) {
    }
    memory_close();
}

CUresult queue_work(CUstream stream, const work *w)
{
    if (stream->capture)
        return capture_work(stream, w);
    if (draw() % 8 == 0)
        stream->urgency = draw();
    op *o = op_new(w, &stream->last, 1, stream->urgency);
    op_drop(stream->last);
    stream->last = o;
    return CUDA_SUCCESS;
}

/* ---- work of other libraries ---- */

CUresult fakeCudaQueue(const CUstream *streams, int count, const fakeCudaJob *job)
{
    work w = { .kind = JOB, .job = *job };
    lock();
    CUresult code = CUDA_SUCCESS;
    if (streams[0]->capture) {
        code = capture_job(streams, count, &w);
        unlock();
        return code;
    }
    op **before = calloc((size_t)count + 1, sizeof(op *));
    for (int i = 0; i < count; i++) {
        before[i] = streams[i]->last;
        code = streams[i]->capture ? CUDA_ERROR_STREAM_CAPTURE_MERGE : code;
    }
    op *o = code ? NULL : op_new(&w, before, (size_t)count, draw());
    for (int i = 0; i < count && o; i++) {
        op_drop(streams[i]->last);
        streams[i]->last = op_keep(o);
    }
    op_drop(o);
    free(before);
    unlock();
    return code;
}

void fakeCudaFinish(void)
{
    lock();
    while (step()) {
    }
    memory_close();
    unlock();
}
