/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options, which parsing, help, manual page and completion come from. */
#ifndef GANTRY_OPTIONS_H
#define GANTRY_OPTIONS_H

#include "command.h"
#include <stdio.h>

/* SIZE: a NUMBER of bytes, with a unit or without. */
typedef enum option_kind { FLAG, TEXT, NUMBER, SIZE, REAL, LIST } option_kind;

typedef struct option {
    const char *name, *value, *summary;
    option_kind kind;
    size_t field;
    int64_t fallback, low, high; /* NUMBER */
    const char *command;         /* of options with one name, the command that this one is for; NULL: of all others */
} option;

enum { EXIT_CODES = EXIT_LOST + 1 };
extern const char *const exit_meanings[EXIT_CODES];

/* NULL behind the last. */
const option *option_at(size_t i);
bool accepts(const command *c, const char *name);
/* It is in the list of the command and, of those with its name, the one that is for it. */
bool offers(const command *c, const option *p);
/* Among those of the command; NULL: none has that name, or one like it. */
const option *find_option(const command *c, const char *name, size_t length);
const char *nearest_option(const command *c, const char *name);

/* main.c: the first command that offers it; NULL: none does. */
const command *command_offering(const char *name);

/* help.c: the text from column `left` on, where the cursor is, in lines of at most 100 columns; with something in front
 * of it, which has a line of its own where it is too wide. */
void print_column(FILE *to, const char *text, size_t left);
void print_row(FILE *to, const char *name, const char *text, size_t left);

/* manual.c, completion.c: of all commands, to standard output. */
void print_manual(const command *const *commands, size_t count);
void print_completion(const command *const *commands, size_t count);

#endif
