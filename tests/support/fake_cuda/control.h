/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A CUDA driver for tests: the ABI of libcuda.so.1, devices that are guarded host memory.
 *
 * Work that is queued is done lazily, by whoever asks (queries do a little, waits do all), in a random order that
 * stream order, event waits and graph edges allow: what they fail to order shows as wrong data for some seed. What a
 * real driver would do wrong in silence ends the program with a line on standard error: access to memory of a device
 * without peer access, out of bounds or freed; memory that is not page-locked in an asynchronous copy; work given to a
 * stream whose context is not current; objects that are left when the library is unloaded.
 *
 * Environment, read by the first cuInit:
 *   FAKE_CUDA_DEVICES  number of devices (1; 0: none)
 *   FAKE_CUDA_PEER     "all" (default), "none", or ordered pairs "01,10"
 *   FAKE_CUDA_MEMORY   bytes of each device (1 GiB)
 *   FAKE_CUDA_SEED     of the order
 *   FAKE_CUDA_VERSION  of CUDA that the driver is for (11040: 11.4)
 *   FAKE_CUDA_CAPABILITY  of each device (90); only its tens are told
 *   FAKE_CUDA_FAIL     "cuMemAlloc:2:2,kernel:5:700": the 2nd call of cuMemAlloc returns 2; the 5th kernel that runs
 *                      breaks its context for good
 *   FAKE_CUDA_PLACES  multiprocessors of each device, with room for one block each: so many blocks has a cooperative
 *                     launch at most (132 multiprocessors with room for 2048 threads each)
 *   FAKE_CUDA_HOLD     1: no kernel begins on a device while one that waits for others is under way there
 *   FAKE_CUDA_PATIENCE  see fakeCudaPatience
 *   FAKE_CUDA_BESIDE   1: memory may be freed while work is queued, since it may be another run's
 *   FAKE_CUDA_WEAK     1: blocks of cooperative launches see stores of others late (cuda_emulator)
 *   FAKE_CUDA_MISTAKE  of all kernels (cuda_emulator): "acquire", a wait for a counter says nothing of other memory;
 *                      "wait", nobody waits; "ahead", all believe that a counter is one further;
 *                      "never", nobody tells the others; "release", who tells does not show what it stored before
 *   FAKE_CUDA_SPARED   with "never", so many times the others are told all the same: the first ones of a kernel
 *   FAKE_CUDA_LOOSE    1: in captures kernels that wait for others, but for gates, do not come behind nodes that
 *                      cuStreamUpdateCaptureDependencies has added to their stream
 *   FAKE_CUDA_DISPLAY  devices drive a display: the driver ends kernels that take long
 *   FAKE_CUDA_KERNELS  a folder of libraries that are opened: kernels on the CPU (cuda_emulator)
 *   FAKE_CUDA_ONLY     "saxpy,gemm": kernels of the library that can be used (all)
 *   FAKE_CUDA_REFUSED  1: the kernel that copies and combines for collectives cannot be launched
 */
#ifndef FAKE_CUDA_CONTROL_H
#define FAKE_CUDA_CONTROL_H

#pragma GCC visibility push(default) /* what a driver exports, and the functions below */
#include <cuda.h>
#include <stdint.h>

/* A launch, as its function is told of it. `seed` is for an order of its threads. */
typedef struct fakeCudaLaunch {
    const char *name; /* of the function */
    unsigned grid[3], block[3];
    uint64_t seed;
    int early; /* it may have begun before the kernel ahead of it ended: see fakeCudaBegin */
} fakeCudaLaunch;
/* A kernel of the fake: a function of its parameters; `sizes` are the bytes of each, so that they can be kept. */
typedef void (*fakeCudaBody)(const fakeCudaLaunch *launch, void **params);

/* A debugger is at work (1), or none is. */
void fakeCudaDebug(int debugged);

/* Says that a kernel that was launched early has waited (1), or not (0, as it begins). Memory can be touched only once
 * it has: what it would read before is not there yet. */
void fakeCudaBegin(int waited);
/* A function to launch with cuLaunchKernel; lives until the library is unloaded. */
CUfunction fakeCudaFunction(const char *name, fakeCudaBody body, const size_t *sizes, int params);
/* How a cooperative launch goes on, or one that waits, a slice at a time; without it, it is done at once as any other.
 */
enum { FAKE_POLLED, FAKE_MOVED, FAKE_ENDED };
/* Blocks of such a launch wait for others; or they wait for nobody, and others see what they store as they go on. */
enum { FAKE_WAITS = 1, FAKE_TELLS };
typedef struct fakeCudaResident {
    void *(*begin)(const fakeCudaLaunch *launch, void **params); /* `params` stay until the end */
    int (*go_on)(void *begun); /* FAKE_POLLED: all that it did was to look at words that others write */
    void (*end)(void *begun);  /* also of one that has not ended */
    int (*waits)(const char *name, void **params); /* FAKE_WAITS, FAKE_TELLS or 0, cooperative or not */
} fakeCudaResident;
void fakeCudaResides(CUfunction function, const fakeCudaResident *how);
/* A variable that cuModuleGetGlobal finds in every module of a fat binary: a copy. */
void fakeCudaGlobal(const char *name, const void *at, size_t bytes);
/* So many slices in a row in which kernels only poll, while the program waits (not: asks), are a deadlock and end the
 * program (2 millions); -1: never. */
void fakeCudaPatience(int slices);
/* It waits for the kernel ahead of it if it comes early (kernels/begin.cuh). */
void fakeCudaBegins(CUfunction function);
/* Its blocks have so many threads at most, as if for their registers; 0: 1024. */
void fakeCudaLimit(CUfunction function, int threads);
/* The cooperative launch that the device was given last: its blocks, 0: none; `first`: its first parameter, a word. */
int fakeCudaCooperative(int device, uint64_t *first);
/* Launches so far that wait for others and are not cooperative; that tell others and wait for nobody. */
int fakeCudaWaiting(void);
int fakeCudaTelling(void);
/* Injects as FAKE_CUDA_FAIL does, counting from now; NULL: nothing any more. */
void fakeCudaFail(const char *spec);
/* The stream captures the body of a conditional node, whose place in an order is that of the node. */
int fakeCudaInBody(CUstream stream);
/* Queued work stays queued (1), or is done (0). */
void fakeCudaStall(int stalled);
/* Another order from now on. */
void fakeCudaSeed(uint64_t seed);
/* Other devices, from now on; nothing may be alive. `peer` as in the environment. */
void fakeCudaDevices(int devices, const char *peer, uint64_t bytes);
/* Objects that are alive: contexts, streams, events, memory, modules, graphs. `text`, of `size` bytes, says which. */
int fakeCudaAlive(char *text, size_t size);
/* How often a function was called, or "kernel", "kernel on 3" (a device) and "host" run, since the library was loaded;
 * or how many edges graphs had in which a kernel waits for one of another device, "wait between devices"; and how many
 * launches in them come early, "early". */
int fakeCudaCalls(const char *name);
/* For other libraries: more of what fakeCudaCalls tells by that name, less than 2^31 in all. */
void fakeCudaCount(const char *name, int more);

/* ---- for libraries that put work of their own on streams (tests/support/fake_nccl) ---- */

/* Work of several streams: after all that they have by now, before all that follows on them. `body` may touch memory
 * of every device. */
typedef struct fakeCudaJob {
    void (*body)(void *data);
    int (*ready)(void *data);         /* NULL, or: 1 it can begin, 0 not before other work, -1 not by itself,
                                         -2 not before another process lets it */
    void (*hold)(void *data, int by); /* NULL, or: so many more graphs have it */
    void *data;                       /* lives longer than the work */
} fakeCudaJob;
CUresult fakeCudaQueue(const CUstream *streams, int count, const fakeCudaJob *job);
int fakeCudaDeviceOf(CUstream stream);
/* Inside of such work. A kernel of the library begins on the device (1), or ends there (-1): as long as one is there no
 * cooperative launch begins, as either may need all multiprocessors. */
void fakeCudaOccupy(int device, int by);
int fakeCudaTaken(int device); /* a cooperative launch is under way there */
int fakeCudaCurrent(void);     /* device of the current context; -1: none */
/* Counts a call of another library; what it is to return if a test wants an error, or if the context is lost. */
int fakeCudaInjected(const char *name);
/* Ends the program unless the bytes lie in one allocation of the device. */
void fakeCudaCheck(const void *at, size_t bytes, int device, const char *what);

/* ---- memory as a block of a cooperative launch sees it (FAKE_CUDA_WEAK) ---- */

/* Memory of devices, by pages: stores stay in the view until they are published, what was loaded before stays as it was
 * until it is refreshed; some of it, by chance, sooner. */
typedef struct fakeCudaView fakeCudaView;
fakeCudaView *fakeCudaViewNew(void); /* NULL: memory is not weak; Free, Enter and Leave take it */
void fakeCudaViewFree(fakeCudaView *view);
void fakeCudaViewEnter(fakeCudaView *view);            /* it is seen from now on */
void fakeCudaViewLeave(fakeCudaView *view, int ended); /* memory is what all see */
void fakeCudaViewPublish(fakeCudaView *view);
void fakeCudaViewRefresh(fakeCudaView *view);
/* Of what all see. */
uint64_t fakeCudaViewLoad(fakeCudaView *view, const uint64_t *at);
void fakeCudaViewStore(fakeCudaView *view, uint64_t *at, uint64_t value);
/* Bytes of the view become what all see, and the other way round. */
void fakeCudaViewRead(fakeCudaView *view, const void *at, size_t bytes);
void fakeCudaViewWrite(fakeCudaView *view, const void *at, size_t bytes);

/* ---- for a library that watches the driver (tests/support/fake_cupti) ---- */

/* Work of a device that was done, from `start` to `end` of the monotonic clock. */
typedef struct fakeCudaPiece {
    enum { FAKE_KERNEL, FAKE_COPY, FAKE_PEER, FAKE_SET } kind;
    int device;
    uint32_t correlation; /* of the call that gave it; 0: of none */
    CUgraphNode node;     /* of a graph that is launched; NULL: of none */
    int64_t start, end;
} fakeCudaPiece;
/* Called with the lock of the driver. Handles of nodes are numbers that nobody follows. */
typedef struct fakeCudaWatch {
    void (*call)(const char *name, uint32_t correlation);
    void (*node)(CUgraph graph, CUgraphNode node, CUgraphNode original, CUgraphNodeType type); /* original: NULL: new */
    void (*done)(const fakeCudaPiece *piece);
} fakeCudaWatch;
void fakeCudaWatchBy(const fakeCudaWatch *watch); /* NULL: by nobody */

/* Does all work that can be done. */
void fakeCudaFinish(void);
/* Ends the program. */
_Noreturn void fakeCudaWrong(const char *text);
void fakeCudaLock(void);
void fakeCudaUnlock(void);
uint64_t fakeCudaDraw(void);

#pragma GCC visibility pop

#endif
