/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/usercode/options.h"

#include "base/file.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Contraction is off as for the library's kernels and users' C files: results are those of the host's version, to the
 * bit where it does the same operations. */
static const char *const fixed[] = { "--std=c++17", "--generate-line-info", "--fmad=false",
                                     "--define-macro=GANTRY_NVRTC=1" };
enum { FIXED = sizeof fixed / sizeof *fixed };

void gy_nvrtc_options_free(gy_nvrtc_options *w)
{
    for (size_t i = 0; i < w->count; i++)
        gy_free(w->at[i]);
    gy_vec_free(w);
}

static bool add_word(gy_nvrtc_options *w, const char *begin, const char *text)
{
    gy_text word = { 0 };
    gy_text_add(&word, begin);
    gy_text_add(&word, text);
    char *taken = gy_text_take(&word, NULL);
    if (!taken || !gy_vec_push(w, taken)) {
        gy_free(taken);
        return false;
    }
    return true;
}

/* A folder with the toolkit's headers (cuda_fp16.h and others), beside something of the toolkit. True if it is one. */
static bool find_headers(gy_nvrtc_options *w, const char *beside, const char *folder, bool *room)
{
    gy_text path = { 0 };
    gy_text_printf(&path, "%s/%s/cuda_fp16.h", beside, folder);
    bool found = !path.failed && access(path.at, R_OK) == 0;
    if (found) {
        path.at[path.length - strlen("/cuda_fp16.h")] = '\0';
        *room = add_word(w, "--include-path=", path.at);
    }
    *room = *room && !path.failed;
    gy_text_free(&path);
    return found || !*room;
}

/* NVRTC knows the built-in types, and no header. */
static bool add_toolkit(gy_nvrtc_options *w, const gy_nvrtc *n)
{
    const char *home = getenv("CUDA_HOME"), *path = getenv("CUDA_PATH");
    bool room = true;
    char *beside = *n->file ? gy_path_folder(n->file) : gy_strdup(".");
    if (!beside)
        return false;
    bool found = find_headers(w, beside, "../include", &room) || find_headers(w, beside, "../../include", &room) ||
                 (home && *home && find_headers(w, home, "include", &room)) ||
                 (path && *path && find_headers(w, path, "include", &room)) ||
                 find_headers(w, "/usr/local/cuda", "include", &room);
    (void)found; /* without them sources that need none still compile */
    gy_free(beside);
    return room;
}

bool gy_nvrtc_options_make(gy_nvrtc_options *w, const gy_nvrtc *n, gy_target t, const char *const *more,
                           const char *const *folders, size_t count)
{
    char architecture[16];
    snprintf(architecture, sizeof architecture, "%s_%d", t.exact ? "sm" : "compute", t.architecture);
    bool room = add_word(w, "--gpu-architecture=", architecture);
    for (size_t i = 0; i < FIXED && room; i++)
        room = add_word(w, fixed[i], "");
    for (; *more && room; more++)
        room = add_word(w, *more, "");
    for (size_t i = 0; i < count && room; i++)
        room = add_word(w, "--include-path=", folders[i]);
    return room && add_toolkit(w, n);
}
