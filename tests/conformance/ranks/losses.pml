/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a run whose ranks are lost (docs/design/ranks.md, "Losses"), in all orders that there are. An attempt is a number of ranks, which
 * mpirun started; the launcher is gantry run --processes. In each iteration all ranks hand rows round a ring, and take the state one
 * further; between iterations rank 0 writes a checkpoint, and renames it when it is complete; in the end it writes the output. LOSSES times, anywhere, a
 * rank is killed or stopped for good. Who waits for a message looks at nothing else, and is killed in the end: or there is a state without a way
 * out, which Spin finds.
 *
 * What is held: rows are of the iteration that they are taken for; all ranks of an attempt go on from the same one, which is a complete
 * checkpoint; one process writes; no attempt finds checkpoints that it did not go on from; the output is that of a run which nothing happened to;
 * and the run ends, while one rank of each attempt is neither killed nor stopped.
 *
 * Without a part of it (NO_BEATS, ...) there is a mistake: check_model.py.
 */
#ifndef RANKS /* and LOSSES: check_model.py */
#define RANKS 3
#define LOSSES 1
#endif
#define ATTEMPTS (LOSSES + 1)
#define LAST 2 /* iterations */
#define ID(a, r) ((a) * RANKS + (r))
#define TORN 99
#define NOTHING 255

chan row[9] = [1] of { byte };  /* to a rank of an attempt, from the one before it in the ring */
chan told[9] = [1] of { byte }; /* to it, from rank 0: with which iteration all begin */
bool killed[9], stopped[9], done[9], over[9];
bool aborted[ATTEMPTS]; /* mpirun ends it, one rank after the other */
byte ranks[ATTEMPTS], met[ATTEMPTS]; /* how many it has; and that have done all, without the heartbeats of those that left */
byte losses, writers;
byte newest, content, output = NOTHING; /* the last checkpoint, 0: none; what its rows are of; what the output is of */

inline write_checkpoint(i)
{
    assert(writers == 0);
    writers = 1;
#ifdef NO_RENAME
    newest = i;
    content = TORN; /* the first rows are there */
    content = i;
#else
    skip; /* rows, in a folder of another name */
    atomic { newest = i; content = i }
#endif
    writers = 0
}

proctype Rank(byte a, r)
{
    byte i, got, from, k = 1;
    {
        if
        :: r == 0 -> atomic { assert(newest == 0 || content == newest); from = newest }
            do
            :: k < ranks[a] -> told[ID(a, k)]!from; k++
            :: else -> break
            od
        :: else -> told[ID(a, r)]?from
        fi;
        i = from;
        do
        :: i < LAST ->
            row[ID(a, (r + 1) % ranks[a])]!i;
            atomic { row[ID(a, r)]?got; assert(got == i); i++ };
            if
            :: r == 0 && i < LAST ->
                assert(from > 0 || newest < i); /* else it is said to be that of another run */
                write_checkpoint(i)
            :: else
            fi
        :: else -> break
        od;
        if
        :: r == 0 -> output = i
        :: else
        fi;
        atomic { met[a]++; done[ID(a, r)] = true };
        met[a] == ranks[a]
    } unless { killed[ID(a, r)] || stopped[ID(a, r)] };
    atomic {
        killed[ID(a, r)] || (!stopped[ID(a, r)] && done[ID(a, r)]);
        aborted[a] = aborted[a] || killed[ID(a, r)]; /* its guard says so */
        writers = (r == 0 -> 0 : writers);
        over[ID(a, r)] = true
    }
}

#define HAS(a, r) (r < ranks[a] && !over[ID(a, r)])
#define WORKS(a, r) (HAS(a, r) && !killed[ID(a, r)] && !stopped[ID(a, r)])
#ifdef NO_LEAVE /* ranks that have done all say nothing any more */
#define BEATS(a, r) (WORKS(a, r) && met[a] == 0)
#else
#define BEATS(a, r) WORKS(a, r)
#endif
/* The next one in the ring says that a rank is silent. */
#ifdef NO_BEATS
#define SILENT(a, r) false
#else
#define SILENT(a, r) (HAS(a, r) && stopped[ID(a, r)] && BEATS(a, (r + 1) % ranks[a]))
#endif
#define LOOK(a, r)                                                                 \
    :: !aborted[a] && SILENT(a, r) -> aborted[a] = true                            \
    :: aborted[a] && HAS(a, r) && !killed[ID(a, r)] ->                             \
        killed[ID(a, r)] = true
#define GONE(a) (!HAS(a, 0) && !HAS(a, 1) && !HAS(a, 2))

proctype Mpirun(byte a)
{
    do
    LOOK(a, 0)
    LOOK(a, 1)
    LOOK(a, 2)
    :: GONE(a) -> break
    od
}

/* Nobody is stopped who has done all: MPI_Finalize is next, in which nobody looks. */
#define HIT(a, r)                                                                  \
    :: atomic { losses < LOSSES && WORKS(a, r) -> killed[ID(a, r)] = true; losses++ } \
    :: atomic { losses < LOSSES && WORKS(a, r) && !done[ID(a, r)] && (WORKS(a, (r + 1) % 3) || WORKS(a, (r + 2) % 3)) -> \
        stopped[ID(a, r)] = true; losses++ }

active proctype Loss()
{
end:
    do
    HIT(0, 0) HIT(0, 1) HIT(0, 2)
#if ATTEMPTS > 1
    HIT(1, 0) HIT(1, 1) HIT(1, 2)
#endif
#if ATTEMPTS > 2
    HIT(2, 0) HIT(2, 1) HIT(2, 2)
#endif
    :: losses == LOSSES -> break
    od
}

active proctype Launcher()
{
    byte a, r, n = RANKS;
    do
    :: atomic {
            assert(a < ATTEMPTS);
            ranks[a] = n;
            run Mpirun(a);
            r = 0;
            do
            :: r < n -> run Rank(a, r); r++
            :: else -> break
            od
        }
#ifdef NO_WAIT
        aborted[a] || GONE(a);
#else
        GONE(a);
#endif
        d_step { /* what was is of no matter any more */
            r = 0;
            do
            :: r < 3 && over[ID(a, r)] && GONE(a) && aborted[a] ->
                killed[ID(a, r)] = false; stopped[ID(a, r)] = false; done[ID(a, r)] = false;
                do :: row[ID(a, r)]?_ :: empty(row[ID(a, r)]) -> break od;
                do :: told[ID(a, r)]?_ :: empty(told[ID(a, r)]) -> break od;
                r++
            :: else -> break
            od;
            r = 0
        };
        if
        :: !aborted[a] -> break
        :: aborted[a] && n > 1 -> a++; n-- /* replan */
        :: aborted[a] -> a++               /* restart */
        fi
    od;
    assert(output == LAST)
}
