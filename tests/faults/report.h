/* SPDX-License-Identifier: Apache-2.0 */
/* A process with a fault tells this about itself; and whether that is right. */
#ifndef TESTS_FAULTS_REPORT_H
#define TESTS_FAULTS_REPORT_H

#include "scenarios.h"
#include "shim.h"

#include <sys/types.h>

enum { REPORT_TEXT = 1000, REPORT_FILES = 16, REPORT_NAME = 40 };

typedef struct report_file {
    char name[REPORT_NAME];
    uint64_t hash;
} report_file;

/* In memory that is shared with the process that started this one. Pairs: with the fault, and after it. */
typedef struct report {
    long at, calls;
    int attempts; /* that were begun */
    int done;
    gantry_status status[2];
    int native;
    uint64_t digest[2];
    char text[2][600];
    char failed[SHIM_NOTE];
    report_file file[2][REPORT_FILES]; /* in the folder of outputs */
    char strange[2][REPORT_TEXT / 4];  /* files beside those */
    long alive, descriptors, tasks;    /* that are left */
    char leaks[REPORT_TEXT / 2];
    /* By the process that started it. */
    int signal, exit, hung;
} report;

/* Carries the scenario out twice, in a folder of its own within `folder`. */
void report_fill(report *r, const scenario *s, const shim_plan *plan, const report *reference, const char *folder,
                 const char *tree);
bool report_is_right(const report *r, const report *reference, const shim_plan *plan, char *why, size_t size);
/* Removes what a process has left in `folder`, and a folder. */
void report_clear(pid_t process, const char *folder);
void report_remove(const char *folder);

#endif
