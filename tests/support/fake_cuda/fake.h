/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the fake driver. One lock for everything; global state, as a driver has. */
#ifndef FAKE_CUDA_FAKE_H
#define FAKE_CUDA_FAKE_H

#include "control.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { MOST_DEVICES = 16, MOST_PARAMS = 32 };
enum { MULTIPROCESSORS = 132, THREADS = 2048 }; /* of a device; threads of each */

struct CUctx_st {
    int device, retained;
    bool peer[MOST_DEVICES]; /* enabled from here */
};

struct CUfunc_st {
    char name[64];
    fakeCudaBody body;
    size_t size[MOST_PARAMS];
    int params;
    bool begins;                     /* it waits if it comes early */
    const fakeCudaResident *resides; /* NULL: a cooperative launch is done as any other */
    int threads, shared;             /* per block: at most (0: 1024); that were asked for */
};

enum { MOST_GLOBALS = 64 };

struct CUmod_st {
    bool any;                   /* every function that there is */
    char *entries;              /* else these, see code.c */
    void *global[MOST_GLOBALS]; /* memory, by the number of the global; NULL: nobody has asked */
};

typedef enum kind { NOTHING, KERNEL, HOST, HTOD, DTOH, DTOD, PEER, SET, WAIT, WRITE, JOB } kind;

/* A piece of queued work. */
typedef struct work {
    kind kind;
    int device;
    CUfunction function;
    unsigned grid[3], block[3];
    bool early; /* may begin before the kernel ahead of it has ended */
    bool cooperative;
    bool waits; /* it goes on in slices: its blocks may wait for others or tell them, or it is cooperative */
    void *param[MOST_PARAMS]; /* copies, of this work */
    CUhostFn call;
    void *data;
    char *to;
    const char *from;
    int from_device;
    size_t bytes, width, pitch; /* SET: `bytes` elements of `width` bytes, `pitch` apart */
    uint32_t value;
    uint64_t word; /* WAIT, WRITE: at `to` */
    fakeCudaJob job;
    uint32_t correlation; /* of the call that gave it */
    uint64_t node;        /* of a graph; 0: none */
    unsigned *condition;  /* of the body of a conditional node: it runs if that is not 0; NULL: always */
} work;

/* Work that is queued. Kept as long as a stream, an event or a successor wants to know whether it is done. */
typedef struct op {
    int references;
    bool done;
    int64_t done_ns;
    void *begun; /* a resident launch that is under way */
    int64_t begun_ns;
    uint64_t urgency;
    work w;
    struct op **before;
    size_t befores;
} op;

/* Nodes of a capture or of a graph, by index. */
typedef struct set {
    int *at;
    int count;
} set;

typedef struct node {
    work w;
    set before;
    struct CUgraph_st *body; /* of a conditional node, which is its work's condition; else NULL */
    bool added;              /* a kernel that was added to the graph, not captured */
} node;

struct CUgraph_st {
    node *at;
    int count;
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
    op *last; /* of its last launch: it never overlaps itself */
};

typedef struct capture {
    struct CUgraph_st graph;
    struct CUgraph_st *into; /* what is captured becomes the contents of this body; NULL: a graph of its own */
    CUstream origin;
    bool open, bad;
    CUstreamCaptureMode mode;
    pthread_t by; /* the thread that began it */
    int references;
} capture;

struct CUstream_st {
    CUcontext context;
    op *last;
    uint64_t urgency;
    capture *capture;  /* NULL: none */
    set front;         /* of it: what the next node comes after */
    set added;         /* of these, what was added to them, and no work */
    CUgraphNode *told; /* the front, as it was asked for */
    struct CUstream_st *next;
};

struct CUevent_st {
    CUcontext context;
    bool timed;
    op *last;         /* NULL: never recorded */
    capture *capture; /* recorded in one */
    set front;
};

extern struct fake {
    bool ready, loaded, stalled;
    int devices;
    uint64_t bytes, used[MOST_DEVICES];
    bool peer[MOST_DEVICES][MOST_DEVICES];
    struct CUctx_st context[MOST_DEVICES];
    CUstream streams;
    CUresult sticky;
    uint64_t random;
    int patience; /* 0: as the environment says */
    struct {
        int blocks;
        uint64_t first;
    } cooperative[MOST_DEVICES]; /* as fakeCudaCooperative tells */
    uint32_t correlation;
    uint64_t nodes;       /* so many were made */
    int waiting, telling; /* as fakeCudaWaiting and fakeCudaTelling say */
    fakeCudaWatch watch;
    int alive_streams, alive_events, alive_modules, alive_graphs, alive_execs;
} fake;

/* Ends the program: the line says what a real driver would have let pass. */
_Noreturn void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t draw(void);

/* control.c: counts the call; the error to return, if one is to be. Entered with the lock. */
CUresult count_call(const char *name);
void lock(void);
void unlock(void);

/* Tells who watches. */
void tell_node(const struct CUgraph_st *g, const work *w, uint64_t original);
void tell_done(const work *w, int64_t start, int64_t end);

/* api.c: the work of a kernel that becomes a node, of the current context; its parameters are the caller's. */
CUresult kernel_work(work *w, const CUDA_KERNEL_NODE_PARAMS_v3 *params);

/* kernels.c: opens the libraries of a folder; NULL: none. */
void load_kernels(const char *folder);
/* code.c: the kernels that PTX or a cubin declares, in memory of its own; false: it is neither. */
bool code_entries(char **entries, const char *image);
bool code_has(const char *entries, const char *name);

/* memory.c */
CUresult memory_new(void **to, int device, size_t bytes); /* device -1: page-locked host memory */
CUresult memory_delete(void *at, bool host);
CUresult memory_register(void *at, size_t bytes);
CUresult memory_unregister(void *at);
int memory_alive(void);
const void *memory_block(const void *at, size_t *bytes); /* where the allocation begins; NULL: there is none */
int memory_type(const void *at, int *device);            /* CU_MEMORYTYPE_..., 0: unknown */
/* Ends the program unless the bytes lie in one block of the device (-1: page-locked). */
void memory_check(const void *at, size_t bytes, int device, const char *what);
/* Memory of these devices, and no other, can be touched. */
void memory_open(const bool *devices);
void memory_close(void);
/* Nothing can be touched; which pages are of these devices is remembered, for views. */
void memory_allow(const bool *devices);
bool memory_allowed(const char *at);
char *memory_any(uint64_t number);
size_t memory_page(void);
/* Words of devices or of page-locked memory, whether they can be touched or not. */
uint64_t memory_load(const char *at);
void memory_store(char *at, uint64_t value);

/* views.c */
bool is_weak(void);

/* queue.c */
op *op_new(const work *w, op *const *before, size_t befores, uint64_t urgency);
void op_drop(op *o);
op *op_keep(op *o);
/* IDLE: nothing can be done; POLLED: what is under way only waits for words. */
typedef enum progress { IDLE, POLLED, MOVED } progress;
progress step(void); /* does one piece of what can be done */
void steps(int most);
void finish(op *o);
bool fits_device(const CUlaunchConfig *c); /* as a cooperative launch */
int places(void);                          /* FAKE_CUDA_PLACES; 0: not said */
void forget_all(void);                     /* the context is lost: nothing that is queued happens */
size_t queued(void);
CUresult queue_work(CUstream stream, const work *w);
void work_free(work *w);
work work_copy(const work *w);

/* capture.c */
CUresult capture_work(CUstream stream, const work *w);
CUresult capture_job(const CUstream *streams, int count, const work *w);
void work_hold(const work *w, int by);
void capture_drop(capture *c);
void set_free(set *s);
set set_copy(const set *s);
bool set_join(set *to, const set *from);
void graph_clear(struct CUgraph_st *g);

#endif
