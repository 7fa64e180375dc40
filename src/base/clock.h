/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_BASE_CLOCK_H
#define GY_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that only goes forward, from a beginning of its own. Not for planning, which must give the
 * same every time. */
int64_t gy_now_ns(void);

/* How long somebody has waited who looks again and again. Of what passes between two looks a twentieth of a second
 * counts at most: while a process is stopped, or gets no processor, what it waits for may get none either. */
typedef struct gy_waited {
    int64_t looked_ns, ns;
} gy_waited;
gy_waited gy_waited_begin(void);
int64_t gy_waited_look(gy_waited *w); /* nanoseconds so far */

#endif
