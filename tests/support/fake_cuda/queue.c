/* SPDX-License-Identifier: Apache-2.0 */
/* Queued work, and doing it in some order. */
#include "fake.h"

#include <limits.h>
#include <sched.h>
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

/* A launch that waits for others has its device for itself, as far as other such launches go. */
static bool is_taken(int device)
{
    for (size_t i = 0; i < pendings; i++)
        if (pending[i]->begun && pending[i]->w.device == device)
            return true;
    return false;
}

static int occupied[MOST_DEVICES]; /* by kernels of other libraries */

void fakeCudaOccupy(int device, int by)
{
    occupied[device] += by;
}

int fakeCudaTaken(int device)
{
    for (size_t i = 0; i < pendings; i++)
        if (pending[i]->begun && pending[i]->w.device == device && pending[i]->w.cooperative)
            return 1;
    return 0;
}

static bool resides(const work *w)
{
    return w->kind == KERNEL && w->waits && w->function->resides;
}

static bool holds(void)
{
    const char *text = getenv("FAKE_CUDA_HOLD");
    return text && atoi(text);
}

typedef enum may { MAY, BLOCKED, HUNG, POLLS } may;

/* BLOCKED: not before other work; HUNG: not by itself; POLLS: it waits for a word, for a kernel that may, or
 * for another process. */
static may may_begin(const op *o)
{
    if (o->w.cooperative && occupied[o->w.device])
        return POLLS;
    if (o->w.kind == WAIT)
        return (int64_t)(memory_load(o->w.to) - o->w.word) >= 0 ? MAY : POLLS;
    if (resides(&o->w) || (o->w.kind == KERNEL && holds()))
        return is_taken(o->w.device) ? POLLS : MAY;
    int ready = o->w.kind == JOB && o->w.job.ready ? o->w.job.ready(o->w.job.data) : 1;
    return ready > 0 ? MAY : ready == 0 ? BLOCKED : ready == -1 ? HUNG : POLLS;
}

/* Mostly the most urgent, so that some streams run far ahead; sometimes any. What has begun counts as what polls. */
static size_t choose(size_t *polls)
{
    size_t best = pendings, ready = 0, count[4] = { 0 };
    bool any = draw() % 8 == 0;
    for (size_t i = 0; i < pendings; i++) {
        if (!is_ready(pending[i]))
            continue;
        may can = pending[i]->begun ? POLLS : may_begin(pending[i]);
        count[can]++;
        if (can != MAY)
            continue;
        ready++;
        bool better = best == pendings || (any ? draw() % ready == 0 : pending[i]->urgency > pending[best]->urgency);
        best = better ? i : best;
    }
    if (best == pendings && count[BLOCKED] && !count[HUNG] && !count[POLLS])
        wrong("deadlock: kernels hold the GPUs that others wait for");
    *polls = count[POLLS];
    return best;
}

/* Of resident launches that are under way; pendings: none. */
static size_t choose_begun(void)
{
    size_t found = pendings, count = 0;
    for (size_t i = 0; i < pendings; i++)
        if (pending[i]->begun && draw() % ++count == 0)
            found = i;
    return found;
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
    if (resides(w) && is_weak())
        memory_allow(devices);
    else
        memory_open(devices);
}

void fakeCudaBegin(int waited)
{
    if (waited)
        open_for_kernel(running);
    else
        memory_close();
}

static fakeCudaLaunch launch_of(const work *w)
{
    fakeCudaLaunch launch = { .name = w->function->name, .seed = draw(), .early = w->early };
    memcpy(launch.grid, w->grid, sizeof launch.grid);
    memcpy(launch.block, w->block, sizeof launch.block);
    return launch;
}

/* One that comes early is done after the kernel ahead of it, which is what it waits for if it does. */
static void run_kernel(work *w)
{
    running = w;
    if (w->early)
        memory_close();
    else
        open_for_kernel(w);
    fakeCudaLaunch launch = launch_of(w);
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
    case WAIT:
        break;
    case WRITE:
        memory_store(w->to, w->word);
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
    for (size_t i = 0; i < pendings; i++) {
        if (pending[i]->begun)
            pending[i]->w.function->resides->end(pending[i]->begun);
        pending[i]->begun = NULL;
        op_drop(pending[i]);
    }
    memset(occupied, 0, sizeof occupied);
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

/* False: a test wants that it breaks the context. */
static bool count_work(const work *w)
{
    if (w->condition && !*w->condition)
        return true;
    CUresult code = w->kind == KERNEL ? count_kernel(w->device) : CUDA_SUCCESS;
    if (w->kind == HOST)
        count_call("host");
    if (code) {
        fake.sticky = code;
        forget_all();
    }
    return code == CUDA_SUCCESS;
}

static void take_out(size_t i)
{
    memmove(&pending[i], &pending[i + 1], (--pendings - i) * sizeof *pending); /* keeps the order of arrival */
}

static void end(op *o, int64_t began)
{
    o->done = true;
    o->done_ns = fake_now();
    tell_done(&o->w, began, o->done_ns);
    drop_before(o);
    op_drop(o);
}

static void begin_resident(op *o)
{
    fakeCudaLaunch launch = launch_of(&o->w);
    o->begun_ns = fake_now();
    o->begun = o->w.function->resides->begin(&launch, o->w.param);
}

static progress go_on(size_t i)
{
    op *o = pending[i];
    open_for_kernel(&o->w);
    int did = o->w.function->resides->go_on(o->begun);
    if (did == FAKE_ENDED) {
        take_out(i);
        o->w.function->resides->end(o->begun);
        o->begun = NULL;
        end(o, o->begun_ns);
    }
    return did == FAKE_POLLED ? POLLED : MOVED;
}

/* Resident launches and all else take turns. */
progress step(void)
{
    size_t polls = 0, i = fake.sticky || fake.stalled ? pendings : choose(&polls), begun = pendings;
    if (polls && (begun = choose_begun()) < pendings && (i == pendings || draw() % 2))
        return go_on(begun);
    if (i == pendings)
        return polls ? POLLED : IDLE;
    op *o = pending[i];
    if (!count_work(&o->w))
        return IDLE;
    if (resides(&o->w)) {
        begin_resident(o);
        return MOVED;
    }
    take_out(i);
    int64_t began = fake_now();
    if (!o->w.condition || *o->w.condition)
        run(&o->w);
    end(o, began);
    return MOVED;
}

void steps(int most)
{
    while (most-- > 0 && step() != IDLE) {
    }
    memory_close();
}

static int patience(void)
{
    const char *text = getenv("FAKE_CUDA_PATIENCE");
    return fake.patience ? fake.patience : text && atoi(text) ? atoi(text) : 2000000;
}

/* Another thread of the program may bring the word that kernels wait for. */
static void let_others(void)
{
    memory_close();
    unlock();
    sched_yield();
    lock();
}

void finish(op *o)
{
    op_keep(o);
    for (int polled = 0; o && !o->done;) {
        progress did = step();
        if (did == IDLE)
            break;
        polled = did == POLLED ? polled + 1 : 0;
        if (polled % 64 == 63)
            let_others();
        if (patience() >= 0 && polled >= patience())
            wrong("deadlock: in %d slices kernels and streams only waited for words that nobody writes", polled);
        polled = polled < INT_MAX ? polled : 0;
    }
    op_drop(o);
    memory_close();
}

/* ---- how many blocks are under way ---- */

int places(void)
{
    const char *text = getenv("FAKE_CUDA_PLACES");
    return text ? atoi(text) : 0;
}

bool fits_device(const CUlaunchConfig *c)
{
    uint64_t blocks = (uint64_t)c->gridDimX * c->gridDimY * c->gridDimZ;
    uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;
    return blocks <= (places() ? (uint64_t)places() : MULTIPROCESSORS * (THREADS / threads));
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
    for (int polled = 0; polled < 4096;) { /* kernels that wait for the program can do no more */
        progress did = step();
        if (did == IDLE)
            break;
        polled = did == POLLED ? polled + 1 : 0;
    }
    memory_close();
    unlock();
}
