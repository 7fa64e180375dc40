/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Messages by MPI. MPICH and Open MPI differ in what their types are, so this file is compiled once with the header of
 * each, to a module each (GY_MPI is its name with underscores): a compiler gets their constants right, and no table of
 * them is to be kept here.
 *
 * Threads of a run send and receive, and the thread that starts it shares what rank 0 has; a lock keeps their calls
 * apart, so that MPI_THREAD_SERIALIZED will do, unless the program has messages of its own. A message is
 * begun, then asked for until it has ended, so that a failure of this process ends the wait.
 */
#include "gantry_build_id.h"
#include "run/network/network.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

/* Heartbeats pass between the pieces of a message: each of 8 MiB takes 0.1 s over 1 Gb/s, and 0.7 ms over 100 Gb/s,
 * where some us more for the next one do not show. */
enum { PIECE = 1 << 23, POLLS = 200, YIELDS = 2000, NAP_NS = 50000, BEATS = 1 /* the tag of heartbeats */ };
static const int tag_of[GY_CHANNELS] = { [GY_CHANNEL_ORDER] = 0, [GY_CHANNEL_COPIES] = 2 };

static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm comm; /* of this module alone: no message of the program is taken for one of ours */

static struct {
    bool open, begun_here; /* there is a network; MPI was begun for it, and ends with it */
    bool apart, left;      /* it is over several computers; the launcher was told that this process has done all */
} now;

/* Small messages are sent from here, so that who sends goes on: some implementations let a send wait until its receiver
 * has come to it, Open MPI from 4 KiB on, and a rank that waits for one neighbour sends nothing to the others. They
 * move the bytes in calls of MPI only: so a sender looks after its message for a while, and behind that the thread of
 * heartbeats does, which is told. */
enum { KEPT = 32, KEPT_BYTES = 1 << 16, LOOKS = 200 };
static struct {
    char bytes[KEPT][KEPT_BYTES];
    MPI_Request request[KEPT];
    bool used[KEPT];
    pthread_cond_t left; /* to the thread of heartbeats */
} kept;

/* Its clock is one that nobody sets. */
static void begin_kept(void)
{
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&kept.left, &how);
    pthread_condattr_destroy(&how);
}

static int begin(void)
{
    int given = 0;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH asks it about requests of any communicator */
    now.begun_here = true;
    return given;
}

static gantry_status refuse(const void *from, int there, int over, const char **wrong)
{
    *wrong = now.open         ? "this process is in a network already; free that one first (gantry_network_free)"
             : over           ? "MPI is over (MPI_Finalize); the network is to be made before that"
             : from && !there ? "MPI was not begun; begin it by MPI_Init_thread, for MPI_THREAD_MULTIPLE"
             : from && *(const MPI_Comm *)from == MPI_COMM_NULL
                 ? "the communicator is MPI_COMM_NULL; give one that this process is in"
                 : NULL;
    return *wrong ? GANTRY_E_INVALID : GANTRY_OK;
}

static bool is_apart(int ranks)
{
    MPI_Comm near;
    int size = ranks;
    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near) == MPI_SUCCESS) {
        MPI_Comm_size(near, &size);
        MPI_Comm_free(&near);
    }
    return size < ranks;
}

static gantry_status network_open(const void *from, uint32_t *rank, uint32_t *ranks, const char **wrong)
{
    int there = 0, over = 0, given = 0, mine = 0, all = 0;
    MPI_Initialized(&there);
    MPI_Finalized(&over);
    gantry_status status = refuse(from, there, over || now.left, wrong);
    if (status)
        return status;
    if (there)
        MPI_Query_thread(&given);
    else
        given = begin();
    *wrong = given < MPI_THREAD_SERIALIZED
                 ? "MPI was begun for one thread only; it must be begun with MPI_Init_thread for MPI_THREAD_SERIALIZED"
             : from && given < MPI_THREAD_MULTIPLE
                 ? "MPI was not begun for MPI_THREAD_MULTIPLE, and messages of the program and of runs go on at the "
                   "same time; begin it by MPI_Init_thread with that"
                 : NULL;
    if (*wrong)
        return GANTRY_E_UNSUPPORTED;
    MPI_Comm_dup(from ? *(const MPI_Comm *)from : MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &mine);
    MPI_Comm_size(comm, &all);
    *rank = (uint32_t)mine;
    *ranks = (uint32_t)all;
    now.apart = is_apart(all);
    begin_kept();
    now.open = true;
    return GANTRY_OK;
}

/* Of heartbeats: at most one to the next rank is under way, and one from the rank before is awaited. */
static struct {
    char sent[GY_BEAT], got[GY_BEAT];
    MPI_Request to, from;
    bool begun, failed; /* failed: a neighbour is gone, so nothing is sent or awaited any more */
} ring;

static void await_beat(int rank, int ranks)
{
    MPI_Irecv(ring.got, GY_BEAT, MPI_BYTE, (rank + ranks - 1) % ranks, BEATS, comm, &ring.from);
}

static void begin_beats(int *rank, int *ranks)
{
    MPI_Comm_rank(comm, rank);
    MPI_Comm_size(comm, ranks);
    if (ring.begun)
        return;
    ring.to = MPI_REQUEST_NULL;
    await_beat(*rank, *ranks);
    ring.begun = true;
}

/* Every heartbeat is taken: the last one is empty. MPICH 4.0 over TCP may wait for ever in MPI_Finalize for one that
 * was sent to a receive which is cancelled. All have come here by then. */
static void end_beats(void)
{
    int rank, ranks, count = -1;
    MPI_Status status;
    MPI_Barrier(comm);
    begin_beats(&rank, &ranks);
    MPI_Wait(&ring.to, MPI_STATUS_IGNORE);
    MPI_Isend(ring.sent, 0, MPI_BYTE, (rank + 1) % ranks, BEATS, comm, &ring.to);
    while (count != 0) {
        if (MPI_Wait(&ring.from, &status) != MPI_SUCCESS)
            break; /* its neighbour is gone */
        MPI_Get_count(&status, MPI_BYTE, &count);
        if (count != 0)
            await_beat(rank, ranks);
    }
    MPI_Wait(&ring.to, MPI_STATUS_IGNORE);
    ring.begun = false;
}

/* Whoever makes a call may have to end first; but not if it never does. */
static void network_end_all(int code)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    (void)pthread_mutex_timedlock(&calls, &until);
    MPI_Abort(now.begun_here ? MPI_COMM_WORLD : comm, code); /* of other communicators MPICH says that it is called */
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

/* A call that fails has lost its peer, which the peer's guard, the launcher or heartbeats tell, and then end all: if
 * this process ended by itself, as MPI has it otherwise, the launcher might take that for the reason. */
static bool wait_for(MPI_Request *request, int code, gy_stop stop, void *context)
{
    int done = 0;
    for (unsigned polls = 0; !done; polls++) {
        pthread_mutex_lock(&calls);
        code = code == MPI_SUCCESS ? MPI_Test(request, &done, MPI_STATUS_IGNORE) : code;
        pthread_mutex_unlock(&calls);
        done = done && code == MPI_SUCCESS;
        if (!done && stop(context))
            return false;
        if (!done)
            pause_between(polls);
    }
    return true;
}

static bool look_at_kept(int place)
{
    int done = !kept.used[place];
    if (!done && MPI_Test(&kept.request[place], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        done = 0;
    kept.used[place] = !done;
    return done;
}

/* Goes on with all of them. True: some have not ended. */
static bool look_at_all_kept(void)
{
    bool some = false;
    for (int i = 0; i < KEPT; i++)
        some = !look_at_kept(i) || some;
    return some;
}

/* False: it is too large, all places are taken, or MPI says that the peer is gone; then it is sent as others are. */
static bool send_kept(gy_transfer *t)
{
    int place = 0;
    if (t->bytes > KEPT_BYTES)
        return false;
    look_at_all_kept();
    while (place < KEPT && kept.used[place])
        place++;
    if (place == KEPT)
        return false;
    memcpy(kept.bytes[place], t->from, t->bytes);
    kept.used[place] = MPI_Isend(kept.bytes[place], (int)t->bytes, MPI_BYTE, (int)t->peer, tag_of[t->channel], comm,
                                 &kept.request[place]) == MPI_SUCCESS;
    t->kept = kept.used[place] ? (uint32_t)place + 1 : 0;
    return t->kept;
}

/* The place may be that of a later message by now, if this one has ended. */
static bool end_send_kept(gy_transfer *t)
{
    bool ended = look_at_kept((int)t->kept - 1);
    if (!ended && ++t->looks >= LOOKS)
        pthread_cond_signal(&kept.left);
    return ended || t->looks >= LOOKS;
}

static void end_kept(void)
{
    for (int i = 0; i < KEPT; i++)
        if (kept.used[i])
            MPI_Wait(&kept.request[i], MPI_STATUS_IGNORE);
    memset(kept.used, 0, sizeof kept.used);
    pthread_cond_destroy(&kept.left); /* heartbeats are over */
}

static MPI_Request *request_of(gy_transfer *t)
{
    _Static_assert(sizeof(MPI_Request) <= sizeof t->request, "a request is a number or a pointer");
    return (MPI_Request *)(void *)&t->request;
}

static void begin_piece(gy_transfer *t)
{
    uint64_t left = t->bytes - t->moved;
    int tag = tag_of[t->channel], peer = (int)t->peer, count = (int)(left < PIECE ? left : PIECE), code;
    if (t->from)
        code = MPI_Isend((const char *)t->from + t->moved, count, MPI_BYTE, peer, tag, comm, request_of(t));
    else
        code = MPI_Irecv((char *)t->to + t->moved, count, MPI_BYTE, peer, tag, comm, request_of(t));
    t->piece = (uint64_t)count;
    t->failed = code != MPI_SUCCESS;
}

/* The caller holds the lock. */
static bool go_on(gy_transfer *t)
{
    int done = 1;
    if (t->bytes == 0)
        return true;
    if (t->kept || (!t->begun && t->from && send_kept(t)))
        return end_send_kept(t);
    if (!t->begun)
        begin_piece(t);
    t->begun = true;
    while (t->moved < t->bytes && done) {
        t->failed = t->failed || MPI_Test(request_of(t), &done, MPI_STATUS_IGNORE) != MPI_SUCCESS;
        done = done && !t->failed;
        t->moved += done ? t->piece : 0;
        if (done && t->moved < t->bytes)
            begin_piece(t);
    }
    return t->moved == t->bytes;
}

static bool network_pass(gy_transfer *transfer)
{
    pthread_mutex_lock(&calls);
    bool ended = go_on(transfer);
    pthread_mutex_unlock(&calls);
    return ended;
}

static bool pass_waiting(gy_transfer t, gy_stop stop, void *context)
{
    for (unsigned polls = 0; !network_pass(&t); polls++) {
        if (stop(context))
            return false;
        pause_between(polls);
    }
    return true;
}

static bool network_send(const void *from, uint64_t bytes, uint32_t peer, gy_stop stop, void *context)
{
    return pass_waiting((gy_transfer){ .from = from, .bytes = bytes, .peer = peer }, stop, context);
}

static bool network_receive(void *to, uint64_t bytes, uint32_t peer, gy_stop stop, void *context)
{
    return pass_waiting((gy_transfer){ .to = to, .bytes = bytes, .peer = peer }, stop, context);
}

/* MPICH before 4.2 over UCX: a rank that has closed its connections waits for all others in a call of the launcher, and
 * carries out no part of their closing any more; so they may wait for it for ever in MPI_Finalize. With 1 ms between
 * four computers every third program that calls MPI_Barrier, then MPI_Finalize, did (pmodels/mpich #6596). `text` is
 * MPI_Get_library_version, which ends with the options that MPICH was configured by: with other words for the launcher
 * than those of PMI-1, some say. */
static bool is_finalize_broken(const char *text)
{
    char device[32] = "";
    int major = 0, minor = 0;
    const char *at = strstr(text, "MPICH Device:");
    bool over_ucx = at && sscanf(at, "MPICH Device: %31s", device) == 1 && strcmp(device, "ch4:ucx") == 0;
    bool speaks_pmi1 = !strstr(text, "pmi2") && !strstr(text, "pmix");
    return over_ucx && speaks_pmi1 && sscanf(text, "MPICH Version: %d.%d", &major, &minor) == 2 &&
           (major < 4 || (major == 4 && minor < 2));
}

/* The answer is a line. A signal of the program may come between. */
static bool ask_launcher(int fd, const char *question, const char *answer)
{
    char text[64] = "";
    size_t length = strlen(question), put = 0, got = 0;
    while (put < length) {
        ssize_t n = write(fd, question + put, length - put);
        if (n < 0 && errno != EINTR)
            return false;
        put += n > 0 ? (size_t)n : 0;
    }
    while (got < sizeof text - 1 && !strchr(text, '\n')) {
        ssize_t n = read(fd, text + got, sizeof text - 1 - got);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        got += n > 0 ? (size_t)n : 0;
    }
    return !strncmp(text, answer, strlen(answer));
}

/* The line to Hydra, MPICH's launcher, if that is what has started this process: it tells processes of HYDI_CONTROL_FD
 * beside PMI_FD. Others may have a PMI_FD that wants other words. -1: none. */
static int line_to_hydra(void)
{
    const char *fd = getenv("PMI_FD");
    char *end = NULL;
    long number = fd && getenv("HYDI_CONTROL_FD") ? strtol(fd, &end, 10) : -1;
    return end && end != fd && *end == 0 && number >= 0 && number <= INT_MAX ? (int)number : -1;
}

/* The words by which MPI_Finalize takes leave of the launcher: that all are to have come here, and that this process
 * ends as it should. Nothing is under way then. False: it is not Hydra. Once the first word has been, MPI_Finalize is
 * not for this process any more, whatever comes of it: it would meet the others a second time, who have left then. */
static bool leave_by_launcher(void)
{
    int fd = line_to_hydra();
    if (fd < 0 || fcntl(fd, F_GETFL) < 0)
        return false;
    if (ask_launcher(fd, "cmd=barrier_in\n", "cmd=barrier_out"))
        (void)ask_launcher(fd, "cmd=finalize\n", "cmd=finalize_ack");
    return true;
}

static void network_close(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int done = 0, length = 0;
    MPI_Finalized(&done);
    if (done || now.left)
        return;
    MPI_Get_library_version(text, &length);
    end_kept();
    end_beats();
    MPI_Comm_free(&comm);
    now.open = false;
    now.left = now.begun_here && now.apart && is_finalize_broken(text) && leave_by_launcher();
    if (now.begun_here && !now.left)
        MPI_Finalize();
}

static bool network_share(void *bytes, uint64_t count, gy_stop stop, void *context)
{
    bool there = true;
    for (uint64_t at = 0; at < count && there; at += PIECE) {
        MPI_Request request;
        pthread_mutex_lock(&calls);
        int some = (int)(count - at < PIECE ? count - at : PIECE);
        int code = MPI_Ibcast((char *)bytes + at, some, MPI_BYTE, 0, comm, &request);
        pthread_mutex_unlock(&calls);
        there = wait_for(&request, code, stop, context);
    }
    return there;
}

static bool network_gather(const void *mine, void *all, uint64_t count, gy_stop stop, void *context)
{
    MPI_Request request;
    pthread_mutex_lock(&calls);
    int code = MPI_Iallgather(mine, (int)count, MPI_BYTE, all, (int)count, MPI_BYTE, comm, &request);
    pthread_mutex_unlock(&calls);
    return wait_for(&request, code, stop, context);
}

static struct timespec time_after(int64_t ns)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    ns += at.tv_nsec;
    at.tv_sec += ns / 1000000000;
    at.tv_nsec = ns % 1000000000;
    return at;
}

static bool is_past(struct timespec at)
{
    struct timespec here = time_after(0);
    return here.tv_sec > at.tv_sec || (here.tv_sec == at.tv_sec && here.tv_nsec >= at.tv_nsec);
}

static void network_rest(int64_t ns)
{
    const struct timespec nap = { .tv_nsec = NAP_NS }, until = time_after(ns);
    pthread_mutex_lock(&calls);
    while (!is_past(until)) {
        if (!look_at_all_kept()) {
            (void)pthread_cond_timedwait(&kept.left, &calls, &until);
            continue;
        }
        pthread_mutex_unlock(&calls);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&calls);
    }
    pthread_mutex_unlock(&calls);
}

static bool network_beat(const void *mine, void *theirs)
{
    int rank, ranks, gone = 0, come = 0;
    pthread_mutex_lock(&calls);
    begin_beats(&rank, &ranks);
    ring.failed = ring.failed || MPI_Test(&ring.to, &gone, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    if (gone && mine && !ring.failed) {
        memcpy(ring.sent, mine, GY_BEAT);
        MPI_Isend(ring.sent, GY_BEAT, MPI_BYTE, (rank + 1) % ranks, BEATS, comm, &ring.to);
    }
    ring.failed = ring.failed || MPI_Test(&ring.from, &come, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    if (come && !ring.failed) {
        memcpy(theirs, ring.got, GY_BEAT);
        await_beat(rank, ranks);
    }
    pthread_mutex_unlock(&calls);
    return come && !ring.failed;
}

GANTRY_API extern const char JOIN(GY_MPI, _build_id)[];
const char JOIN(GY_MPI, _build_id)[] = GY_BUILD_ID;

GANTRY_API const void *JOIN(GY_MPI, _module)(void);

const void *JOIN(GY_MPI, _module)(void)
{
    static const gy_network_calls table = { "MPI",          network_open,    network_close, network_end_all,
                                            network_send,   network_receive, network_pass,  network_share,
                                            network_gather, network_beat,    network_rest };
    return &table;
}
