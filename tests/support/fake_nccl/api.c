/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators and groups of the fake NCCL. */
#include "fake.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static clique *cliques;
static uint64_t ids;

/* Groups are of a thread. No thread-local memory: leak checkers do not survive it in a library that is opened late. */
enum { THREADS = 64 };
static struct thread_group {
    bool used;
    pthread_t thread;
    int depth, count, room;
    call *calls;
    clique *made, *aborted;
    ncclResult_t error;
} groups[THREADS];

static struct thread_group *mine(void)
{
    fakeCudaLock();
    struct thread_group *g = groups;
    while (g->used && !pthread_equal(g->thread, pthread_self())) {
        g++;
        if (g == groups + THREADS)
            fail_use("the fake knows %d threads and no more", THREADS);
    }
    g->used = true;
    g->thread = pthread_self();
    fakeCudaUnlock();
    return g;
}
#define group (*mine())

void fail_use(const char *format, ...)
{
    char text[240];
    size_t used = (size_t)snprintf(text, sizeof text, "NCCL: ");
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    if (apart_can())
        apart_tell(text);
    fakeCudaWrong(text);
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = 22809;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        "no error",         "unhandled cuda error", "unhandled system error", "internal error",
        "invalid argument", "invalid usage",        "remote process error",   "NCCL operation in progress"
    };
    return texts[result];
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "as the fake was told\n";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    int code = fakeCudaInjected("ncclGetUniqueId");
    fakeCudaLock();
    *id = (ncclUniqueId){ { 0 } };
    uint64_t number = ((uint64_t)getpid() << 32) + ++ids; /* also among processes */
    memcpy(id->internal, &number, sizeof number);
    fakeCudaUnlock();
    return (ncclResult_t)code;
}

/* ---- states ---- */

static void become(ncclComm_t comm, ncclResult_t then)
{
    comm->state = ncclInProgress;
    comm->then = then;
    comm->polls = (int)(fakeCudaDraw() % 6);
}

static void check_free(ncclComm_t comm, const char *name)
{
    if (!comm || comm->gone || comm->state != ncclSuccess || comm->clique->finalized) {
        fail_use("%s of a communicator that is %s", name,
                 !comm || comm->gone             ? "no more"
                 : comm->state == ncclInProgress ? "in progress"
                                                 : "broken or ended");
    }
}

static void launch_waiting(clique *q)
{
    job *j = q->waiting;
    q->waiting = NULL;
    if (j)
        job_launch(j);
}

/* Nothing of it runs, and all ranks were told. */
static void end_clique(clique *q)
{
    launch_waiting(q);
    fakeCudaFinish();
    if (q->graphs)
        fail_use("a communicator ends while graphs have work of it: it waits for them forever");
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    int code = fakeCudaInjected("ncclAsync");
    fakeCudaLock();
    if (!comm || comm->gone)
        fail_use("a question to a communicator that is no more");
    bool told = code && comm->state != ncclInProgress;
    comm->state = told ? (ncclResult_t)code : comm->state;
    bool all = comm->clique->finalized == 0 || comm->clique->finalized == comm->clique->present;
    ncclResult_t apart = comm->clique->apart && !comm->clique->finalized ? apart_state(comm->clique) : ncclSuccess;
    if (apart != ncclSuccess && apart != ncclInProgress)
        comm->state = comm->then = apart;
    all = all && apart == ncclSuccess;
    if (comm->state == ncclInProgress && comm->then != ncclInProgress && all && comm->polls-- <= 0) {
        if (comm->clique->finalized)
            end_clique(comm->clique);
        launch_waiting(comm->clique);
        comm->state = comm->then;
    }
    *state = comm->state;
    fakeCudaUnlock();
    return ncclSuccess;
}

/* ---- making and ending ---- */

static clique *clique_of(const ncclUniqueId *id, int ranks)
{
    uint64_t number;
    memcpy(&number, id->internal, sizeof number);
    clique *q = cliques;
    while (q && q->id != number)
        q = q->next;
    if (!q) {
        q = calloc(1, sizeof *q);
        *q = (clique){ .id = number, .ranks = ranks, .next = cliques };
        cliques = q;
    }
    return q;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    int code = fakeCudaInjected("ncclCommInitRankConfig"), later = fakeCudaInjected("ncclInit");
    fakeCudaLock();
    if (group.depth == 0 || config->magic != 0xcafebeef || config->size < 24 || config->version < 21400 ||
        config->blocking != 0 || ranks > RANKS || rank < 0 || rank >= ranks || fakeCudaCurrent() < 0)
        fail_use("a rank that is made outside of a group, blocking, or with a strange configuration");
    if (!code) {
        clique *q = clique_of(&id, ranks);
        ncclComm_t made = calloc(1, sizeof *made);
        *made = (struct ncclComm){ .clique = q, .rank = rank, .device = fakeCudaCurrent() };
        for (int r = 0; r < ranks; r++)
            if (q->comm[r] && (r == rank || q->comm[r]->device == made->device))
                fail_use("ranks %d and %d are both on device %d", r, rank, made->device);
        become(made, (ncclResult_t)later);
        q->comm[rank] = made;
        q->present++;
        group.made = q;
        *comm = made;
    }
    group.error = code ? (ncclResult_t)code : group.error;
    fakeCudaUnlock();
    return code ? (ncclResult_t)code : ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    int code = fakeCudaInjected("ncclCommFinalize");
    fakeCudaLock();
    if (!comm || comm->gone || comm->state != ncclSuccess)
        fail_use("a communicator is finalized in the middle of something");
    comm->clique->finalized++;
    become(comm, (ncclResult_t)code);
    fakeCudaUnlock();
    return code ? (ncclResult_t)code : ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    fakeCudaInjected("ncclCommDestroy");
    fakeCudaLock();
    if (!comm || comm->gone || comm->state != ncclSuccess || comm->clique->finalized != comm->clique->present)
        fail_use("a communicator is destroyed before it is finalized");
    comm->gone = true;
    comm->clique->destroyed++;
    fakeCudaUnlock();
    return ncclSuccess;
}

/* Frees nothing before the end of the group: then all ranks must have been told. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    fakeCudaInjected("ncclCommAbort");
    fakeCudaLock();
    if (!comm || comm->gone || group.depth == 0)
        fail_use("a communicator is aborted twice, or outside of a group, where it waits for the other ranks");
    comm->gone = true;
    comm->clique->aborted = true;
    comm->clique->destroyed++;
    group.aborted = comm->clique;
    fakeCudaUnlock();
    return ncclSuccess;
}

int fakeNcclAlive(void)
{
    int alive = 0;
    fakeCudaLock();
    for (const clique *q = cliques; q; q = q->next)
        alive += q->present - q->destroyed;
    fakeCudaUnlock();
    return alive;
}

/* ---- groups ---- */

ncclResult_t ncclGroupStart(void)
{
    int code = fakeCudaInjected("ncclGroupStart");
    if (group.depth++ == 0) {
        free(group.calls);
        group = (struct thread_group){ .used = true, .thread = pthread_self(), .depth = 1 };
    }
    group.depth -= code != 0;
    return (ncclResult_t)code;
}

static job *make_job(clique *q)
{
    job *j = calloc(1, sizeof *j);
    j->clique = q;
    j->calls = group.calls;
    j->count = j->local = group.count;
    j->number = calloc((size_t)j->count + 1, sizeof *j->number);
    j->result = calloc((size_t)j->count + 1, sizeof *j->result);
    j->source = calloc((size_t)j->count + 1, sizeof *j->source);
    for (int i = 0; i < j->count; i++) {
        const call *c = &j->calls[i];
        j->stream[c->comm->rank] = j->stream[c->comm->rank] ? j->stream[c->comm->rank] : c->stream;
        if (c->comm->clique != q)
            fail_use("a group of calls on two communicators");
    }
    group.calls = NULL;
    return j;
}

static ncclResult_t end_calls(void)
{
    clique *q = group.calls[0].comm->clique;
    job *j = make_job(q);
    int later = fakeCudaInjected("ncclLaunch");
    j->hangs = fakeCudaInjected("ncclHang") != 0;
    job_check(j);
    if (q->apart && apart_leaves_out(j))
        return ncclInProgress;
    for (int r = 0; r < q->ranks; r++)
        if (q->comm[r])
            become(q->comm[r], (ncclResult_t)later);
    q->waiting = j;
    if (fakeCudaDraw() % 2)
        launch_waiting(q);
    return ncclInProgress;
}

ncclResult_t ncclGroupEnd(void)
{
    int code = fakeCudaInjected("ncclGroupEnd");
    fakeCudaLock();
    ncclResult_t result = group.error ? group.error : (ncclResult_t)code;
    if (group.depth-- != 1)
        fail_use("a group ends that is not the outermost");
    if (group.made && !result) {
        group.made->apart = group.made->present != group.made->ranks && apart_can();
        if (group.made->apart)
            apart_begin(group.made);
        if ((group.made->present != group.made->ranks && !group.made->apart) || group.count)
            fail_use("%d of %d ranks are made in a group", group.made->present, group.made->ranks);
        result = ncclInProgress;
    }
    if (group.aborted) {
        if (group.aborted->destroyed != group.aborted->present)
            fail_use("%d of %d ranks are aborted in a group", group.aborted->destroyed, group.aborted->present);
        end_clique(group.aborted);
    }
    if (group.count && !result)
        result = end_calls();
    fakeCudaUnlock();
    return result;
}

static ncclResult_t add(const char *name, call c)
{
    int code = fakeCudaInjected(name);
    fakeCudaLock();
    check_free(c.comm, name);
    if (group.depth == 0)
        fail_use("%s outside of a group: one thread has all ranks", name);
    if (!code) {
        group.room = group.count == group.room ? 2 * group.room + 16 : group.room;
        group.calls = realloc(group.calls, (size_t)group.room * sizeof *group.calls);
        group.calls[group.count++] = c;
    }
    group.error = code ? (ncclResult_t)code : group.error;
    fakeCudaUnlock();
    return (ncclResult_t)code;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, CUstream stream)
{
    return add("ncclAllReduce", (call){ ALL_REDUCE, from, to, count, type, op, 0, comm, stream });
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, CUstream stream)
{
    return add("ncclReduce", (call){ REDUCE, from, to, count, type, op, root, comm, stream });
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, CUstream stream)
{
    return add("ncclReduceScatter", (call){ REDUCE_SCATTER, from, to, count, type, op, 0, comm, stream });
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           CUstream stream)
{
    return add("ncclBroadcast", (call){ BROADCAST, from, to, count, type, ncclSum, root, comm, stream });
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           CUstream stream)
{
    return add("ncclAllGather", (call){ ALL_GATHER, from, to, count, type, ncclSum, 0, comm, stream });
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, CUstream stream)
{
    return add("ncclSend", (call){ SEND, from, NULL, count, type, ncclSum, peer, comm, stream });
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, CUstream stream)
{
    return add("ncclRecv", (call){ RECV, NULL, to, count, type, ncclSum, peer, comm, stream });
}

static void __attribute__((destructor)) check_alive(void)
{
    if (fakeNcclAlive())
        fail_use("%d communicators are left behind", fakeNcclAlive());
    for (int i = 0; i < THREADS; i++)
        free(groups[i].calls);
    jobs_free();
    while (cliques) {
        clique *q = cliques;
        cliques = q->next;
        for (int r = 0; r < q->ranks; r++) {
            free(q->comm[r]);
            free(q->ghost[r]);
        }
        free(q);
    }
}
