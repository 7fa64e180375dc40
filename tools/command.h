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
    EXIT_DEVICE = 5
} exit_code;

typedef struct string_list {
    const char **at;
    size_t count;
} string_list;

typedef struct options {
    string_list positional, params, inputs, outputs;
    const char *machine, *devices, *backend, *schedule, *replay, *policy, *objective, *max_memory, *balance, *spill,
        *explain, *weak, *islands, *link;
    const char *out, *dot, *svg, *html, *trace, *shape, *node_time, *edge_cost, *machine_out;
    int64_t iterations, effort, seed, nodes, bytes, unroll, phase, limits, in_flight, rails, lanes, spread,
        processes;                             /* processes: not an option, see ranks.c */
    double time_unit, bandwidth, seconds, nic; /* 0: not given */
    const char *calibrate;                     /* the machine file to write */
    bool json, allow_code, no_fuse, check, compare, optimal, ranks, help;
} options;

typedef struct command {
    const char *name, *arguments, *summary;
    size_t least, most;  /* positional arguments */
    const char *accepts; /* names of its options, separated by spaces */
    const char *examples;
    int (*run)(const options *o);
} command;

extern const command command_run, command_schedule, command_dot, command_check, command_compare, command_scale,
    command_machine, command_kernels, command_import, command_bench;

/* options.c. Parses argv (after the sub-command) into *o; prints what is wrong and returns false. */
bool options_parse(options *o, const command *c, int argc, char **argv);
void options_print(const command *c);
void options_free(options *o);
/* True if a file that is to be written is "-". */
bool uses_stdout(const options *o);
/* " (did you mean "x"?)", or nothing where no name is near. */
const char *near_miss(char *to, size_t size, const char *word, const char *const *names, size_t count);

/* common.c: functions that load something print what is wrong and return the exit code for it. */
int fail(const gantry_error *err);
int fail_reading(const gantry_error *err); /* a file of the command line that cannot be read is bad usage */
gantry_load_options load_options(const options *o);
void print_warnings(const gantry_graph *graph); /* on standard error */
int load_graph(gantry_graph **graph, const options *o, const char *path);
/* This computer, where the machine is none of a file. */
typedef struct known_computer {
    gantry_machine *here; /* as it was detected; NULL: the machine is from elsewhere */
    char *text;           /* what is known of it beyond that, one line; NULL: nothing */
} known_computer;
void known_free(known_computer *k);
/* --machine, else the graph's own (graph may be NULL), else this computer; then --devices. With `k`, this computer is
 * as it is known from before (gantry_machine_recall); NULL: as it is detected. */
int load_machine(gantry_machine **machine, const options *o, const gantry_graph *graph, known_computer *k);
/* --devices of this computer as it is detected, virtual devices apart. */
int select_here(gantry_machine **machine, const options *o);
gantry_schedule_options schedule_options(const options *o);
int schedule_on(gantry_schedule **schedule, const options *o, gantry_graph *graph, const gantry_machine *machine);
int make_schedule(gantry_schedule **schedule, const options *o, gantry_graph *graph, known_computer *k);
/* That --explain names a node, before anything is computed. */
int check_explain(const options *o, const gantry_graph *graph);

/* output.c */
int write_text(const char *path, const char *text, size_t length); /* "-": standard output */
int print_schedule(const gantry_schedule *schedule, gantry_format format);
/* Files that appear together: those that were added, when all could be (`code` is 0). Frees `files`; the exit code. */
int begin_files(gantry_files **files);
int end_files(gantry_files *files, int code);
int add_text(gantry_files *files, const char *path, const char *text, size_t length);
/* The schedule to draw, or the phase of it that --phase names; prints what is wrong. NULL: there is nothing to draw. */
const gantry_schedule *drawn_phase(const gantry_schedule *schedule, const options *o);
/* The other files a scheduling command was asked for: -o, --dot, --svg, --html, --trace. */
int write_files(const gantry_schedule *schedule, const options *o);
/* The text that --explain asks for; *text stays NULL if it was not given. Free it with gantry_free. */
int explain(const gantry_schedule *schedule, const gantry_graph *graph, const options *o, char **text);
int print_json(json_t *object); /* takes the reference */

/* calibrate.c: this computer with measured figures. */
int calibrate_machine(gantry_machine **machine, const options *o);
/* cluster.c: the file of a machine of many GPUs in islands. */
int write_cluster(const options *o);
/* join.c: one machine of the files behind the word "join". */
int join_machines(gantry_machine **machine, const options *o);
/* Keeps it for this user's runs and schedules, unless it goes to a file or is of some of the GPUs; says so. */
void keep_machine(const gantry_machine *machine, const options *o);

/* timing.c */
double now_us(void);
double median(double *values, size_t count); /* sorts them */
uint64_t peak_memory(void);                  /* bytes this process has used at most; 0 if unknown */

#endif
