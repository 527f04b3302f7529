/* The little of JSON that HELLO, READY and BYE need: members of an object read one by one, and strings written.
 *
 * A value is a pointer to its first character in a text that ends with 0. A text that is not JSON fails. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Checks that the whole of `text` is one JSON object, and returns it. */
const char *json_object(const char *text);

/* The value of member `key` of the object; NULL if it has none or null. */
const char *json_member(const char *object, const char *key);

/* The string, newly allocated; fails, naming `key`, if the value is none. */
char *json_string(const char *value, const char *key);

/* The whole number; fails, naming `key`, if the value is none. */
uint64_t json_number(const char *value, const char *key);

/* The position of the first element of an array or member of an object; NULL if it is empty or `value` neither. */
const char *json_first(const char *value);

/* The position after this element; for a member of an object, give its value. NULL at the end. */
const char *json_next(const char *value);

/* Writes `text` as a JSON string. */
void json_write_string(FILE *out, const char *text);

/* From a member's position: its key, newly allocated, and the position of its value. */
const char *json_key(const char *member, char **key);

#endif
