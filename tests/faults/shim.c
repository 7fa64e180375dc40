/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls fail, and what is alive. No function here allocates: the heap calls them. */
#include "shim.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ALIVE = 1 << 18, KNOWN = 64, TEXT = 100 };

static struct {
    shim_plan plan;
    atomic_bool armed;
    atomic_long calls;
} state;

/* ---- callers ---- */

/* The file that an address lies in, "" for the program. */
static const char *file_of(const void *address, uintptr_t *begin)
{
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)address, &found) != 0 || !found.dlfo_link_map)
        return "";
    *begin = (uintptr_t)found.dlfo_link_map->l_addr;
    return found.dlfo_link_map->l_name;
}

bool shim_in(const void *address, const char *name)
{
    uintptr_t begin;
    return strstr(file_of(address, &begin), name) != NULL;
}

/* libc calls the heap for Gantry: for opendir and fopen. hwloc is left alone: it reads hundreds of files that need not
 * be there, and does not live without memory (docs/reliability.md). */
static unsigned classes_of(const char *file)
{
    static const char *const names[] = { "/libgantry.so",   "/gantry-cuda.so", "/gantry-blas.so",
                                         "/gantry-fftw.so", "/libjansson.so",  "/libc.so" };
    const unsigned all = (1U << SHIM_COUNT) - 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(file, names[i]))
            return i < 4 ? all : 1U << SHIM_MEMORY;
    return 0;
}

/* Looked up by the names of libraries, which stay where they are while these are loaded. */
bool shim_counts(shim_class of, const void *address)
{
    static _Thread_local struct {
        const char *file;
        unsigned classes;
    } known[KNOWN];
    uintptr_t begin;
    const char *file = file_of(address, &begin);
    if (!*file)
        return false;
    size_t i = (uintptr_t)file / 16 % KNOWN;
    if (known[i].file != file) {
        known[i].file = file;
        known[i].classes = classes_of(file);
    }
    return known[i].classes >> of & 1;
}

static void describe(const void *caller, char *text, size_t size)
{
    uintptr_t begin = 0;
    const char *file = file_of(caller, &begin), *slash = strrchr(file, '/');
    snprintf(text, size, "%s+0x%lx", slash ? slash + 1 : file, (unsigned long)((uintptr_t)caller - begin));
}

void (*shim_next(const char *name))(void)
{
    void *found = dlsym(RTLD_NEXT, name);
    void (*function)(void);
    if (!found) {
        fprintf(stderr, "the shim finds no %s\n", name);
        abort();
    }
    memcpy(&function, &found, sizeof function);
    return function;
}

/* ---- plans ---- */

void shim_begin(const shim_plan *plan)
{
    state.plan = *plan;
    if (plan->note)
        plan->note[0] = '\0';
    state.calls = 0;
    state.armed = true;
}

long shim_end(void)
{
    state.armed = false;
    return state.calls;
}

bool shim_fails(shim_class of, shim_way way, const char *function, const void *caller)
{
    if (!state.armed || state.plan.of != of || state.plan.way != way || !shim_counts(of, caller))
        return false;
    long call = atomic_fetch_add(&state.calls, 1) + 1, at = state.plan.at;
    if (!at || call < at || (call > at && !state.plan.lasting))
        return false;
    if (call == at && state.plan.note) {
        char where[TEXT];
        describe(caller, where, sizeof where);
        snprintf(state.plan.note, SHIM_NOTE, "%.60s from %s", function, where);
    }
    return true;
}

int shim_code(void)
{
    return state.plan.code;
}

/* ---- what is alive ---- */

static struct {
    pthread_mutex_t lock;
    long moment, count;
    struct {
        const void *memory, *caller;
        long made;
    } at[MOST_ALIVE];
} alive = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Neighbours in memory are neighbours here, so that a new process touches few pages. */
static size_t home_of(const void *memory)
{
    return ((uintptr_t)memory >> 4) % MOST_ALIVE;
}

void shim_made(const void *memory, const void *caller)
{
    if (!memory || !shim_counts(SHIM_MEMORY, caller))
        return;
    pthread_mutex_lock(&alive.lock);
    size_t i = home_of(memory);
    while (alive.at[i].memory)
        i = (i + 1) % MOST_ALIVE;
    alive.at[i].memory = memory;
    alive.at[i].caller = caller;
    alive.at[i].made = ++alive.moment;
    if (++alive.count > MOST_ALIVE / 2)
        abort();
    pthread_mutex_unlock(&alive.lock);
}

/* Those that were pushed aside move up, so that searches end at the first gap. */
static void close_gap(size_t gap)
{
    for (size_t i = (gap + 1) % MOST_ALIVE; alive.at[i].memory; i = (i + 1) % MOST_ALIVE) {
        size_t home = home_of(alive.at[i].memory);
        if ((i - home) % MOST_ALIVE >= (i - gap) % MOST_ALIVE) {
            alive.at[gap] = alive.at[i];
            gap = i;
        }
    }
    alive.at[gap].memory = NULL;
}

void shim_gone(const void *memory)
{
    if (!memory)
        return;
    pthread_mutex_lock(&alive.lock);
    size_t i = home_of(memory);
    while (alive.at[i].memory && alive.at[i].memory != memory)
        i = (i + 1) % MOST_ALIVE;
    if (alive.at[i].memory) {
        close_gap(i);
        alive.count--;
    }
    pthread_mutex_unlock(&alive.lock);
}

long shim_moment(void)
{
    return alive.moment;
}

long shim_alive(long since, char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; text && i < MOST_ALIVE; i++) {
        char where[TEXT];
        if (!alive.at[i].memory || alive.at[i].made <= since)
            continue;
        describe(alive.at[i].caller, where, sizeof where);
        int more = snprintf(text + length, size - length, " %s", where);
        if (more < 0 || (size_t)more >= size - length)
            break;
        length += (size_t)more;
    }
    return alive.count;
}
