/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --calibrate FILE: the machine of the run, with the times that its kernels and copies took. */
#include "runs/run.h"
#include <string.h>

int check_calibrate(const options *o)
{
    if (!o->calibrate || !o->backend || strcmp(o->backend, "sim") != 0)
        return EXIT_FINE;
    complain("gantry run: --calibrate needs times that were measured, and back end \"sim\" gives predicted ones; "
             "use host or cuda\n");
    return EXIT_USAGE;
}

int sample_start(const session *s)
{
    gantry_error err;
    if (s->o->calibrate)
        return gantry_run_sample(s->run, &err) ? fail(&err) : EXIT_FINE;
    if (s->known.here && records_times(s)) /* nobody asked for it */
        (void)!gantry_run_sample(s->run, NULL);
    return EXIT_FINE;
}

int write_calibrated(const session *s, gantry_files *files)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    char *text = NULL;
    size_t length = 0;
    if (gantry_run_calibrated(&machine, s->run, &err))
        return fail(&err);
    gantry_status status = gantry_machine_json(machine, &text, &length, &err);
    int code = status ? fail(&err) : add_text(files, s->o->calibrate, text, length);
    gantry_free(text);
    gantry_machine_free(machine);
    return code;
}

void print_calibrated(FILE *to, const session *s)
{
    if (s->o->calibrate)
        fprintf(to, "  calibrated: %s\n", s->o->calibrate);
}
