/* SPDX-License-Identifier: Apache-2.0 */
/* `gantry help COMMAND`. */
#include "options.h"
#include <stdio.h>
#include <string.h>

const char *const exit_meanings[EXIT_CODES] = {
    [EXIT_FINE] = "fine",
    [EXIT_RUNNING] = "failed while running",
    [EXIT_USAGE] = "bad usage",
    [EXIT_BAD_INPUT] = "invalid graph, machine or schedule",
    [EXIT_CAPACITY] = "does not fit in memory",
    [EXIT_DEVICE] = "device or driver error",
    [EXIT_LOST] = "a rank was lost",
};

static void print_names(const char *title, const char *(*name)(size_t), const char *(*summary)(size_t))
{
    printf("\n%s\n", title);
    for (size_t i = 0; name(i); i++)
        printf("  %-14s %s\n", name(i), summary(i));
}

/* Their names, in lines. */
static void print_data(const char *title, const char *kind)
{
    string_list names;
    size_t column = 0;
    list_data(kind, &names);
    if (names.count)
        printf("\n%s\n ", title);
    for (size_t i = 0; i < names.count; i++) {
        column += strlen(names.at[i]) + 1;
        printf("%s %s", column > 100 ? "\n " : "", names.at[i]);
        column = column > 100 ? strlen(names.at[i]) + 1 : column;
    }
    if (names.count)
        printf("\n");
    free_data(&names);
}

enum { LINE = 100 };

void print_column(FILE *to, const char *text, size_t left)
{
    size_t column = left;
    while (*text) {
        size_t word = strcspn(text, " "), rest = word + strspn(text + word, " ");
        if (column > left && column + word >= LINE) {
            fprintf(to, "\n%*s", (int)left, "");
            column = left;
        }
        fprintf(to, "%s%.*s", column > left ? " " : "", (int)word, text);
        column += word + (column > left);
        text += rest;
    }
    fputc('\n', to);
}

/* Names that are too wide for their column have a line of their own. */
void print_row(FILE *to, const char *name, const char *text, size_t left)
{
    if (strlen(name) + 3 <= left)
        fprintf(to, "  %-*s ", (int)left - 3, name);
    else
        fprintf(to, "  %s\n%*s", name, (int)left, "");
    print_column(to, text, left);
}

void options_print(const command *c)
{
    printf("gantry %s %s\n    ", c->name, c->arguments);
    print_column(stdout, c->summary, 4);
    printf("\noptions\n");
    const option *p;
    for (size_t i = 0; (p = option_at(i)); i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", p->name, p->value);
        if (offers(c, p))
            print_row(stdout, left, p->summary, 31);
    }
    if (accepts(c, "policy"))
        print_names("policies", gantry_policy_name, gantry_policy_summary);
    if (accepts(c, "backend"))
        print_names("back ends", gantry_backend_name, gantry_backend_summary);
    if (accepts(c, "node-time"))
        print_names("formats", gantry_import_format, gantry_import_summary);
    if (graphs_of(c))
        print_data(strcmp(graphs_of(c), "graphs") == 0 ? "graphs that come with Gantry"
                                                       : "models that come with Gantry",
                   graphs_of(c));
    if (accepts(c, "machine"))
        print_data("machines that come with Gantry", "machines");
    printf("\nexamples\n%s", c->examples);
}
