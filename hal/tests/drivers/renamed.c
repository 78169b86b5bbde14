/* Negotiates other kinds than its note says. */
#define SAMPLE_LIBRARY "renamed"
#define SAMPLE_KIND_LIST {{"surprise", "not what the note says"}}
#include "sample.h"
