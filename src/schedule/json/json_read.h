/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the reader of schedule files. They look at types and names; what numbers may be is left to
 * gy_schedule_form, which sees every schedule. */
#ifndef GY_SCHEDULE_JSON_JSON_READ_H
#define GY_SCHEDULE_JSON_JSON_READ_H

#include "base/json.h"
#include "schedule/schedule.h"
#include "schedule/words.h"

typedef struct gy_schedule_reader {
    gantry_schedule *s;
    gy_names nodes; /* ids -> indices */
    gantry_error *err;
} gy_schedule_reader;

#define GY_COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* An array that must be there. */
gantry_status gy_file_list(const gy_schedule_reader *r, const gy_json_at *at, const char *key, gy_json_at *list);
/* Reads each element of an array that must be there. */
gantry_status gy_file_each(gy_schedule_reader *r, const gy_json_at *at, const char *key,
                           gantry_status (*read)(gy_schedule_reader *, const gy_json_at *));
/* Element i of an array of integers. */
gantry_status gy_file_item(const gy_schedule_reader *r, const gy_json_at *list, size_t i, int64_t low, int64_t high,
                           int64_t *out);
/* Exactly `count` integers. */
gantry_status gy_file_integers(const gy_schedule_reader *r, const gy_json_at *list, size_t count, int64_t *out);
/* A number of 32 bits; `absent` where there is none, unless it is required. */
gantry_status gy_file_u32(const gy_schedule_reader *r, const gy_json_at *at, const char *key, bool required,
                          uint32_t absent, uint32_t *out);
/* A word of the list; 0 where there is none, unless it is required. */
gantry_status gy_file_word(const gy_schedule_reader *r, const gy_json_at *at, const char *key, bool required,
                           const gy_words *words, uint8_t *out);
gantry_status gy_file_word_of(const gy_schedule_reader *r, const gy_json_at *at, const gy_words *words, uint8_t *out);
/* Refuses a key that means nothing here: `whose` says what has it. */
gantry_status gy_file_absent(const gy_schedule_reader *r, const gy_json_at *at, const char *key, const char *whose);
/* An object without unknown keys. */
gantry_status gy_file_object(const gy_schedule_reader *r, const gy_json_at *at, const char *what,
                             const char *const *keys, size_t count);

gantry_status gy_file_head(gy_schedule_reader *r, const gy_json_at *root);
gantry_status gy_file_lists(gy_schedule_reader *r, const gy_json_at *root);
gantry_status gy_file_ops(gy_schedule_reader *r, const gy_json_at *root);
gantry_status gy_file_sync(gy_schedule_reader *r, const gy_json_at *root);
gantry_status gy_file_counters(gy_schedule_reader *r, const gy_json_at *root);
gantry_status gy_file_phases(gy_schedule_reader *r, const gy_json_at *root);
/* A whole schedule at `root`, which may be inside of another. */
gantry_status gy_file_schedule(gantry_schedule **schedule, const gy_json_at *root, gantry_error *err);

#endif
