/* SPDX-License-Identifier: Apache-2.0 */
/**
 * libcupti.so.13 for tests, for the fake driver, by the environment variable FAKE_CUPTI, a list of words that is read
 * at every call. Unset: it cannot be initialised. What is done wrong, and what is left when the program ends, ends it
 * with a line on standard error.
 *
 *   on        as it should be
 *   old       a version of CUDA 11.6
 *   taken     somebody else has subscribed
 *   refuse    no kind of record can be had
 *   silent    there are no records
 *   blind     nodes of graphs are not told of
 *   late=N    records come with the N-th flush
 *   lose=N    every N-th record is lost
 *   blank=N   every N-th record is without times
 *   back=N    every N-th record ends before it begins
 */
#include "control.h"

#if defined(__has_include)
#if __has_include(<cupti.h>)
#define HAS_CUPTI 1
#endif
#endif

#ifdef HAS_CUPTI
#pragma GCC visibility push(default)
#include <cupti.h>
#pragma GCC visibility pop

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Buffers take as many records at most, whatever room they have. */
enum { MOST_HELD = 1 << 14, PER_BUFFER = 3, KINDS = 64, EPOCH_S = 1700000000 };

/* Any record. */
typedef union record {
    CUpti_Activity any;
    CUpti_ActivityKernel10 kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemcpyPtoP4 peer;
    CUpti_ActivityMemset4 set;
} record;

static struct {
    bool subscribed, domain, created, cloned, enabled[KINDS];
    CUpti_CallbackFunc callback;
    void *user;
    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc complete;
    record held[MOST_HELD]; /* not in a buffer yet */
    int count, flushes;
    unsigned records;
} cupti;

static struct CUpti_Subscriber_st {
    int one;
} subscriber;

/* 0: not in the list; "on": 1, "late=3": 3 */
static unsigned word(const char *name)
{
    const char *list = getenv("FAKE_CUPTI");
    size_t length = strlen(name);
    while (list && *list) {
        if (strncmp(list, name, length) == 0 && strchr("=,", list[length]))
            return list[length] == '=' ? (unsigned)atoi(list + length + 1) : 1;
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return 0;
}

/* ---- what the driver tells ---- */

static void hear_call(const char *name, uint32_t correlation)
{
    CUpti_CallbackData data = { .callbackSite = CUPTI_API_ENTER, .functionName = name, .correlationId = correlation };
    for (int exit = 0; exit < 2 && cupti.domain; exit++) {
        data.callbackSite = exit ? CUPTI_API_EXIT : CUPTI_API_ENTER;
        cupti.callback(cupti.user, CUPTI_CB_DOMAIN_DRIVER_API, 1, &data);
    }
}

/* A copy is made before it is told what it is a copy of. */
static void hear_node(CUgraph graph, CUgraphNode node, CUgraphNode original, CUgraphNodeType type)
{
    CUpti_GraphData data = { .graph = graph, .node = node, .nodeType = type };
    CUpti_ResourceData resource = { .resourceDescriptor = &data };
    if (cupti.created && !word("blind"))
        cupti.callback(cupti.user, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &resource);
    if (original && cupti.cloned && !word("blind")) {
        data.originalNode = original;
        cupti.callback(cupti.user, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, &resource);
    }
}

/* The clock is not the one of the process, and numbers of nodes are not their handles. */
static uint64_t stamp(int64_t ns)
{
    return (uint64_t)ns + EPOCH_S * UINT64_C(1000000000);
}

static uint64_t number(CUgraphNode node)
{
    return node ? ((uint64_t)7 << 32) + (uint64_t)(uintptr_t)node : 0;
}

static CUpti_ActivityKind kind_of(const fakeCudaPiece *p)
{
    static const CUpti_ActivityKind kinds[] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                                CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET };
    return kinds[p->kind];
}

#define FILL(member)                                                                                                   \
    do {                                                                                                               \
        r->member.start = start;                                                                                       \
        r->member.end = end;                                                                                           \
        r->member.deviceId = (uint32_t)p->device;                                                                      \
        r->member.correlationId = p->correlation;                                                                      \
        r->member.graphNodeId = number(p->node);                                                                       \
    } while (0)

static void fill(record *r, const fakeCudaPiece *p, uint64_t start, uint64_t end)
{
    memset(r, 0xA5, sizeof *r);
    r->any.kind = kind_of(p);
    switch (p->kind) {
    case FAKE_KERNEL:
        FILL(kernel);
        break;
    case FAKE_COPY:
        FILL(copy);
        break;
    case FAKE_PEER:
        FILL(peer);
        break;
    case FAKE_SET:
        FILL(set);
        break;
    }
}

static void hear_done(const fakeCudaPiece *p)
{
    unsigned lose = word("lose"), blank = word("blank"), back = word("back");
    if (!cupti.enabled[kind_of(p)] || word("silent") || cupti.count == MOST_HELD)
        return;
    cupti.records++;
    if (lose && cupti.records % lose == 0)
        return;
    bool known = !blank || cupti.records % blank != 0;
    uint64_t end = stamp(p->end > p->start ? p->end : p->start + 1);
    end = back && cupti.records % back == 0 ? stamp(p->start) - 1 : end;
    fill(&cupti.held[cupti.count++], p, known ? stamp(p->start) : 0, known ? end : 0);
}

/* ---- functions ---- */

CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = word("old") ? 17 : CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *to, CUpti_CallbackFunc callback, void *user)
{
    static const fakeCudaWatch watch = { hear_call, hear_node, hear_done };
    if (word("taken") || cupti.subscribed)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    if (!word("on"))
        return CUPTI_ERROR_NOT_INITIALIZED;
    cupti.subscribed = true;
    cupti.callback = callback;
    cupti.user = user;
    *to = &subscriber;
    fakeCudaWatchBy(&watch);
    return CUPTI_SUCCESS;
}

static void check(CUpti_SubscriberHandle who, const char *what)
{
    if (!cupti.subscribed || who != &subscriber)
        fakeCudaWrong(what);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle who)
{
    check(who, "cuptiUnsubscribe of nobody");
    for (int i = 0; i < KINDS; i++)
        if (cupti.enabled[i])
            fakeCudaWrong("cuptiUnsubscribe while records are still asked for");
    if (cupti.domain || cupti.created || cupti.cloned)
        fakeCudaWrong("cuptiUnsubscribe while callbacks are on");
    fakeCudaWatchBy(NULL);
    cupti.subscribed = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle who, CUpti_CallbackDomain domain)
{
    check(who, "cuptiEnableDomain without a subscription");
    cupti.domain = domain == CUPTI_CB_DOMAIN_DRIVER_API ? enable != 0 : cupti.domain;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle who, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id)
{
    check(who, "cuptiEnableCallback without a subscription");
    if (domain != CUPTI_CB_DOMAIN_RESOURCE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    cupti.created = id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED ? enable != 0 : cupti.created;
    cupti.cloned = id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED ? enable != 0 : cupti.cloned;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete)
{
    check(&subscriber, "cuptiActivityRegisterCallbacks before a subscription");
    cupti.request = request;
    cupti.complete = complete;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    check(&subscriber, "cuptiActivityEnable before a subscription");
    if (word("refuse"))
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    cupti.enabled[kind] = true;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    cupti.enabled[kind] = false;
    return CUPTI_SUCCESS;
}

static size_t size_of(CUpti_ActivityKind kind)
{
    return kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? sizeof(CUpti_ActivityKernel10)
           : kind == CUPTI_ACTIVITY_KIND_MEMCPY          ? sizeof(CUpti_ActivityMemcpy6)
           : kind == CUPTI_ACTIVITY_KIND_MEMCPY2         ? sizeof(CUpti_ActivityMemcpyPtoP4)
                                                         : sizeof(CUpti_ActivityMemset4);
}

/* A buffer with some of what is held. No buffer: all is lost. */
static int deliver(const record *from, int count)
{
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0, used = 0;
    int taken = 0;
    cupti.request(&buffer, &size, &most);
    while (buffer && taken < count && taken < PER_BUFFER && used + size_of(from[taken].any.kind) <= size) {
        memcpy(buffer + used, &from[taken], size_of(from[taken].any.kind));
        used += size_of(from[taken++].any.kind);
    }
    if (buffer)
        cupti.complete(NULL, 0, buffer, size, used);
    return buffer ? taken : count;
}

CUptiResult cuptiActivityFlushAll(uint32_t forced)
{
    static record held[MOST_HELD];
    unsigned late = word("late");
    if (!cupti.request)
        return CUPTI_ERROR_INVALID_OPERATION;
    fakeCudaLock();
    cupti.flushes++;
    int count = forced || !late || cupti.flushes % (int)late == 0 ? cupti.count : 0;
    memcpy(held, cupti.held, (size_t)count * sizeof *held);
    cupti.count -= count;
    for (int done = 0; done < count;)
        done += deliver(held + done, count - done);
    fakeCudaUnlock();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **at)
{
    size_t next = *at ? (size_t)((uint8_t *)*at - buffer) + size_of((*at)->kind) : 0;
    if (next >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *at = (CUpti_Activity *)(void *)(buffer + next);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *ns)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *ns = stamp((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id)
{
    *id = number(node);
    return node ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

static void __attribute__((destructor)) check_left(void)
{
    if (cupti.subscribed)
        fakeCudaWrong("CUPTI: somebody has subscribed and not left");
}
#else
#include <stdint.h>

/* Without the headers it can be found, and not be initialised. */
#define REFUSE(name)                                                                                                   \
    __attribute__((visibility("default"))) int name(void);                                                             \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return 15;                                                                                                     \
    }
REFUSE(cuptiSubscribe)
REFUSE(cuptiUnsubscribe)
REFUSE(cuptiEnableDomain)
REFUSE(cuptiEnableCallback)
REFUSE(cuptiActivityRegisterCallbacks)
REFUSE(cuptiActivityEnable)
REFUSE(cuptiActivityDisable)
REFUSE(cuptiActivityFlushAll)
REFUSE(cuptiActivityGetNextRecord)
REFUSE(cuptiGetTimestamp)
REFUSE(cuptiGetGraphNodeId)

__attribute__((visibility("default"))) int cuptiGetVersion(uint32_t *version);
int cuptiGetVersion(uint32_t *version)
{
    *version = 130000;
    return 0;
}
#endif
