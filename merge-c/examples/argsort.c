/* Lists fruits by their price. */
#include <gmerge.h>
#include <stdio.h>

int main(void) {
    const double prices[] = {3.5, 1.5, 2.0};
    const char *names[] = {"pear", "fig", "kiwi"};
    uint32_t order[3];

    gmerge_engine *engine;
    gmerge_format format = {GMERGE_F64, GMERGE_ASCENDING, 0};
    gmerge_input keys = {prices, NULL, 3};
    if (gmerge_engine_cpu(0, &engine) != GMERGE_OK ||
        gmerge_argsort(engine, format, keys, order, sizeof order[0]) != GMERGE_OK) {
        fprintf(stderr, "argsort: %s\n", gmerge_last_error());
        return 1;
    }
    gmerge_engine_free(engine);
    for (int i = 0; i < 3; i++)
        printf("%s %.2f\n", names[order[i]], prices[order[i]]);
    return 0;
}
