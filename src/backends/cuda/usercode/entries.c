/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/usercode/entries.h"

#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

typedef bool (*visit)(void *context, const char *name, size_t length);

/* ---- cubins: ELF, 64 bits, little endian ---- */

/* Tables of files that are damaged may lead anywhere. */
static bool is_inside(size_t bytes, uint64_t offset, uint64_t length)
{
    return offset <= bytes && length <= bytes - offset;
}

static void each_section(const char *code, size_t bytes, visit each, void *context)
{
    static const char prefix[] = ".text.";
    const size_t begin = sizeof prefix - 1;
    Elf64_Ehdr head;
    Elf64_Shdr section, names;
    memcpy(&head, code, sizeof head);
    if (head.e_shentsize != sizeof section ||
        !is_inside(bytes, head.e_shoff, (uint64_t)head.e_shnum * sizeof section) || head.e_shstrndx >= head.e_shnum)
        return;
    memcpy(&names, code + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
    if (!is_inside(bytes, names.sh_offset, names.sh_size))
        return;
    for (unsigned i = 0; i < head.e_shnum; i++) {
        memcpy(&section, code + head.e_shoff + i * sizeof section, sizeof section);
        const char *name = section.sh_name < names.sh_size ? code + names.sh_offset + section.sh_name : "";
        size_t length = strnlen(name, *name ? names.sh_size - section.sh_name : 0);
        if (length > begin && memcmp(name, prefix, begin) == 0 && !each(context, name + begin, length - begin))
            return;
    }
}

/* ---- PTX ---- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static void each_line(const char *text, visit each, void *context)
{
    static const char word[] = ".entry";
    for (const char *at = text; (at = strstr(at, word));) {
        at += sizeof word - 1;
        const char *name = at + strspn(at, " \t\r\n");
        size_t length = 0;
        while (is_name(name[length]))
            length++;
        if (name > at && length && !each(context, name, length))
            return;
    }
}

void gy_entries_each(const char *code, size_t bytes, visit each, void *context)
{
    if (bytes >= sizeof(Elf64_Ehdr) && memcmp(code, ELFMAG, SELFMAG) == 0)
        each_section(code, bytes, each, context);
    else
        each_line(code, each, context);
}

typedef struct search {
    const char *name;
    bool found;
} search;

static bool compare(void *context, const char *name, size_t length)
{
    search *s = context;
    s->found = strlen(s->name) == length && memcmp(s->name, name, length) == 0;
    return !s->found;
}

bool gy_entries_have(const char *code, size_t bytes, const char *entry)
{
    search s = { entry, false };
    gy_entries_each(code, bytes, compare, &s);
    return s.found;
}

/* ---- what is missing ---- */

enum { MOST_NAMED = 4 };
typedef struct listing {
    char part[96]; /* how C++ writes the name: its length before it */
    gy_text mangled, others;
    int count;
} listing;

static bool has_part(const listing *l, const char *name, size_t length)
{
    size_t part = strlen(l->part);
    for (size_t i = 2; i + part <= length; i++)
        if (memcmp(name + i, l->part, part) == 0)
            return true;
    return false;
}

static bool note(void *context, const char *name, size_t length)
{
    listing *l = context;
    if (length > 2 && name[0] == '_' && name[1] == 'Z' && !l->mangled.length && has_part(l, name, length))
        gy_text_add_n(&l->mangled, name, length);
    if (l->count++ < MOST_NAMED)
        gy_text_printf(&l->others, "%s\"%.*s\"", l->others.length ? ", " : "", (int)length, name);
    return true;
}

void gy_entries_explain(gy_text *to, const char *code, size_t bytes, const char *entry)
{
    listing l = { .count = 0 };
    snprintf(l.part, sizeof l.part, "%zu%s", strlen(entry), entry);
    gy_entries_each(code, bytes, note, &l);
    if (l.mangled.length) {
        gy_text_printf(to, "it has \"%s\", as C++ calls it: declare it extern \"C\" __global__ void %s(...)",
                       l.mangled.at, entry);
    } else if (l.count) {
        gy_text_printf(to, "it has %s%s; name one with \"entry\", and declare it extern \"C\"", l.others.at,
                       l.count > MOST_NAMED ? " and others" : "");
    } else {
        gy_text_printf(to, "it has none that could be read; declare it extern \"C\" __global__ void %s(...)", entry);
    }
    gy_text_free(&l.mangled);
    gy_text_free(&l.others);
}
