/* SPDX-License-Identifier: Apache-2.0 */
/*
A word lies in the memory of the GPU that waits for it, and is 0 between starts. In a start one kernel of another GPU sets it, and one
kernel of its own waits for it.
To set it: when all that the other GPU is to see has been stored, by kernels ahead of this one or by its own block, store 1 with
release at system scope.
To wait for it: load with acquire at system scope until it is 1, then store 0. What comes behind that loads nothing that was loaded before.
A copy that does both sets before it waits.
There is one order over all GPUs of what sets and what waits: a word is set ahead of the wait for it, and on each GPU what waits comes
behind all that is ahead of it in that order.
A start begins on each GPU when the one before has ended on all of them.
*/
/*
 * Two GPUs, each of which carries out one kernel at a time. Each gives the other a small row, by a copy that tells of itself, and a
 * large one, of which a node tells; then it loads both. The copy is the gate if it is behind the large row, else a gate is behind both,
 * as each GPU has it in each start. Rows and words that are set back wait in a buffer and leave it in any order; loads may be of any
 * time since the last acquire. The end of a start waits for all that it has stored.
 */
#define STARTS 2
#ifdef NO_RELEASE
#define RELEASE skip
#else
#define RELEASE (!held[2 * g] && !held[2 * g + 1])
#endif
#ifdef NO_ACQUIRE
#define ACQUIRE skip
#else
#define ACQUIRE early[2 * g] = false; early[2 * g + 1] = false
#endif
#ifdef NO_RESET
#define RESET(k) skip
#else
#define RESET(k) back[2 * g + k] = true
#endif
#ifdef NO_JOIN
#define JOIN skip
#else
#define JOIN ended[0] >= s - 1 && ended[1] >= s - 1
#endif

byte row[4], stored[4], loaded[4]; /* at the reader: 2 * reader + 0, the small one, or 1; of a writer's two; of a reader's */
bool held[4], early[4];            /* likewise */
byte word[4];                      /* at the reader */
bool back[4];                      /* it is to be 0 */
byte ended[2];

#define AT(g, k) (2 * (1 - (g)) + (k))
#define SEND(k) !held[2 * g + k]; d_step { stored[2 * g + k] = s; held[2 * g + k] = true }
#define SET(k) RELEASE; word[AT(g, k)] = 1
#define WAIT(k) word[2 * g + k] == 1; ACQUIRE; RESET(k)
#define CHECK(k) d_step { if :: early[2 * g + k] -> assert(loaded[2 * g + k] == s) :: else -> assert(row[2 * g + k] == s) fi }

#define LEAVE(g, k) d_step { held[2 * g + k] -> row[AT(g, k)] = stored[2 * g + k]; held[2 * g + k] = false }
#define BACK(i) d_step { back[i] -> word[i] = 0; back[i] = false }
#define EARLY(i) d_step { !early[i] -> loaded[i] = row[i]; early[i] = true }

proctype gpu(byte g)
{
    byte s;
    for (s : 1 .. STARTS) {
        JOIN;
        early[2 * g] = false; early[2 * g + 1] = false;
        if
        :: SEND(1); SET(1); SEND(0); /* the copy is the gate */
#ifdef WAIT_FIRST
            WAIT(0); WAIT(1); SET(0)
#else
            SET(0); WAIT(0); WAIT(1)
#endif
        :: SEND(0); SET(0);
#ifdef GATE_FIRST
            WAIT(0); WAIT(1); SEND(1); SET(1)
#else
            SEND(1); SET(1); WAIT(0); WAIT(1)
#endif
        fi;
        CHECK(0);
        CHECK(1);
        !held[2 * g] && !held[2 * g + 1] && !back[2 * g] && !back[2 * g + 1];
        ended[g] = s
    }
    ended[0] == STARTS && ended[1] == STARTS;
    assert(word[2 * g] == 0 && word[2 * g + 1] == 0)
}

init
{
    atomic { run gpu(0); run gpu(1) }
}

/* Stores leave their buffers, and loads are made early, at any time. */
active proctype hardware()
{
end:
    do
    :: LEAVE(0, 0)
    :: LEAVE(0, 1)
    :: LEAVE(1, 0)
    :: LEAVE(1, 1)
    :: BACK(0)
    :: BACK(1)
    :: BACK(2)
    :: BACK(3)
    :: EARLY(0)
    :: EARLY(1)
    :: EARLY(2)
    :: EARLY(3)
    od
}
