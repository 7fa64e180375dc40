/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --html: the page of the last start, what was predicted above what was measured. */
#include "runs/run.h"

int write_page(const session *s, gantry_files *files)
{
    gantry_error err;
    char *trace = NULL, *text = NULL;
    size_t length = 0, text_length = 0;
    size_t phase = s->o->phase > 0 ? (size_t)s->o->phase : 0;
    if (gantry_run_trace(s->run, &trace, &length, &err))
        return fail(&err);
    gantry_status status = gantry_schedule_page(s->schedule, phase, trace, length, &text, &text_length, &err);
    gantry_free(trace);
    if (status)
        return fail(&err);
    int code = add_text(files, s->o->html, text, text_length);
    gantry_free(text);
    return code;
}
