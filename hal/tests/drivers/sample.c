/* Nothing is wrong with it. */
#define SAMPLE_LIBRARY "sample"
#define SAMPLE_KINDS "sample,sample-b"
#define SAMPLE_KIND_LIST {{"sample", "the first sample"}, {"sample-b", "the second sample"}}
#include "sample.h"
