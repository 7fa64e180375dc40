/* SPDX-License-Identifier: Apache-2.0 */
/*
Two GPUs of an op meet by a counter each way. Each has slots that the other one writes: two for ops by counters, two for ops by
flags. Meeting m is the m-th op by counters or by flags that both take part in, from 1, and from start to start.
In an op by counters, store what the other takes into its slot m mod 2; store m into its counter with release; load the own
counter with acquire until it is m or more; then combine from slot m mod 2.
In an op by flags, store m into the other's counter with release; store what the other takes into its slot m mod 2, m beside each
word, both as one; load each word of slot m mod 2 until m is beside it, and combine; then load the own counter with acquire until it
is m or more.
What comes next on a GPU begins when the op has ended there.
*/
/* Two GPUs, all ways to mix ops of both sorts, and who gives something in each. Stores wait in a buffer and leave it in any order but
 * for those to one place; loads of ops by counters may be of any time since the last acquire. */
#define MEETINGS 4
#ifdef NO_RELEASE
#define RELEASE skip
#else
#define RELEASE (!held[2 * w] && !held[2 * w + 1] && !flag_held[2 * w] && !flag_held[2 * w + 1])
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

bool by_flags[MEETINGS + 1], ready;
byte gives[MEETINGS + 1]; /* bits: workers */
byte counter[2], slot[4], word[4], flag[4]; /* at the reader: 2 * reader + slot */
bool held[4], flag_held[4], early[4];       /* of a writer's two slots; of a reader's */
byte stored[4], word_stored[4], loaded[4];

#define AT(w, s) (2 * (1 - (w)) + (s))
#define LEAVE(w, s) d_step { held[2 * w + s] -> slot[AT(w, s)] = stored[2 * w + s]; held[2 * w + s] = false }
#ifdef TORN
#define LEAVE_FLAG(w, s) flag_held[2 * w + s] -> flag[AT(w, s)] = word_stored[2 * w + s]; d_step { word[AT(w, s)] = word_stored[2 * w + s]; flag_held[2 * w + s] = false }
#else
#define LEAVE_FLAG(w, s) d_step { flag_held[2 * w + s] -> word[AT(w, s)] = word_stored[2 * w + s]; flag[AT(w, s)] = word_stored[2 * w + s]; flag_held[2 * w + s] = false }
#endif
#define EARLY(w, s) d_step { !early[2 * w + s] -> loaded[2 * w + s] = slot[2 * w + s]; early[2 * w + s] = true }

#ifdef SHARED /* any data, which may look like any flag */
#define SEND(s) d_step { slot[AT(w, s)] = m; word[AT(w, s)] = 0 }; if :: flag[AT(w, s)] = MEETINGS :: flag[AT(w, s)] = MEETINGS - 1 fi
#else
#define SEND(s) !held[2 * w + s]; d_step { stored[2 * w + s] = m; held[2 * w + s] = true }
#endif

proctype worker(byte w)
{
    byte m;
    ready;
    for (m : 1 .. MEETINGS) {
        if
        :: by_flags[m] ->
            TELL;
            if :: gives[m] >> w & 1 -> !flag_held[2 * w + SLOT(m)]; d_step { word_stored[2 * w + SLOT(m)] = m; flag_held[2 * w + SLOT(m)] = true } :: else fi;
            if :: gives[m] >> (1 - w) & 1 -> d_step { flag[2 * w + SLOT(m)] == m -> assert(word[2 * w + SLOT(m)] == m) } :: else fi;
            HEAR
        :: else ->
            if :: gives[m] >> w & 1 -> SEND(SLOT(m)) :: else fi;
            TELL;
            HEAR;
            if :: gives[m] >> (1 - w) & 1 ->
                d_step { if :: early[2 * w + SLOT(m)] -> assert(loaded[2 * w + SLOT(m)] == m) :: else -> assert(slot[2 * w + SLOT(m)] == m) fi }
            :: else fi
        fi
    }
}

init
{
    byte m;
    for (m : 1 .. MEETINGS) {
        if :: by_flags[m] = true :: by_flags[m] = false fi;
        if :: gives[m] = 1 :: gives[m] = 3 fi
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
    :: LEAVE_FLAG(0, 0)
    :: LEAVE_FLAG(0, 1)
    :: LEAVE_FLAG(1, 0)
    :: LEAVE_FLAG(1, 1)
    :: EARLY(0, 0)
    :: EARLY(0, 1)
    :: EARLY(1, 0)
    :: EARLY(1, 1)
    od
}
