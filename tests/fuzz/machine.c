/* SPDX-License-Identifier: Apache-2.0 */
/* A machine file: it is a machine or an error, and what is written of a machine is read to the same bytes. */
#include "fuzz.h"

#include <string.h>

static void check_stable(const gantry_machine *m)
{
    gantry_error err = { 0 };
    gantry_machine *again = NULL;
    char *text, *second;
    size_t length, second_length;
    MUST_HOLD(gantry_machine_json(m, &text, &length, &err) == GANTRY_OK, &err);
    MUST_HOLD(gantry_machine_parse(&again, text, length, "again", &err) == GANTRY_OK, &err);
    MUST_HOLD(gantry_machine_json(again, &second, &second_length, &err) == GANTRY_OK, &err);
    MUST_HOLD(length == second_length && memcmp(text, second, length) == 0, &err);
    gantry_free(text);
    gantry_free(second);
    gantry_machine_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    gantry_status status = gantry_machine_parse(&m, (const char *)data, size, "fuzz", &err);
    fuzz_check_error(status, &err);
    MUST_HOLD((status == GANTRY_OK) == (m != NULL), &err);
    if (m)
        check_stable(m);
    gantry_machine_free(m);
    return 0;
}
