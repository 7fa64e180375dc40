/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Catching what a function does to memory that it was not given. Signal handlers belong to the process: the table below
 * is the one place of the library that has to keep something outside of its objects. The handler is there only while a
 * checking run is, and acts only in a thread that is inside gy_fault_guard.
 */
#include "backends/host/check.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

static const int signals[] = { SIGSEGV, SIGBUS };
enum { SIGNALS = sizeof signals / sizeof *signals };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct sigaction before[SIGNALS];

typedef struct guard {
    sigjmp_buf back;
    const void *volatile address;
} guard;

static _Thread_local guard *volatile current;

/* Not ours: as if we were not there. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    const struct sigaction *old = &before[number == SIGSEGV ? 0 : 1];
    if (old->sa_flags & SA_SIGINFO)
        old->sa_sigaction(number, info, context);
    else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
        old->sa_handler(number);
    else
        signal(number, SIG_DFL); /* the instruction runs again, and ends the process */
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    guard *g = current;
    if (!g) {
        pass_on(number, info, context);
        return;
    }
    g->address = info->si_addr;
    current = NULL;
    siglongjmp(g->back, 1);
}

bool gy_fault_install(void)
{
    pthread_mutex_lock(&lock);
    bool fine = true;
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigemptyset(&action.sa_mask);
    for (int i = 0; users == 0 && i < SIGNALS; i++)
        fine = fine && sigaction(signals[i], &action, &before[i]) == 0;
    users += fine;
    pthread_mutex_unlock(&lock);
    return fine;
}

void gy_fault_remove(void)
{
    pthread_mutex_lock(&lock);
    users--;
    for (int i = 0; users == 0 && i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
    pthread_mutex_unlock(&lock);
}

bool gy_fault_guard(void (*function)(void *context), void *context, const void **address)
{
    guard g = { .address = NULL };
    if (sigsetjmp(g.back, 1)) {
        *address = g.address;
        return false;
    }
    current = &g;
    function(context);
    current = NULL;
    return true;
}
