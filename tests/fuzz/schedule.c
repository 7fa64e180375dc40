/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule file: it is refused or it is a schedule, and then it is written to bytes that are read and written again
 * to the same bytes, and everything that looks at a schedule can look at it. */
#include "fuzz.h"

#include <string.h>

static void check_stable(const gantry_schedule *s)
{
    gantry_error err = { 0 };
    gantry_schedule *again = NULL;
    char *text, *second;
    size_t length, second_length;
    MUST_HOLD(gantry_schedule_json(s, &text, &length, &err) == GANTRY_OK, &err);
    MUST_HOLD(gantry_schedule_parse(&again, text, length, "again", &err) == GANTRY_OK, &err);
    MUST_HOLD(gantry_schedule_json(again, &second, &second_length, &err) == GANTRY_OK, &err);
    MUST_HOLD(length == second_length && memcmp(text, second, length) == 0, &err);
    gantry_free(text);
    gantry_free(second);
    gantry_schedule_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    gantry_status status = gantry_schedule_parse(&s, (const char *)data, size, "fuzz", &err);
    fuzz_check_error(status, &err);
    MUST_HOLD((status == GANTRY_OK) == (s != NULL), &err);
    if (s)
        check_stable(s);
    gantry_schedule_free(s);
    return 0;
}
