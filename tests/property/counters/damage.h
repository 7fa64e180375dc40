/* SPDX-License-Identifier: Apache-2.0 */
/* All small damages to the counters of a schedule, one after the other. */
#ifndef TESTS_COUNTERS_DAMAGE_H
#define TESTS_COUNTERS_DAMAGE_H

#include "property/mutants/mutants.h"

#define DAMAGE_MAP(X)                                                                                                  \
    X(DROP_WAIT, "drop a wait")                                                                                        \
    X(DROP_WHOLLY, "drop a wait, and what nobody waits for then")                                                      \
    X(DOUBLE_WAIT, "wait twice")                                                                                       \
    X(VALUE_LESS, "wait for one less")                                                                                 \
    X(VALUE_MORE, "wait for one more")                                                                                 \
    X(START_BEFORE, "wait for a start before")                                                                         \
    X(START_AFTER, "wait for a start later")                                                                           \
    X(OP_BEFORE, "let the op before wait")                                                                             \
    X(NEXT_OP_TOO, "let the next op wait, too")                                                                        \
    X(NEXT_OP, "let the next op wait")                                                                                 \
    X(DROP_SIGNAL, "drop a signal")                                                                                    \
    X(DOUBLE_SIGNAL, "signal twice")                                                                                   \
    X(SIGNAL_BEFORE, "let the op before signal")                                                                       \
    X(NEXT_SIGNAL, "let the next op signal")                                                                           \
    X(SWAP_SIGNALS, "swap two signals")                                                                                \
    X(SWAP_VALUES, "swap what two ops wait for")                                                                       \
    X(SWAP_LANES, "swap reader and writer")                                                                            \
    X(OTHER_READER, "another lane reads")                                                                              \
    X(OTHER_WRITER, "another lane writes")                                                                             \
    X(DROP_COUNTER, "drop a counter")                                                                                  \
    X(DOUBLE_COUNTER, "have a counter twice")
typedef enum damage {
#define X(name, text) DAMAGE_##name,
    DAMAGE_MAP(X)
#undef X
        DAMAGES
} damage;
extern const char *const damage_text[];

/* Replaces the counters of `to`, a copy of `from`, by damaged ones; false: there is no number `index`, or it would
 * change nothing. `*more`: there are further numbers. */
bool damage_counters(gantry_schedule *to, const gantry_schedule *from, damage kind, uint32_t index, bool *more);

#endif
