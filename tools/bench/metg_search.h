/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the smallest task of which METG_WANTED of the time is work: which length is measured next. */
#ifndef GANTRY_COMMAND_METG_SEARCH_H
#define GANTRY_COMMAND_METG_SEARCH_H

#include <stdbool.h>

#define METG_WANTED  0.5
#define METG_MOST_US 2048.0

/* The longest task that was not large enough, and the shortest that was, each with the part of its time that is work;
 * 0: none so far. */
typedef struct metg_search {
    double small, small_part, large, large_part;
    double us; /* the length to measure next; 0: the search is over, and `large` is what was looked for */
    int tried;
} metg_search;

metg_search metg_search_begin(void);
void metg_search_take(metg_search *s, double part); /* of a task of `us` */

#endif
