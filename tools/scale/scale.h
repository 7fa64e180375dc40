/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of `gantry scale`, for its table, its JSON and its picture. */
#ifndef GANTRY_SCALE_H
#define GANTRY_SCALE_H

#include "command.h"

/* One number of devices, or of ranks. */
typedef struct scale_row {
    int count;               /* of what is counted: devices, or ranks */
    int devices, used;       /* that there are, that do anything */
    int64_t value;           /* of the param that grows; 0: none does */
    double work;             /* that it makes, over that of its own value */
    double us, gap;          /* predicted; over the bound */
    double speedup;          /* against the first row; of what grows, work for work */
    double efficiency;       /* speedup for each device more: 1 is ideal */
    double network_us;       /* what the busiest port of the network takes for what crosses it */
    uint64_t peak;           /* bytes, of the fullest memory */
    uint64_t moved, network; /* from memory to memory by copies; from rank to rank, by whatever */
    char limit[160];         /* what holds it up, as part of a sentence */
} scale_row;

/* A number of devices, or of ranks, for which there is no schedule. */
typedef struct scale_refusal {
    int count;
    gantry_error why;
} scale_refusal;

typedef struct scale {
    const char *graph, *machine; /* names */
    char weak[200];              /* the param that grows; "": none does */
    int power;                   /* work grows as this power of it */
    int64_t base;                /* its value for one */
    bool ranks;                  /* rows are of ranks */
    bool asks;                   /* the graph depends on how many devices there are */
    bool uncut;                  /* a model, and no strategy was given that cuts it */
    scale_row *row;              /* rising numbers of devices */
    size_t count;
    scale_refusal *refused; /* of the others, rising too */
    size_t refusals;
    char advice[512]; /* a sentence or two */
} scale;

/* scale_ranks.c: one machine of so many that are alike, of one that machine itself. The exit code. */
int scale_ranks(gantry_machine **made, const options *o, const gantry_machine *node, size_t ranks);
/* scale_limit.c: fills used and limit of a row. The exit code. */
int scale_limit(scale_row *row, const gantry_schedule *schedule);
/* Fills the speed-ups and the advice once all rows are there. */
void scale_judge(scale *s);
/* scale_draw.c: speed-up over devices. The exit code. */
int scale_draw(const scale *s, const char *path);

#endif
