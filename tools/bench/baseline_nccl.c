/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of NCCL as a good program would call them by hand: captured once, one behind another on a stream of each
 * GPU, in one graph that is launched. f32, added where the kind adds, from one half of each block to the other. */
#include "baseline_work.h"

#include "command.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- nccl.h, as far as it is used; the same since 2.14 ---- */

typedef struct ncclComm *communicator;
typedef struct unique_id {
    char bytes[128];
} unique_id;
typedef struct configuration {
    size_t size;
    unsigned magic, version;
    int blocking;
} configuration;
enum { IN_PROGRESS = 7, F32 = 7, SUM = 0, ELEMENT = 4, LEAST_VERSION = 21400 };

#define NCCL_FUNCTIONS(X)                                                                                              \
    X(int, ncclGetVersion, (int *version))                                                                             \
    X(const char *, ncclGetErrorString, (int result))                                                                  \
    X(int, ncclGetUniqueId, (unique_id * id))                                                                          \
    X(int, ncclCommInitRankConfig, (communicator * c, int ranks, unique_id id, int rank, configuration *with))         \
    X(int, ncclCommGetAsyncError, (communicator c, int *state))                                                        \
    X(int, ncclCommFinalize, (communicator c))                                                                         \
    X(int, ncclCommDestroy, (communicator c))                                                                          \
    X(int, ncclCommAbort, (communicator c))                                                                            \
    X(int, ncclGroupStart, (void))                                                                                     \
    X(int, ncclGroupEnd, (void))                                                                                       \
    X(int, ncclAllReduce, (const void *from, void *to, size_t n, int type, int op, communicator c, CUstream s))        \
    X(int, ncclReduceScatter, (const void *from, void *to, size_t n, int type, int op, communicator c, CUstream s))    \
    X(int, ncclBroadcast, (const void *from, void *to, size_t n, int type, int root, communicator c, CUstream s))      \
    X(int, ncclReduce, (const void *from, void *to, size_t n, int type, int op, int root, communicator c, CUstream s)) \
    X(int, ncclAllGather, (const void *from, void *to, size_t n, int type, communicator c, CUstream s))                \
    X(int, ncclSend, (const void *from, size_t n, int type, int peer, communicator c, CUstream s))                     \
    X(int, ncclRecv, (void *to, size_t n, int type, int peer, communicator c, CUstream s))

typedef struct library {
#define X_(type, name, arguments) type(*name) arguments;
    NCCL_FUNCTIONS(X_)
#undef X_
} library;

/* The first ones are calls of NCCL, the others are sends and receives in a group. */
typedef enum kind {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    BROADCAST,
    REDUCE,
    ALL_TO_ALL,
    SCATTER,
    GATHER,
    KINDS
} kind;
static const char *const names[] = { "all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                     "reduce",     "all_to_all", "scatter",        "gather" };

struct baseline_nccl {
    library f;
    gpus *g;
    communicator *comm; /* per GPU */
    kind kind;
    size_t elements; /* of a part */
    int calls;
    CUgraphExec exec;
    bool bad; /* something failed: communicators are of no more use */
};

/* In the folders of GANTRY_CUDA_LIBRARIES first, as the back end looks for it. Relative ones would depend on the
 * current folder and count as none; "gantry machine" says so. */
static void *open_library(void)
{
    const char *list = secure_getenv("GANTRY_CUDA_LIBRARIES"), name[] = "libnccl.so.2";
    enum { FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };
    void *handle = NULL;
    while (list && *list && !handle) {
        size_t length = strcspn(list, ":");
        char path[1024];
        if (*list == '/' && snprintf(path, sizeof path, "%.*s/%s", (int)length, list, name) < (int)sizeof path)
            handle = dlopen(path, FLAGS);
        list += length + (list[length] == ':');
    }
    return handle ? handle : dlopen(name, FLAGS);
}

static gantry_status load(library *f, gantry_error *err)
{
    void *handle = open_library();
    int version = 0;
    bool all = true;
    if (!handle)
        return bench_error(err, GANTRY_E_UNSUPPORTED,
                           "libnccl.so.2 was not found (%s); name its folder in GANTRY_CUDA_LIBRARIES if it is "
                           "somewhere else",
                           dlerror());
#define X_(type, name, arguments)                                                                                      \
    void *found_##name = dlsym(handle, #name);                                                                         \
    memcpy(&f->name, &found_##name, sizeof found_##name);                                                              \
    all = found_##name && all;
    NCCL_FUNCTIONS(X_)
#undef X_
    if (!all)
        return bench_error(err, GANTRY_E_UNSUPPORTED, "libnccl.so.2 lacks a function: it is too old");
    if (f->ncclGetVersion(&version) || version < LEAST_VERSION)
        return bench_error(err, GANTRY_E_UNSUPPORTED, "libnccl.so.2 is version %d.%d, and 2.14 or later is needed",
                           version / (version < 10000 ? 1000 : 10000),
                           version % (version < 10000 ? 1000 : 10000) / 100);
    return GANTRY_OK;
}

/* ---- communicators, which never block: they are asked until they are no longer in progress ---- */

static bool is_fine(int result)
{
    return result == 0 || result == IN_PROGRESS;
}

static int state_of(const baseline_nccl *n)
{
    int worst = 0;
    for (int i = 0; i < n->g->count; i++) {
        int state = 0, result = n->comm[i] ? n->f.ncclCommGetAsyncError(n->comm[i], &state) : 0;
        state = is_fine(result) ? state : result;
        if (!is_fine(state))
            return state;
        worst = state ? state : worst;
    }
    return worst;
}

static int settle(const baseline_nccl *n)
{
    double until = now_us() + 90e6; /* making communicators takes seconds */
    int state;
    while ((state = state_of(n)) == IN_PROGRESS && now_us() < until)
        ;
    return state;
}

static gantry_status check(const baseline_nccl *n, int result, const char *what, gantry_error *err)
{
    if (result == 0)
        return GANTRY_OK;
    const char *text =
        result == IN_PROGRESS ? "it is in progress for too long a time" : n->f.ncclGetErrorString(result);
    bench_error(err, GANTRY_E_DEVICE, "%s: NCCL: %s (%d)", what, text ? text : "no text", result);
    if (err)
        err->native = result;
    return GANTRY_E_DEVICE;
}

static int init_ranks(const baseline_nccl *n)
{
    configuration with = { sizeof with, 0xcafebeef, LEAST_VERSION, 0 };
    unique_id id;
    int result = n->f.ncclGetUniqueId(&id);
    if (!is_fine(result) || !is_fine(result = n->f.ncclGroupStart()))
        return result;
    for (int i = 0; i < n->g->count && is_fine(result); i++)
        result = gpus_use(n->g, i, NULL) ? 1 : n->f.ncclCommInitRankConfig(&n->comm[i], n->g->count, id, i, &with);
    int end = n->f.ncclGroupEnd();
    return is_fine(result) ? end : result;
}

static gantry_status make_communicators(baseline_nccl *n, gantry_error *err)
{
    n->comm = calloc((size_t)n->g->count, sizeof *n->comm);
    if (!n->comm)
        return bench_error(err, GANTRY_E_NOMEM, "out of memory");
    int result = init_ranks(n);
    return check(n, is_fine(result) ? settle(n) : result, "making communicators", err);
}

/* In good order where nothing failed; else what hangs is let go. */
static void free_communicators(baseline_nccl *n, bool well)
{
    for (int i = 0; i < n->g->count && well; i++)
        well = is_fine(n->f.ncclCommFinalize(n->comm[i]));
    well = well && settle(n) == 0;
    bool group = !well && n->f.ncclGroupStart() == 0;
    for (int i = 0; i < n->g->count; i++)
        if (n->comm[i])
            (well ? n->f.ncclCommDestroy : n->f.ncclCommAbort)(n->comm[i]);
    if (group)
        n->f.ncclGroupEnd();
}

/* ---- calls ---- */

static char *from_of(const baseline_nccl *n, int rank, int part)
{
    return (char *)(uintptr_t)n->g->at[rank].block + (size_t)part * n->elements * ELEMENT;
}

static char *to_of(const baseline_nccl *n, int rank, int part)
{
    return from_of(n, rank, part) + n->g->bytes;
}

/* Of the pairs of ranks and peers that a kind has: of scatter those that rank 0 gives to, of gather those that give to
 * it. A part for each peer, but where each rank has one. */
static int exchange(const baseline_nccl *n, int r)
{
    int result = 0;
    for (int k = 0; k < n->g->count && is_fine(result); k++) {
        bool gives = n->kind == SCATTER ? r == 0 : n->kind == GATHER ? k == 0 : true;
        bool takes = n->kind == SCATTER ? k == 0 : n->kind == GATHER ? r == 0 : true;
        const char *from = from_of(n, r, n->kind == GATHER ? 0 : k);
        char *to = to_of(n, r, n->kind == SCATTER ? 0 : k);
        if (gives)
            result = n->f.ncclSend(from, n->elements, F32, k, n->comm[r], n->g->at[r].stream[0]);
        if (takes && is_fine(result))
            result = n->f.ncclRecv(to, n->elements, F32, k, n->comm[r], n->g->at[r].stream[0]);
    }
    return result;
}

static int call_rank(const baseline_nccl *n, int r)
{
    const char *from = from_of(n, r, 0);
    char *to = to_of(n, r, 0);
    CUstream stream = n->g->at[r].stream[0];
    switch (n->kind) {
    case ALL_REDUCE:
        return n->f.ncclAllReduce(from, to, n->elements, F32, SUM, n->comm[r], stream);
    case REDUCE_SCATTER:
        return n->f.ncclReduceScatter(from, to, n->elements, F32, SUM, n->comm[r], stream);
    case BROADCAST:
        return n->f.ncclBroadcast(from, to, n->elements, F32, 0, n->comm[r], stream);
    case REDUCE:
        return n->f.ncclReduce(from, to, n->elements, F32, SUM, 0, n->comm[r], stream);
    case ALL_GATHER:
        return n->f.ncclAllGather(from, to, n->elements, F32, n->comm[r], stream);
    case ALL_TO_ALL:
    case SCATTER:
    case GATHER:
    case KINDS:
        break;
    }
    return exchange(n, r);
}

/* One group call for all ranks. */
static gantry_status queue_call(const baseline_nccl *n, gantry_error *err)
{
    int result = n->f.ncclGroupStart();
    if (is_fine(result)) {
        for (int r = 0; r < n->g->count && is_fine(result); r++)
            result = call_rank(n, r);
        int end = n->f.ncclGroupEnd();
        result = is_fine(result) ? end : result;
    }
    return check(n, is_fine(result) ? settle(n) : result, names[n->kind], err);
}

static gantry_status queue_calls(gpus *g, void *work, gantry_error *err)
{
    const baseline_nccl *n = work;
    gantry_status status = gpus_order_all(g, g->count, true, err);
    for (int i = 0; i < n->calls && !status; i++)
        status = queue_call(n, err);
    return status ? status : gpus_order_all(g, g->count, false, err);
}

/* ---- all ---- */

static gantry_status time_chain(baseline *b, double *us, gantry_error *err)
{
    gantry_status status = baseline_launch(b, b->nccl->exec, us, err);
    b->nccl->bad = b->nccl->bad || status;
    return status;
}

/* Once as calls, which is when NCCL connects what it needs. */
static gantry_status make_chain(baseline *b, gantry_error *err)
{
    baseline_nccl *n = b->nccl;
    one_gpu *first = &n->g->at[0];
    n->calls = 1;
    gantry_status status = queue_calls(n->g, n, err);
    if (!status)
        status = gpus_use(n->g, 0, err);
    if (!status)
        status = gpus_check(n->g, n->g->d.cuEventRecord(first->end, first->stream[0]), 0, "recording an event", err);
    if (!status)
        status = gpus_wait(n->g, first->end, 0, err);
    n->calls = b->options.copies;
    if (!status)
        status = gpus_capture(n->g, &n->exec, queue_calls, n, err);
    b->bytes = (double)b->options.bytes * n->calls;
    b->time = time_chain;
    return status;
}

static bool can_be_ranks(const gpus *g)
{
    bool can = g->count > 1;
    for (int i = 1; i < g->count && can; i++) {
        can = strcmp(g->at[i].kind, g->at[0].kind) == 0;
        for (int k = 0; k < i && can; k++)
            can = g->at[k].context != g->at[i].context;
    }
    return can;
}

/* Parts that the bytes of a kind are cut into. */
static uint64_t parts_of(kind k, uint64_t ranks)
{
    bool is_whole = k == ALL_REDUCE || k == BROADCAST || k == REDUCE;
    return is_whole ? 1 : k == ALL_TO_ALL ? ranks * ranks : ranks;
}

gantry_status baseline_nccl_open(baseline *b, const gantry_machine *machine, const char *collective, gantry_error *err)
{
    baseline_nccl *n = b->nccl = calloc(1, sizeof *n);
    uint64_t bytes = b->options.bytes, block = bytes > BASELINE_SMALL ? bytes : BASELINE_SMALL;
    if (!n)
        return bench_error(err, GANTRY_E_NOMEM, "out of memory");
    while (n->kind < KINDS && strcmp(collective, names[n->kind]) != 0)
        n->kind++;
    if (n->kind == KINDS)
        return bench_error(err, GANTRY_E_INVALID, "there is no collective \"%s\"", collective);
    gantry_status status = load(&n->f, err);
    if (!status)
        status = gpus_open(&b->gpus, machine, b->options.devices, block, BASELINE_SMALL, false, err);
    if (status)
        return status;
    n->g = &b->gpus;
    uint64_t parts = parts_of(n->kind, (uint64_t)n->g->count);
    if (!can_be_ranks(n->g))
        return bench_error(err, GANTRY_E_UNSUPPORTED,
                           "NCCL is called for two GPUs and more, of one kind, and none of them twice");
    if (bytes == 0 || bytes % (16 * parts) != 0)
        return bench_error(err, GANTRY_E_UNSUPPORTED, "%llu bytes cannot be cut into %llu parts of whole 16 bytes",
                           (unsigned long long)bytes, (unsigned long long)parts);
    n->elements = bytes / parts / ELEMENT;
    status = make_communicators(n, err);
    if (!status)
        status = make_chain(b, err);
    n->bad = status != GANTRY_OK;
    return status;
}

/* A graph goes before its communicators, or NCCL would wait for it forever. */
void baseline_nccl_close(baseline *b)
{
    baseline_nccl *n = b->nccl;
    if (n && n->comm) {
        bool well = !n->bad && gpus_settle(&b->gpus);
        if (n->exec)
            b->gpus.d.cuGraphExecDestroy(n->exec);
        free_communicators(n, well);
        b->gpus.hung = false; /* what waited for other ranks is let go */
        free(n->comm);
    }
    free(n);
    b->nccl = NULL;
}
