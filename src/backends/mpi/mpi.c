/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Messages by MPI. MPICH and Open MPI differ in what their types are, so this file is compiled once with the header of
 * each, to a module each (GY_MPI is its name with underscores): a compiler gets their constants right, and no table of
 * them is to be kept here.
 *
 * Threads of a run send and receive, one at a time, and the thread that starts it shares what rank 0 has; a lock keeps
 * their calls apart, so that MPI_THREAD_SERIALIZED will do. A message is begun, then asked for until it has ended, so
 * that a failure of this process ends the wait.
 */
#include "gantry_build_id.h"
#include "run/network/network.h"
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

enum { PIECE = 1 << 30, POLLS = 200, YIELDS = 2000, NAP_NS = 50000 };

static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm comm; /* of this module alone: no message of the program is taken for one of ours */

static const char *network_open(uint32_t *rank, uint32_t *ranks)
{
    int there = 0, given = 0, mine = 0, all = 0;
    MPI_Initialized(&there);
    if (there)
        MPI_Query_thread(&given);
    else
        MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    if (given < MPI_THREAD_SERIALIZED)
        return "MPI was begun for one thread only; it must be begun with MPI_Init_thread for MPI_THREAD_SERIALIZED";
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &mine);
    MPI_Comm_size(comm, &all);
    *rank = (uint32_t)mine;
    *ranks = (uint32_t)all;
    return NULL;
}

static void network_close(void)
{
    int done = 0;
    MPI_Finalized(&done);
    if (done)
        return;
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

static void network_end_all(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

/* Messages come within microseconds or take long. */
static void pause_between(unsigned polls)
{
    const struct timespec nap = { .tv_nsec = NAP_NS };
    if (polls >= POLLS + YIELDS)
        nanosleep(&nap, NULL);
    else if (polls >= POLLS)
        sched_yield();
}

static bool wait_for(MPI_Request *request, gy_stop stop, void *context)
{
    int done = 0;
    for (unsigned polls = 0; !done; polls++) {
        pthread_mutex_lock(&calls);
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&calls);
        if (!done && stop(context))
            return false;
        if (!done)
            pause_between(polls);
    }
    return true;
}

static bool network_send(const void *from, uint64_t bytes, uint32_t peer, gy_stop stop, void *context)
{
    bool sent = true;
    for (uint64_t at = 0; at < bytes && sent; at += PIECE) {
        MPI_Request request;
        int count = (int)(bytes - at < PIECE ? bytes - at : PIECE);
        pthread_mutex_lock(&calls);
        MPI_Isend((const char *)from + at, count, MPI_BYTE, (int)peer, 0, comm, &request);
        pthread_mutex_unlock(&calls);
        sent = wait_for(&request, stop, context);
    }
    return sent;
}

static bool network_receive(void *to, uint64_t bytes, uint32_t peer, gy_stop stop, void *context)
{
    bool there = true;
    for (uint64_t at = 0; at < bytes && there; at += PIECE) {
        MPI_Request request;
        int count = (int)(bytes - at < PIECE ? bytes - at : PIECE);
        pthread_mutex_lock(&calls);
        MPI_Irecv((char *)to + at, count, MPI_BYTE, (int)peer, 0, comm, &request);
        pthread_mutex_unlock(&calls);
        there = wait_for(&request, stop, context);
    }
    return there;
}

static void network_share(void *bytes, uint64_t count)
{
    pthread_mutex_lock(&calls);
    for (uint64_t at = 0; at < count; at += PIECE)
        MPI_Bcast((char *)bytes + at, (int)(count - at < PIECE ? count - at : PIECE), MPI_BYTE, 0, comm);
    pthread_mutex_unlock(&calls);
}

static void network_gather(const void *mine, void *all, uint64_t count)
{
    pthread_mutex_lock(&calls);
    MPI_Allgather(mine, (int)count, MPI_BYTE, all, (int)count, MPI_BYTE, comm);
    pthread_mutex_unlock(&calls);
}

GANTRY_API extern const char JOIN(GY_MPI, _build_id)[];
const char JOIN(GY_MPI, _build_id)[] = GY_BUILD_ID;

GANTRY_API const void *JOIN(GY_MPI, _module)(void);

const void *JOIN(GY_MPI, _module)(void)
{
    static const gy_network_calls table = { "MPI",        network_open,    network_close, network_end_all,
                                            network_send, network_receive, network_share, network_gather };
    return &table;
}
