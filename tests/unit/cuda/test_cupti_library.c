/* SPDX-License-Identifier: Apache-2.0 */
/* The real library, if this computer has one: it is opened, and every function that is wanted is there. What it does
 * takes a GPU: tests/gpu/programs/test_times.c. */
#include "backends/cuda/times/cupti.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    gy_cupti_api api;
    gantry_error err = { 0 };
    const char *why = NULL;
    if (gy_cupti_load(&api, 0, &why, &err)) {
        printf("%s: %s\n", why, err.text);
        return strcmp(why, "CUPTI was not found") == 0 ? 77 : 1;
    }
    printf("%s, version %u\n", api.lib.name, (unsigned)api.version);
    return why || api.version < GY_CUPTI_LEAST;
}
