/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Targets for libFuzzer: each file gives LLVMFuzzerTestOneInput, which ends the process where a promise does not hold.
 * Built by clang with the preset `fuzz` they search for such inputs; in every other build main.c hands them files, and
 * the corpora are tests.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <gantry/gantry.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process with the message of `err`. */
#define MUST_HOLD(condition, err)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, (err)->text);                           \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A failure has a text that people can read, and is none of our own making. */
void fuzz_check_error(gantry_status status, const gantry_error *err);

#endif
