/* SPDX-License-Identifier: Apache-2.0 */
#include "metg_search.h"

enum { MOST_TRIED = 24 };
#define FIRST_US 16.0
#define LEAST_US 0.125
#define CLOSE    1.03 /* so near are a task that is large enough and one that is not, when the search ends */
#define IN_VAIN  1.25 /* so many times too much time for each step, however long tasks are, ends it too, */
#define FAR      2    /* seen with lengths that are so many times apart, as a start more or less is noise */
#define BESIDE   1.01 /* so far beside the length that is guessed a length is tried */

static double within(double us, double least, double most)
{
    return us < least ? least : us > most ? most : us;
}

/* A start has a part that does not depend on the length of tasks, and one in proportion: a line through both ends tells
 * where METG_WANTED lies. */
static double between(const metg_search *b)
{
    double begin = b->small / b->small_part, end = b->large / b->large_part; /* time of a step */
    double slope = (end - begin) / (b->large - b->small), guess = METG_WANTED * (begin - slope * b->small);
    guess = METG_WANTED * slope < 1 ? guess / (1 - METG_WANTED * slope) : (b->small + b->large) / 2;
    double middle = (b->small + b->large) / 2;
    guess = guess > middle ? guess / BESIDE : guess * BESIDE; /* so that the longer side is cut off */
    return within(guess, b->small * 1.005, b->large / 1.005);
}

/* Longer tasks come nearer to what a line through two lengths that are too small rises by, and never beyond: where
 * lists are more than what runs at once, or one behind the other, no length is large enough. */
static bool is_in_vain(const metg_search *b, double us, double part)
{
    if (b->small <= 0 || b->large > 0 || us < FAR * b->small || part <= 0)
        return false;
    double slope = (us / part - b->small / b->small_part) / (us - b->small);
    return slope * METG_WANTED > IN_VAIN;
}

/* As long as METG_WANTED says, if what a start takes beside the work is the same for all lengths. */
static double alike(double us, double part)
{
    return us * (1 / part - 1) * METG_WANTED / (1 - METG_WANTED);
}

/* The next length to try; 0: none. */
static double next_us(const metg_search *b)
{
    if (b->small > 0 && b->large > 0) {
        bool halve = b->tried % 3 == 2; /* whatever the line says */
        return b->large <= CLOSE * b->small ? 0 : halve ? (b->small + b->large) / 2 : between(b);
    }
    if (b->small >= METG_MOST_US)
        return 0;
    if (b->small > 0)
        return within(alike(b->small, b->small_part) * BESIDE, 1.05 * b->small, METG_MOST_US);
    double us = within(alike(b->large, b->large_part) / BESIDE, b->large / 16, b->large / CLOSE);
    return b->large <= LEAST_US ? 0 : us > LEAST_US ? us : LEAST_US;
}

metg_search metg_search_begin(void)
{
    return (metg_search){ .us = FIRST_US };
}

void metg_search_take(metg_search *s, double part)
{
    bool in_vain = is_in_vain(s, s->us, part);
    s->tried++;
    if (!in_vain && part >= METG_WANTED) {
        s->large = s->us;
        s->large_part = part;
    } else if (!in_vain) {
        s->small = s->us;
        s->small_part = part > 1e-6 ? part : 1e-6;
    }
    s->us = in_vain || s->tried == MOST_TRIED ? 0 : next_us(s);
}
