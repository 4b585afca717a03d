/* Sorts a file of uint32_t in place: sort_file FILE */
#include <gmerge.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what) {
    fprintf(stderr, "sort_file: %s\n", what);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return fail("expected one argument, the file");
    FILE *file = fopen(argv[1], "r+b");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return fail("the file cannot be opened");
    size_t count = (size_t)ftell(file) / sizeof(uint32_t);
    uint32_t *keys = (uint32_t *)malloc(count * sizeof *keys + 1);
    rewind(file);
    if (!keys || fread(keys, sizeof *keys, count, file) != count)
        return fail("the file cannot be read");

    gmerge_engine *engine;
    gmerge_format format = {GMERGE_U32, GMERGE_ASCENDING, 0};
    gmerge_output elements = {keys, NULL, count};
    if (gmerge_engine_auto(&engine) != GMERGE_OK || gmerge_sort(engine, format, elements) != GMERGE_OK)
        return fail(gmerge_last_error());
    gmerge_engine_free(engine);

    rewind(file);
    if (fwrite(keys, sizeof *keys, count, file) != count || fclose(file) != 0)
        return fail("the file cannot be written");
    free(keys);
    return 0;
}
