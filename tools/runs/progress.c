/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run: how far it is, while it runs and when it is interrupted. */
#include "runs/run.h"

#include "ranks/launch.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define SOON_US 0.4e6

/* " (12 s left)", once there is something to go by. A loop that ends by itself may end sooner. */
static const char *left_text(char *to, size_t size, const session *s, uint64_t done, const gantry_run_progress *p)
{
    double share = ((double)done + (p->most ? (double)p->iterations / (double)p->most : 0)) / (double)s->starts;
    double seconds = progress_seconds();
    to[0] = 0;
    if (seconds > 1 && share > 0.001)
        snprintf(to, size, ", %s%.0f s left", isnan(p->watched) ? "" : "at most ", seconds * (1 - share) / share);
    return to;
}

/* A start that ends soon after the signal is carried to its end, so that its outputs are complete. */
static bool is_to_stop(session *s)
{
    if (!interrupt_code())
        return false;
    s->interrupted_us = s->interrupted_us > 0 ? s->interrupted_us : now_us();
    return now_us() - s->interrupted_us > SOON_US;
}

/* Called by the run while it is waited for. */
static int tell(void *user, const gantry_run_progress *p)
{
    session *s = user;
    bool beside = s->starts == 0; /* a run of --check or --evaluate */
    uint64_t done = s->replaced + (beside ? 0 : p->completed);
    char loop[120] = "", watched[60] = "", left[60];
    guard_note(done, p);
    if (beside)
        return 0;
    if (p->most)
        snprintf(loop, sizeof loop, ", iteration %" PRIu64 " of %s%" PRIu64, p->iterations,
                 isnan(p->watched) ? "" : "at most ", p->most);
    if (!isnan(p->watched))
        snprintf(watched, sizeof watched, ", until %g", p->watched);
    progress_draw(": %" PRIu64 " of %zu starts%s%s%s", done, s->starts, loop, watched,
                  left_text(left, sizeof left, s, done, p));
    return is_to_stop(s);
}

static void hear_compiler(void *user, const char *text, size_t length)
{
    (void)user;
    (void)length;
    pass_on(text);
}

gantry_run_options run_options(session *s)
{
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    ro.backend = s->o->backend;
    ro.allow_code = s->o->allow_code;
    ro.seed = (uint64_t)s->o->seed;
    ro.record_trace = records_times(s);
    ro.timeout_us = s->o->timeout * 1e6;
    ro.threads = (int32_t)s->o->threads;
    ro.progress = tell;
    ro.user = s;
    ro.compiler_output = hear_compiler;
    take_checkpoint(s->o, &ro);
    return ro;
}

uint64_t starts_completed(const session *s)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    return s->replaced + (s->run && !gantry_run_get_info(s->run, &info, NULL) ? info.completed : 0);
}

/* A state is what the starts before have left, unless one was cut: then it is that of the beginning. */
static bool is_complete(const session *s, gantry_buffer buffer)
{
    gantry_buffer_info info;
    const void *host;
    if (is_output(s, buffer.id, &info))
        return !gantry_run_output(s->run, buffer, &host, NULL, NULL);
    void *room = malloc(info.bytes + 1);
    bool complete = room && !gantry_run_state(s->run, buffer, room, info.bytes, NULL);
    free(room);
    return complete;
}

/* Outputs that are complete, together; says which are not. */
static int save_complete(const session *s)
{
    gantry_error err;
    gantry_files *files = NULL;
    int code = begin_files(&files);
    for (size_t i = 0; i < s->o->outputs.count && !code; i++) {
        gantry_buffer buffer;
        const char *path;
        code = find_binding(s, "output", s->o->outputs.at[i], &buffer, &path);
        if (code || !is_complete(s, buffer)) {
            complain("--output: \"%s\" is not written, since no start had completed it\n", s->o->outputs.at[i]);
            continue;
        }
        if (gantry_run_save_with(s->run, buffer, files, path, &err))
            code = fail(&err);
        else
            complain("--output: \"%s\" is written, as of the last start that completed it\n", s->o->outputs.at[i]);
    }
    return end_files(files, code);
}

int end_interrupted(const session *s)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    uint64_t done = starts_completed(s);
    char more[60] = "";
    if (done < s->starts && !gantry_run_get_info(s->run, &info, NULL) && info.iterations)
        snprintf(more, sizeof more, ", and %" PRIu64 " iterations of the next", info.iterations);
    complain("gantry %s: interrupted with %" PRIu64 " of %zu %s complete%s\n", s->o->train ? "train" : "run", done,
             s->starts, s->o->train ? "steps" : "starts", more);
    int code = save_complete(s);
    return code ? code : interrupt_code();
}
