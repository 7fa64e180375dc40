/* SPDX-License-Identifier: Apache-2.0 */
/** Words of gates, and what kernels that set them or wait for them are given, as far as host and GPU both know it. */
#ifndef GY_KERNELS_GATE_GATE_H
#define GY_KERNELS_GATE_GATE_H

#include <stdint.h>

enum {
    GY_GATE_STEP = 32,     /* bytes from one word to the next: the word, then one that is 1 while a gate waits for it */
    GY_GATE_FEW = 12,      /* words that one kernel waits for; */
    GY_GATE_WORDS = 256,   /* another one for so many */
    GY_GATE_PARTS = 8,     /* of a copy that sets words */
    GY_GATE_TELLS = 4,     /* words that such a copy sets */
    GY_GATE_THREADS = 1024 /* of its one block, at most */
};

enum { GY_GATE_SETS, GY_GATE_WAITS, GY_GATE_WAITS_LONG, GY_GATE_COPIES }; /* its functions */

/* Words of one GPU, by their numbers among those that lie from `words` on. A gate is given the first so many of a
 * list, one for each thread. */
typedef struct gy_gate_few {
    uint64_t words;
    uint16_t number[GY_GATE_FEW];
} gy_gate_few;
typedef struct gy_gate_list {
    uint64_t words;
    uint16_t number[GY_GATE_WORDS];
} gy_gate_list;

typedef struct gy_gate_part {
    uint64_t from, to, bytes;
} gy_gate_part;

/* Copies, then sets words: those of the copies are in memory when the words are. Then it may be a gate, too. */
typedef struct gy_gate_copy {
    uint32_t parts, tells, waits;
    uint64_t tell[GY_GATE_TELLS]; /* addresses of words, of other GPUs */
    gy_gate_few list;             /* that it waits for */
    gy_gate_part part[GY_GATE_PARTS];
} gy_gate_copy;

#endif
