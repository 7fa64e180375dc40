/* SPDX-License-Identifier: Apache-2.0 */
/** Words of gates, as far as host and GPU both know them. */
#ifndef GY_KERNELS_GATE_GATE_H
#define GY_KERNELS_GATE_GATE_H

enum {
    GY_GATE_STEP = 32,  /* bytes from one word to the next: those of a gate lie one behind the other */
    GY_GATE_WORDS = 256 /* of one gate, at most */
};

enum { GY_GATE_SETS, GY_GATE_WAITS }; /* its functions: set a word, wait for words */

#endif
