/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out schedules by their counters alone, on the host, in a random order and on a memory as weak as that between
 * GPUs: stores of a lane are seen late and out of order until it releases them, loads may find what the lane loaded
 * before until it acquires. An op's work is a hash of all bytes that it reads, so that no wrong byte goes unseen.
 */
#ifndef TESTS_COUNTERS_INTERPRET_H
#define TESTS_COUNTERS_INTERPRET_H

#include "property/mutants/mutants.h"

#define ALL_OPS UINT32_MAX
typedef struct faults {
    uint32_t no_release, no_acquire; /* of this op, counted from 1; 0: none */
    bool one_queue; /* no fault: a device begins its ops in the order of their positions, one after the other */
    uint32_t cut;   /* no fault: behind each so many positions a device begins nothing before all ahead has ended; 0 */
    uint32_t far;   /* no fault: bits, by the sum of two devices, modulo 8: between these there are no counters, and a
                     * wait is for all that the device has up to the op, and for the whole of an earlier start */
} faults;

/* An op that ends before its fellow begins: both touch a byte, one writes, in starts that are so far apart. */
bool share_bytes(const gantry_schedule *s, uint32_t from, uint32_t to, uint32_t distance);

/* Several starts in a row. NULL: every op of every start read what it reads where ops follow each other, and the same
 * bytes are there at the end. */
const char *interpret(const gantry_schedule *s, uint32_t starts, faults f, uint64_t seed);

#endif
