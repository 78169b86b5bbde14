/* Has a kind of the sample driver and one of its own. */
#define SAMPLE_LIBRARY "partial"
#define SAMPLE_KINDS "sample-b,third"
#define SAMPLE_KIND_LIST {{"sample-b", "another second"}, {"third", "the third sample"}}
#include "sample.h"
