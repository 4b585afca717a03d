/* Checks that end a test with the line, the library's message and the seed of the random numbers. */
#ifndef CHECK_H
#define CHECK_H

#include <gmerge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned seed;

#define CHECK(condition)                                                                               \
    do {                                                                                               \
        if (!(condition)) {                                                                            \
            printf("line %d: %s; %s; seed %u\n", __LINE__, #condition, gmerge_last_error(), seed);     \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (0)
#define OK(call) CHECK((call) == GMERGE_OK)
#define REFUSED(call, text) CHECK((call) == GMERGE_INVALID_ARGUMENT && strstr(gmerge_last_error(), text))

#endif
