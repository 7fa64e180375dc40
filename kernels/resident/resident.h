/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that a resident kernel carries out, as data: the host writes it, the GPU reads it (resident.cu). A worker
 * is a block of threads. It goes through its packets in their order, once a start: it awaits counters, carries a call
 * out, and signals counters, as docs/design/counters.md says. A series is several starts by one launch: then it begins
 * again with its first packet. An op may take several packets: only the first waits, only the last signals. A packet
 * may also *send*: what its call stores in a range of memory it stores in another GPU's as well, in place of a copy
 * behind it.
 *
 * A packet may be *guarded*: it has a call only where a number in memory of the GPU, its flag, is not 0, and waits and
 * signals in any case. Each worker that carries it out asks the flag, when it may begin the call.
 *
 * A lane has one worker, or several that share the calls that are wide enough. Then the first of them, the leader, has
 * all packets of the lane, and the others, the helpers, have the shared ones alone, without waits and signals. They
 * meet at each of these.
 */
#ifndef GY_KERNELS_RESIDENT_H
#define GY_KERNELS_RESIDENT_H

#include "kernels/resident/counters.h"

#include <stdint.h>

enum {
    GY_RESIDENT_THREADS = 256,   /* of a worker */
    GY_RESIDENT_WORDS = 28,      /* of a packet */
    GY_RESIDENT_SENDS = 2,       /* at most, of a packet */
    GY_RESIDENT_ENDS = 10,       /* what is combined, and where that goes: parameters of a function */
    GY_RESIDENT_CHUNK = 16384,   /* bytes that a block copies or fills */
    GY_RESIDENT_KEPT = 17408,    /* bytes of shared memory: the most that a function of the library asks for */
    GY_RESIDENT_PLACES = 256,    /* ahead of these where formulas have the room, too: their names of CUDA */
    GY_RESIDENT_FAR = 1 << 15,   /* beside the number of a function: its word is where its parameters are */
    GY_RESIDENT_SHARED = 1 << 20 /* at most so many packets of a lane are shared */
};

#define GY_RESIDENT_ENDED UINT32_MAX /* all packets of a worker have */

/* Functions by their number, from 1 on. */
enum gy_resident_function {
    GY_RESIDENT_none,
#define FUNCTION(name) GY_RESIDENT_##name,
#include "kernels/resident/functions.def"
    GY_RESIDENT_FUNCTIONS
};

/* Of one packet, in `word`: its waits, its signals, its sends, its flag, then the parameters of its function, a word
 * each; of a function that was linked, and has more of them than a packet has room for, their address. */
typedef struct gy_resident_wait {
    uint64_t counter; /* address */
    uint32_t value, signals;
    uint32_t distance, unused;
} gy_resident_wait; /* until the counter is (epoch - distance) * signals + value */
typedef struct gy_resident_signal {
    uint64_t counter;
    uint32_t value, signals;
} gy_resident_signal; /* the counter becomes epoch * signals + value; one more where the packet `asks` and finds it so
                       */

/* A number in memory, of 1, 2, 4 or 8 bytes, and those of its bits of which one is set if it is not 0: the flag of a
 * packet that is `guarded`, and, in place of parameters, what ends a series, of a packet that `asks`. Signals of the
 * latter are the verdict of its start: 2 epoch + 1, another start may follow; 2 epoch + 2, it was the last. */
typedef struct gy_resident_asked {
    uint64_t number, bytes, mask;
} gy_resident_asked;

typedef struct gy_resident_send {
    uint64_t from, bytes, to; /* multiples of 16: a store is within the range as a whole, or not at all */
} gy_resident_send;

enum {
    GY_RESIDENT_WAIT_WORDS = 3,
    GY_RESIDENT_SIGNAL_WORDS = 2,
    GY_RESIDENT_SEND_WORDS = 3,
    GY_RESIDENT_ASK_WORDS = 3
};

typedef struct gy_resident_packet {
    uint32_t op; /* of the schedule: for progress */
    uint16_t function;
    uint8_t waits, signals;
    uint8_t near_waits, near_signals; /* so many of each, the first, are between workers of one GPU */
    uint8_t last;                     /* so many of its signals, the last, come after all others */
    uint8_t together;                 /* 1: threads of a block wait for each other */
    uint32_t shared;                  /* above 0: all workers of the lane carry the call out, as the n-th of a start */
    uint32_t blocks_x, blocks_y;      /* the grid of the call */
    uint16_t threads_x, threads_y;    /* of a block of it: GY_RESIDENT_THREADS in all */
    uint8_t settled; /* 1: all threads have ended the call before others are told of that, or called to the next one */
    uint8_t asks, guarded;
    uint8_t sends;
    uint64_t word[GY_RESIDENT_WORDS];
} gy_resident_packet;

typedef struct gy_resident_meet {
    uint64_t go;         /* the shared packet that the leader has begun: epoch, then its number in the start */
    uint64_t unused[15]; /* another line of the cache */
    uint64_t done;       /* so many helpers have ended it; the leader sets it back */
    uint64_t padding[15];
} gy_resident_meet;

typedef struct gy_resident_worker {
    const gy_resident_packet *packet;
    gy_resident_meet *meet; /* NULL: the lane has no other worker */
    uint64_t *progress;     /* the epoch, then, in 32 bits, the op that was begun last, from 1, or GY_RESIDENT_ENDED */
    uint32_t packets;
    uint32_t index, workers; /* of the lane; index 0: the leader */
    uint32_t ring;           /* packets of all turns, of which starts take one after the other; `packets` of one */
} gy_resident_worker;

/* The starts of a launch. Both words are in memory of the GPU, and GY_COUNTER_STOP or more in starts that failed. */
typedef struct gy_resident_series {
    uint64_t starts; /* at most */
    uint64_t look;   /* the start, counted from 1, whose verdict is awaited first; 0: none is */
    uint64_t every;  /* and then after so many more each */
    const uint64_t *verdict;
    const uint64_t *halt; /* only the host writes it: a look ahead of each start, since a worker may wait for nothing */
    uint32_t turn;        /* of the first start, whose packets come behind those of so many turns in a ring */
} gy_resident_series;

#endif
