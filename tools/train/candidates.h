/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies that may be taken, and what is predicted of each. */
#ifndef GANTRY_COMMAND_TRAIN_CANDIDATES_H
#define GANTRY_COMMAND_TRAIN_CANDIDATES_H

#include "strategies.h"

enum { MOST_NAMED = 64 }; /* devices; of more the first ones are taken */

/* Which devices a strategy for some of them has: the first ones, the fastest, or the first ones, and the others for
 * what the strategy gives to none, such as steps of weights. */
typedef enum seats { ON_FIRST, ON_FASTEST, ON_ALL } seats;

typedef struct choice {
    gantry_strategy strategy;
    seats on;
} choice;

typedef struct candidate {
    choice choice;
    size_t number; /* how many were added before */
    char text[STRATEGY_TEXT];
    double us;       /* predicted; 0: it does not fit */
    double bound_us; /* no schedule is faster; 0: not known */
    double busy_us;  /* of the device that computes longest */
    size_t devices;  /* that it has */
    uint64_t moved, peak;
    char limit[140];   /* what is busiest, and which parts of the batch there are where these are not equal */
    char refusal[512]; /* why it does not fit: the text of the scheduler */
} candidate;

/* A device, and how long it takes for a step alone; HUGE_VAL: it cannot. */
typedef struct speed {
    size_t device;
    double us;
} speed;

typedef struct candidates {
    const options *o;
    const char *path;
    gantry_machine *machine;
    speed *speeds; /* of all devices, the fastest first; NULL: they have to be taken as they are */
    candidate *at;
    size_t count, refused, slower; /* slower: their devices would compute for longer than the best takes */
    double best_us;                /* of those so far; HUGE_VAL: none fits */
    double work_us;                /* of one device that computes all; 0: not known, or devices are not alike */
    bool is_tight;                 /* what does not fit is refused; else it may leave, where the user allows that */
} candidates;

int32_t devices_of(const gantry_strategy *s);
/* May devices be taken by name? */
bool are_named(const candidates *all);
/* "id:gpu1,gpu2" in `text`, as --devices has it, where the choice is for some of the devices; else it is empty. */
void write_devices(const candidates *all, const choice *c, char text[DEVICES_TEXT]);
/* Are there faster ones than the first `count` devices, or as fast ones that are nearer to each other? */
bool are_others_better(const candidates *all, int32_t count);
/* Loads and schedules the model. *fits: it is known what came of it. What does not fit the memories has no time. */
int predict(const candidates *all, candidate *c, int64_t effort, bool *fits);
/* Adds a choice, and predicts it. */
int add(candidates *all, const choice *c, int64_t effort);
/* The faster first, those that do not fit last; of equals the one on fewer devices, then the one with less in memory,
 * then the one that was added first. The first `count` alone. */
void sort_candidates(candidates *all, size_t count);
/* One device, alone: what there is to compute, and by which devices it is computed fastest. */
int find_work(candidates *all);

#endif
