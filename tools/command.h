/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the sub-commands share: options, exit codes, loading, writing. */
#ifndef GANTRY_COMMAND_H
#define GANTRY_COMMAND_H

#include <gantry/gantry.h>
#include <jansson.h>
#include <stdbool.h>

typedef enum exit_code {
    EXIT_FINE = 0,
    EXIT_RUNNING = 1,
    EXIT_USAGE = 2,
    EXIT_BAD_INPUT = 3,
    EXIT_CAPACITY = 4,
    EXIT_DEVICE = 5,
    EXIT_LOST = 6 /* interrupted: see interrupt_code */
} exit_code;

typedef struct string_list {
    const char **at;
    size_t count;
} string_list;

typedef struct options {
    string_list positional, params, inputs, outputs, shows, watched, evaluate_inputs, moves, routes, resources,
        measured;
    const char *machine, *devices, *backend, *schedule, *replay, *policy, *objective, *max_memory, *balance, *spill,
        *explain, *weak, *islands, *link, *rank_list, *node, *cluster, *root;
    const char *out, *dot, *svg, *html, *trace, *shape, *node_time, *edge_cost, *machine_out;
    const char *feed, *trials;
    int64_t steps;    /* of gantry train; 0: nothing is run */
    int64_t evaluate; /* every so many of them; 0: never */
    int64_t port;     /* of gantry serve */
    int64_t every;
    int64_t iterations, effort, seed, nodes, bytes, unroll, phase, limits, in_flight, rails, lanes, series, max_nodes,
        spread, processes;                              /* processes: not an option, see ranks/ranks.c */
    double time_unit, bandwidth, seconds, nic, timeout; /* 0: not given */
    int64_t threads;                                    /* 0: not given */
    const char *calibrate;                              /* the machine file to write */
    const char *write_graph, *strategy, *checkpoint, *resume, *on_loss, *mpirun;
    int64_t ranks_wanted;
    char *const *words; /* behind the name of the command, as they were given */
    int word_count;
    bool json, allow_code, no_fuse, check, compare, profile, optimal, ranks, quiet, verbose, help;
    const gantry_machine
        *found;    /* of all processes together, in place of this computer; NULL: nothing was looked for */
    char *data[2]; /* paths that names of a graph and a machine stand for */
    bool train;    /* the graph gets its backward pass and its optimiser */
    bool as_used;  /* the graph is the model as it is evaluated (gantry_load_options.evaluate) */
} options;

typedef struct command {
    const char *name, *arguments, *summary;
    size_t least, most;  /* positional arguments */
    const char *accepts; /* names of its options, separated by spaces */
    const char *examples;
    int (*run)(const options *o);
} command;

extern const command command_run, command_train, command_schedule, command_dot, command_check, command_compare,
    command_scale, command_machine, command_kernels, command_import, command_bench, command_fmt, command_doctor,
    command_diff, command_what_if, command_serve;

/* parse.c. Parses argv (after the sub-command) into *o; prints what is wrong and returns false. */
bool options_parse(options *o, const command *c, int argc, char **argv);
/* The folder of data whose graphs its first word may name; NULL: that is no graph. */
const char *graphs_of(const command *c);
void options_print(const command *c); /* help.c */
void options_free(options *o);
/* True if a file that is to be written is "-". */
bool uses_stdout(const options *o);
int dashes(const char *const *paths, size_t count); /* how many of them are "-"; those that are NULL are not */
/* " (did you mean "x"?)", or nothing where no name is near. */
const char *near_miss(char *to, size_t size, const char *word, const char *const *names, size_t count);

/* complaint.c: what is wrong, in a line on standard error. It is kept until it is taken, for --json. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void pass_on(const char *text); /* what another program said, as it is */
void complain_of(const gantry_error *err);
void name_file(gantry_error *err, const char *path); /* that it is about, where it names none */
int fail_nomem(void);                                /* complains of it; the exit code */
bool has_complaint(void);
json_t *take_complaint(int code); /* as an object; NULL: out of memory */

/* text.c: the whole file, with a 0 behind it, or standard input for "-"; NULL if it cannot be opened or read whole, or
 * memory is short. Free it. */
char *read_all(const char *path, size_t *length);
bool is_regular(const char *path);

/* data.c: graphs and machines that come with Gantry; kind is "graphs" or "machines". A word that is no path and no file
 * becomes the path of one of them, which *owned holds; complains where there is none. */
int find_data(const char **word, char **owned, const char *who, const char *kind);
void list_data(const char *kind, string_list *names); /* free with free_data */
void free_data(string_list *names);
bool is_data(const char *kind, const char *word); /* one of them */

/* common.c: functions that load something print what is wrong and return the exit code for it. */
int fail(const gantry_error *err);
int fail_reading(const gantry_error *err); /* a file of the command line that cannot be read is bad usage */
gantry_load_options load_options(const options *o);
void print_warnings(const gantry_graph *graph); /* on standard error */
int load_graph(gantry_graph **graph, const options *o, const char *path);
/* Do the files that buffers begin with fit them, where they are there? For commands that start nothing. */
int check_inits(const gantry_graph *graph, const options *o);
/* How many devices the machine has that the command is for; that of --schedule is the schedule's. `graph` as in
 * load_machine. */
int count_devices(int32_t *count, const options *o, const gantry_graph *graph);
/* This computer, where the machine is none of a file. */
typedef struct known_computer {
    gantry_machine *here; /* as it was detected; NULL: the machine is from elsewhere */
    char *text;           /* what is known of it beyond that, one line; NULL: nothing */
} known_computer;
void known_free(known_computer *k);
/* --machine, else the graph's own (graph may be NULL), else this computer; then --devices. With `k`, this computer is
 * as it is known from before (gantry_machine_recall); NULL: as it is detected. */
int load_machine(gantry_machine **machine, const options *o, const gantry_graph *graph, known_computer *k);
/* True if --devices is a number of virtual devices of the CPU. */
bool counts_virtual(const options *o);
/* --devices of this computer as it is detected, virtual devices apart. */
int select_here(gantry_machine **machine, const options *o);
gantry_schedule_options schedule_options(const options *o);
int schedule_on(gantry_schedule **schedule, const options *o, gantry_graph *graph, const gantry_machine *machine);
/* The same without a complaint. */
gantry_status try_schedule_on(gantry_schedule **schedule, const options *o, gantry_graph *graph,
                              const gantry_machine *machine, gantry_error *err);
int read_schedule(gantry_schedule **schedule, const char *path);                         /* from a file */
int read_schedule_of(gantry_schedule **schedule, const char *path, gantry_graph *graph); /* that it was made for */
int make_schedule(gantry_schedule **schedule, const options *o, gantry_graph *graph, known_computer *k);
/* cmd_schedule.c: the schedule as text or JSON; `explanation` (NULL: none) with it, or in its place. */
int tell_schedule(const gantry_schedule *schedule, const options *o, const char *explanation);
/* Says after `where` that there is no such node, and which there are: EXIT_USAGE. */
int fail_no_node(const char *where, const gantry_graph *graph, const char *id);
/* That --explain names a node, before anything is computed. */
int check_explain(const options *o, const gantry_graph *graph);

/* output.c */
int write_text(const char *path, const char *text, size_t length); /* "-": standard output */
int print_schedule(const gantry_schedule *schedule, gantry_format format);
int load_report(json_t **report, const gantry_schedule *schedule); /* GANTRY_REPORT as an object, yours */
/* On standard error, where --balance has nothing to cut. */
int tell_idle_balance(const gantry_schedule *schedule, const options *o);
/* Files that appear together: those that were added, when all could be (`code` is 0). Frees `files`; the exit code. */
int begin_files(gantry_files **files);
int end_files(gantry_files *files, int code);
int add_text(gantry_files *files, const char *path, const char *text, size_t length);
/* --phase is given with a picture. */
int check_phase(const options *o);
/* The schedule to draw, or the phase of it that --phase names, or the only one; prints what is wrong. NULL: there is
 * nothing to draw. */
const gantry_schedule *drawn_phase(const gantry_schedule *schedule, const options *o);
/* The other files a scheduling command was asked for: -o, --dot, --svg, --html, --trace. */
int write_files(const gantry_schedule *schedule, const options *o);
/* The text that --explain asks for; *text stays NULL if it was not given. Free it with gantry_free. */
int explain(const gantry_schedule *schedule, const gantry_graph *graph, const options *o, char **text);
int print_json(json_t *object);      /* takes the reference */
int print_json_line(json_t *object); /* the same on one line, with numbers that read back to the same */

/* calibrate.c: this computer with measured figures. */
int calibrate_machine(gantry_machine **machine, const options *o);
/* cluster.c: the file of a machine of many GPUs in islands. */
int write_cluster(const options *o);
/* join.c: one machine of the files behind the word "join". */
int join_machines(gantry_machine **machine, const options *o);
/* --link of the command called `word`; says what is wrong with it. The exit code. */
int read_link(gantry_join_options *to, const char *text, const char *word);
/* Keeps it for this user's runs and schedules, unless it goes to a file or is of some of the GPUs; says so. */
void keep_machine(const gantry_machine *machine, const options *o);

/* That each file which the command writes can be written, before anything takes long: its folder is there, and so on.
 */
int check_writable(const char *option, const char *path);
int check_files(const options *o);

/* progress.c: signals that ask the command to end. */
void interrupt_install(void);
void name_crashes(void); /* crash.c */
/* The text, a constant, of what is going on, for the message; NULL: as before. `shown`: the terminal has a line to be
 * erased.
 */
void interrupt_stage(const char *what, bool shown);
/* From now on a first signal is only noted (`only`), or ends the command at once. */
void interrupt_note(bool only);
int interrupt_code(void); /* the exit code after a signal that was noted: 130 or 143; 0: there was none */

/* Columns of the terminal that is written to: as the user says (COLUMNS), else as it says itself; 80 of other files. */
int terminal_columns(FILE *to);

/* The line of progress. */
void progress_begin(const command *c, const options *o);
bool progress_shown(void);                                                        /* there is a terminal to draw on */
void progress_stage(const char *what);                                            /* a constant text: what begins now */
void progress_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* a line of --verbose */
void progress_draw(const char *format, ...) __attribute__((format(printf, 1, 2))); /* behind the stage; seldom enough */
bool progress_is_due(void);    /* progress_draw would draw: it is long enough since it did */
double progress_seconds(void); /* since the stage began */
void progress_clear(void);     /* before anything else is printed */
/* units.c: "850 ns", "12.345 us", "512 B", "1.5 GiB", as in reports of schedules. Both return `to`. */
enum { UNIT_TEXT = 32 };
char *time_text(char to[UNIT_TEXT], double us);
char *bytes_text(char to[UNIT_TEXT], double bytes);

/* timing.c */
double now_us(void);
double median(double *values, size_t count); /* sorts them */
uint64_t peak_memory(void);                  /* bytes this process has used at most; 0 if unknown */

#endif
