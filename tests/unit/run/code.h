/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of users' C code: a folder with sources and a cache of its own, and a graph whose one kernel is in a
 * file of that folder. Every call ends the test on failure. */
#ifndef TESTS_UNIT_RUN_CODE_H
#define TESTS_UNIT_RUN_CODE_H

#include "build.h"

extern char folder[64], cache[80]; /* of the test that runs (each has a process of its own); cache is $XDG_CACHE_HOME */

void make_folder(void); /* $CC is unset, too */
void remove_folder(void);
void write_file(const char *name, const char *text);
int cached(void); /* files that are kept */

/* The kernel triple: y = FACTOR * x, FACTOR being in factor.h. */
extern const char triple_c[];
/* The schedule of a graph whose kernel is in `file`. */
gantry_schedule *schedule_of(const char *file);
gantry_status try_new(gantry_run **run, gantry_schedule *s, gantry_error *err);
/* The run of that file, made now, multiplies by `factor`. */
void expect_factor(const char *file, float factor);
void expect_product(gantry_run *run, float factor);
/* "%s" in `begin` is the folder. */
void expect_refused(const char *file, gantry_status status, const char *begin, const char *within);

#endif
