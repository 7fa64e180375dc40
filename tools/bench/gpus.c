/* SPDX-License-Identifier: Apache-2.0 */
#include "gpus.h"

#include "command.h"
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_US 30e6
enum { SPINS = 4000 };

/* In PTX, so that it is there without a CUDA toolkit too: the driver compiles it. 256 threads copy 16 bytes each. */
static const char tiny_kernel[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                  ".visible .entry gantry_tiny(.param .u64 to, .param .u64 from)\n{\n"
                                  "    .reg .u64 %rd<6>;\n    .reg .u32 %r<6>;\n"
                                  "    ld.param.u64 %rd1, [to];\n    ld.param.u64 %rd2, [from];\n"
                                  "    cvta.to.global.u64 %rd1, %rd1;\n    cvta.to.global.u64 %rd2, %rd2;\n"
                                  "    mov.u32 %r1, %tid.x;\n    mul.wide.u32 %rd3, %r1, 16;\n"
                                  "    add.u64 %rd4, %rd1, %rd3;\n    add.u64 %rd5, %rd2, %rd3;\n"
                                  "    ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd5];\n"
                                  "    st.global.v4.u32 [%rd4], {%r2, %r3, %r4, %r5};\n    ret;\n}\n";

gantry_status bench_error(gantry_error *err, gantry_status status, const char *format, ...)
{
    va_list arguments;
    if (!err)
        return status;
    *err = (gantry_error){ .status = status, .device = -1 };
    va_start(arguments, format);
    vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    return status;
}

gantry_status gpus_check(const gpus *g, CUresult code, int gpu, const char *what, gantry_error *err)
{
    const char *name = NULL, *text = NULL;
    if (code == CUDA_SUCCESS)
        return GANTRY_OK;
    g->d.cuGetErrorName(code, &name);
    g->d.cuGetErrorString(code, &text);
    bench_error(err, GANTRY_E_DEVICE, "%s on device \"%s\": %s (%d): %s", what, g->at[gpu].id,
                name ? name : "an error without a name", (int)code, text ? text : "no text");
    if (err) {
        err->native = (int32_t)code;
        err->device = g->at[gpu].index;
    }
    return GANTRY_E_DEVICE;
}

gantry_status gpus_use(const gpus *g, int gpu, gantry_error *err)
{
    return gpus_check(g, g->d.cuCtxSetCurrent(g->at[gpu].context), gpu, "making the context current", err);
}

/* ---- waiting ---- */

static void rest(unsigned polls)
{
    if (polls > SPINS)
        nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    else if (polls > SPINS / 2)
        sched_yield();
}

gantry_status gpus_wait(gpus *g, CUevent event, int gpu, gantry_error *err)
{
    double until = now_us() + PATIENCE_US;
    CUresult code;
    for (unsigned polls = 0; (code = g->d.cuEventQuery(event)) == CUDA_ERROR_NOT_READY; polls++) {
        if (now_us() > until) {
            g->hung = true;
            return bench_error(err, GANTRY_E_TIMEOUT,
                               "device \"%s\" did not end what it was given to measure in %.0f s", g->at[gpu].id,
                               PATIENCE_US / 1e6);
        }
        rest(polls);
    }
    return gpus_check(g, code, gpu, "measuring", err);
}

static gantry_status drain(gpus *g)
{
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < g->count && !status; i++) {
        one_gpu *p = &g->at[i];
        for (int k = 0; k < GPU_STREAMS && p->stream[k] && p->mark[0] && !status; k++) {
            status = gpus_use(g, i, NULL);
            if (!status)
                status = gpus_check(g, g->d.cuEventRecord(p->mark[0], p->stream[k]), i, "recording an event", NULL);
            if (!status)
                status = gpus_wait(g, p->mark[0], i, NULL);
        }
    }
    return status;
}

/* The first failure may be that of a call long ago. */
bool gpus_settle(gpus *g)
{
    if (!g->hung && drain(g))
        drain(g);
    return !g->hung;
}

/* ---- the driver ---- */

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

static bool find(void *library, const char *name, void *to)
{
    void *found = dlsym(library, name);
    memcpy(to, &found, sizeof found);
    return found;
}

/* The library stays loaded: starting the driver again would take most of a second. */
static gantry_status open_driver(driver *d, int *devices, gantry_error *err)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return bench_error(err, GANTRY_E_DEVICE, "no NVIDIA driver: %s", dlerror());
    bool all = true;
#define X_(name) all = find(library, TEXT(name), &d->name) && all;
    DRIVER_FUNCTIONS(X_)
#undef X_
    all = find(library, "cuEventElapsedTime", &d->elapsed) && all;
#if CUDA_VERSION >= 12030
    find(library, "cuStreamGetCaptureInfo_v3", &d->capture_info);
    find(library, "cuStreamUpdateCaptureDependencies_v2", &d->capture_behind);
#endif
    dlclose(library);
    if (!all)
        return bench_error(err, GANTRY_E_DEVICE, "libcuda.so.1 is too old; CUDA 11.4 or later is needed");
    if (d->cuInit(0) || d->cuDeviceGetCount(devices) || *devices < 1)
        return bench_error(err, GANTRY_E_DEVICE, "the NVIDIA driver sees no device");
    return GANTRY_OK;
}

/* ---- the machine ---- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Its GPUs with memories of their own, by their ordinals, which machine files tell. */
static void find_gpus(gpus *g, const json_t *machine, int most)
{
    const char *host = text_of(json_array_get(json_object_get(machine, "memories"), 0), "id");
    size_t i;
    json_t *d;
    int place = 0;
    json_array_foreach(json_object_get(machine, "devices"), i, d)
    {
        if (strcmp(text_of(d, "type"), "gpu") != 0)
            continue;
        const json_t *ordinal = json_object_get(d, "ordinal");
        if (g->count < most && strcmp(text_of(d, "memory"), host) != 0) {
            one_gpu *p = &g->at[g->count++];
            p->index = (int)i;
            p->ordinal = ordinal ? (int)json_integer_value(ordinal) : place;
            snprintf(p->id, sizeof p->id, "%s", text_of(d, "id"));
            snprintf(p->kind, sizeof p->kind, "%s", text_of(d, "kind"));
        }
        place++;
    }
}

static gantry_status read_machine(gpus *g, const gantry_machine *machine, int wanted, int devices, gantry_error *err)
{
    char *text = NULL;
    size_t length, most = gantry_machine_device_count(machine);
    g->at = calloc(most, sizeof *g->at);
    g->peer = calloc(most * most, sizeof *g->peer);
    if (!g->at || !g->peer)
        return bench_error(err, GANTRY_E_NOMEM, "out of memory");
    gantry_status status = gantry_machine_json(machine, &text, &length, err);
    if (status)
        return status;
    json_t *document = json_loads(text, 0, NULL);
    find_gpus(g, document, wanted ? wanted : (int)most);
    json_decref(document);
    gantry_free(text);
    if (g->count == 0 || g->count < wanted)
        return bench_error(err, GANTRY_E_DEVICE, "machine \"%s\" has %d GPUs with memories of their own, not %d",
                           gantry_machine_name(machine), g->count, wanted ? wanted : 1);
    for (int i = 0; i < g->count; i++)
        if (g->at[i].ordinal >= devices)
            return bench_error(err, GANTRY_E_DEVICE, "device \"%s\" is GPU %d, and this computer has %d", g->at[i].id,
                               g->at[i].ordinal, devices);
    return GANTRY_OK;
}

/* ---- opening ---- */

static gantry_status open_streams(gpus *g, int i, gantry_error *err)
{
    one_gpu *p = &g->at[i];
    CUresult code = CUDA_SUCCESS;
    for (int k = 0; k < GPU_STREAMS && !code; k++) {
        code = g->d.cuStreamCreate(&p->stream[k], CU_STREAM_NON_BLOCKING);
        p->stream[k] = code ? NULL : p->stream[k];
    }
    for (int k = 0; k < GPU_MARKS + 2 && !code; k++) {
        CUevent *event = k == 0 ? &p->begin : k == 1 ? &p->end : &p->mark[k - 2];
        code = g->d.cuEventCreate(event, k < 2 ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
        *event = code ? NULL : *event;
    }
    return gpus_check(g, code, i, "creating streams and events", err);
}

static gantry_status open_kernel(gpus *g, int i, gantry_error *err)
{
    one_gpu *p = &g->at[i];
    CUresult code = g->d.cuModuleLoadData(&p->module, tiny_kernel);
    p->module = code ? NULL : p->module;
    if (!code)
        code = g->d.cuModuleGetFunction(&p->tiny, p->module, "gantry_tiny");
    return gpus_check(g, code, i, "loading a tiny kernel", err);
}

static gantry_status open_blocks(gpus *g, int i, uint64_t host, gantry_error *err)
{
    one_gpu *p = &g->at[i];
    void *block = NULL;
    CUresult code = g->d.cuMemAlloc(&p->block, 2 * g->bytes);
    p->block = code ? 0 : p->block;
    if (!code)
        code = g->d.cuMemHostAlloc(&block, host, CU_MEMHOSTALLOC_PORTABLE);
    p->host = code ? NULL : block;
    return gpus_check(g, code, i, "allocating memory to measure with", err);
}

static gantry_status open_gpu(gpus *g, int i, uint64_t host, gantry_error *err)
{
    one_gpu *p = &g->at[i];
    CUresult code = g->d.cuDeviceGet(&p->device, p->ordinal);
    if (!code)
        code = g->d.cuDevicePrimaryCtxRetain(&p->context, p->device);
    p->context = code ? NULL : p->context;
    gantry_status status = gpus_check(g, code, i, "opening the primary context", err);
    if (!status)
        status = gpus_use(g, i, err);
    if (!status)
        status = open_streams(g, i, err);
    if (!status)
        status = open_kernel(g, i, err);
    return status ? status : open_blocks(g, i, host, err);
}

/* As the back end does: GANTRY_CUDA_PEERS is "off" where access is broken. */
static bool enable(gpus *g, int from, int to)
{
    const char *wanted = getenv("GANTRY_CUDA_PEERS");
    int can = 0;
    if ((wanted && strcmp(wanted, "off") == 0) || gpus_use(g, from, NULL) ||
        g->d.cuDeviceCanAccessPeer(&can, g->at[from].device, g->at[to].device) || !can)
        return false;
    CUresult code = g->d.cuCtxEnablePeerAccess(g->at[to].context, 0);
    return code == CUDA_SUCCESS || code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

static void open_peers(gpus *g)
{
    for (int a = 0; a < g->count; a++)
        for (int b = a + 1; b < g->count; b++)
            g->peer[a * g->count + b] = g->peer[b * g->count + a] =
                g->at[a].context != g->at[b].context && enable(g, a, b) && enable(g, b, a);
}

gantry_status gpus_open(gpus *g, const gantry_machine *machine, int count, uint64_t bytes, uint64_t host, bool peers,
                        gantry_error *err)
{
    int devices = 0;
    *g = (gpus){ .bytes = bytes };
    gantry_status status = open_driver(&g->d, &devices, err);
    if (status)
        return status;
    if (g->d.cuCtxGetCurrent(&g->before))
        g->before = NULL;
    status = read_machine(g, machine, count, devices, err);
    for (int i = 0; i < g->count && !status; i++)
        status = open_gpu(g, i, host, err);
    if (!status && peers)
        open_peers(g);
    if (status)
        gpus_close(g);
    return status;
}

static void close_gpu(gpus *g, int i)
{
    one_gpu *p = &g->at[i];
    if (!p->context || gpus_use(g, i, NULL))
        return;
    for (int k = 0; k < GPU_STREAMS; k++)
        if (p->stream[k])
            g->d.cuStreamDestroy(p->stream[k]);
    for (int k = 0; k < GPU_MARKS + 2; k++) {
        CUevent event = k == 0 ? p->begin : k == 1 ? p->end : p->mark[k - 2];
        if (event)
            g->d.cuEventDestroy(event);
    }
    if (p->module)
        g->d.cuModuleUnload(p->module);
    if (p->block)
        g->d.cuMemFree(p->block);
    if (p->host)
        g->d.cuMemFreeHost(p->host);
}

void gpus_close(gpus *g)
{
    bool idle = gpus_settle(g);
    for (int i = 0; i < g->count && idle; i++)
        close_gpu(g, i);
    g->d.cuCtxSetCurrent(g->before); /* before its context may go */
    for (int i = 0; i < g->count && idle; i++)
        if (g->at[i].context)
            g->d.cuDevicePrimaryCtxRelease(g->at[i].device);
    free(g->at);
    free(g->peer);
    *g = (gpus){ .count = 0 };
}

/* ---- work ---- */

bool gpus_reach(const gpus *g, int a, int b)
{
    return g->at[a].context == g->at[b].context || g->peer[a * g->count + b];
}

gantry_status gpus_order(gpus *g, int from_gpu, CUstream from, int to_gpu, CUstream to, gantry_error *err)
{
    one_gpu *p = &g->at[from_gpu];
    CUevent mark = p->mark[p->next_mark++ % GPU_MARKS];
    gantry_status status = gpus_use(g, from_gpu, err);
    if (!status)
        status = gpus_check(g, g->d.cuEventRecord(mark, from), from_gpu, "recording an event", err);
    if (!status)
        status = gpus_use(g, to_gpu, err);
    return status ? status : gpus_check(g, g->d.cuStreamWaitEvent(to, mark, 0), to_gpu, "waiting for an event", err);
}

gantry_status gpus_order_all(gpus *g, int count, bool before, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (int i = 1; i < count && !status; i++) {
        int from = before ? 0 : i, to = before ? i : 0;
        status = gpus_order(g, from, g->at[from].stream[0], to, g->at[to].stream[0], err);
    }
    return status;
}

gantry_status gpus_tiny(gpus *g, int gpu, gantry_error *err)
{
    CUdeviceptr from = g->at[gpu].block, to = from + g->bytes;
    gantry_status status = gpus_use(g, gpu, err);
    if (status)
        return status;
    CUresult code = g->d.cuLaunchKernel(g->at[gpu].tiny, 1, 1, 1, TINY_BYTES / 16, 1, 1, 0, g->at[gpu].stream[0],
                                        (void *[]){ &to, &from }, NULL);
    return gpus_check(g, code, gpu, "launching a tiny kernel", err);
}

static gantry_status too_old(gantry_error *err)
{
    return bench_error(err, GANTRY_E_UNSUPPORTED,
                       "dependencies of a capture are set from CUDA 12.3 on, and this is older");
}

#if CUDA_VERSION >= 12030
gantry_status gpus_behind(const gpus *g, int gpu, CUgraphNode *nodes, size_t count, gantry_error *err)
{
    if (!g->d.capture_info || !g->d.capture_behind)
        return too_old(err);
    CUresult code = g->d.capture_behind(g->at[gpu].stream[0], nodes, NULL, count, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    return gpus_check(g, code, gpu, "setting what comes before in a capture", err);
}

gantry_status gpus_last(const gpus *g, int gpu, CUgraphNode *node, gantry_error *err)
{
    CUstreamCaptureStatus state;
    const CUgraphNode *front = NULL;
    const CUgraphEdgeData *edges = NULL; /* unasked for, they would be an error if there were any */
    size_t fronts = 0;
    if (!g->d.capture_info || !g->d.capture_behind)
        return too_old(err);
    CUresult code = g->d.capture_info(g->at[gpu].stream[0], &state, NULL, NULL, &front, &edges, &fronts);
    if (!code && fronts == 1)
        *node = front[0];
    return gpus_check(g,
                      code          ? code
                      : fronts == 1 ? CUDA_SUCCESS
                                    : CUDA_ERROR_UNKNOWN,
                      gpu, "asking what was captured last", err);
}
#else
gantry_status gpus_behind(const gpus *g, int gpu, CUgraphNode *nodes, size_t count, gantry_error *err)
{
    (void)g, (void)gpu, (void)nodes, (void)count;
    return too_old(err);
}

gantry_status gpus_last(const gpus *g, int gpu, CUgraphNode *node, gantry_error *err)
{
    (void)g, (void)gpu, (void)node;
    return too_old(err);
}
#endif

static gantry_status capture(gpus *g, CUgraph *graph, queue_fn *queue, void *work, gantry_error *err)
{
    gantry_status status = gpus_use(g, 0, err);
    CUstream origin = g->at[0].stream[0];
    if (!status)
        status = gpus_check(g, g->d.cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0,
                            "beginning a capture", err);
    if (status)
        return status;
    status = queue(g, work, err);
    gantry_status used = gpus_use(g, 0, status ? NULL : err);
    CUresult code = g->d.cuStreamEndCapture(origin, graph); /* after a failure, too: no stream stays captured */
    status = status ? status : used;
    return status ? status : gpus_check(g, code, 0, "ending a capture", err);
}

gantry_status gpus_capture(gpus *g, CUgraphExec *made, queue_fn *queue, void *work, gantry_error *err)
{
    CUgraph graph = NULL;
    gantry_status status = capture(g, &graph, queue, work, err);
    *made = NULL;
    if (!status) {
        CUresult code = g->d.cuGraphInstantiateWithFlags(made, graph, 0);
        *made = code ? NULL : *made;
        if (!code)
            code = g->d.cuGraphUpload(*made, g->at[0].stream[0]);
        status = gpus_check(g, code, 0, "instantiating a graph", err);
    }
    if (graph)
        g->d.cuGraphDestroy(graph);
    if (status && *made) {
        g->d.cuGraphExecDestroy(*made);
        *made = NULL;
    }
    return status;
}
