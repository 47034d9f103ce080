// Works of three jobs as simulations of a tracker submit them: of classes "x"
// and, where there are such boards, "y"; most of one trial, some of several
// that run in turn or together.
#ifndef REGATTA_TESTS_SUPPORT_RANDOM_WORKS_H_
#define REGATTA_TESTS_SUPPORT_RANDOM_WORKS_H_

#include <vector>

#include "base/random.h"
#include "regatta/v1/dispatch_service.pb.h"

namespace regatta {

// At least 20 and fewer than 20 + `spread`.
std::vector<v1::Work> RandomWorks(Random& random, uint64_t spread, bool has_y);

}  // namespace regatta

#endif  // REGATTA_TESTS_SUPPORT_RANDOM_WORKS_H_
