/* SPDX-License-Identifier: Apache-2.0 */
/* Long runs: what the modes of the program share. */
#ifndef TESTS_SOAK_SOAK_H
#define TESTS_SOAK_SOAK_H

#include "trend.h"

#include <gantry/gantry.h>

typedef struct settings {
    const char *program; /* this one */
    const char *backend, *replay;
    uint64_t count, seed;
    uint64_t starts; /* of a random graph, one behind the other at its end; 0: a few */
    double seconds;  /* no start is made after them */
    int devices, threads;
    bool shared; /* others use the GPUs, so that their memory comes and goes */
} settings;

enum { EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_HANGS = 3, EXIT_SKIPPED = 77 };

/* ---- what is watched (watch.c) ---- */

double seconds_now(void);
/* Ends the program, with a line, when this is not called for a minute. */
void still_moving(const char *where);
/* Takes a sample now and then, `part` of the way, 0 to 1. */
void look_at(trend *t, double part, const settings *s);
/* The part of the way that is behind a run that ends after a count or a time. */
double part_done(uint64_t done, double begin, const settings *s);
/* Prints what changed; false: something grew. */
bool is_flat(const trend *t, const settings *s);
bool count_gpus(const settings *s);

/* ---- a graph whose result differs from start to start (adder.c) ---- */

enum { MOST_ROWS = 96 };

/* total += in, out = 2 total, most = the largest of in. */
typedef struct adder {
    gantry_machine *machine;
    gantry_schedule *schedule;
    gantry_run *run;
    gantry_buffer in, out, most;
    int rows;
    uint64_t starts, wrong;
    double input[MOST_ROWS], total[MOST_ROWS];
} adder;

/* The machine with the first devices that the settings ask for, 0: all; NULL after a message. */
gantry_machine *make_machine(const settings *s, int devices);
/* The id of a device, of a GPU where there are any: one after the other. */
const char *device_id(const gantry_machine *machine, const settings *s, int nth);
/* Of a graph whose nodes say their devices, as the settings have it; deadline_us 0: none. False after a message; what
 * was made is the caller's to free. */
bool open_run(gantry_schedule **schedule, gantry_run **run, gantry_graph *g, const gantry_machine *machine,
              const settings *s, double deadline_us);
/* False after a message. */
bool adder_make(adder *a, const settings *s, int rows, int parts);
/* Starts, waits, compares; false after a message. */
bool adder_start(adder *a);
void adder_free(adder *a);
bool told(gantry_status status, const gantry_error *err);

/* ---- modes: exit codes ---- */

int soak_starts(const settings *s);
int soak_remake(const settings *s);
int soak_together(const settings *s);
int soak_random(const settings *s);
int soak_stencil(const settings *s);

#endif
