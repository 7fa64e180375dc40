/* SPDX-License-Identifier: Apache-2.0 */
#include "run/usercode/usercode.h"

#include "base/cache.h"
#include "base/error.h"
#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/module.h"
#include "base/text.h"
#include "base/vec.h"
#include "run/usercode/usercode_command.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where <gantry/kernel.h> is: beside the installed library, wherever it was moved to, or as it was to be installed; in
 * the source tree only for a library that lies where it was built. */
#if !defined GY_INCLUDE_FROM_LIBRARY || !defined GY_INCLUDE_SOURCE || !defined GY_INCLUDE_INSTALL ||                   \
    !defined GY_BUILD_FOLDER
#error "src/run/CMakeLists.txt says where headers are: no folder is guessed, lest it is the current one"
#endif
static const char *const flags[] = { "-std=gnu11", "-O2", "-fPIC", "-ffp-contract=off" };
enum { FLAGS = sizeof flags / sizeof *flags };
/* Of texts of our own: loops that become vector code of this processor, where neither errno nor traps are asked for.
 * Results are the same. */
static const char *const loop_flags[] = { "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math" };
enum { LOOP_FLAGS = sizeof loop_flags / sizeof *loop_flags };

/* ---- commands ---- */

typedef GY_VEC(char *) words;

static void free_words(words *w)
{
    for (size_t i = 0; i < w->count; i++)
        gy_free(w->at[i]);
    gy_vec_free(w);
}

static bool add_word(words *w, const char *text, size_t length)
{
    char *copy = gy_strndup(text, length);
    if (!copy || !gy_vec_push(w, copy)) {
        gy_free(copy);
        return false;
    }
    return true;
}

/* $CC may hold arguments ("ccache gcc -m64"). */
static bool add_compiler(words *w)
{
    static const char blank[] = " \t\n";
    const char *cc = getenv("CC");
    cc = cc && cc[strspn(cc, blank)] ? cc : "cc";
    while (*(cc += strspn(cc, blank))) {
        size_t length = strcspn(cc, blank);
        if (!add_word(w, cc, length))
            return false;
        cc += length;
    }
    return true;
}

static bool add_include(words *w, const char *folder)
{
    return add_word(w, "-I", 2) && add_word(w, folder, strlen(folder));
}

static bool is_build_folder(const char *folder)
{
    char real[PATH_MAX];
    return realpath(folder, real) &&
           (strcmp(real, GY_BUILD_FOLDER "/lib") == 0 || strcmp(real, GY_BUILD_FOLDER "/tests/lib") == 0);
}

static bool add_includes(words *w)
{
    char file[PATH_MAX];
    if (!gy_library_file(file, sizeof file))
        return add_include(w, GY_INCLUDE_INSTALL);
    gy_text path = { 0 };
    gy_text_add_n(&path, file, (size_t)(strrchr(file, '/') - file) + 1);
    bool built = !path.failed && is_build_folder(path.at);
    gy_text_add(&path, GY_INCLUDE_FROM_LIBRARY);
    bool ok = !path.failed && add_include(w, path.at) && add_include(w, built ? GY_INCLUDE_SOURCE : GY_INCLUDE_INSTALL);
    gy_text_free(&path);
    return ok;
}

static bool add_words(words *w, const char *const *word, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!add_word(w, word[i], strlen(word[i])))
            return false;
    return true;
}

/* Which flags stand behind the compiler. */
typedef enum flag_set { NO_FLAGS, KERNEL_FLAGS, LOOP_FLAGS_TOO } flag_set;

static bool add_flags(words *w, flag_set set)
{
    if (set == NO_FLAGS)
        return true;
    return add_words(w, flags, FLAGS) &&
           (set == LOOP_FLAGS_TOO ? add_words(w, loop_flags, LOOP_FLAGS) : add_includes(w));
}

/* Each word up to NULL, behind `before` where that is not NULL. */
static bool add_each(words *w, const char *before, const char *const *word)
{
    for (; *word; word++)
        if ((before && !add_word(w, before, strlen(before))) || !add_word(w, *word, strlen(*word)))
            return false;
    return true;
}

/* Those of the graph come behind ours, which they may overrule. */
static bool add_build(words *w, flag_set set, const gy_code_build *build)
{
    return set == NO_FLAGS || !build || (add_each(w, NULL, build->flag) && add_each(w, "-I", build->include));
}

/* Compiler, then our flags, those of the graph, then the extra words up to NULL, and libraries of the graph. */
static bool make_command(words *w, flag_set set, const gy_code_build *build, const char *const *extra)
{
    bool linked = set != NO_FLAGS && build;
    return add_compiler(w) && add_flags(w, set) && add_build(w, set, build) && add_each(w, NULL, extra) &&
           (!linked || add_each(w, "-l", build->library)) && gy_vec_push(w, NULL);
}

/* All words of a command, told apart by the 0 behind each. */
static uint64_t hash_words(const words *w, uint64_t hash)
{
    for (size_t i = 0; i < w->count && w->at[i]; i++)
        hash = gy_hash_bytes(w->at[i], strlen(w->at[i]) + 1, hash);
    return hash;
}

/* ---- what it is compiled from ---- */

typedef struct job {
    const char *source;
    flag_set set;
    const gy_code_build *build;
    gy_compilers compilers;
    gy_said said;
    uint64_t hash;
    bool known; /* the hash says all that the object depends on */
} job;

static gantry_status run(job *j, bool with_flags, const char *const *extra, const char *folder, gy_text *text,
                         gantry_error *err)
{
    words command = { 0 };
    gantry_status status = make_command(&command, with_flags ? j->set : NO_FLAGS, j->build, extra)
                               ? gy_compilers_run(&j->compilers, command.at, folder, text, err)
                               : gy_fail_nomem(err);
    free_words(&command);
    return status;
}

/* A source may have 0 bytes. */
static bool has(const gy_text *text, const char *word)
{
    return memmem(text->at, text->length, word, strlen(word)) != NULL;
}

/* Preprocesses once more, without the text, which stands before the compiler's complaint in what it says. */
static gantry_status complain(job *j, gantry_error *err)
{
    gy_text text = { 0 };
    j->compilers.said = j->said;
    gantry_status status =
        run(j, true, (const char *const[]){ "-E", "-o", "/dev/null", j->source, NULL }, NULL, &text, err);
    j->compilers.said = (gy_said){ 0 };
    gy_text_free(&text);
    return status ? status : gy_compilers_fail(j->source, "the preprocessor fails, and then does not", err);
}

/* With the macros of the compiler, which differ where -march=native does. */
static gantry_status hash_text(job *j, gantry_error *err)
{
    gy_text text = { 0 };
    gantry_status status = run(j, true, (const char *const[]){ "-E", "-dD", j->source, NULL }, NULL, &text, err);
    if (status == GANTRY_OK && text.length) {
        j->hash = gy_hash_bytes(text.at, text.length, j->hash);
        j->known = !has(&text, ".incbin") && !has(&text, ".include"); /* the assembler reads more */
    }
    gy_text_free(&text);
    return status == GANTRY_E_GRAPH ? complain(j, err) : status;
}

/* A compiler that does not know the word says something, too. */
static gantry_status hash_version(job *j, gantry_error *err)
{
    gy_text version = { 0 };
    gantry_status status = run(j, false, (const char *const[]){ "--version", NULL }, NULL, &version, err);
    status = status == GANTRY_E_GRAPH ? GANTRY_OK : status;
    if (status == GANTRY_OK)
        j->hash = gy_hash_bytes(version.length ? version.at : "", version.length, j->hash);
    gy_text_free(&version);
    return status;
}

/* Its file where that tells, else what it says of itself, which takes a process. */
static gantry_status hash_compiler(job *j, gantry_error *err)
{
    words command = { 0 };
    bool room = add_compiler(&command), known = room && gy_compiler_identify(&j->hash, command.at[0]);
    free_words(&command);
    return !room ? gy_fail_nomem(err) : known ? GANTRY_OK : hash_version(j, err);
}

static gantry_status hash_command(job *j, gantry_error *err)
{
    words command = { 0 };
    bool room = make_command(&command, j->set, j->build, (const char *const[]){ NULL });
    j->hash = room ? hash_words(&command, sizeof(gantry_launch)) : 0;
    free_words(&command);
    return room ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status find_hash(job *j, gantry_error *err)
{
    GY_TRY(hash_command(j, err));
    GY_TRY(hash_text(j, err));
    return hash_compiler(j, err);
}

/* ---- compiling ---- */

static gantry_status compile_to(job *j, const char *object, const char *folder, gantry_error *err)
{
    gy_text text = { 0 };
    const char *const extra[] = { "-shared", "-o", object, j->source, "-lm", NULL };
    j->compilers.said = j->said; /* of other commands it is the program's text, or a version */
    gantry_status status = run(j, true, extra, folder, &text, err);
    j->compilers.said = (gy_said){ 0 };
    if (status == GANTRY_OK && access(object, R_OK) != 0)
        status = gy_compilers_fail(j->source, "the compiler made no object and did not say why", err);
    gy_text_free(&text);
    return status;
}

static gantry_status compile(gy_object *object, job *j, const gy_cache_entry *entry, gantry_error *err)
{
    gy_cache_work work;
    GY_TRY(gy_cache_work_begin(&work, entry, err));
    char *path = gy_path_join(work.path, "object.so");
    gantry_status status = path ? compile_to(j, path, work.path, err) : gy_fail_nomem(err);
    status = status ? status : gy_file_read(&object->at, &object->bytes, path, err);
    gy_free(path);
    gy_cache_work_end(&work);
    return status;
}

/* A source that was saved meanwhile has another hash by now: what was compiled may be of either text. */
static gantry_status keep(const gy_object *object, job *j, const gy_cache_entry *entry, gantry_error *err)
{
    uint64_t before = j->hash;
    GY_TRY(find_hash(j, err));
    return j->known && j->hash == before ? gy_cache_keep(entry, object->at, object->bytes, err) : GANTRY_OK;
}

static gantry_status find_or_compile(gy_object *object, job *j, gantry_error *err)
{
    gy_cache_entry entry;
    gy_object made = { 0 };
    GY_TRY(gy_cache_open(&entry, j->hash, ".so", err));
    gantry_status status = GANTRY_OK;
    if (!j->known || !gy_cache_find(&entry, &made.at, &made.bytes)) {
        status = compile(&made, j, &entry, err);
        if (status == GANTRY_OK && j->known)
            status = keep(&made, j, &entry, err);
    }
    gy_cache_close(&entry);
    if (status) {
        gy_free(made.at);
        return status;
    }
    *object = made;
    return GANTRY_OK;
}

static gantry_status compile_source(gy_object *object, const char *source, const gy_code_build *build, gy_said said,
                                    gantry_error *err)
{
    job j = { .source = source, .set = KERNEL_FLAGS, .build = build, .said = said };
    GY_TRY(gy_code_file_check(source, err));
    GY_TRY(gy_compilers_begin(&j.compilers, source, err));
    gantry_status status = find_hash(&j, err);
    status = status ? status : find_or_compile(object, &j, err);
    gy_compilers_end(&j.compilers);
    return status;
}

static bool has_headers(void)
{
    words w = { 0 };
    bool found = !add_includes(&w);
    for (size_t i = 1; i < w.count; i += 2) {
        char *path = gy_path_join(w.at[i], "gantry/kernel.h");
        found = found || !path || access(path, R_OK) == 0;
        gy_free(path);
    }
    free_words(&w);
    return found;
}

/* The command and the library may be there without the headers. */
static gantry_status add_remedy(gantry_status status, gantry_error *err)
{
    size_t used = err ? strlen(err->text) : 0;
    if (status == GANTRY_E_GRAPH && err && !has_headers())
        snprintf(
            err->text + used, sizeof err->text - used,
            "; Gantry's headers are not installed, which the package libgantry-dev has (cmake --install: component "
            "dev)");
    return status;
}

gantry_status gy_compile_c(gy_object *object, const char *source, const gy_code_build *build, gy_said said,
                           gantry_error *err)
{
    if (*source != '-' && *source != '@') /* which compilers take for something else than a file */
        return add_remedy(compile_source(object, source, build, said, err), err);
    char *path = gy_path_join(".", source);
    gantry_status status = path ? compile_source(object, path, build, said, err) : gy_fail_nomem(err);
    gy_free(path);
    return add_remedy(status, err);
}

/* ---- texts of our own ---- */

static gantry_status hash_macros(job *j, gantry_error *err)
{
    gy_text text = { 0 };
    gantry_status status =
        run(j, true, (const char *const[]){ "-E", "-dM", "-x", "c", "/dev/null", NULL }, NULL, &text, err);
    if (status == GANTRY_OK && text.length)
        j->hash = gy_hash_bytes(text.at, text.length, j->hash);
    else if (status == GANTRY_OK)
        status = gy_compilers_fail(j->source, "the compiler does not tell its macros", err);
    gy_text_free(&text);
    return status;
}

/* All that the object depends on beside the text, which includes nothing. */
static gantry_status ask_compiler(uint64_t *hash, gantry_error *err)
{
    job j = { .source = "formulas.c", .set = LOOP_FLAGS_TOO };
    GY_TRY(gy_compilers_begin(&j.compilers, j.source, err));
    gantry_status status = hash_command(&j, err);
    status = status ? status : hash_macros(&j, err);
    status = status ? status : hash_compiler(&j, err);
    gy_compilers_end(&j.compilers);
    *hash = j.hash;
    return status;
}

/* The text lies in a folder of its own within the cache as long as it is compiled. */
static gantry_status compile_text(gy_object *object, const char *text, size_t length, const gy_cache_entry *entry,
                                  gantry_error *err)
{
    gy_cache_work work;
    GY_TRY(gy_cache_work_begin(&work, entry, err));
    char *path = gy_path_join(work.path, "formulas.c");
    job j = { .source = path, .set = LOOP_FLAGS_TOO };
    gantry_status status = path ? gy_file_write(path, text, length, err) : gy_fail_nomem(err);
    status = status ? status : gy_compilers_begin(&j.compilers, path, err);
    if (status == GANTRY_OK) {
        status = compile(object, &j, entry, err);
        gy_compilers_end(&j.compilers);
    }
    gy_free(path);
    gy_cache_work_end(&work);
    return status;
}

/* Another compiler may have been installed meanwhile. */
static gantry_status compile_and_keep_text(gy_object *object, const char *text, size_t length, uint64_t compiler,
                                           const gy_cache_entry *entry, gantry_error *err)
{
    uint64_t now;
    GY_TRY(compile_text(object, text, length, entry, err));
    GY_TRY(ask_compiler(&now, err));
    return now == compiler ? gy_cache_keep(entry, object->at, object->bytes, err) : GANTRY_OK;
}

gantry_status gy_compile_text(gy_object *object, const char *text, size_t length, gy_text_compiler *by,
                              gantry_error *err)
{
    gy_cache_entry entry;
    gy_object made = { 0 };
    if (!by->known)
        GY_TRY(ask_compiler(&by->hash, err));
    by->known = true;
    GY_TRY(gy_cache_open(&entry, gy_hash_bytes(text, length, by->hash), ".so", err));
    gantry_status status = gy_cache_find(&entry, &made.at, &made.bytes)
                               ? GANTRY_OK
                               : compile_and_keep_text(&made, text, length, by->hash, &entry, err);
    gy_cache_close(&entry);
    if (status) {
        gy_free(made.at);
        return status;
    }
    *object = made;
    return GANTRY_OK;
}
