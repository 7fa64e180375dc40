/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that have left their sender come, though it makes no call any more: the thread of heartbeats goes on with
 * them. mpirun -n 2 test_left, with each MPI: rank 1 comes late to each message, and times what it takes from then on.
 * Many messages of which an implementation has the sender write to the receiver, as over a network or where processes
 * may not read each other's memory. As a busy computer is late, too, they are held against messages whose sender goes
 * on making calls, in turn; and the quarter of them counts that took the least. */
#include "run/network/network.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef OPEN_MPI
#define MPI_NAME "openmpi"
#else
#define MPI_NAME "mpich"
#endif

enum { TIMES = 41, BYTES = 65536, LATE_NS = 12000000, MOST_US = 3000, TICK_NS = 20000000 };

static const gy_network_calls *calls;
static atomic_bool over;

static bool never(void *context)
{
    (void)context;
    return false;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void *rest(void *unused)
{
    while (!atomic_load(&over))
        calls->rest(TICK_NS);
    return unused;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const gy_network_calls *load(void)
{
    const void *(*module)(void) = NULL;
    void *library = dlopen(MODULE, RTLD_NOW);
    void *found = library ? dlsym(library, "gantry_mpi_" MPI_NAME "_module") : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    memcpy(&module, &found, sizeof module);
    return module();
}

/* The time of one message, from when it is wanted; of rank 0: nothing. Its sender sleeps until the receiver must have
 * it, or waits for a word of the receiver. */
static double pass(uint32_t rank, int i, bool sleeps, int *wrong)
{
    static char bytes[BYTES], word;
    const struct timespec late = { .tv_nsec = LATE_NS }, sleep = { .tv_nsec = 5 * LATE_NS };
    memset(bytes, rank == 0 ? i : -1, sizeof bytes);
    nanosleep(&late, NULL);
    if (rank == 0) {
        calls->send(bytes, BYTES, 1, never, NULL);
        if (sleeps)
            nanosleep(&sleep, NULL);
        calls->receive(&word, 1, 1, never, NULL);
        return 0;
    }
    nanosleep(&late, NULL);
    double begun = now_us();
    calls->receive(bytes, BYTES, 0, never, NULL);
    double us = now_us() - begun;
    *wrong += bytes[0] != i || bytes[BYTES - 1] != i;
    if (sleeps)
        nanosleep(&sleep, NULL);
    calls->send(&word, 1, 0, never, NULL);
    return us;
}

static int compare(uint32_t rank)
{
    double left[TIMES], kept[TIMES];
    int wrong = 0;
    for (int i = 0; i < TIMES; i++) {
        left[i] = pass(rank, i, true, &wrong);
        kept[i] = pass(rank, i, false, &wrong);
    }
    if (rank == 0)
        return 0;
    qsort(left, TIMES, sizeof *left, by_size);
    qsort(kept, TIMES, sizeof *kept, by_size);
    double quarter = left[TIMES / 4], usual = kept[TIMES / 4];
    printf(
        "a message of %d bytes, once it is wanted: %.0f us, a quarter of them %.0f at most, from %.0f to %.0f; where "
        "its sender waits for an answer a quarter takes %.0f at most\n",
        BYTES, left[TIMES / 2], quarter, left[0], left[TIMES - 1], usual);
    return wrong || quarter > 2 * usual + MOST_US;
}

int main(void)
{
    uint32_t rank, ranks;
    const char *why = NULL;
    pthread_t thread;
    setenv("UCX_TLS", "posix,self", 0); /* of MPICH */
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    calls = load();
    if (calls->open(NULL, &rank, &ranks, &why) || pthread_create(&thread, NULL, rest, NULL))
        return 1;
    int code = compare(rank);
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    calls->close();
    return code;
}
