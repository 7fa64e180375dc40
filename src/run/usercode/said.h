/* SPDX-License-Identifier: Apache-2.0 */
/** The one who hears what compilers of users' code say (gantry_run_options.compiler_output). */
#ifndef GY_RUN_SAID_H
#define GY_RUN_SAID_H

#include <gantry/run.h>
#include <stdbool.h>

typedef struct gy_said {
    gantry_compiler_output_fn hear; /* NULL: nobody */
    void *user;
} gy_said;

/* In the place of the compiler's words where these were heard. */
#define GY_SAID_WHY "the output of its compiler says why"

/* False: nobody hears, or there is nothing to hear. */
static inline bool gy_say(gy_said said, const char *text, size_t length)
{
    if (said.hear && length)
        said.hear(said.user, text, length);
    return said.hear && length;
}

#endif
