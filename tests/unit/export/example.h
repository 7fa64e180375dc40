/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules that the tests of export draw. */
#ifndef TESTS_EXPORT_EXAMPLE_H
#define TESTS_EXPORT_EXAMPLE_H

#include "support/hand.h"

/*
 * Two devices, `batches` batches each: upload (copy lane 0), blur and train (compute lane), fetch (copy lane 1); then
 * an all-reduce of both, an update each, a copy between the devices and an evaluation. Simulated. Names begin with
 * `prefix`. 8 * batches + 5 ops.
 */
gantry_schedule *example_new(int batches, const char *prefix);

/* Names that break careless writers: quotes, angle brackets, entities, escapes, line breaks, broken UTF-8, long. */
extern const char *const example_hostile[];
extern const int example_hostile_count;

/* The export as a string; fails the test if there is none. Free with gantry_free. */
char *example_export(const gantry_schedule *s, gantry_format format, size_t *length);
/* A trace as of gantry_run_trace: op i from i us on, for half of one. Free with gantry_free. */
char *example_trace(size_t ops);
/* Writes a file in the temporary folder; the path is in `path`. */
void example_save(char *path, size_t size, const char *name, const char *text);

#endif
