/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one client of CUPTI that a process has, shared by all runs that record.
 *
 * CUPTI takes one subscriber in a process, and its callbacks belong to no run. So this state does not belong to a run
 * either, as the order of runs with NCCL does not (order.c): the first run that records subscribes, the last one
 * gives everything back, and in between each call, node and record is looked up in the runs of the list. Another tool
 * that has subscribed keeps CUPTI: runs use events then, and report why. A tool that comes later is refused by CUPTI as
 * long as a run records.
 *
 * cuptiFinalize is not called: no thread of the process may be inside of CUDA then, which cannot be known here.
 */
#include "backends/cuda/times/cupti.h"

#include "base/clock.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { BUFFER = 1 << 20, MOST_SPARE = 4 };

static const int kinds[] = { GY_CUPTI_KERNEL, GY_CUPTI_MEMCPY, GY_CUPTI_PEER, GY_CUPTI_MEMSET };
enum { KINDS = sizeof kinds / sizeof *kinds };

/* One run joins or parts at a time, under `joining`. The list of runs, what is in them, and `spare` are under `mutex`,
 * with which CUPTI is never called, since its callbacks take it. */
static pthread_mutex_t joining = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static gy_cupti_api api; /* while there are runs */
static gy_cupti_subscriber subscriber;
static gy_cupti *runs;
static atomic_uint submissions; /* runs that submit; without any, calls belong to no run */
static uint8_t *spare[MOST_SPARE];
static unsigned spares;

void gy_cupti_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void gy_cupti_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* ---- what the driver is asked to do ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Calls that CUPTI makes a record of, or, of a graph, several. */
static bool gives_work(const char *function)
{
    return begins(function, "cuMemcpy") || begins(function, "cuMemset") || begins(function, "cuGraphLaunch") ||
           (begins(function, "cuLaunch") && !begins(function, "cuLaunchHostFunc"));
}

static gy_cupti *run_of_thread(void)
{
    gy_cupti *c = runs;
    while (c && !(c->submits && pthread_equal(c->by, pthread_self())))
        c = c->next;
    return c;
}

static void hear_call(const gy_cupti_call_data *call)
{
    if (call->site != 0 || !gives_work(call->function))
        return;
    gy_cupti_lock();
    gy_cupti *c = run_of_thread();
    if (c && !c->captures && c->op != GY_NONE)
        c->incomplete = !gy_cupti_table_add(&c->calls, call->correlation, c->op) || c->incomplete;
    gy_cupti_unlock();
}

/* A library may give nodes to a graph by a thread of its own, while the one that captures waits for it. */
static gy_cupti *run_of_graph(CUgraph graph)
{
    gy_cupti *c = run_of_thread();
    if (c)
        return c;
    for (c = runs; c && !(c->captures && c->graph && c->graph == graph);)
        c = c->next;
    return c;
}

/* The number of a node that has a record; else 0. */
static uint64_t number_of(CUgraphNode node, int type)
{
    uint64_t number = 0;
    bool timed =
        type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
    return timed && api.cuptiGetGraphNodeId(node, &number) == GY_CUPTI_OK ? number : 0;
}

static void hear_created(const gy_cupti_graph_data *node)
{
    uint64_t number = number_of(node->node, node->type);
    gy_cupti_lock();
    gy_cupti *c = number ? run_of_graph(node->graph) : NULL;
    if (c && c->captures && c->op != GY_NONE) { /* else it is made while the graph is instantiated, or is no op's */
        c->graph = node->graph;
        c->incomplete = !gy_cupti_table_add(&c->nodes, number, c->op) || c->incomplete;
    }
    gy_cupti_unlock();
}

/* Numbers are of one graph only, so it is no matter who copies it, or when. */
static void hear_cloned(const gy_cupti_graph_data *node)
{
    uint64_t number = number_of(node->node, node->type), like = number ? number_of(node->original, node->type) : 0;
    gy_cupti_lock();
    for (gy_cupti *c = like ? runs : NULL; c; c = c->next)
        gy_cupti_table_alias(&c->nodes, number, like);
    gy_cupti_unlock();
}

static void hear(void *user, int domain, uint32_t id, const void *data)
{
    const gy_cupti_resource_data *resource = data;
    (void)user;
    if (domain == GY_CUPTI_DRIVER) {
        if (atomic_load_explicit(&submissions, memory_order_acquire))
            hear_call(data);
    } else if (domain == GY_CUPTI_RESOURCE && id == GY_CUPTI_CREATED) {
        hear_created(resource->graph);
    } else if (domain == GY_CUPTI_RESOURCE && id == GY_CUPTI_CLONED) {
        hear_cloned(resource->graph);
    }
}

void gy_cupti_enter(gy_cuda *h, bool capture)
{
    gy_cupti *c = h->cupti;
    if (!c || !c->on)
        return;
    gy_cupti_lock();
    if (capture)
        gy_cupti_table_clear(&c->nodes);
    c->submits = true;
    c->captures = capture;
    c->by = pthread_self();
    c->op = GY_NONE;
    c->graph = NULL;
    atomic_fetch_add(&submissions, 1);
    gy_cupti_unlock();
}

void gy_cupti_op(gy_cuda *h, uint32_t op)
{
    if (h->cupti && h->cupti->on) {
        gy_cupti_lock();
        h->cupti->op = op;
        gy_cupti_unlock();
    }
}

void gy_cupti_leave(gy_cuda *h)
{
    gy_cupti *c = h->cupti;
    if (c && c->submits) {
        gy_cupti_lock();
        c->submits = c->captures = false;
        atomic_fetch_sub(&submissions, 1);
        gy_cupti_unlock();
    }
}

/* ---- what the devices have done ---- */

static void request(uint8_t **buffer, size_t *size, size_t *records)
{
    gy_cupti_lock();
    *buffer = spares ? spare[--spares] : gy_alloc(BUFFER);
    gy_cupti_unlock();
    *size = *buffer ? BUFFER : 0; /* without one, records are dropped */
    *records = 0;                 /* as many as there is room for */
}

static uint32_t number32(const void *record, size_t at)
{
    uint32_t number;
    memcpy(&number, (const char *)record + at, sizeof number);
    return number;
}

static uint64_t number64(const void *record, size_t at)
{
    uint64_t number;
    memcpy(&number, (const char *)record + at, sizeof number);
    return number;
}

static void take_in(const gy_cupti_record *r)
{
    size_t correlation = GY_CUPTI_MEMORY_CORRELATION, node = GY_CUPTI_MEMORY_NODE;
    if (r->kind == GY_CUPTI_KERNEL) {
        correlation = GY_CUPTI_KERNEL_CORRELATION;
        node = GY_CUPTI_KERNEL_NODE;
    } else if (r->kind == GY_CUPTI_PEER) {
        correlation = GY_CUPTI_PEER_CORRELATION;
        node = GY_CUPTI_PEER_NODE;
    } else if (r->kind != GY_CUPTI_MEMCPY && r->kind != GY_CUPTI_MEMSET) {
        return;
    }
    gy_cupti_lock();
    for (gy_cupti *c = runs; c; c = c->next)
        if (gy_cupti_take_record(c, number32(r, correlation), number64(r, node), r->start, r->end))
            break;
    gy_cupti_unlock();
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    void *record = NULL;
    (void)context;
    (void)stream;
    (void)size;
    while (buffer && valid && api.cuptiActivityGetNextRecord(buffer, valid, &record) == GY_CUPTI_OK)
        take_in(record);
    gy_cupti_lock();
    if (buffer && runs && spares < MOST_SPARE) {
        spare[spares++] = buffer;
        buffer = NULL;
    }
    gy_cupti_unlock();
    gy_free(buffer);
}

void gy_cupti_flush(const gy_cupti *c, bool forced)
{
    bool others = false;
    gy_cupti_lock();
    for (const gy_cupti *run = runs; run; run = run->next)
        others = others || (run != c && run->busy);
    gy_cupti_unlock();
    if (!forced || !others)
        api.cuptiActivityFlushAll(forced);
}

/* The quickest of some looks at both clocks. */
bool gy_cupti_offset(int64_t *ns)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t there = 0;
        int64_t before = gy_now_ns();
        bool known = api.cuptiGetTimestamp(&there) == GY_CUPTI_OK && there;
        int64_t took = gy_now_ns() - before;
        if (known && took < least) {
            least = took;
            *ns = (int64_t)there - (before + took / 2);
        }
    }
    return least < INT64_MAX;
}

/* ---- coming and going ---- */

/* CUPTI keeps addresses of this code, also when the module is closed. */
static void stay_loaded(void)
{
    Dl_info self;
    if (dladdr(&kinds, &self) && self.dli_fname)
        dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static void detach(void)
{
    for (int i = 0; i < KINDS; i++)
        api.cuptiActivityDisable(kinds[i]);
    api.cuptiActivityFlushAll(1);
    api.cuptiEnableDomain(0, subscriber, GY_CUPTI_DRIVER);
    api.cuptiEnableCallback(0, subscriber, GY_CUPTI_RESOURCE, GY_CUPTI_CREATED);
    api.cuptiEnableCallback(0, subscriber, GY_CUPTI_RESOURCE, GY_CUPTI_CLONED);
    api.cuptiUnsubscribe(subscriber);
    gy_cupti_lock();
    while (spares)
        gy_free(spare[--spares]);
    gy_cupti_unlock();
}

/* Subscribes to CUPTI. Returns why it cannot be used, or NULL. */
static const char *attach(int driver_version)
{
    const char *why;
    if (gy_cupti_load(&api, driver_version, &why, NULL))
        return why;
    int code = api.cuptiSubscribe(&subscriber, hear, NULL);
    if (code != GY_CUPTI_OK)
        return code == GY_CUPTI_TAKEN ? "another tool uses CUPTI" : "CUPTI cannot be used";
    stay_loaded();
    code = api.cuptiActivityRegisterCallbacks(request, complete);
    code = code ? code : api.cuptiEnableDomain(1, subscriber, GY_CUPTI_DRIVER);
    code = code ? code : api.cuptiEnableCallback(1, subscriber, GY_CUPTI_RESOURCE, GY_CUPTI_CREATED);
    code = code ? code : api.cuptiEnableCallback(1, subscriber, GY_CUPTI_RESOURCE, GY_CUPTI_CLONED);
    for (int i = 0; i < KINDS && code == GY_CUPTI_OK; i++)
        code = api.cuptiActivityEnable(kinds[i]);
    if (code != GY_CUPTI_OK) {
        detach();
        return "CUPTI cannot be used";
    }
    return NULL;
}

void gy_cupti_subscribe(gy_cupti *c, int driver_version, const char **why)
{
    pthread_mutex_lock(&joining);
    *why = runs ? NULL : attach(driver_version);
    if (!*why) {
        gy_cupti_lock();
        c->next = runs;
        runs = c;
        gy_cupti_unlock();
    }
    pthread_mutex_unlock(&joining);
}

void gy_cupti_unsubscribe(gy_cupti *c)
{
    pthread_mutex_lock(&joining);
    gy_cupti **link = &runs;
    while (*link && *link != c)
        link = &(*link)->next;
    if (*link) {
        gy_cupti_lock();
        *link = c->next;
        gy_cupti_unlock();
        if (!runs)
            detach();
    }
    pthread_mutex_unlock(&joining);
}
