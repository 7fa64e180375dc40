/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Random graphs of known families, through the C API. A number gives the same graph on every machine and compiler:
 * nothing is drawn but from a generator of this file, one draw a statement.
 */
#ifndef TESTS_PORTFOLIO_FAMILIES_H
#define TESTS_PORTFOLIO_FAMILIES_H

#include <gantry/gantry.h>
#include <stdbool.h>
#include <stdint.h>

#define FAMILY_NODES 60 /* about: no more than twice that */

typedef struct family {
    gantry_graph *graph;
    const char *name;
    uint64_t state;
    bool tiny;   /* sizes for a machine on which a byte takes a microsecond */
    bool wishes; /* nodes may say where they want to be */
    gantry_node node[2 * FAMILY_NODES];
    int nodes;
} family;

/* Graph number `seed`, not checked yet. The caller frees family.graph. */
void family_make(family *f, uint64_t seed, bool tiny);

/* ---- what the makers share ---- */

int draw(family *f, int n);             /* 0 .. n-1 */
int draw_from(family *f, int a, int b); /* a .. b */
/* A work node with a time or a cost, in the list. */
gantry_node add_work(family *f);
/* A buffer of its own name: rows x a row of some bytes. */
gantry_buffer add_buffer(family *f, int64_t rows);

/* arrays.c: families about arrays that are cut. */
void make_tiles(family *f);
void make_pipeline(family *f);
void make_stencil(family *f);
void make_data_parallel(family *f);

#endif
