/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose kernels wait for their peers: parts of them by a word, and the one where kernels make a mistake
 * (FAKE_CUDA_MISTAKE), which some seed has to show. */
#ifndef TESTS_UNIT_CUDA_COUNTED_MISTAKES_H
#define TESTS_UNIT_CUDA_COUNTED_MISTAKES_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

/* Each seed in a child, as a mistake may end the program: `well` says that nothing shows. Fails if no seed up to
 * `seeds` shows it. */
void some_seed_shows(bool (*well)(uint64_t seed), int seeds);

/* Part of a program: its tests, run where the program is called with the word; that of NULL, the last one, otherwise.
 */
typedef struct program_part {
    const char *word;
    void (*add)(TCase *tests);
} program_part;

int run_part(const char *suite, const program_part *parts, int count, char **word);

#endif
