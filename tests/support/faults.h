/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running out of memory on purpose. Link with faults.c and the linker options
 * LINKER:--wrap=malloc LINKER:--wrap=calloc LINKER:--wrap=realloc.
 */
#ifndef TESTS_SUPPORT_FAULTS_H
#define TESTS_SUPPORT_FAULTS_H

#include <stdbool.h>

/* The next n allocations succeed, then one fails, then all succeed again. */
void faults_after(int n);
/* Back to normal; true if the failure has happened: a loop over n ends when it has not. */
bool faults_off(void);

#endif
