/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/usercode/compile.h"

#include "backends/cuda/usercode/includes.h"
#include "backends/cuda/usercode/options.h"
#include "base/cache.h"
#include "base/error.h"
#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include <string.h>

enum { MOST_SHOWN = 361 }; /* of NVRTC's complaints, in a record's 512 characters */

/* ---- what it is compiled for ---- */

static gantry_status fail_nvrtc(const gy_nvrtc *n, int code, const char *path, gantry_error *err)
{
    const char *why = n->nvrtcGetErrorString(code);
    gy_fail(err, GANTRY_E_DEVICE, NULL, "NVRTC %d.%d cannot compile %s: %s", n->major, n->minor, path,
            why ? why : "no reason given");
    if (err)
        err->native = code;
    return GANTRY_E_DEVICE;
}

/* Chooses the device's own architecture, else the newest that the device can run. */
static gantry_status choose_target(gy_target *to, const gy_nvrtc *n, int capability, const char *path,
                                   gantry_error *err)
{
    int best = 0, least = n->architecture[0];
    for (int i = 0; i < n->architectures; i++) {
        int known = n->architecture[i];
        best = known <= capability && known > best ? known : best;
        least = known < least ? known : least;
    }
    if (!best) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "NVRTC %d.%d compiles for compute capability %d.%d and later, the device has %d.%d: %s needs an "
                       "older CUDA, or to be compiled to a .cubin beforehand",
                       n->major, n->minor, least / 10, least % 10, capability / 10, capability % 10, path);
    }
    *to = (gy_target){ best, best == capability };
    return GANTRY_OK;
}

/* ---- compiling ---- */

/* The words of NVRTC, or NULL; gy_free's. Also where all went well there may be warnings. */
static char *take_log(const gy_nvrtc *n, struct _nvrtcProgram *program)
{
    size_t bytes = 0;
    char *log = n->nvrtcGetProgramLogSize(program, &bytes) == 0 ? gy_calloc(1, bytes + 1) : NULL;
    if (log && n->nvrtcGetProgramLog(program, log) == 0)
        return log;
    gy_free(log);
    return NULL;
}

static gantry_status fail_compile(const char *log, bool heard, const char *path, gantry_error *err)
{
    char shown[MOST_SHOWN] = "";
    gy_lines_text(shown, sizeof shown, log ? log : "");
    return gy_fail(err, GANTRY_E_GRAPH, NULL, "%s does not compile: %s", path,
                   heard    ? GY_SAID_WHY
                   : *shown ? shown
                            : "no output");
}

static gantry_status take_code(gy_code *code, const gy_nvrtc *n, struct _nvrtcProgram *program, gy_target t,
                               const char *path, gantry_error *err)
{
    size_t bytes = 0;
    int failed = t.exact ? n->nvrtcGetCUBINSize(program, &bytes) : n->nvrtcGetPTXSize(program, &bytes);
    char *at = failed ? NULL : gy_alloc(bytes + 1);
    if (!failed && !at)
        return gy_fail_nomem(err);
    failed = failed ? failed : t.exact ? n->nvrtcGetCUBIN(program, at) : n->nvrtcGetPTX(program, at);
    if (failed) {
        gy_free(at);
        return fail_nvrtc(n, failed, path, err);
    }
    bytes -= !t.exact && bytes > 0; /* PTX counts its 0 */
    at[bytes] = '\0';
    *code = (gy_code){ at, bytes };
    return GANTRY_OK;
}

static gantry_status compile(gy_code *code, const gy_nvrtc *n, const char *path, const char *text, gy_target t,
                             const gy_nvrtc_options *options, gantry_error *err)
{
    enum { COMPILATION_FAILED = 6 }; /* NVRTC_ERROR_COMPILATION */
    struct _nvrtcProgram *program = NULL;
    int failed = n->nvrtcCreateProgram(&program, text, path, 0, NULL, NULL);
    if (failed)
        return fail_nvrtc(n, failed, path, err);
    failed = n->nvrtcCompileProgram(program, (int)options->count, (const char *const *)options->at);
    char *log = failed == COMPILATION_FAILED || n->said.hear ? take_log(n, program) : NULL;
    bool heard = gy_say(n->said, log, log ? strlen(log) : 0);
    gantry_status status = failed == COMPILATION_FAILED ? fail_compile(log, heard, path, err)
                           : failed                     ? fail_nvrtc(n, failed, path, err)
                                                        : take_code(code, n, program, t, path, err);
    gy_free(log);
    n->nvrtcDestroyProgram(&program);
    return status;
}

/* ---- the cache ---- */

typedef struct source {
    const char *path;
    const char *text;
    size_t length;
    const char *const *folders; /* its own, the graph's, and those that the graph names */
    size_t folder_count;
    const char *const *more; /* options, up to NULL */
    int capability;
    gy_target target;
    gy_nvrtc_options options;
} source;

/* *known: the hash says all that the code depends on; else it is compiled every time. */
static gantry_status hash_source(uint64_t *hash, bool *known, const gy_nvrtc *n, const source *s, gantry_error *err)
{
    *hash = gy_hash64((uint64_t)n->major << 32 | (uint64_t)n->minor);
    *known = true;
    for (size_t i = 0; i < s->options.count; i++)
        *hash = gy_hash_bytes(s->options.at[i], strlen(s->options.at[i]) + 1, *hash);
    return gy_includes_hash(hash, known, s->path, s->text, s->length, s->folders, s->folder_count, err);
}

/* A file that was saved meanwhile has another hash by now: what was compiled may be of either text. */
static gantry_status keep(const gy_code *code, uint64_t hash, const gy_nvrtc *n, const source *s,
                          const gy_cache_entry *entry, gantry_error *err)
{
    uint64_t now;
    bool known;
    GY_TRY(hash_source(&now, &known, n, s, err));
    return known && now == hash ? gy_cache_keep(entry, code->at, code->bytes, err) : GANTRY_OK;
}

static gantry_status compile_and_keep(gy_code *code, uint64_t hash, const gy_nvrtc *n, const source *s,
                                      const gy_cache_entry *entry, gantry_error *err)
{
    gy_code made = { 0 };
    GY_TRY(compile(&made, n, s->path, s->text, s->target, &s->options, err));
    gantry_status status = keep(&made, hash, n, s, entry, err);
    if (status) {
        gy_free(made.at);
        return status;
    }
    *code = made;
    return GANTRY_OK;
}

static gantry_status refuse_to_compile(const char *path, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                   "%s is compiled each time, as nobody knows what it includes; let it name headers without macros",
                   path);
}

/* *wanted: it is not kept, and has to be compiled by an NVRTC that is open. */
static gantry_status find_or_compile(gy_code *code, bool *wanted, const gy_nvrtc *n, const source *s, gantry_error *err)
{
    uint64_t hash;
    bool known;
    gy_cache_entry entry;
    GY_TRY(hash_source(&hash, &known, n, s, err));
    if (!known && n->looks_only)
        return refuse_to_compile(s->path, err);
    *wanted = !known && !gy_nvrtc_is_open(n);
    if (!known)
        return *wanted ? GANTRY_OK : compile(code, n, s->path, s->text, s->target, &s->options, err);
    GY_TRY(gy_cache_open(&entry, hash, s->target.exact ? ".cubin" : ".ptx", err));
    gantry_status status = GANTRY_OK;
    if (!gy_cache_find(&entry, &code->at, &code->bytes) && !n->looks_only) {
        *wanted = !gy_nvrtc_is_open(n);
        status = *wanted ? GANTRY_OK : compile_and_keep(code, hash, n, s, &entry, err);
    }
    gy_cache_close(&entry);
    return status;
}

static gantry_status compile_with(gy_code *code, bool *wanted, const gy_nvrtc *n, source s, gantry_error *err)
{
    *wanted = false;
    GY_TRY(choose_target(&s.target, n, s.capability, s.path, err));
    gantry_status status = gy_nvrtc_options_make(&s.options, n, s.target, s.more, s.folders, s.folder_count)
                               ? find_or_compile(code, wanted, n, &s, err)
                               : gy_fail_nomem(err);
    gy_nvrtc_options_free(&s.options);
    return status;
}

/* NVRTC is opened where something is missing only, which takes longer than to load all that was kept. */
static gantry_status compile_source(gy_code *code, const gy_nvrtc *n, const source *s, gantry_error *err)
{
    gy_nvrtc opened;
    bool wanted;
    GY_TRY(compile_with(code, &wanted, n, *s, err));
    if (!wanted)
        return GANTRY_OK;
    GY_TRY(gy_nvrtc_open(&opened, err));
    opened.said = n->said;
    return compile_with(code, &wanted, &opened, *s, err);
}

/* Options of code that is linked to what calls it. */
static const char *const to_link[] = { "--relocatable-device-code=true", "--maxrregcount=128", NULL };

/* NVRTC is told the macros among the flags, and the folders; and `more`, up to NULL. */
static const char *const *take_build(gy_arena *arena, source *s, const gy_code_build *build, const char *const *more)
{
    size_t flags = 0, folders = s->folder_count, macros = 0, others = 0;
    while (more[others])
        others++;
    while (build && build->flag[flags])
        flags++;
    while (build && build->include[folders - s->folder_count])
        folders++;
    const char **words = gy_arena_calloc(arena, flags + others + 1, sizeof *words);
    const char **all = gy_arena_calloc(arena, folders + 1, sizeof *all);
    if (!words || !all)
        return NULL;
    for (size_t i = 0; i < flags; i++)
        if (build->flag[i][1] == 'D' || build->flag[i][1] == 'U')
            words[macros++] = build->flag[i];
    memcpy(words + macros, more, others * sizeof *words);
    memcpy(all, s->folders, s->folder_count * sizeof *all);
    for (size_t i = s->folder_count; i < folders; i++)
        all[i] = build->include[i - s->folder_count];
    s->folders = all;
    s->folder_count = folders;
    return words;
}

/* Its text with one ahead of it and one behind. */
static gantry_status read_between(char **text, size_t *length, const char *path, const char *before, const char *after,
                                  gantry_error *err)
{
    gy_text all = { 0 };
    GY_TRY(gy_file_read(text, length, path, err));
    gy_text_add(&all, before);
    gy_text_add(&all, *text);
    gy_text_add(&all, after);
    gy_free(*text);
    *length = all.length;
    *text = gy_text_take(&all, NULL);
    return *text ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status compile_file(gy_code *code, const gy_nvrtc *nvrtc, const char *path, const char *folder,
                                  const gy_code_build *build, const char *const around[2], const char *const *more,
                                  int capability, gantry_error *err)
{
    char *own = gy_path_folder(path), *text = NULL;
    const char *const usual[] = { own, folder && *folder ? folder : "." };
    source s = { .path = path, .folders = usual, .folder_count = 2, .capability = capability };
    gy_arena arena = { 0 };
    gantry_status status = own ? gy_code_file_check(path, err) : gy_fail_nomem(err);
    status = status ? status : read_between(&text, &s.length, path, around[0], around[1], err);
    s.text = text;
    s.more = status ? NULL : take_build(&arena, &s, build, more);
    status = status || s.more ? status : gy_fail_nomem(err);
    status = status ? status : compile_source(code, nvrtc, &s, err);
    gy_arena_free(&arena);
    gy_free(text);
    gy_free(own);
    return status;
}

gantry_status gy_nvrtc_compile(gy_code *code, const gy_nvrtc *nvrtc, const char *path, const char *folder,
                               const gy_code_build *build, int capability, gantry_error *err)
{
    return compile_file(code, nvrtc, path, folder, build, (const char *const[]){ "", "" },
                        (const char *const[]){ NULL }, capability, err);
}

gantry_status gy_nvrtc_compile_between(gy_code *code, const gy_nvrtc *nvrtc, const char *path, const char *folder,
                                       const gy_code_build *build, const char *before, const char *after,
                                       int capability, gantry_error *err)
{
    return compile_file(code, nvrtc, path, folder, build, (const char *const[]){ before, after }, to_link, capability,
                        err);
}

static gantry_status compile_text(gy_code *code, const gy_nvrtc *nvrtc, const char *name, const char *text,
                                  int capability, const char *const *more, gantry_error *err)
{
    source s = { .path = name, .text = text, .length = strlen(text), .more = more, .capability = capability };
    return compile_source(code, nvrtc, &s, err);
}

gantry_status gy_nvrtc_compile_text(gy_code *code, const gy_nvrtc *nvrtc, const char *name, const char *text,
                                    int capability, gantry_error *err)
{
    return compile_text(code, nvrtc, name, text, capability, (const char *const[]){ NULL }, err);
}

gantry_status gy_nvrtc_compile_to_link(gy_code *code, const gy_nvrtc *nvrtc, const char *name, const char *text,
                                       int capability, gantry_error *err)
{
    return compile_text(code, nvrtc, name, text, capability, to_link, err);
}
