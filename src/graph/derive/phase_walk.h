/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a graph: it follows, phase after phase, which value a name means and which rows hold something. For
 * phase_plan.c and phase.c only. */
#ifndef GY_GRAPH_DERIVE_PHASE_WALK_H
#define GY_GRAPH_DERIVE_PHASE_WALK_H

#include "base/imap.h"
#include "graph/derive/phase.h"

/* A buffer, or what `next` stood for in some iteration. Payload of `rows`: phase that changed them last * 2 + whether
 * they hold something. */
typedef struct gy_walk_value {
    gy_imap rows;
    uint32_t touch; /* index of gy_walk.touch, if that is of this value */
    uint32_t born;  /* the phase in which it began; 0: before the first */
} gy_walk_value;

/* A value that the phase at hand touches and that was there before it. */
typedef struct gy_touched {
    uint32_t value;
    bool used, changed; /* rows that held something were read (or added to); some were written */
    bool covered;       /* all of them were */
    gy_rows *defined;   /* the rows that held something before, in order */
    uint32_t defineds;
} gy_touched;

typedef struct gy_walk {
    const gantry_graph *graph;
    uint32_t *current;  /* per buffer: the value that its name means */
    uint32_t *last_use; /* per buffer: 1 + the last node that uses or carries it; UINT32_MAX: outlives the start */
    GY_VEC(gy_walk_value) values;
    GY_VEC(gy_touched) touch; /* of the phase at hand */
    uint32_t now;             /* its number, from 1 */
    gy_arena *arena;          /* for `defined` */
    bool failed;              /* out of memory: nothing that was found means anything */
} gy_walk;

bool gy_walk_init(gy_walk *w, const gantry_graph *graph, gy_arena *arena);
void gy_walk_free(gy_walk *w);
/* Carries out a phase: one of its starts, and of its iterations as many as differ. */
void gy_walk_phase(gy_walk *w, const gy_phase *p);
/**
 * True if the starts of the phase, which comes next and has several, are alike: what names share, and where it matters
 * which rows hold something, are at the beginning of each as they are at the first. Then what differs without mattering
 * (what `next` was before the loop, what `prev` held beyond what later iterations find) is forgotten.
 */
bool gy_walk_settle(gy_walk *w, const gy_phase *p);
/* True if what names mean, and which rows hold something, is the same after two iterations of the loop and after each
 * later one. That is so of loops without others inside; what these carry may take longer. */
bool gy_walk_inner_settles(gy_walk *w, uint32_t loop);
/* True if what comes after the loop, which may end after its first iteration, is the same then as after more: what
 * names share, and which rows hold something where they are added to. */
bool gy_walk_ends_alike(gy_walk *w, uint32_t loop);

#endif
