/* SPDX-License-Identifier: Apache-2.0 */
/*
Kernels of a collective meet, one on each of its GPUs: each tells the others by a counter in the memory of each of them, then waits
until it has heard of all. A counter says how often the two have met, from start to start, and is never set back.
A collective has one place in the order of what sets words and what waits for them. On each of its GPUs its kernel comes behind all that
is ahead of it in that order there, also what sets words, and gates and collectives that come later are behind it.
*/
/*
 * Two GPUs, each of which carries out one kernel at a time: whatever keeps it waiting keeps all others from their GPU. The order of a
 * start has PLACES places, drawn anew: a word for GPU 0 or 1, which the other one sets by a node and the GPU waits for by a gate, or a
 * collective of both. What sets a word comes behind nothing else here, so it may be far ahead or late. A start begins when both have
 * ended the one before.
 */
#define STARTS 2
#define PLACES 4
#define MEETS 2 /* a kind; 0, 1: the GPU that waits */

byte kind[PLACES];
bool word[PLACES];
bool gone[8]; /* by GPU and place: what waits or meets there has ended */
bool sent[8]; /* likewise: what sets a word has */
byte count[2]; /* at the GPU that waits: of meetings */
byte begun[2]; /* meetings that a GPU has begun */
byte ended[2];
byte start = 1;

#define I(g, p) (PLACES * (g) + (p))
#define WAITS(g, p) (kind[p] == MEETS || kind[p] == g)
#define SETS(g, p) (kind[p] == 1 - g)

/* All that is ahead of place p on the GPU has ended. */
#define CLEAR(g, p, q) ((q) >= (p) || ((!WAITS(g, q) || gone[I(g, q)]) && (!SETS(g, q) || sent[I(g, q)])))
#ifdef NO_BEHIND /* gates do not come behind collectives */
#define PASSED(g, p, q) (CLEAR(g, p, q) || (kind[q] == MEETS && kind[p] != MEETS))
#else
#define PASSED(g, p, q) CLEAR(g, p, q)
#endif
#define IN_ORDER(g, p) (PASSED(g, p, 0) && PASSED(g, p, 1) && PASSED(g, p, 2) && PASSED(g, p, 3))
#ifdef NO_AHEAD /* collectives come behind gates and collectives alone */
#define AHEAD(g, p, q) ((q) >= (p) || !WAITS(g, q) || gone[I(g, q)])
#define MAY_MEET(g, p) (AHEAD(g, p, 0) && AHEAD(g, p, 1) && AHEAD(g, p, 2) && AHEAD(g, p, 3))
#else
#define MAY_MEET(g, p) IN_ORDER(g, p)
#endif
#ifdef NO_EPOCH
#define HEARD(g) count[g] >= 1
#else
#define HEARD(g) count[g] >= begun[g]
#endif

#define SET(p) SETS(g, p) && !sent[I(g, p)] -> word[p] = true; sent[I(g, p)] = true
#define GATE(p) kind[p] == g && !gone[I(g, p)] && IN_ORDER(g, p) -> word[p]; word[p] = false; gone[I(g, p)] = true
#define MEET(p) \
    kind[p] == MEETS && !gone[I(g, p)] && MAY_MEET(g, p) -> begun[g]++; count[1 - g] = begun[g]; HEARD(g); \
        assert(begun[1 - g] >= begun[g]); gone[I(g, p)] = true
#define DONE(g, p) ((!WAITS(g, p) || gone[I(g, p)]) && (!SETS(g, p) || sent[I(g, p)]))

proctype gpu(byte g)
{
    do
    :: SET(0)
    :: SET(1)
    :: SET(2)
    :: SET(3)
    :: GATE(0)
    :: GATE(1)
    :: GATE(2)
    :: GATE(3)
    :: MEET(0)
    :: MEET(1)
    :: MEET(2)
    :: MEET(3)
    :: DONE(g, 0) && DONE(g, 1) && DONE(g, 2) && DONE(g, 3) -> break
    od;
    ended[g] = start
}

init
{
    byte p, k;
    do
    :: start <= STARTS ->
        atomic {
            for (p : 0 .. PLACES - 1) {
                select(k : 0 .. 2);
                kind[p] = k;
                gone[I(0, p)] = false; gone[I(1, p)] = false; sent[I(0, p)] = false; sent[I(1, p)] = false
            }
            k = 0; p = 0;
            run gpu(0); run gpu(1)
        }
        ended[0] == start && ended[1] == start;
        assert(!word[0] && !word[1] && !word[2] && !word[3]);
        start++
    :: else -> break
    od
}
