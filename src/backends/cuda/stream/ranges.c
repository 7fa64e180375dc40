/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/stream/ranges.h"

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAS_NVTX 1
#endif
#endif

#ifdef HAS_NVTX

#include "base/memory.h"
#include "base/text.h"
#include <inttypes.h>
#include <stdlib.h>

struct gy_ranges {
    nvtxDomainHandle_t domain;
    nvtxStringHandle_t *op; /* its text */
};

/* True if a profiler told the header where it is; without one there are no ranges. */
static bool is_watched(void)
{
    return getenv("NVTX_INJECTION64_PATH") != NULL;
}

gy_ranges *gy_ranges_new(const gantry_schedule *s)
{
    gy_ranges *r = is_watched() ? gy_calloc(1, sizeof *r) : NULL;
    if (!r)
        return NULL;
    r->domain = nvtxDomainCreateA("gantry");
    r->op = gy_calloc(s->ops.count + 1, sizeof *r->op);
    gy_text text = { 0 };
    for (uint32_t i = 0; r->op && r->domain && i < s->ops.count; i++) {
        text.length = 0;
        gy_op_text(&text, s, i);
        r->op[i] = nvtxDomainRegisterStringA(r->domain, text.failed ? "op" : text.at);
    }
    gy_text_free(&text);
    if (!r->op || !r->domain) {
        gy_ranges_free(r);
        return NULL;
    }
    return r;
}

void gy_ranges_free(gy_ranges *r)
{
    if (r && r->domain)
        nvtxDomainDestroy(r->domain);
    if (r)
        gy_free((void *)r->op);
    gy_free(r);
}

static void push(const gy_ranges *r, nvtxEventAttributes_t *a)
{
    a->version = NVTX_VERSION;
    a->size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    nvtxDomainRangePushEx(r->domain, a);
}

void gy_range_start(const gy_ranges *r, uint64_t start)
{
    if (r) {
        nvtxEventAttributes_t a = { .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
                                    .payload = { .ullValue = start },
                                    .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                    .message = { .ascii = "start" } };
        push(r, &a);
    }
}

void gy_range_op(const gy_ranges *r, uint32_t op)
{
    if (r) {
        nvtxEventAttributes_t a = { .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
                                    .payload = { .ullValue = op },
                                    .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                    .message = { .registered = r->op[op] } };
        push(r, &a);
    }
}

void gy_range_end(const gy_ranges *r)
{
    if (r)
        nvtxDomainRangePop(r->domain);
}

#else

gy_ranges *gy_ranges_new(const gantry_schedule *s)
{
    (void)s;
    return NULL;
}

void gy_ranges_free(gy_ranges *r)
{
    (void)r;
}

void gy_range_start(const gy_ranges *r, uint64_t start)
{
    (void)r;
    (void)start;
}

void gy_range_op(const gy_ranges *r, uint32_t op)
{
    (void)r;
    (void)op;
}

void gy_range_end(const gy_ranges *r)
{
    (void)r;
}

#endif
