/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between Gantry and MPI, loaded into each process (LD_PRELOAD) by check_delays.py, which says by the environment
 *   SHIM_LATENCY_US, SHIM_MBPS  a message of rows can be received so long after it was sent, and behind those that its
 *                               rank has sent before, each of which takes its bytes at so many MB/s
 *   SHIM_NODE                   the name of the computer, as Gantry sees it; MPI sees the real one
 *   SHIM_STOP, SHIM_MARK        the rank stops for good (SIGSTOP) when it has done all and leaves MPI: where the file
 *                               can be made, so once
 *   SHIM_END                    it does so later: when it has left MPI, and all others may be gone
 * So there is a network of known times, whatever the kernel and MPI have. Each message has another one ahead of it, of
 * another tag, which says when it comes; both processes look at one clock. Handles of MPI are an int or a pointer:
 * here they are words that are passed on.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uintptr_t word;

static struct {
    int (*send)(const void *, int, word, int, int, word);
    int (*begin_send)(const void *, int, word, int, int, word, void *);
    int (*begin_receive)(void *, int, word, int, int, word, void *);
    int (*test)(void *, int *, void *);
    int (*meet)(word);
} mpi;
static pthread_once_t found = PTHREAD_ONCE_INIT;

enum { BEATS = 1, STAMPS = 7 /* and the tag of the message */, MOST = 64 /* messages that are awaited at once */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t line_free; /* when the last message that this rank has sent is on its way */
static struct awaited {
    void *request; /* of the rows; NULL: free */
    word stamp_request;
    int64_t comes;
    int arrived; /* the rows are there, and are kept back */
} awaited[MOST];

/* dlsym gives an object pointer; POSIX promises that its bits are those of the function pointer. */
static void find(const char *name, void *call)
{
    static const char *const libraries[] = { "libmpich.so.12", "libmpi.so.40" };
    void *at = NULL;
    for (int i = 0; i < 2 && !at; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
        at = library ? dlsym(library, name) : NULL;
    }
    if (!at)
        abort();
    memcpy(call, &at, sizeof at);
}

static void find_all(void)
{
    find("PMPI_Send", &mpi.send);
    find("PMPI_Isend", &mpi.begin_send);
    find("PMPI_Irecv", &mpi.begin_receive);
    find("PMPI_Test", &mpi.test);
    find("PMPI_Barrier", &mpi.meet);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double setting(const char *name)
{
    const char *text = getenv(name);
    return text ? strtod(text, NULL) : 0;
}

/* When a message that is sent now comes. */
static int64_t comes(int64_t bytes)
{
    double rate = setting("SHIM_MBPS");
    int64_t at = now();
    pthread_mutex_lock(&lock);
    line_free = (line_free > at ? line_free : at) + (rate > 0 ? (int64_t)((double)bytes * 1e3 / rate) : 0);
    at = line_free + (int64_t)(setting("SHIM_LATENCY_US") * 1e3);
    pthread_mutex_unlock(&lock);
    return at;
}

int MPI_Isend(const void *from, int count, word type, int peer, int tag, word comm, void *request);
int MPI_Irecv(void *to, int count, word type, int peer, int tag, word comm, void *request);
int MPI_Test(void *request, int *done, void *status);
int MPI_Barrier(word comm);

int MPI_Isend(const void *from, int count, word type, int peer, int tag, word comm, void *request)
{
    pthread_once(&found, find_all);
    if (tag != BEATS) {
        int64_t at = comes(count);
        mpi.send(&at, sizeof at, type, peer, STAMPS + tag, comm);
    }
    return mpi.begin_send(from, count, type, peer, tag, comm, request);
}

int MPI_Irecv(void *to, int count, word type, int peer, int tag, word comm, void *request)
{
    pthread_once(&found, find_all);
    for (int i = 0; i < MOST && tag != BEATS; i++) {
        if (awaited[i].request)
            continue;
        awaited[i] = (struct awaited){ .request = request, .comes = INT64_MAX };
        mpi.begin_receive(&awaited[i].comes, sizeof awaited[i].comes, type, peer, STAMPS + tag, comm,
                          &awaited[i].stamp_request);
        break;
    }
    return mpi.begin_receive(to, count, type, peer, tag, comm, request);
}

/* A request that has ended is null, and may be asked again. */
int MPI_Test(void *request, int *done, void *status)
{
    pthread_once(&found, find_all);
    for (int i = 0; i < MOST; i++) {
        int stamped = 0;
        if (awaited[i].request != request)
            continue;
        /* The sender of a large message waits until MPI has taken it here: that is no part of the network. */
        int code = awaited[i].arrived ? 0 : mpi.test(request, &awaited[i].arrived, status);
        mpi.test(&awaited[i].stamp_request, &stamped, status);
        *done = awaited[i].arrived && stamped && now() >= awaited[i].comes;
        if (*done)
            awaited[i].request = NULL;
        return code;
    }
    return mpi.test(request, done, status);
}

static int is_to_stop(void)
{
    const char *stop = getenv("SHIM_STOP"), *mark = getenv("SHIM_MARK"), *rank = getenv("PMI_RANK");
    rank = rank ? rank : getenv("OMPI_COMM_WORLD_RANK");
    return stop && mark && rank && atoi(stop) == atoi(rank) && open(mark, O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0;
}

/* All that calls it has done all. */
int MPI_Barrier(word comm)
{
    pthread_once(&found, find_all);
    if (!getenv("SHIM_END") && is_to_stop())
        kill(getpid(), SIGSTOP);
    return mpi.meet(comm);
}

__attribute__((destructor)) static void end(void)
{
    if (getenv("SHIM_END") && is_to_stop())
        kill(getpid(), SIGSTOP);
}

int gethostname(char *name, size_t size)
{
    int (*real)(char *, size_t);
    Dl_info caller = { 0 };
    const char *node = getenv("SHIM_NODE");
    void *at = dlsym(RTLD_NEXT, "gethostname");
    memcpy(&real, &at, sizeof at);
    if (!node || !dladdr(__builtin_return_address(0), &caller) || !strstr(caller.dli_fname, "libgantry"))
        return real(name, size);
    strncpy(name, node, size);
    return 0;
}
