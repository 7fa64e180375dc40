/* SPDX-License-Identifier: Apache-2.0 */
/*
The ops of a lane are carried out in their order, start after start, by one worker, or by several of which one waits and
signals for all. Epoch: the number of the start, from 0.
A counter belongs to two lanes: one alone writes it, one alone reads it. It lies in the memory of the reader's device,
is 64 bits wide, 128 bytes from the next, begins as 0 and is never set back while starts go well.
To signal, the k-th of n signals of a counter, counted from 1: when the op has ended and all that it stored and loaded is
done, store epoch * n + k with release at system scope.
To wait for value k, d starts before: if epoch >= d, load with acquire at system scope until the counter is
(epoch - d) * n + k or more. Then the op begins, and loads nothing that was loaded before.
An op of several lanes meets: it begins when all its lanes have come to it and each of their waits is over, and the lanes
go on when it has ended in all of them. One of its lanes waits and signals for it.
A batch begins as one op and ends as one: its first op waits, its signals come when all of its ops have ended.
*/
/*
 * Three workers. Worker 0: op a writes x, op b writes y. Worker 1: op c reads x and writes z, op d reads y. Worker 2: op e
 * reads z and x. The table: c waits for a, d for b, e for c (so for a, too). Credits: a waits for e of the start before (so
 * for c, too, and c need not wait for e), b for d. Stores wait in a buffer and leave it in any order; loads of any time
 * before may be used until an acquire.
 */
#define STARTS 3
#ifdef NO_RELEASE
#define RELEASE(w) skip
#else
#define RELEASE(w) (!pending[2 * w] && !pending[2 * w + 1])
#endif
#ifdef NO_ACQUIRE
#define ACQUIRE(w) skip
#else
#define ACQUIRE(w) early[2 * w] = false; early[2 * w + 1] = false
#endif
#ifdef NO_EPOCH
#define VALUE(n, k, d) (k)
#else
#define VALUE(n, k, d) ((epoch - d) * n + k)
#endif
#ifdef NO_CREDIT
#define CREDIT false
#else
#define CREDIT true
#endif
#define SIGNAL(w, c, n, k) RELEASE(w); counter[c] = epoch * n + k
#define WAIT(w, c, n, k, d) counter[c] >= VALUE(n, k, d); ACQUIRE(w)

byte memory[3];  /* x, y, z; an op leaves epoch + 1 */
byte counter[4]; /* 0: from 0 to 1, n = 2; 1: from 1 to 2; 2: from 2 to 0; 3: from 1 to 0 */
/* Each worker has two places for stores and two for loads: worker 0 stores x, y; 1 stores z; 1 loads x, y; 2 loads z, x. */
bool pending[6], early[6];
byte stored[6], loaded[6];

#define STORE(w, i, v) d_step { stored[2 * w + i] = v; pending[2 * w + i] = true }
#define CHECK(w, i, m) d_step { if :: early[2 * w + i] -> assert(loaded[2 * w + i] == epoch + 1) :: else -> assert(memory[m] == epoch + 1) fi }
#define LEAVE(w, i, m) d_step { pending[2 * w + i] -> memory[m] = stored[2 * w + i]; pending[2 * w + i] = false }
#define EARLY(w, i, m) d_step { !early[2 * w + i] -> loaded[2 * w + i] = memory[m]; early[2 * w + i] = true }

active proctype worker0()
{
    byte epoch;
    for (epoch : 0 .. STARTS - 1) {
        if :: CREDIT && epoch >= 1 -> WAIT(0, 2, 1, 1, 1) :: else fi;
        STORE(0, 0, epoch + 1);
        SIGNAL(0, 0, 2, 1);
        if :: CREDIT && epoch >= 1 -> WAIT(0, 3, 1, 1, 1) :: else fi;
        STORE(0, 1, epoch + 1);
        SIGNAL(0, 0, 2, 2);
    }
}

active proctype worker1()
{
    byte epoch;
    for (epoch : 0 .. STARTS - 1) {
        WAIT(1, 0, 2, 1, 0);
        CHECK(1, 0, 0);
        STORE(1, 0, epoch + 1);
        SIGNAL(1, 1, 1, 1);
        WAIT(1, 0, 2, 2, 0);
        CHECK(1, 1, 1);
        SIGNAL(1, 3, 1, 1);
    }
}

active proctype worker2()
{
    byte epoch;
    for (epoch : 0 .. STARTS - 1) {
        WAIT(2, 1, 1, 1, 0);
        CHECK(2, 0, 2);
        CHECK(2, 1, 0);
        SIGNAL(2, 2, 1, 1);
    }
}

/* Stores leave their buffers, and loads are made early, at any time. */
active proctype hardware()
{
end:
    do
    :: LEAVE(0, 0, 0)
    :: LEAVE(0, 1, 1)
    :: LEAVE(1, 0, 2)
    :: EARLY(1, 0, 0)
    :: EARLY(1, 1, 1)
    :: EARLY(2, 0, 2)
    :: EARLY(2, 1, 0)
    od
}
