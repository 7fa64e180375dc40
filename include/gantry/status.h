/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/status.h
 * @brief Status codes and the error record.
 *
 * Rules that hold for every function of the library, so they are not repeated at each one:
 *  - Errors. A function that can fail returns gantry_status: 0, or a negative code. Its last argument `err` may be
 *    NULL; it is written on failure only. Out-parameters come first and are set on success only.
 *  - Ownership. What *_new, *_load, *_parse or *_detect gives you, you hand to the matching *_free, which accepts
 *    NULL. Other pointers that are returned are borrowed and die with their object. Strings and arrays you pass are
 *    copied, unless the text says "borrowed". Objects may be freed in any order: a schedule keeps what it needs of
 *    its graph and machine.
 *  - NULL. A pointer must not be NULL but for `err`, `options`, what *_free is given, the length of a text, and where
 *    the text says so. Otherwise a function with a status returns E_INVALID, a building call is a mistake of the graph,
 *    and one that only looks finds nothing (NULL, 0, -1, GANTRY_NONE). NaN is refused where it is not an element or a
 *    scalar.
 *  - Texts are UTF-8 with a 0 behind. What is given with a length need not have that 0.
 *  - Units. Sizes are bytes. Times are microseconds (names end in _us), rates 10^9 bytes a second (_gbs).
 *  - Threads. One thread at a time per object. A run that two threads use at once, or a child of the process that made
 *    it (fork), returns E_INVALID to the second thread, and to the child; gantry_run_cancel may be called by any
 *    thread. A checked graph, a machine and a schedule are never changed and may be shared between threads.
 *  - Sizes. A struct that begins with struct_size may grow in later versions: begin with its _INIT macro, or set the
 *    size to sizeof. One of an older program gets defaults for what it lacks; one of a newer program is accepted while
 *    fields that this library does not know are 0 (E_UNSUPPORTED else); no size is E_INVALID. See docs/abi.md.
 *  - Repeatability. The same graph, machine, options and seed give the same schedule, byte for byte.
 *  - Silence. The library never prints, exits or aborts.
 */
#ifndef GANTRY_STATUS_H
#define GANTRY_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GANTRY_API      __attribute__((visibility("default")))
#define GANTRY_MUST_USE __attribute__((visibility("default"), warn_unused_result))
#else
#define GANTRY_API
#define GANTRY_MUST_USE
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_VERSION_MAJOR 0
#define GANTRY_VERSION_MINOR 1
#define GANTRY_VERSION_PATCH 0

/** Version of the library that is loaded, "0.1.0"; it may differ from that of the header. */
GANTRY_API const char *gantry_version(void);

/** One list makes the codes, their names and their texts. Values never change; new ones go at the end. */
#define GANTRY_STATUS_MAP(X)                                                                                           \
    X(OK, 0, "success")                                                                                                \
    X(E_NOMEM, -1, "out of host memory")                                                                               \
    X(E_INVALID, -2, "invalid argument or call out of order")                                                          \
    X(E_IO, -3, "cannot read or write the file")                                                                       \
    X(E_SYNTAX, -4, "not well-formed JSON")                                                                            \
    X(E_GRAPH, -5, "the graph is not valid")                                                                           \
    X(E_MACHINE, -6, "the machine description is not valid")                                                           \
    X(E_SCHEDULE, -7, "the schedule is not valid or does not belong to the graph")                                     \
    X(E_CAPACITY, -8, "the graph does not fit in the memory of the devices")                                           \
    X(E_KERNEL, -9, "a kernel failed")                                                                                 \
    X(E_DEVICE, -10, "a device, driver or library call failed")                                                        \
    X(E_UNSUPPORTED, -11, "not supported by this version, machine or back end")                                        \
    X(E_TIMEOUT, -12, "no progress within the time limit")                                                             \
    X(E_CANCELED, -13, "the run was cancelled")                                                                        \
    X(E_CHECK, -14, "checking mode found a difference")

typedef enum gantry_status {
#define GANTRY_X(name, value, text) GANTRY_##name = value,
    GANTRY_STATUS_MAP(GANTRY_X)
#undef GANTRY_X
} gantry_status;

/** An error: what went wrong and where. Lives on the caller's stack and holds no pointers: nothing to free. */
typedef struct gantry_error {
    gantry_status status;
    int32_t line, column; /* in `file`, from 1; 0 when the error has no place in a text */
    int32_t device;       /* index of the device in the machine, or -1 */
    int32_t native;       /* errno or the code of the library behind it, or 0 */
    int32_t reserved[3];  /* 0; room to grow without changing the size */
    char file[120];       /* file name, or ""; a long one keeps its end: "...tail.json" */
    char where[120];      /* JSON pointer ("/nodes/3/args/x"), or "" */
    char text[512];       /* one line, no full stop, with the value seen, the value allowed and the remedy */
} gantry_error;

/** "GANTRY_E_GRAPH"; never NULL. */
GANTRY_API const char *gantry_status_name(gantry_status status);
/** The text of the list above; never NULL. */
GANTRY_API const char *gantry_status_text(gantry_status status);
/**
 * One line for people: "a.json:14:9: /nodes/3: text", leaving out the parts that are not known.
 * Writes at most `size` bytes with the final 0 and returns the length of the whole line (like snprintf). `to` NULL:
 * nothing is written. `err` NULL: the line is empty.
 */
GANTRY_API size_t gantry_error_format(const gantry_error *err, char *to, size_t size);

/** The candidate nearest to a misspelt word, for "did you mean"; NULL if none is near. Borrowed from the list. */
GANTRY_API const char *gantry_nearest(const char *word, const char *const *candidates, size_t count);

/** Frees what the library says you own as plain memory (texts from *_json, *_export). NULL is allowed. */
GANTRY_API void gantry_free(void *memory);

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_STATUS_H */
