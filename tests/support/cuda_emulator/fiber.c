/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#define SWITCH_STARTS(keep, bottom, size) __sanitizer_start_switch_fiber(keep, bottom, size)
#define SWITCH_ENDS(kept, bottom, size)   __sanitizer_finish_switch_fiber(kept, bottom, size)
#else
#define SWITCH_STARTS(keep, bottom, size) (void)(keep), (void)(bottom), (void)(size)
#define SWITCH_ENDS(kept, bottom, size)   (void)(kept), (void)(bottom), (void)(size)
#endif

enum { STACK = 256 * 1024, GUARD = 64 * 1024, USED = 12 * 1024 };

/* A context brings to a new stack; from then on jumps go to and fro, which ask nothing of the kernel. */
struct fiber {
    ucontext_t context;
    jmp_buf at;
    bool begun;
    char *stack;
    void *shadow; /* AddressSanitizer's */
    void (*function)(void);
    const void *owner;
    bool busy;
    struct fiber *next, *next_idle;
};

static fiber *all, *idle, *current;
static jmp_buf home;
static void *home_shadow;
static const void *home_stack;
static size_t home_size;

static void give_back(fiber *f)
{
    f->busy = false;
    f->next_idle = idle;
    idle = f;
}

/* One fiber for many functions: it is not begun again. */
static void main_of_fiber(void)
{
    SWITCH_ENDS(NULL, &home_stack, &home_size);
    while (true) {
        current->function();
        give_back(current);
        fiber_leave();
    }
}

static void prepare(fiber *f)
{
    f->begun = false;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = NULL;
    makecontext(&f->context, main_of_fiber, 0);
}

static fiber *make(void)
{
    fiber *f = calloc(1, sizeof *f);
    char *map = mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!f || map == MAP_FAILED || mprotect(map, GUARD, PROT_NONE)) {
        fprintf(stderr, "cuda_emulator: no memory for the stack of a thread\n");
        abort();
    }
    f->stack = map + GUARD;
    memset(f->stack + STACK - USED, 0,
           USED); /* as deep as most go, so that memory does not seem to leak while some do */
    f->next = all;
    all = f;
    prepare(f);
    give_back(f);
    return f;
}

void fiber_resume(fiber *f)
{
    current = f;
    SWITCH_STARTS(&home_shadow, f->stack, STACK);
    if (_setjmp(home) == 0) {
        if (f->begun)
            _longjmp(f->at, 1);
        f->begun = true;
        setcontext(&f->context);
    }
    SWITCH_ENDS(home_shadow, NULL, NULL);
    current = NULL;
}

void fiber_leave(void)
{
    fiber *self = current;
    SWITCH_STARTS(&self->shadow, home_stack, home_size);
    if (_setjmp(self->at) == 0)
        _longjmp(home, 1);
    self = current;
    SWITCH_ENDS(self->shadow, &home_stack, &home_size);
}

void fiber_begin(void (*function)(void), const void *owner)
{
    fiber *f = idle ? idle : make();
    idle = f->next_idle;
    f->busy = true;
    f->function = function;
    f->owner = owner;
    fiber_resume(f);
}

fiber *fiber_current(void)
{
    return current;
}

void fiber_abandon(const void *owner)
{
    for (fiber *f = all; f; f = f->next) {
        if (f->busy && f->owner == owner) {
            prepare(f);
            give_back(f);
        }
    }
}
