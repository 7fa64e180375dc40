/* SPDX-License-Identifier: Apache-2.0 */
#include "base/npy.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/vec.h"
#include <inttypes.h>
#include <string.h>

/* Format: "\x93NUMPY", version major and minor, header length (2 bytes in version 1, else 4), then a Python dictionary:
 * {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and spaces up to a newline. */
enum { PREFIX_V1 = 10, PREFIX_V2 = 12, MOST_HEADER = 1 << 20, MOST_RANK = 1 << 10 };

static const char magic[] = "\x93NUMPY";

static const struct type_name {
    char text[4];
    gantry_dtype dtype;
} type_names[] = {
    { "<f4", GANTRY_F32 },    { "<f8", GANTRY_F64 },    { "<f2", GANTRY_F16 },    { "|V2", GANTRY_BF16 },
    { "<V2", GANTRY_BF16 },   { "|i1", GANTRY_I8 },     { "|u1", GANTRY_U8 },     { "<i4", GANTRY_I32 },
    { "<u4", GANTRY_U32 },    { "<i8", GANTRY_I64 },    { "<u8", GANTRY_U64 },    { "|V1", GANTRY_F8E4M3 },
    { "<V1", GANTRY_F8E4M3 }, { "<f1", GANTRY_F8E5M2 }, { "|f1", GANTRY_F8E5M2 },
};
enum { TYPES = sizeof type_names / sizeof *type_names };

typedef struct scan {
    const char *at, *end;
    const char *file;
    gantry_error *err;
} scan;

static gantry_status damaged(const scan *s, const char *what)
{
    return gy_fail(s->err, GANTRY_E_IO, NULL, "%s: damaged .npy header: %s", s->file, what);
}

static void skip_blanks(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t'))
        s->at++;
}

static bool take(scan *s, char c)
{
    skip_blanks(s);
    if (s->at < s->end && *s->at == c) {
        s->at++;
        return true;
    }
    return false;
}

/* A Python string in either kind of quotes, without escapes: NumPy writes none for the types that we know. */
static bool take_string(scan *s, const char **text, size_t *length)
{
    skip_blanks(s);
    if (s->at == s->end || (*s->at != '\'' && *s->at != '"'))
        return false;
    char quote = *s->at++;
    *text = s->at;
    while (s->at < s->end && *s->at != quote)
        s->at++;
    *length = (size_t)(s->at - *text);
    return s->at < s->end && s->at++;
}

static bool take_word(scan *s, const char *word)
{
    skip_blanks(s);
    size_t length = strlen(word);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0)
        return false;
    s->at += length;
    return true;
}

static bool take_size(scan *s, int64_t *value)
{
    skip_blanks(s);
    const char *start = s->at;
    int64_t number = 0;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
        if (number > (INT64_MAX - 9) / 10)
            return false;
        number = number * 10 + (*s->at - '0');
    }
    *value = number;
    return s->at > start;
}

static gantry_status read_type(scan *s, gantry_dtype *dtype)
{
    const char *text;
    size_t length;
    if (!take_string(s, &text, &length)) {
        return gy_fail(s->err, GANTRY_E_IO, NULL, "%s: has records of several fields; save one plain array a file",
                       s->file);
    }
    for (size_t i = 0; i < TYPES; i++) {
        if (length == 3 && memcmp(text, type_names[i].text, 3) == 0) {
            *dtype = type_names[i].dtype;
            return GANTRY_OK;
        }
    }
    if (length > 0 && text[0] == '>') {
        return gy_fail(s->err, GANTRY_E_IO, NULL,
                       "%s: has big-endian elements '%.*s'; save a.astype(a.dtype.newbyteorder('<'))", s->file,
                       (int)length, text);
    }
    return gy_fail(s->err, GANTRY_E_IO, NULL,
                   "%s: has elements of type '%.*s'; allowed are f2 f4 f8 i1 u1 i4 u4 i8 u8, V2, the bits of bf16, "
                   "V1, those of f8e4m3, and f1, those of f8e5m2: save a.astype(...), or of uint16 and uint8 with such "
                   "bits a.view('V2') and a.view('V1')",
                   s->file, (int)(length < 40 ? length : 40), text);
}

typedef GY_VEC(int64_t) sizes;

static gantry_status read_shape(scan *s, sizes *shape)
{
    if (!take(s, '('))
        return damaged(s, "the shape is not a list");
    while (!take(s, ')')) {
        int64_t size;
        if (!take_size(s, &size) || shape->count >= MOST_RANK)
            return damaged(s, "the shape holds something that is not a size");
        if (!gy_vec_push(shape, size))
            return gy_fail_nomem(s->err);
        (void)take_word(s, "L"); /* written by Python 2 */
        if (!take(s, ',') && !(s->at < s->end && *s->at == ')'))
            return damaged(s, "the shape does not end");
    }
    return GANTRY_OK;
}

/* Bytes of the data; false if they do not fit in 63 bits. */
static bool count_bytes(gantry_dtype dtype, const sizes *shape, uint64_t *bytes)
{
    int64_t total = (int64_t)gantry_dtype_size(dtype);
    for (size_t i = 0; i < shape->count; i++)
        if (__builtin_mul_overflow(total, shape->at[i], &total))
            return false;
    *bytes = (uint64_t)total;
    return true;
}

typedef struct found {
    bool type, order, shape, fortran;
    gantry_dtype dtype;
    sizes sizes;
} found;

static gantry_status read_entry(scan *s, found *f)
{
    const char *key;
    size_t length;
    gantry_status status = GANTRY_OK;
    if (!take_string(s, &key, &length) || !take(s, ':'))
        return damaged(s, "no dictionary of descr, fortran_order and shape");
    if (length == 5 && memcmp(key, "descr", 5) == 0) {
        f->type = true;
        status = read_type(s, &f->dtype);
    } else if (length == 13 && memcmp(key, "fortran_order", 13) == 0) {
        f->order = true;
        f->fortran = take_word(s, "True");
        status =
            f->fortran || take_word(s, "False") ? GANTRY_OK : damaged(s, "fortran_order is neither True nor False");
    } else if (length == 5 && memcmp(key, "shape", 5) == 0 && !f->shape) {
        f->shape = true;
        status = read_shape(s, &f->sizes);
    } else {
        status = damaged(s, "an unknown or repeated key");
    }
    return status;
}

static gantry_status read_dictionary(scan *s, found *f)
{
    if (!take(s, '{'))
        return damaged(s, "no dictionary");
    while (!take(s, '}')) {
        gantry_status status = read_entry(s, f);
        if (status)
            return status;
        if (!take(s, ',') && !(s->at < s->end && *s->at == '}'))
            return damaged(s, "the dictionary does not end");
    }
    if (!f->type || !f->order || !f->shape)
        return damaged(s, "descr, fortran_order or shape is missing");
    if (f->fortran && f->sizes.count > 1) {
        return gy_fail(s->err, GANTRY_E_IO, NULL,
                       "%s: is in Fortran order; save numpy.ascontiguousarray(a), which is in C order", s->file);
    }
    return GANTRY_OK;
}

/* Where the dictionary begins and its length, from the first PREFIX_V2 bytes. */
static gantry_status read_prefix(const unsigned char *data, size_t length, const char *name, size_t *begin,
                                 size_t *size, gantry_error *err)
{
    if (length < sizeof magic - 1 || memcmp(data, magic, sizeof magic - 1) != 0)
        return gy_fail(err, GANTRY_E_IO, NULL, "%s: is not a .npy file: it does not begin with \\x93NUMPY", name);
    if (length < PREFIX_V1 || (data[6] > 1 && length < PREFIX_V2))
        return gy_fail(err, GANTRY_E_IO, NULL, "%s: damaged .npy header: the file ends inside it", name);
    if (data[6] < 1 || data[6] > 3) {
        return gy_fail(err, GANTRY_E_IO, NULL, "%s: is .npy version %d.%d; versions 1.0 to 3.0 can be read", name,
                       data[6], data[7]);
    }
    *begin = data[6] == 1 ? PREFIX_V1 : PREFIX_V2;
    *size = (size_t)data[8] | (size_t)data[9] << 8;
    if (data[6] > 1)
        *size |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (*size > MOST_HEADER)
        return gy_fail(err, GANTRY_E_IO, NULL, "%s: damaged .npy header: %zu bytes long", name, *size);
    return GANTRY_OK;
}

gantry_status gy_npy_header_parse(gy_npy *out, const void *data, size_t length, const char *name, gantry_error *err)
{
    size_t begin, size;
    gantry_status status = read_prefix(data, length, name, &begin, &size, err);
    if (status)
        return status;
    scan s = { (const char *)data + begin, (const char *)data + begin + size, name, err };
    if (size > length - begin)
        return damaged(&s, "the file ends inside it");
    found f = { .dtype = GANTRY_F32 };
    uint64_t bytes = 0;
    status = read_dictionary(&s, &f);
    if (!status && !count_bytes(f.dtype, &f.sizes, &bytes))
        status = damaged(&s, "the array is larger than 2^63 bytes");
    if (status) {
        gy_vec_free(&f.sizes);
        return status;
    }
    *out = (gy_npy){ f.dtype, (int)f.sizes.count, f.sizes.at, begin + size, bytes };
    return GANTRY_OK;
}

/* The file's first bytes up to the end of its header. No header is as short as what is read of it before its length is
 * known. */
static gantry_status read_start(const gy_file *file, unsigned char **start, size_t *length, gantry_error *err)
{
    unsigned char prefix[PREFIX_V2];
    size_t begin, size, got, more = 0;
    GY_TRY(gy_file_get(file, prefix, sizeof prefix, &got, err));
    GY_TRY(read_prefix(prefix, got, file->path, &begin, &size, err));
    unsigned char *all = gy_alloc(begin + size + PREFIX_V2);
    if (!all)
        return gy_fail_nomem(err);
    memcpy(all, prefix, got);
    gantry_status status =
        begin + size > got ? gy_file_get(file, all + got, begin + size - got, &more, err) : GANTRY_OK;
    if (status) {
        gy_free(all);
        return status;
    }
    *start = all;
    *length = got + more;
    return GANTRY_OK;
}

gantry_status gy_npy_header_get(gy_npy *out, const gy_file *file, gantry_error *err)
{
    unsigned char *start;
    size_t length;
    GY_TRY(read_start(file, &start, &length, err));
    gantry_status status = gy_npy_header_parse(out, start, length, file->path, err);
    gy_free(start);
    return status;
}

gantry_status gy_npy_header_read(gy_npy *out, const char *path, gantry_error *err)
{
    gy_file file;
    GY_TRY(gy_file_open(&file, path, NULL, err));
    gantry_status status = gy_npy_header_get(out, &file, err);
    gy_file_close(&file);
    return status;
}

static const char *type_text(gantry_dtype dtype)
{
    for (size_t i = 0; i < TYPES; i++)
        if (type_names[i].dtype == dtype)
            return type_names[i].text;
    return "|V1";
}

void gy_npy_header_write(gy_text *to, gantry_dtype dtype, int rank, const int64_t *shape)
{
    gy_text header = { 0 };
    gy_text_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", type_text(dtype));
    for (int i = 0; i < rank; i++)
        gy_text_printf(&header, "%s%" PRId64 "%s", i > 0 ? ", " : "", shape[i], rank == 1 ? "," : "");
    gy_text_add(&header, "), }");
    size_t begin = header.length + PREFIX_V1 + 64 < UINT16_MAX ? PREFIX_V1 : PREFIX_V2;
    while ((begin + header.length + 1) % 64 != 0) {
        gy_text_add(&header, " ");
        if (header.failed)
            break;
    }
    gy_text_add(&header, "\n");
    char prefix[PREFIX_V2] = "\x93NUMPY";
    prefix[6] = begin == PREFIX_V1 ? 1 : 2;
    for (size_t i = 8; i < begin; i++)
        prefix[i] = (char)(unsigned char)(header.length >> (8 * (i - 8)) & 0xff);
    to->failed = to->failed || header.failed;
    gy_text_add_n(to, prefix, begin);
    gy_text_add_n(to, header.at, header.failed ? 0 : header.length);
    gy_text_free(&header);
}

void gy_npy_free(gy_npy *npy)
{
    gy_free(npy->shape);
    *npy = (gy_npy){ 0 };
}
