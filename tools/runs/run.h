/* SPDX-License-Identifier: Apache-2.0 */
/* Inside gantry run: the parts of one session. */
#ifndef GANTRY_COMMAND_RUNS_RUN_H
#define GANTRY_COMMAND_RUNS_RUN_H

#include "command.h"
#include <stdio.h>

/* This process as one of several. */
typedef struct ranks {
    gantry_network *network; /* NULL: there is one process */
    FILE *said;              /* of ranks above 0: what went to standard error, and where that goes when it is told */
    int errors;
    gantry_machine *found; /* options.found */
    string_list outputs;   /* of ranks above 0: what rank 0 writes, as it was given */
} ranks;

typedef struct trials trials;         /* train/trials.c */
typedef struct evaluation evaluation; /* train/evaluate.c */

typedef struct session {
    const options *o;
    ranks ranks;
    bool by_first; /* of several ranks rank 0 alone has what is bound, and looks at outputs of each start */
    gantry_graph *graph;
    gantry_schedule *schedule;
    known_computer known; /* of this computer, where it was scheduled for */
    gantry_run *run;
    gantry_schedule *single; /* with --check: the same graph in one place, and its outputs */
    gantry_run *reference;
    char *explanation;
    double measured_us;
    size_t starts, counted; /* how many there were, and how many measured_us is the median of */
    double throughput_us;   /* from the end of one start to that of the next, where starts overlap; 0: none did */
    double apart_us;        /* the same where they do not, the median: with what lies between them; 0: too few */
    uint64_t replaced;      /* starts that runs completed which others have taken the place of */
    size_t resumed;         /* of `starts`, those that were complete when the run began, by --resume */
    double interrupted_us;  /* when a signal was seen; 0: none was */
    size_t together;        /* starts behind those that were counted, which devices carried out without the host */
    double together_us;     /* each of them, in the mean */
    bool checked;           /* and found equal */
    uint64_t *fed;          /* per --input: arrays that starts read in turn; 0: it is bound for all starts */
    trials *trials;         /* of gantry train --trials; NULL: none */
    evaluation *evaluation; /* of gantry train --evaluate; NULL: none */
    bool diverged;          /* gantry train: a loss was no number */
    json_t *rebalanced;     /* --balance guided: what was looked at between starts; NULL: nothing */
} session;

/* cmd_run.c */
int open_run(session *s, gantry_run **run, gantry_schedule *schedule, const char *backend, bool checking);
/* Is the session asked for anything that needs times of ops? */
bool records_times(const session *s);
int start_once(gantry_run *run, double *us);
/* The same for start i of the session, compared where --check asks for it. */
int start_alone(session *s, size_t i, double *us);
/* True if buffer i is an output; fills *info in any case. */
bool is_output(const session *s, uint32_t i, gantry_buffer_info *info);
/* True if buffer i can be written to a file: an output or a state. */
bool is_written(const session *s, uint32_t i, gantry_buffer_info *info);

/* feed/feed.c: --feed is known; inputs bound or fed; there is an array for each start; what is told of it. */
int check_feed(const options *o);
int bind_inputs(session *s, gantry_run *run);
int check_fed(const session *s);
/* feed/once.c: is any --input a pipe, whose array is gone once it was read? That nothing else wants to read it: `why`
 * says what does. */
bool reads_once(const session *s);
int check_read_once(const char *option, const char *text, const char *path, const char *why);
int check_pipes(const session *s);
void print_fed(FILE *to, const session *s, const gantry_run_info *info);
void add_fed_json(json_t *report, const session *s, const gantry_run_info *info);
/* feed/watch.c: that --watch names small outputs; the line of a start that was waited for, where there is to be one. */
int check_watched(const session *s);
int watch(const session *s, size_t number);

/* binding.c: the buffer and the file of "BUFFER=FILE"; prints what is wrong, as the value of --`option`. */
int find_binding(const session *s, const char *option, const char *text, gantry_buffer *buffer, const char **path);
/* Prints that the graph has no buffer of the name that ends at `sign`; the exit code. */
int no_buffer(const session *s, const char *option, const char *text, const char *sign);
/* Output `i` of the command line is no buffer, and goes to no file, that one before it has. */
int check_outputs_differ(const session *s, size_t i);

/* ranks/ranks.c: options become those of this process; `code` of the session is told, and is that of all processes
 * where it is not 0. */
int join_ranks(ranks *r, options *o);
/* The machine of all processes, where the options name none: options.found. With `link`, the network is that. */
int find_machine(ranks *r, options *o, const char *link);
/* All have come here: when all have carried out their part, rank 0 writes and prints, and leave_ranks waits for that.
 */
int meet_ranks(const ranks *r);
int leave_ranks(ranks *r, int code);
/* ranks/inputs.c: of the run options; 0: files of --input cannot be compared. */
uint64_t inputs_key(const session *s);
/* ranks/checkpoint.c: --checkpoint and --resume, before anything runs; as options of a run; once it is open; and a note
 * where none will be written. */
int check_checkpoint(const options *o);
void take_checkpoint(const options *o, gantry_run_options *ro);
/* Behind the last step of a training, which may be asked for more steps later. */
int keep_last(session *s);
int resume_run(session *s);
void tell_unkept(const session *s);
/* outputs.c: what became of the outputs. The file of one that is to be written there, NULL: none. */
const char *output_file(const session *s, uint32_t output);
/* Before anything runs: that outputs can be what the ends of their files' names say, and what --show names be drawn. */
int check_output_format(const gantry_buffer_info *info, const char *path);
int check_shown(const session *s);
int save_output(const session *s, gantry_buffer buffer, gantry_files *files, const char *path);
int save_shown(const session *s, gantry_files *files);
json_t *outputs_json(const session *s);
void print_outputs(FILE *to, const session *s);
int print_shown(FILE *to, const session *s);

/* check.c: checking mode, then its outputs against those of one device. Keeps the reference open. */
int check_run(session *s);
int compare_outputs(const session *s, gantry_run *run);

/* compare.c: predicted against measured, from the trace of the last start. */
int compare_times(const session *s, json_t **comparison);
void print_comparison(FILE *to, json_t *comparison);

/* profile/report.c: --profile, where the time of the last start went. */
int profile_json(const session *s, json_t **json);
void print_profile(FILE *to, json_t *times);

/* calibrate.c: whether the run can measure; keeps the times of the last start, where --calibrate asks for it;
 * writes the machine. */
int check_calibrate(const options *o);
int sample_start(const session *s);
int write_calibrated(session *s, gantry_files *files);
void print_calibrated(FILE *to, const session *s);

/* learn.c: once all is done and told, keeps what kernels took whose times were not known on this computer. */
void learn(session *s);

/* guided.c: so many starts, parts being cut anew in between by what was measured. */
int run_guided(session *s, size_t count);
void print_rebalanced(FILE *to, const session *s);

/* progress.c: the options of a run that is looked at, and can be interrupted; says how far it came then, writes the
 * outputs that are complete, and returns the exit code. */
gantry_run_options run_options(session *s);
uint64_t starts_completed(const session *s);
int end_interrupted(const session *s);
/* view/page.c: --html, from the trace of the last start. */
int write_page(const session *s, gantry_files *files);
/* train/cmd_train.c: writes the graph that is trained, where --write-graph asks for it; prints the loss of the step
 * that was waited for. */
int write_trained(const session *s);
int look_at_loss(session *s, size_t step);
int read_loss(const session *s, gantry_buffer buffer, double *loss);
/* train/trials.c: the session's graph is that of all trials, and its options name buffers of that; losses of a step
 * that was waited for, on one line (`to` may be NULL); what became of them. */
int load_trials(session *s);
void free_trials(trials *t);
int look_at_trials(session *s, size_t step, FILE *to);
void print_trials(FILE *to, const session *s);
void add_trials_json(json_t *report, const session *s);
size_t trial_count(const trials *t);
const char *trial_param(const trials *t, size_t i); /* "lr=0.1" */
/* The one that --input number `input` of the session's options is for; trial_count(t): for all. */
size_t trial_of_input(const trials *t, size_t input);
/* The model with a value of a param, as options and --strategy have it; for as many devices as a trial has. */
int load_with(gantry_graph **graph, const options *o, const char *param);
json_t *number_json(double x); /* a text, where JSON has no number */
/* train/evaluate.c: what is wrong with the options; the model, once the run is open; its loss behind a step, where one
 * is due; steps from `done` on until the next is due, `most` at most. */
int check_evaluated(const options *o);
int open_evaluation(session *s);
int evaluate(session *s, size_t step);
size_t until_evaluation(const session *s, size_t done, size_t most);
void free_evaluation(evaluation *all);
void add_evaluations_json(json_t *report, const session *s);

/* report.c */
int report_run(const session *s);

#endif
