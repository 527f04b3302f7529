#include "json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

#define DEEPEST 32

static const char *skip_space(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') at++;
    return at;
}

static _Noreturn void broken(const char *at) {
    fail("HELLO is no JSON object, from \"%.20s\" on", at);
}

static const char *skip_string(const char *at) {
    if (*at++ != '"') broken(at - 1);
    while (*at != '"') {
        if ((unsigned char)*at < ' ') broken(at);
        if (*at == '\\' && at[1]) at++;
        at++;
    }
    return at + 1;
}

/* The position after the value at `at`. */
static const char *skip_value(const char *at, int depth) {
    if (depth > DEEPEST) broken(at);
    at = skip_space(at);
    if (*at == '"') return skip_string(at);
    if (*at == '{' || *at == '[') {
        char end = *at == '{' ? '}' : ']';
        at = skip_space(at + 1);
        if (*at == end) return at + 1;
        for (;;) {
            if (end == '}') {
                at = skip_space(skip_string(at));
                if (*at++ != ':') broken(at - 1);
            }
            at = skip_space(skip_value(at, depth + 1));
            if (*at == end) return at + 1;
            if (*at++ != ',') broken(at - 1);
            at = skip_space(at);
        }
    }
    const char *start = at;
    while (isalnum((unsigned char)*at) || (*at && strchr("+-.", *at))) at++;
    if (at == start) broken(at);
    return at;
}

const char *json_object(const char *text) {
    text = skip_space(text);
    if (*text != '{') broken(text);
    const char *end = skip_space(skip_value(text, 0));
    if (*end) broken(end);
    return text;
}

const char *json_first(const char *value) {
    if (*value != '{' && *value != '[') return NULL;
    char end = *value == '{' ? '}' : ']';
    value = skip_space(value + 1);
    return *value == end ? NULL : value;
}

const char *json_next(const char *value) {
    value = skip_space(skip_value(value, 0));
    return *value == ',' ? skip_space(value + 1) : NULL;
}

const char *json_key(const char *member, char **key) {
    *key = json_string(member, "a key");
    return skip_space(skip_space(skip_string(member)) + 1);
}

const char *json_member(const char *object, const char *key) {
    for (const char *member = json_first(object); member;) {
        char *found;
        const char *value = json_key(member, &found);
        bool same = strcmp(found, key) == 0;
        free(found);
        if (same) return strncmp(value, "null", 4) == 0 ? NULL : value;
        member = json_next(value);
    }
    return NULL;
}

/* Appends a character of the Basic Multilingual Plane as UTF-8. */
static char *put_utf8(char *to, unsigned long code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* Appends what the escape at `at`, behind its backslash, stands for; returns the position after it. */
static const char *unescape(const char *at, char **to, const char *key) {
    static const char letters[] = "bfnrt\"\\/", meanings[] = "\b\f\n\r\t\"\\/";
    const char *letter = strchr(letters, *at);
    if (letter && *letter) {
        *(*to)++ = meanings[letter - letters];
        return at + 1;
    }
    char digits[5] = {0}, *end;
    if (*at == 'u') strncpy(digits, at + 1, 4);
    unsigned long code = strtoul(digits, &end, 16);
    if (end != digits + 4) fail("HELLO: \"%s\" has the escape \\%.5s, which is not valid", key, at);
    if (code == 0 || (code >= 0xd800 && code < 0xe000)) {
        fail("HELLO: \"%s\" has the character \\%.5s, which is not understood", key, at);
    }
    *to = put_utf8(*to, code);
    return at + 5;
}

char *json_string(const char *value, const char *key) {
    if (!value || *value != '"') fail("HELLO: \"%s\" is not the string that it should be", key);
    const char *end = skip_string(value) - 1;
    char *text = allocate((size_t)(end - value) + 1), *to = text;
    for (const char *at = value + 1; at < end;) {
        if (*at == '\\') {
            at = unescape(at + 1, &to, key);
        } else {
            *to++ = *at++;
        }
    }
    return text;
}

uint64_t json_number(const char *value, const char *key) {
    if (!value || !isdigit((unsigned char)*value)) fail("HELLO: \"%s\" is not the number that it should be", key);
    return strtoull(value, NULL, 10);
}

void json_write_string(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        if ((unsigned char)*text < ' ') {
            fprintf(out, "\\u%04x", (unsigned)*text);
        } else {
            fputc(*text, out);
        }
    }
    fputc('"', out);
}
