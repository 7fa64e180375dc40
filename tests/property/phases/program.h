/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs over arrays that are split automatically, with loops: as graphs, and carried out one access after the
 * other. Numbers are small whole ones, so that sums are the same in any order. */
#ifndef TESTS_PHASES_PROGRAM_H
#define TESTS_PHASES_PROGRAM_H

#include <gantry/gantry.h>
#include <stdbool.h>

enum { ARRAYS = 5, MOST_ROWS = 40, MOST_PARTS = 4, MOST_OPS = 16, MOST_BLOCKS = 5, MOST_DEVICES = 4 };

typedef enum op_kind {
    OP_FILL, /* to[part] = value */
    OP_STEP, /* to[part] from from[part] and the rows `halo` before and after each */
    OP_MIX,  /* to[part] from itself and from[part] */
    OP_ADD,  /* to[part] += from[part], a contribution */
    OP_KINDS
} op_kind;

typedef struct statement {
    op_kind kind;
    int from, to, part; /* part -1: all of them, one node each */
    int halo, value;
    double us[MOST_DEVICES];
} statement;

/* Nodes once (count 0), or a loop. */
typedef struct block {
    int first, last;      /* ops */
    int count, every, at; /* iterations; `until` is set from iteration number `at` on (every 0: there is none) */
    int prev, next;       /* carried; equal: none */
} block;

typedef struct program {
    int rows, parts, blocks, ops;
    bool init[ARRAYS], output[ARRAYS];
    bool uniform; /* each node is there for all parts, so the result does not depend on where these are cut */
    block block[MOST_BLOCKS];
    statement op[MOST_OPS];
} program;

/* The contents of an array: `def` where it holds something. */
typedef struct content {
    double at[MOST_ROWS];
    bool def[MOST_ROWS];
} content;

int draw(uint64_t *state, int below);
/* The program number `seed`; false: it reads what nothing has written, or has no output. */
bool program_make(program *p, uint64_t seed);
/* `bound`: per array the first rows of its parts, and the end. `full`: loops go on to their end. false: it reads what
 * nothing has written. */
bool program_run(const program *p, int64_t bound[ARRAYS][MOST_PARTS + 1], bool full, content *out);
/* With so many parts; the program must live as long as runs of the graph. */
gantry_graph *program_graph(program *p, int parts);
gantry_buffer program_buffer(int array);
/* The contents that an array with `init` is bound to. */
void program_input(const program *p, int array, double *to);

#endif
