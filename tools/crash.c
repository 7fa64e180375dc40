/* SPDX-License-Identifier: Apache-2.0 */
/* A crash in a kernel of the user has a name: a handler tells it, and leaves the signal to whoever had it before. */
#include "command.h"
#include <gantry/run.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name;
} faults[] = { { SIGSEGV, "SIGSEGV, a segmentation fault" },
               { SIGBUS, "SIGBUS, an address that memory does not have" },
               { SIGFPE, "SIGFPE, as by a division of integers by 0" },
               { SIGILL, "SIGILL, no instruction of this processor" },
               { SIGABRT, "SIGABRT, as by abort() or assert()" } };
enum { FAULTS = sizeof faults / sizeof *faults };
/* Signal handlers belong to the process, and so does this. */
static struct sigaction before[FAULTS];

/* Handlers may call write(), and not much else. */
static void put(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* there is nobody to tell */
}

static void put_quoted(const char *before_it, const char *text)
{
    put(before_it);
    put(text);
    put("\"");
}

/* A kernel that writes beyond its memory may bring down who comes to it later. */
static void tell_elsewhere(const char *name)
{
    put("gantry: crashed by ");
    put(name);
    put(", outside of any node's function; kernels of the graph's own may have written to memory that they were not "
        "given, which --check finds; without such kernels it is a mistake of Gantry\n");
}

static void tell(const char *name)
{
    gantry_at_work at = GANTRY_AT_WORK_INIT;
    if (!gantry_run_at_work(&at)) {
        tell_elsewhere(name);
        return;
    }
    put_quoted("gantry: node \"", at.node);
    put_quoted(" on device \"", at.device);
    if (at.kernel)
        put_quoted(" crashed in its kernel \"", at.kernel);
    else
        put(" crashed in its function");
    put(" by ");
    put(name);
    put("; --check finds what it does to memory that it was not given, and a debugger the line\n");
}

/* Whoever had the signal before gets it: by the instruction, which is carried out again, or where somebody sent it, by
 * being sent it again. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (int i = 0; i < FAULTS; i++)
        if (faults[i].number == number) {
            tell(faults[i].name);
            sigaction(number, &before[i], NULL);
        }
    if (info->si_code <= 0)
        raise(number);
}

void name_crashes(void)
{
    struct sigaction how = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigemptyset(&how.sa_mask);
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i].number, &how, &before[i]);
}
