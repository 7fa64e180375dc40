/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a gantry_error. The function that finds an error reports it; callers above propagate the status. */
#ifndef GY_BASE_ERROR_H
#define GY_BASE_ERROR_H

#include <gantry/status.h>
#include <stdarg.h>
#include <stdbool.h>

/* Writes the record (err may be NULL) and returns `status`. `where` is a JSON pointer or NULL. */
gantry_status gy_fail(gantry_error *err, gantry_status status, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
gantry_status gy_vfail(gantry_error *err, gantry_status status, const char *where, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
void gy_record_nomem(gantry_error *err);
void gy_record_errno(gantry_error *err, const char *what, const char *path);

/* Tells the compiler, which cannot look into gy_fail, the status that it returns: so it sees that out-parameters are
 * not used after an error. */
static inline gantry_status gy_status_is_(gantry_status status, gantry_status returned)
{
    (void)returned;
    return status;
}
#define gy_fail(err, status, ...) gy_status_is_((status), gy_fail((err), (status), __VA_ARGS__))

/* Returns the status of a call that failed to the caller of this function. Only where there is nothing to clean up. */
#define GY_TRY(call)                                                                                                   \
    do {                                                                                                               \
        gantry_status gy_tried_ = (call);                                                                              \
        if (gy_tried_)                                                                                                 \
            return gy_tried_;                                                                                          \
    } while (0)

/* E_INVALID where a public function was given NULL and needs a pointer; `name` is the parameter in the header. */
gantry_status gy_need(const void *given, const char *name, const char *function, gantry_error *err);
#define GY_NEED(pointer, err) GY_TRY(gy_need((pointer), #pointer, __func__, (err)))

static inline gantry_status gy_fail_nomem(gantry_error *err)
{
    gy_record_nomem(err);
    return GANTRY_E_NOMEM;
}

/* E_IO with errno as `native`. With `what` = "open": "cannot open x.json: No such file or directory". */
static inline gantry_status gy_fail_errno(gantry_error *err, const char *what, const char *path)
{
    gy_record_errno(err, what, path);
    return GANTRY_E_IO;
}

/* Puts the name of a buffer before the text of a record that is already filled. NULL err is fine. */
void gy_error_of_buffer(gantry_error *err, const char *buffer);

/* Adds a source location to a record that is already filled; a long name keeps its end. NULL err and NULL file are
 * fine. */
void gy_error_locate(gantry_error *err, const char *file, int line, int column);

#endif
