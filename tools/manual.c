/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page, gantry(1), for `gantry help --man`. */
#include "options.h"
#include <stdio.h>
#include <string.h>

/* Text of a line: no character of it means anything to roff. */
static void print_text(const char *text)
{
    if (*text == '.' || *text == '\'')
        printf("\\&");
    for (; *text; text++)
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
}

static void print_option(const option *p)
{
    printf(".TP\n\\fB\\-\\-");
    print_text(p->name);
    printf("\\fR \\fI");
    print_text(p->value);
    printf("\\fR\n");
    print_text(p->summary);
    printf("\n");
}

/* Lines as they are. */
static void print_example(const char *text)
{
    printf(".PP\nExamples:\n.PP\n.nf\n");
    while (*text) {
        char line[512];
        size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        print_text(line);
        printf("\n");
        text += length + (text[length] == '\n');
    }
    printf(".fi\n");
}

static void print_command(const command *c)
{
    const option *p;
    printf(".SS gantry %s ", c->name);
    print_text(c->arguments);
    printf("\n");
    print_text(c->summary);
    printf(".\n");
    for (size_t i = 0; (p = option_at(i)); i++)
        if (offers(c, p))
            print_option(p);
    print_example(c->examples);
}

/* A summary of a back end may end with why it cannot be used on this computer, which is no matter of a page. */
static void print_general(const char *text)
{
    char line[512];
    const char *here = strstr(text, ": cannot be used here");
    snprintf(line, sizeof line, "%.*s", (int)(here ? (size_t)(here - text) : strlen(text)), text);
    print_text(line);
}

static void print_list(const char *title, const char *(*name)(size_t), const char *(*summary)(size_t))
{
    printf(".SH %s\n", title);
    for (size_t i = 0; name(i); i++) {
        printf(".TP\n\\fB");
        print_text(name(i));
        printf("\\fR\n");
        print_general(*summary(i) ? summary(i) : name(i));
        printf("\n");
    }
}

void print_manual(const command *const *commands, size_t count)
{
    printf(".TH GANTRY 1 \"\" \"gantry %s\" \"User Commands\"\n", gantry_version());
    printf(".SH NAME\ngantry \\- runs a task graph on every device of a machine\n");
    printf(".SH SYNOPSIS\n.B gantry\n.I COMMAND\n.RI [ WORDS ]\n.RI [ OPTIONS ]\n");
    printf(".SH DESCRIPTION\nA graph says what depends on what, a machine where it can run. Gantry makes a schedule of "
           "both: who does\n"
           "what, when, and at which address; and runs it.\n"
           "Graphs and machines are files, or names of those that come with Gantry. A graph, schedule or machine file "
           "may be\n"
           "\\-, standard input.\n");
    printf(".SH COMMANDS\n");
    for (size_t i = 0; i < count; i++)
        print_command(commands[i]);
    printf(".SS gantry help\n\\fBgantry help\\fR \\fICOMMAND\\fR shows the options of a command, \\fBgantry help "
           "\\-\\-man\\fR this\n"
           "page, \\fBgantry help \\-\\-completion bash\\fR what bash completes words by.\n");
    print_list("POLICIES", gantry_policy_name, gantry_policy_summary);
    print_list("BACK ENDS", gantry_backend_name, gantry_backend_summary);
    print_list("FORMATS OF IMPORT", gantry_import_format, gantry_import_summary);
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < EXIT_CODES; i++)
        printf(".TP\n%d\n%s\n", (int)i, exit_meanings[i]);
    printf(".TP\n130, 143\ninterrupted by SIGINT (Ctrl-C), SIGTERM\n");
    printf(".SH ENVIRONMENT\n.TP\nGANTRY_DATA\nthe folder with graphs/ and machines/ that names are looked up in\n"
           ".TP\nGANTRY_MODULES\nthe folder with the modules of the library\n"
           ".TP\nCOLUMNS\nthe width of the line of progress; that of the terminal where it is not set\n"
           ".TP\nTERM\ndumb: there is no line of progress\n"
           ".PP\nFurther ones, of modules, compilers and GPUs, are in docs/install.md.\n");
}
