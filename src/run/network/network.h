/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Processes that a launcher started together, and messages between them. A module, which one depends on the launcher,
 * exports the table of calls; it has what is MPI's.
 */
#ifndef GY_RUN_NETWORK_H
#define GY_RUN_NETWORK_H

#include "base/module.h"
#include <gantry/run.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Says whether a message is to be given up. */
typedef bool (*gy_stop)(void *context);

/* A message under way. Between two ranks, those of a channel arrive in the order in which they were sent. */
enum { GY_CHANNEL_ORDER /* of the steps of a rank */, GY_CHANNEL_COPIES, GY_CHANNELS };
typedef struct gy_transfer {
    const void *from; /* what is sent; NULL: it is received */
    void *to;
    uint64_t bytes;
    uint32_t peer;
    uint8_t channel;

    /* Of the module; 0 at first. */
    bool begun, failed;
    uint32_t kept, looks;
    uint64_t moved, piece;
    union {
        int number;
        void *pointer;
    } request;
} gy_transfer;

/* The table that a module exports. Any thread may call, one at a time for each two ranks. */
typedef struct gy_network_calls {
    const char *name;
    /* Joins the others: of the MPI_Comm at that address, or, where it is NULL, those of the launcher. One at a time.
     * GANTRY_OK, or else *wrong is what is wrong. */
    gantry_status (*open)(const void *comm, uint32_t *rank, uint32_t *ranks, const char **wrong);
    void (*close)(void);       /* all processes call it */
    void (*end_all)(int code); /* does not return */
    /* One message to or from `peer`, as many bytes on both sides, of GY_CHANNEL_ORDER. Returns when the bytes may be
     * changed, or are there. False: `stop` said so. */
    bool (*send)(const void *from, uint64_t bytes, uint32_t peer, gy_stop stop, void *context);
    bool (*receive)(void *to, uint64_t bytes, uint32_t peer, gy_stop stop, void *context);
    /* Begins the message, or goes on with it, and waits for nothing. True: it has ended, so the bytes may be changed,
     * or are there. It stays where it is from the first call to the last. */
    bool (*pass)(gy_transfer *transfer);
    /* All processes call these two: what rank 0 has gets to all; of each rank so many bytes get to all, in their order.
     */
    bool (*share)(void *bytes, uint64_t count, gy_stop stop, void *context);
    bool (*gather)(const void *mine, void *all, uint64_t count, gy_stop stop, void *context);
    /* Ranks are a ring here. Sends `mine` to the next one, if what was sent before has left, where it is not NULL.
     * True: *theirs is what the one before has sent last, and it has come since the last call. GY_BEAT bytes each. */
    bool (*beat)(const void *mine, void *theirs);
    /* The thread of heartbeats waits so long, and goes on meanwhile with messages that have left their senders. */
    void (*rest)(int64_t ns);
} gy_network_calls;

enum { GY_BEAT = 256 };
/* Describes what this process is at in so many bytes, while somebody else works on it. */
typedef void (*gy_tell)(void *context, char *text, size_t size);

struct gantry_network {
    gy_module module;
    const gy_network_calls *calls;
    uint32_t rank, ranks;
    bool agreed; /* all have said with what they begin, or that they do not */
    bool begun;  /* they have said the same */
    bool quiet;  /* they do not, and another process tells why */

    /* beat.c: heartbeats, once the run has begun */
    pthread_t thread;
    bool beats, left;       /* left: all have said that they have done all (gantry_network_leave) */
    atomic_bool ends, lost; /* the thread is to make no call any more; the rank before is silent, and `why` says so */
    atomic_bool mute, over; /* it makes none; this process has left MPI */
    int64_t patience_ns;
    gantry_error why;
    pthread_mutex_t lock; /* for what follows */
    gy_tell tell;
    void *tells;
};

/* Heartbeats: every rank tells the next one that it is there, and what it is at. A rank of which nothing comes for so
 * long is lost: all that waits for messages ends, with gy_network_fail. */
gantry_status gy_network_watch(gantry_network *network, int64_t patience_ns, gantry_error *err);
/* No heartbeats from here on. Where all have said that they have done all, they leave MPI now, and one that is stopped
 * then would keep the others for ever: after the same time this process ends all. */
void gy_network_unwatch(gantry_network *network);
void gy_network_end_watch(gantry_network *network); /* this process has left MPI */
bool gy_network_is_lost(void *network);             /* a gy_stop */
gantry_status gy_network_fail(const gantry_network *network, gantry_error *err);
/* All processes get what rank 0 has; with one process, NULL, nothing. E_DEVICE: a rank is lost. */
gantry_status gy_network_share(gantry_network *network, void *bytes, uint64_t count, gantry_error *err);
/* Asks from now on there what this process is at; NULL: nobody. */
void gy_network_ask(gantry_network *network, gy_tell tell, void *context);
/* Says nobody again, if it is that one who is asked. */
void gy_network_ask_no_more(gantry_network *network, const void *context);
/* "" if nobody knows. */
void gy_network_at(gantry_network *network, char *text, size_t size);

/* All have come to the same point before anything runs: E_DEVICE if one of them has given up, E_INVALID if one is
 * elsewhere. */
enum { GY_MEETS_MACHINE = 1, GY_MEETS_TEXTS, GY_MEETS_LINKS };
gantry_status gy_network_meet(gantry_network *network, uint64_t point, gantry_error *err);
/* All begin with the same: E_INVALID if their hashes differ, E_DEVICE if one of them has given up. */
gantry_status gy_network_agree(gantry_network *network, uint64_t hash, gantry_error *err);
/* All know that rank 0 cannot go on, which tells why: nothing has begun. NULL: there is one process. */
void gy_network_stay_behind(gantry_network *network);

#endif
