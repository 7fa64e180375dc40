/* SPDX-License-Identifier: Apache-2.0 */
/* The words behind a command, as options and what they stand beside. */
#include "options.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* `word` as it was typed, with its dashes. */
static bool unknown(const command *c, const char *word)
{
    size_t dashes = strspn(word, "-"), length = strcspn(word, "=");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length - dashes < 60 ? length - dashes : 60), word + dashes);
    const char *near = nearest_option(c, name);
    const command *other = command_offering(name);
    complain("gantry %s: no option \"%.*s\"", c->name, (int)(length < 60 ? length : 60), word);
    if (near)
        complain(" (did you mean \"--%s\"?)\n", near);
    else if (other)
        complain(", which is one of `gantry %s`; `gantry help %s` lists its own\n", other->name, c->name);
    else
        complain("; `gantry help %s` lists them\n", c->name);
    return false;
}

static bool append(string_list *list, const char *text)
{
    const char **at = realloc((void *)list->at, (list->count + 1) * sizeof *at);
    if (!at) {
        complain("%s\n", gantry_status_text(GANTRY_E_NOMEM));
        return false;
    }
    list->at = at;
    list->at[list->count++] = text;
    return true;
}

static bool set_number(options *o, const command *c, const option *p, const char *value)
{
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (errno || end == value || *end || n < p->low || n > p->high) {
        complain("gantry %s: --%s is \"%s\"; it takes a whole number from %lld to %lld\n", c->name, p->name, value,
                 (long long)p->low, (long long)p->high);
        return false;
    }
    int64_t number = n;
    memcpy((char *)o + p->field, &number, sizeof number);
    return true;
}

/* The units of machine files. */
static int64_t unit_bytes(const char *unit)
{
    static const char *const units[] = { "", "B", "KB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB" };
    static const int64_t bytes[] = { 1,
                                     1,
                                     1000,
                                     INT64_C(1) << 10,
                                     1000000,
                                     INT64_C(1) << 20,
                                     1000000000,
                                     INT64_C(1) << 30,
                                     INT64_C(1000000000000),
                                     INT64_C(1) << 40 };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(unit, units[i]) == 0)
            return bytes[i];
    return 0;
}

static bool set_size(options *o, const command *c, const option *p, const char *value)
{
    char *end;
    errno = 0;
    int64_t n = strtoll(value, &end, 10), unit = unit_bytes(end), size;
    if (errno || end == value || !unit || __builtin_mul_overflow(n, unit, &size) || size < p->low || size > p->high) {
        complain(
            "gantry %s: --%s is \"%s\"; it takes a whole number of bytes from %lld to %lld, or one with a unit such as "
            "64KiB or 1GiB\n",
            c->name, p->name, value, (long long)p->low, (long long)p->high);
        return false;
    }
    memcpy((char *)o + p->field, &size, sizeof size);
    return true;
}

static bool set_real(options *o, const command *c, const option *p, const char *value)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || !(number > 0) || number > 1e300) {
        complain("gantry %s: --%s is \"%s\"; it takes a number greater than 0\n", c->name, p->name, value);
        return false;
    }
    memcpy((char *)o + p->field, &number, sizeof number);
    return true;
}

static bool set(options *o, const command *c, const option *p, const char *value)
{
    switch (p->kind) {
    case FLAG: {
        bool on = true;
        memcpy((char *)o + p->field, &on, sizeof on);
        return true;
    }
    case TEXT:
        memcpy((char *)o + p->field, &value, sizeof value);
        return true;
    case NUMBER:
        return set_number(o, c, p, value);
    case SIZE:
        return set_size(o, c, p, value);
    case REAL:
        return set_real(o, c, p, value);
    case LIST:
        return append((string_list *)(void *)((char *)o + p->field), value);
    }
    return false;
}

/* One option at argv[*i]; takes its value from "--name=value" or from the next word, which is no option itself. */
static bool parse_option(options *o, const command *c, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *name = word + 2;
    if (strcmp(word, "-h") == 0)
        name = "help";
    else if (strcmp(word, "-q") == 0)
        name = "quiet";
    else if (strcmp(word, "-v") == 0)
        name = "verbose";
    else if (strcmp(word, "-o") == 0)
        name = accepts(c, "out") ? "out" : "output-schedule";
    else if (word[1] != '-')
        return unknown(c, word);
    const char *equals = strchr(name, '=');
    const option *p = find_option(c, name, equals ? (size_t)(equals - name) : strlen(name));
    if (!p)
        return unknown(c, word);
    if (p->kind == FLAG && equals) {
        complain("gantry %s: --%s takes no value\n", c->name, p->name);
        return false;
    }
    if (p->kind == FLAG || equals)
        return set(o, c, p, equals ? equals + 1 : NULL);
    if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0) {
        complain("gantry %s: --%s needs a value: %s\n", c->name, p->name, p->value);
        return false;
    }
    return set(o, c, p, argv[++*i]);
}

static bool parse_words(options *o, const command *c, int argc, char **argv)
{
    bool options_end = false;
    for (int i = 0; i < argc; i++) {
        bool is_option = !options_end && argv[i][0] == '-' && argv[i][1];
        if (is_option && strcmp(argv[i], "--") == 0)
            options_end = true;
        else if (is_option ? !parse_option(o, c, argc, argv, &i) : !append(&o->positional, argv[i]))
            return false;
    }
    return true;
}

int dashes(const char *const *paths, size_t count)
{
    int found = 0;
    for (size_t i = 0; i < count; i++)
        found += paths[i] && strcmp(paths[i], "-") == 0;
    return found;
}

static int written_to_stdout(const options *o)
{
    const char *const to[] = {
        o->out, o->machine_out, o->dot, o->svg, o->html, o->trace, o->calibrate, o->write_graph
    };
    int found = dashes(to, sizeof to / sizeof *to);
    for (size_t i = 0; i < o->outputs.count; i++) {
        size_t length = strlen(o->outputs.at[i]);
        found += length > 1 && strcmp(o->outputs.at[i] + length - 2, "=-") == 0;
    }
    return found;
}

bool uses_stdout(const options *o)
{
    return written_to_stdout(o) > 0;
}

/* Standard input is read once, standard output holds one document. */
static bool check_streams(const options *o, const command *c)
{
    const char *const from[] = { o->machine, o->schedule };
    if (dashes(o->positional.at, o->positional.count) + dashes(from, 2) > 1) {
        complain("gantry %s: only one file can be \"-\", standard input\n", c->name);
        return false;
    }
    if (written_to_stdout(o) + o->json > 1) {
        complain("gantry %s: only one of --json and the files to write can go to standard output\n", c->name);
        return false;
    }
    return true;
}

static bool is_number(const option *p)
{
    return p->kind == NUMBER || p->kind == SIZE;
}

static bool is_given(const options *o, const option *p)
{
    const char *at = (const char *)o + p->field;
    if (is_number(p))
        return memcmp(at, &p->fallback, sizeof p->fallback) != 0;
    const char *text = NULL;
    if (p->kind == TEXT)
        memcpy((void *)&text, at, sizeof text);
    return p->kind == TEXT ? text != NULL : p->kind == FLAG && *(const bool *)at;
}

/* Options that say how a schedule is made would say nothing beside one that is read. --balance is not among them:
 * guided, it cuts anew between starts. */
static bool check_planning(const options *o, const command *c)
{
    static const char *const planning[] = { "machine",   "devices",   "spread", "policy",     "effort", "optimal",
                                            "objective", "in-flight", "unroll", "max-memory", "spill",  "replay" };
    for (size_t i = 0; o->schedule && i < sizeof planning / sizeof *planning; i++) {
        const option *p = find_option(c, planning[i], strlen(planning[i]));
        if (!p || !is_given(o, p))
            continue;
        complain("gantry %s: --%s says how a schedule is made, but --schedule %s is one that was; leave one of the two "
                 "options out\n",
                 c->name, p->name, o->schedule);
        return false;
    }
    return true;
}

/* A word that was perhaps meant to be an option: dashes as texts are printed with, a value without its option. */
static void offer_option(const command *c, const char *word)
{
    size_t length = strcspn(word, "=");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), word);
    const char *near = word[length] == '=' ? nearest_option(c, name) : NULL;
    if (strncmp(word, "\xE2\x80", 2) == 0)
        complain("; the dash of an option is the hyphen of the keyboard, twice: --%s",
                 word[2] ? word + 3 + strspn(word + 3, "-") : "");
    else if (near)
        complain(" (did you mean --%s %s?)", near, word + length + 1);
    else if (word[length] == '=')
        complain("; NAME=VALUE goes behind --param, --input or --output");
}

static void too_many(const options *o, const command *c)
{
    const char *word = o->positional.at[c->most];
    complain("gantry %s: \"%s\" is one word too many", c->name, word);
    offer_option(c, word);
    complain("; usage: gantry %s %s\n", c->name, c->arguments);
}

static bool check_count(const options *o, const command *c)
{
    size_t count = o->positional.count;
    if (count >= c->least && count <= c->most)
        return true;
    if (count > c->most)
        too_many(o, c);
    else
        complain("gantry %s: %s missing; usage: gantry %s %s\n", c->name,
                 count + 1 == c->least ? "a word is" : "words are", c->name, c->arguments);
    complain("`gantry help %s` shows options and examples\n", c->name);
    return false;
}

bool options_parse(options *o, const command *c, int argc, char **argv)
{
    size_t i = 0;
    for (const option *p; (p = option_at(i)) != NULL; i++)
        if (is_number(p))
            memcpy((char *)o + p->field, &p->fallback, sizeof p->fallback);
    if (!parse_words(o, c, argc, argv))
        return false;
    return o->help || (check_count(o, c) && check_streams(o, c) && check_planning(o, c));
}
