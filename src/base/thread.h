/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that the library starts in the program that uses it. */
#ifndef GY_BASE_THREAD_H
#define GY_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* As pthread_create: 0, or an error number. The thread blocks the program's signals, so that the program's own threads
 * get them, but not the signals of its own faults. */
int gy_thread_create(pthread_t *thread, void *(*function)(void *data), void *data);

/* Processors that the thread may run on; at least 1. */
uint32_t gy_thread_processors(void);
/* Those of them that are of the NUMA node; all of them where that is not known, -1, or none of its are among them. */
uint32_t gy_thread_processors_of(int node);

#endif
