/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Mutations of JSON as a tree, for libFuzzer: text that is changed byte by byte is seldom JSON, and then nothing behind
 * the parser is tried. FUZZ_PREFIX bytes before the text are changed as bytes.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef FUZZ_PREFIX
#define FUZZ_PREFIX 0
#endif

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static const char *const words[] = {
    "i",
    "p",
    "n",
    "x",
    "x[i]",
    "x[i+1]",
    "x[*]",
    "x{1:3}",
    "clamp(i,0,n)",
    "devices",
    "1",
    "2*n",
    "n/2",
    "i%2",
    "sum",
    "min",
    "read",
    "write",
    "readwrite",
    "f32",
    "i32",
    "u8",
    "f64",
    "f16",
    "bf16",
    "temp",
    "input",
    "output",
    "state",
    "const",
    "auto",
    "all_reduce",
    "all_gather",
    "broadcast",
    "reduce_scatter",
    "fill",
    "copy",
    "saxpy",
    "gemm",
    "id",
    "for",
    "if",
    "repeat",
    "until",
    "carry",
    "nodes",
    "buffers",
    "params",
    "args",
    "kernel",
    "shape",
    "dtype",
    "class",
    "init",
    "split",
    "tiles",
    "halo",
    "external",
    "on",
    "with",
    "apart",
    "after",
    "time_us",
    "scratch",
    "priority",
    "memory",
    "links",
    "bandwidth_gbs",
    "latency_us",
};
static const int64_t numbers[] = { 0,  1,   2,    3,     4,  7,  8,         16,        63,       64,
                                   65, 255, 1000, 65536, -1, -2, INT32_MAX, INT64_MAX, INT64_MIN };

typedef struct spot {
    json_t *parent;
    size_t index;    /* of an array */
    const char *key; /* of an object; borrowed */
} spot;

static uint32_t state;

static size_t below(size_t n)
{
    state = state * 1664525u + 1013904223u;
    return n ? (state >> 8) % n : 0;
}

/* Chooses one value of the tree, each as likely as the others (Vitter's reservoir of one). */
static void choose(json_t *at, spot *chosen, size_t *seen)
{
    size_t i;
    const char *key;
    json_t *value;
    if (json_is_array(at))
        json_array_foreach(at, i, value)
        {
            if (below(++*seen) == 0)
                *chosen = (spot){ at, i, NULL };
            choose(value, chosen, seen);
        }
    else if (json_is_object(at))
        json_object_foreach(at, key, value)
        {
            if (below(++*seen) == 0)
                *chosen = (spot){ at, 0, key };
            choose(value, chosen, seen);
        }
}

static json_t *value_of(const spot *s)
{
    return s->key ? json_object_get(s->parent, s->key) : json_array_get(s->parent, s->index);
}

static void set(const spot *s, json_t *value)
{
    if (s->key)
        json_object_set_new(s->parent, s->key, value);
    else
        json_array_set_new(s->parent, s->index, value);
}

static json_t *changed_string(const char *text)
{
    char to[256];
    size_t length = strlen(text) < 200 ? strlen(text) : 200;
    memcpy(to, text, length);
    length = LLVMFuzzerMutate((uint8_t *)to, length, sizeof to - 1);
    json_t *value = json_stringn(to, length);
    return value ? value : json_string("");
}

static json_t *changed_number(json_t *old)
{
    int64_t number = json_is_integer(old) ? json_integer_value(old) : 0;
    switch (below(5)) {
    case 0:
        return json_integer((json_int_t)((uint64_t)number + 1));
    case 1:
        return json_integer((json_int_t)((uint64_t)number - 1));
    case 2:
        return json_integer((json_int_t)((uint64_t)number * 2));
    case 3:
        return json_real((double)number / 3);
    default:
        return json_integer(numbers[below(sizeof numbers / sizeof *numbers)]);
    }
}

static json_t *any_value(void)
{
    switch (below(5)) {
    case 0:
        return json_integer(numbers[below(sizeof numbers / sizeof *numbers)]);
    case 1:
        return json_array();
    case 2:
        return json_object();
    case 3:
        return below(2) ? json_true() : json_null();
    default:
        return json_string(words[below(sizeof words / sizeof *words)]);
    }
}

static void leave_out(const spot *s)
{
    if (s->key)
        json_object_del(s->parent, s->key);
    else
        json_array_remove(s->parent, s->index);
}

static void change(json_t *root)
{
    spot s = { 0 }, other = { 0 };
    size_t seen = 0, seen_other = 0;
    choose(root, &s, &seen);
    choose(root, &other, &seen_other);
    if (!s.parent)
        return;
    json_t *old = value_of(&s), *copy = json_deep_copy(value_of(&other));
    switch (below(8)) {
    case 0:
        leave_out(&s);
        break;
    case 1:
        set(&s, any_value());
        break;
    case 2: /* a second of what is there, or of something else */
        if (!s.key)
            json_array_insert(s.parent, s.index, copy);
        else
            json_object_set(s.parent, words[below(sizeof words / sizeof *words)], copy);
        break;
    case 3:
        set(&s, json_incref(copy));
        break;
    default:
        if (json_is_string(old))
            set(&s, below(3) ? changed_string(json_string_value(old))
                             : json_string(words[below(sizeof words / sizeof *words)]));
        else if (json_is_number(old))
            set(&s, changed_number(old));
        else
            set(&s, json_incref(copy));
    }
    json_decref(copy);
}

/* 0: it is no JSON, or what comes of it is too large. */
static size_t mutate_tree(uint8_t *data, size_t size, size_t max_size)
{
    json_t *root = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    if (!root)
        return 0;
    for (size_t n = 1 + below(3); n > 0; n--)
        change(root);
    size_t length = json_dumpb(root, (char *)data, max_size, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(root);
    return length <= max_size ? length : 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    state = seed;
    if (size <= FUZZ_PREFIX || below(8) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (FUZZ_PREFIX && below(4) == 0)
        LLVMFuzzerMutate(data, FUZZ_PREFIX, FUZZ_PREFIX);
    uint8_t *copy = malloc(max_size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    size_t length = mutate_tree(copy + FUZZ_PREFIX, size - FUZZ_PREFIX, max_size - FUZZ_PREFIX);
    if (length)
        memcpy(data + FUZZ_PREFIX, copy + FUZZ_PREFIX, length);
    free(copy);
    return length ? FUZZ_PREFIX + length : LLVMFuzzerMutate(data, size, max_size);
}
