/* SPDX-License-Identifier: Apache-2.0 */
/* Heartbeats between ranks, by a thread of their own: whatever the others are at, they are told that this one is there.
 */
#include "run/network/network.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The exit code of gantry run for a lost rank. */
enum { CODE_LOST = 6 };
enum { TICK_NS = 20000000, TICKS_OF_A_BEAT = 5 };

void gy_network_at(gantry_network *n, char *text, size_t size)
{
    text[0] = 0;
    pthread_mutex_lock(&n->lock);
    if (n->tell)
        n->tell(n->tells, text, size);
    pthread_mutex_unlock(&n->lock);
}

/* `text`: where the rank was by its last heartbeat; empty before its first start, between two and behind the last. */
static void note_lost(gantry_network *n, const gy_waited *silent, const char *text)
{
    uint32_t rank = (n->rank + n->ranks - 1) % n->ranks;
    gy_fail(&n->why, GANTRY_E_DEVICE, NULL,
            "rank %u is lost: nothing was heard of it for %.1f s, where %g s are allowed; it was %s%.180s; look at its "
            "node, or "
            "allow more with timeout_us of the options of the run (gantry run --timeout SECONDS)",
            rank, (double)silent->ns / 1e9, (double)n->patience_ns / 1e9, *text ? "at " : "between starts", text);
    atomic_store(&n->lost, true);
}

/* Until this process has left MPI. Heartbeats are over, so a rank that does not come there is missed here. */
static void watch_end(gantry_network *n)
{
    const struct timespec tick = { .tv_nsec = TICK_NS };
    gy_waited waited = gy_waited_begin();
    while (n->left && !atomic_load(&n->over)) {
        if (gy_waited_look(&waited) > n->patience_ns) {
            dprintf(STDERR_FILENO,
                    "rank %u: another rank has not left MPI for %.1f s after all had done all, where %g s are allowed, "
                    "so all processes end; look for a process that is stopped\n",
                    n->rank, (double)waited.ns / 1e9, (double)n->patience_ns / 1e9);
            gantry_network_flush();
            n->calls->end_all(CODE_LOST);
        }
        nanosleep(&tick, NULL);
    }
}

static void *beat(void *network)
{
    gantry_network *n = network;
    char mine[GY_BEAT] = "", theirs[GY_BEAT] = "";
    gy_waited silent = gy_waited_begin();
    for (unsigned i = 0; !atomic_load(&n->ends); i++) {
        bool speaks = i % TICKS_OF_A_BEAT == 0;
        if (speaks)
            gy_network_at(n, mine, sizeof mine);
        if (n->calls->beat(speaks ? mine : NULL, theirs))
            silent = gy_waited_begin();
        theirs[sizeof theirs - 1] = 0;
        if (!atomic_load(&n->lost) && gy_waited_look(&silent) > n->patience_ns)
            note_lost(n, &silent, theirs);
        n->calls->rest(TICK_NS);
    }
    atomic_store(&n->mute, true);
    watch_end(n);
    return NULL;
}

gantry_status gy_network_watch(gantry_network *n, int64_t patience_ns, gantry_error *err)
{
    if (n->beats)
        return GANTRY_OK;
    n->patience_ns = patience_ns;
    int code = gy_thread_create(&n->thread, beat, n);
    if (code)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "cannot start the thread of heartbeats (error %d)", code);
    n->beats = true;
    return GANTRY_OK;
}

void gy_network_unwatch(gantry_network *n)
{
    atomic_store(&n->ends, true);
    while (n->beats && !atomic_load(&n->mute))
        nanosleep(&(struct timespec){ .tv_nsec = TICK_NS / 20 }, NULL);
}

void gy_network_end_watch(gantry_network *n)
{
    atomic_store(&n->over, true);
    if (n->beats)
        pthread_join(n->thread, NULL);
    n->beats = false;
}
