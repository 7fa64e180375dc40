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
A series is several starts without the host between them: each worker goes from its last op to its first of the next epoch.
A condition may end it after some of the epochs. Each device has a word for that, which begins as 0. The lane with the op
that brings the condition reads it when that op may begin and before it signals its end, and stores 2 * epoch + 1, or
2 * epoch + 2 if it ends the series, with release at system scope to every device: the verdict. After an epoch that may be
the last, a worker loads the word of its device with acquire at system scope until it is 2 * epoch + 1 or more, and ends
if it is 2 * epoch + 2.
*/
/*
 * Three workers. Worker 0: op a writes x, op b writes y. Worker 1: op c reads x and writes z, op d reads y. Worker 2: op e
 * reads z and x. The table: c waits for a, d for b, e for c (so for a, too). Credits: a waits for e of the start before (so
 * for c, too, and c need not wait for e), b for d. Stores wait in a buffer and leave it in any order; loads of any time
 * before may be used until an acquire. The starts are a series, which ends after epoch 1 or 2: y says so, and op d brings it, so
 * worker 1 tells the verdict. After epoch 1 all wait for it.
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
#ifdef ANY_END
#define ENDS(w) (verdict[w] % 2 == 0)
#else
#define ENDS(w) (verdict[w] == 2 * epoch + 2)
#endif
#ifdef NO_VERDICT
#define GO_ON(w) skip
#else
#define GO_ON(w) if :: epoch == 1 -> verdict[w] >= 2 * epoch + 1; ACQUIRE(w); if :: ENDS(w) -> assert(epoch == last); goto over :: else fi :: else fi
#endif
#define TELL(w) verdict[w] = 2 * epoch + 1 + (y == last + 1)
#define DECIDE d_step { if :: early[3] -> y = loaded[3] :: else -> y = memory[1] fi }; RELEASE(1); TELL(0); TELL(1); TELL(2)
#ifdef EARLY_VERDICT
#define BEFORE DECIDE
#define AFTER skip
#else
#define BEFORE skip
#define AFTER DECIDE
#endif
#define SIGNAL(w, c, n, k) RELEASE(w); counter[c] = epoch * n + k
#define WAIT(w, c, n, k, d) counter[c] >= VALUE(n, k, d); ACQUIRE(w)

byte memory[3];  /* x, y, z; an op leaves epoch + 1 */
byte counter[4]; /* 0: from 0 to 1, n = 2; 1: from 1 to 2; 2: from 2 to 0; 3: from 1 to 0 */
byte verdict[3]; /* of each worker's device */
byte last;       /* epoch; 0: not yet decided */
/* Each worker has two places for stores and two for loads: worker 0 stores x, y; 1 stores z; 1 loads x, y; 2 loads z, x. */
bool pending[6], early[6];
byte stored[6], loaded[6];

#define STORE(w, i, v) d_step { stored[2 * w + i] = v; pending[2 * w + i] = true }
#define CHECK(w, i, m) d_step { if :: early[2 * w + i] -> assert(loaded[2 * w + i] == epoch + 1) :: else -> assert(memory[m] == epoch + 1) fi }
#define LEAVE(w, i, m) d_step { pending[2 * w + i] -> memory[m] = stored[2 * w + i]; pending[2 * w + i] = false }
#define EARLY(w, i, m) d_step { !early[2 * w + i] -> loaded[2 * w + i] = memory[m]; early[2 * w + i] = true }

active proctype condition()
{
    if :: last = 1 :: last = 2 fi
}

active proctype worker0()
{
    byte epoch;
    last > 0;
    for (epoch : 0 .. STARTS - 1) {
        assert(epoch <= last);
        if :: CREDIT && epoch >= 1 -> WAIT(0, 2, 1, 1, 1) :: else fi;
        STORE(0, 0, epoch + 1);
        SIGNAL(0, 0, 2, 1);
        if :: CREDIT && epoch >= 1 -> WAIT(0, 3, 1, 1, 1) :: else fi;
        STORE(0, 1, epoch + 1);
        SIGNAL(0, 0, 2, 2);
        GO_ON(0);
    }
over: skip
}

active proctype worker1()
{
    byte epoch, y;
    last > 0;
    for (epoch : 0 .. STARTS - 1) {
        assert(epoch <= last);
        WAIT(1, 0, 2, 1, 0);
        CHECK(1, 0, 0);
        STORE(1, 0, epoch + 1);
        SIGNAL(1, 1, 1, 1);
        BEFORE;
        WAIT(1, 0, 2, 2, 0);
        CHECK(1, 1, 1);
        AFTER;
        SIGNAL(1, 3, 1, 1);
        GO_ON(1);
    }
over: skip
}

active proctype worker2()
{
    byte epoch;
    last > 0;
    for (epoch : 0 .. STARTS - 1) {
        assert(epoch <= last);
        WAIT(2, 1, 1, 1, 0);
        CHECK(2, 0, 2);
        CHECK(2, 1, 0);
        SIGNAL(2, 2, 1, 1);
        GO_ON(2);
    }
over: skip
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
