/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running out of memory or threads on purpose. gantry_internal takes its heap and its threads from faults.c; what the
 * test itself allocates is not counted.
 */
#ifndef TESTS_SUPPORT_FAULTS_H
#define TESTS_SUPPORT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

/* The next n allocations succeed, then one fails, then all succeed again. */
void faults_after(int n);
/* The next n allocations succeed, then all fail: a machine without memory does not recover for a second try. */
void faults_from(int n);
/* Back to normal; true if an allocation has failed: a loop over n ends when none has. */
bool faults_off(void);
/* The allocation to fail after the n-th: the next for the first hundred, then ever fewer, since passes that are run
 * again and again allocate alike. Tests with different `turn` choose others. */
int faults_next(int n, int turn);
/* Pieces of memory that the library has allocated and not freed. */
long faults_alive(void);

/* The library's heap, for other libraries to allocate from. */
void *faults_malloc(size_t bytes);
void faults_free(void *memory);

/* Called before the library makes a thread; what it returns, if not 0, is the error of pthread_create. NULL: none. */
void faults_before_thread(int (*before)(void));

#endif
