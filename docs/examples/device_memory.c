/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses CUDA itself: its arrays on a GPU are input and output of a graph, one node is a function that
 * queues work of its own, and starts come in the order of the program's stream. Nobody waits but the program, once at
 * the end. Exit code 77: there is no GPU. The driver is opened at run time here; a program of yours would link it, or
 * use the runtime API, whose streams and device pointers do as well. */
#include <gantry/gantry.h>

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { N = 100000, PARTS = 4, ROUNDS = 3, BYTES = N * sizeof(float), SKIPPED = 77 };

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x) /* cuMemAlloc is cuMemAlloc_v2 in the library */
#define FUNCTIONS(X)                                                                                                   \
    X(cuInit)                                                                                                          \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuDevicePrimaryCtxRelease)                                                                                       \
    X(cuCtxSetCurrent)                                                                                                 \
    X(cuMemAlloc)                                                                                                      \
    X(cuMemFree)                                                                                                       \
    X(cuMemHostAlloc)                                                                                                  \
    X(cuMemFreeHost)                                                                                                   \
    X(cuStreamCreate)                                                                                                  \
    X(cuStreamSynchronize)                                                                                             \
    X(cuStreamDestroy)                                                                                                 \
    X(cuMemcpyHtoDAsync)                                                                                               \
    X(cuMemcpyDtoDAsync)                                                                                               \
    X(cuMemcpyDtoHAsync)

static struct {
#define X(name) __typeof__(name) *name;
    FUNCTIONS(X)
#undef X
} cu;

static int open_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = driver;
#define X(name)                                                                                                        \
    found = found ? dlsym(driver, TEXT(name)) : NULL;                                                                  \
    memcpy((void *)&cu.name, &found, sizeof found);
    FUNCTIONS(X)
#undef X
    return found && cu.cuInit(0) == CUDA_SUCCESS;
}

/* A node. On a GPU it queues work on the launch's stream and never waits; a library would get that stream, too. */
static gantry_status keep(const gantry_launch *l)
{
    const gantry_arg *from = gantry_launch_arg(l, 0), *to = gantry_launch_arg(l, 1);
    size_t bytes = (size_t)(from->rows * from->row_bytes);
    if (!l->stream) { /* on a CPU */
        memcpy(to->data, from->data, bytes);
        return GANTRY_OK;
    }
    return cu.cuMemcpyDtoDAsync((CUdeviceptr)to->data, (CUdeviceptr)from->data, bytes, l->stream) ? GANTRY_E_KERNEL
                                                                                                  : GANTRY_OK;
}

/* y = 2 x on gpu0, where both are; a copy of it goes to host memory. */
static gantry_graph *build(gantry_buffer *x, gantry_buffer *y, gantry_buffer *kept)
{
    gantry_graph *g = gantry_graph_new("device_memory");
    *x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, ((int64_t[]){ N }));
    *y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, ((int64_t[]){ N }));
    *kept = gantry_graph_buffer(g, "kept", GANTRY_F32, 1, ((int64_t[]){ N }));
    gantry_buffer_set_class(g, *x, GANTRY_INPUT);
    gantry_buffer_output(g, *y);
    gantry_buffer_output(g, *kept);
    gantry_buffer_external(g, *x, "gpu0");
    gantry_buffer_external(g, *y, "gpu0");
    gantry_buffer_split(g, *x, PARTS);
    gantry_buffer_split(g, *y, PARTS);
    gantry_buffer_split(g, *kept, PARTS);
    for (int i = 0; i < PARTS; i++) {
        gantry_node s = gantry_graph_kernel(g, "scale", "scale"), k = gantry_graph_launch(g, "keep", keep, NULL);
        gantry_node_arg(g, s, "x", gantry_part(*x, i));
        gantry_node_arg(g, s, "y", gantry_part(*y, i));
        gantry_node_scalar(g, s, "a", 2);
        gantry_node_read(g, k, gantry_part(*y, i));
        gantry_node_write(g, k, gantry_part(*kept, i));
    }
    return g;
}

/* Upload, start and fetch in one stream: what comes next on the stream comes after the start. */
static int one_round(gantry_run *run, CUstream stream, CUdeviceptr x, CUdeviceptr y, float *host, int round,
                     gantry_error *err)
{
    uint64_t ticket;
    for (int i = 0; i < N; i++)
        host[i] = (float)(i % 100 + round);
    if (cu.cuMemcpyHtoDAsync(x, host, BYTES, stream) || gantry_run_start_on(run, stream, &ticket, err) ||
        cu.cuMemcpyDtoHAsync(host + N, y, BYTES, stream) || cu.cuStreamSynchronize(stream) ||
        gantry_run_wait(run, ticket, err)) /* every start is waited for, which takes no time here */
        return 0;
    int right = 1;
    for (int i = 0; i < N; i++)
        right = right && host[N + i] == 2 * host[i];
    return right;
}

static int use(gantry_machine *machine, CUstream stream, CUdeviceptr x, CUdeviceptr y, float *host)
{
    gantry_error err = { 0 };
    gantry_schedule *schedule = NULL;
    gantry_run *run = NULL;
    gantry_buffer bx, by, bk;
    const void *kept = NULL;
    uint64_t bytes;
    gantry_graph *g = build(&bx, &by, &bk);
    int right = !gantry_schedule_new(&schedule, g, machine, NULL, &err) &&
                !gantry_run_new(&run, schedule, NULL, &err) && !gantry_run_bind(run, bx, (void *)x, BYTES, &err) &&
                !gantry_run_bind_output(run, by, (void *)y, BYTES, &err);
    for (int i = 0; i < ROUNDS && right; i++)
        right = one_round(run, stream, x, y, host, i, &err);
    right = right && !gantry_run_output(run, bk, &kept, &bytes, &err) && memcmp(kept, host + N, BYTES) == 0;
    printf("%s %s\n", right ? "right" : "wrong", err.text);
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_graph_free(g);
    return right;
}

int main(void)
{
    gantry_machine *all = NULL, *one = NULL;
    CUcontext context;
    CUstream stream;
    CUdeviceptr x, y;
    float *host;
    int right = 0;
    if (!open_driver() || gantry_machine_detect(&all, NULL, NULL) ||
        gantry_machine_select(&one, all, "id:gpu0", NULL)) {
        puts("no GPU");
        gantry_machine_free(all);
        return SKIPPED;
    }
    /* Gantry uses the primary context of a GPU, as the runtime API does. */
    if (cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context) || cu.cuMemAlloc(&x, BYTES) ||
        cu.cuMemAlloc(&y, BYTES) || cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
        cu.cuMemHostAlloc((void **)&host, 2 * BYTES, CU_MEMHOSTALLOC_PORTABLE)) {
        puts("the GPU cannot be used");
    } else {
        right = use(one, stream, x, y, host);
        cu.cuStreamDestroy(stream);
        cu.cuMemFree(x);
        cu.cuMemFree(y);
        cu.cuMemFreeHost(host);
        cu.cuCtxSetCurrent(NULL);
        cu.cuDevicePrimaryCtxRelease(0);
    }
    gantry_machine_free(one);
    gantry_machine_free(all);
    return right ? 0 : 1;
}
