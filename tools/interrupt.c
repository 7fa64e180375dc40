/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGINT and SIGTERM. Where there is nothing to lose (loading, planning) the command ends in the handler, whatever it
 * is at; while a graph runs the first one is noted, and who runs it stops after the op at hand. The second always ends
 * the command at once.
 */
#include "command.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t number, noted_only, drawn;
static const char *volatile stage = "starting";

static void put(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

/* Nothing here but what a handler may call. */
static void end_now(int n)
{
    if (drawn)
        put("\r\033[K");
    put("gantry: interrupted while ");
    put(stage);
    put("\n");
    _exit(128 + n);
}

static void on_signal(int n)
{
    if (number || !noted_only)
        end_now(n);
    number = n;
}

/* A signal that is ignored, as for a job in the background, stays so. */
static void install(int n)
{
    struct sigaction old, how = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&how.sa_mask);
    if (sigaction(n, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(n, &how, NULL);
}

void interrupt_install(void)
{
    install(SIGINT);
    install(SIGTERM);
}

void interrupt_stage(const char *what, bool shown)
{
    drawn = shown;
    stage = what ? what : stage;
}

void interrupt_note(bool only)
{
    noted_only = only;
}

int interrupt_code(void)
{
    return number ? 128 + number : EXIT_FINE;
}
