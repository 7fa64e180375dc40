/* SPDX-License-Identifier: Apache-2.0 */
/* Inside gantry run --profile: where the time of the last start went, by the slices of its trace. */
#ifndef GANTRY_COMMAND_PROFILE_H
#define GANTRY_COMMAND_PROFILE_H

#include "runs/run.h"

/* An op in one lane, as it was measured. */
typedef struct slice {
    double start, end;
    const char *name, *kind, *kernel, *device, *from, *to; /* kernel: NULL if it calls none; from, to: of copies */
    double bytes;
} slice;

/* Of a device; together they are the span of the profile. */
typedef struct device_time {
    const char *id, *memory;
    double computing;
    double copying; /* copies and collectives, while it computes nothing */
    double waiting; /* nothing, before its last op ends */
    double idle;    /* nothing, from then on */
} device_time;

typedef struct link_time {
    const char *from, *to;
    double busy, bytes; /* busy: at least one copy is under way */
    size_t copies;
} link_time;

typedef struct profile {
    json_t *trace; /* owns all texts */
    int phase;     /* of phases the trace has the last start only: the phase that takes longest; -1: there are none */
    slice *slice;
    size_t slices;
    device_time *device;
    size_t devices;
    link_time *link;
    size_t links;
    double span;                    /* from the beginning of the first op to the end of the last */
    double active;                  /* of it: at least one op runs, anywhere */
    double start;                   /* the start as the host saw it: no less than the span; of a phase the span */
    double predicted_us, single_us; /* of a start; of one on a single device, 0: not known */
} profile;

/* measure.c: from the trace of a run; prints what is wrong. */
int measure_profile(profile *p, const session *s);
void free_profile(profile *p);

/* limit.c: what bounds the start: a word for programs, and a sentence with what would help. */
enum { LIMIT_TEXT = 512 };
const char *find_limit(const profile *p, char sentence[LIMIT_TEXT]);

#endif
