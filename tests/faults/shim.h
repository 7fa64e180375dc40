/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Calls that fail on purpose in a whole program: the shim's functions stand before those of libc, so that Gantry's
 * libraries, jansson and hwloc call them. What the program itself calls never fails. Calls of CUDA's libraries go
 * through stubs that are given to the CUDA module in place of the functions that it asks dlsym for; the libraries may
 * be fakes or real ones.
 */
#ifndef TESTS_FAULTS_SHIM_H
#define TESTS_FAULTS_SHIM_H

#include <stdbool.h>
#include <stddef.h>

#define SHIM_CLASSES(X) X(MEMORY, "memory") X(FILE, "file") X(THREAD, "thread") X(MAP, "map") X(DEVICE, "device")
typedef enum shim_class {
#define SHIM_X(name, word) SHIM_##name,
    SHIM_CLASSES(SHIM_X)
#undef SHIM_X
        SHIM_COUNT
} shim_class;

typedef enum shim_way {
    SHIM_ERROR, /* the call returns an error and does nothing */
    SHIM_EINTR, /* files: it was interrupted, if such a call can be */
    SHIM_SHORT  /* files: it reads or writes a single byte */
} shim_way;

enum { SHIM_NOTE = 200 };
typedef struct shim_plan {
    shim_class of;
    shim_way way;
    long at;      /* the call that fails, from 1; 0: none, they are only counted */
    bool lasting; /* and all calls of the class after it */
    int code;     /* of calls of the driver; 0: by function */
    char *note; /* NULL, or SHIM_NOTE bytes for the call that failed first and who called it: also seen after a crash */
} shim_plan;

/* Counts the calls of a class from now on, and has them fail as planned. */
void shim_begin(const shim_plan *plan);
/* No call fails any more; returns how many there were. */
long shim_end(void);

/* Pieces of memory, and mappings, that Gantry's libraries hold; `text` (or NULL) gets who asked for those that were
 * made since a moment of shim_moment. */
long shim_alive(long since, char *text, size_t size);
long shim_moment(void);

/* ---- between the parts of the shim ---- */

/* True if this call is to fail. `caller` is the address that it returns to. */
bool shim_fails(shim_class of, shim_way way, const char *function, const void *caller);
/* True if an address lies in a library whose calls count for a class. */
bool shim_counts(shim_class of, const void *address);
bool shim_in(const void *address, const char *name);
int shim_code(void);
void shim_made(const void *memory, const void *caller);
void shim_gone(const void *memory);
/* The function of the library that comes after this program. */
void (*shim_next(const char *name))(void);

/* A function of libc that stands before the one of the same name, and calls it unless it is to fail. */
#define SHIM_FUNCTION(result, name, fails, bad, parameters, arguments)                                                 \
    result name parameters                                                                                             \
    {                                                                                                                  \
        static __typeof__(name) *real;                                                                                 \
        if (fails)                                                                                                     \
            return bad;                                                                                                \
        if (!real)                                                                                                     \
            real = (__typeof__(name) *)shim_next(#name);                                                               \
        return real arguments;                                                                                         \
    }

#endif
