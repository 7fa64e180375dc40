/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that can be left in the middle and gone on with. One at a time, in whichever thread of the program resumes
 * it. */
#ifndef CUDA_EMULATOR_FIBER_H
#define CUDA_EMULATOR_FIBER_H

typedef struct fiber fiber;

/* Run until the function returns or leaves. Not from a fiber. */
void fiber_begin(void (*function)(void), const void *owner);
void fiber_resume(fiber *f);
/* From a fiber: back to who began or resumed it; returns when it is resumed. */
void fiber_leave(void);
fiber *fiber_current(void);
/* Forgets those of the owner that were left. */
void fiber_abandon(const void *owner);

#endif
