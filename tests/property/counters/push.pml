/* SPDX-License-Identifier: Apache-2.0 */
/*
Two GPUs of an op meet by a counter each way. Each has two slots that the other one writes. Meeting m is the m-th that both take
part in, from 1, and from start to start.
Store what the other takes into its slot m mod 2; store m into its counter with release; load the own counter with acquire until it
is m or more; then combine from slot m mod 2.
What comes next on a GPU begins when the op has ended there.
*/
/* Two GPUs, and who gives something in each meeting: nobody does in one of an op that uses no slots. Stores wait in a buffer and leave
 * it in any order but for those to one place; loads may be of any time since the last acquire. */
#define MEETINGS 4
#ifdef NO_RELEASE
#define RELEASE skip
#else
#define RELEASE (!held[2 * w] && !held[2 * w + 1])
#endif
#ifdef NO_ACQUIRE
#define ACQUIRE skip
#else
#define ACQUIRE early[2 * w] = false; early[2 * w + 1] = false
#endif
#ifdef ONE_SLOT
#define SLOT(m) 0
#else
#define SLOT(m) (m % 2)
#endif
#ifdef NO_WAIT
#define HEAR skip
#else
#define HEAR counter[w] >= m; ACQUIRE
#endif
#define TELL RELEASE; counter[1 - w] = m

bool ready;
byte gives[MEETINGS + 1];   /* bits: workers */
byte counter[2], slot[4];   /* at the reader: 2 * reader + slot */
bool held[4], early[4];     /* of a writer's two slots; of a reader's */
byte stored[4], loaded[4];

#define AT(w, s) (2 * (1 - (w)) + (s))
#define SEND(s) !held[2 * w + s]; d_step { stored[2 * w + s] = m; held[2 * w + s] = true }
#define LEAVE(w, s) d_step { held[2 * w + s] -> slot[AT(w, s)] = stored[2 * w + s]; held[2 * w + s] = false }
#define EARLY(w, s) d_step { !early[2 * w + s] -> loaded[2 * w + s] = slot[2 * w + s]; early[2 * w + s] = true }

proctype worker(byte w)
{
    byte m;
    ready;
    for (m : 1 .. MEETINGS) {
        if :: gives[m] >> w & 1 -> SEND(SLOT(m)) :: else fi;
        TELL;
        HEAR;
        if :: gives[m] >> (1 - w) & 1 ->
            d_step { if :: early[2 * w + SLOT(m)] -> assert(loaded[2 * w + SLOT(m)] == m) :: else -> assert(slot[2 * w + SLOT(m)] == m) fi }
        :: else fi
    }
}

init
{
    byte m;
    for (m : 1 .. MEETINGS) {
        if :: gives[m] = 0 :: gives[m] = 1 :: gives[m] = 3 fi
    }
    ready = true;
    atomic { run worker(0); run worker(1) }
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
    :: EARLY(0, 0)
    :: EARLY(0, 1)
    :: EARLY(1, 0)
    :: EARLY(1, 1)
    od
}
