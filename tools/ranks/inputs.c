/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of files of --input as a number: where all ranks find the same, each reads what it needs by itself. */
#include "runs/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE = 1 << 20 };

/* Words of 8 bytes, the last one filled up by zeros; the length is mixed in by the caller. */
static uint64_t mix(uint64_t hash, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, count - i < sizeof word ? count - i : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* False: it cannot be read, or only once, as a pipe; or the name stands for several files. */
static bool mix_file(uint64_t *hash, const char *path)
{
    struct stat about;
    FILE *file = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL;
    char *piece = malloc(PIECE);
    size_t got = 0, all = 0;
    while (file && piece && (got = fread(piece, 1, PIECE, file)) > 0) {
        *hash = mix(*hash, piece, got);
        all += got;
    }
    bool read = file && piece && !ferror(file);
    *hash = mix(*hash, (const char *)&all, sizeof all);
    free(piece);
    if (file)
        fclose(file);
    return read;
}

uint64_t inputs_key(const session *s)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < s->o->inputs.count; i++) {
        const char *text = s->o->inputs.at[i], *sign = strchr(text, '=');
        if (!sign || !mix_file(&hash, sign + 1))
            return 0;
        hash = mix(hash, text, (size_t)(sign - text));
    }
    return hash ? hash : 1;
}
