/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command says what it is at: one line on a terminal, which is gone when it is over; with --verbose a line for each
 * step.
 *
 * SIGINT and SIGTERM: where there is nothing to lose (loading, planning) the command ends in the handler, whatever it
 * is at; while a graph runs the first one is noted, and who runs it stops after the op at hand. The second always ends
 * the command at once; but what comes a moment behind the first is the same one, which `timeout` and launchers send to
 * the command and to its group.
 */
#include "command.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_US 1e5

enum { WIDTH = 80, NARROWEST = 20, SAME_MS = 200 };

/* ---- signals ---- */

static volatile sig_atomic_t number, noted_ms, noted_only, drawn;
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

static sig_atomic_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (sig_atomic_t)((now.tv_sec % 1000000) * 1000 + now.tv_nsec / 1000000);
}

static void on_signal(int n)
{
    sig_atomic_t at = now_ms();
    if (number && at >= noted_ms && at - noted_ms < SAME_MS)
        return;
    if (number || !noted_only)
        end_now(n);
    noted_ms = at;
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

/* ---- the line ---- */

static struct {
    const char *command;
    bool draws, speaks; /* on a terminal; with --verbose */
    bool drawn;
    const char *stage;
    double begun_us, drawn_us;
} line;

void progress_begin(const command *c, const options *o)
{
    const char *terminal = getenv("TERM");
    bool plain = !terminal || strcmp(terminal, "dumb") == 0; /* it cannot take a line back */
    line.command = c->name;
    line.speaks = o->verbose && !o->quiet;
    line.draws = !o->quiet && !plain && isatty(STDERR_FILENO) == 1;
}

bool progress_shown(void)
{
    return line.draws;
}

int terminal_columns(FILE *to)
{
    enum { WIDEST = 100000 };
    const char *said = getenv("COLUMNS");
    long columns = said ? strtol(said, NULL, 10) : 0;
    struct winsize size;
    if (columns <= 0 && ioctl(fileno(to), TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    return columns <= 0 ? WIDTH : columns < NARROWEST ? NARROWEST : columns > WIDEST ? WIDEST : (int)columns;
}

/* Cuts the text so that it leaves the last column free, and no character in pieces (UTF-8). */
static void cut(char *text, size_t columns)
{
    size_t seen = 0;
    for (; *text; text++) {
        if ((*text & 0xC0) != 0x80 && ++seen >= columns) {
            *text = 0;
            return;
        }
    }
}

static void draw(const char *rest)
{
    char text[600];
    snprintf(text, sizeof text, "%s%s", line.stage, rest);
    cut(text, (size_t)terminal_columns(stderr));
    fprintf(stderr, "\r%s\033[K", text);
    fflush(stderr);
    line.drawn = true;
    interrupt_stage(NULL, true);
}

void progress_clear(void)
{
    if (line.drawn)
        fprintf(stderr, "\r\033[K");
    line.drawn = false;
    interrupt_stage(NULL, false);
}

void progress_stage(const char *what)
{
    progress_clear();
    interrupt_stage(what, false);
    line.stage = what;
    line.begun_us = line.drawn_us = now_us();
    if (line.speaks)
        fprintf(stderr, "gantry %s: %s\n", line.command, what);
    else if (line.draws)
        draw("");
}

void progress_say(const char *format, ...)
{
    va_list list;
    if (!line.speaks)
        return;
    progress_clear();
    fprintf(stderr, "gantry %s: ", line.command);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

double progress_seconds(void)
{
    return (now_us() - line.begun_us) * 1e-6;
}

bool progress_is_due(void)
{
    return line.draws && now_us() - line.drawn_us >= REDRAW_US;
}

void progress_draw(const char *format, ...)
{
    char rest[512];
    va_list list;
    if (!progress_is_due())
        return;
    line.drawn_us = now_us();
    va_start(list, format);
    vsnprintf(rest, sizeof rest, format, list);
    va_end(list);
    draw(rest);
}
