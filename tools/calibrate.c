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
