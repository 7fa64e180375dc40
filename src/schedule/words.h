/* SPDX-License-Identifier: Apache-2.0 */
/* The words by which files, options and reports call enumerations, in their order. */
#ifndef GY_SCHEDULE_WORDS_H
#define GY_SCHEDULE_WORDS_H

#include <stddef.h>

typedef struct gy_words {
    const char *what; /* for messages: "space of an instance" */
    const char *const *word;
    size_t count;
    size_t first; /* the number of word[0] */
} gy_words;

extern const gy_words gy_space_words, gy_role_words, gy_op_words, gy_lane_words, gy_carrier_words, gy_reason_words,
    gy_provenance_words, gy_access_words, gy_reduction_words, gy_collective_words, gy_algorithm_words, gy_replay_words,
    gy_objective_words, gy_balance_words, gy_spill_words;

/* The word of a number; "?" for a number that has none. */
const char *gy_word(const gy_words *words, size_t number);
/* The number of a word; SIZE_MAX if it is none of them. */
size_t gy_word_find(const gy_words *words, const char *word);

#endif
