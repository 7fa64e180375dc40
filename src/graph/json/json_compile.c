/* SPDX-License-Identifier: Apache-2.0 */
/* `compile` of a kernel of one's own: words for the compilers of its files. They run for who allowed the code, and
 * still reach nothing outside of the graph's folder by themselves: no path, no plug-in, no word that is for another
 * program.
 */
#include "graph/json/json_read.h"

#include "base/error.h"
#include "base/file.h"

#include <string.h>

enum { FLAGS, INCLUDE, LIBRARIES, KEYS };
static const char *const keys[KEYS] = { "flags", "include", "libraries" };

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool begins_with_one(const char *text, const char *const *with, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (begins(text, with[i]))
            return true;
    return false;
}

static bool consists_of(const char *text, const char *letters)
{
    return text[strspn(text, letters)] == '\0';
}

/* Flags of code generation with a value; others name files. */
static bool may_have_value(const char *flag)
{
    static const char *const known[] = { "-ffp-contract=", "-fsanitize=", "-fexcess-precision=", "-fvect-cost-model=",
                                         "-fvisibility=" };
    return !strchr(flag, '=') || begins_with_one(flag, known, sizeof known / sizeof *known);
}

/* Flags that load a plug-in, or write or read files beside the object. */
static bool is_about_files(const char *flag)
{
    static const char *const known[] = { "-fplugin",       "-fpass-plugin", "-fdump",     "-fprofile",
                                         "-fauto-profile", "-fbranch-pr",   "-fsave",     "-fstack-usage",
                                         "-fcallgraph",    "-fcoverage",    "-ftest-cov", "-fdiagnostics",
                                         "-fopt-info",     "-fcompare",     "-fmodule",   "-fproc-stat",
                                         "-fcrash",        "-mllvm" };
    return begins_with_one(flag, known, sizeof known / sizeof *known);
}

static bool is_allowed_flag(const char *flag)
{
    static const char *const plain[] = { "-O", "-g", "-f", "-m", "-std=" };
    if (begins(flag, "-D") || begins(flag, "-U"))
        return flag[2] == '_' || (flag[2] && strchr(LETTERS, flag[2]));
    if (begins(flag, "-W"))
        return consists_of(flag + 1, LETTERS DIGITS "-=+");
    if (strcmp(flag, "-pthread") == 0)
        return true;
    return begins_with_one(flag, plain, sizeof plain / sizeof *plain) &&
           consists_of(flag + 1, LETTERS DIGITS "-_=+.,") && !is_about_files(flag) &&
           (flag[1] != 'f' || may_have_value(flag));
}

typedef gantry_status (*word_reader)(gy_reader *r, const gy_json_at *at, const char **out);

static gantry_status take(gy_reader *r, const char *word, const char **out)
{
    *out = gy_arena_strdup(&r->graph->arena, word);
    return *out ? GANTRY_OK : gy_read_nomem(r);
}

static gantry_status read_flag(gy_reader *r, const gy_json_at *at, const char **out)
{
    const char *word = NULL;
    GY_TRY(gy_read_string(r, at, "a flag for the compiler", &word));
    if (is_allowed_flag(word))
        return take(r, word, out);
    return gy_read_fail(r, at,
                        "\"%.60s\" is no flag that a graph may give: allowed are -DNAME, -UNAME, -O, -g, -W, -f, -m, "
                        "-std= and -pthread, without files, plug-ins and words for other programs; headers and "
                        "libraries have keys of their own",
                        word);
}

static gantry_status read_folder(gy_reader *r, const gy_json_at *at, const char **out)
{
    return gy_read_path(r, at, out);
}

static gantry_status read_library(gy_reader *r, const gy_json_at *at, const char **out)
{
    const char *word = NULL;
    GY_TRY(gy_read_string(r, at, "the name of a library", &word));
    if (strchr(LETTERS DIGITS "_", *word) && consists_of(word, LETTERS DIGITS "_+.-"))
        return take(r, word, out);
    return gy_read_fail(r, at,
                        "\"%.60s\" is no name of a library of the system: give what stands behind -l, letters, digits "
                        "and _ + . -; one of your own is linked to a .so, which \"host\" names",
                        word);
}

/* A list that ends with NULL; empty without the key. */
static gantry_status read_words(gy_reader *r, const gy_json_at *at, word_reader read, const char *const **out)
{
    size_t count = json_is_array(at->value) ? json_array_size(at->value) : 0;
    if (at->value && !json_is_array(at->value))
        return gy_read_kind(r, at, "an array");
    const char **words = gy_arena_calloc(&r->graph->arena, count + 1, sizeof *words);
    gantry_status status = words ? GANTRY_OK : gy_read_nomem(r);
    for (size_t i = 0; i < count && !status; i++) {
        gy_json_at item = gy_read_item(at, i);
        status = read(r, &item, &words[i]);
    }
    *out = words;
    return status;
}

gantry_status gy_read_build(gy_reader *r, const gy_json_at *at, gy_kernel_code *code)
{
    const json_t *value[KEYS];
    if (!at->value)
        return GANTRY_OK;
    if (!(code->host && gy_read_ends_in(code->host, ".c")) && !(code->cuda && gy_read_ends_in(code->cuda, ".cu")))
        return gy_read_fail(r, at,
                            "is for files that are compiled: \"host\" with a .c file, or \"cuda\" with a .cu file");
    GY_TRY(gy_read_members(r, at, keys, KEYS, value));
    gy_code_build *build = gy_arena_calloc(&r->graph->arena, 1, sizeof *build);
    if (!build)
        return gy_read_nomem(r);
    gy_json_at flags = gy_read_at(at, keys[FLAGS], value[FLAGS]),
               include = gy_read_at(at, keys[INCLUDE], value[INCLUDE]),
               libraries = gy_read_at(at, keys[LIBRARIES], value[LIBRARIES]);
    GY_TRY(read_words(r, &flags, read_flag, &build->flag));
    GY_TRY(read_words(r, &include, read_folder, &build->include));
    GY_TRY(read_words(r, &libraries, read_library, &build->library));
    code->build = build;
    return GANTRY_OK;
}
