/* SPDX-License-Identifier: Apache-2.0 */
/* gantry doctor: runs the checks, tells what they found. */
#include "doctor.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

char *text_of(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    return length < 0 ? NULL : text;
}

static void free_finding(finding *f)
{
    free(f->what);
    free(f->seen);
    free(f->remedy);
}

void add_finding(doctor *d, finding f)
{
    finding *longer = realloc(d->at, (d->count + 1) * sizeof *longer);
    if (!longer || !f.what || !f.seen || (f.state != STATE_FINE && !f.remedy))
        d->failed = true;
    if (!longer) {
        free_finding(&f);
        return;
    }
    d->at = longer;
    d->at[d->count++] = f;
}

static void run_checks(doctor *d)
{
    static void (*const checks[])(doctor *) = { check_peers,         check_acs,   check_iommu,     check_links,
                                                check_numa,          check_power, check_governors, check_memlock,
                                                check_shared_memory, check_mig };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        checks[i](d);
}

static const char *word_of(finding_state state)
{
    return state == STATE_FINE ? "fine" : state == STATE_FOUND ? "found" : "unknown";
}

static size_t count_of(const doctor *d, finding_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < d->count; i++)
        count += d->at[i].state == state;
    return count;
}

static int print_as_json(const doctor *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s?}", "check", d->at[i].check, "state",
                                              word_of(d->at[i].state), "what", d->at[i].what, "seen", d->at[i].seen,
                                              "remedy", d->at[i].remedy));
    return print_json(json_pack("{s:I, s:I, s:o}", "gpus", (json_int_t)d->gpus, "found",
                                (json_int_t)count_of(d, STATE_FOUND), "findings", list));
}

static void print_finding(const finding *f)
{
    printf("  %-7s  %s: %s\n           seen: %s\n", word_of(f->state), f->check, f->what, f->seen);
    if (f->remedy)
        printf("           %s: %s\n", f->state == STATE_FOUND ? "remedy" : "to know", f->remedy);
}

/* Things to do something about come first. */
static int print_text(const doctor *d)
{
    static const finding_state order[] = { STATE_FOUND, STATE_UNKNOWN, STATE_FINE };
    if (d->gpus)
        printf("%zu GPU%s on the bus\n", d->gpus, d->gpus == 1 ? "" : "s");
    else
        printf("no GPU on the bus; what does not need one is looked at\n");
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < d->count; i++)
            if (d->at[i].state == order[k])
                print_finding(&d->at[i]);
    printf("%zu found, %zu unknown, %zu fine\n", count_of(d, STATE_FOUND), count_of(d, STATE_UNKNOWN),
           count_of(d, STATE_FINE));
    return EXIT_FINE;
}

static void free_doctor(doctor *d)
{
    for (size_t i = 0; i < d->count; i++)
        free_finding(&d->at[i]);
    free(d->at);
    free(d->gpu);
}

static int look(doctor *d, const options *o)
{
    int code = EXIT_RUNNING;
    d->failed = !find_gpus(d);
    if (!d->failed)
        run_checks(d);
    if (d->failed)
        complain("%s\n", gantry_status_text(GANTRY_E_NOMEM));
    else
        code = o->json ? print_as_json(d) : print_text(d);
    return code || count_of(d, STATE_FOUND) == 0 ? code : EXIT_RUNNING;
}

static int run(const options *o)
{
    gantry_machine *machine = NULL;
    int code = load_machine(&machine, o, NULL, NULL);
    doctor d = { .root = o->root ? o->root : "", .machine = machine };
    if (!code)
        code = look(&d, o);
    free_doctor(&d);
    gantry_machine_free(machine);
    return code;
}

const command command_doctor = { "doctor",
                                 "",
                                 "looks for what makes several GPUs of this computer scale badly",
                                 0,
                                 0,
                                 "machine root json",
                                 "  gantry doctor\n"
                                 "  sudo gantry doctor                # looks at what only root can read, such as ACS\n"
                                 "  gantry doctor --json\n",
                                 run };
