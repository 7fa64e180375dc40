/* SPDX-License-Identifier: Apache-2.0 */
#include "run/usercode/usercode.h"

#include "base/cache.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_object(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".so") == 0;
}

static gantry_status fail_load(const char *source, gantry_error *err)
{
    const char *why = dlerror();
    return gy_fail(err, GANTRY_E_GRAPH, NULL, "cannot load %s: %s", source, why ? why : "no reason given");
}

static gantry_status open_object(void **object, const char *path, gantry_error *err)
{
    GY_TRY(gy_code_file_check(path, err));
    /* Without a slash dlopen would search the system's folders. */
    char *full = strchr(path, '/') ? gy_strdup(path) : gy_path_join(".", path);
    if (!full)
        return gy_fail_nomem(err);
    void *opened = dlopen(full, RTLD_NOW | RTLD_LOCAL);
    gy_free(full);
    if (!opened)
        return fail_load(path, err);
    *object = opened;
    return GANTRY_OK;
}

/* ---- what was compiled ---- */

enum { PATH_ROOM = 32 };

/* Systems from Linux 6.3 on may ask for the flag that says that the file is not for exec(), and older ones do not know
 * it. */
static int make_memory_file(void)
{
    enum { NOEXEC_SEAL = 8 };
    int fd = memfd_create("gantry-kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING | NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create("gantry-kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

/* The loader knows objects by their paths, those too that were closed and stay in memory: a number that one of them had
 * is passed over. */
static int pass_over_known(int fd, char path[PATH_ROOM])
{
    for (;;) {
        snprintf(path, PATH_ROOM, "/proc/self/fd/%d", fd);
        void *known = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
        if (!known)
            return fd;
        dlclose(known);
        int next = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1), code = errno;
        close(fd);
        errno = code;
        if (next < 0)
            return -1;
        fd = next;
    }
}

/* The bytes that were checked are the bytes that run: they lie in memory that can no longer be written or cut, whatever
 * happens to the file in the cache, which would take the code away under a run. */
gantry_status gy_object_load(void **object, const gy_object *from, const char *source, gantry_error *err)
{
    char path[PATH_ROOM] = "";
    int fd = make_memory_file();
    if (fd >= 0 && gy_write_all(fd, from->at, from->bytes) &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0) {
        fd = pass_over_known(fd, path);
        *path = fd < 0 ? '\0' : *path;
    }
    if (!*path) {
        gy_fail_errno(err, "make a copy in memory of the object compiled from", source);
        if (fd >= 0)
            close(fd);
        return GANTRY_E_IO;
    }
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    gantry_status status = opened ? GANTRY_OK : fail_load(source, err);
    close(fd);
    if (opened)
        *object = opened;
    return status;
}

static gantry_status compile_and_open(void **object, const gy_kernel_code *code, gy_said said, gantry_error *err)
{
    gy_object made;
    GY_TRY(gy_compile_c(&made, code->host, code->build, said, err));
    gantry_status status = gy_object_load(object, &made, code->host, err);
    gy_free(made.at);
    return status;
}

/* ---- kernels ---- */

/* POSIX lets a function's address travel in a void pointer; ISO C does not, hence the copy. */
static gantry_kernel_fn find_function(void *object, const char *name)
{
    void *symbol = dlsym(object, name);
    gantry_kernel_fn function = NULL;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static gantry_status find_entry(gantry_kernel_fn *function, void *object, const gy_kernel *kernel, gantry_error *err)
{
    const char *entry = kernel->code->entry ? kernel->code->entry : kernel->manifest->name;
    *function = find_function(object, entry);
    if (*function)
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_GRAPH, NULL,
                   "%s has no function \"%s\" for kernel \"%s\"; define \"gantry_status %s(const gantry_launch *)\", "
                   "not static, or name another with \"entry\"",
                   kernel->code->host, entry, kernel->manifest->name, entry);
}

static gantry_status load(void **object, gantry_kernel_fn *function, const gy_kernel *kernel, gy_said said,
                          gantry_error *err)
{
    const char *source = kernel->code->host;
    GY_TRY(gy_file_look(source, kernel->code->folder, err));
    void *opened;
    GY_TRY(is_object(source) ? open_object(&opened, source, err) : compile_and_open(&opened, kernel->code, said, err));
    gantry_status status = find_entry(function, opened, kernel, err);
    if (status) {
        dlclose(opened);
        return status;
    }
    *object = opened;
    return GANTRY_OK;
}

static bool same_words(const char *const *a, const char *const *b)
{
    for (; *a && *b && strcmp(*a, *b) == 0; a++, b++) {
    }
    return !*a && !*b;
}

static bool same_build(const gy_code_build *a, const gy_code_build *b)
{
    if (!a || !b)
        return a == b;
    return same_words(a->flag, b->flag) && same_words(a->include, b->include) && same_words(a->library, b->library);
}

/* The object of a kernel in the same file, compiled in the same way. */
static void *find_shared(const gy_user_code *code, const gantry_graph *graph, const gy_kernel_code *wanted)
{
    for (uint32_t i = 0; i < code->count; i++) {
        const gy_kernel_code *other = graph->kernels.at[i].code;
        if (code->object[i] && strcmp(other->host, wanted->host) == 0 && same_build(other->build, wanted->build))
            return code->object[i];
    }
    return NULL;
}

static bool make_room(gy_user_code *code, uint32_t count)
{
    if (code->count)
        return true;
    code->function = gy_calloc(count, sizeof *code->function);
    code->object = gy_calloc(count, sizeof *code->object);
    if (!code->function || !code->object) {
        gy_user_code_free(code);
        return false;
    }
    code->count = count;
    return true;
}

gantry_status gy_user_code_load(gy_user_code *code, const gantry_graph *graph, uint32_t kernel, gantry_error *err)
{
    if (!make_room(code, (uint32_t)graph->kernels.count))
        return gy_fail_nomem(err);
    if (code->function[kernel])
        return GANTRY_OK;
    const gy_kernel *wanted = &graph->kernels.at[kernel];
    void *shared = find_shared(code, graph, wanted->code);
    return shared ? find_entry(&code->function[kernel], shared, wanted, err)
                  : load(&code->object[kernel], &code->function[kernel], wanted, code->said, err);
}

void gy_user_code_free(gy_user_code *code)
{
    for (uint32_t i = 0; i < code->count; i++)
        if (code->object[i])
            dlclose(code->object[i]);
    gy_free(code->function);
    gy_free(code->object);
    *code = (gy_user_code){ .said = code->said };
}
