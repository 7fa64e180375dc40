/* SPDX-License-Identifier: Apache-2.0 */
/* The gantry command: finds the sub-command and hands over. */
#include "options.h"
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const command *const commands[] = { &command_run,     &command_train,   &command_schedule, &command_dot,
                                           &command_check,   &command_compare, &command_scale,    &command_machine,
                                           &command_kernels, &command_diff,    &command_what_if,  &command_serve,
                                           &command_import,  &command_fmt,     &command_bench,    &command_doctor };
enum { COMMANDS = sizeof commands / sizeof *commands };

static const command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

const command *command_offering(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (accepts(commands[i], name))
            return commands[i];
    return NULL;
}

static void print_overview(FILE *to)
{
    fprintf(to, "gantry %s: runs a task graph on every device of a machine\n\n", gantry_version());
    fprintf(to, "    graph (what)  +  machine (where)  ->  schedule (who, when, at which address)  ->  run\n\n");
    fprintf(to, "usage: gantry COMMAND ...\n\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        char left[160];
        snprintf(left, sizeof left, "%-9s %s", commands[i]->name, commands[i]->arguments);
        print_row(to, left, commands[i]->summary, 31);
    }
    fprintf(to,
            "\n`gantry help COMMAND` shows its options and examples. To begin:\n"
            "  gantry run saxpy --devices 2                              runs on two virtual devices of this CPU\n"
            "  gantry schedule cholesky --machine dgx1-v100 --svg s.svg  needs no GPU: predicts and draws\n"
            "  gantry dot saxpy | dot -Tsvg > g.svg                      draws what depends on what\n"
            "\nGraphs and machines are files, or names of those that come with Gantry (in $GANTRY_DATA, where it is\n"
            "set). A graph, schedule or machine file may be -, standard input.\n");
    char codes[400] = "Exit codes:";
    for (size_t i = 0, at = strlen(codes); i < EXIT_CODES && at < sizeof codes; i++)
        at += (size_t)snprintf(codes + at, sizeof codes - at, " %d %s%s", (int)i, exit_meanings[i],
                               i + 1 < EXIT_CODES ? "," : ".");
    print_column(to, codes, 0);
    fprintf(
        to,
        "Interrupted by SIGINT (Ctrl-C) or SIGTERM: 130 or 143. A run ends after the op at hand then, and writes the\n"
        "outputs that are complete; a second signal ends it at once.\n");
}

static int unknown_command(const char *name)
{
    const char *names[COMMANDS];
    char near[64];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i]->name;
    size_t length = strlen(name);
    if (*name == '-' || (length > 5 && strcmp(name + length - 5, ".json") == 0)) {
        complain("gantry: \"%s\" is no command: a command comes first, then files and options, as in `gantry run "
                 "graph.json --devices 2`; `gantry help` lists them\n",
                 name);
        return EXIT_USAGE;
    }
    if (is_data("graphs", name)) {
        complain("gantry: \"%s\" is no command, but a graph; `gantry run %s --devices 2` runs it\n", name, name);
        return EXIT_USAGE;
    }
    complain("gantry: no command \"%s\"%s; `gantry help` lists them\n", name,
             near_miss(near, sizeof near, name, names, COMMANDS));
    return EXIT_USAGE;
}

static int completion(const char *shell)
{
    if (strcmp(shell, "bash") != 0) {
        complain("gantry help: --completion is for \"%s\"; it must be bash\n", shell);
        return EXIT_USAGE;
    }
    print_completion(commands, COMMANDS);
    return EXIT_FINE;
}

static int help(int argc, char **argv)
{
    if (argc < 3) {
        print_overview(stdout);
        return EXIT_FINE;
    }
    if (strcmp(argv[2], "--man") == 0) {
        print_manual(commands, COMMANDS);
        return EXIT_FINE;
    }
    if (strcmp(argv[2], "--completion") == 0)
        return completion(argc > 3 ? argv[3] : "");
    const command *c = find(argv[2]);
    if (!c)
        return unknown_command(argv[2]);
    options_print(c);
    return EXIT_FINE;
}

/* A strategy is for a model; and a model is a graph like others, which computes its loss. */
static const char *folder_of(const options *o, const command *c)
{
    const char *folder = o->strategy ? "graphs/models" : graphs_of(c),
               *word = o->positional.count ? o->positional.at[0] : NULL;
    bool is_model = folder && word && !is_data(folder, word) && is_data("graphs/models", word);
    return is_model ? "graphs/models" : folder;
}

/* Names of what comes with Gantry become paths. */
static int find_files(options *o, const command *c)
{
    const char *folder = folder_of(o, c);
    int code = folder ? find_data(&o->positional.at[0], &o->data[0], c->name, folder) : EXIT_FINE;
    return code ? code : find_data(&o->machine, &o->data[1], c->name, "machines");
}

static int run_command(const command *c, int argc, char **argv)
{
    options o = { 0 };
    int code = EXIT_USAGE;
    if (options_parse(&o, c, argc, argv)) {
        o.words = argv;
        o.word_count = argc;
        if (o.help)
            options_print(c);
        progress_begin(c, &o);
        code = o.help ? EXIT_FINE : find_files(&o, c);
        if (!code && !o.help)
            code = c->run(&o);
        progress_clear();
    }
    options_free(&o);
    return code;
}

/* True for characters that make a terminal do something: control characters, those of UTF-8 too, and what turns the
 * direction of text round (U+2028 to U+202E, U+2066 to U+2069). */
static bool is_control(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    bool general = s[0] == 0xE2 && s[1];
    return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xC2 && s[1] >= 0x80 && s[1] < 0xA0) ||
           (general && s[1] == 0x80 && s[2] >= 0xA8 && s[2] <= 0xAE) ||
           (general && s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9);
}

/* Words are quoted in messages, and a name of a file may come from a stranger. */
static bool check_words(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        for (const char *c = argv[i]; *c; c++) {
            if (is_control(c)) {
                complain("gantry: word %d has a control character at byte %d; take it out, or rename the file\n", i,
                         (int)(c - argv[i]) + 1);
                return false;
            }
        }
    }
    return true;
}

static int dispatch(int argc, char **argv)
{
    if (!check_words(argc, argv))
        return EXIT_USAGE;
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("gantry %s\n", gantry_version());
        return EXIT_FINE;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help(argc, argv);
    const command *c = find(argv[1]);
    return c ? run_command(c, argc - 2, argv + 2) : unknown_command(argv[1]);
}

/* A file that is opened must not get the number of a standard descriptor that was closed, or what is printed would land
 * in it. From and to what takes these numbers here nothing can be read or written, so an attempt is still an error. */
static bool keep_numbers(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) != fd)
            return false;
    return true;
}

/* Also where the words after it were not understood. `valued`: "--name=value" is the option, too. */
static bool has_option(int argc, char **argv, const char *name, bool valued)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], name, length) == 0 && (!argv[i][length] || (valued && argv[i][length] == '=')))
            return true;
    return false;
}

/* As an object where all else is one; behind lines of --watch it is a line, too. */
static void print_complaint(int argc, char **argv, int code)
{
    if (!has_option(argc, argv, "--json", false) || !has_complaint())
        return;
    json_t *object = json_pack("{s:o}", "error", take_complaint(code));
    (void)(has_option(argc, argv, "--watch", true) ? print_json_line(object) : print_json(object));
}

/* glibc goes through all small blocks that were freed whenever a large one is: a quarter of the time that it takes to
 * read a schedule of 40 MB, since jansson makes a tree of it that is freed at once. Each thread keeps some of its own.
 */
static void merge_freed_blocks_at_once(void)
{
#ifdef M_MXFAST
    mallopt(M_MXFAST, 0);
#endif
}

int main(int argc, char **argv)
{
    merge_freed_blocks_at_once();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not be larger is an error of write, which has a message */
    if (!keep_numbers()) {
        complain("gantry: standard input, output or error is closed, and cannot be kept so: %s\n", strerror(errno));
        return EXIT_RUNNING;
    }
    interrupt_install();
    name_crashes();
    int code = dispatch(argc, argv);
    if (code)
        print_complaint(argc, argv, code);
    /* Printed text may still sit in a buffer, and the disk be full. */
    if ((fflush(stdout) || ferror(stdout)) && !code) {
        complain("cannot write to standard output: %s\n", strerror(errno));
        code = EXIT_RUNNING;
    }
    return code;
}
