/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that can be left in the middle and gone on with. All of one thread of the program. */
#ifndef CUDA_EMULATOR_FIBER_H
#define CUDA_EMULATOR_FIBER_H

typedef struct fiber fiber;

/* Run until the function returns or leaves. Not from a fiber. */
void fiber_begin(void (*function)(void));
void fiber_resume(fiber *f);
/* From a fiber: back to who began or resumed it; returns when it is resumed. */
void fiber_leave(void);
fiber *fiber_current(void);
/* Forgets those that were left. */
void fiber_abandon(void);

#endif
