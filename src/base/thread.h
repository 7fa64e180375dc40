/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library in somebody's program. */
#ifndef GY_BASE_THREAD_H
#define GY_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create: 0, or an error number. The thread takes none of the program's signals, which are the business of
 * the program's threads; its own faults it does. */
int gy_thread_create(pthread_t *thread, void *(*function)(void *data), void *data);

#endif
