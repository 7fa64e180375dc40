/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Compilers as processes that end: after a time limit, with what they started, and with this process, however it ends.
 *
 * They form a process group of their own, so that all of them can be killed at once; an interrupt from the terminal,
 * which goes to the group of this process, does not reach them then. Hence the leader of the group is a shell that
 * waits at a pipe whose other end only this process has: where this process is gone, it kills the group.
 */
#ifndef GY_RUN_USERCODE_COMMAND_H
#define GY_RUN_USERCODE_COMMAND_H

#include "base/text.h"
#include "run/usercode/said.h"
#include <sys/types.h>

typedef struct gy_compilers {
    const char *source; /* for messages */
    gy_said said;       /* who hears what the commands to come say; once begun, nobody */
    pid_t leader;
    int pipe;
    int64_t deadline_ns;
    int seconds;
} gy_compilers;

/* Time begins to run. The limit is $GANTRY_COMPILE_SECONDS, else 300. E_INVALID: it is no number, or out of range. */
gantry_status gy_compilers_begin(gy_compilers *compilers, const char *source, gantry_error *err);
/* Runs a command, which ends with NULL; its output and complaints in `text`. Temporary files of the compiler are in
 * `folder`, if there is one. E_GRAPH: it did not end well, with what it said; E_IO: it cannot be started; E_TIMEOUT. */
gantry_status gy_compilers_run(gy_compilers *compilers, char *const *command, const char *folder, gy_text *text,
                               gantry_error *err);
/* Nothing of them is left. */
void gy_compilers_end(gy_compilers *compilers);
/* E_GRAPH: "x.c does not compile: " and why. */
gantry_status gy_compilers_fail(const char *source, const char *why, gantry_error *err);

/* usercode_compiler.c: adds the file of a compiler that is called by this name: where it lies, its size and when it was
 * written. False: that does not say which compiler it is, as of scripts and of ccache. */
bool gy_compiler_identify(uint64_t *hash, const char *word);

#endif
