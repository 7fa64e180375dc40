/* SPDX-License-Identifier: Apache-2.0 */
/* Inside gantry run: the parts of one session. */
#ifndef GANTRY_COMMAND_RUN_H
#define GANTRY_COMMAND_RUN_H

#include "command.h"
#include <stdio.h>

typedef struct session {
    const options *o;
    gantry_graph *graph;
    gantry_schedule *schedule;
    gantry_run *run;
    gantry_schedule *single; /* with --check: the same graph in one place, and its outputs */
    gantry_run *reference;
    char *explanation;
    double measured_us;
    bool checked; /* and found equal */
} session;

/* cmd_run.c */
int open_run(const session *s, gantry_run **run, gantry_schedule *schedule, const char *backend, bool checking);
int start_once(gantry_run *run, double *us);
/* Whether buffer i is an output; fills *info in any case. */
bool is_output(const session *s, uint32_t i, gantry_buffer_info *info);

/* run_check.c: checking mode, then its outputs against those of one device. Keeps the reference open. */
int check_run(session *s);
int compare_outputs(const session *s, gantry_run *run);

/* run_compare.c: predicted against measured, from the trace of the last start. */
int compare_times(const session *s, json_t **comparison);
void print_comparison(FILE *to, json_t *comparison);

/* run_report.c */
int report_run(const session *s);

#endif
