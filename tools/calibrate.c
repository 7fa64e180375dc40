/* SPDX-License-Identifier: Apache-2.0 */
/* gantry machine calibrate: measuring, with a line of progress on terminals. */
#include "command.h"
#include <stdio.h>
#include <unistd.h>

static void show(void *user, const char *what, size_t done, size_t of)
{
    (void)user;
    if (of)
        fprintf(stderr, "\r%3zu %% %-40s", 100 * done / of, what);
    else
        fprintf(stderr, "\r      %-40s", what);
    fflush(stderr);
}

int calibrate_machine(gantry_machine **machine, const options *o)
{
    gantry_error err;
    gantry_machine *from = NULL;
    gantry_calibrate_options how = GANTRY_CALIBRATE_OPTIONS_INIT;
    bool terminal = isatty(STDERR_FILENO) == 1;
    int code = o->devices ? select_here(&from, o) : EXIT_FINE;
    if (code)
        return code;
    how.seconds = o->seconds;
    how.progress = terminal ? show : NULL;
    gantry_status status = gantry_machine_calibrate(machine, from, &how, &err);
    if (terminal)
        fprintf(stderr, "\r%-60s\r", "");
    gantry_machine_free(from);
    return status ? fail(&err) : EXIT_FINE;
}

/* Not to be able to is no failure: the figures are printed. */
void keep_machine(const gantry_machine *machine, const options *o)
{
    gantry_error err;
    char line[1024];
    gantry_machine *here = NULL;
    if (o->out || o->devices)
        return;
    if (!gantry_machine_detect(&here, NULL, &err) && !gantry_machine_keep(machine, here, &err)) {
        fprintf(stderr, "kept for the runs and schedules of this user on this computer\n");
    } else {
        gantry_error_format(&err, line, sizeof line);
        fprintf(stderr, "not kept for later runs: %s\n", line);
    }
    gantry_machine_free(here);
}
